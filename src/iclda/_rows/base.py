"""What all backends share: members, weights, samples, checks of what is read, sums of blocks.

A backend that reads rows as NumPy arrays subclasses ``BlockRows`` and supplies ``_slabs``; one that
sums rows on its own device subclasses ``WeightedRows`` and supplies the sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, reduce
from importlib.util import find_spec
from itertools import chain
from operator import add
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from .._core.boundary import BoundaryRows
from .._core.frame import Frame
from .._core.labelsums import (
    AllButFirst,
    LabelSums,
    LinearRule,
    Rule,
    Tally,
    fold,
    no_label_sums,
    unfolded,
)
from .._core.moments import (
    Moments,
    SumsFromZero,
    is_near_zero,
    moments_of_block,
    no_moments,
    sums_from_zero,
)
from .._core.problem import Rows
from .._core.types import AnyArray, Array
from .._messages import Column, ColumnError, Hint, Text, message_of
from .passes import in_order, report_progress

Block = tuple[AnyArray, "Array | None", "slice | AnyArray"]  # rows, weights, indices of the rows
Curvature = int | AnyArray
Result = TypeVar("Result")
Sum = TypeVar("Sum", Moments, SumsFromZero, LabelSums, "_Labeled")

_CHECKED_ROWS = 8192  # at a time, so that the mask of what is finite stays small
_BLOCK_ROWS = (512, 8192)
_BLOCK_ENTRIES = 2**17  # float64: half the second-level cache of a core
_BLOCK_MULTIPLE = 64  # compiled loops give the same sums for any cut into such blocks
GROUP = 8  # blocks of a slab, added up by one thread before their sum joins the others
# Entries of all rows from which on it pays to load numba, which takes about half a second.
MANY = 2**24
_MOST_CLASSES = 1024  # whose number to the power of 64 is finite

_IMPUTE = Hint(
    "missing", text="Impute missing values (sklearn.impute) or drop these rows", kind="rows"
)
_REPLACE = "Replace infinity or values too large for its dtype, or drop these rows"


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
        if self.n_features not in (None, n_found):
            raise BadRowsError(
                f"{self.name} has {n_found} features, but X of fit has {self.n_features}."
            )


# Checks.


class BadRowsError(ColumnError):
    """Rows that are not what they must be."""

    def with_names(self, names: Sequence[str] | None) -> BadRowsError:
        """The same, with the name of the column: the workers of Dask know its index only."""
        message = message_of(self)
        if names is None or not isinstance(message, Text):
            return self
        message = message.with_names(names)
        return BadRowsError(message, column=message.columns[0].label if message.columns else None)


def column_of(column: int, names: Sequence[str] | AnyArray | None) -> Column:
    """A column, for messages."""
    return Column(column, None if names is None else str(names[column]))


def check_finite(
    rows: AnyArray,
    name: str,
    names: Sequence[str] | AnyArray | None = None,
    *,
    index: Sequence[int] | AnyArray | None = None,
    where: str = "",
) -> None:
    """Raise ``not_finite_error`` for the first NaN or infinity; ``index``: indices of the rows."""
    if rows.dtype.kind != "f":
        return
    for start in range(0, len(rows), _CHECKED_ROWS):
        block = rows[start : start + _CHECKED_ROWS]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum(dtype=np.float64)):
                continue
        is_finite = np.isfinite(block)
        if not is_finite.all():
            row, column = (int(i) for i in np.argwhere(~is_finite)[0])
            found = "NaN" if np.isnan(block[row, column]) else "infinity"
            at = start + row if index is None else int(index[start + row])
            raise not_finite_error(found, name, at, column_of(column, names), where=where)


def not_finite_error(
    found: str, name: str, row: int, column: Column, *, where: str = ""
) -> BadRowsError:
    """The error for NaN, infinity and missing values, with row, column and the way out."""
    begin = f"Input {name} contains {found}, first in row {row}, "
    way_out = _REPLACE if found == "infinity" else _IMPUTE
    return BadRowsError(Text(begin, column, f"{where}. ", way_out, "."), column=column.label)


def names_of_table(table: Any) -> list[str] | None:
    """Names of the columns of a table; None for an array, and for columns without names."""
    names = getattr(getattr(table, "schema", None), "names", None)  # pyarrow
    if not isinstance(names, list):
        columns = getattr(table, "columns", None)
        names = None if columns is None else list(columns)
    is_named = names is not None and all(isinstance(name, str) for name in names)
    return names if is_named else None


def check_names(
    found: Sequence[str], expected: Sequence[str] | AnyArray, name: str, way_out: str
) -> None:
    """Raise ValueError unless columns have the names of the fit, in the same order."""
    if len(found) != len(expected):
        raise BadRowsError(f"{name} has {len(found)} features, but X of fit has {len(expected)}.")
    for column, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one != other:
            raise BadRowsError(
                "The feature names should match those that were passed during fit: column "
                f"{column} of {name} is {one!r}, and was {str(other)!r}. {way_out}"
            )


def changed_error(name: str, difference: str) -> BadRowsError:
    """The error for a source that is not what it was when it was opened, or in an earlier pass."""
    return BadRowsError(
        f"{name} changed between two passes: {difference}. Rows are read several times, and must "
        "be the same every time: open the source again, or fit to a copy that nothing writes to."
    )


# Rows.


class WeightedRows(Rows):
    """Membership and weights of rows, and samples of them.

    A backend supplies the sums of ``Rows`` and ``_rows_at``, or ``_draw`` if it has a cheaper way
    to some rows.
    """

    n_features: int = 0
    feature_names: Sequence[str] | None = None
    source: Any = None  # what to open in place of X from now on; None: X

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
    ) -> None:
        is_partial = is_member is not None and not is_member.all()
        self.n_features = n_features
        self._weights = weights
        self._is_member = is_member if is_partial else None
        # None: not known before the first pass.
        self._n_rows = n_all if is_member is None else int(is_member.sum())

    @property
    def n_rows(self) -> int:
        assert self._n_rows is not None
        return self._n_rows

    def count(self) -> int:
        """Exact number of rows; reads them if it is not known otherwise."""
        return self.n_rows

    def check_finite(self) -> None:
        """Raise ValueError for NaN or infinity, where rows are at hand and need not be read."""

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        rows, index = self._draw(n, seed)
        rows = np.asarray(rows, dtype=np.float64)
        if self._weights is None:
            weights = np.ones(len(rows))
            total = float(len(rows) if self._n_rows is None else self._n_rows)
        else:
            weights, total = self._weights[index], self._total_weight()
        drawn = float(weights.sum())
        return rows, weights * (total / drawn) if drawn > 0 else weights

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """At most ``n`` rows and their indices, which ascend."""
        index = self._random_members(n, seed)
        return self._rows_at(index), index

    def _rows_at(self, index: AnyArray) -> AnyArray:
        raise NotImplementedError

    def _random_members(self, n: int, seed: int) -> AnyArray:
        if n >= self.n_rows:
            return self._members
        index = np.sort(np.random.default_rng(seed).choice(self.n_rows, n, replace=False))
        return index if self._is_member is None else self._members[index]

    @property
    def _members(self) -> AnyArray:
        """Indices of all members."""
        if self._is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self._is_member)

    def _members_within(self, begin: int, end: int) -> slice | AnyArray:
        """Members among the rows of these indices, counted from ``begin``."""
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
class Slab:
    """Consecutive rows in memory, the first of them at index ``start``."""

    start: int
    rows: AnyArray
    label: str = ""  # for messages

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


@dataclass(frozen=True)
class _Labeled:
    """Label sums of some blocks, and their rows near a boundary on request."""

    sums: LabelSums
    between: BoundaryRows | None

    def __add__(self, other: _Labeled) -> _Labeled:
        if self.between is not None and other.between is not None:
            self.between.join(other.between)
        return _Labeled(self.sums + other.sums, self.between)


class BlockRows(WeightedRows):
    """Sums of rows that come as NumPy arrays, which ``_slabs`` of a backend supplies.

    Slabs of ``_slab_rows`` rows, the last one of the rest, give the same sums to the last bit for
    any backend and any number of threads.
    """

    _total: SumsFromZero | None = None  # of all rows, once they were summed from zero
    _has_contiguous_rows = True  # entries of a row are adjacent in memory
    _n_read: int | None = None  # rows of the last pass
    _can_skip_blocks = False  # compiled loops may take a slab as one block: it is not copied

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        *,
        block_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(n_all, n_features, weights, is_member)
        self._n_all = n_all
        self._block_rows = block_rows or rows_per_block(n_features)
        self._slab_rows = GROUP * self._block_rows
        self._n_threads = n_threads

    def _slabs(self, *, is_listed: bool = False) -> Generator[Slab, None, None]:
        """All rows, members or not, in order. ``is_listed``: for results of rows, not for sums."""
        raise NotImplementedError

    def _first_rows(self) -> AnyArray | None:
        """Some rows, to see whether all are near zero; None if none were read yet."""
        return None

    def _pass(
        self, of_slab: Callable[[Slab], Result], *, is_listed: bool = False
    ) -> Iterator[Result]:
        """Results of a function of all slabs, in order."""

        def with_stop(slab: Slab) -> tuple[int, Result]:
            return slab.stop, of_slab(slab)

        n_all = self._n_read if self._n_all is None else self._n_all
        with (
            closing(self._slabs(is_listed=is_listed)) as slabs,
            closing(in_order(with_stop, slabs, self._n_threads)) as results,
        ):
            for n_done, result in results:
                report_progress(n_done, n_all)
                yield result

    def _add_up(
        self, of_blocks: Callable[[Iterable[Block]], Sum], *, is_compiled: bool = False
    ) -> Sum | None:
        """Sum of a function of the blocks of each slab; None if there are no rows."""
        if self._n_rows == 0:
            return None
        sums = self._pass(lambda slab: of_blocks(self._blocks(slab, is_compiled=is_compiled)))
        first = next(sums, None)
        return None if first is None else sum_in_order(chain([first], sums))

    def _blocks(self, slab: Slab, *, is_compiled: bool = False) -> Iterator[Block]:
        """Members of a slab, block by block. Compiled loops tile blocks that exceed the cache."""
        n_rows = len(slab.rows)
        step = n_rows if is_compiled and self._can_skip_blocks else self._block_rows
        for low in range(0, n_rows, step):
            begin, end = slab.start + low, slab.start + min(low + step, n_rows)
            inside = self._members_within(begin, end)
            index = slice(begin, end) if isinstance(inside, slice) else begin + inside
            rows = slab.rows[low : low + step][inside]
            if rows.dtype != np.float64:
                rows = rows.astype(np.float64)
            yield rows, None if self._weights is None else self._weights[index], index

    def _rows_at(self, index: AnyArray) -> AnyArray:
        found = [np.zeros((0, self.n_features))]
        for slab in self._slabs(is_listed=True):
            low, high = np.searchsorted(index, [slab.start, slab.stop])
            found.append(slab.rows[index[low:high] - slab.start])
        return np.concatenate(found)

    def moments(self, frame: Frame) -> Moments:
        is_long = self._n_all is None or self._n_all > self._block_rows
        first = self._first_rows() if is_long and self._weights is None else None
        # Many rows near zero are summed without a copy.
        if first is not None and is_near_zero(np.asarray(first, dtype=np.float64), frame):
            sums = self._add_up(lambda blocks: sum_in_order(sums_from_zero(a) for a, *_ in blocks))
            moments = None if sums is None else sums.moments(frame)
            if moments is not None:
                self._total = sums
                return moments

        def of_blocks(blocks: Iterable[Block]) -> Moments:
            return sum_in_order(moments_of_block(frame.apply(rows), w) for rows, w, _ in blocks)

        return self._add_up(of_blocks) or no_moments(self.n_features)

    def label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None = None, *, curvature: Curvature = 0
    ) -> LabelSums:
        # One read a pass: fold the frame into the rule rather than shift and scale every row.
        # Labels come from the folded rule whenever there is one: ties must fall the same way with
        # and without scatter.
        folded, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        if sums_raw and isinstance(folded, LinearRule):
            folded = folded.knowing(self._total)
        used_rule, kind = self._tally_of(folded)

        def of_blocks(blocks: Iterable[Block]) -> _Labeled:
            between = BoundaryRows(curvature, rule.n_classes) if np.any(curvature) else None
            tally = kind(used_rule, self.n_features, centers)
            for rows, weights, index in blocks:
                used = rows if sums_raw else frame.apply(rows)
                shares = tally.add(rows if is_folded else used, used, weights, index)
                if between is not None:
                    between.add(used, weights, shares)
            return _Labeled(tally.sums(), between)

        found = self._add_up(of_blocks, is_compiled=kind is not Tally)
        if found is None:
            return no_label_sums(rule.n_classes, self.n_features)
        total = found.sums
        if found.between is not None:
            total = replace(total, curvature=found.between.scatter())
        return unfolded(used_rule.completed(total), frame) if sums_raw else rule.completed(total)

    def _tally_of(self, rule: Rule) -> tuple[Rule, type[Tally]]:
        """Compiled loops label many rows, where numba is installed (extra ``fast``)."""
        is_linear = isinstance(rule, AllButFirst) and rule.n_classes <= _MOST_CLASSES
        is_many = self._has_contiguous_rows and self.n_rows * self.n_features >= MANY
        loops = compiled_loops() if is_linear and is_many else None
        if loops is None:
            return rule, Tally
        assert isinstance(rule, AllButFirst)
        return replace(rule, may_be_by_lead=False), loops.CompiledTally

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        rule, is_folded = fold(rule, frame)

        def of_block(block: Block) -> Array:
            rows, _, index = block
            return rule.shares(rows if is_folded else frame.apply(rows), index)[0].T

        return self._of_members(of_block)

    def apply(self, function: Callable[[AnyArray], AnyArray]) -> AnyArray:
        """Results of a function of the rows of blocks, for all members, in their order."""
        return self._of_members(lambda block: function(block[0]))

    def _of_members(self, of_block: Callable[[Block], AnyArray]) -> AnyArray:
        none = of_block((np.zeros((0, self.n_features)), None, slice(0, 0)))
        results = self._pass(
            lambda slab: [of_block(block) for block in self._blocks(slab)], is_listed=True
        )
        return concatenate(chain([none], chain.from_iterable(results)), self._n_rows)


def rows_per_block(n_features: int) -> int:
    """Rows of a block that fits into the cache."""
    least, most = _BLOCK_ROWS
    fitting = _BLOCK_ENTRIES // max(1, n_features)
    return int(min(most, max(least, fitting))) // _BLOCK_MULTIPLE * _BLOCK_MULTIPLE


@cache
def compiled_loops() -> ModuleType | None:
    """The module ``loops``, ready to run; None without numba, or if that cannot compile."""
    if find_spec("numba") is None:
        return None
    try:
        from . import loops

        if not loops.is_compiled():
            return None
        loops.run_once()
    except Exception as error:  # numba reads and writes files of its own
        warnings.warn(
            f"numba is installed and cannot be used ({error!r}): NumPy does the work, more slowly. "
            "Deleting what numba keeps may help: files *.nbi and *.nbc in NUMBA_CACHE_DIR, where "
            f"that is set, else in __pycache__ beside {__file__}.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return loops


def sum_in_order(parts: Iterable[Sum]) -> Sum:
    """Sum of all parts, at least one, in their order."""
    return reduce(add, parts)


def concatenate(results: Iterable[Any], n_rows: int | None = None) -> AnyArray:
    """Results of blocks, at least one, after each other, in dtype and byte order of the first.

    If the number of rows is known beforehand, none is held twice.
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
