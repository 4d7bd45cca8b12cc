"""Rows of a NumPy array, read in blocks that fit into the cache; several sources as one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import LabelSums, Rule, no_label_sums, scaled
from .._core.moments import Moments, no_moments
from .._core.problem import Rows
from .._core.types import AnyArray, Array
from .base import Block, BlockRows, Curvature, Result, Slab
from .passes import PartOfPass, report_as


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
        super().__init__(
            len(X), X.shape[1], weights, is_member, block_rows=block_rows, n_threads=n_threads
        )
        self._X = X
        self._has_contiguous_rows = bool(X.flags.c_contiguous)
        is_plain = X.dtype == np.float64 and self._has_contiguous_rows
        self._can_skip_blocks = is_plain and self._is_member is None

    def blocks(self) -> Iterator[Block]:
        """Rows, weights and indices, block by block, in the same cuts every time."""
        return self._blocks(Slab(0, self._X))

    def _slabs(self, *, is_listed: bool = False) -> Generator[Slab, None, None]:
        for start in range(0, len(self._X), self._slab_rows):
            yield Slab(start, self._X[start : start + self._slab_rows])

    def _pass(
        self, of_slab: Callable[[Slab], Result], *, is_listed: bool = False
    ) -> Iterator[Result]:
        if len(self._X) <= self._block_rows:  # not worth a change of BLAS threads, nor a report
            return map(of_slab, self._slabs())
        return super()._pass(of_slab)

    def _first_rows(self) -> AnyArray:
        return next(self.blocks())[0]

    def _rows_at(self, index: AnyArray) -> AnyArray:
        return self._X if len(index) == len(self._X) else self._X[index]


class ChainedRows:
    """The rows of the first part, then those of the second, and so on; all weights x ``factor``.

    Passes are counted here, and reported as passes over all parts.
    """

    def __init__(self, parts: Sequence[Rows], n_features: int, factor: float = 1.0) -> None:
        self._parts = [part for part in parts if part.n_rows > 0]
        self.n_features = n_features
        self._factor = factor
        self._n_passes = 0
        self._n_read: list[int | None] = [None] * len(self._parts)  # rows of each, once read

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    def moments(self, frame: Frame) -> Moments:
        found = self._pass(lambda part: part.moments(frame))
        return sum(found, no_moments(self.n_features)).scaled(self._factor)

    def label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None = None, *, curvature: Curvature = 0
    ) -> LabelSums:
        found = self._pass(lambda part: part.label_sums(rule, frame, centers, curvature=curvature))
        return scaled(sum(found, no_label_sums(rule.n_classes, self.n_features)), self._factor)

    def _pass(self, of_part: Callable[[Rows], Result]) -> list[Result]:
        """One pass over all rows: a result of every part, in their order."""
        self._n_passes += 1
        found = []
        for i, rows in enumerate(self._parts):
            before, after = self._n_read[:i], self._n_read[i + 1 :]
            n_after = None if None in after else sum(n or 0 for n in after)
            part = PartOfPass(self._n_passes, sum(n or 0 for n in before), n_after)
            with report_as(part):
                found.append(of_part(rows))
            self._n_read[i] = part.n_done
        return found

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        share = min(1.0, n / max(1, self.n_rows))
        # Between passes samples are not reported; the first one may take long.
        with report_as(PartOfPass(None)) if self._n_passes else nullcontext():
            drawn = [
                part.sample(max(1, round(share * part.n_rows)), seed + i)
                for i, part in enumerate(self._parts)
            ]
        if not drawn:
            return np.zeros((0, self.n_features)), np.zeros(0)
        if len(drawn) == 1:  # not copied
            return drawn[0][0], self._factor * drawn[0][1]
        rows, weights = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
        return rows, self._factor * weights

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        with report_as(PartOfPass(None)):
            shares = [part.responsibilities(rule, frame) for part in self._parts]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))
