"""Readers of rows that are not in memory: files, memory maps, tables, queries, batches.

A reader gives spans of consecutive rows, in the same order every time. ``files`` reads them into
blocks, and ``backends.KINDS`` lists which reader belongs to which kind of rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np

from .._core import AnyArray
from .._messages import quoted_list
from .._system import require
from .backends import (
    KIND_BY_KEY,
    KINDS,
    SUFFIXES,
    changed_error,
    check_finite,
    check_rows,
    find_kind,
    is_path,
    names_of_table,
    refuse_repeated,
)

DEFAULT_MEMORY = 2**28  # bytes held of the rows at a time
_PIECE_ROWS = 1024  # rows read at once where a few are wanted
_COUNTED_ROWS = 2**16  # rows read at once to be counted
_FIRST_LOOK_RUNS = 64  # places of an array that a first look reads from
_FIRST_LOOK_GROUPS = 16  # row groups of Parquet files that a first look reads from
_COMPARED_ROWS = 16  # first rows, which must be the same in two calls of a factory
_COLUMN_BUFFER = (
    2**13,
    2**17,
)  # bytes read at once of each column: no row group is held whole
_BUFFERED_SHARE = 8  # the buffers of all columns take at most memory / _BUFFERED_SHARE
SHOWN_NAMES = 10  # names of columns that a message lists

# Returns a new iterable of batches, of the columns of these names, of about so many rows.
Factory = Callable[["list[str] | None", int], Iterable[Any]]
Count = Callable[[], int] | None
Paths = Iterable["str | os.PathLike[str]"]
Columns = Mapping[str, "np.dtype[Any]"]  # of a table


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a source, the first of them at index ``start``; not read yet."""

    start: int
    n_rows: int
    where: str  # the file or batch they come from, for messages
    part: Any  # what holds them: an array that is sliced, or a list of columns
    skip: int = 0  # rows of the part before the first

    @property
    def stop(self) -> int:
        return self.start + self.n_rows

    def read(self, target: AnyArray, row: int) -> None:
        """Copy rows, from this one on, into an (n, d) array."""
        rows = slice(self.skip + row, self.skip + row + len(target))
        if not isinstance(self.part, list):
            target[...] = self.part[rows]
            return
        for j, values in enumerate(self.part):
            target[:, j] = values[rows]


