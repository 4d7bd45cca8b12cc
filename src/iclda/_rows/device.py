"""Rows of an array on any device: torch, CuPy, JAX, any array API library.

The rows stay on their device and are summed there, block by block (``device_blocks``)
or by kernels (``fused``). Only sums, in float64, and some rows come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    LinearRule,
    Rule,
    StackedRules,
    no_label_sums,
)
from .._core.moments import Moments, no_moments
from .._core.rows import Near, one_of_each
from .checks import check_finite, check_shape
from .device_blocks import DeviceBlock, labeler_of
from .fused import FusedPasses, can_fuse
from .places import Place, is_out_of_memory, place_of, to_host
from .precision import label_sums_in, lost_to_rounding, round_origin
from .progress import report_progress
from .protocol import Request, WeightedRows
from .threads import Result
from .views import View, placed_view

# Numbers of a block on the CPU.
_CPU_BLOCK_ENTRIES = 2**20
# Numbers of a block on any other device, where every call costs time.
_DEVICE_BLOCK_ENTRIES = 2**26
_MIN_BLOCK_ROWS = 1024
# Members are gathered if they are at most one in this many rows. Otherwise adding up
# the other rows with weight 0 takes less time.
_ROWS_PER_FEW_MEMBERS = 8
# Scores of a block are copied this many times on the way to shares.
_COPIES_OF_SCORES = 4
# Blocks get smaller by this factor when the device runs out of memory.
_BLOCK_SHRINK_FACTOR = 8
# Sums about the origin keep their digits up to this ratio of squared mean to variance.
_MAX_MEAN_TO_VARIANCE = 100.0


def open_rows(X: Any, request: Request) -> ArrayRows:
    """Return the rows of a device array, whose columns have no names."""
    name = request.name
    # Tensors of torch.
    if hasattr(X, "detach"):
        if str(X.layout) != "torch.strided":
            raise TypeError(
                f"{name} is a sparse tensor ({X.layout}): pass {name}.to_dense()."
            )
        # Sums need no gradient.
        X = X.detach()
    check_shape(X, name)
    if request.n_features is None and 0 in X.shape:
        raise ValueError(
            f"{name} has shape {tuple(X.shape)}, and needs at least one row and one "
            "feature."
        )
    request.check_width(X.shape[1])
    if place_of(X).xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: {name} holds {X.dtype}. Split it in two."
        )
    return ArrayRows(X, request)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> Any:
    """Return the results of a function of blocks of rows, on the device of X."""
    rows = open_rows(X, request)
    if rows.n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={tuple(X.shape)}): {request.name} "
            "needs a row."
        )
    results = rows.apply(function)
    # Class names are text, which no device can hold.
    if isinstance(results[0], np.ndarray):
        return np.concatenate(results)
    return rows.place.xp.concat(results, axis=0)


class ArrayRows(WeightedRows):
    """The rows of a device array.

    Blocks are in double precision, or in single precision if the device has no other.
    """

    def __init__(self, X: Any, request: Request) -> None:
        super().__init__(int(X.shape[0]), int(X.shape[1]))
        self.place: Place = place_of(X)
        self._X = X
        self._name = request.name
        self._names = request.feature_names
        n_entries = _CPU_BLOCK_ENTRIES if self._is_on_cpu else _DEVICE_BLOCK_ENTRIES
        self._block_rows = max(_MIN_BLOCK_ROWS, n_entries // X.shape[1])
        # The moments of the last frame: every fused pass asks for them.
        self._known_moments: tuple[Frame, Moments] | None = None
        # What every block is mapped by, on the device: the view, and origin and scale
        # of the last frame.
        self._placed_view: View | None = None
        self._known_frame: tuple[Frame, Any, Any] | None = None

    @property
    def held_at(self) -> Place | None:
        """The device, if a search is faster there and as exact as in memory.

        That takes double precision, and products that are not compiled for each shape.
        """
        place = self.place
        is_worthwhile = (
            place.is_double and not place.is_compiled and not self._is_on_cpu
        )
        return place if is_worthwhile else None

    @property
    def _is_on_cpu(self) -> bool:
        # Some libraries call it cpu, others CPU_DEVICE or TFRT_CPU_0.
        return "CPU" in str(self.place.device).upper()

    @cached_property
    def _fused(self) -> FusedPasses | None:
        # Kernels read rows as they are.
        is_fused = self.view is None and can_fuse(self._X)
        return FusedPasses(self._X, self._device_weights) if is_fused else None

    @cached_property
    def _device_weights(self) -> Any:
        """Weights on the device, 0 for rows that are not members; None if all are 1."""
        weights: AnyArray | None = self._weights
        if weights is None:
            weights = self._is_member
        elif self._is_member is not None:
            weights = weights * self._is_member
        if weights is None:
            return None
        # Kernels take weights in single precision.
        dtype = np.float32 if can_fuse(self._X) else self.place.host_dtype
        # A mask has one byte a row: it is moved as it is, and converted on the device.
        if weights.dtype != bool:
            weights = weights.astype(dtype)
        xp = self.place.xp
        moved = self.place.put_as_is(weights)
        return xp.astype(moved, getattr(xp, dtype.__name__))

    @cached_property
    def _few_members(self) -> Any:
        """Indices of the members on the device if they are few; None otherwise."""
        is_member = self._is_member
        if is_member is None or _ROWS_PER_FEW_MEMBERS * self.n_rows > len(is_member):
            return None
        return self.place.put_as_is(self._members)

    # Sums.

    def moments(self, frame: Frame) -> Moments:
        if self.n_rows == 0:
            return no_moments(self.n_mapped_features)
        if self._known_moments is not None:
            known_frame, known = self._known_moments
            if known_frame is frame:
                return known
        moments = self._moments(frame)
        self._known_moments = (frame, moments)
        return moments

    def _moments(self, frame: Frame) -> Moments:
        moments = self._moments_about(frame.origin, frame)
        # NaN and infinity show in the sums: rows are searched for them only then.
        if not np.isfinite(moments.scatter).all():
            self.check_finite()
            return moments
        squared_means = moments.weight * moments.mean**2
        max_squared_means = _MAX_MEAN_TO_VARIANCE * np.diag(moments.scatter)
        is_exact = squared_means <= max_squared_means
        if is_exact.all():
            return moments
        # The frame is that of a sample unlike the other rows: sum about their mean.
        mean = frame.restore(moments.mean)
        return self._moments_about(mean, frame)

    def _moments_about(self, origin: Array, frame: Frame) -> Moments:
        """Return moments in the frame, from sums about another origin."""
        moved = replace(frame, origin=origin)
        used, _ = round_origin(moved, self.place.host_dtype)
        totals = None if self._fused is None else self._fused.moments(used)
        if totals is None:
            totals = self._add_up(lambda index: self._block(index, used).moments())
        # Weighted sums of u and u u', where u are rows about the origin that is used.
        sums, squares = totals
        weight = self._total_weight()
        mean = sums.ravel() / weight
        # The scatter about the mean does not depend on the origin; the mean does.
        scatter = squares - np.outer(sums, mean)
        shift = (used.origin - frame.origin) / frame.scale
        return Moments(weight, mean + shift, scatter)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        if self.n_rows == 0:
            return no_label_sums(rule.n_classes, self.n_mapped_features)
        # Rounding must not change labels: a device may round every product otherwise.
        if isinstance(rule, LinearRule):
            rule = rule.tied_at_rounding()
        sums = None
        if not with_overlaps:
            sums = self._fused_label_sums(rule, frame, centers)
        if sums is None:
            dtype = self.place.host_dtype
            label_sums = partial(self._label_sums, with_overlaps=with_overlaps)
            sums = label_sums_in(dtype, label_sums, rule, frame, centers)
            # NaN and infinity show in the sums: rows are searched for them only then.
            if not np.isfinite(sums.sums).all():
                self.check_finite()
        if near is None or not isinstance(rule, LinearRule):
            return sums
        return replace(sums, near=self._near_rows(rule, frame, near))

    def placed_label_sums(self, rules: StackedRules, frame: Frame) -> tuple[Any, Any]:
        if self.held_at is None:
            return super().placed_label_sums(rules, frame)
        fused = self._fused_sums_of_each(rules, frame)
        if fused is not None:
            return fused
        labeler = labeler_of(rules, self.place)
        # Every row has as many scores as there are classes of all rules.
        n_scores = rules.n_classes
        counts, sums, _ = self._totals(
            lambda index: self._block(index, frame).label_sums(
                labeler, None, with_overlaps=False
            ),
            n_scores,
        )
        return counts[:, 0], sums

    def _fused_label_sums(
        self, rule: Rule, frame: Frame, centers: Array | None
    ) -> LabelSums | None:
        """Return label sums formed by a kernel; None if there is none for them."""
        if self._fused is None or centers is not None:
            return None
        if not isinstance(rule, LinearRule):
            return None
        return self._fused.label_sums(rule, frame, self.moments(frame))

    def _fused_sums_of_each(
        self, rules: StackedRules, frame: Frame
    ) -> tuple[Array, Array] | None:
        """Return class weights and sums by a kernel for each rule of two classes.

        That kernel is as fast as memory. Array functions, and kernels of more classes,
        are not: with them, one pass for all rules is faster than one for each.
        """
        if self._fused is None or rules.intercept.shape[1] > 2:
            return None
        found = []
        coefs = self.place.fetch(rules.coef)
        intercepts = self.place.fetch(rules.intercept)
        for coef, intercept in zip(coefs, intercepts, strict=True):
            rule = LinearRule(coef, intercept, is_soft=True)
            sums = self._fused_label_sums(rule, frame, None)
            if sums is None:
                return None
            found.append(sums)
        counts = np.concatenate([each.counts for each in found])
        return counts, np.concatenate([each.sums for each in found])

    def _label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None,
        *,
        with_overlaps: bool,
    ) -> LabelSums:
        """Return label sums formed block by block."""
        labeler = labeler_of(rule, self.place)
        if centers is not None:
            centers = self.place.put(centers)
        counts, sums, log_sum, *further = self._add_up(
            lambda index: self._block(index, frame).label_sums(
                labeler, centers, with_overlaps=with_overlaps
            )
        )
        label_sums = LabelSums(
            counts[:, 0],
            sums,
            float(log_sum[0, 0]),
            overlaps=further.pop(0) if with_overlaps else None,
            # There is a scatter only about centers.
            scatter=further.pop() if further else None,
        )
        if not isinstance(rule, LinearRule):
            return label_sums
        lost = lost_to_rounding(rule, label_sums, self.place.host_dtype)
        return replace(label_sums, log_sum=label_sums.log_sum + lost)

    def _near_rows(self, rule: LinearRule, frame: Frame, near: Near) -> Array:
        """Return rows near class boundaries in the frame, after their weights."""
        used, offset = round_origin(frame, self.place.host_dtype)
        softened = near.softened(rule.moved(offset))
        labeler = labeler_of(softened, self.place)
        n_rows = self._X.shape[0]
        arange: Callable[..., Any] = np.arange
        if not self.place.is_compiled:
            # There may be as many indices as rows: they need not come from memory.
            arange = partial(self.place.xp.arange, device=self.place.device)

        def read() -> list[Array]:
            parts = []
            # One of ``near.smallest`` rows is looked at: a block spans more rows.
            step = near.smallest * self._block_rows
            for start in range(0, n_rows, step):
                stop = min(start + step, n_rows)
                index = one_of_each(near.smallest, start, stop, arange)
                # Without a name for the block: it would still be held when the next one
                # is copied.
                parts.append(
                    self._block(index, used).near_boundary(labeler, near.every)
                )
            return parts

        # The first column has the weights; coordinates become those of the frame.
        rows: Array = np.concatenate(self._with_room(read))
        rows[:, 1:] += offset
        return rows

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        labeler = labeler_of(rule, self.place)

        def shares_of(index: slice) -> AnyArray:
            shares, _ = labeler(self._block(index, frame).rows, index)
            return to_host(shares.T)

        shares = np.concatenate(self._of_blocks(shares_of)).astype(np.float64)
        return shares if self._is_member is None else shares[self._is_member]

    def _rows_at(self, index: AnyArray) -> Array:
        rows = to_host(self.place.take(self._X, index)).astype(np.float64)
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

    def _add_up(self, of_block: Callable[[Any], list[Any]]) -> list[Array]:
        """Return the sums of all blocks, added on a device with double precision."""
        return [to_host(part) for part in self._totals(of_block)]

    def _totals(
        self, of_block: Callable[[Any], list[Any]], n_scores: int = 0
    ) -> list[Any]:
        """Return the sums of all blocks, on the device; blocks have all members.

        Blocks are shorter if a row has more scores than features.
        """
        members = self._few_members
        n_rows = self._X.shape[0] if members is None else members.shape[0]

        def read() -> list[Any]:
            totals: list[Any] = []
            for cut in self._cuts(n_scores, n_rows):
                sums = of_block(cut if members is None else members[cut])
                # Sums of many blocks need more digits than those of one.
                if not self.place.is_double:
                    sums = [to_host(part).astype(np.float64) for part in sums]
                if not totals:
                    totals = sums
                else:
                    totals = [a + b for a, b in zip(totals, sums, strict=True)]
            return totals

        return self._with_room(read)

    def _of_blocks(self, function: Callable[[slice], Result]) -> list[Result]:
        """Return the results of a function of the row indices of every block."""
        n_rows = self._X.shape[0]
        return self._with_room(
            lambda: [function(index) for index in self._cuts(0, n_rows)]
        )

    def _with_room(self, read: Callable[[], Result]) -> Result:
        """Return the result of a pass.

        It is repeated with smaller blocks if the device runs out of memory.
        """
        while True:
            try:
                with self.place.exactly():
                    return read()
            # Every library has errors of its own for a device without room.
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if self._block_rows <= _MIN_BLOCK_ROWS:
                    raise self._no_room() from error
            # Out of the handler, which would keep the arrays of the failed pass alive.
            n_smaller = self._block_rows // _BLOCK_SHRINK_FACTOR
            self._block_rows = max(_MIN_BLOCK_ROWS, n_smaller)

    def _no_room(self) -> MemoryError:
        n_rows, n_features = self._X.shape
        return MemoryError(
            f"The device {self.place.device} has no room for a block of "
            f"{self._block_rows} rows beside the {n_rows} x {n_features} array "
            f"{self._name}: free memory there, pass fewer rows, or pass them in main "
            "memory."
        )

    def _cuts(self, n_scores: int, n_rows: int) -> Iterator[slice]:
        """Yield the parts of ``n_rows`` rows, and report each after it was used."""
        n_features = self._X.shape[1]
        factor = max(1, _COPIES_OF_SCORES * n_scores // n_features)
        block_rows = max(_MIN_BLOCK_ROWS, self._block_rows // factor)
        for start in range(0, n_rows, block_rows):
            stop = min(start + block_rows, n_rows)
            yield slice(start, stop)
            report_progress(stop, n_rows)

    def _placed(self, frame: Frame) -> tuple[Any, Any]:
        """Return origin and scale of a frame on the device."""
        if self._known_frame is None or self._known_frame[0] is not frame:
            origin = self.place.put(frame.origin)
            self._known_frame = (frame, origin, self.place.put(frame.scale))
        return self._known_frame[1:]

    def _block(self, index: Any, frame: Frame) -> DeviceBlock:
        """Return some rows in frame coordinates, u = (x - origin) / scale."""
        place = self.place
        rows = place.take(self._X, index)
        # In double precision the subtraction converts rows without another copy.
        is_converted = place.is_double and place.xp.isdtype(rows.dtype, "real floating")
        if self.view is not None or not is_converted:
            rows = place.xp.astype(rows, place.dtype)
        if self.view is not None:
            if self._placed_view is None:
                self._placed_view = placed_view(self.view, rows)
            rows = self._placed_view(rows)
        origin, scale = self._placed(frame)
        u = (rows - origin) / scale
        weights = self._device_weights
        if weights is not None:
            weights = place.xp.astype(place.take(weights, index), place.dtype)
        return DeviceBlock(place, u, weights, index)
