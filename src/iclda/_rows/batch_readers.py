"""Readers of batches: arrays, tables, Parquet files, datasets, queries.

A batch is some consecutive rows; a row can be reached only through those before it,
except in Parquet files, where a row group can be reached directly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._core import AnyArray
from .._system import require
from .checks import check_finite, check_rows, names_of_table, refuse_repeated
from .parquet import ParquetFile
from .readers import Columns, Reader, Span, check_present, named_errors

# The first rows must be the same in two calls of a factory.
_COMPARED_ROWS = 16
# A first look reads the beginning of this many row groups of Parquet files.
_FIRST_LOOK_GROUPS = 16
# A column of a Parquet file is read in pieces of this size, so that no row group is
# held as a whole. All columns together take at most 1 / _BUFFER_DIVISOR of the memory.
_MIN_COLUMN_BUFFER_BYTES = 2**13
_MAX_COLUMN_BUFFER_BYTES = 2**17
_BUFFER_DIVISOR = 8
# Rows of a Parquet file are decoded in batches of about this size: a batch is held
# together with the block that it is copied to.
_BATCH_BYTES = 2**21

# Takes names of columns and a number of rows; returns a new iterable of such batches.
Factory = Callable[["list[str] | None", int], Iterable[Any]]
Count = Callable[[], int] | None


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
            self.set_columns(columns, list(columns))
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
            # Empty batches may lack columns, or have another dtype.
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
            # Rows after the last one wanted need not be produced.
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
    # A generator that was made once would give its rows to the first pass only.
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


# Columns of tables.


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
    # Only the nullable types of pandas have this attribute.
    dtype = getattr(getattr(column, "dtype", None), "numpy_dtype", None)
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
    check_present(names, names_of_table(table) or (), where)
    columns = [_column(table, name) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.can_cast(values.dtype, dtype):
            # Integers with missing values come as floating point: name what is missing.
            index = range(start, start + len(values))
            check_finite(values[:, None], where, [name], index=index)
            raise _dtype_error(f"{where}, column {name!r}", values.dtype, dtype)
    return columns


def _dtype_error(where: str, dtype: np.dtype[Any], first: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"{where} holds {dtype}, but {first} was read before: use one for all parts."
    )


# Parquet files and tables of other libraries.


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
            with self._errors_of(path):
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
        self.set_columns(columns, names)

    def _errors_of(self, path: Path) -> Any:
        arrow = require("pyarrow", f"reading {path}", "files")
        errors = (OSError, arrow.ArrowException)
        return named_errors(errors, f"{self.name}: {path}")

    def spread(self, n: int) -> AnyArray:
        """Return the first rows of some row groups: only these are decoded."""
        n_groups = len(self._groups)
        n_chosen = min(_FIRST_LOOK_GROUPS, n_groups)
        chosen = np.unique(np.linspace(0, n_groups - 1, n_chosen).astype(int))
        rows_per_group = math.ceil(n / max(1, len(chosen)))
        index: list[int] = []
        for i in chosen:
            group = self._groups[i]
            stop = min(group.start + rows_per_group, group.stop)
            index.extend(range(group.start, stop))
        return np.array(index[:n], dtype=np.int64)

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        names = self.feature_names or []
        dtype = self.find_dtype()
        buffer_bytes = self._buffer_bytes
        row_bytes = max(1, self.n_features) * dtype.itemsize
        n_rows = min(n_rows, max(1, _BATCH_BYTES // row_bytes))
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
                buffer_bytes=buffer_bytes,
                use_threads=self.use_threads,
            )
            with self._errors_of(file.path), closing(batches):
                for batch in batches:
                    where = f"{self.name}: {file.path}"
                    columns = _columns_in(batch, names, dtype, where, start)
                    yield Span(start, len(batch), str(file.path), columns)
                    start += len(batch)
                    if start >= stop:
                        break

    @property
    def _buffer_bytes(self) -> int:
        """Size of the pieces in which a column is read."""
        n_fitting = self.memory // (_BUFFER_DIVISOR * max(1, self.n_features))
        n_bounded = min(n_fitting, _MAX_COLUMN_BUFFER_BYTES)
        return max(n_bounded, _MIN_COLUMN_BUFFER_BYTES)


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

    # The schema is all that is needed: nothing is read to open a dataset.
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
