"""Columns of tables, of whatever library: their names, dtypes and values; Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from ..base import column_names, not_finite
from .readers import Chunk, Reader, TableChunk

_BUFFER = (2**13, 2**17)  # bytes read at once of each column: a row group is never held whole
_SHARE = 8  # of memory, that all these buffers may take
_GROUPS = 16  # row groups that a pilot looks at
_LOOK = 1024  # rows decoded at once where a few are wanted


class Columns:
    """The columns of a table that are read: all of them, or some, by name."""

    def __init__(
        self,
        dtypes: Mapping[str, np.dtype[Any] | None],
        names: Sequence[str] | None = None,
        *,
        on_request: Sequence[str] = (),
    ) -> None:
        self._dtypes = dtypes
        self._on_request = on_request  # left out unless they are selected
        found = dtypes if names is None else names
        self.names = [column for column in found if column not in on_request]

    def selected(self, names: Sequence[str], where: str) -> Columns:
        """These columns only, in this order."""
        there = {*self.names, *self._on_request}
        missing = [str(column) for column in names if column not in there]
        if missing:
            raise ValueError(
                f"{where} lacks the columns {listed(missing)}; it has {listed(self.names)}."
            )
        return Columns(self._dtypes, [str(column) for column in names])

    def dtype_in(self, where: str) -> np.dtype[Any]:
        """One dtype that holds all columns."""
        found = []
        for column in self.names:
            dtype = self._dtypes[column]
            if dtype is None:
                raise ValueError(
                    f"{where}, column {column!r} does not hold real numbers: encode it, or leave "
                    "it out (iclda.rows.open(..., columns=[...]))."
                )
            found.append(dtype)
        if not found:
            raise ValueError(f"{where} has no columns.")
        return np.result_type(*found)

    def compare(
        self, dtypes: Mapping[str, np.dtype[Any] | None], where: str, first: object
    ) -> None:
        """ValueError if a part of the table has other columns than the first part."""
        missing = [column for column in self.names if column not in dtypes]
        if missing:
            raise ValueError(
                f"{where} lacks the columns {listed(missing)} of {first}; it has "
                f"{listed(list(dtypes))}."
            )
        for column in self.names:
            if dtypes[column] != self._dtypes[column]:
                raise ValueError(
                    f"{where}, column {column!r} holds {_shown(dtypes[column])}, but "
                    f"{_shown(self._dtypes[column])} in {first}."
                )


def listed(names: Sequence[str]) -> str:
    """The first of some names."""
    return f"{list(names[:10])}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _shown(dtype: np.dtype[Any] | None) -> str:
    return "no real numbers" if dtype is None else str(dtype)


def arrow_dtype(kind: Any) -> np.dtype[Any] | None:
    """NumPy's name for a type of Arrow; None if it holds no real numbers."""
    from pyarrow import types

    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    return None


def refuse_repeated(names: Sequence[str], where: str) -> None:
    """ValueError that names a column which is there more than once."""
    column, count = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise ValueError(
            f"{where} has {count} columns called {column!r}, and names of features must differ: "
            "rename or drop all but one."
        )


def table_dtypes(table: Any, where: str) -> dict[str, np.dtype[Any] | None] | None:
    """Names and dtypes of columns; None if it is an array, or numbers its columns."""
    if hasattr(table, "num_rows"):  # pyarrow
        refuse_repeated(table.schema.names, where)
        return {field.name: arrow_dtype(field.type) for field in table.schema}
    names = column_names(table)
    if names is None:
        return None
    refuse_repeated(names, where)
    return {name: _real(_values(table[name][:0]).dtype) for name in names}


