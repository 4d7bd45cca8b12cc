"""Rows cut into slabs of equal length, checked as they are read: finite, the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..._core.types import AnyArray
from ..base import check_finite
from .reader import Chunk, Reader


@dataclass(frozen=True)
class Slab:
    """Consecutive rows in memory, the first of them number ``start``."""

    number: int | None  # None: not one of those that all rows are cut into
    start: int
    rows: AnyArray
    where: str  # the file or batch where they begin

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)

    def __str__(self) -> str:
        block = "a block" if self.number is None else f"block {self.number}"
        return f"{block} (rows {self.start} to {self.stop - 1}, {self.where})"

    def check_finite(self, name: str, feature_names: Sequence[str] | None) -> None:
        """ValueError that names block, row and column of the first NaN or infinity."""
        numbers = range(self.start, self.stop)
        check_finite(self.rows, name, feature_names, numbers=numbers, where=f": {self}")


def cut(chunks: Iterable[Chunk], reader: Reader, n_rows: int) -> Iterator[Slab]:
    """Slabs of ``n_rows`` rows, the last one of what is left: the same for any size of chunks."""
    dtype, number, filled = reader.dtype, 0, 0
    for chunk in chunks:
        done = 0
        while done < len(chunk):
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty((n_rows, reader.n_features), dtype, order=reader.order)
                start, where = chunk.start + done, chunk.where
            n_taken = min(n_rows - filled, len(chunk) - done)
            chunk.fill(buffer[filled : filled + n_taken], done)
            filled, done = filled + n_taken, done + n_taken
            if filled == n_rows:
                yield Slab(number, start, buffer, where)
                del buffer  # it is the consumer's now
                number, filled = number + 1, 0
    if filled:
        yield Slab(number, start, buffer[:filled], where)
