"""Passes over the rows of a device array, block by block, with sums that come back in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..._core.boundary import mapped_curvature
from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, LexicographicRule, LinearRule, Rule
from ..._core.types import Array
from ..progress import report
from . import sums as block_sums
from .devices import Place, is_out_of_memory, to_host
from .sums import DeviceBlock, from_parts

Result = TypeVar("Result")

_BLOCK_ENTRIES = 2**20, 2**24  # on the CPU, on another device
_SMALLEST_BLOCK = 1024
_SHRINK = 8  # by how much blocks get smaller when the device runs out of memory
_SINGLE = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)


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
            return block_sums.moments(self._block(index, used))

        shift = _shift(used, frame)
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
            shares, log_sums = block_sums.shares(block, rule)
            sums = block_sums.class_sums(block, shares, log_sums)
            if centers is not None:
                sums.append(block_sums.scatter_about(block, shares, centers))
            return sums + (block_sums.boundary_parts(block, shares) if curvature else [])

        counts, sums, log_sum, *more = self._added_up(of_block)
        scatter = None if centers is None else more.pop(0)
        bend = None
        if curvature:
            parts = [from_parts(*more[i : i + 3]) for i in range(0, len(more), 3)]
            bend = block_sums.boundary_scatter(parts, rule.n_classes)
        found = LabelSums(counts[0], sums, float(log_sum[0, 0]), scatter, bend)
        if self.place.is_double or not isinstance(rule, LinearRule):
            return found
        return replace(found, log_sum=found.log_sum + lost_to_rounding(rule, found))

    def shares(self, rule: Rule, frame: Frame) -> Array:
        """(n, K): shares of every row."""

        def of_block(index: slice) -> Array:
            return to_host(block_sums.shares(self._block(index, frame), rule)[0])

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


def rounded(frame: Frame) -> Frame:
    """The frame that single precision can hold: rows less its origin lose no digits."""
    return replace(frame, origin=frame.origin.astype(np.float32).astype(np.float64))


def in_single(
    label_sums: Callable[..., LabelSums],
    rule: Rule,
    frame: Frame,
    centers: Array | None,
    *,
    curvature: bool,
) -> LabelSums:
    """Label sums by a function that computes in single precision.

    Rounding a score is chance and averages out; rounding the origin, which is common to all rows,
    does not, and is made good here. For the rule see ``lost_to_rounding``.
    """
    used = rounded(frame)
    offset = (used.origin - frame.origin) / frame.scale
    if isinstance(rule, LinearRule):
        rule = replace(rule.moved(offset), tie=_SINGLE * rule.tie)
    if isinstance(rule, LexicographicRule):
        first, second = rule.first.moved(offset), rule.second.moved(offset)
        rule = replace(rule, first=first, second=second)
    centers = None if centers is None else centers - offset
    found = label_sums(rule, used, centers, curvature=curvature)
    bend = found.curvature
    return replace(
        found,
        sums=found.sums + found.counts[:, None] * offset,
        curvature=None if bend is None else mapped_curvature(bend, offset, np.eye(len(offset))),
    )


def lost_to_rounding(rule: LinearRule, found: LabelSums) -> float:
    """What rounding a rule took from the sum of log-sum-exp, whose slope is the class sums."""
    coef = rule.coef - rule.coef.astype(np.float32)
    is_finite = np.isfinite(rule.intercept)
    intercept = np.where(is_finite, rule.intercept, 0.0)
    intercept = intercept - intercept.astype(np.float32)
    return float((coef.T * found.sums).sum() + intercept @ found.counts)


def _shift(used: Frame, frame: Frame) -> Array:
    """(1 + d, 1 + d): from (1, u) in one frame to (1, u) in another."""
    shift = np.eye(1 + len(frame.origin))
    shift[1:, 0] = (used.origin - frame.origin) / frame.scale
    return shift
