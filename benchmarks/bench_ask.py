"""Rounds of labeling on features: which rows to label, and whether stated intervals hold.

    python benchmarks/bench_ask.py FOLDER --seeds 2

FOLDER holds .npz files with arrays ``X`` and ``y``; without it, on the set of the package.
Strategies choose K, 2K, 4K and 8K labels (K classes), each round from those before: random
rows, the row nearest to each k-means center, margin sampling after K random labels, and
``rows_to_label``. Errors of AutoLDA on all other rows in percent; for ``rows_to_label`` also how
often the interval stated from 50 labels drawn at random covers the error of the fit.
"""

import argparse
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from iclda import AutoLDA, AverageLDA
from iclda.datasets import load_fashion_features
from iclda.model_selection import rows_to_label
from iclda.tabular.encoders import pipeline
from iclda.tabular.fit_predict import random_estimate, wrong_on_random
from iclda.tabular.table import Table

MOST_ROWS, N_TEST = 2_000, 50


def load(path, seed):
    if path is None:
        X, y = load_fashion_features()
    else:
        with np.load(path, allow_pickle=True) as stored:
            X, y = stored["X"].astype(np.float64), stored["y"].astype(str)
    kept = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    return X[kept], y[kept]


def fit(X, y, rows, classifier):
    labels = np.full(len(y), None, dtype=object)
    labels[rows] = y[rows]
    return classifier.set_params(unlabeled=None).fit(X, labels)


def choose(strategy, X, y, n, rows, seed):
    """Further rows to label, beside those that are."""
    rng = np.random.default_rng(seed)
    free = np.setdiff1d(np.arange(len(X)), rows)
    is_first = not len(rows)
    if strategy == "random" or (strategy == "margin" and is_first):
        return rng.choice(free, n, replace=False)
    if strategy == "k-means":
        distances = KMeans(n, n_init=1, random_state=seed).fit(X[free]).transform(X[free])
        return free[np.unique(distances.argmin(axis=0))]
    if strategy == "margin":
        shares = np.sort(fit(X, y, rows, AutoLDA()).predict_proba(X[free]), axis=1)
        return free[np.argsort(shares[:, -1] - shares[:, -2])[:n]]
    codes = np.full(len(X), -1)
    codes[rows] = np.unique(y[rows], return_inverse=True)[1]
    return rows_to_label(X, n, None if is_first else codes, random_state=seed)


def covers(X, y, rows, seed):
    """Whether the interval stated from random labels beside the chosen ones covers the error."""
    free = np.setdiff1d(np.arange(len(X)), rows)
    random = np.random.default_rng(1_000 + seed).choice(free, N_TEST, replace=False)
    known = np.concatenate([rows, random])
    labels = np.full(len(y), None, dtype=object)
    labels[known] = y[known]
    is_chosen = np.isin(np.arange(len(y)), rows)
    table = Table(pd.DataFrame(X), labels, "label", (), is_chosen=is_chosen)
    model = pipeline(None, AverageLDA(proportions="free"))
    estimate = random_estimate(table, wrong_on_random(model, table))
    others = np.setdiff1d(free, random)
    fitted = fit(X, y, known, AverageLDA(proportions="free"))
    return estimate.low <= 1 - fitted.score(X[others], y[others]) <= estimate.high


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--sets", nargs="*", help="names of files; default: all")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    paths = [None] if given.folder is None else sorted(given.folder.glob("*.npz"))
    paths = [p for p in paths if not given.sets or p.stem in given.sets]
    warnings.simplefilter("ignore")
    errors, covered = defaultdict(list), []
    for path in paths:
        for seed in range(given.seeds):
            X, y = load(path, seed)
            n_classes = len(np.unique(y))
            for strategy in ("random", "k-means", "margin", "rows_to_label"):
                rows = np.zeros(0, dtype=int)
                for multiple in (1, 2, 4, 8):
                    n = multiple * n_classes - len(rows)
                    rows = np.concatenate([rows, choose(strategy, X, y, n, rows, seed)])
                    others = np.setdiff1d(np.arange(len(X)), rows)
                    score = fit(X, y, rows, AutoLDA()).score(X[others], y[others])
                    errors[strategy, multiple].append(100 * (1 - score))
                    if strategy == "rows_to_label" and multiple < 8:
                        covered.append(covers(X, y, rows, seed))
            print(path.stem if path else "fashion", seed, "coverage", np.mean(covered), flush=True)
    for strategy in ("random", "k-means", "margin", "rows_to_label"):
        means = "  ".join(f"{np.mean(errors[strategy, m]):5.1f}" for m in (1, 2, 4, 8))
        print(f"{strategy:14} {means}")
    print(f"intervals cover in {sum(covered)} of {len(covered)} runs")


if __name__ == "__main__":
    main()
