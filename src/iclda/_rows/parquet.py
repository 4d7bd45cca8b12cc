"""One Parquet file: its metadata, and batches of some of its columns.

For rows of numbers see ``readers.ParquetFiles``; tables of any types read this
directly::

    file = ParquetFile(Path("customers.parquet"))
    file.n_rows, file.schema.names
    for batch in file.batches(["age", "city"], n_rows=10_000):
        ...
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from .._system import require

# Bytes that are read of a column at a time, unless the caller has a budget for all
# columns.
_COLUMN_BUFFER_BYTES = 2**20


class ParquetFile:
    """A Parquet file. It is open only while it is read; its metadata are kept.

    Errors are those of pyarrow (ArrowException, OSError); ImportError if it is missing.

    Attributes
    ----------
    path : Path
    n_rows : int
        Number of rows, from the metadata.
    rows_per_group : list of int
        Number of rows of each row group.
    schema : pyarrow.Schema
        Names and types of the columns as they were written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._metadata: Any = None
        with self._opened(_COLUMN_BUFFER_BYTES) as file:
            self._metadata = file.metadata
            self.schema = file.schema_arrow
        self.n_rows = int(self._metadata.num_rows)
        groups = range(self._metadata.num_row_groups)
        self.rows_per_group = [self._metadata.row_group(i).num_rows for i in groups]

    def read(self, columns: Sequence[str]) -> Any:
        """Return all rows as an Arrow table of these columns."""
        with self._opened(_COLUMN_BUFFER_BYTES) as file:
            return file.read(list(columns))

    def batches(
        self,
        columns: Sequence[str],
        n_rows: int,
        *,
        groups: Sequence[int] | None = None,
        buffer_bytes: int = _COLUMN_BUFFER_BYTES,
        use_threads: bool = False,
    ) -> Generator[Any, None, None]:
        """Yield Arrow batches of these columns, of about ``n_rows`` rows, in order.

        Parameters
        ----------
        columns : sequence of str
            Names of the columns; others are not decoded.
        n_rows : int
            Rows of a batch. Batches at the end of a row group have fewer.
        groups : sequence of int, default=None
            Row groups to read. None: all.
        buffer_bytes : int
            Bytes that are read of a column at a time.
        use_threads : bool, default=False
            Whether columns are decoded in parallel.
        """
        arrow = require("pyarrow", f"reading {self.path}", "files")
        try:
            with self._opened(buffer_bytes) as file:
                yield from file.iter_batches(
                    n_rows, groups, list(columns), use_threads=use_threads
                )
        finally:
            # Arrow keeps what it freed for the same thread. The next pass may be read
            # in another one, so that both would hold a page of every column.
            arrow.default_memory_pool().release_unused()

    def _opened(self, buffer_bytes: int) -> Any:
        parquet = require("pyarrow.parquet", f"reading {self.path}", "files")
        # With a buffer and without prefetching, row groups are not held as a whole.
        return parquet.ParquetFile(
            self.path,
            metadata=self._metadata,
            buffer_size=buffer_bytes,
            pre_buffer=False,
            page_checksum_verification=True,
        )
