"""Parts of a source as they come off it, to be copied into blocks of one shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from io import RawIOBase
from typing import Any, Protocol

import numpy as np

from ..._core.types import AnyArray


class Chunk(Protocol):
    """Consecutive rows of a source, the first of them number ``start``."""

    start: int
    where: str  # the file or batch they come from, for messages

    def __len__(self) -> int: ...

    def fill(self, target: AnyArray, begin: int) -> None:
        """Copy rows from the ``begin``-th on into a (n, d) array."""
        ...


class ArrayChunk:
    """Rows of an array in memory, or mapped into it."""

    def __init__(self, start: int, where: str, rows: AnyArray) -> None:
        self.start, self.where = start, where
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def fill(self, target: AnyArray, begin: int) -> None:
        target[...] = self._rows[begin : begin + len(target)]


class TableChunk:
    """Rows of a table, column by column."""

    def __init__(self, start: int, where: str, columns: Sequence[AnyArray]) -> None:
        self.start, self.where = start, where
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def fill(self, target: AnyArray, begin: int) -> None:
        for j, column in enumerate(self._columns):
            target[:, j] = column[begin : begin + len(target)]


class StoredChunk:
    """Rows that lie one after the other in an open file."""

    def __init__(
        self, start: int, where: str, file: RawIOBase, offset: int, n_rows: int, row_bytes: int
    ) -> None:
        self.start, self.where = start, where
        self._file, self._offset = file, offset
        self._n_rows, self._row_bytes = n_rows, row_bytes

    def __len__(self) -> int:
        return self._n_rows

    def fill(self, target: AnyArray, begin: int) -> None:
        left = memoryview(target).cast("B")  # type: ignore[arg-type]
        self._file.seek(self._offset + begin * self._row_bytes)
        while left:
            n_read = self._file.readinto(left)
            if not n_read:
                raise OSError(f"{self.where} ends {len(left)} bytes early: it was cut short.")
            left = left[n_read:]


def rows_of(chunk: Chunk, n_features: int, dtype: Any) -> AnyArray:
    """All rows of a chunk."""
    rows = np.empty((len(chunk), n_features), dtype)
    chunk.fill(rows, 0)
    return rows
