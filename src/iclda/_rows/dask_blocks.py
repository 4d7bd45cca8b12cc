"""What a worker does with one block of rows. Only what is returned here leaves the worker."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from .._core.labelsums import GivenLabels, LabelSums
from .._core.moments import Moments
from .._core.types import AnyArray, Array
from .memory import MemoryRows
from .sums import joined

_MARKED_ROWS = 64  # of every block, that tell whether it is still the same
_HOLDING_SEED = 0
_CHECKED_ROWS = 8192

Sums = Moments | LabelSums
Drawn = tuple[AnyArray, AnyArray]  # numbers of rows, and the rows


class BadBlockError(ValueError):
    """A block that holds what it must not, and is named in the message; so is the column."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message, column)  # both, or it could not be sent
        self.column = column

    def __str__(self) -> str:
        return str(self.args[0])

    def with_names(self, names: Sequence[str] | None) -> BadBlockError:
        """The same, with the name of the column. Workers do not know it: names can be long."""
        if names is None or self.column is None:
            return self
        column = f"column {self.column}"
        return BadBlockError(str(self).replace(column, f"column {names[self.column]!r}"))


class UnreadableBlockError(RuntimeError):
    """A block whose loader failed, named in the message."""


@dataclass(frozen=True)
class Look:
    """What a block holds, as far as it must not change; small."""

    n_rows: int
    n_features: int
    dtype: str
    mark: int

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Known:
    """What a block is called, and what is known of it: ``look``, once it was read."""

    name: str
    number: int
    n_features: int | None
    look: Look | None = None
    begin: int = 0  # number of its first row among all

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"{self.name}, block {self.number}"


@dataclass(frozen=True)
class Looked:
    """A block that was read once: what it holds, and some of its rows in random order."""

    look: Look
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


def rows_of(block: Any, known: Known) -> AnyArray:
    """The rows of a block, or of what its loader returns, checked against what is known."""
    if callable(block):
        try:
            block = block()
        except Exception as error:
            raise UnreadableBlockError(
                f"{known.label} could not be read: {type(error).__name__}: {error}"
            ) from error
    rows = _array_of(block)
    if rows.size == 0 and rows.ndim != 2:
        rows = np.zeros((0, known.n_features or 0))
    _check_shape(rows, known)
    if rows.dtype.kind not in "biuf":
        _refuse_dtype(rows, known)
    if known.look is not None and look_at(rows) != known.look:
        _refuse_change(rows, known)
    return rows


