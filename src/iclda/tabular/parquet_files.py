"""Parquet files, as pandas, polars or Arrow write them: columns keep their types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._rows.parquet import ParquetFile
from .list_columns import columns_of_lists, without_lists
from .readers import BATCH_ROWS, TableReader, explained_errors, sha256_of


class ParquetReader(TableReader):
    """A Parquet file; columns of lists of numbers become columns of numbers."""

    def __init__(self, path: Path) -> None:
        self._file = ParquetFile(path)
        self.lists = {}
        columns: list[str] = []
        for field in self._file.schema:
            # Nothing is read of a column that is not one of lists.
            batches = self._file.batches([field.name], BATCH_ROWS)
            chunks = (batch.column(0) for batch in batches)
            made_of_lists = columns_of_lists(field.name, field.type, chunks)
            if made_of_lists is None:
                columns.append(field.name)
            else:
                self.lists[field.name] = made_of_lists
                columns += made_of_lists
        super().__init__(path, columns)

    @property
    def n_rows(self) -> int:
        """Number of rows, from the metadata of the file."""
        return self._file.n_rows

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        stored = self._stored_names(columns)
        with explained_errors(self.path):
            rows = self._file.read(stored)
            # A list of which one number is asked for is read whole.
            rows = without_lists(rows, self.lists, self.path, self.first_row_number)
            return rows.select(columns)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        n_read = 0
        first = self.first_row_number
        stored = self._stored_names(types)
        with explained_errors(self.path):
            for batch in self._file.batches(stored, BATCH_ROWS):
                rows = without_lists(batch, self.lists, self.path, first + n_read)
                n_read += batch.num_rows
                yield rows, n_read / max(self.n_rows, 1)

    def sha256(self) -> str:
        """Return the checksum of the bytes of the file."""
        return sha256_of([self.path])

    def _stored_names(self, columns: Iterable[str]) -> list[str]:
        """Return the names that columns have in the file, each once."""
        list_of_column: dict[str, str] = {}
        for name, made_of_lists in self.lists.items():
            list_of_column |= dict.fromkeys(made_of_lists, name)
        stored = [list_of_column.get(column, column) for column in columns]
        return list(dict.fromkeys(stored))
