"""Rows of every cell of a comparison: folds, hidden labels, learning curves.

A comparison has three experiments. In the first, labeled rows are divided into folds
several times; a cell is one fold, whose rows are tested while all other rows train. The
other two are learning curves, over the number of unlabeled or of labeled rows: a cell
is one of the splits of the first experiment, with fewer training rows of one kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from ..._core import AnyArray, Array
from ..._estimators.labels import Labels, encode_labels
from ..._held_out import stratified_folds
from ...model_selection._splitters import OrderedSplit, order_split
from ..engine import rng_of
from ..measures import weights_of_classes
from ..store import Cell
from .contestants import Size

# The experiment of the comparison itself.
REPEATED_FOLDS = "comparison"
# Experiments that vary the number of unlabeled and of labeled rows.
UNLABELED_CURVE = "unlabeled"
LABELED_CURVE = "labeled"
EXPERIMENT_TITLES = {
    REPEATED_FOLDS: "comparison",
    UNLABELED_CURVE: "curve of unlabeled rows",
    LABELED_CURVE: "curve of labeled rows",
}

# Learning curves use at most this many unlabeled rows. More take long and change
# little.
MAX_CURVE_UNLABELED_ROWS = 2_000
# The smallest number of unlabeled rows on a curve, besides 0.
_MIN_CURVE_UNLABELED_ROWS = 10
# If labels are hidden, the curve of labeled rows goes on beyond the labels kept, up to
# this multiple of their number.
_MAX_MULTIPLE_OF_KEPT_LABELS = 10
# Number of sizes from the smallest to the largest of a curve, both included.
_N_CURVE_SIZES = 4
# Labels that every class keeps in every cell, if it has that many.
_GUARANTEED_LABELS_PER_CLASS = 2


@dataclass(frozen=True)
class SplitRows:
    """Indices of the rows of a cell.

    Attributes
    ----------
    train : ndarray of int
        Rows to train on, ascending.
    is_labeled : ndarray of bool
        Which of the training rows keep their labels.
    test : ndarray of int
        Rows to test.
    """

    train: AnyArray
    is_labeled: AnyArray
    test: AnyArray


@dataclass(frozen=True)
class Splits:
    """Repeated folds of the labeled rows: those of ``SemiSupervisedKFold``.

    Attributes
    ----------
    y : ndarray of object
        Classes of all rows, None where a row is unlabeled.
    n_folds, n_repeats : int
        Folds of a repeat, and repeats.
    n_labeled : int or None
        Labels of training rows to keep; the others are hidden. None keeps all.
    seed : int
        All splits follow from it.
    always_train : ndarray of bool or None
        Labeled rows that train in every split and are never tested.
    first_copies : ndarray of int or None
        Index of the first copy of every row. None if no row has copies.
    """

    y: AnyArray
    n_folds: int
    n_repeats: int
    n_labeled: int | None = None
    seed: int = 0
    always_train: AnyArray | None = None
    first_copies: AnyArray | None = None

    @property
    def copies(self) -> AnyArray:
        """Index of the first copy of every row; its own where it has no copies."""
        if self.first_copies is None:
            return np.arange(len(self.y))
        return self.first_copies

    @cached_property
    def labels(self) -> Labels:
        """Classes and their codes."""
        return encode_labels(self.y, None)

    @property
    def is_distinct(self) -> AnyArray:
        """Mask of the labeled rows, of which only the first copy counts."""
        return self.labels.is_labeled & (self.copies == np.arange(len(self.y)))

    @cached_property
    def counts(self) -> AnyArray:
        """Distinct labeled rows of every class."""
        return np.bincount(self.labels.codes[self.is_distinct])

    @property
    def tested(self) -> AnyArray:
        """Indices of the rows that are tested in every repeat."""
        is_tested = self.is_distinct
        if self.always_train is not None:
            is_tested = is_tested & ~self.always_train
        return np.flatnonzero(is_tested)

    @cached_property
    def class_weights(self) -> Array:
        """Weight of a tested row of every class that makes classes count the same."""
        codes = self.labels.codes[self.tested]
        counts = np.bincount(codes, minlength=len(self.labels.classes))
        return weights_of_classes(counts)

    @cached_property
    def tests(self) -> list[AnyArray]:
        """Indices of the rows tested in every split, repeat by repeat."""
        tested = self.tested
        codes = self.labels.codes[tested]

        rng = np.random.RandomState(self.seed)
        tests = []
        for _ in range(self.n_repeats):
            folds = stratified_folds(codes, self.n_folds, rng)
            tests += [tested[folds == k] for k in range(self.n_folds)]
        return tests

    @cached_property
    def min_per_class(self) -> int:
        """Labels that every class keeps in every cell."""
        n_rarest = int(self.counts.min())
        # The largest fold leaves the fewest rows of the rarest class for training.
        n_in_training = n_rarest - ceil(n_rarest / self.n_folds)
        if self.n_labeled is None:
            n_possible = n_in_training
        else:
            n_possible = min(n_in_training, self.n_labeled // len(self.counts))
        return max(1, min(_GUARANTEED_LABELS_PER_CLASS, n_possible))

    @property
    def n_training(self) -> int:
        """The least number of labeled rows that any split can train on."""
        is_labeled = self.labels.is_labeled
        # While a row is tested, none of its copies train. Tested rows are first copies,
        # at whose index all copies are counted.
        n_copies = np.bincount(self.copies[is_labeled], minlength=len(self.y))
        n_left_out = max(int(n_copies[test].sum()) for test in self.tests)
        return int(is_labeled.sum()) - n_left_out

    @property
    def n_used(self) -> int:
        """Labeled rows that every split trains on."""
        return self.n_training if self.n_labeled is None else self.n_labeled

    @property
    def n_unlabeled(self) -> int:
        """Rows that every split trains on without a label, hidden labels included."""
        n_without_class = int((~self.labels.is_labeled).sum())
        return n_without_class + self.n_training - self.n_used

    def size(self, n_features: int) -> Size:
        """Return the size of what every split trains on."""
        return Size(self.n_used, len(self.counts), n_features)

    def split(self, index: int) -> OrderedSplit:
        """Return a split with its training rows in random order."""
        test = self.tests[index]
        # Neither the tested rows nor copies of them train.
        train = np.flatnonzero(~np.isin(self.copies, test))
        seed = int(rng_of(self.seed, "rows", index).integers(2**31))
        return order_split(self.labels, train, test, self.min_per_class, seed)

    def cell_rows(self, cell: Cell) -> SplitRows:
        """Return the rows of a cell."""
        n_labeled = self.n_labeled
        # In the comparison itself all unlabeled rows train.
        n_unlabeled = None
        # The repeat of a cell on a curve is the number of its split.
        index = cell.repeat
        if cell.experiment == REPEATED_FOLDS:
            index = cell.repeat * self.n_folds + cell.part
        elif cell.experiment == UNLABELED_CURVE:
            n_unlabeled = cell.part
        else:
            n_labeled = cell.part
            n_unlabeled = MAX_CURVE_UNLABELED_ROWS
        split = self.split(index)
        train, is_labeled = split.take(n_labeled, n_unlabeled)
        return SplitRows(train, is_labeled, split.test)

    def unlabeled_sizes(self) -> list[int]:
        """Return increasing numbers of unlabeled rows for a curve, starting with 0.

        The number of all unlabeled rows is left out: the comparison has that point.
        """
        largest = min(self.n_unlabeled, MAX_CURVE_UNLABELED_ROWS)
        sizes = [0, *_geometric_sizes(_MIN_CURVE_UNLABELED_ROWS, largest)]
        return [size for size in sizes if size < self.n_unlabeled]

    def labeled_sizes(self) -> list[int]:
        """Return increasing numbers of labeled rows for a curve.

        If labels are hidden, sizes extend beyond the labels kept, as long as half of
        the training rows stay unlabeled.
        """
        n_kept = self.n_used
        smallest = self.min_per_class * len(self.counts)
        sizes = {*_geometric_sizes(smallest, n_kept)}
        if self.n_labeled is not None:
            largest = min(_MAX_MULTIPLE_OF_KEPT_LABELS * n_kept, self.n_training // 2)
            sizes.update(_geometric_sizes(n_kept, max(n_kept, largest)))
        # The comparison has the point of the labels kept, unless it has more unlabeled
        # rows than the other points of the curve.
        if self.n_unlabeled <= MAX_CURVE_UNLABELED_ROWS:
            sizes.discard(n_kept)
        return sorted(sizes)


def _geometric_sizes(smallest: int, largest: int) -> list[int]:
    """Return sizes whose ratios are about equal, from the smallest to the largest."""
    if largest <= smallest:
        return [largest]
    sizes = np.geomspace(smallest, largest, _N_CURVE_SIZES).round().astype(int)
    return sorted({int(size) for size in sizes})
