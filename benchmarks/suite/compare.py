"""Compare a run with a stored one.

X'X takes another time on another machine, and on the same one on another day. So what
is expected now is the stored time, stretched by how much longer X'X took now than then:
for the row itself or, if that is more, for the run as a whole (X'X of few rows is too
short to be trusted alone). A row is slow if it takes more than 1.3 times what is
expected and 20 ms longer. Slow rows are shown and fail nothing: other programs on the
same machine slow some rows more than X'X, and on another machine the balance of
arithmetic and memory differs.

What fails is counted: a fit that passes over its rows more than 1.3 times as often as
it did in the stored run, and takes at least three passes more.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .rows import OURS, Row, Run, grouped

FACTOR = 1.3
SECONDS = 0.020
MIN_MORE_PASSES = 3
_WORSE_OBJECTIVE = 1e-6
_WORSE_GAP = 1e-6


@dataclass(frozen=True)
class Change:
    """Seconds of a group of rows now, and what the stored run leads to expect."""

    group: tuple[Any, ...]
    seconds: float
    expected: float

    @property
    def factor(self) -> float:
        return self.seconds / self.expected

    @property
    def is_slow(self) -> bool:
        return self.factor > FACTOR and self.seconds - self.expected > SECONDS

    def __str__(self) -> str:
        name = " ".join(str(word) for word in self.group)
        expected = f"expected {self.expected:.3f} s ({self.factor:.2f}x)"
        return f"{name}: {self.seconds:.3f} s, {expected}"


@dataclass(frozen=True)
class MorePasses:
    """Passes over the rows of a group of rows now, and in the stored run: medians."""

    group: tuple[Any, ...]
    passes: float
    stored: float

    def __str__(self) -> str:
        name = " ".join(str(word) for word in self.group)
        return f"{name}: {self.passes:g} passes, {self.stored:g} in the stored run"


@dataclass(frozen=True)
class Comparison:
    """All changes of time, fits that pass more often, and remarks on the answers."""

    changes: tuple[Change, ...]
    more_passes: tuple[MorePasses, ...]
    remarks: tuple[str, ...]

    @property
    def slow(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.is_slow)

    @property
    def has_failed(self) -> bool:
        return bool(self.more_passes)


def compare(now: Run, stored: Run) -> Comparison:
    """Every group of our rows that both runs have, over the samples that both have."""
    pairs = list(_pairs(now.rows, stored.rows))
    stretch = _stretch(pair for _, members in pairs for pair in members)
    changes = tuple(_change(group, members, stretch) for group, members in pairs)
    remarks = tuple(
        text for group, members in pairs for text in _remarks(group, members)
    )
    more_passes = tuple(
        found for group, members in pairs for found in _more_passes(group, members)
    )
    return Comparison(changes, more_passes, remarks)


def confirmed(first: Comparison, second: Comparison) -> Comparison:
    """Return the smaller changes of two measurements: slow is what is so in both."""
    again = {change.group: change for change in second.changes}
    changes = tuple(
        min(change, again.get(change.group, change), key=lambda one: one.factor)
        for change in first.changes
    )
    return Comparison(changes, first.more_passes, first.remarks)


# Now, stored.
Pair = tuple[Row, Row]


def _pairs(
    now: Sequence[Row], stored: Sequence[Row]
) -> Iterator[tuple[tuple[Any, ...], list[Pair]]]:
    partners = {(row.group, row.member): row for row in stored if _is_timed(row)}
    for group, rows in grouped(row for row in now if _is_timed(row)).items():
        found = [(row, partners.get((group, row.member))) for row in rows]
        members = [(row, partner) for row, partner in found if partner is not None]
        if members:
            yield group, members


def _is_timed(row: Row) -> bool:
    return row.method in OURS and bool(row.seconds) and bool(row.unit_seconds)


def _stretch(pairs: Iterator[Pair]) -> float:
    """How much longer X'X took, over the whole run."""
    ratios = [_stretch_of(pair) for pair in pairs]
    return statistics.median(ratios) if ratios else 1.0


def _stretch_of(pair: Pair) -> float:
    now, stored = pair
    assert now.unit_seconds
    assert stored.unit_seconds
    return now.unit_seconds / stored.unit_seconds


def _change(group: tuple[Any, ...], members: list[Pair], stretch: float) -> Change:
    seconds = [now.batch * (now.seconds or 0.0) for now, _ in members]
    expected = [
        pair[1].batch * (pair[1].seconds or 0.0) * max(stretch, _stretch_of(pair))
        for pair in members
    ]
    return Change(group, statistics.median(seconds), statistics.median(expected))


def _more_passes(group: tuple[Any, ...], members: list[Pair]) -> Iterator[MorePasses]:
    """Yield one for a group whose fits pass over their rows far more often."""
    counts = [
        (now.n_passes, stored.n_passes)
        for now, stored in members
        if now.n_passes is not None and stored.n_passes is not None
    ]
    if not counts:
        return
    passes, before = (statistics.median(column) for column in zip(*counts, strict=True))
    if passes > FACTOR * before and passes - before >= MIN_MORE_PASSES:
        yield MorePasses(group, passes, before)


def _remarks(group: tuple[Any, ...], members: list[Pair]) -> Iterator[str]:
    """Yield remarks on answers that are worse than the stored ones.

    They fail no comparison.
    """
    name = " ".join(str(word) for word in group)
    losses = [
        stored.objective - now.objective
        for now, stored in members
        if now.objective is not None and stored.objective is not None
    ]
    if losses and max(losses) > _WORSE_OBJECTIVE:
        yield f"{name}: the objective is lower than stored by up to {max(losses):.2g}"
    gaps = [now.gap for now, _ in members if now.gap is not None]
    if gaps and max(gaps) > _WORSE_GAP:
        yield f"{name}: the gap is up to {max(gaps):.2g}"
