"""Readers of rows that are not in memory: files, memory maps, tables, queries, batches.

A reader yields spans of consecutive rows, in the same order every time; ``files``
copies them into blocks of equal length. ``reader_of`` finds the reader for what a user
passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, NamedTuple

import numpy as np

from .._core import AnyArray
from .._messages import quoted_list
from .._system import require
from .backends import (
    KIND_BY_KEY,
    KINDS,
    SUFFIXES,
    RowsKind,
    changed_error,
    check_finite,
    check_rows,
    find_kind,
    is_path,
    names_of_table,
    refuse_repeated,
)
from .parquet import ParquetFile

# Bytes of rows that are held at a time unless the user says otherwise.
DEFAULT_MEMORY = 2**28
# Names of columns that a message lists.
SHOWN_NAMES = 10
# Rows read at once where only a few are wanted.
_PIECE_ROWS = 1024
# Rows read at once to be counted.
_COUNTED_ROWS = 2**16
# A first look reads runs of rows at this many positions of an array.
_FIRST_LOOK_RUNS = 64
# A first look reads the beginning of this many row groups of Parquet files.
_FIRST_LOOK_GROUPS = 16
# The first rows must be the same in two calls of a factory.
_COMPARED_ROWS = 16
# A column of a Parquet file is read in pieces of this size, so that no row group is
# held as a whole. All columns together take at most 1 / _BUFFER_DIVISOR of the memory.
_MIN_COLUMN_BUFFER_BYTES = 2**13
_MAX_COLUMN_BUFFER_BYTES = 2**17
_BUFFER_DIVISOR = 8

# Takes names of columns and a number of rows; returns a new iterable of such batches.
Factory = Callable[["list[str] | None", int], Iterable[Any]]
Count = Callable[[], int] | None
Paths = Iterable["str | os.PathLike[str]"]
# The dtype of every column of a table.
Columns = Mapping[str, "np.dtype[Any]"]


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a source, the first of them at index ``start``; not read yet.

    Attributes
    ----------
    where : str
        The file or batch they come from, for messages.
    part : array or list of arrays
        What holds them: an array that is sliced, or a list of columns.
    skip : int
        Rows of the part before the first one of the span.
    """

    start: int
    n_rows: int
    where: str
    part: Any
    skip: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.n_rows

    def read(self, target: AnyArray, row: int) -> None:
        """Copy rows, from this one on, into an (n, d) array."""
        first = self.skip + row
        rows = slice(first, first + len(target))
        if not isinstance(self.part, list):
            target[...] = self.part[rows]
            return
        for j, values in enumerate(self.part):
            target[:, j] = values[rows]


