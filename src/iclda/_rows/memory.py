"""Rows of a NumPy array, read in blocks that fit into the cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    Rule,
    boundary_scatter,
    fold,
    is_near_boundary,
    label_sums_of_block,
    no_label_sums,
    unfolded,
)
from .._core.moments import Moments, moments_of_block, no_moments
from .._core.types import AnyArray, Array

_BLOCK_ROWS = 8192
_BLOCK_ENTRIES = 2**19


class MemoryRows:
    """All rows of ``X``, or those that ``is_member`` marks. Nothing is copied but blocks."""

    def __init__(
        self,
        X: AnyArray,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        block_rows: int | None = None,
    ) -> None:
        self._X = X
        self._weights = weights
        self._members = None if is_member is None else np.flatnonzero(is_member)
        self._block_rows = block_rows or _rows_per_block(X.shape[1])

    @property
    def n_rows(self) -> int:
        return len(self._X) if self._members is None else len(self._members)

    @property
    def n_features(self) -> int:
        return int(self._X.shape[1])

    def blocks(self) -> Iterator[tuple[AnyArray, Array | None, slice | AnyArray]]:
        """Rows, weights and row numbers, block by block, in the same cuts every time."""
        for start in range(0, self.n_rows, self._block_rows):
            cut = slice(start, min(start + self._block_rows, self.n_rows))
            index = cut if self._members is None else self._members[cut]
            rows = self._X[index]
            if not rows.dtype.isnative or rows.dtype.kind != "f":
                rows = rows.astype(np.float64)
            yield rows, None if self._weights is None else self._weights[index], index

    def moments(self, frame: Frame) -> Moments:
        total = no_moments(self.n_features)
        for rows, weights, _ in self.blocks():
            total = total + moments_of_block(frame.apply(rows), weights)
        return total

    def label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None = None, *, curvature: bool = False
    ) -> LabelSums:
        total = no_label_sums(rule.n_classes, self.n_features)
        # One read a pass: fold the frame into the rule rather than shift and scale every row.
        # Labels come from the folded rule whenever there is one: ties must fall the same way with
        # and without scatter.
        rule, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        for rows, weights, index in self.blocks():
            used = rows if sums_raw else frame.apply(rows)
            shares, log_sums = rule.shares(rows if is_folded else used, index)
            sums = label_sums_of_block(used, weights, shares, log_sums, centers)
            if curvature:
                near = is_near_boundary(shares)
                u, w = frame.apply(rows[near]), None if weights is None else weights[near]
                sums = replace(sums, curvature=boundary_scatter(u, w, shares[:, near]))
            total = total + sums
        return unfolded(total, frame) if sums_raw else total

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        index: AnyArray = np.arange(self.n_rows)
        if n < self.n_rows:
            index = np.sort(np.random.default_rng(seed).choice(self.n_rows, n, replace=False))
        index = index if self._members is None else self._members[index]
        rows = np.asarray(self._X[index], dtype=np.float64)
        weights = np.ones(len(index)) if self._weights is None else self._weights[index]
        total = float(self.n_rows) if self._weights is None else self._total_weight()
        drawn = float(weights.sum())
        return rows, weights * (total / drawn) if drawn > 0 else weights

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        rule, is_folded = fold(rule, frame)
        shares = [
            rule.shares(rows if is_folded else frame.apply(rows), index)[0].T
            for rows, _, index in self.blocks()
        ]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))

    def _total_weight(self) -> float:
        assert self._weights is not None
        members = slice(None) if self._members is None else self._members
        return float(self._weights[members].sum())


def _rows_per_block(n_features: int) -> int:
    return int(min(_BLOCK_ROWS, max(256, _BLOCK_ENTRIES // max(1, n_features))))
