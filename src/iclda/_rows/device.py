"""Rows of an array on any device: torch, CuPy, JAX, whatever follows the array API standard.

The rows stay on their device, and are summed there block by block, or by kernels. Only sums, in
float64, and the rows of a sample come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import LabelSums, LinearRule, Rule, no_label_sums
from .._core.moments import Moments, no_moments
from .._core.rows import Near, one_of_each
from .backends import Members, Place, Request, Weights, check_finite, place_of, to_host
from .device_sums import (
    DeviceBlock,
    FusedPasses,
    PlacedRule,
    can_fuse,
    is_out_of_memory,
    label_sums_in,
    lost_to_rounding,
    round_origin,
)
from .progress import report_progress
from .threads import Result
from .weighted_rows import WeightedRows

_BLOCK_ENTRIES = 2**20, 2**26  # on the CPU, on another device
_SMALLEST_BLOCK = 1024
_SHRINK = 8  # by how much blocks get smaller when the device runs out of memory
# Squared mean over variance, of any feature, up to which sums about the origin keep their digits.
_FAR_FROM_ORIGIN = 100.0


def open_rows(
    X: Any,
    request: Request,
    weights: Array | None = None,
    is_member: AnyArray | None = None,
) -> ArrayRows:
    """Return the rows of a device array, whose columns have no names."""
    name = request.name
    if hasattr(X, "detach"):
        if str(X.layout) != "torch.strided":
            raise TypeError(
                f"{name} is a sparse tensor ({X.layout}): pass {name}.to_dense()."
            )
        X = X.detach()  # sums need no gradient
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be 2-d, rows x features, got an array of shape {shape}."
        )
    if request.n_features is None and 0 in shape:
        raise ValueError(
            f"{name} has shape {shape}, and needs at least one row and one feature."
        )
    request.check_width(shape[1])
    if place_of(X).xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: {name} holds {X.dtype}. Split it in two."
        )
    return ArrayRows(X, request, weights, is_member)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> Any:
    """Return results on the device of X; the function takes blocks of rows in floating point."""
    rows = open_rows(X, request)
    if rows.n_rows == 0:
        name, shape = request.name, tuple(X.shape)
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}): {name} needs a row."
        )
    results = rows.apply(function)
    if isinstance(results[0], np.ndarray):  # class names, which no device can hold
        return np.concatenate(results)
    return rows.place.xp.concat(results, axis=0)


class ArrayRows(WeightedRows):
    """All rows of a device array, or those that ``is_member`` marks.

    Blocks are in double precision, or in single where the device has no other.
    """

    def __init__(
        self,
        X: Any,
        request: Request,
        weights: Weights = None,
        is_member: Members = None,
    ) -> None:
        super().__init__(int(X.shape[0]), int(X.shape[1]), weights, is_member)
        self.place: Place = place_of(X)
        self._X, self._name, self._names = X, request.name, request.feature_names
        entries = _BLOCK_ENTRIES[0 if self._is_on_cpu else 1]
        self._block_rows = max(_SMALLEST_BLOCK, entries // X.shape[1])
        self._known: tuple[Frame, Moments] | None = None

    @property
    def held_at(self) -> Place | None:
        """On a device with double precision whose products need no compilation for each shape."""
        is_worth = (
            self.place.is_double and not self.place.is_compiled and not self._is_on_cpu
        )
        return self.place if is_worth else None

    @property
    def _is_on_cpu(self) -> bool:
        return "CPU" in str(self.place.device).upper()

    @cached_property
    def _fused(self) -> FusedPasses | None:
        is_fused = self.unit is None and can_fuse(self._X)
        return FusedPasses(self._X, self._device_weights) if is_fused else None

    @cached_property
    def _device_weights(self) -> Any:
        """Weights on the device, or None; rows that are no members have weight 0."""
        weights: AnyArray | None = self._weights
        if self._is_member is not None:
            weights = self._is_member if weights is None else weights * self._is_member
        if weights is None:
            return None
        dtype = np.float32 if can_fuse(self._X) else self.place.host_dtype
        if weights.dtype != bool:  # a mask is smaller, and converted on the device
            weights = weights.astype(dtype)
        xp = self.place.xp
        return xp.astype(self.place.put_as_is(weights), getattr(xp, dtype.__name__))

    # Sums.

    def moments(self, frame: Frame) -> Moments:
        if self.n_rows == 0:
            return no_moments(self.n_features)
        if self._known is None or self._known[0] is not frame:
            self._known = frame, self._moments(frame)
        return self._known[1]

    def _moments(self, frame: Frame) -> Moments:
        moments = self._moments_about(frame.origin, frame)
        if not np.isfinite(moments.scatter).all():
            self.check_finite()
            return moments
        if np.all(
            moments.weight * moments.mean**2
            <= _FAR_FROM_ORIGIN * np.diag(moments.scatter)
        ):
            return moments
        # The sample that chose the frame was unlike the other rows: once more, about their mean.
        return self._moments_about(frame.restore(moments.mean), frame)

    def _moments_about(self, origin: Array, frame: Frame) -> Moments:
        used, _ = round_origin(replace(frame, origin=origin), self.place.host_dtype)
        totals = None if self._fused is None else self._fused.moments(used)
        if totals is None:
            totals = self._add_up(lambda index: self._block(index, used).moments())
        sums, squares = totals
        weight = self._total_weight()
        mean = sums.ravel() / weight
        scatter = squares - np.outer(sums, mean)
        return Moments(
            weight, mean + (used.origin - frame.origin) / frame.scale, scatter
        )

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        if self.n_rows == 0:
            return no_label_sums(rule.n_classes, self.n_features)
        if isinstance(rule, LinearRule):
            rule = rule.tied_at_rounding()
        sums = None
        if self._fused is not None and centers is None and isinstance(rule, LinearRule):
            sums = self._fused.label_sums(rule, frame, self.moments(frame))
        if sums is None:
            sums = label_sums_in(
                self.place.host_dtype, self._label_sums, rule, frame, centers
            )
            if not np.isfinite(sums.sums).all():
                self.check_finite()
        if near is None or not isinstance(rule, LinearRule):
            return sums
        return replace(sums, near=self._near(rule, frame, near))

    def _near(self, rule: LinearRule, frame: Frame, near: Near) -> Array:
        used, offset = round_origin(frame, self.place.host_dtype)
        moved, every, n_rows = (
            near.softened(rule.moved(offset)),
            near.smallest,
            self._X.shape[0],
        )

        def read() -> list[Array]:
            step = every * self._block_rows
            cuts = (
                one_of_each(every, i, min(i + step, n_rows))
                for i in range(0, n_rows, step)
            )
            return [
                self._block(index, used).near_boundary(moved, near.every)
                for index in cuts
            ]

        rows: Array = np.concatenate(self._with_room(read))
        rows[:, 1:] += offset
        return rows

    def _label_sums(self, rule: Rule, frame: Frame, centers: Array | None) -> LabelSums:
        placed = (
            PlacedRule.of(rule, self.place) if isinstance(rule, LinearRule) else rule
        )
        sums = self._add_up(
            lambda index: self._block(index, frame).label_sums(placed, centers)
        )
        label_sums = LabelSums(sums[0][:, 0], sums[1], float(sums[2][0, 0]), *sums[3:])
        if not isinstance(rule, LinearRule):
            return label_sums
        lost = lost_to_rounding(rule, label_sums, self.place.host_dtype)
        return replace(label_sums, log_sum=label_sums.log_sum + lost)

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        blocks = self._of_blocks(
            lambda index: to_host(self._block(index, frame).label(rule)[0].T)
        )
        shares = np.concatenate(blocks).astype(np.float64)
        return shares if self._is_member is None else shares[self._is_member]

    def _rows_at(self, index: AnyArray) -> Array:
        taken = self.place.xp.take(self._X, self.place.put_as_is(index), axis=0)
        rows = to_host(taken).astype(np.float64)
        check_finite(rows, self._name, self._names, index=index)
        return rows

    def apply(self, function: Callable[[Any], Any]) -> list[Any]:
        """Return the results of a function of blocks of rows, which must be finite."""
        return self._of_blocks(lambda index: function(self._finite_rows(index)))

    def check_finite(self) -> None:
        self._of_blocks(lambda index: self._finite_rows(index).shape)

    def _finite_rows(self, index: slice) -> Any:
        xp = self.place.xp
        rows = xp.astype(self._X[index, ...], self.place.dtype)
        if not bool(xp.all(xp.isfinite(rows))):
            indices = range(index.start, index.stop)
            check_finite(to_host(rows), self._name, self._names, index=indices)
        return rows

    # Passes block by block.

    def _add_up(self, of_block: Callable[[slice], list[Any]]) -> list[Array]:
        """Return the sums of all blocks, added up on the device if it has double precision."""

        def read() -> list[Any]:
            total: list[Any] = []
            for index in self._cuts():
                sums = of_block(index)
                if not self.place.is_double:
                    sums = [to_host(part).astype(np.float64) for part in sums]
                total = (
                    [a + b for a, b in zip(total, sums, strict=True)] if total else sums
                )
            return total

        return [to_host(part) for part in self._with_room(read)]

    def _of_blocks(self, function: Callable[[slice], Result]) -> list[Result]:
        """Return the results of a function of the row indices of every block."""
        return self._with_room(lambda: [function(index) for index in self._cuts()])

    def _with_room(self, read: Callable[[], Result]) -> Result:
        """Return the result of a pass, with smaller blocks if the device runs out of memory."""
        while True:
            try:
                with self.place.exactly():
                    return read()
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if self._block_rows <= _SMALLEST_BLOCK:
                    n_rows, d = self._X.shape
                    raise MemoryError(
                        f"The device {self.place.device} has no room for a block of "
                        f"{self._block_rows} rows beside the {n_rows} x {d} array {self._name}: "
                        "free memory there, pass fewer rows, or pass them in main memory."
                    ) from error
            self._block_rows = max(_SMALLEST_BLOCK, self._block_rows // _SHRINK)

    def _cuts(self) -> Iterator[slice]:
        n_rows = self._X.shape[0]
        for start in range(0, n_rows, self._block_rows):
            stop = min(start + self._block_rows, n_rows)
            yield slice(start, stop)
            report_progress(stop, n_rows)

    def _take(self, array: Any, index: slice | AnyArray) -> Any:
        """Return some rows of an array on the device, copied unless they are consecutive."""
        if isinstance(index, slice):
            return array[index, ...]
        return self.place.xp.take(array, self.place.put_as_is(index), axis=0)

    def _block(self, index: slice | AnyArray, frame: Frame) -> DeviceBlock:
        place, rows = self.place, self._take(self._X, index)
        # In double precision the subtraction converts floating point without another copy.
        is_converted = place.is_double and place.xp.isdtype(rows.dtype, "real floating")
        if self.unit is not None or not is_converted:
            rows = place.xp.astype(rows, place.dtype)
        if self.unit is not None:
            rows = self.unit(rows)
        u = (rows - place.put(frame.origin)) / place.put(frame.scale)
        weights = self._device_weights
        if weights is not None:
            weights = place.xp.astype(self._take(weights, index), place.dtype)
        return DeviceBlock(place, u, weights, index)
