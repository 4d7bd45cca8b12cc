"""Rows of a NumPy array, read in blocks that fit into the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import Rule, fold
from .._core.moments import is_near_zero
from .._core.types import AnyArray, Array
from .ahead import in_order
from .progress import reported
from .sums import Block, BlockSums, OfBlocks, Sum, added

_BLOCK_ROWS = (512, 8192)
_BLOCK_ENTRIES = 2**17  # float64: half the second-level cache of a core
_BLOCK_MULTIPLE = 64  # compiled loops give the same sums for any cut into such blocks
GROUP = 8  # blocks added up by one thread before their sum joins the others


class MemoryRows(BlockSums):
    """All rows of ``X``, or those that ``is_member`` marks. Nothing is copied but blocks."""

    def __init__(
        self,
        X: AnyArray,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        block_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        is_partial = is_member is not None and not is_member.all()
        self._X = X
        self._weights = weights
        self._is_member = is_member if is_partial else None
        self._n_rows = len(X) if self._is_member is None else int(self._is_member.sum())
        self._block_rows = block_rows or rows_per_block(X.shape[1])
        self._n_threads = n_threads

    @property
    def n_rows(self) -> int:
        return self._n_rows

    @property
    def n_features(self) -> int:
        return int(self._X.shape[1])

    def blocks(self) -> Iterator[Block]:
        """Rows, weights and row numbers, block by block, in the same cuts every time."""
        for start in range(0, len(self._X), self._block_rows):
            yield self._block(start)

    def _block(self, start: int, n_rows: int | None = None) -> Block:
        end = start + (self._block_rows if n_rows is None else n_rows)
        index: slice | AnyArray = slice(start, min(end, len(self._X)))
        if self._is_member is not None:
            index = start + np.flatnonzero(self._is_member[index])
        rows = self._X[index]
        if rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        return rows, None if self._weights is None else self._weights[index], index

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

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        index: slice | AnyArray = slice(None)
        if n < self.n_rows:
            index = np.sort(np.random.default_rng(seed).choice(self.n_rows, n, replace=False))
        if self._is_member is not None:
            index = np.flatnonzero(self._is_member)[index]
        rows = np.asarray(self._X[index], dtype=np.float64)
        if self._weights is None:
            return rows, np.full(len(rows), self.n_rows / max(1, len(rows)))
        weights = self._weights[index]
        if n >= self.n_rows:
            return rows, weights
        drawn = float(weights.sum())
        return rows, weights * (self._total_weight() / drawn) if drawn > 0 else weights

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        rule, is_folded = fold(rule, frame)
        found = np.empty((self.n_rows, rule.n_classes))
        begin = 0
        for rows, _, index in self.blocks():
            shares = rule.shares(rows if is_folded else frame.apply(rows), index)[0]
            found[begin : begin + len(rows)] = shares.T
            begin += len(rows)
        return found

    def _total_weight(self) -> float:
        assert self._weights is not None
        members = slice(None) if self._is_member is None else self._is_member
        return float(self._weights[members].sum())


def rows_per_block(n_features: int) -> int:
    """Rows of a block that fits into the cache."""
    least, most = _BLOCK_ROWS
    fitting = _BLOCK_ENTRIES // max(1, n_features)
    return int(min(most, max(least, fitting))) // _BLOCK_MULTIPLE * _BLOCK_MULTIPLE
