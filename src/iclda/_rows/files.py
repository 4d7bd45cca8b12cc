"""Rows larger than memory: files, maps, tables and batches, read block by block.

In a pass, one thread copies the rows into blocks of equal length, ahead of the
arithmetic. Rows in memory are summed by blocks of the same length, so that the sums are
the same. A sample is drawn while the rows are read for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import quoted_list
from .checks import changed_error
from .kinds import reader_of
from .memory import TILES_PER_BLOCK, Block, BlockRows
from .protocol import Request
from .readers import SHOWN_NAMES, Reader, Span
from .reservoir import Reservoir
from .threads import ITEMS_AHEAD, read_ahead

# Rows kept of the first pass: twice what a search needs, so that another seed gives
# another sample of them.
_MIN_KEPT_ROWS = 4_000
_MAX_KEPT_ROWS = 40_000
_MAX_KEPT_ENTRIES = 4_000_000
# Blocks in memory besides those of the threads: those read ahead, the one that is being
# filled, and the source of its rows.
_SPARE_BLOCKS = ITEMS_AHEAD + 2
# A sample of cheap rows is taken if at least this share of it are members.
_MIN_SHARE_OF_CHEAP = 0.25
# The upper bound for a number of rows that is unknown before the first pass.
_MAX_UNKNOWN_ROWS = 10**9


def open_rows(X: Any, request: Request) -> FileRows:
    """Return the rows of a source, which are read a few at a time."""
    name = request.name
    # A reader of the user may be passed again, as another argument.
    reader = copy(X if isinstance(X, Reader) else reader_of(X, name))
    reader.name = name
    reader.use_threads = request.n_threads > 1
    names = reader.feature_names
    if names is not None and request.feature_names is not None:
        reader = reader.select(list(request.feature_names))
    elif names is not None and request.n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name} has {reader.n_features} features, but X of fit has "
            f"{request.n_features}. Its columns are "
            f"{quoted_list(names, SHOWN_NAMES)}, and X of fit has no names to choose "
            "among them: pass iclda.rows.open(..., columns=[...]), or a table as X."
        )
    request.check_width(reader.n_features)
    return FileRows(reader, request.n_threads)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> AnyArray:
    """Return the results of a function of rows, as an array in memory."""
    return open_rows(X, request).apply(function)


def _equal_blocks(
    spans: Iterable[Span], reader: Reader, dtype: Any, block_rows: int
) -> Iterator[Block]:
    """Yield blocks of ``block_rows`` rows; the last one has the rest."""
    n_filled = 0
    for span in spans:
        # Slices of files and datasets are new arrays: whole blocks are not copied.
        makes_new_arrays = not isinstance(span.part, (list, np.ndarray))
        is_whole_block = n_filled == 0 and span.n_rows == block_rows
        if is_whole_block and makes_new_arrays:
            rows = np.asarray(span.part[span.skip : span.skip + block_rows])
            yield Block(span.start, rows, span.where)
            continue
        n_copied = 0
        while n_copied < span.n_rows:
            if n_filled == 0:
                # Tables are copied column by column; BLAS takes either order.
                shape = (block_rows, reader.n_features)
                buffer = np.empty(shape, dtype, order=reader.order)
                start = span.start + n_copied
                where = span.where
            n_taken = min(block_rows - n_filled, span.n_rows - n_copied)
            span.read(buffer[n_filled : n_filled + n_taken], n_copied)
            n_filled += n_taken
            n_copied += n_taken
            if n_filled == block_rows:
                yield Block(start, buffer, where)
                # From now on only the consumer holds the block.
                del buffer
                n_filled = 0
    if n_filled:
        yield Block(start, buffer[:n_filled], where)


class FileRows(BlockRows):
    """The rows of a reader."""

    def __init__(self, reader: Reader, n_threads: int) -> None:
        super().__init__(reader.n_rows, reader.n_features)
        self.feature_names = reader.feature_names
        self._reader = reader
        self._dtype = reader.find_dtype()
        # Rows of the sample of the first pass, and their indices.
        self._kept: tuple[AnyArray, AnyArray] | None = None
        # Rows of the last sample that was read outside of a pass.
        self._looked: AnyArray | None = None
        # The size of a block does not depend on the number of threads, so that sums do
        # not. Then there are as many threads as there is memory for blocks.
        tile_bytes = self._tile_rows * reader.n_features * self._dtype.itemsize
        n_fitting = reader.memory // ((_SPARE_BLOCKS + 1) * max(1, tile_bytes))
        n_tiles = min(TILES_PER_BLOCK, max(1, n_fitting))
        self._block_rows = n_tiles * self._tile_rows
        # A thread has the block that it sums, and those whose results wait.
        n_blocks = reader.memory // max(1, n_tiles * tile_bytes)
        n_affordable = (n_blocks - _SPARE_BLOCKS) // (ITEMS_AHEAD + 1)
        self._n_threads = max(1, min(n_threads, n_affordable))

    @property
    def n_rows(self) -> int:
        """Number of rows; if it is unknown, a billion as an upper bound."""
        return _MAX_UNKNOWN_ROWS if self._n_rows is None else self._n_rows

    def count(self) -> int:
        if self._n_rows is None:
            self._n_rows = self._reader.count()
        return self._n_rows

    # Passes over all rows.

    def _blocks(self) -> Generator[Block, None, None]:
        """Yield all rows; the first pass checks them and keeps a sample."""
        is_first = self._kept is None
        return read_ahead(self._read_blocks(is_checked=is_first, is_first=is_first))

    def _listed_blocks(self) -> Generator[Block, None, None]:
        """Yield all rows, checked: results of NaN would go unnoticed in a list."""
        return read_ahead(self._read_blocks(is_checked=True, is_first=False))

    def _read_blocks(self, *, is_checked: bool, is_first: bool) -> Iterator[Block]:
        """Yield all rows of a source, which must not change from pass to pass."""
        reader = self._reader
        reservoir = Reservoir(self._n_kept, self.n_features, self._dtype, seed=0)
        n_read = 0
        reader.check_unchanged()
        spans = reader.spans(self._block_rows)
        for block in _equal_blocks(spans, reader, self._dtype, self._block_rows):
            n_read = block.stop
            # Weights and masks have no entries for more rows.
            self._check_length(n_read, is_end=False)
            if is_checked:
                reader.check_finite(block.rows, block.start, block.where)
            if is_first:
                inside = self._members_within(block.start, block.stop)
                index = block.start + np.arange(len(block.rows))[inside]
                reservoir.add(block.rows[inside], index)
            yield block
        reader.check_unchanged()
        self._check_length(n_read, is_end=True)
        self._n_read = n_read
        # Only now it is known that the sample is one of all rows.
        if is_first:
            self._n_rows = reservoir.n_seen
            self._kept = reservoir.sample()

    @property
    def _n_kept(self) -> int:
        """Number of rows that the first pass keeps."""
        n_fitting = _MAX_KEPT_ENTRIES // (1 + self.n_features)
        return min(_MAX_KEPT_ROWS, max(_MIN_KEPT_ROWS, n_fitting))

    def _check_length(self, n_read: int, *, is_end: bool) -> None:
        """Raise ValueError for another number of rows than promised or than before."""
        expected = self._reader.n_rows if self._n_read is None else self._n_read
        if expected is None or n_read == expected:
            return
        # Before the end there may be fewer rows, but not more.
        if n_read < expected and not is_end:
            return
        name = self._reader.name
        given = f"{n_read} rows" if is_end else "more"
        if self._n_read is not None:
            raise changed_error(name, f"it gave {given}, and {expected} rows before")
        raise ValueError(
            f"{name} was expected to give {expected} rows, but gave {given}."
        )

    # Some rows.

    def _first_rows(self) -> AnyArray | None:
        return self._looked if self.view is None else None

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Return rows and indices, from the sample of the first pass if it serves."""
        is_all = n >= self.n_rows
        if self._kept is not None:
            rows, index = self._kept
            # All rows are wanted only from a sample that has them all.
            if not is_all or len(rows) == self.n_rows:
                if n >= len(rows):
                    return rows, index
                rng = np.random.default_rng(seed)
                chosen = np.sort(rng.choice(len(rows), n, replace=False))
                return rows[chosen], index[chosen]
        index = self._members if is_all else self._cheap_members(n)
        rows = self._reader.read_rows(index, must_exist=is_all)
        self._looked = rows
        if self._n_rows is None and len(rows) == 0:
            # The source ended before its first row.
            self._n_rows = 0
        return rows, index[: len(rows)]

    def _cheap_members(self, n: int) -> AnyArray:
        """Return at most ``n`` members: cheap to read, if possible far apart."""
        index = self._reader.spread(n)
        if self._is_member is None:
            return index
        index = index[self._is_member[index]]
        if len(index) >= _MIN_SHARE_OF_CHEAP * n:
            return index
        # Few of the cheap rows are members: take members at equal distances.
        members = self._members
        chosen = np.linspace(0, len(members) - 1, n).astype(np.int64)
        return members[np.unique(chosen)]
