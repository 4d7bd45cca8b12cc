"""The attainable set of rows on a device, such as a GPU, that stay there.

Scores and points are in memory, (K, 1 + rank); everything with an axis of rows is on
the device. ``Place`` of the backend knows the device and its array library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import AnyArray, Array
from ..labelsums import ROUNDING
from ..problem import Problem
from ..rows import HARD
from . import settings
from .attainable import HeldRows, Labeling, SoftLabels, weighted_spread
from .held import hold_in_memory


@dataclass(eq=False, kw_only=True)
class DeviceLabeling(Labeling):
    """Soft labels of rows on a device, with J, which all rows are summed for."""

    @cached_property
    def near(self) -> tuple[Any, Any, Any]:
        """All rows: to copy some of them takes longer than to sum the others."""
        return self.rows.z, self.rows.placed_weights, self.shares

    @cached_property
    def n_near(self) -> int:
        xp = self.rows.place.xp
        return int(xp.count_nonzero(xp.max(self.shares, axis=0) < 1 - HARD))

    def product(self, direction: Array) -> Array:
        place = self.rows.place
        z = self.rows.z
        change = place.put(direction) @ z.T
        change -= place.sum_over_classes(self.shares, change)
        change *= self._weighted_shares
        return np.asarray(place.fetch(change @ z))

    def _between(self, k: int, j: int) -> Array:
        place = self.rows.place
        spread = self._weighted_shares[k, :] * self.shares[j, :]
        scaled = self.rows.z * place.xp.sqrt(spread)[:, None]
        return np.asarray(place.fetch(scaled.T @ scaled))

    def factor(self) -> None:
        return None


@dataclass(eq=False)
class DeviceSet:
    """The attainable set of rows on a device: all rows, or a sample of them.

    Attributes
    ----------
    z : (n, 1 + rank) the rows on the device, after a column of ones
    weights : (n,) their weights, in memory, over N
    labeled_point : (K, 1 + rank) of the labeled rows, a part of every point
    place : the device
    """

    # Rows on a device are never read again.
    n_passes: ClassVar[int] = 0

    z: Any
    weights: Array
    labeled_point: Array
    place: Any

    @property
    def n_read_by_labeling(self) -> int:
        return len(self.weights) * self.labeled_point.size

    @cached_property
    def placed_weights(self) -> Any:
        """The weights on the device."""
        return self.place.put(self.weights)

    @cached_property
    def _largest_entries(self) -> Array:
        return np.asarray(np.abs(self.place.fetch(self.z)).max(axis=0, initial=0))

    # The protocol of attainable sets.

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        shares, log_sums = self.place.label(self._scores(scores), is_soft=True)
        return DeviceLabeling(
            scores=scores,
            point=self._points(shares * self.placed_weights),
            log_sum=float(self._sum(log_sums)),
            rows=self,
            shares=shares,
        )

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        return self.label(scores, warm_start)

    def hard_point(self, scores: Array) -> Array:
        tie = ROUNDING * float((np.abs(scores) @ self._largest_entries).max())
        shares, _ = self.place.label(self._scores(scores), is_soft=False, tie=tie)
        return self._points(shares * self.placed_weights)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        largest = self.place.xp.max(self._scores(direction), axis=0)
        return float(self._sum(largest))

    # What held rows promise besides.

    def label_among(self, labels: SoftLabels, *, is_thinned: bool) -> Labeling:
        shares, _ = self.place.label(self._scores(labels.scores), is_soft=True)
        return DeviceLabeling(
            scores=labels.scores,
            point=labels.point,
            log_sum=labels.log_sum,
            rows=self,
            shares=shares,
            is_thinned=is_thinned,
        )

    def with_others_fixed(self, labeling: Labeling) -> DeviceSet:
        sums = self.place.fetch((labeling.shares * self.placed_weights) @ self.z)
        return DeviceSet(self.z, self.weights, labeling.point - sums, self.place)

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        shares, log_sums = self.place.label(self._scores(scores), is_soft=True)
        shares *= self.placed_weights
        return self._points(shares), self._sum(log_sums)

    def scores_of_rows(self, scores: Array) -> Array:
        return np.asarray(self.place.fetch(self._scores(scores)))

    def shares(self, scores: Array) -> Array:
        soft, _ = self.place.label(self._scores(scores), is_soft=True)
        shares = np.asarray(self.place.fetch(soft))
        return shares[1:] if len(shares) == 2 else shares

    def spread(self, gradient: Array) -> float:
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return weighted_spread(ranges, self.weights)

    def _scores(self, scores: Array) -> Any:
        """Return the scores (..., K, n) of all rows, on the device."""
        if scores.ndim == 2:
            return self.place.put(scores) @ self.z.T
        *stack, width = scores.shape
        flat = self.place.put(scores.reshape(-1, width)) @ self.z.T
        return self.place.xp.reshape(flat, (*stack, -1))

    def _points(self, weighted: Any) -> Array:
        """Return the points of shares times weights (..., K, n)."""
        if weighted.ndim == 2:
            return np.asarray(self.labeled_point + self.place.fetch(weighted @ self.z))
        *stack, n_rows = weighted.shape
        sums = self.place.xp.reshape(weighted, (-1, n_rows)) @ self.z
        in_memory = self.place.fetch(sums).reshape(*stack, -1)
        return np.asarray(self.labeled_point + in_memory)

    def _sum(self, values: Any) -> Any:
        """Return the weighted sum over rows of values (..., n), in memory."""
        return self.place.fetch(values @ self.placed_weights)


def hold_where_fast(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldRows:
    """Hold rows in memory or, if they are worth moving, on the device of the rows.

    Rows are in the user's units or, if ``is_framed``, in frame coordinates.
    """
    whitening = problem.whitening
    place = problem.unlabeled.held_at
    n_entries = len(rows) * whitening.rank
    if place is None or n_entries < settings.HOLDING.min_entries_on_device:
        return hold_in_memory(problem, rows, weights, is_framed=is_framed)
    u = rows if is_framed else problem.frame.apply(rows)
    z = (place.put(u) - place.put(whitening.mean)) @ place.put(whitening.transform.T)
    z = place.xp.concat([place.put(np.ones((len(u), 1))), z], axis=1)
    scaled_weights = weights / problem.moments.weight
    return DeviceSet(z, scaled_weights, problem.labeled_point, place)
