"""Rows larger than memory: files, memory maps, tables and batches, read a block at a time.

A pass copies the rows into blocks of equal length, by a thread that runs ahead of the arithmetic.
Rows in memory are summed by the same blocks, so that the sums are the same. A sample is drawn while
the rows are read for the first time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from copy import copy
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from . import readers
from .backends import (
    KIND_BY_KEY,
    KINDS,
    SUFFIXES,
    Request,
    changed_error,
    check_finite,
    find_kind,
    is_path,
)
from .memory import TILES_PER_BLOCK, Block, BlockRows
from .passes import AHEAD, read_ahead
from .readers import Reader, Span, shorten

_PIECE_ROWS = 1024  # rows read at once where a few are wanted
_RESERVOIR_SLACK = 1.5  # times the rows to keep are held before the others are dropped
# Rows kept in the first pass: twice what a search needs, so that another seed gives another
# sample of them.
_KEPT_ROWS = (4_000, 40_000)
_KEPT_ENTRIES = 4_000_000
_SPARE_BLOCKS = AHEAD + 2  # besides those of the threads: read ahead, being filled, and its source
_UNKNOWN_ROWS = 10**9


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> FileRows:
    """Return the rows of a source, which are read a few at a time."""
    name, expected = request.name, request.feature_names
    reader = copy(X if isinstance(X, Reader) else reader_of(X, name))
    reader.name, reader.use_threads = name, request.n_threads > 1
    names = reader.feature_names
    if expected is not None and names is not None:
        reader = reader.select(list(expected))
    elif names is not None and request.n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name} has {reader.n_features} features, but X of fit has {request.n_features}. Its "
            f"columns are {shorten(names)}, and X of fit has no names to choose among them: pass "
            "iclda.rows.open(..., columns=[...]), or a table as X."
        )
    request.check_width(reader.n_features)
    return FileRows(reader, weights, is_member, request.n_threads)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> AnyArray:
    """Return the results of a function of rows, as an array in memory."""
    return open_rows(X, request).apply(function)


# Which files, and which reader.


def reader_of(X: Any, name: str) -> Reader:
    """Return a reader of paths, or of a kind of rows that the files backend reads."""
    kind, source = find_kind(X), X
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind = KIND_BY_KEY["numpy.memmap"]
    if kind is None or kind.backend != "files":
        source = _files_of(X, name)
        kind = KIND_BY_KEY[source[0].suffix.lower()]
    reader: Reader = getattr(readers, kind.reader)(source, name)
    reader.words = kind.words
    return reader


def _files_of(X: Any, name: str) -> list[Path]:
    """Return the files of paths, all of one format; TypeError for what nothing here reads."""
    paths = [X] if is_path(X) else X
    if not isinstance(paths, (list, tuple)) or not paths or not all(map(is_path, paths)):
        others = [kind.words for kind in KINDS if kind.reader and kind.keys[0][0] != "."]
        raise TypeError(
            f"{name} must be a path, a list of at least one path, or one of {', '.join(others)}, "
            f"got {type(X).__name__}. Other arrays and tables, and what functions of iclda.rows "
            "return, are passed to a classifier as they are; for a list of them, and anything else "
            "that can be read again, there is iclda.rows.from_batches."
        )
    files = [file for path in paths for file in _expand(os.fspath(path), name)]
    unknown = [file for file in files if file.suffix.lower() not in SUFFIXES]
    if unknown:
        raise ValueError(
            f"{name}: unknown format of {unknown[0]}. Files that end in {', '.join(SUFFIXES)} are "
            "read; for others pass an h5py dataset, a pyarrow dataset, a polars LazyFrame, or "
            "iclda.rows.from_batches."
        )
    if len({KIND_BY_KEY[file.suffix.lower()] for file in files}) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(f"{name} mixes files of several formats ({shown}): pass those of one.")
    return files


def _expand(path: str, name: str) -> list[Path]:
    """Return the files of a folder or pattern in the order of their names.

    Hidden files of a folder are left out: engines write _SUCCESS, _metadata and temporary files.
    """
    path = path if os.path.exists(path) else os.path.expanduser(path)
    if os.path.isdir(path):
        every: Iterable[Path] = [
            file
            for file in Path(path).rglob("*")
            if file.suffix.lower() in SUFFIXES
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
        ]
    else:
        every = [Path(path)] if os.path.isfile(path) else map(Path, glob(path, recursive=True))
    files = sorted(file for file in every if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"{name}: there is no file {path}, nor in it one that ends in {', '.join(SUFFIXES)}."
        )
    return files


# Rows.


def _equal_blocks(
    spans: Iterable[Span], reader: Reader, dtype: Any, n_rows: int
) -> Iterator[Block]:
    """Yield blocks of ``n_rows`` rows, the last one of the rest: the same for any size of spans."""
    filled = 0
    for span in spans:
        done = 0
        if filled == 0 and span.n_rows == n_rows and span.is_read_by_slices:  # needs no copy
            rows = np.asarray(span.part[span.skip : span.skip + n_rows])
            yield Block(span.start, rows, span.where)
            continue
        while done < span.n_rows:
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty((n_rows, reader.n_features), dtype, order=reader.order)
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


def _check_block(block: Block, reader: Reader) -> None:
    index, names = range(block.start, block.stop), reader.feature_names
    check_finite(block.rows, reader.name, names, index=index, where=f" ({block.where})")


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
        keys, index, rows = (np.concatenate(arrays) for arrays in zip(*self._held, strict=True))
        if len(keys) > self._n_kept:
            kept = np.sort(np.argpartition(keys, self._n_kept)[: self._n_kept])
            self._limit = float(keys[kept].max())
            keys, index, rows = keys[kept], index[kept], rows[kept]
        self._held, self._n_held = [(keys, index, rows)], len(keys)


class FileRows(BlockRows):
    """All rows of a reader, or those that ``is_member`` marks."""

    def __init__(
        self, reader: Reader, weights: Array | None, is_member: AnyArray | None, n_threads: int
    ) -> None:
        super().__init__(reader.n_rows, reader.n_features, weights, is_member)
        self._reader = self.source = reader
        self._dtype = reader.find_dtype()
        self.feature_names = reader.feature_names
        self._kept: tuple[AnyArray, AnyArray] | None = None  # rows of a sample and their indices
        self._looked: AnyArray | None = None  # rows of a sample drawn before the first pass
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
        return read_ahead(self._read_blocks(is_checked=is_listed or is_first, is_first=is_first))

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
                _check_block(block, reader)
            if is_first:
                inside = self._members_within(block.start, block.stop)
                reservoir.add(block.rows[inside], block.start + np.arange(len(block.rows))[inside])
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
        raise ValueError(f"{name} was expected to give {expected} rows, but gave {given}.")

    # Some rows.

    def _first_rows(self) -> AnyArray | None:
        return self._looked if self.unit is None else None

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Return rows and their indices: of those kept in the first pass, or read now."""
        if self._kept is not None and (n < self.n_rows or len(self._kept[0]) == self.n_rows):
            rows, index = self._kept
            if n >= len(rows):
                return rows, index
            chosen = np.sort(np.random.default_rng(seed).choice(len(rows), n, replace=False))
            return rows[chosen], index[chosen]
        is_all = n >= self.n_rows
        index = self._members if is_all else self._cheap_members(n)
        rows = self._looked = self._read_rows(index, must_exist=is_all)
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

    def _read_rows(self, index: AnyArray, *, must_exist: bool) -> AnyArray:
        """Return the rows at ascending indices; fewer if a source of unknown length ends before.

        ValueError if they, or rows read beside them, are not finite.
        """
        reader, n_read = self._reader, 0
        rows = np.empty((len(index), self.n_features), self._dtype)
        if len(index) == 0:
            return rows
        reader.check_unchanged()
        for span in reader.spans(_PIECE_ROWS, index):
            stop = int(np.searchsorted(index, span.stop))
            if stop == n_read:
                continue
            into = np.empty((span.n_rows, self.n_features), self._dtype)
            block = Block(span.start, into, span.where)
            span.read(block.rows, 0)
            _check_block(block, reader)
            rows[n_read:stop] = block.rows[index[n_read:stop] - span.start]
            n_read = stop
        reader.check_unchanged()
        if n_read < len(index) and (must_exist or reader.n_rows is not None):
            raise changed_error(reader.name, f"it ended before its row {index[n_read]}")
        return rows[:n_read]
