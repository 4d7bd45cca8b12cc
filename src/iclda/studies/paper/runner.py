"""Run cells and yield rows as they finish: showing and keeping them is the caller's affair."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..._core.gaussian import Gaussians
from ..._core.types import AnyArray, Array
from ..._packages import versions_text
from ...datasets import make_gaussians, make_violated_gaussians
from ..cells import CURVES, GAUSSIAN, TABLES, VIOLATED, Cell, Row
from ..engine import Task, Work, run_tasks
from ..resampling import rng_of
from .methods import EXTRA_FITS, FITS, Training
from .splits import Split, curve_split, fold_split, n_labeled_of

TOY_ROWS, TOY_LABELED, TOY_VARIANCE = 1000, 10, 0.8
_TOYS = {GAUSSIAN: make_gaussians, VIOLATED: make_violated_gaussians}


@dataclass(frozen=True)
class Arrays:
    """A data set as the experiments use it."""

    X: Array
    codes: AnyArray

    @property
    def n_classes(self) -> int:
        """Classes are numbered from 0."""
        return int(self.codes.max()) + 1


def curve_sizes(n_rows: int, n_labeled: int, n_classes: int) -> list[int]:
    """Numbers of unlabeled rows 1, 2, 4, ... that leave rows to test."""
    room = n_rows - n_labeled - 3 * n_classes
    return [2**k for k in range(10) if 2**k <= room]


def run_cell(
    cell: Cell, sets: Mapping[str, Arrays], methods: Sequence[str], seed: int
) -> list[Row]:
    """Fit every method once on the split of a cell."""
    arrays = _arrays_of(cell, sets, seed)
    split = _split_of(cell, arrays, seed)
    training = Training(
        X=arrays.X[split.labeled],
        codes=arrays.codes[split.labeled],
        X_unlabeled=arrays.X[split.unlabeled],
        codes_unlabeled=arrays.codes[split.unlabeled],
        n_classes=arrays.n_classes,
        seed=seed,
    )
    rows = [_run_fit(cell, method, arrays, split, training) for method in methods]
    return [replace(row, seed=seed, versions=versions_text()) for row in rows]


def _arrays_of(cell: Cell, sets: Mapping[str, Arrays], seed: int) -> Arrays:
    make = _TOYS.get(cell.dataset)
    if make is None:
        return sets[cell.dataset]
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat, cell.part, "rows")
    return Arrays(*make(TOY_ROWS, rng, TOY_VARIANCE))


def _split_of(cell: Cell, arrays: Arrays, seed: int) -> Split:
    is_toy = cell.dataset in _TOYS
    n_labeled = TOY_LABELED if is_toy else n_labeled_of(arrays.X.shape[1])
    split = {TABLES: fold_split, CURVES: curve_split}[cell.experiment]
    return split(arrays.codes, n_labeled, seed, cell)


def _run_fit(cell: Cell, method: str, arrays: Arrays, split: Split, training: Training) -> Row:
    start = time.perf_counter()
    error = nll = nll_labeled = failure = None
    try:
        if method in FITS:
            model = FITS[method](training)
            error, nll = _losses(model, arrays.X[split.test], arrays.codes[split.test])
            nll_labeled = _losses(model, training.X, training.codes)[1]
        else:
            predicted = EXTRA_FITS[method](training).predict(arrays.X[split.test])
            error = float(np.mean(predicted != arrays.codes[split.test]))
    except Exception:  # a failed fit is a row with its traceback: never a zero, never a crash
        error = nll = nll_labeled = None
        failure = traceback.format_exc()
    return Row(
        experiment=cell.experiment,
        dataset=cell.dataset,
        repeat=cell.repeat,
        part=cell.part,
        method=method,
        n_labeled=len(split.labeled),
        n_unlabeled=len(split.unlabeled),
        n_test=len(split.test),
        error=error,
        nll=nll,
        nll_labeled=nll_labeled,
        seconds=time.perf_counter() - start,
        failure=failure,
    )


def _losses(model: Gaussians, X: Array, codes: AnyArray) -> tuple[float, float]:
    joint = model.log_joint(X)
    error = float(np.mean(joint.argmax(axis=1) != codes))
    return error, float(-np.mean(joint[np.arange(len(codes)), codes]))


def run_cells(
    cells: Sequence[Task], sets: Mapping[str, Arrays], *, seed: int, jobs: int
) -> Iterator[list[Row]]:
    """Rows of cells, a few cells at a time, in the order in which they finish.

    What comes out depends on seed and cell alone, never on ``jobs`` or the order.
    """
    return run_tasks(cells, sets, Work(partial(run_cell, seed=seed), _failed), jobs)


def _failed(cell: Cell, method: str, failure: str) -> Row:
    return Row(
        experiment=cell.experiment,
        dataset=cell.dataset,
        repeat=cell.repeat,
        part=cell.part,
        method=method,
        n_labeled=0,
        n_unlabeled=0,
        n_test=0,
        error=None,
        nll=None,
        nll_labeled=None,
        seconds=0.0,
        failure=failure,
    )
