"""What all backends share: members, weights, samples, checks of what is read, sums of blocks.

A backend that reads rows as NumPy arrays subclasses ``BlockRows`` and supplies blocks; one that
sums rows on its own device subclasses ``WeightedRows`` and supplies the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, TypeVar

import numpy as np

from .._core.boundary import BoundaryRows
from .._core.frame import Frame
from .._core.labelsums import LabelSums, LinearRule, Rule, Tally, fold, no_label_sums, unfolded
from .._core.moments import Moments, SumsFromZero, moments_of_block, no_moments, sums_from_zero
from .._core.types import AnyArray, Array
from .._messages import Column, Text, message_of
from .compiled import CompiledTally, rule_for_loops

Block = tuple[AnyArray, "Array | None", "slice | AnyArray"]  # rows, weights, row numbers
Sum = TypeVar("Sum", Moments, SumsFromZero, LabelSums, "Labeled")
OfBlocks = Callable[[Iterable[Block]], Sum]

_CHECKED_ROWS = 8192  # at a time: the mask of what is finite stays small


@dataclass(frozen=True)
class Request:
    """What a backend is given beside the rows.

    ``n_features`` and ``feature_names`` are those of the fit: ValueError if the source has others.
    None: the source decides.
    """

    name: str  # of the argument, for messages
    n_features: int | None = None
    feature_names: AnyArray | None = None
    n_threads: int = 1

    def check_width(self, n_found: int) -> None:
        """ValueError unless a source has as many columns as the rows of the fit."""
        if self.n_features not in (None, n_found):
            raise BadRowsError(
                f"{self.name} has {n_found} features, but X of fit has {self.n_features}."
            )


# Checks.


class BadRowsError(ValueError):
    """Rows that are not what they must be."""

    def with_names(self, names: Sequence[str] | None) -> BadRowsError:
        """The same, with the name of the column: the workers of Dask know its index only."""
        message = message_of(self)
        if names is None or not isinstance(message, Text):
            return self
        return BadRowsError(message.with_names(names))


def check_finite(
    rows: AnyArray,
    name: str,
    names: Sequence[str] | AnyArray | None = None,
    *,
    numbers: Sequence[int] | AnyArray | None = None,
    where: str = "",
) -> None:
    """Raise ``not_finite`` for the first NaN or infinity; ``numbers``: those of the rows."""
    if rows.dtype.kind != "f":
        return
    for start in range(0, len(rows), _CHECKED_ROWS):
        is_finite = np.isfinite(rows[start : start + _CHECKED_ROWS])
        if not is_finite.all():
            row, column = (int(i) for i in np.argwhere(~is_finite)[0])
            found = "NaN" if np.isnan(rows[start + row, column]) else "infinity"
            number = start + row if numbers is None else int(numbers[start + row])
            raise not_finite(found, name, number, column, names, where=where)


def not_finite(
    found: str,
    name: str,
    row: int,
    column: int,
    names: Sequence[str] | AnyArray | None = None,
    *,
    where: str = "",
) -> BadRowsError:
    """The error for NaN, infinity and missing values, with row, column and the way out."""
    way_out = "Impute missing values (sklearn.impute)"
    if found == "infinity":
        way_out = "Replace infinity or values too large for its dtype"
    place = Column(int(column), None if names is None else str(names[column]))
    begin = f"Input {name} contains {found}, first in row {row}, "
    return BadRowsError(Text(begin, place, f"{where}. {way_out}, or drop these rows."))


def column_names(table: Any) -> list[str] | None:
    """Names of the columns of a table; None for an array, and for columns that have no names."""
    names = getattr(getattr(table, "schema", None), "names", None)  # pyarrow
    if not isinstance(names, list):
        columns = getattr(table, "columns", None)
        names = None if columns is None else list(columns)
    is_named = names is not None and all(isinstance(name, str) for name in names)
    return names if is_named else None


def check_names(
    found: Sequence[str], expected: Sequence[str] | AnyArray, name: str, way_out: str
) -> None:
    """ValueError unless columns have the names of the fit, in the same order."""
    if len(found) != len(expected):
        raise BadRowsError(f"{name} has {len(found)} features, but X of fit has {len(expected)}.")
    for column, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one != other:
            raise BadRowsError(
                "The feature names should match those that were passed during fit: column "
                f"{column} of {name} is {one!r}, and was {str(other)!r}. {way_out}"
            )


def changed(name: str, difference: str) -> BadRowsError:
    """The error for a source that is not what it was when it was opened, or in an earlier pass."""
    return BadRowsError(
        f"{name} changed between two passes: {difference}. Rows are read several times, and must "
        "be the same every time: open the source again, or fit to a copy that nothing writes to."
    )


# Rows.


class WeightedRows:
    """Membership and weights of rows, and samples of them.

    A backend supplies ``_rows_at``, or ``_drawn`` if it has a cheaper way to some rows.
    """

    def __init__(
        self, n_all: int | None, weights: Array | None, is_member: AnyArray | None
    ) -> None:
        is_partial = is_member is not None and not is_member.all()
        self._weights = weights
        self._is_member = is_member if is_partial else None
        # None: not known before the first pass.
        self._n_rows = n_all if is_member is None else int(is_member.sum())

    @property
    def n_rows(self) -> int:
        assert self._n_rows is not None
        return self._n_rows

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        rows, numbers = self._drawn(n, seed)
        rows = np.asarray(rows, dtype=np.float64)
        if self._weights is None:
            weights = np.ones(len(rows))
            total = float(len(rows) if self._n_rows is None else self._n_rows)
        else:
            weights, total = self._weights[numbers], self._total_weight()
        drawn = float(weights.sum())
        return rows, weights * (total / drawn) if drawn > 0 else weights

    def _drawn(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """At most ``n`` rows and their numbers, which ascend."""
        numbers = self._random_members(n, seed)
        return self._rows_at(numbers), numbers

    def _rows_at(self, numbers: AnyArray) -> AnyArray:
        raise NotImplementedError

    def _random_members(self, n: int, seed: int) -> AnyArray:
        if n >= self.n_rows:
            return self._members
        index = np.sort(np.random.default_rng(seed).choice(self.n_rows, n, replace=False))
        return index if self._is_member is None else self._members[index]

    @property
    def _members(self) -> AnyArray:
        """Numbers of all members."""
        if self._is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self._is_member)

    def _members_within(self, begin: int, end: int) -> slice | AnyArray:
        """Members among the rows of these numbers, counted from ``begin``."""
        if self._is_member is None:
            return slice(0, end - begin)
        return np.flatnonzero(self._is_member[begin:end])

    def _total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_rows)
        return float(
            self._weights[slice(None) if self._is_member is None else self._is_member].sum()
        )


@dataclass(frozen=True)
class Labeled:
    """Label sums of some blocks, and their rows near a boundary on request."""

    sums: LabelSums
    between: BoundaryRows | None

    def __add__(self, other: Labeled) -> Labeled:
        if self.between is not None and other.between is not None:
            self.between.join(other.between)
        return Labeled(self.sums + other.sums, self.between)

    def with_curvature(self) -> LabelSums:
        if self.between is None:
            return self.sums
        return replace(self.sums, curvature=self.between.scatter())


class BlockRows(WeightedRows):
    """Sums of rows that come as NumPy blocks. ``_added_up`` and ``_each`` are a backend's."""

    _total: SumsFromZero | None = None  # of all rows, once they were summed from zero

    @property
    def n_features(self) -> int:
        raise NotImplementedError

    @property
    def _are_rows_contiguous(self) -> bool:
        """Whether the numbers of a row lie side by side in memory."""
        return True

    def _added_up(self, of_blocks: OfBlocks[Sum], *, is_compiled: bool = False) -> Sum | None:
        """Sum of a function of groups of blocks, in a fixed order; None if there are no rows.

        ``is_compiled``: blocks need not fit into the cache, the compiled loops tile them.
        """
        raise NotImplementedError

    def _each(self, of_block: Callable[[Block], AnyArray]) -> Iterator[AnyArray]:
        """Results of a function of every block, in order."""
        raise NotImplementedError

    def _is_summed_from_zero(self, frame: Frame) -> bool:
        """Whether rows are many and near enough to zero to be summed without a copy."""
        raise NotImplementedError

    def _block_of(self, X: AnyArray, begin: int, low: int, high: int) -> Block:
        """Members among rows ``low`` to ``high`` of X, whose first row has the number ``begin``."""
        inside = self._members_within(begin + low, begin + high)
        index: slice | AnyArray = slice(begin + low, begin + high)
        if not isinstance(inside, slice):
            index = begin + low + inside
        rows = X[low:high][inside]
        if rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        return rows, None if self._weights is None else self._weights[index], index

    def moments(self, frame: Frame) -> Moments:
        if self._is_summed_from_zero(frame):
            sums = self._added_up(lambda blocks: added(sums_from_zero(a) for a, _, _ in blocks))
            moments = None if sums is None else sums.moments(frame)
            if moments is not None:
                self._total = sums
                return moments

        def of_blocks(blocks: Iterable[Block]) -> Moments:
            return added(moments_of_block(frame.apply(rows), w) for rows, w, _ in blocks)

        return self._added_up(of_blocks) or no_moments(self.n_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        # One read a pass: fold the frame into the rule rather than shift and scale every row.
        # Labels come from the folded rule whenever there is one: ties must fall the same way with
        # and without scatter.
        folded, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        if sums_raw and isinstance(folded, LinearRule):
            folded = folded.knowing(self._total)
        n_numbers = self.n_rows * self.n_features
        for_loops = rule_for_loops(folded, n_numbers) if self._are_rows_contiguous else None
        used_rule, kind = (folded, Tally) if for_loops is None else (for_loops, CompiledTally)

        def of_blocks(blocks: Iterable[Block]) -> Labeled:
            between = BoundaryRows(curvature, rule.n_classes) if np.any(curvature) else None
            tally = kind(used_rule, self.n_features, centers)
            for rows, weights, index in blocks:
                used = rows if sums_raw else frame.apply(rows)
                shares = tally.add(rows if is_folded else used, used, weights, index)
                if between is not None:
                    between.add(used, weights, shares)
            return Labeled(tally.sums(), between)

        found = self._added_up(of_blocks, is_compiled=for_loops is not None)
        if found is None:
            return no_label_sums(rule.n_classes, self.n_features)
        total = found.with_curvature()
        return unfolded(used_rule.completed(total), frame) if sums_raw else rule.completed(total)

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        rule, is_folded = fold(rule, frame)

        def of_block(block: Block) -> Array:
            rows, _, index = block
            return rule.shares(rows if is_folded else frame.apply(rows), index)[0].T

        return self._listed(of_block)

    def _listed(self, of_block: Callable[[Block], AnyArray]) -> AnyArray:
        """Results of all blocks, after each other."""
        none = of_block((np.zeros((0, self.n_features)), None, slice(0, 0)))
        return joined(chain([none], self._each(of_block)), self._n_rows)


def added(parts: Iterable[Sum]) -> Sum:
    """Sum of all parts, of which there is at least one, in their order."""
    return reduce(add, parts)


def joined(results: Iterable[Any], n_rows: int | None = None) -> AnyArray:
    """Results of blocks, at least one, after each other, in dtype and byte order of the first.

    If it is known how many rows there will be, none is held twice.
    """
    if n_rows is None:
        results = list(results)
        n_rows = sum(map(len, results))
    parts = iter(results)
    first = next(parts)
    found = np.empty((n_rows, *first.shape[1:]), first.dtype)
    n_done = 0
    for part in chain([first], parts):
        found[n_done : n_done + len(part)] = part
        n_done += len(part)
    return found