class Reader:
    """Rows in a fixed order, to be read repeatedly. Subclasses supply ``spans``.

    Attributes
    ----------
    words : str
        What is read, for people.
    n_rows : int or None
        Number of rows; None if it is unknown before all rows were read.
    order : str
        Memory order of the arrays that rows are copied into.
    use_threads : bool
        Whether several threads decode, where decoding takes longer than the arithmetic.
    """

    _iclda_backend = "files"
    words = ""
    n_rows: int | None = None
    n_features = 0
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False
    # An array has a dtype, a table has columns.
    _dtype: np.dtype[Any]
    _columns: Columns | None = None

    def __init__(self, name: str, files: Paths = ()) -> None:
        """``name`` is that of the argument, for messages."""
        self.name = name
        self.watch(files)

    def _set_columns(self, columns: Columns, names: Sequence[str]) -> None:
        """Set the columns of a table, and the names of those that are read."""
        self._columns = columns
        # Tables are copied column by column.
        self.order = "F"
        self.feature_names = [str(name) for name in names]
        self.n_features = len(names)

    def __repr__(self) -> str:
        n_rows = "?" if self.n_rows is None else self.n_rows
        return f"<{n_rows} x {self.n_features} rows of {self.words}>"

    def select(self, names: Sequence[str]) -> Reader:
        """Return a reader of the columns with these names of a table."""
        assert self._columns is not None
        _check_columns(names, self._columns, self.name)
        selected = copy(self)
        selected._set_columns(self._columns, names)
        return selected

    def find_dtype(self) -> np.dtype[Any]:
        """Return one dtype that holds all columns."""
        if self._columns is None:
            return self._dtype
        if not self.feature_names:
            raise ValueError(f"{self.name} has no columns.")
        for column in self.feature_names:
            if self._columns[column].kind not in "biuf":
                raise ValueError(
                    f"{self.name}, column {column!r} does not hold real numbers: "
                    "encode it, or leave it out (iclda.rows.open(..., columns=[...]))."
                )
        return np.result_type(*(self._columns[column] for column in self.feature_names))

    def watch(self, files: Paths) -> None:
        """Note size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file) for file in files}

    def check_unchanged(self) -> None:
        """Raise ValueError for a file whose size or time of change is not as at first.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            current = _stamp(file)
            if current != first:
                sizes = f"{current[0]} bytes now, {first[0]} bytes at first"
                raise changed_error(self.name, f"{file} was written to ({sizes})")

    def spread(self, n: int) -> AnyArray:
        """Return at most ``n`` rows for a first look: cheap, if possible far apart."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Return the exact number of rows, reading them if it is unknown."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(span.n_rows for span in self.spans(_COUNTED_ROWS))

    def read_rows(self, index: AnyArray, *, must_exist: bool = True) -> AnyArray:
        """Return the rows at ascending indices.

        Fewer are returned if a source of unknown length ends before. It is a ValueError
        if they, or rows that are read with them, are not finite.
        """
        dtype = self.find_dtype()
        rows = np.empty((len(index), self.n_features), dtype)
        if len(index) == 0:
            return rows
        n_read = 0
        self.check_unchanged()
        for span in self.spans(_PIECE_ROWS, index):
            n_reached = int(np.searchsorted(index, span.stop))
            if n_reached == n_read:
                continue
            piece = np.empty((span.n_rows, self.n_features), dtype)
            span.read(piece, 0)
            self.check_finite(piece, span.start, span.where)
            rows[n_read:n_reached] = piece[index[n_read:n_reached] - span.start]
            n_read = n_reached
        self.check_unchanged()
        if n_read < len(index) and (must_exist or self.n_rows is not None):
            raise changed_error(self.name, f"it ended before its row {index[n_read]}")
        return rows[:n_read]

    def check_finite(self, rows: AnyArray, start: int, where: str) -> None:
        """Raise ValueError for NaN or infinity in rows from index ``start`` on."""
        index = range(start, start + len(rows))
        check_finite(
            rows, self.name, self.feature_names, index=index, where=f" ({where})"
        )

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        """Yield all rows, about ``n_rows`` at a time.

        With ``wanted``, ascending indices of rows, spans without any of them may be
        left out.
        """
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def _check_columns(names: Sequence[str], present: Collection[str], where: str) -> None:
    """Raise ValueError for columns that are not present."""
    missing = [str(column) for column in names if column not in present]
    if missing:
        raise ValueError(
            f"{where} lacks the columns {quoted_list(missing, SHOWN_NAMES)}; it has "
            f"{quoted_list(list(present), SHOWN_NAMES)}."
        )


@contextmanager
def _named_errors(errors: Any, where: str) -> Iterator[None]:
    """Turn errors of other libraries into one line that says what could not be read."""
    try:
        yield
    except MemoryError:
        # Of pyarrow's it is an ArrowException, too.
        raise
    except errors as error:
        reason = str(error).strip().partition("\n")[0]
        raise OSError(
            f"{where} cannot be read ({type(error).__name__}: {reason})."
        ) from error


# Arrays in which any row can be reached.


class ArrayReader(Reader):
    """Rows of arrays that are sliced, all of one width and dtype, in order."""

    n_rows: int

    def __init__(self, arrays: Sequence[Any], name: str, files: Paths) -> None:
        super().__init__(name, files)
        self._arrays = arrays
        for array in arrays:
            check_rows(array, self._where(array))
        first = arrays[0]
        for other in arrays[1:]:
            if (other.shape[1], other.dtype) != (first.shape[1], first.dtype):
                raise ValueError(
                    f"{self._where(other)} holds {other.shape[1]} columns of "
                    f"{other.dtype}, but {self._where(first)} holds {first.shape[1]} "
                    f"of {first.dtype}. All must be alike: pass those that are, or "
                    "save the others again."
                )
        self.n_features = first.shape[1]
        self._dtype = first.dtype
        self.n_rows = sum(array.shape[0] for array in arrays)

    def _where(self, array: Any) -> str:
        path = getattr(array, "path", None)
        return self.name if path is None else f"{self.name}: {path}"

    def spread(self, n: int) -> AnyArray:
        """Return about ``n`` row indices, in runs that lie apart."""
        if n >= self.n_rows:
            return np.arange(self.n_rows)
        n_runs = min(_FIRST_LOOK_RUNS, n)
        run_rows = n // n_runs
        starts = np.linspace(0, self.n_rows - run_rows, n_runs).astype(np.int64)
        return np.unique((starts[:, None] + np.arange(run_rows)).ravel())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        begin = 0
        for array in self._arrays:
            end = begin + array.shape[0]
            skips = list(range(0, array.shape[0], n_rows))
            if wanted is not None:
                low, high = np.searchsorted(wanted, [begin, end])
                inside = wanted[low:high] - begin
                skips = (np.unique(inside // n_rows) * n_rows).tolist()
            for skip in skips:
                # Reading a memory map beyond the end of its file would end the process.
                if isinstance(array, np.memmap):
                    self.check_unchanged()
                start = begin + skip
                where = str(getattr(array, "path", self.name))
                yield Span(start, min(n_rows, end - start), where, array, skip)
            begin = end


class _NumpyFile:
    """A .npy file: read, not mapped, so that a file that is cut short is an error."""

    def __init__(self, path: Path, name: str) -> None:
        # The header is Python code, and a file that was cut short cannot be mapped.
        errors = (OSError, ValueError, SyntaxError, TokenError, TypeError)
        problem = f"{name}: {path} is not a complete .npy file of numbers, and"
        with _named_errors(errors, problem):
            array = np.lib.format.open_memmap(path, mode="r")
        self.path = path
        self.shape = array.shape
        self.dtype = array.dtype
        self.is_by_rows = array.flags.c_contiguous
        self._offset = array.offset

    def __getitem__(self, rows: slice) -> AnyArray:
        n_all, n_features = self.shape
        n_rows = rows.stop - rows.start
        # A run is a sequence of entries that follow each other in the file: all entries
        # of the rows if the file is in C order, otherwise those of one column.
        if self.is_by_rows:
            runs = np.empty((1, n_rows * n_features), self.dtype)
            firsts = [rows.start * n_features]
        else:
            runs = np.empty((n_features, n_rows), self.dtype)
            firsts = [j * n_all + rows.start for j in range(n_features)]
        with open(self.path, "rb") as file:
            for run, first in zip(runs, firsts, strict=True):
                file.seek(self._offset + first * self.dtype.itemsize)
                if file.readinto(run.view(np.uint8)) < run.nbytes:
                    raise OSError(f"{self.path} ends early: it was cut short.")
        return runs.reshape(n_rows, n_features) if self.is_by_rows else runs.T


class NumpyFiles(ArrayReader):
    """The rows of .npy files."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        arrays = [_NumpyFile(file, name) for file in files]
        super().__init__(arrays, name, files)
        self.order = "C" if all(array.is_by_rows for array in arrays) else "F"


