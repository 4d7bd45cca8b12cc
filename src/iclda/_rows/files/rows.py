"""Sums over rows that are read a slab at a time.

A pass copies the rows into slabs of equal length, by a thread that runs ahead of the arithmetic.
The slabs are the groups of blocks that rows in memory are summed by: the sums are the same. A
sample is drawn while the rows are read for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from ..._core.frame import Frame
from ..._core.moments import is_near_zero
from ..._core.types import AnyArray, Array
from ..base import Block, BlockRows, OfBlocks, Sum, added, changed, check_finite
from ..memory import GROUP, rows_per_block
from ..progress import report
from ..threads import AHEAD, in_order, read_ahead
from .readers import DEFAULT_MEMORY, Chunk, Reader, rows_of

_AT_ONCE = 4096  # rows of a chunk when a few rows are read
_SLACK = 1.5  # times the rows to keep: when to throw away the others
# Rows kept in the first pass: twice what a search needs, so that another seed gives another
# sample of them.
_KEPT_ROWS = (4_000, 40_000)
_KEPT_ENTRIES = 4_000_000
_SPARE = AHEAD + 2  # slabs besides those of the threads: read ahead, being filled, and what from
_MANY = 10**9
Result = TypeVar("Result")


@dataclass(frozen=True)
class Slab:
    """Consecutive rows in memory, the first of them number ``start``."""

    number: int | None  # None: not one of those that all rows are cut into
    start: int
    rows: AnyArray
    where: str  # the file or batch where they begin

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)

    def __str__(self) -> str:
        block = "a block" if self.number is None else f"block {self.number}"
        return f"{block} (rows {self.start} to {self.stop - 1}, {self.where})"

    def check_finite(self, name: str, feature_names: Sequence[str] | None) -> None:
        """ValueError that names block, row and column of the first NaN or infinity."""
        numbers = range(self.start, self.stop)
        check_finite(self.rows, name, feature_names, numbers=numbers, where=f": {self}")


def cut(chunks: Iterable[Chunk], reader: Reader, n_rows: int) -> Iterator[Slab]:
    """Slabs of ``n_rows`` rows, the last one of what is left: the same for any size of chunks."""
    dtype, number, filled = reader.dtype, 0, 0
    for chunk in chunks:
        done = 0
        while done < len(chunk):
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty((n_rows, reader.n_features), dtype, order=reader.order)
                start, where = chunk.start + done, chunk.where
            n_taken = min(n_rows - filled, len(chunk) - done)
            chunk.fill(buffer[filled : filled + n_taken], done)
            filled, done = filled + n_taken, done + n_taken
            if filled == n_rows:
                yield Slab(number, start, buffer, where)
                del buffer  # it is the consumer's now
                number, filled = number + 1, 0
    if filled:
        yield Slab(number, start, buffer[:filled], where)


def rows_at(reader: Reader, numbers: AnyArray, *, must_exist: bool) -> AnyArray:
    """The rows of these numbers, which ascend; fewer if a source of unknown length ends before.

    ValueError if they, or rows read beside them, are not finite.
    """
    found = np.empty((len(numbers), reader.n_features), reader.dtype)
    n_found = 0
    if len(numbers) == 0:
        return found
    reader.check_unchanged()
    for chunk in reader.chunks(_AT_ONCE, numbers):
        stop = int(np.searchsorted(numbers, chunk.start + len(chunk)))
        if stop == n_found:
            continue
        rows = rows_of(chunk, reader.n_features, reader.dtype)
        slab = Slab(None, chunk.start, rows, chunk.where)
        slab.check_finite(reader.name, reader.feature_names)
        found[n_found:stop] = rows[numbers[n_found:stop] - chunk.start]
        n_found = stop
    reader.check_unchanged()
    if n_found < len(numbers) and (must_exist or reader.n_rows is not None):
        raise ValueError(
            f"{reader.name} ended before its row {numbers[n_found]}{reader.n_rows_by}: a source is "
            "read several times, and must give as many rows as were expected, the same every time."
        )
    return found[:n_found]


def first_look(reader: Reader, is_member: AnyArray | None, n: int) -> AnyArray:
    """At most ``n`` numbers of members, cheap to read and far apart if possible."""
    numbers = reader.spread(n)
    if is_member is None:
        return numbers
    numbers = numbers[is_member[numbers]]
    if 4 * len(numbers) >= n:
        return numbers
    members = np.flatnonzero(is_member)
    return members[np.unique(np.linspace(0, len(members) - 1, n).astype(np.int64))]


class Reservoir:
    """The rows with the smallest of random keys, in the order they came in.

    How many rows there will be need not be known. Every row draws its key in turn, so that the
    sample is the same for any size of blocks.
    """

    def __init__(self, n_kept: int, n_features: int, dtype: Any, seed: int) -> None:
        self._n_kept = n_kept
        self._rng = np.random.default_rng(seed)
        self._limit = 1.0  # rows with larger keys are not among those kept
        self._keys = [np.zeros(0)]
        self._numbers = [np.zeros(0, dtype=np.int64)]
        self._rows = [np.zeros((0, n_features), dtype)]
        self._n_held = 0

    def add(self, rows: AnyArray, numbers: AnyArray) -> None:
        """Rows, and their numbers in the source."""
        keys = self._rng.random(len(rows))
        chosen = np.flatnonzero(keys < self._limit)
        self._keys.append(keys[chosen])
        self._numbers.append(numbers[chosen])
        self._rows.append(rows[chosen])
        self._n_held += len(chosen)
        if self._n_held > _SLACK * self._n_kept:
            self._shrink()

    def drawn(self) -> tuple[AnyArray, AnyArray]:
        """Rows and their numbers."""
        self._shrink()
        return self._rows[0], self._numbers[0]

    def _shrink(self) -> None:
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        rows = np.concatenate(self._rows)
        if len(keys) > self._n_kept:
            kept = np.sort(np.argpartition(keys, self._n_kept)[: self._n_kept])
            self._limit = float(keys[kept].max())
            keys, numbers, rows = keys[kept], numbers[kept], rows[kept]
        self._keys, self._numbers, self._rows = [keys], [numbers], [rows]
        self._n_held = len(keys)


class FileRows(BlockRows):
    """All rows of a reader, or those that ``is_member`` marks."""

    def __init__(
        self,
        reader: Reader,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        *,
        n_threads: int = 1,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        super().__init__(reader.n_rows, weights, is_member)
        self._reader = reader
        self._block_rows = rows_per_block(reader.n_features)
        self._slab_rows, self._n_threads = self._sizes(n_threads, memory)
        self._n_read: int | None = None  # rows of the last pass, which later ones must give too
        self._kept: tuple[AnyArray, AnyArray] | None = None  # rows of a sample and their numbers
        self._looked: AnyArray | None = None  # rows of a sample drawn before the first pass
        self.source: object = None  # what to open again

    def _sizes(self, n_threads: int, memory: int) -> tuple[int, int]:
        """Rows of a slab, whatever the number of threads; then how many there is memory for."""
        block = self._block_rows * self._reader.n_features * self._reader.dtype.itemsize
        n_blocks = min(GROUP, max(1, memory // ((_SPARE + 1) * max(1, block))))
        n_spare = memory // max(1, n_blocks * block) - _SPARE
        return n_blocks * self._block_rows, max(1, min(n_threads, n_spare // (AHEAD + 1)))

    @property
    def n_rows(self) -> int:
        """A billion before the first pass, if the source does not know it."""
        return _MANY if self._n_rows is None else self._n_rows

    def count(self) -> int:
        """Exact number of rows; reads them if it is not known otherwise."""
        if self._n_rows is None:
            self._n_rows = self._reader.count()
        return self._n_rows

    @property
    def n_features(self) -> int:
        return self._reader.n_features

    @property
    def feature_names(self) -> list[str] | None:
        return self._reader.feature_names

    # Passes over all rows.

    def _added_up(self, of_blocks: OfBlocks[Sum], *, is_compiled: bool = False) -> Sum | None:
        if self._n_rows == 0:
            return None
        slabs = self._slabs() if self._kept is not None else self._first_slabs()
        sums = self._pass(slabs, lambda slab: of_blocks(self._blocks(slab)))
        for first in sums:
            return added(chain([first], sums))
        return None

    def _is_summed_from_zero(self, frame: Frame) -> bool:
        is_long = self._reader.n_rows is None or self._reader.n_rows > self._block_rows
        if self._weights is not None or not is_long or self._looked is None:
            return False
        return is_near_zero(np.asarray(self._looked, dtype=np.float64), frame)

    def _pass(self, slabs: Iterator[Slab], of_slab: Callable[[Slab], Result]) -> Iterator[Result]:
        """Results of a function of all slabs, in order, while the next ones are read."""
        n_all = self._n_read if self._reader.n_rows is None else self._reader.n_rows

        def numbered(slab: Slab) -> tuple[int, Result]:
            return slab.stop, of_slab(slab)

        with (
            closing(read_ahead(slabs)) as ahead,
            closing(in_order(numbered, ahead, self._n_threads)) as results,
        ):
            for n_done, result in results:
                report(n_done, n_all)
                yield result

    def _slabs(self) -> Iterator[Slab]:
        """All rows, of a source that must not change from the first pass to the last."""
        self._reader.check_unchanged()
        n_read = 0
        for slab in cut(self._reader.chunks(self._slab_rows), self._reader, self._slab_rows):
            n_read = slab.stop
            self._check_length(n_read, is_end=False)
            yield slab
        self._reader.check_unchanged()
        self._check_length(n_read, is_end=True)
        self._n_read = n_read

    def _checked_slabs(self) -> Iterator[Slab]:
        """All rows, which must be finite."""
        for slab in self._slabs():
            slab.check_finite(self._reader.name, self.feature_names)
            yield slab

    def _first_slabs(self) -> Iterator[Slab]:
        """All rows, checked, and a sample of them kept."""
        least, most = _KEPT_ROWS
        n_kept = min(most, max(least, _KEPT_ENTRIES // (1 + self.n_features)))
        sample = Reservoir(n_kept, self.n_features, self._reader.dtype, seed=0)
        n_members = 0
        for slab in self._checked_slabs():
            inside = self._members_within(slab.start, slab.stop)
            numbers = slab.start + np.arange(len(slab.rows))[inside]
            sample.add(slab.rows[inside], numbers)
            n_members += len(numbers)
            yield slab
        self._n_rows, self._kept = n_members, sample.drawn()

    def _check_length(self, n_read: int, *, is_end: bool) -> None:
        """ValueError for other rows than the source, labels or weights, or earlier passes, have."""
        found = f"{n_read} rows" if is_end else "more"
        lengths = {self._reader.n_rows, _length(self._is_member), _length(self._weights)}
        for n_rows in (lengths if self._n_read is None else {self._n_read}) - {None}:
            assert n_rows is not None
            if n_read <= n_rows and not (is_end and n_read < n_rows):
                continue
            if self._n_read is not None:
                raise changed(self._reader.name, f"it gave {found}, and {n_rows} rows before")
            by = self._reader.n_rows_by if n_rows == self._reader.n_rows else ""
            raise ValueError(
                f"{self._reader.name} was expected to give {n_rows} rows{by}, but gave {found}."
            )

    # Blocks of a slab.

    def _blocks(self, slab: Slab) -> Iterator[Block]:
        n_rows = len(slab.rows)
        for low in range(0, n_rows, self._block_rows):
            high = min(low + self._block_rows, n_rows)
            yield self._block_of(slab.rows, slab.start, low, high)

    def applied(self, function: Callable[[AnyArray], AnyArray]) -> AnyArray:
        """Results of a function of the rows of blocks."""
        return self._listed(lambda block: function(block[0]))

    def _each(self, of_block: Callable[[Block], AnyArray]) -> Iterator[AnyArray]:
        def of_slab(slab: Slab) -> list[AnyArray]:
            return [of_block(block) for block in self._blocks(slab)]

        return chain.from_iterable(self._pass(self._checked_slabs(), of_slab))

    # Some rows.

    def _drawn(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Rows and their numbers: of those kept in the first pass, or read for the purpose."""
        if self._kept is not None and (n < self.n_rows or len(self._kept[0]) == self.n_rows):
            rows, numbers = self._kept
            if n >= len(rows):
                return rows, numbers
            index = np.sort(np.random.default_rng(seed).choice(len(rows), n, replace=False))
            return rows[index], numbers[index]
        is_all = n >= self.n_rows
        numbers = self._members if is_all else first_look(self._reader, self._is_member, n)
        rows = self._looked = rows_at(self._reader, numbers, must_exist=is_all)
        if self._n_rows is None and len(rows) == 0:
            self._n_rows = 0  # it ended before its first row
        return rows, numbers[: len(rows)]


def _length(array: Any) -> int | None:
    return None if array is None else len(array)
