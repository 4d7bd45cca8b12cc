"""Rows appended to a CSV or Parquet file, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .requirements import require

SUFFIXES = (".csv", ".parquet")

Append = Callable[[Mapping[str, Any]], None]  # columns by name: arrays of NumPy or Arrow


@contextmanager
def appending(path: Path, suffix: str, columns: Sequence[str]) -> Iterator[Append]:
    """A function that appends rows to a new file of this kind."""
    writer = _csv_rows if suffix.lower() == ".csv" else _parquet_rows
    with writer(path, columns) as append:
        yield append


@contextmanager
def _csv_rows(path: Path, columns: Sequence[str]) -> Iterator[Append]:
    pandas = require("pandas")
    with path.open("x", newline="", encoding="utf-8") as file:

        def append(rows: Mapping[str, Any]) -> None:
            frame = pandas.DataFrame({name: _cells(column) for name, column in rows.items()})
            frame.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")

        yield append


def _cells(column: Any) -> Any:
    """An array for pandas; ids with gaps stay what they are instead of becoming floats."""
    return column if isinstance(column, np.ndarray) else np.array(column.to_pylist(), dtype=object)


@contextmanager
def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[Append]:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    files: list[Any] = []  # one, once the first rows have told the types

    def append(rows: Mapping[str, Any]) -> None:
        table = arrow.table({name: rows[name] for name in columns})
        if not files:
            files.append(parquet.ParquetWriter(path, table.schema))
        files[0].write_table(table)

    try:
        yield append
    finally:
        for file in files:
            file.close()
