"""The sums of ``_core.rows.Rows`` from blocks of rows, however a backend cuts and reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import TypeVar

import numpy as np

from .._core.boundary import BoundaryRows
from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    LinearRule,
    Rule,
    Tally,
    fold,
    no_label_sums,
    unfolded,
)
from .._core.moments import (
    Moments,
    SumsFromZero,
    moments_of_block,
    no_moments,
    sums_from_zero,
)
from .._core.types import AnyArray, Array
from .compiled import CompiledTally, rule_for_loops

Block = tuple[AnyArray, "Array | None", "slice | AnyArray"]  # rows, weights, row numbers
Sum = TypeVar("Sum", Moments, SumsFromZero, LabelSums, "Labeled")
OfBlocks = Callable[[Iterable[Block]], Sum]


@dataclass(frozen=True)
class Labeled:
    """Label sums of some blocks, and their rows near a boundary if these are asked for."""

    sums: LabelSums
    between: BoundaryRows | None

    def __add__(self, other: Labeled) -> Labeled:
        if self.between is not None and other.between is not None:
            self.between.join(other.between)
        return Labeled(self.sums + other.sums, self.between)

    def with_curvature(self) -> LabelSums:
        if self.between is None:
            return self.sums
        return replace(self.sums, curvature=self.between.scatter())


class BlockSums:
    """Moments and label sums; ``_added_up``, ``n_rows`` and ``n_features`` are a backend's."""

    _total: SumsFromZero | None = None  # of all rows, once they were summed from zero

    @property
    def n_rows(self) -> int:
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        raise NotImplementedError

    @property
    def _are_rows_contiguous(self) -> bool:
        """Whether the numbers of a row lie side by side in memory."""
        return True

    def _added_up(self, of_blocks: OfBlocks[Sum], *, is_compiled: bool = False) -> Sum | None:
        """Sum of a function of groups of blocks, in a fixed order; None if there are no rows.

        ``is_compiled``: blocks need not fit into the cache, whoever reads them cuts them himself.
        """
        raise NotImplementedError

    def _is_summed_from_zero(self, frame: Frame) -> bool:
        """Whether rows are many and near enough to zero to be summed without a copy."""
        raise NotImplementedError

    def moments(self, frame: Frame) -> Moments:
        if self._is_summed_from_zero(frame):
            sums = self._added_up(lambda blocks: added(sums_from_zero(a) for a, _, _ in blocks))
            moments = None if sums is None else sums.moments(frame)
            if moments is not None:
                self._total = sums
                return moments

        def of_blocks(blocks: Iterable[Block]) -> Moments:
            return added(moments_of_block(frame.apply(rows), w) for rows, w, _ in blocks)

        return self._added_up(of_blocks) or no_moments(self.n_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        # One read a pass: fold the frame into the rule rather than shift and scale every row.
        # Labels come from the folded rule whenever there is one: ties must fall the same way with
        # and without scatter.
        folded, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        if sums_raw and isinstance(folded, LinearRule):
            folded = folded.knowing(self._total)
        n_numbers = self.n_rows * self.n_features
        for_loops = rule_for_loops(folded, n_numbers) if self._are_rows_contiguous else None
        used_rule, kind = (folded, Tally) if for_loops is None else (for_loops, CompiledTally)

        def of_blocks(blocks: Iterable[Block]) -> Labeled:
            between = BoundaryRows(curvature, rule.n_classes) if np.any(curvature) else None
            tally = kind(used_rule, self.n_features, centers)
            for rows, weights, index in blocks:
                used = rows if sums_raw else frame.apply(rows)
                shares = tally.add(rows if is_folded else used, used, weights, index)
                if between is not None:
                    between.add(used, weights, shares)
            return Labeled(tally.sums(), between)

        found = self._added_up(of_blocks, is_compiled=for_loops is not None)
        if found is None:
            return no_label_sums(rule.n_classes, self.n_features)
        total = found.with_curvature()
        return unfolded(used_rule.completed(total), frame) if sums_raw else rule.completed(total)


def added(parts: Iterable[Sum]) -> Sum:
    """Sum of all parts, of which there is at least one, in their order."""
    return reduce(add, parts)


def joined(results: Iterable[AnyArray], n_rows: int | None = None) -> AnyArray:
    """Results of blocks, at least one, after each other, in the dtype of the first.

    Its byte order too. If it is known how many rows there will be, none is held twice.
    """
    if n_rows is None:
        results = list(results)
        n_rows = sum(map(len, results))
    parts = iter(results)
    first = next(parts)
    found = np.empty((n_rows, *first.shape[1:]), first.dtype)
    n_done = 0
    for part in chain([first], parts):
        found[n_done : n_done + len(part)] = part
        n_done += len(part)
    return found
