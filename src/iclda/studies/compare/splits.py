"""Which rows of the table are labeled, unlabeled and tested in a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from ..._estimators.labels import Labels, encode_labels
from ...model_selection import SemiSupervisedKFold
from ...model_selection._masking import OrderedSplit, order_split
from ..cells import Cell
from ..resampling import rng_of
from .results import COMPARISON, UNLABELED

GUARANTEED = 2  # labeled rows of every class, where there are so many
MOST_ON_CURVES = 2_000  # unlabeled rows: more take long and change little
MOST_TIMES = 10  # times the labels kept: so far curves go on where more labels are known
_N_SIZES, _FIRST_SIZE = 4, 10


@dataclass(frozen=True)
class Take:
    """Row numbers of a cell; ``hidden`` are those unlabeled rows whose labels are known."""

    rows: AnyArray
    is_labeled: AnyArray
    test: AnyArray
    hidden: AnyArray


@dataclass(frozen=True)
class Splits:
    """Repeated folds of the labeled rows: those of ``SemiSupervisedKFold`` with this seed.

    ``n_labeled`` labels of the training rows are kept and the others hidden; None keeps all.
    """

    y: AnyArray
    n_folds: int
    n_repeats: int
    n_labeled: int | None = None
    seed: int = 0

    @cached_property
    def labels(self) -> Labels:
        """Classes and codes."""
        return encode_labels(self.y, None)

    @cached_property
    def tests(self) -> list[AnyArray]:
        """Rows tested in every split."""
        folds = SemiSupervisedKFold(
            self.n_folds, n_repeats=self.n_repeats, unlabeled=None, random_state=self.seed
        )
        return [test for _, test in folds.split(self.y, self.y)]

    @cached_property
    def min_per_class(self) -> int:
        """Labeled rows that every class is sure of, however few are used."""
        fewest = int(self.counts.min())
        in_training = fewest - -(-fewest // self.n_folds)
        asked = in_training if self.n_labeled is None else self.n_labeled // len(self.counts)
        return max(1, min(GUARANTEED, in_training, asked))

    @cached_property
    def counts(self) -> AnyArray:
        """Labeled rows of every class."""
        return np.bincount(self.labels.codes[self.labels.is_labeled])

    @property
    def n_training(self) -> int:
        """Rows of known label that every split can train on at least."""
        return int(self.labels.is_labeled.sum()) - max(map(len, self.tests))

    @property
    def n_used(self) -> int:
        """Labeled rows that every split trains on."""
        return self.n_training if self.n_labeled is None else self.n_labeled

    @property
    def n_unlabeled(self) -> int:
        """Unlabeled rows that every split trains on, hidden ones among them."""
        n_hidden = self.n_training - self.n_used
        return int((~self.labels.is_labeled).sum()) + n_hidden

    def part(self, number: int) -> OrderedSplit:
        """A split, with its training rows in random order."""
        is_tested = np.zeros(len(self.y), dtype=bool)
        is_tested[self.tests[number]] = True
        seed = int(rng_of(self.seed, "rows", number).integers(2**31))
        train, test = np.flatnonzero(~is_tested), self.tests[number]
        return order_split(self.labels, train, test, self.min_per_class, seed)

    def take(self, cell: Cell) -> Take:
        """The rows of a cell."""
        numbers: tuple[int | None, int | None] = (self.n_labeled, None)
        split = cell.repeat
        if cell.experiment == COMPARISON:
            split = cell.repeat * self.n_folds + cell.part
        elif cell.experiment == UNLABELED:
            numbers = (self.n_labeled, cell.part)
        else:
            numbers = (cell.part, MOST_ON_CURVES)
        part = self.part(split)
        rows, is_labeled = part.take(*numbers)
        hidden = rows[~is_labeled & self.labels.is_labeled[rows]]
        return Take(rows, is_labeled, part.test, hidden)


def plan_comparison(dataset: str, n_repeats: int, n_folds: int) -> list[Cell]:
    """Every fold of every repeat."""
    return [
        Cell(COMPARISON, dataset, repeat, fold)
        for repeat in range(n_repeats)
        for fold in range(n_folds)
    ]


def plan_curve(experiment: str, dataset: str, sizes: Sequence[int], n_splits: int) -> list[Cell]:
    """Every number of rows in every split."""
    return [Cell(experiment, dataset, split, size) for size in sizes for split in range(n_splits)]


def unlabeled_sizes(splits: Splits) -> list[int]:
    """Numbers of unlabeled rows of a curve: none, then more and more.

    All of them is not among these: the comparison has that point.
    """
    most = min(splits.n_unlabeled, MOST_ON_CURVES)
    return [size for size in (0, *_spread(_FIRST_SIZE, most)) if size < splits.n_unlabeled]


def labeled_sizes(splits: Splits) -> list[int]:
    """Numbers of labeled rows of a curve, from as few as the classes allow.

    Where labels are hidden it goes on beyond those kept, as long as half of the rows that train
    stay unlabeled. The number kept is not among these: the comparison has that point, unless it
    has more unlabeled rows than curves use.
    """
    least, kept = splits.min_per_class * len(splits.counts), splits.n_used
    most = max(kept, min(MOST_TIMES * kept, splits.n_training // 2))
    sizes = {*_spread(least, kept), *_spread(kept, kept if splits.n_labeled is None else most)}
    return sorted(sizes if is_capped(splits) else sizes - {kept})


def is_capped(splits: Splits) -> bool:
    """Whether there are more unlabeled rows than curves use."""
    return splits.n_unlabeled > MOST_ON_CURVES


def _spread(least: int, most: int) -> list[int]:
    if most <= least:
        return [most]
    sizes: Any = np.geomspace(least, most, _N_SIZES).round().astype(int)
    return sorted(set(sizes.tolist()))
