"""Sums over the rows of a device array, block by block or by kernels. They come back in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, LinearRule, Rule, no_label_sums
from ..._core.moments import Moments, no_moments
from ..._core.types import AnyArray, Array
from ..base import WeightedRows, check_finite, not_finite
from ..progress import report
from . import devices
from .devices import (
    DeviceBlock,
    Place,
    from_parts,
    in_single,
    is_out_of_memory,
    lost_to_rounding,
    place_of,
    rounded,
    shift_between,
    to_host,
)
from .fused import FusedPasses, can_fuse

Result = TypeVar("Result")

_BLOCK_ENTRIES = 2**20, 2**24  # on the CPU, on another device
_SMALLEST_BLOCK = 1024
_SHRINK = 8  # by how much blocks get smaller when the device runs out of memory
# Squared mean over variance, of any feature, up to which sums about the origin keep their digits.
_FAR_FROM_ORIGIN = 100.0


@dataclass
class BlockPasses:
    """Blocks of rows as arrays in double precision, or in single where the device has no other."""

    X: Any
    weights: Any  # on the device, or None
    place: Place
    name: str
    block_rows: int | None = None

    def __post_init__(self) -> None:
        entries = _BLOCK_ENTRIES[0 if self.place.is_cpu else 1]
        self.block_rows = self.block_rows or max(_SMALLEST_BLOCK, entries // self.X.shape[1])

    def moments_from_one(self, frame: Frame) -> Array:
        used = frame if self.place.is_double else rounded(frame)

        def of_block(index: slice) -> list[Any]:
            return devices.moments(self._block(index, used))

        shift = shift_between(used, frame)
        return np.asarray(shift @ from_parts(*self._added_up(of_block)) @ shift.T)

    def label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None, *, curvature: bool
    ) -> LabelSums:
        if self.place.is_double:
            return self._label_sums(rule, frame, centers, curvature=curvature)
        return in_single(self._label_sums, rule, frame, centers, curvature=curvature)

    def _label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None, *, curvature: bool
    ) -> LabelSums:
        def of_block(index: slice) -> list[Any]:
            block = self._block(index, frame)
            shares, log_sums = devices.shares(block, rule)
            sums = devices.class_sums(block, shares, log_sums)
            if centers is not None:
                sums.append(devices.scatter_about(block, shares, centers))
            return sums + (devices.boundary_parts(block, shares) if curvature else [])

        counts, sums, log_sum, *more = self._added_up(of_block)
        scatter = None if centers is None else more.pop(0)
        bend = None
        if curvature:
            parts = [from_parts(*more[i : i + 3]) for i in range(0, len(more), 3)]
            bend = devices.boundary_scatter(parts, rule.n_classes)
        found = LabelSums(counts[0], sums, float(log_sum[0, 0]), scatter, bend)
        if self.place.is_double or not isinstance(rule, LinearRule):
            return found
        return replace(found, log_sum=found.log_sum + lost_to_rounding(rule, found))

    def shares(self, rule: Rule, frame: Frame) -> Array:
        """(n, K): shares of every row."""

        def of_block(index: slice) -> Array:
            return to_host(devices.shares(self._block(index, frame), rule)[0])

        return np.concatenate(self.of_blocks(of_block)).astype(np.float64)

    def of_blocks(self, function: Callable[[slice], Result]) -> list[Result]:
        """Results of a function of the row numbers of every block."""
        return self._with_room(lambda: [function(index) for index in self._cuts()])

    def _added_up(self, of_block: Callable[[slice], list[Any]]) -> list[Array]:
        """Sums of all blocks; added up on the device if it has the digits."""

        def read() -> list[Any]:
            total: list[Any] = []
            for index in self._cuts():
                sums = of_block(index)
                if not self.place.is_double:
                    sums = [to_host(part).astype(np.float64) for part in sums]
                total = [a + b for a, b in zip(total, sums, strict=True)] if total else sums
            return total

        return [to_host(part) for part in self._with_room(read)]

    def _with_room(self, read: Callable[[], Result]) -> Result:
        """The result of a pass, with smaller blocks if the device runs out of memory."""
        while True:
            try:
                with self.place.exactly():
                    return read()
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self._make_smaller(error)

    def _make_smaller(self, error: Exception) -> None:
        assert self.block_rows is not None
        if self.block_rows <= _SMALLEST_BLOCK:
            raise MemoryError(
                f"The device {self.place.device} has no room for a block of {self.block_rows} rows "
                f"beside the {self.X.shape[0]} x {self.X.shape[1]} array {self.name}: free memory "
                "there, pass fewer rows, or pass them in main memory."
            ) from error
        self.block_rows = max(_SMALLEST_BLOCK, self.block_rows // _SHRINK)

    def _cuts(self) -> Iterator[slice]:
        assert self.block_rows is not None
        n_rows = self.X.shape[0]
        for start in range(0, n_rows, self.block_rows):
            stop = min(start + self.block_rows, n_rows)
            yield slice(start, stop)
            report(stop, n_rows)

    def floating(self, index: slice) -> Any:
        """Rows of a block in the dtype of the sums."""
        return self.place.xp.astype(self.X[index, :], self.place.dtype)

    def _block(self, index: slice, frame: Frame) -> DeviceBlock:
        place = self.place
        u = (self.floating(index) - place.put(frame.origin)) / place.put(frame.scale)
        weights = self.weights
        if weights is not None:
            weights = place.xp.astype(weights[index], place.dtype)
        return DeviceBlock(place, u, weights, index)


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
