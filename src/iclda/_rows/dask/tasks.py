"""What a worker does with one block of rows. Only what these functions return leaves the worker."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._core.labelsums import GivenLabels, LabelSums
from ..._core.moments import Moments
from ..._core.types import AnyArray, Array
from ..base import joined
from ..memory import MemoryRows
from .blocks import Known, Look, array_of, loaded, look_at, names_of, rows_of

_HOLDING_SEED = 0

Sums = Moments | LabelSums
Drawn = tuple[AnyArray, AnyArray]  # numbers of rows, and the rows
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
    names = names_of(block)
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
