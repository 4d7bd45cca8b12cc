"""Rows larger than memory: files, memory maps, tables and batches, read a slab at a time.

A pass copies the rows into slabs of equal length, by a thread that runs ahead of the arithmetic.
The slabs are those that rows in memory are summed by: the sums are the same. A sample is drawn
while the rows are read for the first time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .backends import is_path, kind_of
from .base import Request, changed_error, check_finite, check_names
from .file_readers import Chunk, MappedArray, NumpyFiles, Reader
from .file_tables import ParquetFiles, dataset_reader, query_reader, shorten, table_reader
from .memory import GROUP, BlockRows, Slab
from .passes import AHEAD, read_ahead

_FORMATS: dict[str, type[NumpyFiles | ParquetFiles]] = {
    ".npy": NumpyFiles,
    ".parquet": ParquetFiles,
    ".pq": ParquetFiles,
}
_AT_ONCE = 4096  # rows of a chunk when a few rows are read
_SLACK = 1.5  # times the rows to keep: when to drop the others
# Rows kept in the first pass: twice what a search needs, so that another seed gives another
# sample of them.
_KEPT_ROWS = (4_000, 40_000)
_KEPT_ENTRIES = 4_000_000
_SPARE = AHEAD + 2  # slabs besides those of the threads: read ahead, being filled, and its source
_UNKNOWN_ROWS = 10**9


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> FileRows:
    """Rows of a source, read a few at a time."""
    name, expected = request.name, request.feature_names
    reader = copy(X if isinstance(X, Reader) else reader_of(X, name))
    reader.name, reader.use_threads = name, request.n_threads > 1
    found = reader.feature_names
    if expected is not None and found is not None:
        if kind_of(X) == ("pyarrow", "Table"):  # as for a small one, which is read as an array
            check_names(found, expected, name, f"Pass {name}.select(feature_names_in_).")
        reader = reader.select(list(expected))
    elif found is not None and request.n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name} has {reader.n_features} features, but X of fit has {request.n_features}. Its "
            f"columns are {shorten(found)}, and X of fit has no names to choose among them: pass "
            "iclda.rows.open(..., columns=[...]), or a table as X."
        )
    request.check_width(reader.n_features)
    return FileRows(reader, weights, is_member, n_threads=request.n_threads)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> AnyArray:
    """Results of a function of rows, as an array in memory."""
    return open_rows(X, request).apply(function)


# Which files, and which reader.


def reader_of(X: Any, name: str) -> Reader:
    """A reader of paths, a memory map, or a table or query of pyarrow and polars."""
    if isinstance(X, np.ndarray) and not (X.ndim == 1 and X.dtype.kind in "OTU"):
        return MappedArray(X, name)
    kind = kind_of(X)
    if kind == ("polars", "LazyFrame"):
        return query_reader(X, name)
    if kind == ("pyarrow", "RecordBatchReader"):
        raise TypeError(
            f"{name} is a RecordBatchReader, which can be read only once, and rows are read "
            "several times: pass the dataset or table it came from, or "
            "iclda.rows.from_batches(function that makes a new one)."
        )
    if kind == ("pyarrow", "Table"):
        return table_reader(X, name)
    if kind[0] == "pyarrow" and hasattr(X, "scanner"):
        return dataset_reader(X, name)
    _check_paths(X, name)
    files = [file for path in ([X] if is_path(X) else X) for file in _expand(os.fspath(path), name)]
    formats = {_FORMATS.get(file.suffix.lower()) for file in files}
    if len(formats) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(f"{name} mixes files of several formats ({shown}): pass those of one.")
    found = formats.pop()
    if found is None:
        raise ValueError(
            f"{name}: unknown format of {files[0]}. Files that end in "
            f"{', '.join(_FORMATS)} are read; for others pass a pyarrow dataset, a polars "
            "LazyFrame, or iclda.rows.from_batches."
        )
    return found(files, name)


def _check_paths(X: Any, name: str) -> None:
    """Raise TypeError for what nothing here reads, with what is read."""
    if is_path(X):
        return
    is_column = len(getattr(X, "shape", ())) == 1
    if is_column or isinstance(X, (set, frozenset, Iterator)):
        raise TypeError(
            f"{name} is of type {type(X).__name__}: if it holds paths, pass list({name}), in the "
            "order in which they are to be read. Rows are 2-d; batches of rows come from "
            "iclda.rows.from_batches(function that makes a new iterator)."
        )
    if not isinstance(X, (list, tuple)):
        raise TypeError(
            f"{name} must be a path, a list of paths, a NumPy memory map, a pyarrow dataset or "
            f"table, or a polars LazyFrame, got {type(X).__name__}. Other arrays and tables, and "
            "what functions of iclda.rows return, are passed to a classifier as they are; for "
            "anything else that can be read again there is iclda.rows.from_batches."
        )
    if len(X) == 0:
        raise ValueError(f"{name} is an empty list: pass the path of at least one file.")
    if not any(map(is_path, X)):
        raise TypeError(
            f"{name} is a list of {type(X[0]).__name__}, and must be one of paths. For a list of "
            "arrays or tables pass iclda.rows.from_batches(lambda: the_list)."
        )
    other = next((i for i, path in enumerate(X) if not is_path(path)), None)
    if other is not None:
        raise TypeError(
            f"{name} is a list with paths in it, and must hold nothing else: entry {other} is of "
            f"type {type(X[other]).__name__}. Save it beside the others, or pass "
            "iclda.rows.from_batches(function that yields all parts)."
        )


def _expand(path: str, name: str) -> list[Path]:
    """Files of a folder or pattern in the order of their names, without hidden ones.

    Engines leave other files beside their data: _SUCCESS, _metadata, temporary ones.
    """
    path = path if os.path.exists(path) else os.path.expanduser(path)
    if os.path.isdir(path):
        n_fixed = len(Path(path).parts)
        every = [file for file in sorted(Path(path).rglob("*")) if file.suffix.lower() in _FORMATS]
        found = [file for file in every if not _is_hidden(file.parts[n_fixed:]) and file.is_file()]
        rule = f"no file that ends in {', '.join(_FORMATS)}"
    elif os.path.exists(path):
        return [Path(path)]
    elif not has_magic(path):
        raise FileNotFoundError(f"{name}: there is no file {path}.")
    else:
        parts = Path(path).parts
        n_fixed = next(i for i, part in enumerate(parts) if has_magic(part))
        every = [Path(file) for file in sorted(glob(path, recursive=True)) if os.path.isfile(file)]
        names_hidden = _is_hidden(parts[n_fixed:])
        found = [file for file in every if names_hidden or not _is_hidden(file.parts[n_fixed:])]
        rule = "no file of that pattern (names that begin with _ or . are left out)"
    if not found:
        raise FileNotFoundError(f"{name}: {path} holds {rule}.")
    return found


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)


# Rows.


def cut(chunks: Iterable[Chunk], reader: Reader, n_rows: int) -> Iterator[Slab]:
    """Slabs of ``n_rows`` rows, the last one of the rest: the same for any size of chunks."""
    dtype, n_slabs, filled = reader.find_dtype(), 0, 0
    for chunk in chunks:
        done = 0
        while done < chunk.n_rows:
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty((n_rows, reader.n_features), dtype, order=reader.order)
                start, where = chunk.start + done, chunk.where
            n_taken = min(n_rows - filled, chunk.n_rows - done)
            chunk.fill(buffer[filled : filled + n_taken], done)
            filled, done = filled + n_taken, done + n_taken
            if filled == n_rows:
                yield Slab(start, buffer, f"block {n_slabs}", where)
                del buffer  # now held by the consumer alone
                n_slabs, filled = n_slabs + 1, 0
    if filled:
        yield Slab(start, buffer[:filled], f"block {n_slabs}", where)


def _check_slab(slab: Slab, reader: Reader) -> None:
    index, names = range(slab.start, slab.stop), reader.feature_names
    where = f": {slab.name} (rows {slab.start} to {slab.stop - 1}, {slab.where})"
    check_finite(slab.rows, reader.name, names, index=index, where=where)


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
        if self._n_held > _SLACK * self._n_kept:
            self._shrink()

    def sample(self) -> tuple[AnyArray, AnyArray]:
        """Rows and their indices."""
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
        self,
        reader: Reader,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        *,
        n_threads: int = 1,
    ) -> None:
        super().__init__(reader.n_rows, reader.n_features, weights, is_member)
        self._reader = self.source = reader
        self.feature_names = reader.feature_names
        self._kept: tuple[AnyArray, AnyArray] | None = None  # rows of a sample and their indices
        self._looked: AnyArray | None = None  # rows of a sample drawn before the first pass
        # Rows of a slab, whatever the number of threads; then for how many there is memory.
        block = self._block_rows * reader.n_features * reader.find_dtype().itemsize
        n_blocks = min(GROUP, max(1, reader.memory // ((_SPARE + 1) * max(1, block))))
        n_spare = reader.memory // max(1, n_blocks * block) - _SPARE
        self._slab_rows = n_blocks * self._block_rows
        self._n_threads = max(1, min(n_threads, n_spare // (AHEAD + 1)))

    @property
    def n_rows(self) -> int:
        """A billion before the first pass, if the number is not known."""
        return _UNKNOWN_ROWS if self._n_rows is None else self._n_rows

    def count(self) -> int:
        if self._n_rows is None:
            self._n_rows = self._reader.count()
        return self._n_rows

    # Passes over all rows.

    def _slabs(self, *, is_listed: bool = False) -> Generator[Slab, None, None]:
        """All rows; in the first pass they are checked, and a sample of them is kept."""
        is_first = self._kept is None and not is_listed
        return read_ahead(self._read_slabs(is_checked=is_listed or is_first, is_first=is_first))

    def _read_slabs(self, *, is_checked: bool, is_first: bool) -> Iterator[Slab]:
        """All rows, of a source that must not change from the first pass to the last."""
        reader, (least, most) = self._reader, _KEPT_ROWS
        n_kept = min(most, max(least, _KEPT_ENTRIES // (1 + self.n_features)))
        reservoir = Reservoir(n_kept, self.n_features, reader.find_dtype(), seed=0)
        n_read = 0
        reader.check_unchanged()
        for slab in cut(reader.chunks(self._slab_rows), reader, self._slab_rows):
            n_read = slab.stop
            self._check_length(n_read, is_end=False)
            if is_checked:
                _check_slab(slab, reader)
            if is_first:
                inside = self._members_within(slab.start, slab.stop)
                reservoir.add(slab.rows[inside], slab.start + np.arange(len(slab.rows))[inside])
            yield slab
        reader.check_unchanged()
        self._check_length(n_read, is_end=True)
        self._n_read = n_read
        if is_first:
            self._n_rows, self._kept = reservoir.n_seen, reservoir.sample()

    def _check_length(self, n_read: int, *, is_end: bool) -> None:
        """Raise ValueError if rows differ in number from labels, weights or an earlier pass."""
        found = f"{n_read} rows" if is_end else "more"
        others = [len(array) for array in (self._is_member, self._weights) if array is not None]
        lengths = [self._reader.n_rows, *others] if self._n_read is None else [self._n_read]
        for n_rows in lengths:
            if n_rows is None or n_read == n_rows or (n_read < n_rows and not is_end):
                continue
            if self._n_read is not None:
                raise changed_error(self._reader.name, f"it gave {found}, and {n_rows} rows before")
            by = self._reader.n_rows_by if n_rows == self._reader.n_rows else ""
            raise ValueError(
                f"{self._reader.name} was expected to give {n_rows} rows{by}, but gave {found}."
            )

    # Some rows.

    def _first_rows(self) -> AnyArray | None:
        return self._looked

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Rows and their indices: of those kept in the first pass, or read for the purpose."""
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
        """At most ``n`` indices of members, cheap to read and far apart if possible."""
        index = self._reader.spread(n)
        if self._is_member is None:
            return index
        index = index[self._is_member[index]]
        if 4 * len(index) >= n:
            return index
        members = self._members
        return members[np.unique(np.linspace(0, len(members) - 1, n).astype(np.int64))]

    def _read_rows(self, index: AnyArray, *, must_exist: bool) -> AnyArray:
        """The rows at ascending indices; fewer if a source of unknown length ends before.

        ValueError if they, or rows read beside them, are not finite.
        """
        reader = self._reader
        found = np.empty((len(index), self.n_features), reader.find_dtype())
        n_found = 0
        if len(index) == 0:
            return found
        reader.check_unchanged()
        for chunk in reader.chunks(_AT_ONCE, index):
            stop = int(np.searchsorted(index, chunk.stop))
            if stop == n_found:
                continue
            rows = np.empty((chunk.n_rows, self.n_features), found.dtype)
            chunk.fill(rows)
            _check_slab(Slab(chunk.start, rows, "a block", chunk.where), reader)
            found[n_found:stop] = rows[index[n_found:stop] - chunk.start]
            n_found = stop
        reader.check_unchanged()
        if n_found < len(index) and (must_exist or reader.n_rows is not None):
            raise ValueError(
                f"{reader.name} ended before its row {index[n_found]}{reader.n_rows_by}: a source "
                "is read several times, and must give as many rows as were expected, the same "
                "every time."
            )
        return found[:n_found]