class Reader:
    """Rows in a fixed order, to be read any number of times. Subclasses supply ``spans``."""

    _iclda_backend = "files"
    words = ""  # what is read
    n_rows: int | None = None  # None: unknown before all rows were read
    n_features = 0
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"  # of the arrays that rows are copied into
    memory = DEFAULT_MEMORY
    use_threads = False  # for decoding, where that takes longer than the arithmetic
    _dtype: np.dtype[Any]  # of an array
    _columns: Columns | None = None  # of a table

    def __init__(self, name: str, files: Paths = ()) -> None:
        self.name = name  # of the argument, for messages
        self.watch(files)

    def _set_columns(self, columns: Columns, names: Sequence[str]) -> None:
        """Set the columns of a table, and the names of those that are read."""
        self._columns, self.order = columns, "F"  # copied column by column
        self.feature_names, self.n_features = [str(name) for name in names], len(names)

    def __repr__(self) -> str:
        n_rows = "?" if self.n_rows is None else self.n_rows
        return f"<{n_rows} x {self.n_features} rows of {self.words}>"

    def select(self, names: Sequence[str]) -> Reader:
        """Return a reader of these columns of a table."""
        assert self._columns is not None
        _check_columns(names, self._columns, self.name)
        other = copy(self)
        other._set_columns(self._columns, names)
        return other

    def find_dtype(self) -> np.dtype[Any]:
        """Return one dtype that holds all columns."""
        if self._columns is None:
            return self._dtype
        if not self.feature_names:
            raise ValueError(f"{self.name} has no columns.")
        for column in self.feature_names:
            if self._columns[column].kind not in "biuf":
                raise ValueError(
                    f"{self.name}, column {column!r} does not hold real numbers: encode it, or "
                    "leave it out (iclda.rows.open(..., columns=[...]))."
                )
        return np.result_type(*(self._columns[column] for column in self.feature_names))

    def watch(self, files: Paths) -> None:
        """Note size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file) for file in files}

    def check_unchanged(self) -> None:
        """Raise ValueError for a file of another size or time of change than when it was opened.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            if (now := _stamp(file)) != first:
                sizes = f"{now[0]} bytes now, {first[0]} bytes at first"
                raise changed_error(self.name, f"{file} was written to ({sizes})")

    def spread(self, n: int) -> AnyArray:
        """Return at most ``n`` row indices for a first look: cheap, and far apart if possible."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Return the exact number of rows, by reading them if it is not known otherwise."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(span.n_rows for span in self.spans(_COUNTED_ROWS))

    def read_rows(self, index: AnyArray, *, must_exist: bool = True) -> AnyArray:
        """Return the rows at ascending indices; fewer if a source of unknown length ends before.

        ValueError if they, or rows read beside them, are not finite.
        """
        dtype, n_read = self.find_dtype(), 0
        rows = np.empty((len(index), self.n_features), dtype)
        if len(index) == 0:
            return rows
        self.check_unchanged()
        for span in self.spans(_PIECE_ROWS, index):
            stop = int(np.searchsorted(index, span.stop))
            if stop == n_read:
                continue
            piece = np.empty((span.n_rows, self.n_features), dtype)
            span.read(piece, 0)
            self.check_finite(piece, span.start, span.where)
            rows[n_read:stop] = piece[index[n_read:stop] - span.start]
            n_read = stop
        self.check_unchanged()
        if n_read < len(index) and (must_exist or self.n_rows is not None):
            raise changed_error(self.name, f"it ended before its row {index[n_read]}")
        return rows[:n_read]

    def check_finite(self, rows: AnyArray, start: int, where: str) -> None:
        """Raise ValueError for NaN or infinity in rows, the first of them at index ``start``."""
        index = range(start, start + len(rows))
        check_finite(
            rows, self.name, self.feature_names, index=index, where=f" ({where})"
        )

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        """Yield all rows, about ``n_rows`` at a time, or spans that hold rows of these indices."""
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def _check_columns(names: Sequence[str], there: Collection[str], where: str) -> None:
    missing = [str(column) for column in names if column not in there]
    if missing:
        lacking, known = (
            quoted_list(each, SHOWN_NAMES) for each in (missing, list(there))
        )
        raise ValueError(f"{where} lacks the columns {lacking}; it has {known}.")


@contextmanager
def _named_errors(errors: Any, where: str) -> Iterator[None]:
    """Raise errors of other libraries with the place where they occurred, in one line."""
    try:
        yield
    except MemoryError:  # pyarrow's is an ArrowException, too
        raise
    except errors as error:
        reason = str(error).strip().partition("\n")[0]
        raise OSError(
            f"{where} cannot be read ({type(error).__name__}: {reason})."
        ) from error


# Arrays in which any row can be reached.


class ArrayReader(Reader):
    """Rows of arrays of equal width and dtype that are sliced, one array after the other."""

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
                    f"{self._where(other)} holds {other.shape[1]} columns of {other.dtype}, but "
                    f"{self._where(first)} holds {first.shape[1]} of {first.dtype}. All must be "
                    "alike: pass those that are, or save the others anew."
                )
        self.n_features, self._dtype = first.shape[1], first.dtype
        self.n_rows = sum(array.shape[0] for array in arrays)

    def _where(self, array: Any) -> str:
        path = getattr(array, "path", None)
        return self.name if path is None else f"{self.name}: {path}"

    def spread(self, n: int) -> AnyArray:
        """Return about ``n`` row indices, in runs that lie apart."""
        if n >= self.n_rows:
            return np.arange(self.n_rows)
        n_runs = min(_FIRST_LOOK_RUNS, n)
        starts = np.linspace(0, self.n_rows - n // n_runs, n_runs).astype(np.int64)
        return np.unique((starts[:, None] + np.arange(n // n_runs)).ravel())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        begin = 0
        for array in self._arrays:
            end = begin + array.shape[0]
            skips = list(range(0, array.shape[0], n_rows))
            if wanted is not None:
                inside = wanted[slice(*np.searchsorted(wanted, [begin, end]))] - begin
                skips = (np.unique(inside // n_rows) * n_rows).tolist()
            for skip in skips:
                if isinstance(
                    array, np.memmap
                ):  # to read beyond its end would end the process
                    self.check_unchanged()
                start, where = begin + skip, str(getattr(array, "path", self.name))
                yield Span(start, min(n_rows, end - start), where, array, skip)
            begin = end


class _NumpyFile:
    """A .npy file: read, not mapped, so that one that is cut short is an error."""

    def __init__(self, path: Path, name: str) -> None:
        # The header is Python, and a file that was cut short cannot be mapped.
        errors = OSError, ValueError, SyntaxError, TokenError, TypeError
        with _named_errors(
            errors, f"{name}: {path} is no complete .npy file of numbers, and"
        ):
            array = np.lib.format.open_memmap(path, mode="r")
        self.path, self.shape, self.dtype = path, array.shape, array.dtype
        self._offset, self.is_by_rows = array.offset, array.flags.c_contiguous

    def __getitem__(self, rows: slice) -> AnyArray:
        n_rows, (n_all, n_features) = rows.stop - rows.start, self.shape
        # Runs of entries that follow each other in the file: all rows, or each column.
        runs = np.empty((1, n_rows * n_features), self.dtype)
        firsts = [rows.start * n_features]
        if not self.is_by_rows:
            runs = runs.reshape(n_features, n_rows)
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
    """The rows of one array with a shape, a dtype and slices: a memory map, an HDF5 dataset."""

    def __init__(self, X: Any, name: str) -> None:
        file = getattr(
            X if isinstance(X, np.memmap) else getattr(X, "file", None), "filename", ""
        )
        super().__init__([X], name, [file] if file and os.path.exists(file) else [])
        self.order = "F" if isinstance(X, np.ndarray) and X.flags.fnc else "C"


# Batches: arrays, or tables of pyarrow, polars or pandas.


def _columns_of(table: Any, where: str) -> Columns | None:
    """Return the columns of a table; None for an array, and for columns without names."""
    names = names_of_table(table)
    if names is None:
        return None
    refuse_repeated(names, where)
    return {name: _column(table[:0], name).dtype for name in names}


def _column(table: Any, name: str) -> AnyArray:
    """Return the values of a column, with NaN for those that are missing."""
    column = table[name]
    dtype = (
        getattr(column.dtype, "numpy_dtype", None) if hasattr(column, "isna") else None
    )
    if dtype is None:
        return np.asarray(column)
    # A nullable type of pandas.
    if column.isna().any():
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy(dtype=dtype))


def _columns_in(
    table: Any, names: Sequence[str], dtype: np.dtype[Any], place: str, begin: int
) -> list[AnyArray]:
    """Return these columns of a table, which must fit into a dtype."""
    _check_columns(names, names_of_table(table) or (), place)
    columns = [_column(table, name) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.can_cast(values.dtype, dtype):
            # Integers of which some are missing come as floating point.
            check_finite(
                values[:, None], place, [name], index=range(begin, begin + len(values))
            )
            raise _dtype_error(f"{place}, column {name!r}", values.dtype, dtype)
    return columns


def _dtype_error(place: str, dtype: np.dtype[Any], first: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"{place} holds {dtype}, but {first} was read before: use one for all parts."
    )


class Batches(Reader):
    """The rows of all batches; no row can be reached but through those before it."""

    def __init__(
        self,
        factory: Factory,
        name: str,
        first: Any,
        n_rows: int | None,
        count: Count = None,
    ) -> None:
        """``count``: a cheaper way to count the rows than to read them."""
        super().__init__(name)
        columns = _columns_of(first, name)
        if columns is not None:
            self._set_columns(columns, list(columns))
        else:
            array = np.asarray(first)
            check_rows(array, f"{name}: batch 0")
            self._dtype, self.n_features = array.dtype, array.shape[1]
        self.words = f"batches of {'arrays' if columns is None else 'tables'}"
        self.n_rows, self._factory, self._count = n_rows, factory, count

    def count(self) -> int:
        return super().count() if self._count is None else int(self._count())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        dtype, begin = self.find_dtype(), 0
        for i, batch in enumerate(self._factory(self.feature_names, n_rows)):
            if len(batch) == 0:
                continue
            place = f"{self.name}: batch {i} (from row {begin} on)"
            part: Any
            if self._columns is None:
                part = np.asarray(batch)
                self._check_batch(part, place)
            else:
                part = _columns_in(batch, self.feature_names or [], dtype, place, begin)
            yield Span(begin, len(batch), f"batch {i}", part)
            begin += len(batch)
            if wanted is not None and begin > wanted[-1]:
                return

    def _check_batch(self, rows: AnyArray, place: str) -> None:
        check_rows(rows, place)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{place} has {rows.shape[1]} columns, but the first one has {self.n_features}: "
                "all batches must have the same columns."
            )
        if not np.can_cast(rows.dtype, self._dtype):
            raise _dtype_error(place, rows.dtype, self._dtype)


def batch_reader(
    make: Callable[[], Iterable[Any]], name: str, n_rows: int | None = None
) -> Reader:
    """Return a reader of arrays or of tables, as the first batch that holds rows is."""
    first, again = (
        next((one for one in make() if len(one) > 0), None) for _ in range(2)
    )
    if first is None:
        raise ValueError(
            f"{name} gave no rows: leave it out, or have its factory give some."
        )
    if again is None or _first_rows(first) != _first_rows(again):
        raise ValueError(
            f"{name} begins with other rows, or none, when its factory is called again. Every call "
            "must return a new iterator that starts from the first row, and give the rows in the "
            "same order."
        )
    return Batches(lambda names, size: make(), name, first, n_rows)


def _first_rows(batch: Any) -> str:
    """Return the first rows as text, in which NaN equals NaN."""
    return repr(np.asarray(batch[:_COMPARED_ROWS]).tolist())


# Tables.


class ParquetFiles(Reader):
    """The rows of Parquet files, one file after the other; some of their columns."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._groups: list[
            tuple[Path, int, int, int]
        ] = []  # file, index in it, start, stop
        self._metadata = {}
        self.n_rows = 0
        for file in files:
            with self._open(file) as parquet:
                metadata = self._metadata[file] = parquet.metadata
            for i in range(metadata.num_row_groups):
                start, self.n_rows = (
                    self.n_rows,
                    self.n_rows + metadata.row_group(i).num_rows,
                )
                self._groups.append((file, i, start, self.n_rows))
        schema = self._metadata[files[0]].schema.to_arrow_schema()
        columns = _columns_of(schema.empty_table(), f"{name}: {files[0]}") or {}
        # Names of rows that pandas wrote are no features unless they are selected.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self._set_columns(
            columns, [column for column in columns if column not in index]
        )

    @contextmanager
    def _open(self, path: Path) -> Iterator[Any]:
        arrow, parquet = (
            require(name, f"reading {path}", "files")
            for name in ("pyarrow", "pyarrow.parquet")
        )
        fitting = self.memory // (_BUFFERED_SHARE * max(1, self.n_features))
        with (
            _named_errors((OSError, arrow.ArrowException), f"{self.name}: {path}"),
            parquet.ParquetFile(
                path,
                metadata=self._metadata.get(path),
                buffer_size=int(np.clip(fitting, *_COLUMN_BUFFER)),
                pre_buffer=False,
                page_checksum_verification=True,
            ) as file,
        ):
            yield file

    def spread(self, n: int) -> AnyArray:
        """Return the first rows of some row groups: only these are decoded."""
        n_chosen = min(_FIRST_LOOK_GROUPS, len(self._groups))
        chosen = np.unique(np.linspace(0, len(self._groups) - 1, n_chosen).astype(int))
        share = -(-n // max(1, len(chosen)))
        spans = [self._groups[i][2:] for i in chosen]
        firsts = [np.arange(start, min(start + share, stop)) for start, stop in spans]
        return np.concatenate([np.zeros(0, dtype=np.int64), *firsts])[:n]

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        names, dtype = self.feature_names or [], self.find_dtype()
        for file, i, start, stop in self._groups:
            if wanted is not None:
                low, high = np.searchsorted(wanted, [start, stop])
                if low == high:
                    continue
                stop = int(wanted[high - 1]) + 1
            with self._open(file) as parquet:
                for batch in parquet.iter_batches(
                    n_rows, [i], names, use_threads=self.use_threads
                ):
                    columns = _columns_in(
                        batch, names, dtype, f"{self.name}: {file}", start
                    )
                    yield Span(start, len(batch), str(file), columns)
                    start += len(batch)
                    if start >= stop:
                        break


def table_reader(table: Any, name: str) -> Reader:
    """Return a reader of a pyarrow table in memory."""
    return Batches(lambda _, size: table.to_batches(size), name, table[:0], len(table))


def dataset_reader(dataset: Any, name: str) -> Reader:
    """Return a reader of a pyarrow dataset."""

    def batches(names: list[str] | None, size: int) -> Iterable[Any]:
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}
        yield from dataset.to_batches(columns=names, batch_size=size, **ahead)

    reader = Batches(
        batches, name, dataset.schema.empty_table(), None, count=dataset.count_rows
    )
    reader.watch(
        [file for file in getattr(dataset, "files", ()) if os.path.exists(file)]
    )
    return reader


