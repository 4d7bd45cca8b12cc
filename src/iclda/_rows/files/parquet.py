"""Rows in Parquet files, read by pyarrow a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from .reader import Chunk, Reader, TableChunk
from .tables import Columns, arrow_dtype, refuse_repeated, table_columns

_BUFFER = (2**13, 2**17)  # bytes read at once of each column: a row group is never held whole
_SHARE = 8  # of memory, that all these buffers may take
_GROUPS = 16  # row groups that a pilot looks at
_LOOK = 1024  # rows decoded at once where a few are wanted


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
