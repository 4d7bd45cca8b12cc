"""Open files of rows by what they hold; write tables block by block.

`open_data` returns the reader of a file: of CSV or Excel, of Parquet, or of arrays. All
have the methods of `readers.DataReader`. `appending` writes tables of some rows each,
so that a file of any size can be predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .array_files import FeatureFile
from .cells import require_for_tables
from .csv_files import CsvReader
from .parquet_files import ParquetReader
from .readers import DataReader, TableReader, explained_errors
from .text_formats import EXCEL_SUFFIXES, excel_text

# Files of arrays; a folder has several of the first kind.
_ARRAY_SUFFIXES = (".npy", ".npz")
# Files that predictions are written to.
WRITTEN_SUFFIXES = (".csv", ".parquet")
# The first bytes of a Parquet file.
_PARQUET_MAGIC = b"PAR1"


def open_data(path: Path, ids: Sequence[str] = ()) -> DataReader:
    """Open a table or an array file; ``ids`` name columns that identify the rows."""
    has_array_suffix = path.suffix.lower() in _ARRAY_SUFFIXES
    if has_array_suffix or path.is_dir():
        return FeatureFile(path, ids)
    return open_table(path)


def open_table(path: Path) -> TableReader:
    """Open a file; ValueError if it cannot be read as a table."""
    with explained_errors(path), path.open("rb") as opened:
        if opened.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return ParquetReader(path)
        is_excel = path.suffix.lower() in EXCEL_SUFFIXES
        return CsvReader(path, opened, excel_text(path) if is_excel else None)


@contextmanager
def appending(path: Path, suffix: str) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends Arrow tables to a new CSV or Parquet file."""
    with ExitStack() as opened:
        if suffix.lower() == ".csv":
            file = opened.enter_context(path.open("w", newline="", encoding="utf-8"))

            def append(rows: Any) -> None:
                # Integers with gaps, such as ids, are not turned into floats.
                frame = rows.to_pandas(integer_object_nulls=True)
                has_header = file.tell() > 0
                frame.to_csv(
                    file, index=False, header=not has_header, lineterminator="\n"
                )
        else:
            # Empty until the first rows have given the types.
            writers: list[Any] = []

            def append(rows: Any) -> None:
                if not writers:
                    parquet = require_for_tables("pyarrow.parquet")
                    writer = parquet.ParquetWriter(path, rows.schema)
                    writers.append(opened.enter_context(writer))
                writers[0].write_table(rows)

        yield append