def query_reader(frame: Any, name: str) -> Reader:
    """Return a reader of a polars LazyFrame, which needs polars 1.34 or later."""
    polars = import_module("polars")

    def batches(names: list[str] | None, size: int) -> Iterable[Any]:
        chosen = frame if names is None else frame.select(names)
        results = chosen.collect_batches(chunk_size=size, maintain_order=True)
        try:
            yield from results
        finally:  # a query runs to its end unless it is stopped
            getattr(results, "stop", lambda: None)()

    def count() -> int:
        return int(frame.select(polars.len()).collect().item())

    first = polars.DataFrame(schema=frame.collect_schema())
    return Batches(batches, name, first, None, count=count)


# Which files, and which reader.


def reader_of(X: Any, name: str) -> Reader:
    """Return a reader of paths, or of a kind of rows that the files backend reads."""
    kind, source = find_kind(X), X
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind = KIND_BY_KEY["numpy.memmap"]
    if kind is None or kind.backend != "files":
        source = _files_of(X, name)
        kind = KIND_BY_KEY[source[0].suffix.lower()]
    reader: Reader = globals()[kind.reader](source, name)
    reader.words = kind.words
    return reader


def _files_of(X: Any, name: str) -> list[Path]:
    """Return the files of paths, all of one format; TypeError for what nothing here reads."""
    paths = [X] if is_path(X) else X
    if (
        not isinstance(paths, (list, tuple))
        or not paths
        or not all(map(is_path, paths))
    ):
        others = [
            kind.words for kind in KINDS if kind.reader and kind.keys[0][0] != "."
        ]
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
        raise ValueError(
            f"{name} mixes files of several formats ({shown}): pass those of one."
        )
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
        every = (
            [Path(path)]
            if os.path.isfile(path)
            else map(Path, glob(path, recursive=True))
        )
    files = sorted(file for file in every if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"{name}: there is no file {path}, nor in it one that ends in {', '.join(SUFFIXES)}."
        )
    return files