def look_at(rows: AnyArray) -> Look:
    """What identifies a block, from a few of its rows."""
    few = rows[:: max(1, len(rows) // _MARKED_ROWS)]
    mark = crc32(np.ascontiguousarray(few).tobytes())
    return Look(len(rows), rows.shape[1], rows.dtype.str, mark)


def look(block: Any, *, known: Known, n_held: int) -> Looked:
    """Read a block for the first time; keep some rows of one that is not kept itself."""
    rows = rows_of(block, known)
    held = None
    if n_held > 0:
        rng = np.random.default_rng([_HOLDING_SEED, known.number])
        # Unsorted: any first few of them are a sample, too.
        index = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
        held = index, rows[index]
    return Looked(look_at(rows), held)


def summed(
    block: Any,
    chosen: Chosen | None,
    *,
    known: Known,
    n_threads: int,
    method: str,
    arguments: dict[str, Any],
) -> Sums:
    """A sum over the rows of one block: the same arithmetic as for rows in memory."""
    rows = rows_of(block, known)
    members = _members(rows, chosen, n_threads)
    arguments = _renumbered(arguments, known, len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        sums: Sums = getattr(members, method)(**arguments)
    if not all(np.isfinite(value).all() for value in vars(sums).values() if value is not None):
        check_finite(rows, known)
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
    check_finite(rows, known, positions)
    return known.begin + positions, rows


def taken_from_held(looked: Looked, chosen: Chosen | None, *, known: Known, n: int) -> Drawn:
    """The first ``n`` members among the rows that were kept, in the order of the block."""
    assert looked.held is not None
    positions, rows = looked.held
    is_member = None if chosen is None else chosen.is_member
    kept = np.arange(len(positions)) if is_member is None else np.flatnonzero(is_member[positions])
    kept = kept[:n]
    kept = kept[np.argsort(positions[kept])]
    check_finite(rows[kept], known, positions[kept])
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
    check_finite(rows, known)
    return joined([none, *(function(part) for part, _, _ in MemoryRows(rows).blocks())])


def added(parts: Sequence[Sums]) -> Sums:
    """Sums of several blocks, in their order."""
    total: Any = parts[0]
    for part in parts[1:]:
        total = total + part
    return total  # type: ignore[no-any-return]


def drawn_together(parts: Sequence[Drawn]) -> Drawn:
    """Rows drawn from several blocks, in their order."""
    positions, rows = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(rows)


def listed(parts: Sequence[list[Any]]) -> list[Any]:
    """Results of several blocks, in their order."""
    return [result for part in parts for result in part]


def looks_of(looked: Looked, *, known: Known) -> list[Look]:
    """What one block holds."""
    return [looked.look]


def check_finite(rows: AnyArray, known: Known, positions: AnyArray | None = None) -> None:
    """BadBlockError that names the first row and column with NaN or infinity."""
    if rows.dtype.kind != "f":
        return
    for start in range(0, len(rows), _CHECKED_ROWS):
        is_finite = np.isfinite(rows[start : start + _CHECKED_ROWS])
        if is_finite.all():
            continue
        row, column = np.argwhere(~is_finite)[0]
        found = "NaN" if np.isnan(rows[start + row, column]) else "infinity"
        row = start + row if positions is None else positions[start + row]
        raise BadBlockError(
            f"{known.label} contains {found}, first in its row {row}, column {column}. Impute such "
            "values, or drop these rows.",
            int(column),
        )


def _members(rows: AnyArray, chosen: Chosen | None, n_threads: int) -> MemoryRows:
    if chosen is None:
        return MemoryRows(rows, n_threads=n_threads)
    return MemoryRows(rows, chosen.weights, chosen.is_member, n_threads=n_threads)


def _array_of(block: Any) -> AnyArray:
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            return np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    return rows


def _renumbered(arguments: dict[str, Any], known: Known, n_rows: int) -> dict[str, Any]:
    """Arguments for the rows of one block, which are counted from its first."""
    rule = arguments.get("rule")
    if not isinstance(rule, GivenLabels):
        return arguments
    labels = rule.labels[known.begin : known.begin + n_rows]
    return {**arguments, "rule": replace(rule, labels=labels)}


def _check_shape(rows: AnyArray, known: Known) -> None:
    expected = "its" if known.n_features is None else known.n_features
    if rows.ndim != 2:
        raise BadBlockError(
            f"{known.label} must be 2-d, rows x {expected} features, got shape {rows.shape}."
        )
    if len(rows) > 0 and known.n_features not in (None, rows.shape[1]):
        raise BadBlockError(
            f"{known.label} has {rows.shape[1]} columns, but X of fit has {known.n_features}."
        )


def _refuse_dtype(rows: AnyArray, known: Known) -> None:
    column = next((k for k, values in enumerate(rows.T) if not _is_numeric(values)), None)
    where = "" if column is None else f", first in column {column}"
    raise BadBlockError(
        f"{known.label} holds {rows.dtype}{where}: every column must hold real numbers, of a NumPy "
        "dtype. Convert it, or leave it out.",
        column,
    )


def _is_numeric(values: AnyArray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _refuse_change(rows: AnyArray, known: Known) -> None:
    then, now = known.look, look_at(rows)
    assert then is not None
    if (then.n_rows, then.dtype) == (now.n_rows, now.dtype):
        difference = "some of its rows are others"
    else:
        difference = f"it had {then.n_rows} rows of {then.dtype}, now {now.n_rows} of {now.dtype}"
    raise BadBlockError(
        f"{known.label} has changed since it was first read: {difference}. Every read must give "
        "the same rows: load them from where nothing changes them, or persist them."
    )
