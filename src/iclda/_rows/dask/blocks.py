"""What a worker does with one block of rows: checks, sums, a sample.

Only what these functions return leaves the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from ..._core.labelsums import GivenLabels, LabelSums
from ..._core.moments import Moments
from ..._core.types import AnyArray, Array
from ..._messages import Column, Text
from ..base import BadRowsError, changed, check_finite, check_names, column_names, joined
from ..memory import MemoryRows

_HOLDING_SEED = 0
Sums = Moments | LabelSums
Drawn = tuple[AnyArray, AnyArray]  # numbers of rows, and the rows


class UnreadableBlockError(RuntimeError):
    """A block whose loader failed, named in the message."""


@dataclass(frozen=True)
class Look:
    """What a block holds; small."""

    n_rows: int
    n_features: int
    dtype: str
    names: int | None = None  # checksum of the names of its columns; None: it is no table

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Known:
    """What a block is called, and what is known of it."""

    name: str
    number: int
    n_features: int | None
    n_rows: int | None = None  # once it was read
    begin: int = 0  # number of its first row among all
    names: tuple[str, ...] | None = None  # of the fit, which a table must have; until it was read

    def check_finite(self, rows: AnyArray, positions: AnyArray | None = None) -> None:
        """ValueError that names block, row and column of the first NaN or infinity."""
        check_finite(rows, self.label, numbers=positions, where=" of the block")

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"{self.name}, block {self.number}"


def rows_of(block: Any, known: Known) -> AnyArray:
    """The rows of a block, or of what its loader returns, checked against what is known."""
    return array_of(loaded(block, known), known)


def loaded(block: Any, known: Known) -> Any:
    """A block as it is, or what its loader returns."""
    if not callable(block):
        return block
    try:
        return block()
    except Exception as error:
        raise UnreadableBlockError(
            f"{known.label} could not be read: {type(error).__name__}: {error}"
        ) from error


def array_of(block: Any, known: Known) -> AnyArray:
    """The rows of an array or table, checked against what is known."""
    rows = _array_of(block)
    if rows.size == 0 and rows.ndim != 2:
        rows = np.zeros((0, known.n_features or 0))
    _check_shape(rows, known)
    if known.names is not None and len(rows) > 0:
        way_out = "Have its loader return the columns in the order of feature_names_in_."
        found = column_names(block)
        if found is not None:
            check_names(found, known.names, known.label, way_out)
    if rows.dtype.kind not in "biuf":
        _refuse_dtype(rows, known)
    if known.n_rows not in (None, len(rows)):
        raise changed(known.label, f"it has {len(rows)} rows, and had {known.n_rows}")
    return rows


def look_at(rows: AnyArray, names: Sequence[str] | None = None) -> Look:
    """What must be alike in all blocks."""
    mark_of_names = None if names is None else crc32(repr(list(names)).encode())
    return Look(len(rows), rows.shape[1], rows.dtype.str, mark_of_names)


def _array_of(block: Any) -> AnyArray:
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            return np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    return rows


def _check_shape(rows: AnyArray, known: Known) -> None:
    expected = "its" if known.n_features is None else known.n_features
    if rows.ndim != 2:
        raise BadRowsError(
            f"{known.label} must be 2-d, rows x {expected} features, got shape {rows.shape}."
        )
    if len(rows) > 0 and known.n_features not in (None, rows.shape[1]):
        raise BadRowsError(
            f"{known.label} has {rows.shape[1]} columns, but X of fit has {known.n_features}."
        )


def _refuse_dtype(rows: AnyArray, known: Known) -> None:
    column = next((k for k, values in enumerate(rows.T) if not _is_numeric(values)), None)
    where: tuple[str | Column, ...] = () if column is None else (", first in ", Column(column))
    rule = ": every column must hold real numbers, of a NumPy dtype. Convert it, or leave it out."
    raise BadRowsError(Text(f"{known.label} holds {rows.dtype}", *where, rule))


def _is_numeric(values: AnyArray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


Looks = tuple[list[Look], "list[str] | None"]  # of some blocks, and names of their columns


@dataclass(frozen=True)
class Looked:
    """A block that was read once: what it holds, and some of its rows in random order."""

    look: Look
    names: list[str] | None  # of the columns of a table
    held: Drawn | None


@dataclass(frozen=True)
class Chosen:
    """Weights and membership of the rows of one block, as they travel: a bit, not a byte a row."""

    weights: Array | None
    bits: AnyArray | None
    n_rows: int

    @property
    def is_member(self) -> AnyArray | None:
        if self.bits is None:
            return None
        return np.unpackbits(self.bits, count=self.n_rows).astype(bool)


def unpacked(function: Callable[..., Any], common: bytes, own: bytes, *inputs: Any) -> Any:
    """A function of inputs, with settings that came as bytes: no one on the way reads them."""
    return function(*inputs, **pickle.loads(common), **pickle.loads(own))


def look(block: Any, *, known: Known, n_held: int) -> Looked:
    """Read a block for the first time; keep some rows of one that is not kept itself."""
    block = loaded(block, known)
    rows = array_of(block, known)
    held = None
    if n_held > 0:
        rng = np.random.default_rng([_HOLDING_SEED, known.number])
        # Unsorted: any first few of them are a sample, too.
        index = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
        held = index, rows[index]
    names = column_names(block)
    return Looked(look_at(rows, names), names, held)


def sums_of(
    block: Any, chosen: Chosen | None, *, known: Known, n_threads: int, arguments: dict[str, Any]
) -> Sums:
    """Label sums of one block; moments, if no rule is given."""
    rows = rows_of(block, known)
    arguments = _renumbered(arguments, known, len(rows))
    members = _members(rows, chosen, n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        form = members.label_sums if "rule" in arguments else members.moments
        sums: Sums = form(**arguments)
    # NaN and infinity show in the sums: rows are searched for them only then.
    if not all(np.isfinite(value).all() for value in vars(sums).values() if value is not None):
        known.check_finite(rows)
    return sums


def shared(
    block: Any, chosen: Chosen | None, *, known: Known, arguments: dict[str, Any]
) -> list[Array]:
    """Shares of all rows of one block."""
    rows = rows_of(block, known)
    arguments = _renumbered(arguments, known, len(rows))
    return [_members(rows, chosen, 1).responsibilities(**arguments)]


def taken(block: Any, *, known: Known, positions: AnyArray) -> Drawn:
    """Rows of one block."""
    rows = rows_of(block, known)[positions]
    known.check_finite(rows, positions)
    return known.begin + positions, rows


def taken_from_held(looked: Looked, chosen: Chosen | None, *, known: Known, n: int) -> Drawn:
    """The first ``n`` members among the rows that were kept, in the order of the block."""
    assert looked.held is not None
    positions, rows = looked.held
    is_member = None if chosen is None else chosen.is_member
    kept = np.arange(len(positions)) if is_member is None else np.flatnonzero(is_member[positions])
    kept = kept[:n]
    kept = kept[np.argsort(positions[kept])]
    known.check_finite(rows[kept], positions[kept])
    return known.begin + positions[kept], rows[kept]


def applied(
    block: Any,
    *,
    block_id: tuple[int, ...],
    known: Known,
    function: Callable[[Any], Any],
    none: Any,
) -> Any:
    """Results of a function of the rows of one block; ``none``: those of no rows."""
    known = replace(known, number=block_id[0])
    rows = rows_of(block, known)
    known.check_finite(rows)
    return joined([none, *(function(part) for part, _, _ in MemoryRows(rows).blocks())])


def looks_of(looked: Looked, *, known: Known) -> Looks:
    """What one block holds."""
    return [looked.look], looked.names if looked.look.n_rows > 0 else None


def looks_together(parts: Sequence[Looks]) -> Looks:
    """What several blocks hold, in their order; names can be long: those of the first table."""
    looks = [one for part, _ in parts for one in part]
    return looks, next((names for _, names in parts if names is not None), None)


def drawn_together(parts: Sequence[Drawn]) -> Drawn:
    """Rows drawn from several blocks, in their order."""
    positions, rows = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(rows)


def listed(parts: Sequence[list[Any]]) -> list[Any]:
    """Results of several blocks, in their order."""
    return [result for part in parts for result in part]


def _members(rows: AnyArray, chosen: Chosen | None, n_threads: int) -> MemoryRows:
    if chosen is None:
        return MemoryRows(rows, n_threads=n_threads)
    return MemoryRows(rows, chosen.weights, chosen.is_member, n_threads=n_threads)


def _renumbered(arguments: dict[str, Any], known: Known, n_rows: int) -> dict[str, Any]:
    """Arguments for the rows of one block, which are counted from its first."""
    rule = arguments.get("rule")
    if not isinstance(rule, GivenLabels):
        return arguments
    labels = rule.labels[known.begin : known.begin + n_rows]
    return {**arguments, "rule": replace(rule, labels=labels)}
