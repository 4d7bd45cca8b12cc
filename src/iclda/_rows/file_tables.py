"""Readers of tables, of any library: Parquet files, datasets, queries, batches of tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .base import column_of, names_of_table, not_finite_error, refuse_repeated
from .file_readers import ArrayBatches, Batches, Chunk, Factory, Read, Reader, first_batch, length

Dtypes = Mapping[str, "np.dtype[Any] | None"]  # of columns by name; None: no real numbers

_BUFFER = (2**13, 2**17)  # bytes read at once of each column: a row group is never held whole
_SHARE = 8  # of memory, that all these buffers may take
_GROUPS = 16  # row groups that a first look reads from
_LOOK = 1024  # rows decoded at once where a few are wanted


# Columns.


def shorten(names: Sequence[str]) -> str:
    """The first ten names, for messages."""
    return f"{list(names[:10])}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _arrow_dtypes(schema: Any, where: str) -> Dtypes:
    from pyarrow import types

    def dtype_of(kind: Any) -> np.dtype[Any] | None:
        is_real = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
        return np.dtype(kind.to_pandas_dtype()) if is_real else None

    refuse_repeated(schema.names, where)
    return {field.name: dtype_of(field.type) for field in schema}


def _table_dtypes(table: Any, where: str) -> Dtypes | None:
    """Names and dtypes of columns; None for an array, and for columns without names."""
    if hasattr(table, "num_rows"):
        return _arrow_dtypes(table.schema, where)
    names = names_of_table(table)
    if names is None:
        return None
    refuse_repeated(names, where)
    dtypes = {name: _values(table[name][:0]).dtype for name in names}
    return {name: dtype if dtype.kind in "biuf" else None for name, dtype in dtypes.items()}


def _values(column: Any) -> AnyArray:
    """Values of a column, none of them missing."""
    if hasattr(column, "combine_chunks"):  # pyarrow
        column = column.combine_chunks()
    if hasattr(column, "buffers"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    dtype = getattr(column.dtype, "numpy_dtype", None)  # of pandas' nullable types
    return np.asarray(column.to_numpy() if dtype is None else column.to_numpy(dtype=dtype))


def _read_columns(table: Any, names: Sequence[str], where: str, begin: int) -> Read:
    """What reads these columns of a table; ValueError that names row and column of a missing value.

    narwhals would unify the three libraries, but scikit-learn brings it only from version 1.9 on.
    """
    columns = []
    for j, name in enumerate(names):
        column = table.column(name) if hasattr(table, "num_rows") else table[name]
        is_missing = _is_missing(column)
        if is_missing is not None:
            row = begin + int(np.argmax(is_missing))
            raise not_finite_error("a missing value", where, row, column_of(j, names))
        columns.append(_values(column))

    def read(target: AnyArray, row: int) -> None:
        for j, column in enumerate(columns):
            target[:, j] = column[row : row + len(target)]

    return read


def _is_missing(column: Any) -> AnyArray | None:
    """Mask of missing values, other than NaN; None if there are none."""
    if hasattr(column, "null_count"):  # an attribute in pyarrow, a method in polars
        n_missing = column.null_count() if callable(column.null_count) else column.null_count
        return np.asarray(column.is_null()) if n_missing else None
    is_missing = np.asarray(column.isna())
    return is_missing if is_missing.any() else None


class _TableReader(Reader):
    """Rows of tables, of which all columns are read, or some, by name."""

    order = "F"  # a table is copied column by column
    feature_names: list[str]

    def _set_columns(self, dtypes: Dtypes, on_request: Sequence[str] = ()) -> None:
        """``on_request``: columns that are left out unless they are selected."""
        self._dtypes, self._on_request = dtypes, on_request
        self.feature_names = [column for column in dtypes if column not in on_request]
        self.n_features = len(self.feature_names)

    def select(self, names: Sequence[str]) -> _TableReader:
        there = {*self.feature_names, *self._on_request}
        missing = [str(column) for column in names if column not in there]
        if missing:
            raise ValueError(
                f"{self.name} lacks the columns {shorten(missing)}; it has "
                f"{shorten(self.feature_names)}."
            )
        other = copy(self)
        other._on_request, other._dtype = (), None
        other.feature_names, other.n_features = [str(column) for column in names], len(names)
        return other

    def find_dtype(self) -> np.dtype[Any]:
        """One dtype that holds all columns."""
        if self._dtype is None:
            found = []
            for column in self.feature_names:
                dtype = self._dtypes[column]
                if dtype is None:
                    raise ValueError(
                        f"{self.name}, column {column!r} does not hold real numbers: encode it, or "
                        "leave it out (iclda.rows.open(..., columns=[...]))."
                    )
                found.append(dtype)
            if not found:
                raise ValueError(f"{self.name} has no columns.")
            self._dtype = np.result_type(*found)
        return self._dtype

    def _compare(self, dtypes: Dtypes, where: str, first: object) -> None:
        """Raise ValueError if a part of the table has other columns than the first part."""
        missing = [column for column in self.feature_names if column not in dtypes]
        if missing:
            raise ValueError(
                f"{where} lacks the columns {shorten(missing)} of {first}; it has "
                f"{shorten(list(dtypes))}."
            )
        for column in self.feature_names:
            if dtypes[column] != self._dtypes[column]:
                both = dtypes[column], self._dtypes[column]
                here, there = ("no real numbers" if one is None else one for one in both)
                raise ValueError(
                    f"{where}, column {column!r} holds {here}, but {there} in {first}."
                )


# Parquet.


@dataclass(frozen=True)
class _ParquetFile:
    """A Parquet file, as its footer describes it."""

    path: Path
    dtypes: Dtypes
    groups: tuple[int, ...]  # rows of every row group
    index: tuple[str, ...]  # columns that pandas reads as names of rows

    @classmethod
    def open(cls, path: Path, name: str) -> _ParquetFile:
        with _open_parquet(path, name) as file:
            metadata, schema = file.metadata, file.schema_arrow
            groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        # A range is not stored as a column, and described by a dictionary.
        names = tuple(one for one in index if isinstance(one, str))
        return cls(path, _arrow_dtypes(schema, f"{name}: {path}"), groups, names)


@contextmanager
def _open_parquet(path: Path, name: str, buffer: int = _BUFFER[1]) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(
            f"{name}: pyarrow reads {path}, and is not installed: pip install 'iclda[files]'."
        ) from error
    try:
        with ParquetFile(
            path, buffer_size=buffer, pre_buffer=False, page_checksum_verification=True
        ) as file:
            yield file
    except MemoryError:  # an ArrowException, too
        raise
    except (OSError, pyarrow.ArrowException) as error:
        raise OSError(f"{name}: {path} cannot be read as Parquet ({error}).") from error


class ParquetFiles(_TableReader):
    """The rows of Parquet files, one file after the other; some of their columns."""

    kind = "Parquet files"

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._files = [_ParquetFile.open(file, name) for file in files]
        self.n_rows = sum(sum(file.groups) for file in self._files)
        self._set_columns(self._files[0].dtypes, self._files[0].index)

    def find_dtype(self) -> np.dtype[Any]:
        if self._dtype is None:
            for file in self._files[1:]:
                self._compare(file.dtypes, f"{self.name}: {file.path}", self._files[0].path)
        return super().find_dtype()

    def spread(self, n: int) -> AnyArray:
        """The first rows of some row groups: only these are decoded."""
        sizes = [size for file in self._files for size in file.groups]
        starts = list(accumulate(sizes, initial=0))
        chosen = np.unique(np.linspace(0, len(sizes) - 1, min(_GROUPS, len(sizes))).astype(int))
        share = -(-n // max(1, len(chosen)))
        found = [starts[i] + np.arange(min(share, sizes[i])) for i in chosen]
        return np.concatenate(found)[:n] if found else np.zeros(0, dtype=np.int64)

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for file in self._files:
            if wanted is None:
                yield from self._batches(file, begin, None, n_rows)
                begin += sum(file.groups)
                continue
            for group, size in enumerate(file.groups):
                low, high = np.searchsorted(wanted, [begin, begin + size])
                if low < high:
                    for chunk in self._batches(file, begin, [group], _LOOK):
                        yield chunk
                        if chunk.stop > wanted[high - 1]:
                            break
                begin += size

    def _batches(
        self, file: _ParquetFile, begin: int, groups: list[int] | None, n_rows: int
    ) -> Iterator[Chunk]:
        names, where = self.feature_names, f"{self.name}: {file.path}"
        least, most = _BUFFER
        buffer = max(least, min(most, self.memory // (_SHARE * max(1, self.n_features))))
        with _open_parquet(file.path, self.name, buffer) as parquet:
            for batch in parquet.iter_batches(n_rows, groups, names, use_threads=self.use_threads):
                if batch.num_rows:
                    read = _read_columns(batch, names, where, begin)
                    yield Chunk(begin, batch.num_rows, str(file.path), read)
                    begin += batch.num_rows


# Batches.


class TableBatches(_TableReader, Batches):
    """Batches that are tables of pyarrow, polars or pandas."""

    def __init__(
        self,
        factory: Factory,
        name: str,
        first: Any,
        n_rows: int | None,
        *,
        kind: str = "batches of tables",
        count: Callable[[], int] | None = None,
    ) -> None:
        """``count``: a cheaper way to count the rows than to read them."""
        super().__init__(factory, name, first, n_rows)
        self.kind, self._count = kind, count
        self._set_columns(_table_dtypes(first, name) or {})

    def count(self) -> int:
        return super().count() if self._count is None else int(self._count())

    def _read_of(self, batch: Any, where: str, begin: int) -> Read:
        place = f"{self.name}: {where} (from row {begin} on)"
        dtypes = _table_dtypes(batch, place)
        if dtypes is None:
            raise ValueError(
                f"{place} is no table with named columns, as the first one is, but "
                f"{type(batch).__name__}: give all batches the same type."
            )
        self._compare(dtypes, place, "the first one")
        return _read_columns(batch, self.feature_names, place, begin)


def open_batches(
    make: Callable[[], Iterable[Any]],
    name: str,
    *,
    n_rows: int | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Reader:
    """A reader of arrays or of tables, as the first batch that holds rows is."""
    first = first_batch(make, name)
    if first is None:
        if n_features is None:
            raise ValueError(f"{name} gave no rows; pass n_features if that is right.")
        first, n_rows = np.zeros((0, n_features)), 0
    elif n_rows == 0:
        raise ValueError(
            f"n_rows=0, but the first batch of {name} has {length(first)} rows: pass how many "
            "there are in all, or None, and they are counted."
        )
    kind = ArrayBatches if _table_dtypes(first, name) is None else TableBatches
    reader: Reader = kind(lambda names, size: make(), name, first, n_rows)
    reader.n_rows_by = "" if n_rows is None else f" (n_rows={n_rows} of iclda.rows.from_batches)"
    if feature_names is not None and kind is TableBatches:
        reader = reader.select(feature_names)
    elif feature_names is not None:
        if len(feature_names) != reader.n_features:
            raise ValueError(
                f"{name}: batches have {reader.n_features} columns, but {len(feature_names)} names "
                "were given."
            )
        reader.feature_names = list(feature_names)
    if n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name}: batches have {reader.n_features} columns, but n_features={n_features}."
        )
    return reader


def table_reader(table: Any, name: str) -> Reader:
    """A reader of a pyarrow table in memory."""
    first, kind = table.slice(0, 0), "a pyarrow table"
    return TableBatches(lambda _, size: table.to_batches(size), name, first, len(table), kind=kind)


def dataset_reader(dataset: Any, name: str) -> Reader:
    """A reader of a pyarrow dataset."""
    pyarrow, module = import_module("pyarrow"), import_module("pyarrow.dataset")
    options = None
    if isinstance(getattr(dataset, "format", None), module.ParquetFileFormat):
        options = module.ParquetFragmentScanOptions(  # no row group is held whole
            use_buffered_stream=True, pre_buffer=False, page_checksum_verification=True
        )

    def batches(names: list[str] | None, size: int) -> Iterator[Any]:
        scanner = dataset.scanner(
            columns=names,
            batch_size=size,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=options,
        )
        try:
            yield from scanner.to_batches()
        except MemoryError:  # an ArrowException, too
            raise
        except (OSError, pyarrow.ArrowException) as error:
            raise OSError(f"{name}: the dataset cannot be read ({error}).") from error

    first, count = dataset.schema.empty_table(), dataset.count_rows
    reader = TableBatches(batches, name, first, None, kind="a pyarrow dataset", count=count)
    reader.watch([file for file in getattr(dataset, "files", ()) if os.path.exists(file)])
    return reader


def query_reader(frame: Any, name: str) -> Reader:
    """A reader of a polars LazyFrame."""
    polars = import_module("polars")
    if not hasattr(frame, "collect_batches"):
        raise TypeError(
            f"{name} is a polars LazyFrame, and polars {polars.__version__} has no collect_batches "
            "to read it in parts: update polars, or write it to a file (sink_parquet) and pass "
            "its path."
        )

    def batches(names: list[str] | None, size: int) -> Iterator[Any]:
        chosen = frame if names is None else frame.select(names)
        with _wrap_errors(polars, name):
            found = chosen.collect_batches(chunk_size=size, maintain_order=True)
            try:
                yield from found
            finally:
                # A query runs to its end unless it is stopped.
                getattr(found, "stop", lambda: None)()

    def count() -> int:
        with _wrap_errors(polars, name):
            return int(frame.select(polars.len()).collect().item())

    with _wrap_errors(polars, name):
        first = polars.DataFrame(schema=frame.collect_schema())
    return TableBatches(batches, name, first, None, kind="a polars LazyFrame", count=count)


@contextmanager
def _wrap_errors(polars: Any, name: str) -> Iterator[None]:
    """Raise errors of a query with the name of the argument, and without the plan of the query."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name}: the LazyFrame reads a file: {error}.") from error
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).strip().partition("\n")[0]
        is_of_file = isinstance(error, (OSError, polars.exceptions.ComputeError))
        kind = OSError if is_of_file else ValueError
        raise kind(
            f"{name}: the LazyFrame cannot be read ({type(error).__name__}: {reason}). "
            f"{name}.head().collect() shows the underlying error."
        ) from error
