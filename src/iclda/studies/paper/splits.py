"""Data sets of the paper's experiments, and their splits.

A cell labels some rows of its data set, leaves some unlabeled, and tests the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._core import AnyArray, Array
from ...datasets import BENCHMARKS, Dataset, load_benchmark
from ..engine import rng_of
from ..store import Cell
from . import design

# Every class has at least this many labeled rows, and this many test rows.
GUARANTEED_ROWS = 2
# The guaranteed labeled and test rows, and some to draw from.
_MIN_ROWS_PER_CLASS = 6
# Curves have points at 1, 2, 4, ... unlabeled rows, at most this many.
_MAX_CURVE_POINTS = 10


@dataclass(frozen=True)
class CodedSet:
    """A data set with classes numbered from 0.

    ``origin`` and ``sha256`` tell where a stored set came from. Drawn ones lack them.
    """

    X: Array
    codes: AnyArray
    origin: str = ""
    sha256: str = ""

    @classmethod
    def of(cls, data: Dataset) -> CodedSet:
        codes = np.unique(data.y, return_inverse=True)[1]
        return cls(data.X, codes, data.origin, data.sha256)

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1


def load_sets(
    names: Sequence[str], data_dir: Path | None, labels: int = 0
) -> dict[str, CodedSet]:
    """Load the benchmark sets among the names; toy problems are drawn in each cell.

    ``labels`` is the number of labeled rows, 0 for that of the paper.
    """
    sets = {}
    for name in names:
        if name in BENCHMARKS:
            data = load_benchmark(name, data_dir)
            _check_size(data, labels)
            sets[name] = CodedSet.of(data)
    return sets


def _check_size(data: Dataset, labels: int) -> None:
    """Raise a ValueError if a set is too small for the splits of the experiments."""
    classes, counts = np.unique(data.y, return_counts=True)
    name = f"{data.name} ({data.origin})"
    if len(classes) < 2 or counts.min() < _MIN_ROWS_PER_CLASS:
        rule = f"at least 2 classes of {_MIN_ROWS_PER_CLASS} rows each"
        rows_of_classes = zip(classes.tolist(), counts, strict=True)
        given = ", ".join(f"{label} {count}" for label, count in rows_of_classes)
        raise ValueError(f"{name} needs {rule}, and has {given}.")

    n_guaranteed = GUARANTEED_ROWS * len(classes)
    if 0 < labels < n_guaranteed:
        raise ValueError(
            f"{name} needs at least {n_guaranteed} labels, {GUARANTEED_ROWS} of each "
            f"class, got {labels}; 0 is the number of the paper."
        )
    n_rows, n_features = data.X.shape
    # Nine of ten folds train: they have the labeled rows, and some rows to draw from.
    n_needed = (design.n_labeled_of(n_features, labels) + design.N_FOLDS) / 0.9
    if n_rows < n_needed:
        raise ValueError(
            f"{name} needs {np.ceil(n_needed):.0f} rows to be split, and has {n_rows}."
        )


@dataclass(frozen=True)
class CellSplit:
    """Row indices of the three parts of a cell."""

    labeled: AnyArray
    unlabeled: AnyArray
    test: AnyArray


def curve_sizes(n_rows: int, n_labeled: int, n_classes: int) -> list[int]:
    """Return the numbers 1, 2, 4, ... of unlabeled rows that leave rows to test."""
    # ``curve_split`` labels one row of each class more, and tests two of each at least.
    largest = n_rows - n_labeled - 3 * n_classes
    if largest < 1:
        raise ValueError(
            f"A learning curve with {n_labeled} labels needs at least "
            f"{n_labeled + 3 * n_classes + 1} rows, and there are {n_rows}."
        )
    sizes = [2**k for k in range(_MAX_CURVE_POINTS)]
    return [size for size in sizes if size <= largest]


def fold_split(
    codes: AnyArray,
    n_labeled: int,
    seed: int,
    cell: Cell,
    drawing: str = design.WITH_REPLACEMENT,
) -> CellSplit:
    """Test one fold, and label ``n_labeled`` other rows, at least 2 of each class."""
    # All folds of a repeat must come from the same division: its generator does not
    # depend on the fold.
    repeat_names = (cell.experiment, cell.dataset, cell.repeat)
    folds = _folds(codes, rng_of(seed, *repeat_names))
    train = np.flatnonzero(folds != cell.part)
    test = np.flatnonzero(folds == cell.part)

    rng = rng_of(seed, *repeat_names, cell.part)
    guaranteed = _draw_guaranteed(codes, train, rng, drawing)
    others = rng.permutation(np.setdiff1d(train, guaranteed))
    # The same row may be guaranteed twice, and counts twice.
    n_more = max(0, n_labeled - len(guaranteed))
    labeled = np.concatenate([guaranteed, others[:n_more]])
    unlabeled = others[n_more:]
    return CellSplit(labeled, unlabeled, test)


def curve_split(
    codes: AnyArray,
    n_labeled: int,
    seed: int,
    cell: Cell,
    drawing: str = design.WITH_REPLACEMENT,
) -> CellSplit:
    """Leave ``cell.part`` rows unlabeled and test the rest, at least 2 of each class.

    The published curves count only half of the guaranteed rows, so that n_labeled + K
    rows carry a label.
    """
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part)
    classes = np.unique(codes)
    rows = np.arange(len(codes))

    guaranteed = _draw_guaranteed(codes, rows, rng, drawing)
    others = rng.permutation(np.setdiff1d(rows, guaranteed))
    n_more = max(0, n_labeled - len(guaranteed) // GUARANTEED_ROWS)
    labeled = np.concatenate([guaranteed, others[:n_more]])

    # Set the guaranteed test rows aside before the unlabeled rows are taken.
    others = others[n_more:]
    tested_by_class = [others[codes[others] == k][:GUARANTEED_ROWS] for k in classes]
    tested = np.concatenate(tested_by_class)
    others = others[~np.isin(others, tested)]
    unlabeled = others[: cell.part]
    test = np.concatenate([tested, others[cell.part :]])
    return CellSplit(labeled, unlabeled, test)


def _draw_guaranteed(
    codes: AnyArray, rows: AnyArray, rng: np.random.Generator, drawing: str
) -> AnyArray:
    """Draw the labeled rows that every class is guaranteed.

    The code of the published curves draws with replacement. That the tables do too is
    an inference: of the ways that were tried, this one fits best to the published
    errors of LDA on the two sets with ten labels and one rare class.
    """
    is_replaced = drawing == design.WITH_REPLACEMENT
    drawn_by_class = []
    for k in np.unique(codes):
        rows_of_class = rows[codes[rows] == k]
        drawn_by_class.append(rng.choice(rows_of_class, GUARANTEED_ROWS, is_replaced))
    return np.concatenate(drawn_by_class)


def _folds(codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Draw the fold of every row.

    Folds are of equal size, up to one row, and have rows of every class.
    """
    n_rows = len(codes)
    n_folds = design.N_FOLDS
    folds = np.full(n_rows, -1)
    # Deal the guaranteed test rows of every class to the folds in turn.
    for k in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == k))
        dealt = rows[: GUARANTEED_ROWS * n_folds]
        folds[dealt] = np.arange(len(dealt)) % n_folds

    # Fill the folds up with the other rows, at random.
    sizes = np.bincount(folds[folds >= 0], minlength=n_folds)
    # If the rows cannot be divided equally, the first folds get one row more.
    n_extra = n_rows % n_folds
    full_sizes = n_rows // n_folds + (np.arange(n_folds) < n_extra)
    n_vacancies = np.maximum(full_sizes - sizes, 0)
    vacancies = np.repeat(np.arange(n_folds), n_vacancies)
    folds[folds < 0] = rng.permutation(vacancies)
    return folds
