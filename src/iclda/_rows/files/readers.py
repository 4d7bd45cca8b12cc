"""What reads a source, and the chunks of rows that come off it; .npy files and memory maps.

Readers know rows, not sums. Those of tables are in ``tables.py`` and ``batches.py``; ``source.py``
chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from ..._core.types import AnyArray
from ..base import changed

DEFAULT_MEMORY = 2**28  # bytes held of the rows at a time
_COUNTED = 2**16  # rows read at once to be counted
_RUNS = 64  # places that a pilot looks at
_PIECE = 1024  # rows around one that is wanted


class Reader:
    """Rows in a fixed order, to be read any number of times. Subclasses supply ``chunks``."""

    kind: str  # what is read, in words
    n_rows: int | None  # None: not known before all were read
    n_rows_by = ""  # who said so, should it turn out wrong
    n_features: int
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False  # to decode what was read, where that takes longer than the arithmetic

    def __init__(self, name: str, files: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.name = name  # of the argument, for messages
        self.watch(files)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the blocks that rows are copied into."""
        raise NotImplementedError

    def named(self, name: str) -> Self:
        """The same rows under another name."""
        other = copy(self)
        other.name = name
        return other

    def selected(self, names: Sequence[str]) -> Reader:
        """The same rows, of these columns only; of a source without names, all columns."""
        return self

    def watch(self, files: Sequence[str | os.PathLike[str]]) -> None:
        """Remember size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file, self.name) for file in files}

    def check_unchanged(self) -> None:
        """ValueError that names a file of another size or time of change than when it was opened.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            size, _ = now = _stamp(file, self.name)
            if size != first[0]:
                raise changed(self.name, f"{file} has {size} bytes, and had {first[0]} at first")
            if now != first:
                raise changed(self.name, f"{file} was written to since it was opened")

    def spread(self, n: int) -> AnyArray:
        """At most ``n`` row numbers for a first look: cheap to read, and far apart if possible."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Exact number of rows; reads them if it is not known otherwise."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(len(chunk) for chunk in self.chunks(_COUNTED))

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        """All rows, about ``n_rows`` at a time; or chunks that hold the rows of wanted numbers."""
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str], name: str) -> tuple[int, int]:
    """Size and time of change."""
    try:
        status = os.stat(file)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(file)}.") from error
    return status.st_size, status.st_mtime_ns


class Chunk(Protocol):
    """Consecutive rows of a source, the first of them number ``start``."""

    start: int
    where: str  # the file or batch they come from, for messages

    def __len__(self) -> int: ...

    def fill(self, target: AnyArray, begin: int) -> None:
        """Copy rows from the ``begin``-th on into a (n, d) array."""
        ...


class ArrayChunk:
    """Rows of an array in memory, or mapped into it; ``check`` is called before every read."""

    def __init__(
        self, start: int, where: str, rows: AnyArray, check: Callable[[], None] = lambda: None
    ) -> None:
        self.start, self.where = start, where
        self._rows, self._check = rows, check

    def __len__(self) -> int:
        return len(self._rows)

    def fill(self, target: AnyArray, begin: int) -> None:
        self._check()
        target[...] = self._rows[begin : begin + len(target)]


class TableChunk:
    """Rows of a table, column by column."""

    def __init__(self, start: int, where: str, columns: Sequence[AnyArray]) -> None:
        self.start, self.where = start, where
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def fill(self, target: AnyArray, begin: int) -> None:
        for j, column in enumerate(self._columns):
            target[:, j] = column[begin : begin + len(target)]


class StoredChunk:
    """Rows that lie one after the other in an open file, ``step`` bytes apart."""

    def __init__(
        self, start: int, where: str, file: RawIOBase, offset: int, n_rows: int, step: int
    ) -> None:
        self.start, self.where = start, where
        self._file, self._offset = file, offset
        self._n_rows, self._step = n_rows, step

    def __len__(self) -> int:
        return self._n_rows

    def fill(self, target: AnyArray, begin: int) -> None:
        _read_into(self._file, self._offset + begin * self._step, target, self.where)


class StoredColumns(StoredChunk):
    """Rows of an open file in which columns lie one after the other, ``step`` bytes apart."""

    def fill(self, target: AnyArray, begin: int) -> None:
        offset = self._offset + begin * target.itemsize
        for j, column in enumerate(target.T):
            _read_into(self._file, offset + j * self._step, column, self.where)


def _read_into(file: RawIOBase, offset: int, target: AnyArray, where: str) -> None:
    """Read, not map: what is not there any more is an error, not the end of the process."""
    rows = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
    left = memoryview(rows.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    file.seek(offset)
    while left:
        n_read = file.readinto(left)
        if not n_read:
            raise OSError(f"{where} ends {len(left)} bytes early: it was cut short.")
        left = left[n_read:]
    if rows is not target:
        target[...] = rows


def rows_of(chunk: Chunk, n_features: int, dtype: Any) -> AnyArray:
    """All rows of a chunk."""
    rows = np.empty((len(chunk), n_features), dtype)
    chunk.fill(rows, 0)
    return rows


@dataclass(frozen=True)
class _Stored:
    """What the header of a .npy file says."""

    path: Path
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    offset: int
    is_fortran: bool


class NumpyFiles(Reader):
    """The rows of .npy files, one file after the other."""

    kind = ".npy files"

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._files = [_stored(file, name) for file in files]
        first = self._files[0]
        for other in self._files[1:]:
            if (other.n_features, other.dtype) != (first.n_features, first.dtype):
                raise ValueError(
                    f"{name}: {other.path} holds {other.n_features} columns of {other.dtype}, but "
                    f"{first.path} holds {first.n_features} of {first.dtype}. All must be alike: "
                    "pass those that are, or save the others anew."
                )
        self.n_features, self._dtype = first.n_features, first.dtype
        self.n_rows = sum(file.n_rows for file in self._files)
        self.order = "F" if any(file.is_fortran for file in self._files) else "C"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def spread(self, n: int) -> AnyArray:
        assert self.n_rows is not None
        return runs(self.n_rows, n)

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for file in self._files:
            inside = pieces(wanted, begin, file.n_rows)
            if inside:
                yield from _read(file, begin, inside)
            begin += file.n_rows


def runs(n_rows: int, n: int) -> AnyArray:
    """About ``n`` of the numbers below ``n_rows``, in runs that lie apart."""
    if n >= n_rows:
        return np.arange(n_rows)
    n_runs = min(_RUNS, n)
    starts = np.linspace(0, n_rows - n // n_runs, n_runs).astype(np.int64)
    return np.unique((starts[:, None] + np.arange(n // n_runs)).ravel())


def pieces(wanted: AnyArray | None, begin: int, n_rows: int) -> list[tuple[int, int]]:
    """Ranges within a part of ``n_rows`` rows from number ``begin`` on: all of it, or pieces."""
    if n_rows == 0 or wanted is None:
        return [(0, n_rows)] if n_rows else []
    low, high = np.searchsorted(wanted, [begin, begin + n_rows])
    starts = np.unique((wanted[low:high] - begin) // _PIECE) * _PIECE
    return [(int(start), min(int(start) + _PIECE, n_rows)) for start in starts]


def _read(file: _Stored, begin: int, inside: list[tuple[int, int]]) -> Iterator[Chunk]:
    where, item = str(file.path), file.dtype.itemsize
    row_bytes = file.n_features * item
    kind: type[StoredChunk] = StoredColumns if file.is_fortran else StoredChunk
    step, span = (item, file.n_rows * item) if file.is_fortran else (row_bytes, row_bytes)
    with open(file.path, "rb", buffering=0) as opened:
        for low, high in inside:
            yield kind(begin + low, where, opened, file.offset + low * step, high - low, span)


def _stored(path: Path, name: str) -> _Stored:
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version > (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
            offset = file.tell()
    except ValueError as error:
        raise OSError(f"{name}: {path} is no .npy file that can be read ({error}).") from error
    if len(shape) != 2:
        raise ValueError(f"{name}: {path} must hold a 2-d array, rows x features, got {shape}.")
    check_dtype(dtype, f"{name}: {path}")
    needed = offset + shape[0] * shape[1] * dtype.itemsize
    size = os.path.getsize(path)
    if size < needed:
        raise OSError(
            f"{name}: {path} has {size} bytes, but {shape[0]} x {shape[1]} numbers of {dtype} take "
            f"{needed}: it was cut short."
        )
    return _Stored(path, shape[0], shape[1], dtype, offset, bool(is_fortran and shape[1] > 1))


def check_dtype(dtype: np.dtype[Any], where: str) -> None:
    """ValueError for what are no real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{where} holds {dtype}, and must hold real numbers: convert it to a dtype of numbers, "
            "or leave out the columns that hold none."
        )


class MappedArray(Reader):
    """The rows of an array, as a rule one mapped from a file larger than memory."""

    kind = "an array"

    def __init__(self, X: AnyArray, name: str) -> None:
        file = getattr(X, "filename", None)
        super().__init__(name, [file] if file and os.path.exists(file) else [])
        if X.ndim != 2:
            raise ValueError(
                f"{name} must be 2-d, rows x features, got an array of shape {X.shape}."
            )
        check_dtype(X.dtype, name)
        self._X = X
        self.n_rows = len(X)
        self.n_features = int(X.shape[1])
        self.order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    def spread(self, n: int) -> AnyArray:
        return runs(len(self._X), n)

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        for low, high in pieces(wanted, 0, len(self._X)):
            # To read what was cut off a mapped file would end the process.
            yield ArrayChunk(low, self.name, self._X[low:high], self.check_unchanged)
