"""Rows of a NumPy array, read in blocks that fit into the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .._core.frame import Frame
from .._core.moments import is_near_zero
from .._core.types import AnyArray, Array
from .base import Block, BlockRows, OfBlocks, Sum, added
from .progress import reported
from .threads import in_order

_BLOCK_ROWS = (512, 8192)
_BLOCK_ENTRIES = 2**17  # float64: half the second-level cache of a core
_BLOCK_MULTIPLE = 64  # compiled loops give the same sums for any cut into such blocks
GROUP = 8  # blocks added up by one thread before their sum joins the others


class MemoryRows(BlockRows):
    """All rows of ``X``, or those that ``is_member`` marks. Nothing is copied but blocks."""

    def __init__(
        self,
        X: AnyArray,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        block_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(len(X), weights, is_member)
        self._X = X
        self._block_rows = block_rows or rows_per_block(X.shape[1])
        self._n_threads = n_threads

    @property
    def n_features(self) -> int:
        return int(self._X.shape[1])

    def blocks(self) -> Iterator[Block]:
        """Rows, weights and row numbers, block by block, in the same cuts every time."""
        return map(self._block, range(0, len(self._X), self._block_rows))

    def _each(self, of_block: Callable[[Block], AnyArray]) -> Iterator[AnyArray]:
        return map(of_block, self.blocks())

    def _block(self, start: int, n_rows: int | None = None) -> Block:
        end = start + (self._block_rows if n_rows is None else n_rows)
        return self._block_of(self._X, 0, start, min(end, len(self._X)))

    @property
    def _is_long(self) -> bool:
        return len(self._X) > self._block_rows

    def _is_summed_from_zero(self, frame: Frame) -> bool:
        if self._weights is not None or not self._is_long:
            return False
        return is_near_zero(self._block(0)[0], frame)

    @property
    def _are_rows_contiguous(self) -> bool:
        return bool(self._X.flags.c_contiguous)

    @property
    def _is_read_in_place(self) -> bool:
        is_plain = self._X.dtype == np.float64 and self._are_rows_contiguous
        return is_plain and self._is_member is None

    def _added_up(self, of_blocks: OfBlocks[Sum], *, is_compiled: bool = False) -> Sum | None:
        """Sum over all blocks; the order of additions is the same for any number of threads."""
        if self.n_rows == 0:
            return None
        if not self._is_long:
            return of_blocks([self._block(0)])
        n_all, length = len(self._X), self._block_rows * GROUP

        def of_group(begin: int) -> Sum:
            if is_compiled and self._is_read_in_place:
                return of_blocks([self._block(begin, length)])
            starts = range(begin, min(begin + length, n_all), self._block_rows)
            return of_blocks(map(self._block, starts))

        sums = in_order(of_group, range(0, n_all, length), self._n_threads)
        return added(reported(sums, length, n_all))

    def _rows_at(self, numbers: AnyArray) -> AnyArray:
        return self._X if len(numbers) == len(self._X) else self._X[numbers]


def rows_per_block(n_features: int) -> int:
    """Rows of a block that fits into the cache."""
    least, most = _BLOCK_ROWS
    fitting = _BLOCK_ENTRIES // max(1, n_features)
    return int(min(most, max(least, fitting))) // _BLOCK_MULTIPLE * _BLOCK_MULTIPLE
