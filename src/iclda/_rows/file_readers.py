"""Readers of sources larger than memory: .npy files, memory maps, batches of arrays.

A reader gives chunks of rows; it does not sum them. Readers of tables are in ``file_tables``,
``files.reader_of`` chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import RawIOBase
from itertools import count
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np

from .._core.types import AnyArray
from .base import changed_error, check_names

DEFAULT_MEMORY = 2**28  # bytes held of the rows at a time
_COUNTED = 2**16  # rows read at once to be counted
_RUNS = 64  # places that a first look reads from
_PIECE = 1024  # rows read around one that is wanted
_COMPARED = 16  # first rows, that two calls of a factory must both begin with

# Copy rows, from an index within their part on, into a (n, d) array.
Read = Callable[[AnyArray, int], None]
# A new iterable of batches, of the columns of these names, of about so many rows, if possible.
Factory = Callable[["list[str] | None", int], Iterable[Any]]


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source, the first of them at index ``start``."""

    start: int
    n_rows: int
    where: str  # the file or batch they come from, for messages
    read: Read
    offset: int = 0  # index of the first row for ``read``

    @property
    def stop(self) -> int:
        return self.start + self.n_rows

    def fill(self, target: AnyArray, begin: int = 0) -> None:
        self.read(target, self.offset + begin)


class Reader:
    """Rows in a fixed order, to be read any number of times. Subclasses supply ``chunks``."""

    _iclda_backend = "files"
    kind: str  # what is read, for people
    n_rows: int | None = None  # None: not known before all were read
    n_rows_by = ""  # where the number comes from, should it be wrong
    n_features: int
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False  # to decode what was read, where that takes longer than the arithmetic
    _dtype: np.dtype[Any] | None = None

    def __init__(self, name: str, files: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.name = name  # of the argument, for messages
        self.watch(files)

    def __repr__(self) -> str:
        n_rows = "?" if self.n_rows is None else self.n_rows
        return f"<{n_rows} x {self.n_features} rows of {self.kind}>"

    def find_dtype(self) -> np.dtype[Any]:
        """Dtype of the arrays that rows are copied into."""
        assert self._dtype is not None
        return self._dtype

    def select(self, names: Sequence[str]) -> Reader:
        """The same rows, of these columns only; of a source without names, all columns."""
        return self

    def watch(self, files: Sequence[str | os.PathLike[str]]) -> None:
        """Store size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file, self.name) for file in files}

    def check_unchanged(self) -> None:
        """Raise ValueError for a file of another size or time of change than when it was opened.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            size, _ = now = _stamp(file, self.name)
            if size != first[0]:
                difference = f"{file} has {size} bytes, and had {first[0]} at first"
                raise changed_error(self.name, difference)
            if now != first:
                raise changed_error(self.name, f"{file} was written to since it was opened")

    def spread(self, n: int) -> AnyArray:
        """At most ``n`` row indices for a first look: cheap to read, and far apart if possible."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Exact number of rows; reads them if it is not known otherwise."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(chunk.n_rows for chunk in self.chunks(_COUNTED))

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        """All rows, about ``n_rows`` at a time; or chunks that hold the rows of wanted indices."""
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str], name: str) -> tuple[int, int]:
    try:
        status = os.stat(file)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(file)}.") from error
    return status.st_size, status.st_mtime_ns


def check_dtype(dtype: np.dtype[Any], where: str) -> None:
    """Raise ValueError unless entries are real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{where} holds {dtype}, and must hold real numbers: convert it to a dtype of numbers, "
            "or leave out the columns that hold none."
        )


# Arrays in which any row can be reached.


