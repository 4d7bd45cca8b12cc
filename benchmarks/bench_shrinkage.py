"""Automatic shrinkage against Ledoit and Wolf's on the labeled rows alone.

For half, once and twice as many labeled rows as features: error and loss of test rows,
paired by split, with the variance corrected for overlapping splits and p-values by
Holm's method over the sets. Clearly better or worse is p < 0.05. Units of the features
are left as they are.
"""

from __future__ import annotations

import argparse
import os
import warnings

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA
from iclda._statistics import corrected_t_test, holm
from iclda.datasets import BENCHMARKS
from iclda.studies.paper.splits import load_sets

CLASSIFIERS = {"EMLDA": ExpectationMaximizationLDA, "ICLDA": ImplicitlyConstrainedLDA}
# Labeled rows.
SIZES = {"d/2": 0.5, "d": 1.0, "2d": 2.0}
TEST_SHARE = 0.1
LARGEST = 0.99


def split_of(codes, n_labeled, seed):
    """Training rows, their labels or -1, and test rows; two labels a class at least."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(codes))
    n_test = round(TEST_SHARE * len(codes))
    test = order[:n_test]
    train = order[n_test:]
    sure = np.concatenate([train[codes[train] == k][:2] for k in np.unique(codes)])
    others = train[~np.isin(train, sure)][: max(0, n_labeled - len(sure))]
    known = np.where(np.isin(train, np.r_[sure, others]), codes[train], -1)
    return train, known, test


def numbers_of(classifier, X, known, test, truth):
    model = classifier.fit(X, known)
    error = float((model.predict(test) != truth).mean())
    return (
        error,
        -float(model.log_likelihood(test, truth).mean()),
        float(model.shrinkage_),
    )


def compare_set(make, X, codes, n_labeled, repeats, seed):
    """(repeats, 2, 3): error, loss and shrinkage, by labeled rows and by all rows."""
    found = []
    for repeat in range(repeats):
        train, known, test = split_of(codes, n_labeled, [seed, repeat])
        labeled = X[train][known >= 0]
        alone = min(ledoit_wolf_shrinkage(labeled), LARGEST)
        given = X[train], known, X[test], codes[test]
        found.append([numbers_of(make(shrinkage=s), *given) for s in (alone, "auto")])
    return np.array(found)


def verdict(changes):
    """p-values of (sets, repeats) changes, corrected for splits and sets."""
    ratio = TEST_SHARE / (1 - TEST_SHARE)
    return holm([corrected_t_test(each, ratio)[1] for each in changes])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", default="EMLDA,ICLDA")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = load_sets(list(BENCHMARKS), None)
    for method in given.methods.split(","):
        print(f"\n{method}\n\n| labels | set | shrinkage | error | p | loss | p |")
        print("|---|---|---|---|---|---|---|")
        for size, times in SIZES.items():
            tables = {}
            for name, data in sets.items():
                n_labeled = round(times * data.X.shape[1])
                tables[name] = compare_set(
                    CLASSIFIERS[method],
                    data.X,
                    data.codes,
                    n_labeled,
                    given.repeats,
                    given.seed,
                )
            p_values = [
                verdict([table[:, 1, m] - table[:, 0, m] for table in tables.values()])
                for m in (0, 1)
            ]
            for k, (name, table) in enumerate(tables.items()):
                (error, loss, s), (new_error, new_loss, new_s) = table.mean(axis=0)
                p_error, p_loss = (each[k] for each in p_values)
                print(
                    f"| {size} | {name} | {s:.2f} -> {new_s:.2f} "
                    f"| {error:.3f} -> {new_error:.3f} "
                    f"| {p_error:.2g} | {loss:.2f} -> {new_loss:.2f} | {p_loss:.2g} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
