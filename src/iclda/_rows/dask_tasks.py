"""What a worker of a Dask cluster does with a block of rows, and tasks that do it.

Only what these functions return leaves a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed

from .._core import AnyArray
from .checks import BadRowsError, changed_error, check_finite, check_rows
from .memory import MemoryRows, concatenate
from .protocol import Members, Weights

# A function of an array of rows.
RowsFunction = Callable[[Any], Any]
# A function of the rows of a block that are members.
SumsFunction = Callable[[MemoryRows], Any]


@dataclass(frozen=True)
class BlockInfo:
    """Which block it is, and what is known of it.

    Attributes
    ----------
    name : str
        Name of the argument.
    i : int
        Index of the block.
    n_features : int
        Number of columns.
    names : sequence of str or None
        Names of the columns.
    n_rows : int or None
        Number of rows, once the block was read.
    begin : int
        Index of its first row among all rows.
    """

    name: str
    i: int
    n_features: int
    names: Sequence[str] | None = None
    n_rows: int | None = None
    begin: int = 0

    @property
    def label(self) -> str:
        return f"{self.name}, block {self.i}"

    @property
    def rows(self) -> slice:
        """Indices of its rows among all rows."""
        return slice(self.begin, self.begin + (self.n_rows or 0))


class DrawnRows(NamedTuple):
    """Some rows, and their indices among all rows, or in a block."""

    indices: AnyArray
    rows: AnyArray


class Look(NamedTuple):
    """What is learned of a block when it is read for the first time."""

    n_rows: int
    n_bytes: int
    held: DrawnRows


def task_of(function: Callable[..., Any], /, *inputs: Any, **settings: Any) -> Delayed:
    """Return a task that calls a function of other tasks, or of plain values."""
    # As keyword arguments of the task, Dask would search arrays and rules for tasks.
    called = partial(function, **settings)
    return delayed(called, pure=False, traverse=False)(*inputs)


def read_block(block: Any, info: BlockInfo) -> AnyArray:
    """Return the rows of a block, which must be what is known of it."""
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            rows = np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    # A filter may leave a block without rows, in any shape and dtype.
    if rows.size == 0:
        return np.zeros((0, info.n_features))
    check_rows(rows, info.label)
    if rows.shape[1] != info.n_features:
        raise BadRowsError(
            f"{info.label} has {rows.shape[1]} columns, but X of fit has "
            f"{info.n_features}."
        )
    if info.n_rows not in (None, len(rows)):
        raise changed_error(
            info.label, f"it has {len(rows)} rows, and had {info.n_rows}"
        )
    return rows


def _finite_rows(block: Any, info: BlockInfo, index: Any = slice(None)) -> AnyArray:
    """Return the rows at an index in the block; ValueError for NaN and infinity."""
    rows: AnyArray = read_block(block, info)[index]
    positions = None if isinstance(index, slice) else index
    check_finite(rows, info.label, info.names, index=positions, where=" of the block")
    return rows


def look_at_block(block: Any, *, info: BlockInfo, n_held: int) -> list[Look]:
    """Return the size of a block, and ``n_held`` of its rows."""
    rows = read_block(block, info)
    # In random order, so that any first few of them are a sample, too.
    rng = np.random.default_rng([0, info.i])
    chosen = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
    held = DrawnRows(chosen, _finite_rows(rows, info, chosen))
    return [Look(len(rows), rows.nbytes, held)]


def take_rows(block: Any, *, info: BlockInfo, positions: AnyArray) -> list[DrawnRows]:
    """Return some rows of a block, with their indices among all rows."""
    return [DrawnRows(info.begin + positions, _finite_rows(block, info, positions))]


def sum_block(
    block: Any,
    choice: tuple[Weights, Members],
    *,
    info: BlockInfo,
    sums_of: SumsFunction,
    n_threads: int,
    view: Any,
) -> Any:
    """Return sums of the members of a block; ``choice`` is their weights and mask."""
    rows = read_block(block, info)
    members = MemoryRows(rows, *choice, n_threads=n_threads)
    members.view = view
    with np.errstate(over="ignore", invalid="ignore"):
        sums = sums_of(members)
    # NaN and infinity show in the sums: rows are searched for them only then.
    values = [value for value in vars(sums).values() if value is not None]
    if not all(np.isfinite(value).all() for value in values):
        _finite_rows(rows, info)
    return sums


def apply_to_block(
    block: Any,
    *,
    block_id: tuple[int, ...],
    info: BlockInfo,
    function: RowsFunction,
    empty: AnyArray,
) -> AnyArray:
    """Return the results of a function of the rows of one block.

    ``block_id`` is the index of the block, which Dask supplies; ``info`` is that of any
    block, and ``empty`` the result of no rows.
    """
    rows = _finite_rows(block, replace(info, i=block_id[0]))
    # Tile by tile, as in memory: results of a whole block may take much more room.
    results = [function(tile.rows) for tile in MemoryRows(rows).tiles()]
    return concatenate([empty, *results])


def join_lists(parts: Sequence[list[Any]]) -> list[Any]:
    """Return one list of the results of several tasks."""
    return [result for part in parts for result in part]


def given(value: Any) -> Any:
    """Return a value as it is: the task that has a worker keep it."""
    return value
