"""What reads a source, files, a table or batches, and the chunks of rows that come off it.

Readers know rows, not sums. There is one for each kind of source: see ``arrays.py``,
``parquet.py`` and ``batches.py``; ``source.py`` chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from io import RawIOBase
from typing import Any, Literal, Protocol, Self

import numpy as np

from ..._core.types import AnyArray
from ..base import changed

DEFAULT_MEMORY = 2**28  # bytes held of the rows at a time
_COUNTED = 2**16  # rows read at once to be counted


class Reader:
    """Rows in a fixed order, to be read any number of times. Subclasses supply ``chunks``."""

    kind: str  # what is read, in words
    n_rows: int | None  # None: not known before all were read
    n_rows_by = ""  # who said so, should it turn out wrong
    n_features: int
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False  # to decode what was read, where that takes longer than the arithmetic

    def __init__(self, name: str, files: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.name = name  # of the argument, for messages
        self.watch(files)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the blocks that rows are copied into."""
        raise NotImplementedError

    def named(self, name: str) -> Self:
        """The same rows under another name."""
        other = copy(self)
        other.name = name
        return other

    def selected(self, names: Sequence[str]) -> Reader:
        """The same rows, of these columns only; of a source without names, all columns."""
        return self

    def watch(self, files: Sequence[str | os.PathLike[str]]) -> None:
        """Remember size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file, self.name) for file in files}

    def check_unchanged(self) -> None:
        """ValueError that names a file of another size or time of change than when it was opened.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            size, _ = now = _stamp(file, self.name)
            if size != first[0]:
                raise changed(self.name, f"{file} has {size} bytes, and had {first[0]} at first")
            if now != first:
                raise changed(self.name, f"{file} was written to since it was opened")

    def spread(self, n: int) -> AnyArray:
        """At most ``n`` row numbers for a first look: cheap to read, and far apart if possible."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Exact number of rows; reads them if nothing else tells."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(len(chunk) for chunk in self.chunks(_COUNTED))

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        """All rows, about ``n_rows`` at a time; or chunks that hold the rows of wanted numbers."""
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str], name: str) -> tuple[int, int]:
    """Size and time of change."""
    try:
        status = os.stat(file)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(file)}.") from error
    return status.st_size, status.st_mtime_ns


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
    """Rows that lie one after the other in an open file, ``step`` bytes apart."""

    def __init__(
        self, start: int, where: str, file: RawIOBase, offset: int, n_rows: int, step: int
    ) -> None:
        self.start, self.where = start, where
        self._file, self._offset = file, offset
        self._n_rows, self._step = n_rows, step

    def __len__(self) -> int:
        return self._n_rows

    def fill(self, target: AnyArray, begin: int) -> None:
        _read_into(self._file, self._offset + begin * self._step, target, self.where)


class StoredColumns(StoredChunk):
    """Rows of an open file in which columns lie one after the other, ``step`` bytes apart."""

    def fill(self, target: AnyArray, begin: int) -> None:
        offset = self._offset + begin * target.itemsize
        for j, column in enumerate(target.T):
            _read_into(self._file, offset + j * self._step, column, self.where)


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
