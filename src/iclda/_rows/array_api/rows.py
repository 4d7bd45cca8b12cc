"""The sums of ``_core.rows.Rows`` over the rows of a device array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, LinearRule, Rule, no_label_sums
from ..._core.moments import Moments, no_moments
from ..._core.types import AnyArray, Array
from ..base import WeightedRows, check_finite, not_finite
from .devices import Place, place_of, to_host
from .fused import FusedPasses, can_fuse
from .passes import BlockPasses

# Squared mean over variance, of any feature, up to which sums about the origin keep their digits.
_FAR_FROM_ORIGIN = 100.0


class ArrayRows(WeightedRows):
    """All rows of a device array, or those that ``is_member`` marks."""

    feature_names: list[str] | None = None

    def __init__(
        self,
        X: Any,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        *,
        name: str = "X",
        names: AnyArray | None = None,
        block_rows: int | None = None,
    ) -> None:
        super().__init__(int(X.shape[0]), weights, is_member)
        self.place: Place = place_of(X)
        self._X, self._name, self._names = X, name, names
        self._block_rows = block_rows
        self._known: tuple[Frame, Moments] | None = None

    @property
    def n_features(self) -> int:
        return int(self._X.shape[1])

    @cached_property
    def _blocks(self) -> BlockPasses:
        return BlockPasses(self._X, self._device_weights, self.place, self._name, self._block_rows)

    @cached_property
    def _fused(self) -> FusedPasses | None:
        return FusedPasses(self._X, self._device_weights) if can_fuse(self._X) else None

    @cached_property
    def _device_weights(self) -> Any:
        """Weights on the device; rows that are no members weigh nothing."""
        is_single = can_fuse(self._X)
        weights: AnyArray | None = self._weights
        if self._is_member is not None:
            weights = self._is_member if weights is None else weights * self._is_member
        if weights is None:
            return None
        dtype = self.place.xp.float32 if is_single else self.place.dtype
        if weights.dtype != bool:
            weights = weights.astype(np.float32 if is_single else self.place.host_dtype)
        return self.place.xp.astype(self.place.put_as_is(weights), dtype)

    def moments(self, frame: Frame) -> Moments:
        if self.n_rows == 0:
            return no_moments(self.n_features)
        if self._known is None or self._known[0] is not frame:
            self._known = frame, self._moments(frame)
        return self._known[1]

    def _moments(self, frame: Frame) -> Moments:
        found = self._moments_about_origin(frame)
        if not np.isfinite(found.scatter).all():
            self.check_finite()
            return found
        if np.all(found.weight * found.mean**2 <= _FAR_FROM_ORIGIN * np.diag(found.scatter)):
            return found
        # The sample that chose the frame was not like the other rows: once more, about their mean.
        nearer = replace(frame, origin=frame.restore(found.mean))
        again = self._moments_about_origin(nearer)
        return replace(again, mean=again.mean + (nearer.origin - frame.origin) / frame.scale)

    def _moments_about_origin(self, frame: Frame) -> Moments:
        weight = self._total_weight()
        total = None if self._fused is None else self._fused.moments_from_one(frame, weight)
        if total is None:
            total = self._blocks.moments_from_one(frame)
        mean = total[0, 1:] / weight
        return Moments(weight, mean, total[1:, 1:] - np.outer(total[0, 1:], mean))

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        if self.n_rows == 0:
            return no_label_sums(rule.n_classes, self.n_features)
        if isinstance(rule, LinearRule):
            rule = rule.tied_at_rounding()
            if self._fused is not None and centers is None:
                moments = self.moments(frame)
                found = self._fused.label_sums(
                    rule, frame, moments, curvature=bool(np.any(curvature))
                )
                if found is not None:
                    return found
        found = self._blocks.label_sums(rule, frame, centers, curvature=bool(np.any(curvature)))
        if not np.isfinite(found.sums).all():
            self.check_finite()
        return found

    def _rows_at(self, numbers: AnyArray) -> Array:
        index = self.place.put_as_is(numbers)
        rows = to_host(self.place.xp.take(self._X, index, axis=0)).astype(np.float64)
        check_finite(rows, self._name, self._names, numbers=numbers)
        return rows

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        shares = self._blocks.shares(rule, frame)
        return shares if self._is_member is None else shares[self._is_member]

    def apply(self, function: Callable[[Any], Any]) -> list[Any]:
        """Results of a function of blocks of rows, which must be finite."""
        xp = self.place.xp

        def of_block(index: slice) -> Any:
            rows = self._blocks.floating(index)
            if not bool(xp.all(xp.isfinite(rows))):
                self.check_finite()
            return function(rows)

        return self._blocks.of_blocks(of_block)

    def check_finite(self) -> None:
        """ValueError that names the first row and column with NaN or infinity, if there is one."""
        xp = self.place.xp

        def of_block(index: slice) -> None:
            rows = self._blocks.floating(index)
            bad = ~xp.isfinite(rows)
            if bool(xp.any(bad)):
                row, column = (int(to_host(part)[0]) for part in xp.nonzero(bad))
                found = "NaN" if bool(xp.isnan(rows[row, column])) else "infinity"
                raise not_finite(found, self._name, index.start + row, column, self._names)

        self._blocks.of_blocks(of_block)
