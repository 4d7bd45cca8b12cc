"""How often methods are worse than supervised LDA in the cross-validation of the paper.

For every fold: the log likelihood of the training rows with their TRUE labels, the loss
and the error on the test rows, each compared with supervised LDA on the same fold.
Pessimistic LDA must never be worse in the first; nothing is promised of the others.
``--large`` times its fit to 1,000,000 x 50 rows instead, against X'X in the same run.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

from iclda import PessimisticLDA
from iclda.datasets import BENCHMARKS
from iclda.studies.paper.design import N_FOLDS, TABLES, n_labeled_of
from iclda.studies.paper.fits import CellRows, fit_method
from iclda.studies.paper.splits import fold_split, load_sets
from iclda.studies.store import cells_of

# Per row.
TOLERANCE = 1e-9


def numbers_of(model, rows, X, codes):
    """Mean log likelihood of training rows with true labels, test loss, test error."""
    truth = np.concatenate([rows.codes, rows.codes_unlabeled])
    train = model.log_joint(rows.rows)
    test = model.log_joint(X)
    return (
        float(train[np.arange(len(truth)), truth].mean()),
        -float(test[np.arange(len(codes)), codes].mean()),
        float((test.argmax(axis=1) != codes).mean()),
    )


def compare_cell(cell, data, methods, seed):
    """Differences of every method to supervised LDA on one fold."""
    split = fold_split(data.codes, n_labeled_of(data.X.shape[1]), seed, cell)
    X = data.X
    codes = data.codes
    train = split.labeled
    free = split.unlabeled
    rows = CellRows(X[train], codes[train], X[free], codes[free], data.n_classes, seed)
    test = X[split.test], codes[split.test]
    base = numbers_of(fit_method("LDA", rows), rows, *test)
    return {
        method: np.subtract(numbers_of(fit_method(method, rows), rows, *test), base)
        for method in methods
    }


def time_large(n_rows, n_features=50, n_labeled=200):
    """Seconds of pessimistic fits, in units of X'X, for classes at three distances."""
    for distance in (1.5, 3.0, 9.0):
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=n_rows)
        X = rng.standard_normal((n_rows, n_features))
        X[:, 0] += distance * y
        labels = np.where(np.arange(n_rows) < n_labeled, y, -1)
        # Compiles the loops.
        PessimisticLDA().fit(X[: n_rows // 2], labels[: n_rows // 2])
        unit = min(_seconds(lambda X=X: X.T @ X) for _ in range(5))
        clf = PessimisticLDA()
        took = min(
            _seconds(lambda X=X, y=labels, clf=clf: clf.fit(X, y)) for _ in range(3)
        )
        print(
            f"{n_rows:,} x {n_features}, distance {distance}: {took:.2f} s, "
            f"{took / unit:.1f} X'X, {clf.n_passes_} passes, "
            f"gap {clf.gap_:.1e} per row, converged: {clf.converged_}"
        )


def _seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--large", action="store_true", help="time 1,000,000 x 50 rows instead"
    )
    parser.add_argument("--methods", default="MCPLDA,MCLDA,SLLDA,EMLDA,ICLDA")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.large:
        time_large(1_000_000)
        return
    methods = arguments.methods.split(",")
    sets = load_sets(tuple(BENCHMARKS), None)
    worse = {m: Counter() for m in methods}
    least = dict.fromkeys(methods, np.inf)
    start = time.perf_counter()
    n_folds = 0
    warnings.simplefilter("ignore")
    for name, data in sets.items():
        smallest = dict.fromkeys(methods, np.inf)
        for cell in cells_of(TABLES, {name: range(N_FOLDS)}, arguments.repeats):
            n_folds += 1
            found = compare_cell(cell, data, methods, arguments.seed)
            for method, (train, loss, error) in found.items():
                is_worse = {
                    "train": train < -TOLERANCE,
                    "loss": loss > 0,
                    "error": error > 0,
                }
                worse[method].update(key for key, value in is_worse.items() if value)
                smallest[method] = min(smallest[method], train)
        least = {m: min(least[m], smallest[m]) for m in methods}
        shown = "  ".join(f"{m} {smallest[m]:.3g}" for m in methods)
        print(
            f"{name:12} smallest change of the training likelihood per row: {shown}",
            flush=True,
        )
    print(
        f"\n{n_folds} folds in {time.perf_counter() - start:.0f} s. "
        "Folds worse than LDA:"
    )
    print(f"{'':8}  training likelihood  test loss  test error   smallest change")
    for m in methods:
        n = worse[m]
        print(
            f"{m:8}  {n['train']:19}  {n['loss']:9}  {n['error']:10}   {least[m]:.3g}"
        )


if __name__ == "__main__":
    main()
