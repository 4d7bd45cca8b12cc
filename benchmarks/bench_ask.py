"""Rounds of labeling on features: which rows to label; whether intervals cover.

    python benchmarks/bench_ask.py FOLDER --draws 2 --jobs 2
    python benchmarks/bench_ask.py FOLDER --draws 2 --jobs 2 --coverage
    python benchmarks/bench_ask.py --large

FOLDER holds .npz files with arrays ``X`` and ``y``; without it, on the set of the
package. A draw takes 2,000 rows of a set. Strategies choose K, 2K, 4K and 8K of them (K
classes): random rows, the row nearest to each k-means center (each number anew), margin
sampling after K random labels, and ``rows_to_label`` in four rounds. Errors of AutoLDA
on all other rows in percent; its proportions are free unless labels are random. Sets
that the rule was chosen on are reported apart.

``--coverage``: how often the interval that ``iclda ask`` states from 50 labels drawn at
random, beside K, 2K and 4K chosen ones, covers the error of the fit. ``--large``:
seconds for 1,000,000 x 256.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from iclda import AutoLDA, AverageLDA
from iclda.datasets import load_fashion_features
from iclda.model_selection import rows_to_label
from iclda.tabular.label_error import random_estimate, wrong_on_random
from iclda.tabular.table import Table

MOST_ROWS = 2_000
N_TEST = 50
LARGE = (1_000_000, 256)
# Labels for each class.
BUDGETS = (1, 2, 4, 8)
STRATEGIES = ("random", "k-means", "margin", "rows_to_label")
# The rule was chosen on these.
TUNED = {
    "cifar_resnet50",
    "mnist_efflite0",
    "news20_minilm",
}


class Frame:
    """Rows with the indexer of a frame, all that the estimate of errors uses."""

    def __init__(self, X):
        self.X = X

    @property
    def iloc(self):
        return self

    def __getitem__(self, rows):
        return Frame(self.X[rows])


def load(path, draw):
    if path is None:
        X, y = load_fashion_features()
    else:
        with np.load(path, allow_pickle=False) as stored:
            X = stored["X"].astype(np.float64)
            y = stored["y"].astype(str)
    kept = np.random.default_rng(draw).permutation(len(X))[:MOST_ROWS]
    return X[kept], y[kept]


def fit(X, y, rows, classifier):
    labels = np.full(len(y), None, dtype=object)
    labels[rows] = y[rows]
    return classifier.set_params(unlabeled=None).fit(X, labels)


def medoids(X, n, seed):
    """The rows nearest to n centers.

    A row that is the nearest to two is completed by others.
    """
    nearest = KMeans(n, n_init=1, random_state=seed).fit(X).transform(X).argmin(axis=0)
    others = np.random.default_rng(seed).permutation(len(X))
    return np.array([*dict.fromkeys([*nearest, *others])][:n])


def choose(strategy, X, y, n, rows, seed):
    """Indices of n rows in all, ``rows`` among them except for k-means."""
    rng = np.random.default_rng(seed)
    n_more = n - len(rows)
    free = np.setdiff1d(np.arange(len(X)), rows)
    if strategy == "k-means":
        return medoids(X, n, seed)
    if strategy == "random" or (strategy == "margin" and not len(rows)):
        return np.concatenate([rows, rng.choice(free, n_more, replace=False)])
    if strategy == "margin":
        shares = np.sort(fit(X, y, rows, AutoLDA()).predict_proba(X[free]), axis=1)
        return np.concatenate(
            [rows, free[np.argsort(shares[:, -1] - shares[:, -2])[:n_more]]]
        )
    codes = np.full(len(X), -1)
    codes[rows] = np.unique(y[rows], return_inverse=True)[1]
    more = rows_to_label(X, n_more, codes if len(rows) else None, random_state=seed)
    return np.concatenate([rows, more])


def errors_of(path, draw, strategy):
    """Errors of AutoLDA in percent, by the number of labels."""
    warnings.simplefilter("ignore")
    X, y = load(path, draw)
    n_classes = len(np.unique(y))
    rows = np.zeros(0, dtype=int)
    errors = []
    proportions = None if strategy == "random" else "free"
    for multiple in BUDGETS:
        rows = choose(strategy, X, y, multiple * n_classes, rows, draw)
        others = np.setdiff1d(np.arange(len(X)), rows)
        clf = fit(X, y, rows, AutoLDA(proportions=proportions))
        errors.append(100 * (1 - clf.score(X[others], y[others])))
    return errors


def covers(path, draw):
    """Whether intervals from random labels, beside chosen ones, cover the error."""
    warnings.simplefilter("ignore")
    X, y = load(path, draw)
    n_classes = len(np.unique(y))
    rows = np.zeros(0, dtype=int)
    covered = []
    for multiple in BUDGETS[:3]:
        rows = choose("rows_to_label", X, y, multiple * n_classes, rows, draw)
        free = np.setdiff1d(np.arange(len(X)), rows)
        random = np.random.default_rng(1_000 + draw).choice(free, N_TEST, replace=False)
        known = np.concatenate([rows, random])
        labels = np.full(len(y), None, dtype=object)
        labels[known] = y[known]
        is_chosen = np.isin(np.arange(len(y)), rows)
        table = Table(Frame(X), labels, "label", (), is_chosen=is_chosen)
        unpack = FunctionTransformer(lambda frame: frame.X)
        model = make_pipeline(unpack, AverageLDA(proportions="free", unlabeled=None))
        estimate = random_estimate(table, wrong_on_random(model, table))
        others = np.setdiff1d(free, random)
        error = 1 - fit(X, y, known, AverageLDA(proportions="free")).score(
            X[others], y[others]
        )
        covered.append(estimate.low <= error <= estimate.high)
    return covered


def name_of(path):
    return "fashion" if path is None else path.stem


def print_errors(title, values):
    """Print mean errors; ``values`` has shape (sets, draws, strategies, budgets)."""
    print(
        f"\n{title}: error in % of AutoLDA at "
        f"{', '.join(f'{m} x K' for m in BUDGETS)} labels"
    )
    spread = values.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(values.shape[1])
    for name, means, ends in zip(
        STRATEGIES, values.mean(axis=(0, 1)), spread, strict=True
    ):
        pairs = zip(means, ends, strict=True)
        print(
            f"  {name:14}"
            + "  ".join(f"{mean:5.1f} +- {end:.1f}" for mean, end in pairs)
        )


def compare(paths, draws, jobs):
    tasks = [(p, d, s) for p in paths for d in range(draws) for s in STRATEGIES]
    found = Parallel(jobs)(delayed(errors_of)(*task) for task in tasks)
    errors = np.reshape(found, (len(paths), draws, len(STRATEGIES), len(BUDGETS)))
    is_tuned = np.array([name_of(path) in TUNED for path in paths])
    for path, values in zip(paths, errors, strict=True):
        print_errors(name_of(path), values[None])
    for title, part in (("Chosen on", is_tuned), ("Kept apart", ~is_tuned)):
        if part.any():
            print_errors(f"{title}, mean of {part.sum()} sets", errors[part])


def count_covered(paths, draws, jobs):
    tasks = [(path, draw) for path in paths for draw in range(draws)]
    covered = np.array(Parallel(jobs)(delayed(covers)(*task) for task in tasks))
    for path, values in zip(paths, covered.reshape(len(paths), draws, -1), strict=True):
        counts = ", ".join(
            f"{n} at {m} x K"
            for n, m in zip(values.sum(axis=0), BUDGETS[:3], strict=True)
        )
        print(f"{name_of(path)}: 90 % intervals cover in {counts} of {draws} runs")
    share = f"{covered.mean():.1%}"
    print(
        f"All sets: 90 % intervals cover in {covered.sum()} of {covered.size} runs, "
        f"{share}"
    )


def time_large():
    rng = np.random.default_rng(0)
    X = rng.standard_normal(LARGE, dtype=np.float32)
    y = np.full(len(X), -1)
    for n_labels in (0, 100):
        y[:n_labels] = np.arange(n_labels) % 10
        began = time.perf_counter()
        rows_to_label(X, 100, y)
        seconds = time.perf_counter() - began
        print(
            f"{len(X):,} x {X.shape[1]}, {n_labels} labels: 100 rows in {seconds:.1f} s"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--sets", nargs="*", help="names of files; default: all")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--coverage", action="store_true", help="count intervals that cover"
    )
    parser.add_argument(
        "--large", action="store_true", help="seconds for 1,000,000 x 256"
    )
    given = parser.parse_args()
    if given.large:
        time_large()
        return
    paths = [None] if given.folder is None else sorted(given.folder.glob("*.npz"))
    paths = [path for path in paths if not given.sets or name_of(path) in given.sets]
    began = time.perf_counter()
    (count_covered if given.coverage else compare)(paths, given.draws, given.jobs)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