class SlicedArray(ArrayReader):
    """The rows of a memory map, an HDF5 dataset, or another sliced array."""

    def __init__(self, X: Any, name: str) -> None:
        # A memory map has a file name; an h5py dataset has a file that has one.
        owner = X if isinstance(X, np.memmap) else getattr(X, "file", None)
        file = getattr(owner, "filename", "")
        super().__init__([X], name, [file] if file and os.path.exists(file) else [])
        self.order = "F" if isinstance(X, np.ndarray) and X.flags.fnc else "C"


# Batches: arrays, or tables of pyarrow, polars or pandas.


def _columns_of(table: Any, where: str) -> Columns | None:
    """Return the columns of a table; None for an array, or without names."""
    names = names_of_table(table)
    if names is None:
        return None
    refuse_repeated(names, where)
    return {name: _column(table[:0], name).dtype for name in names}


def _column(table: Any, name: str) -> AnyArray:
    """Return the values of a column, with NaN for those that are missing."""
    column = table[name]
    # Nullable types of pandas have a NumPy dtype of their own.
    dtype = None
    if hasattr(column, "isna"):
        dtype = getattr(column.dtype, "numpy_dtype", None)
    if dtype is None:
        return np.asarray(column)
    if column.isna().any():
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy(dtype=dtype))


