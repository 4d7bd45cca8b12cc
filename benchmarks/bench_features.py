"""Few labels on features of frozen networks: our methods and scikit-learn's.

    python benchmarks/bench_features.py FOLDER --draws 2 --jobs 2

FOLDER holds .npz files with arrays ``X`` (rows x features) and ``y`` (classes).
Features are projected on 128 principal components. Situations: balanced or random
labels, from a pool in which classes are as frequent as in the set or fall tenfold.
Errors in percent, with the standard error over cells; sets named by --kept are reported
apart. Without FOLDER, on the set of the package. --large prints the seconds of fits to
10,000 x 256 rows instead.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from iclda import AutoLDA, AverageLDA, ExpectationMaximizationLDA, SupervisedLDA
from iclda.datasets import load_fashion_features

COMPONENTS = 128
MOST_POOL = 5_000
MOST_TEST = 1_000
SITUATIONS = [
    (balanced, uneven) for balanced in (True, False) for uneven in (False, True)
]


def methods():
    logistic = LogisticRegression(max_iter=200)
    return {
        "AutoLDA": AutoLDA(),
        "AverageLDA": AverageLDA(),
        "EM, shrinkage 0.5": ExpectationMaximizationLDA(shrinkage=0.5, max_iter=50),
        "EM": ExpectationMaximizationLDA(shrinkage="auto"),
        "EM, learned shares": ExpectationMaximizationLDA(
            shrinkage="auto", proportions="auto"
        ),
        "SupervisedLDA, shrinkage 0.5": SupervisedLDA(shrinkage=0.5),
        "SupervisedLDA": SupervisedLDA(shrinkage="auto"),
        "sklearn: logistic": logistic,
        "sklearn: self-training": SelfTrainingClassifier(logistic),
        "sklearn: label spreading": LabelSpreading(kernel="knn", n_neighbors=7),
        "sklearn: LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5),
    }


def load(path):
    """Principal components in units of mean variance 1, and codes of the classes."""
    if path is None:
        X, y = load_fashion_features()
    else:
        with np.load(path, allow_pickle=True) as stored:
            X = stored["X"].astype(np.float64)
            y = stored["y"]
    X = X - X.mean(axis=0)
    if X.shape[1] > COMPONENTS:
        vectors = np.linalg.eigh(X.T @ X)[1]
        X = X @ vectors[:, ::-1][:, :COMPONENTS]
    return X / np.sqrt((X**2).mean()), np.unique(y, return_inverse=True)[1]


def draw(path, n_labels, balanced, uneven, seed):
    """Rows, their labels (-1: none), test rows, their classes and weights."""
    X, y = load(path)
    n_classes = int(y.max()) + 1
    rng = np.random.default_rng([seed, n_labels, balanced, uneven])
    order = rng.permutation(len(y))
    n_test = min(MOST_TEST, len(y) // 4)
    test = order[:n_test]
    pool = order[n_test:]
    if uneven:
        share = 10.0 ** (-rng.permutation(n_classes) / (n_classes - 1))
        kept = [pool[y[pool] == k] for k in range(n_classes)]
        kept = [
            rows[: max(2, round(len(rows) * s))]
            for rows, s in zip(kept, share, strict=True)
        ]
        pool = rng.permutation(np.concatenate(kept))
    pool = pool[:MOST_POOL]
    own = y[pool]
    first = n_labels if balanced else 1
    chosen = np.concatenate(
        [np.flatnonzero(own == k)[:first] for k in range(n_classes)]
    )
    if not balanced:
        rest = rng.permutation(np.setdiff1d(np.arange(len(pool)), chosen))
        chosen = np.concatenate([chosen, rest[: n_labels * n_classes - len(chosen)]])
    labels = np.full(len(pool), -1)
    labels[chosen] = own[chosen]
    shares = np.bincount(own, minlength=n_classes) / len(own)
    weights = shares[y[test]] / np.bincount(y[test], minlength=n_classes)[y[test]]
    return X[pool], labels, X[test], y[test], weights / weights.sum()


def run_cell(path, n_labels, balanced, uneven, seed):
    """Error and seconds of every method; None where nearly all rows are labeled."""
    X, labels, X_test, y_test, weights = draw(path, n_labels, balanced, uneven, seed)
    if (labels >= 0).mean() > 0.8:
        return None
    found = {}
    for name, clf in methods().items():
        is_used = (
            labels >= 0
            if name in ("sklearn: logistic", "sklearn: LDA")
            else slice(None)
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                predicted = clf.fit(X[is_used], labels[is_used]).predict(X_test)
                error = float(weights @ (predicted != y_test))
            # LDA of scikit-learn with one label a class.
            except ValueError:
                error = np.nan
        found[name] = error, time.perf_counter() - start
        if name == "AutoLDA" and clf.error_interval_ is not None:
            found["covers"] = clf.error_interval_[0] <= error <= clf.error_interval_[1]
    return found


def summarize(cells, found, numbers):
    """Lines of the table: mean errors by labels a class and over all, longest time."""
    lines = [
        f"{'labels a class':30}"
        + "".join(f"{n:>8}" for n in numbers)
        + "     all      seconds"
    ]
    for name in methods():
        columns = []
        for n in numbers:
            errors = [
                100 * f[name][0] for c, f in zip(cells, found, strict=True) if c[1] == n
            ]
            columns.append(np.mean(errors) if errors else np.nan)
        every = np.array([100 * f[name][0] for f in found])
        seconds = max(f[name][1] for f in found)
        spread = every.std() / np.sqrt(len(every))
        numbers_text = "".join(f"{value:8.1f}" for value in columns)
        lines.append(
            f"{name:30}{numbers_text}{np.mean(every):8.1f} ± {spread:.1f} "
            f"{seconds:8.1f}"
        )
    covers = [f["covers"] for f in found if "covers" in f]
    lines.append(
        f"Stated 90 % intervals cover in {sum(covers)} of {len(covers)} fits of "
        "AutoLDA."
    )
    return lines


def time_large():
    """Print the seconds of fits to 10,000 x 256 rows, four labels for each class."""
    rng = np.random.default_rng(0)
    for n_classes in (100, 10):
        y = rng.integers(n_classes, size=10_000)
        centers = 0.5 * rng.standard_normal((n_classes, 256))
        X = (centers[y] + rng.standard_normal((len(y), 256))).astype(np.float32)
        labels = np.full(len(y), -1)
        for k in range(n_classes):
            labels[np.flatnonzero(y == k)[:4]] = k
        for clf in (
            AutoLDA(),
            ExpectationMaximizationLDA(shrinkage="auto", proportions="labeled"),
            ExpectationMaximizationLDA(shrinkage="auto", proportions="auto"),
        ):
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(X, labels)
            print(f"{n_classes} classes, {clf}: {time.perf_counter() - start:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument(
        "--kept", default="", help="names of sets to report apart, by commas"
    )
    parser.add_argument("--labels", default="1,2,4,8,16")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--large", action="store_true", help="only seconds for 10,000 x 256"
    )
    options = parser.parse_args()
    if options.large:
        time_large()
        return
    paths = [None] if options.folder is None else sorted(options.folder.glob("*.npz"))
    numbers = [int(n) for n in options.labels.split(",")]
    cells = [
        (path, n, *situation, seed)
        for seed in range(options.draws)
        for path in paths
        for n in numbers
        for situation in SITUATIONS
    ]
    found = Parallel(options.jobs)(delayed(run_cell)(*cell) for cell in cells)
    done = [(cell, result) for cell, result in zip(cells, found, strict=True) if result]
    kept = set(filter(None, options.kept.split(",")))
    for title, is_kept in (("Tuned on", False), ("Kept apart", True)):
        part = [
            (c, f)
            for c, f in done
            if (c[0] is not None and c[0].stem in kept) == is_kept
        ]
        if part:
            print(f"\n{title}: {len(part)} cells")
            print("\n".join(summarize(*zip(*part, strict=True), numbers)))


if __name__ == "__main__":
    main()
