"""Rows larger than memory: files, memory maps, tables and batches, read a block at a time.

A pass copies the rows into blocks of equal length, by a thread that runs ahead of the arithmetic.
Rows in memory are summed by the same blocks, so that the sums are the same. A sample is drawn while
the rows are read for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._messages import quoted_list
from . import AHEAD, read_ahead
from .backends import Request, changed_error
from .memory import TILES_PER_BLOCK, Block, BlockRows
from .readers import SHOWN_NAMES, Reader, Span, reader_of

_RESERVOIR_SLACK = 1.5  # times the rows to keep are held before the others are dropped
# Rows kept in the first pass: twice what a search needs, so that another seed gives another
# sample of them.
_KEPT_ROWS = (4_000, 40_000)
_KEPT_ENTRIES = 4_000_000
_SPARE_BLOCKS = (
    AHEAD + 2
)  # besides those of the threads: read ahead, being filled, and its source
_UNKNOWN_ROWS = 10**9


def open_rows(
    X: Any,
    request: Request,
    weights: Array | None = None,
    is_member: AnyArray | None = None,
) -> FileRows:
    """Return the rows of a source, which are read a few at a time."""
    name, expected = request.name, request.feature_names
    reader = copy(X if isinstance(X, Reader) else reader_of(X, name))
    reader.name, reader.use_threads = name, request.n_threads > 1
    names = reader.feature_names
    if expected is not None and names is not None:
        reader = reader.select(list(expected))
    elif names is not None and request.n_features not in (None, reader.n_features):
        known = quoted_list(names, SHOWN_NAMES)
        raise ValueError(
            f"{name} has {reader.n_features} features, but X of fit has {request.n_features}. Its "
            f"columns are {known}, and X of fit has no names to choose among them: pass "
            "iclda.rows.open(..., columns=[...]), or a table as X."
        )
    request.check_width(reader.n_features)
    return FileRows(reader, weights, is_member, request.n_threads)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> AnyArray:
    """Return the results of a function of rows, as an array in memory."""
    return open_rows(X, request).apply(function)


def _equal_blocks(
    spans: Iterable[Span], reader: Reader, dtype: Any, n_rows: int
) -> Iterator[Block]:
    """Yield blocks of ``n_rows`` rows, the last one of the rest: the same for any size of spans."""
    filled = 0
    for span in spans:
        done = 0
        is_own = not isinstance(
            span.part, (list, np.ndarray)
        )  # a slice is an array of its own
        if filled == 0 and span.n_rows == n_rows and is_own:  # needs no copy
            rows = np.asarray(span.part[span.skip : span.skip + n_rows])
            yield Block(span.start, rows, span.where)
            continue
        while done < span.n_rows:
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty(
                    (n_rows, reader.n_features), dtype, order=reader.order
                )
                start, where = span.start + done, span.where
            n_taken = min(n_rows - filled, span.n_rows - done)
            span.read(buffer[filled : filled + n_taken], done)
            filled, done = filled + n_taken, done + n_taken
            if filled == n_rows:
                yield Block(start, buffer, where)
                del buffer  # now held by the consumer alone
                filled = 0
    if filled:
        yield Block(start, buffer[:filled], where)


class Reservoir:
    """The rows with the smallest of random keys, in the order they came in.

    The number of rows need not be known. Every row draws its key in turn, so that the sample is the
    same for any size of blocks.
    """

    def __init__(self, n_kept: int, n_features: int, dtype: Any, seed: int) -> None:
        self._n_kept = n_kept
        self._rng = np.random.default_rng(seed)
        self._limit = 1.0  # rows with larger keys are not among those kept
        # Arrays of keys, of row indices and of rows.
        self._held: list[tuple[AnyArray, AnyArray, AnyArray]] = [
            (np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((0, n_features), dtype))
        ]
        self._n_held = self.n_seen = 0

    def add(self, rows: AnyArray, index: AnyArray) -> None:
        keys = self._rng.random(len(rows))
        chosen = np.flatnonzero(keys < self._limit)
        self._held.append((keys[chosen], index[chosen], rows[chosen]))
        self._n_held += len(chosen)
        self.n_seen += len(rows)
        if self._n_held > _RESERVOIR_SLACK * self._n_kept:
            self._shrink()

    def sample(self) -> tuple[AnyArray, AnyArray]:
        """Return the rows and their indices."""
        self._shrink()
        _, index, rows = self._held[0]
        return rows, index

    def _shrink(self) -> None:
        keys, index, rows = (
            np.concatenate(arrays) for arrays in zip(*self._held, strict=True)
        )
        if len(keys) > self._n_kept:
            kept = np.sort(np.argpartition(keys, self._n_kept)[: self._n_kept])
            self._limit = float(keys[kept].max())
            keys, index, rows = keys[kept], index[kept], rows[kept]
        self._held, self._n_held = [(keys, index, rows)], len(keys)


class FileRows(BlockRows):
    """All rows of a reader, or those that ``is_member`` marks."""

    def __init__(
        self,
        reader: Reader,
        weights: Array | None,
        is_member: AnyArray | None,
        n_threads: int,
    ) -> None:
        super().__init__(reader.n_rows, reader.n_features, weights, is_member)
        self._reader = self.source = reader
        self._dtype = reader.find_dtype()
        self.feature_names = reader.feature_names
        self._kept: tuple[AnyArray, AnyArray] | None = (
            None  # rows of a sample and their indices
        )
        self._looked: AnyArray | None = (
            None  # rows of a sample drawn before the first pass
        )
        # Tiles of a block, whatever the number of threads; then for how many there is memory.
        tile_bytes = self._tile_rows * reader.n_features * self._dtype.itemsize
        n_fitting = reader.memory // ((_SPARE_BLOCKS + 1) * max(1, tile_bytes))
        n_tiles = min(TILES_PER_BLOCK, max(1, n_fitting))
        n_spare = reader.memory // max(1, n_tiles * tile_bytes) - _SPARE_BLOCKS
        self._block_rows = n_tiles * self._tile_rows
        self._n_threads = max(1, min(n_threads, n_spare // (AHEAD + 1)))

    @property
    def n_rows(self) -> int:
        """Number of rows; an upper bound of a billion before the first pass if it is unknown."""
        return _UNKNOWN_ROWS if self._n_rows is None else self._n_rows

    def count(self) -> int:
        if self._n_rows is None:
            self._n_rows = self._reader.count()
        return self._n_rows

    # Passes over all rows.

    def _blocks(self, *, is_listed: bool = False) -> Generator[Block, None, None]:
        """Yield all rows; in the first pass they are checked, and a sample of them is kept."""
        is_first = self._kept is None and not is_listed
        return read_ahead(
            self._read_blocks(is_checked=is_listed or is_first, is_first=is_first)
        )

    def _read_blocks(self, *, is_checked: bool, is_first: bool) -> Iterator[Block]:
        """Yield all rows, of a source that must not change from the first pass to the last."""
        reader, (least, most) = self._reader, _KEPT_ROWS
        n_kept = min(most, max(least, _KEPT_ENTRIES // (1 + self.n_features)))
        reservoir = Reservoir(n_kept, self.n_features, self._dtype, seed=0)
        n_read = 0
        reader.check_unchanged()
        spans = reader.spans(self._block_rows)
        for block in _equal_blocks(spans, reader, self._dtype, self._block_rows):
            n_read = block.stop
            self._check_length(n_read, is_end=False)
            if is_checked:
                reader.check_finite(block.rows, block.start, block.where)
            if is_first:
                inside = self._members_within(block.start, block.stop)
                reservoir.add(
                    block.rows[inside], block.start + np.arange(len(block.rows))[inside]
                )
            yield block
        reader.check_unchanged()
        self._check_length(n_read, is_end=True)
        self._n_read = n_read
        if is_first:
            self._n_rows, self._kept = reservoir.n_seen, reservoir.sample()

    def _check_length(self, n_read: int, *, is_end: bool) -> None:
        """Raise ValueError if rows are not as many as was said, or as in an earlier pass."""
        expected = self._reader.n_rows if self._n_read is None else self._n_read
        if expected is None or n_read == expected or (n_read < expected and not is_end):
            return
        name, given = self._reader.name, f"{n_read} rows" if is_end else "more"
        if self._n_read is not None:
            raise changed_error(name, f"it gave {given}, and {expected} rows before")
        raise ValueError(
            f"{name} was expected to give {expected} rows, but gave {given}."
        )

    # Some rows.

    def _first_rows(self) -> AnyArray | None:
        return self._looked if self.unit is None else None

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Return rows and their indices: of those kept in the first pass, or read now."""
        if self._kept is not None and (
            n < self.n_rows or len(self._kept[0]) == self.n_rows
        ):
            rows, index = self._kept
            if n >= len(rows):
                return rows, index
            chosen = np.sort(
                np.random.default_rng(seed).choice(len(rows), n, replace=False)
            )
            return rows[chosen], index[chosen]
        is_all = n >= self.n_rows
        index = self._members if is_all else self._cheap_members(n)
        rows = self._looked = self._reader.read_rows(index, must_exist=is_all)
        if self._n_rows is None and len(rows) == 0:
            self._n_rows = 0  # it ended before its first row
        return rows, index[: len(rows)]

    def _cheap_members(self, n: int) -> AnyArray:
        """Return at most ``n`` indices of members, cheap to read and far apart if possible."""
        index = self._reader.spread(n)
        if self._is_member is None:
            return index
        index = index[self._is_member[index]]
        if 4 * len(index) >= n:
            return index
        members = self._members
        return members[np.unique(np.linspace(0, len(members) - 1, n).astype(np.int64))]