def _columns_in(
    table: Any, names: Sequence[str], dtype: np.dtype[Any], where: str, start: int
) -> list[AnyArray]:
    """Return the columns with these names; each must fit into a dtype.

    The first row of the table has the index ``start``.
    """
    _check_columns(names, names_of_table(table) or (), where)
    columns = [_column(table, name) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.can_cast(values.dtype, dtype):
            # A column of integers with missing values comes as floating point: name
            # those.
            index = range(start, start + len(values))
            check_finite(values[:, None], where, [name], index=index)
            raise _dtype_error(f"{where}, column {name!r}", values.dtype, dtype)
    return columns


def _dtype_error(where: str, dtype: np.dtype[Any], first: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"{where} holds {dtype}, but {first} was read before: use one for all parts."
    )


class Batches(Reader):
    """The rows of all batches. A row can be reached only through those before it."""

    def __init__(
        self,
        factory: Factory,
        name: str,
        first: Any,
        n_rows: int | None,
        count: Count = None,
    ) -> None:
        """``count`` is a cheaper way to count the rows than to read them."""
        super().__init__(name)
        columns = _columns_of(first, name)
        if columns is not None:
            self._set_columns(columns, list(columns))
            self.words = "batches of tables"
        else:
            array = np.asarray(first)
            check_rows(array, f"{name}: batch 0")
            self._dtype = array.dtype
            self.n_features = array.shape[1]
            self.words = "batches of arrays"
        self.n_rows = n_rows
        self._factory = factory
        self._count = count

    def count(self) -> int:
        return super().count() if self._count is None else int(self._count())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        dtype = self.find_dtype()
        names = self.feature_names or []
        start = 0
        for i, batch in enumerate(self._factory(self.feature_names, n_rows)):
            if len(batch) == 0:
                continue
            where = f"{self.name}: batch {i} (from row {start} on)"
            part: Any
            if self._columns is None:
                part = np.asarray(batch)
                self._check_batch(part, where)
            else:
                part = _columns_in(batch, names, dtype, where, start)
            yield Span(start, len(batch), f"batch {i}", part)
            start += len(batch)
            if wanted is not None and start > wanted[-1]:
                return

    def _check_batch(self, rows: AnyArray, where: str) -> None:
        """Raise ValueError for a batch that is unlike the first one."""
        check_rows(rows, where)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{where} has {rows.shape[1]} columns, but the first one has "
                f"{self.n_features}: all batches must have the same columns."
            )
        if not np.can_cast(rows.dtype, self._dtype):
            raise _dtype_error(where, rows.dtype, self._dtype)


def batch_reader(
    make: Callable[[], Iterable[Any]], name: str, n_rows: int | None = None
) -> Reader:
    """Return a reader of arrays or of tables, as the first batch with rows is."""
    first = _first_batch(make)
    again = _first_batch(make)
    if first is None:
        raise ValueError(
            f"{name} gave no rows: leave it out, or have its factory give some."
        )
    if again is None or _first_rows(first) != _first_rows(again):
        raise ValueError(
            f"{name} begins with other rows, or none, when its factory is called "
            "again. Every call must return a new iterator that starts from the first "
            "row, and give the rows in the same order."
        )
    return Batches(lambda names, size: make(), name, first, n_rows)