class _ArrayParts(Reader):
    """Rows of several arrays of equal width and dtype, one after the other."""

    def _parts(self) -> list[tuple[str, int, Read]]:
        """File name, for messages, number of rows, and reading function of each array."""
        raise NotImplementedError

    def spread(self, n: int) -> AnyArray:
        """About ``n`` row indices, in runs that lie apart."""
        assert self.n_rows is not None
        if n >= self.n_rows:
            return np.arange(self.n_rows)
        n_runs = min(_RUNS, n)
        starts = np.linspace(0, self.n_rows - n // n_runs, n_runs).astype(np.int64)
        return np.unique((starts[:, None] + np.arange(n // n_runs)).ravel())

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for where, n_part, read in self._parts():
            if wanted is None:
                yield Chunk(begin, n_part, where, read)
            else:
                low, high = np.searchsorted(wanted, [begin, begin + n_part])
                for piece in np.unique((wanted[low:high] - begin) // _PIECE).tolist():
                    start = piece * _PIECE
                    yield Chunk(begin + start, min(_PIECE, n_part - start), where, read, start)
            begin += n_part


class NumpyFiles(_ArrayParts):
    """The rows of .npy files."""

    kind = ".npy files"

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._arrays = arrays = [_StoredArray.open(file, name) for file in files]
        first = arrays[0]
        for other in arrays[1:]:
            if (other.n_features, other.dtype) != (first.n_features, first.dtype):
                raise ValueError(
                    f"{name}: {other.path} holds {other.n_features} columns of {other.dtype}, but "
                    f"{first.path} holds {first.n_features} of {first.dtype}. All must be alike: "
                    "pass those that are, or save the others anew."
                )
        self.n_features, self._dtype = first.n_features, first.dtype
        self.n_rows = sum(array.n_rows for array in arrays)
        self.order = "F" if any(array.is_fortran for array in arrays) else "C"

    def _parts(self) -> list[tuple[str, int, Read]]:
        return [(str(array.path), array.n_rows, array.read) for array in self._arrays]


@dataclass(frozen=True)
class _StoredArray:
    """A .npy file, as its header describes it."""

    path: Path
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    offset: int  # bytes before the first entry
    is_fortran: bool

    @classmethod
    def open(cls, path: Path, name: str) -> _StoredArray:
        try:
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                if version > (1, 0):
                    read = np.lib.format.read_array_header_2_0
                shape, is_fortran, dtype = read(file)
                offset = file.tell()
        except (ValueError, SyntaxError, TokenError, TypeError) as error:  # a header is Python
            raise OSError(f"{name}: {path} is no .npy file that can be read ({error}).") from error
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"{name}: {path} must hold a 2-d array, rows x features, got {shape}.")
        check_dtype(dtype, f"{name}: {path}")
        needed = offset + shape[0] * shape[1] * dtype.itemsize
        size = os.path.getsize(path)
        if size < needed:
            raise OSError(
                f"{name}: {path} has {size} bytes, but {shape[0]} x {shape[1]} numbers of {dtype} "
                f"take {needed}: it was cut short."
            )
        return cls(path, shape[0], shape[1], dtype, offset, bool(is_fortran and shape[1] > 1))

    def read(self, target: AnyArray, row: int) -> None:
        item = self.dtype.itemsize
        with open(self.path, "rb", buffering=0) as file:
            if self.is_fortran:
                for j, column in enumerate(target.T):
                    offset = self.offset + (j * self.n_rows + row) * item
                    _read_into(column, file, offset, str(self.path))
            else:
                offset = self.offset + row * self.n_features * item
                _read_into(target, file, offset, str(self.path))


def _read_into(target: AnyArray, file: RawIOBase, offset: int, where: str) -> None:
    """Read, not map: a file that was cut short is an error, not the end of the process."""
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


class MappedArray(_ArrayParts):
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
        self.n_rows, self.n_features = X.shape
        self._dtype = X.dtype
        self.order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"

    def _parts(self) -> list[tuple[str, int, Read]]:
        return [(self.name, len(self._X), self._copy)]

    def _copy(self, target: AnyArray, row: int) -> None:
        self.check_unchanged()  # to read beyond the end of a mapped file would end the process
        target[...] = self._X[row : row + len(target)]


# Batches.


class Batches(Reader):
    """The rows of all batches; no row can be reached but through those before it."""

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(name)
        self._factory = factory
        self._n_first = length(first)  # rows of the first batch, if it was read
        self.n_rows = n_rows

    def _read_of(self, batch: Any, where: str, begin: int) -> Read:
        raise NotImplementedError

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        iterator = _new_iterator(lambda: self._factory(self.feature_names, n_rows), self.name)
        for i, batch in enumerate(_each_batch(iterator, self.name)):
            if length(batch) == 0:
                continue
            where = f"batch {i}"
            yield Chunk(begin, length(batch), where, self._read_of(batch, where, begin))
            begin += length(batch)
            if wanted is not None and begin > wanted[-1]:
                break
        else:
            if begin < self._n_first:
                difference = f"it gave {begin} rows, and at least {self._n_first} before"
                raise changed_error(self.name, difference)


def length(batch: Any) -> int:
    return int(batch.num_rows if hasattr(batch, "num_rows") else len(batch))


def _new_iterator(make: Callable[[], Iterable[Any]], name: str) -> Iterator[Any]:
    try:
        batches = make()
    except Exception as error:
        error.add_note(f"Raised by the factory of batches that was passed for {name}.")
        raise
    try:
        return iter(batches)
    except TypeError:
        raise TypeError(
            f"{name}: the factory must return an iterable of batches, got "
            f"{type(batches).__name__}. A function may yield its batches, or return a list."
        ) from None


def _each_batch(iterator: Iterator[Any], name: str) -> Iterator[Any]:
    """All batches, checked for their type; closed when the consumer stops."""
    try:
        for i in count():
            try:
                batch = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"Raised while batch {i} of {name} was made.")
                raise
            kind = type(batch)
            if kind.__module__.startswith("scipy.sparse"):
                raise TypeError(
                    f"{name}: batch {i} is a sparse {kind.__name__}: pass batch.toarray()."
                )
            if not hasattr(batch, "num_rows") and not hasattr(kind, "__len__"):
                raise TypeError(
                    f"{name}: batch {i} must be a 2-d array or a table of pyarrow, polars or "
                    f"pandas, got {kind.__name__}."
                )
            yield batch
    finally:
        getattr(iterator, "close", lambda: None)()


def first_batch(make: Callable[[], Iterable[Any]], name: str) -> Any:
    """The first batch that holds rows, None if none does; an error if it comes only once."""
    one, other = _new_iterator(make, name), _new_iterator(make, name)
    if one is other:
        raise TypeError(
            f"{name} can be read only once: its factory returned the same iterator twice. Every "
            "call must return a new one that starts from the first row."
        )
    first, again = (
        next((batch for batch in _each_batch(iterator, name) if length(batch) > 0), None)
        for iterator in (one, other)
    )
    if first is not None and (again is None or _beginning(first) != _beginning(again)):
        raise ValueError(
            f"{name} begins with other rows, or none, when its factory is called again. Every call "
            "must return a new iterator that starts from the first row, and give the rows in the "
            "same order."
        )
    return first


def _beginning(batch: Any) -> str:
    """The first rows as text, in which NaN equals NaN."""
    few = batch.slice(0, _COMPARED) if hasattr(batch, "num_rows") else batch[:_COMPARED]
    return repr(few.to_pylist() if hasattr(few, "to_pylist") else np.asarray(few).tolist())


class ArrayBatches(Batches):
    """Batches that are arrays."""

    kind = "batches of arrays"

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(factory, name, first, n_rows)
        array = _array(first, f"{name}: batch 0")
        self.n_features, self._dtype = int(array.shape[1]), array.dtype

    def select(self, names: Sequence[str]) -> ArrayBatches:
        """The same rows; ValueError if their columns have other names, or another order."""
        way_out = (
            "Put the columns of the batches, and feature_names, into the order of "
            "feature_names_in_."
        )
        check_names(self.feature_names or [], names, self.name, way_out)
        return self

    def _read_of(self, batch: Any, where: str, begin: int) -> Read:
        rows = _array(batch, f"{self.name}: {where}")
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name}: {where} (from row {begin} on) has {rows.shape[1]} columns, but the "
                f"first one has {self.n_features}: all batches must have the same columns."
            )
        if rows.dtype != self._dtype:
            raise ValueError(
                f"{self.name}: {where} (from row {begin} on) holds {rows.dtype}, but the first one "
                f"holds {self._dtype}: give all batches one dtype (astype)."
            )

        def read(target: AnyArray, row: int) -> None:
            target[...] = rows[row : row + len(target)]

        return read


def _array(batch: Any, where: str) -> AnyArray:
    rows = np.asarray(batch)
    if rows.ndim != 2:
        raise ValueError(
            f"{where} must be 2-d, rows x features, got shape {rows.shape}. The factory returns a "
            "list of batches, or yields them."
        )
    check_dtype(rows.dtype, where)
    return rows
