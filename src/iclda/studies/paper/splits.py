"""Who is labeled, unlabeled and tested in a cell: a function of the seed and the cell alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.types import AnyArray
from ..cells import N_FOLDS, Cell
from ..resampling import rng_of

GUARANTEED = 2  # labeled rows, and test rows, of every class


@dataclass(frozen=True)
class Split:
    """Row numbers of the three parts."""

    labeled: AnyArray
    unlabeled: AnyArray
    test: AnyArray


def n_labeled_of(n_features: int) -> int:
    """The paper's number of labeled rows."""
    return max(2 * n_features, 10)


def fold_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> Split:
    """One fold of ten is tested; of the rest ``n_labeled`` rows are labeled, at least 2 a class."""
    names = (cell.experiment, cell.dataset, cell.repeat)
    folds = _folds(codes, rng_of(seed, *names))
    rng = rng_of(seed, *names, cell.part)
    train = np.flatnonzero(folds != cell.part)
    sure = _sure_of_each_class(codes, train, rng)
    rest = rng.permutation(np.setdiff1d(train, sure))
    n_more = max(0, n_labeled - len(sure))
    labeled = np.concatenate([sure, rest[:n_more]])
    return Split(labeled, rest[n_more:], np.flatnonzero(folds == cell.part))


def curve_split(codes: AnyArray, n_labeled: int, seed: int, cell: Cell) -> Split:
    """``cell.part`` rows are unlabeled; the rest is tested, at least 2 rows a class.

    The published curves count the guaranteed rows by half: n_labeled + K rows carry a label.
    """
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part)
    everything = np.arange(len(codes))
    sure = _sure_of_each_class(codes, everything, rng)
    order = rng.permutation(np.setdiff1d(everything, sure))
    n_more = max(0, n_labeled - len(sure) // GUARANTEED)
    order, more = order[n_more:], order[:n_more]
    tested = _first_of_each_class(codes, order, GUARANTEED)
    free = order[~np.isin(order, tested)]
    test = np.concatenate([tested, free[cell.part :]])
    return Split(np.concatenate([sure, more]), free[: cell.part], test)


def _sure_of_each_class(codes: AnyArray, rows: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Labeled rows guaranteed to every class: drawn with replacement.

    The published curves did so. That the tables did too is inferred: of the ways tried it fits the
    published errors of LDA on the two sets with ten labels and one rare class best.
    """
    classes = np.unique(codes)
    return np.concatenate([rng.choice(rows[codes[rows] == c], GUARANTEED) for c in classes])


def _folds(codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Fold of every row: equal sizes, and rows of every class dealt out before the rest."""
    folds = np.full(len(codes), -1)
    for c in np.unique(codes):
        dealt = rng.permutation(np.flatnonzero(codes == c))[: GUARANTEED * N_FOLDS]
        folds[dealt] = np.arange(len(dealt)) % N_FOLDS
    sizes = np.bincount(folds[folds >= 0], minlength=N_FOLDS)
    wanted = len(codes) // N_FOLDS + (np.arange(N_FOLDS) < len(codes) % N_FOLDS)
    places = np.repeat(np.arange(N_FOLDS), np.maximum(wanted - sizes, 0))
    folds[folds < 0] = rng.permutation(places)
    return folds


def _first_of_each_class(codes: AnyArray, order: AnyArray, n: int) -> AnyArray:
    return np.concatenate([order[codes[order] == c][:n] for c in np.unique(codes)])