def _real(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    return dtype if dtype.kind in "biuf" else None


def _values(column: Any) -> AnyArray:
    """Values of a column of pandas or polars, which must lack none."""
    dtype = getattr(column.dtype, "numpy_dtype", None)  # of pandas' nullable types
    return np.asarray(column.to_numpy() if dtype is None else column.to_numpy(dtype=dtype))


def table_columns(table: Any, names: Sequence[str], where: str, begin: int) -> list[AnyArray]:
    """Columns by name; ValueError that names row and column where a value is missing."""
    is_arrow = hasattr(table, "num_rows")
    found = []
    for j, name in enumerate(names):
        column = table.column(name) if is_arrow else table[name]
        is_missing = _is_missing(column)
        if is_missing is not None:
            row = begin + int(np.argmax(is_missing))
            raise not_finite("a missing value", where, row, j, names)
        found.append(_arrow_values(column) if is_arrow else _values(column))
    return found


def _is_missing(column: Any) -> AnyArray | None:
    """Mask of missing values, which are not NaN; None if there are none."""
    if hasattr(column, "null_count"):  # pyarrow counts without looking, polars by a method
        n_missing = column.null_count() if callable(column.null_count) else column.null_count
        return np.asarray(column.is_null()) if n_missing else None
    is_missing = np.asarray(column.isna())
    return is_missing if is_missing.any() else None


def _arrow_values(column: Any) -> AnyArray:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class _Stored:
    """What the footer of a Parquet file says."""

    path: Path
    dtypes: dict[str, np.dtype[Any] | None]  # None: no real numbers
    groups: tuple[int, ...]  # rows of every row group
    index: tuple[str, ...]  # columns that pandas takes for names of rows

    @property
    def n_rows(self) -> int:
        return sum(self.groups)


class ParquetFiles(Reader):
    """The rows of Parquet files, one file after the other; some of their columns."""

    kind = "Parquet files"
    order = "F"  # a table is copied column by column

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._files = [_stored(file, name) for file in files]
        self.n_rows = sum(file.n_rows for file in self._files)
        first = self._files[0]
        self._take(Columns(first.dtypes, on_request=first.index))

    def _take(self, columns: Columns) -> None:
        self._columns = columns
        self._dtype: np.dtype[Any] | None = None  # compares all files: only once
        self.feature_names, self.n_features = columns.names, len(columns.names)

    def selected(self, names: Sequence[str]) -> ParquetFiles:
        other = copy(self)
        other._take(self._columns.selected(names, self.name))
        return other

    @property
    def dtype(self) -> np.dtype[Any]:
        if self._dtype is None:
            for file in self._files[1:]:
                self._columns.compare(file.dtypes, f"{self.name}: {file.path}", self._files[0].path)
            self._dtype = self._columns.dtype_in(self.name)
        return self._dtype

    @property
    def _buffer(self) -> int:
        least, most = _BUFFER
        return max(least, min(most, self.memory // (_SHARE * max(1, self.n_features))))

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
            else:
                yield from self._around(file, begin, wanted)
            begin += file.n_rows

    def _around(self, file: _Stored, begin: int, wanted: AnyArray) -> Iterator[Chunk]:
        for group, size in enumerate(file.groups):
            low, high = np.searchsorted(wanted, [begin, begin + size])
            if low < high:
                for chunk in self._batches(file, begin, [group], _LOOK):
                    yield chunk
                    if chunk.start + len(chunk) > wanted[high - 1]:
                        break
            begin += size

    def _batches(
        self, file: _Stored, begin: int, groups: list[int] | None, n_rows: int
    ) -> Iterator[Chunk]:
        names = self._columns.names
        with _opened(file.path, self.name, self._buffer) as parquet:
            batches = parquet.iter_batches(n_rows, groups, names, use_threads=self.use_threads)
            for batch in batches:
                if batch.num_rows:
                    where = f"{self.name}: {file.path}"
                    columns = table_columns(batch, names, where, begin)
                    yield TableChunk(begin, str(file.path), columns)
                    begin += batch.num_rows


@contextmanager
def _opened(path: Path, name: str, buffer: int = _BUFFER[1]) -> Iterator[Any]:
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
    except (OSError, pyarrow.ArrowException) as error:
        raise OSError(f"{name}: {path} cannot be read as Parquet ({error}).") from error


def _stored(path: Path, name: str) -> _Stored:
    with _opened(path, name) as file:
        metadata = file.metadata
        groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        schema = file.schema_arrow
    refuse_repeated(schema.names, f"{name}: {path}")
    dtypes = {field.name: arrow_dtype(field.type) for field in schema}
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    # A range is not stored as a column, and described by a dictionary.
    return _Stored(path, dtypes, groups, tuple(one for one in index if isinstance(one, str)))
