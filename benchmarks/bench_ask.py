"""Rounds of labeling on features: which rows to label; whether intervals cover.

    python benchmarks/bench_ask.py FOLDER --draws 2 --jobs 2
    python benchmarks/bench_ask.py FOLDER --draws 2 --jobs 2 --coverage
    python benchmarks/bench_ask.py --large

FOLDER holds .npz files with arrays ``X`` and ``y``; without it, on the set of the
package. A draw takes 2,000 rows of a set, at most four fifths of it. Strategies choose
K, 2K, 4K and 8K of them (K classes): random rows, the row nearest to each k-means
center (each number anew), margin sampling after K random labels, and ``rows_to_label``
in four rounds. Errors of AutoLDA in percent, on new rows, and on rows of the draw that
were not chosen; its proportions are free unless labels are random. Sets that the rule
was chosen on are reported apart (feature_sets.py).

``--peers`` adds strategies of the literature (peers.py), and four of scikit-activeml if
it is installed (``pip install scikit-activeml``), and prints the seconds that choosing
takes.

``--coverage``: how often the interval that ``iclda ask`` states from 50 labels drawn at
random, beside K, 2K and 4K chosen ones, covers the error of the fit. ``--large``:
seconds for 1,000,000 x 256.
"""

import argparse
import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from feature_sets import find_sets, name_of, parts_of
from iclda import AutoLDA, AverageLDA
from iclda.datasets import load_fashion_features
from iclda.model_selection import rows_to_label
from iclda.tabular.label_error import random_estimate, wrong_on_random
from iclda.tabular.table import Table
from peers import STRATEGIES as PUBLISHED
from peers import medoids, random_rows, unit_rows

