"""Automatic shrinkage against Ledoit and Wolf's on the labeled rows alone.

For half, once and twice as many labeled rows as features: error and loss of test rows,
paired by split, with the variance corrected for overlapping splits and p-values by
Holm's method over the sets. Clearly better or worse is p < 0.05. Units of the features
are left as they are.

With --supervised: error of supervised LDA by rules of shrinkage, and of scikit-learn's
LDA, on the tables of bench_tables.py, in their units and standardized, and on two
tables of docs/findings.md. A diagonal target is the sphere of columns that were divided
by their standard deviations within the labeled classes; scikit-learn's is diagonal too.
"""

from __future__ import annotations

import argparse
import os
import warnings

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from few_labels.sets import KEPT, TUNED
from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SupervisedLDA
from iclda._core.solvers.supervised import (
    most_probable_shrinkage,
    oracle_approximating,
)
from iclda._statistics import corrected_t_test, holm
from iclda.datasets import BENCHMARKS
from iclda.studies.paper.splits import load_sets

CLASSIFIERS = {"EMLDA": ExpectationMaximizationLDA, "ICLDA": ImplicitlyConstrainedLDA}
# Labeled rows.
SIZES = {"d/2": 0.5, "d": 1.0, "2d": 2.0}
TEST_SHARE = 0.1
LARGEST = 0.99
# Numbers of labels of --supervised; "4 a class" are four labels of every class.
LABELS = ("2 a class", "4 a class", "10", "20", "50", "100")
DRAWS = 5
MOST_TESTED = 2_000
MOST_FEATURES = 150
# Deviations of a column within classes are steadied by one row of the mean variance.
STEADY_ROWS = 1.0


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


def thirty_columns():
    """The table "30 columns" of docs/findings.md: two classes apart in one of them."""
    rng = np.random.default_rng(0)
    codes = rng.choice(2, 2_000)
    rows = rng.standard_normal((2_000, 30))
    rows[:, 0] += 2.5 * codes
    return rows, codes


def two_clusters_a_class():
    """The table "2 clusters a class" of docs/findings.md."""
    return make_classification(2_000, random_state=0, class_sep=1.2)


QUESTIONED = {
    "30 columns": thirty_columns,
    "2 clusters a class": two_clusters_a_class,
}


def labeled_rows_of(codes, labels, seed):
    """Labeled and test rows; None if the table has too few rows."""
    n_classes = codes.max() + 1
    number = labels.removesuffix(" a class")
    is_balanced = number != labels
    sure_count = int(number) if is_balanced else 2
    n_labeled = sure_count * n_classes if is_balanced else int(number)
    if n_labeled > 0.6 * len(codes):
        return None
    order = np.random.default_rng(seed).permutation(len(codes))
    sure = np.concatenate(
        [order[codes[order] == k][:sure_count] for k in range(n_classes)]
    )
    others = order[~np.isin(order, sure)]
    n_others = max(0, n_labeled - len(sure))
    return np.r_[sure, others[:n_others]], others[n_others:][:MOST_TESTED]


def errors_by_rule(X, codes, labeled, test):
    """Error of every rule of shrinkage."""
    rows = X[labeled]
    own = codes[labeled]
    n_classes = own.max() + 1
    means = np.array([rows[own == k].mean(axis=0) for k in range(n_classes)])
    residuals = rows - means[own]
    n_free = max(1, len(own) - n_classes)
    covariance = residuals.T @ residuals / n_free
    variances = covariance.diagonal()
    steadied = n_free * variances + STEADY_ROWS * variances.mean()
    scale = np.sqrt(steadied) if variances.any() else 1.0

    def error(classifier, scale=1.0):
        fitted = classifier.fit(rows / scale, own)
        return float((fitted.predict(X[test] / scale) != codes[test]).mean())

    def amount(rule):
        if not variances.any():
            return LARGEST
        return min(rule(covariance, n_free), LARGEST)

    oracle = amount(oracle_approximating)
    probable = amount(most_probable_shrinkage)
    scikit = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return {
        "none": error(SupervisedLDA()),
        "oracle": error(SupervisedLDA(shrinkage=oracle)),
        "most probable": error(SupervisedLDA(shrinkage=probable)),
        "auto": error(SupervisedLDA(shrinkage="auto")),
        "auto, diagonal": error(SupervisedLDA(shrinkage="auto"), scale),
        "scikit-learn": error(scikit),
    }


def mean_errors(table, is_standardized, labels):
    """Mean errors over draws by rule, in percent; None for too few rows."""
    X, codes = table
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    if is_standardized:
        X = X / X.std(axis=0)
    drawn = [labeled_rows_of(codes, labels, seed) for seed in range(DRAWS)]
    if drawn[0] is None:
        return None
    found = [errors_by_rule(X, codes, *rows) for rows in drawn]
    return {rule: 100 * np.mean([each[rule] for each in found]) for rule in found[0]}


def print_supervised(title, tables):
    for is_standardized in (False, True):
        units = "standardized" if is_standardized else "in its own units"
        columns = {}
        for labels in LABELS:
            found = [mean_errors(each, is_standardized, labels) for each in tables]
            found = [each for each in found if each is not None]
            if found:
                columns[labels] = found
        print(f"\n{title}, {units}\n\n| labels | {' | '.join(columns)} |")
        print("|---" * (1 + len(columns)) + "|")
        for rule in next(iter(columns.values()))[0]:
            means = [np.mean([each[rule] for each in f]) for f in columns.values()]
            cells = " | ".join(f"{mean:.1f}" for mean in means)
            print(f"| {rule} | {cells} |", flush=True)


def compare_supervised():
    for title, kept in (("tuned on", TUNED), ("kept apart", KEPT)):
        tables = [load() for load in kept.values()]
        tables = [each for each in tables if each[0].shape[1] <= MOST_FEATURES]
        print_supervised(f"{len(tables)} tables {title}", tables)
    for name in ("crabs", "crabs, sex"):
        print_supervised(name, [TUNED[name]()])
    for name, load in QUESTIONED.items():
        print_supervised(name, [load()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", default="EMLDA,ICLDA")
    parser.add_argument(
        "--supervised", action="store_true", help="rules of shrinkage without unlabeled"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.supervised:
        compare_supervised()
        return
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
