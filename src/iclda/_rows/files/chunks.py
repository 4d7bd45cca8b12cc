"""Parts of a source as they come off it, to be copied into blocks of one shape and dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Rows of an array in memory, or mapped into it; ``check`` is called before every read."""

    def __init__(
        self, start: int, where: str, rows: AnyArray, check: Callable[[], None] = lambda: None
    ) -> None:
        self.start, self.where = start, where
        self._rows, self._check = rows, check

    def __len__(self) -> int:
        return len(self._rows)

    def fill(self, target: AnyArray, begin: int) -> None:
        self._check()
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
        _read_into(self._file, self._offset + begin * self._row_bytes, target, self.where)


class StoredColumns:
    """Rows of an open file in which columns lie one after the other, ``column_bytes`` apart."""

    def __init__(
        self, start: int, where: str, file: RawIOBase, offset: int, n_rows: int, column_bytes: int
    ) -> None:
        self.start, self.where = start, where
        self._file, self._offset = file, offset
        self._n_rows, self._column_bytes = n_rows, column_bytes

    def __len__(self) -> int:
        return self._n_rows

    def fill(self, target: AnyArray, begin: int) -> None:
        offset = self._offset + begin * target.itemsize
        for j, column in enumerate(target.T):
            _read_into(self._file, offset + j * self._column_bytes, column, self.where)


def _read_into(file: RawIOBase, offset: int, target: AnyArray, where: str) -> None:
    """Read, not map: what is not there any more is an error, not the end of the process."""
    rows = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
    left = memoryview(rows.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    file.seek(offset)
    while left:
        n_read = file.readinto(left)
        if not n_read:
            raise OSError(f"{where} ends {len(left)} bytes early: it was cut short.")
        left = left[n_read:]
    if rows is not target:
        target[...] = rows


def rows_of(chunk: Chunk, n_features: int, dtype: Any) -> AnyArray:
    """All rows of a chunk."""
    rows = np.empty((len(chunk), n_features), dtype)
    chunk.fill(rows, 0)
    return rows