MOST_ROWS = 2_000
N_TEST = 50
LARGE = (1_000_000, 256)
# Labels for each class.
BUDGETS = (1, 2, 4, 8)
STRATEGIES = ("random", "k-means", "margin", "rows_to_label")
COMPARED = ("rows_to_label", *PUBLISHED, "k-means", "random")
# Those of scikit-activeml that need no classifier.
OF_SKACTIVEML = {
    f"scikit-activeml: {name}": name
    for name in ("MaxHerding", "TypiClust", "CoreSet", "ProbCover")
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


def load(path, draw, n_components=None):
    """Rows of a draw and their classes, and up to as many new rows with theirs."""
    if path is None:
        X, y = load_fashion_features()
    else:
        with np.load(path, allow_pickle=False) as stored:
            X = stored["X"].astype(np.float64)
            y = stored["y"].astype(str)
    if n_components is not None and X.shape[1] > n_components:
        X = X - X.mean(axis=0)
        vectors = np.linalg.eigh(X.T @ X)[1]
        X = X @ vectors[:, ::-1][:, :n_components]
    order = np.random.default_rng(draw).permutation(len(X))
    n_rows = min(MOST_ROWS, len(X) * 4 // 5)
    pool, new = np.split(order[: 2 * MOST_ROWS], [n_rows])
    return X[pool], y[pool], X[new], y[new]


def fit(X, y, rows, classifier):
    labels = np.full(len(y), None, dtype=object)
    labels[rows] = y[rows]
    return classifier.set_params(unlabeled=None).fit(X, labels)


def choose(strategy, X, y, n, rows, seed):
    """Indices of n rows in all, ``rows`` among them except for k-means."""
    n_more = n - len(rows)
    free = np.setdiff1d(np.arange(len(X)), rows)
    codes = np.full(len(X), -1)
    codes[rows] = np.unique(y[rows], return_inverse=True)[1]
    if strategy == "k-means":
        return medoids(X, n, seed)
    if strategy == "random" or (strategy == "margin" and not len(rows)):
        more = random_rows(X, codes, n_more, None, seed)
    elif strategy == "margin":
        shares = np.sort(fit(X, y, rows, AutoLDA()).predict_proba(X[free]), axis=1)
        more = free[np.argsort(shares[:, -1] - shares[:, -2])[:n_more]]
    elif strategy == "rows_to_label":
        labels = codes if len(rows) else None
        more = rows_to_label(X, n_more, labels, random_state=seed)
    elif strategy in OF_SKACTIVEML:
        more = of_skactiveml(OF_SKACTIVEML[strategy], X, codes, n_more, seed)
    else:
        shares = None
        # UHerding alone looks at a fit.
        if strategy == "UHerding" and codes.max() > 0:
            shares = fit(X, y, rows, AutoLDA()).predict_proba(X)
        more = PUBLISHED[strategy](X, codes, n_more, shares, seed)
    return np.concatenate([rows, more])


def of_skactiveml(name, X, codes, n, seed):
    """Rows that a strategy of scikit-activeml chooses, with its defaults."""
    from skactiveml import pool

    strategy = getattr(pool, name)(missing_label=-1, random_state=seed)
    return strategy.query(unit_rows(X), codes, batch_size=n)


def errors_of(path, draw, strategy, n_components):
    """Errors of AutoLDA in percent and seconds of choosing, by the number of labels.

    Errors are those on new rows, and on rows of the pool that were not chosen.
    """
    warnings.simplefilter("ignore")
    X, y, X_new, y_new = load(path, draw, n_components)
    n_classes = len(np.unique(y))
    rows = np.zeros(0, dtype=int)
    found = []
    proportions = None if strategy == "random" else "free"
    for multiple in BUDGETS:
        start = time.process_time()
        rows = choose(strategy, X, y, multiple * n_classes, rows, draw)
        seconds = time.process_time() - start
        others = np.setdiff1d(np.arange(len(X)), rows)
        clf = fit(X, y, rows, AutoLDA(proportions=proportions))
        on_new = 100 * (1 - clf.score(X_new, y_new))
        on_pool = 100 * (1 - clf.score(X[others], y[others]))
        found.append((on_new, on_pool, seconds))
    return found


def covers(path, draw):
    """Whether intervals from random labels, beside chosen ones, cover the error."""
    warnings.simplefilter("ignore")
    X, y, _, _ = load(path, draw)
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


def print_table(title, strategies, values, decimals=1):
    """Print means; ``values`` has shape (sets, draws, strategies, budgets)."""
    print(f"\n{title} at {', '.join(f'{m} x K' for m in BUDGETS)} labels")
    n_draws = values.shape[1]
    texts = np.vectorize(lambda mean: f"{mean:5.{decimals}f}")(values.mean(axis=(0, 1)))
    if n_draws > 1:
        spread = values.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(n_draws)
        texts = np.char.add(texts, np.vectorize(lambda end: f" +- {end:.1f}")(spread))
    for name, cells in zip(strategies, texts, strict=True):
        print(f"  {name:28}{'  '.join(cells)}")


def strategies_of(is_with_peers):
    if not is_with_peers:
        return STRATEGIES
    if importlib.util.find_spec("skactiveml"):
        return (*COMPARED, *OF_SKACTIVEML)
    print("scikit-activeml is not installed: its strategies are left out.")
    return COMPARED


def compare(paths, given):
    strategies = strategies_of(given.peers)
    for title, part in parts_of(paths):
        tasks = [
            (p, d, s) for p in part for d in range(given.draws) for s in strategies
        ]
        found = Parallel(given.jobs)(
            delayed(errors_of)(*task, given.components) for task in tasks
        )
        shape = (len(part), given.draws, len(strategies), len(BUDGETS), 3)
        on_new, on_pool, seconds = np.moveaxis(np.reshape(found, shape), -1, 0)
        for path, values in zip(part, on_new, strict=True):
            print_table(f"{name_of(path)}: error in %", strategies, values[None])
        sets = f"{title}, mean of {len(part)} sets"
        print_table(f"{sets}: error in % on new rows", strategies, on_new)
        print_table(f"{sets}: error in % on rows not chosen", strategies, on_pool)
        print_table(f"{sets}: seconds", strategies, seconds, decimals=2)


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
        "--components", type=int, help="principal components; default: all features"
    )
    parser.add_argument(
        "--peers", action="store_true", help="strategies of the literature"
    )
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
    paths = find_sets(given.folder, given.sets)
    began = time.perf_counter()
    if given.coverage:
        count_covered(paths, given.draws, given.jobs)
    else:
        compare(paths, given)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