def _first_batch(make: Callable[[], Iterable[Any]]) -> Any:
    """Return the first batch with rows of a new iterable; None if there is none."""
    return next((batch for batch in make() if len(batch) > 0), None)


def _first_rows(batch: Any) -> str:
    """Return the first rows as text, in which NaN equals NaN."""
    return repr(np.asarray(batch[:_COMPARED_ROWS]).tolist())


# Tables.


class _RowGroup(NamedTuple):
    """A row group: its file, its position there, and the indices of its rows."""

    file: ParquetFile
    position: int
    start: int
    stop: int


class ParquetFiles(Reader):
    """The rows of Parquet files, one file after the other; some of their columns."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._groups: list[_RowGroup] = []
        start = 0
        opened = []
        for path in files:
            with self._named_errors(path):
                file = ParquetFile(path)
            opened.append(file)
            for position, n_rows in enumerate(file.rows_per_group):
                group = _RowGroup(file, position, start, start + n_rows)
                self._groups.append(group)
                start = group.stop
        self.n_rows = start
        schema = opened[0].schema
        columns = _columns_of(schema.empty_table(), f"{name}: {files[0]}") or {}
        # The index that pandas wrote is not a feature unless it is selected by name.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        names = [column for column in columns if column not in index]
        self._set_columns(columns, names)

    def _named_errors(self, path: Path) -> Any:
        arrow = require("pyarrow", f"reading {path}", "files")
        errors = (OSError, arrow.ArrowException)
        return _named_errors(errors, f"{self.name}: {path}")

    def spread(self, n: int) -> AnyArray:
        """Return the first rows of some row groups: only these are decoded."""
        n_groups = len(self._groups)
        n_chosen = min(_FIRST_LOOK_GROUPS, n_groups)
        chosen = np.unique(np.linspace(0, n_groups - 1, n_chosen).astype(int))
        # Rows of each group, rounded up.
        share = -(-n // max(1, len(chosen)))
        runs = [np.zeros(0, dtype=np.int64)]
        for i in chosen:
            group = self._groups[i]
            runs.append(np.arange(group.start, min(group.start + share, group.stop)))
        return np.concatenate(runs)[:n]

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        names = self.feature_names or []
        dtype = self.find_dtype()
        n_fitting = self.memory // (_BUFFER_DIVISOR * max(1, self.n_features))
        buffer_bytes = np.clip(
            n_fitting, _MIN_COLUMN_BUFFER_BYTES, _MAX_COLUMN_BUFFER_BYTES
        )
        for file, position, start, stop in self._groups:
            if wanted is not None:
                low, high = np.searchsorted(wanted, [start, stop])
                if low == high:
                    continue
                # Rows of the group after the last one that is wanted are not decoded.
                stop = int(wanted[high - 1]) + 1
            batches = file.batches(
                names,
                n_rows,
                groups=[position],
                buffer_bytes=int(buffer_bytes),
                use_threads=self.use_threads,
            )
            with self._named_errors(file.path), closing(batches):
                for batch in batches:
                    where = f"{self.name}: {file.path}"
                    columns = _columns_in(batch, names, dtype, where, start)
                    yield Span(start, len(batch), str(file.path), columns)
                    start += len(batch)
                    if start >= stop:
                        break


def table_reader(table: Any, name: str) -> Reader:
    """Return a reader of a pyarrow table in memory."""
    return Batches(lambda _, size: table.to_batches(size), name, table[:0], len(table))


def dataset_reader(dataset: Any, name: str) -> Reader:
    """Return a reader of a pyarrow dataset."""

    def batches(names: list[str] | None, size: int) -> Iterable[Any]:
        # Little is read ahead: it would be held in memory.
        yield from dataset.to_batches(
            columns=names, batch_size=size, batch_readahead=1, fragment_readahead=1
        )

    first = dataset.schema.empty_table()
    reader = Batches(batches, name, first, None, count=dataset.count_rows)
    files = getattr(dataset, "files", ())
    reader.watch([file for file in files if os.path.exists(file)])
    return reader


def query_reader(frame: Any, name: str) -> Reader:
    """Return a reader of a polars LazyFrame, which needs polars 1.34 or later."""
    polars = import_module("polars")

    def batches(names: list[str] | None, size: int) -> Iterable[Any]:
        selected = frame if names is None else frame.select(names)
        results = selected.collect_batches(chunk_size=size, maintain_order=True)
        try:
            yield from results
        finally:
            # A query would run to its end unless it is stopped.
            if hasattr(results, "stop"):
                results.stop()

    def count() -> int:
        return int(frame.select(polars.len()).collect().item())

    first = polars.DataFrame(schema=frame.collect_schema())
    return Batches(batches, name, first, None, count=count)


# Which files, and which reader.

# The reader of every kind of ``backends.KINDS`` that the files backend reads, by the
# first key of the kind.
_READERS: dict[str, Callable[[Any, str], Reader]] = {
    ".npy": NumpyFiles,
    ".parquet": ParquetFiles,
    "numpy.memmap": SlicedArray,
    "h5py.Dataset": SlicedArray,
    "pyarrow.Dataset": dataset_reader,
    "pyarrow.Table": table_reader,
    "polars.LazyFrame": query_reader,
}


def reader_of(X: Any, name: str) -> Reader:
    """Return a reader of paths, or of a kind of rows that the files backend reads."""
    kind = find_kind(X)
    source = X
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind = KIND_BY_KEY["numpy.memmap"]
    if kind is None or kind.backend != "files":
        source = _files_of(X, name)
        kind = _kind_of_file(source[0])
    reader = _READERS[kind.keys[0]](source, name)
    reader.words = kind.words
    return reader


def _kind_of_file(file: Path) -> RowsKind:
    return KIND_BY_KEY[file.suffix.lower()]


def _files_of(X: Any, name: str) -> list[Path]:
    """Return the files of paths, all of one format; TypeError if X is not a path."""
    paths = [X] if is_path(X) else X
    is_list = isinstance(paths, (list, tuple)) and len(paths) > 0
    if not is_list or not all(is_path(path) for path in paths):
        others = [
            kind.words
            for kind in KINDS
            if kind.backend == "files" and kind.keys[0] not in SUFFIXES
        ]
        raise TypeError(
            f"{name} must be a path, a list of at least one path, or one of "
            f"{', '.join(others)}, got {type(X).__name__}. Other arrays and tables, "
            "and what functions of iclda.rows return, are passed to a classifier as "
            "they are; for a list of them, and anything else that can be read again, "
            "there is iclda.rows.from_batches."
        )
    files = [file for path in paths for file in _expand(os.fspath(path), name)]
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"{name}: unknown format of {file}. Files that end in "
                f"{', '.join(SUFFIXES)} are read; for others pass an h5py dataset, a "
                "pyarrow dataset, a polars LazyFrame, or iclda.rows.from_batches."
            )
    if len({_kind_of_file(file) for file in files}) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(
            f"{name} mixes files of several formats ({shown}): pass those of one."
        )
    return files


def _expand(path: str, name: str) -> list[Path]:
    """Return the files of a folder or pattern in the order of their names."""
    if not os.path.exists(path):
        path = os.path.expanduser(path)
    if os.path.isdir(path):
        candidates = [
            file for file in Path(path).rglob("*") if _is_data_file(file, Path(path))
        ]
    elif os.path.isfile(path):
        candidates = [Path(path)]
    else:
        candidates = [Path(match) for match in glob(path, recursive=True)]
    files = sorted(file for file in candidates if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"{name}: there is no file {path}, nor in it one that ends in "
            f"{', '.join(SUFFIXES)}."
        )
    return files


def _is_data_file(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder holds rows.

    Names that begin with a dot or an underscore are left out: engines write _SUCCESS,
    _metadata and temporary files.
    """
    if file.suffix.lower() not in SUFFIXES:
        return False
    return not any(part[0] in "._" for part in file.relative_to(folder).parts)
