"""The attainable set of rows on a device, such as a GPU, that stay there.

Scores and points, (K, 1 + rank), are in memory; arrays with an axis of rows are on the
device, but for the weights, of which there are two copies. ``Place`` of the backend
moves arrays to the device (``put``) and back (``fetch``) and has its array library
(``xp``).
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
    """Soft labels of rows on a device, with J, which is summed over all rows."""

    @cached_property
    def near(self) -> tuple[Any, Any, Any]:
        """All rows, as copying some of them would take longer than summing all."""
        return self.rows.z, self.rows.placed_weights, self.shares

    @cached_property
    def n_near(self) -> int:
        xp = self.rows.place.xp
        largest_shares = xp.max(self.shares, axis=0)
        is_near = largest_shares < 1 - HARD
        return int(xp.count_nonzero(is_near))

    def product(self, direction: Array) -> Array:
        place = self.rows.place
        z = self.rows.z

        # The change (K, n) of the scores of every row, times diag g - g g', becomes
        # that of its shares. It is overwritten, as memory on the device is short.
        change = place.put(direction) @ z.T
        change -= place.sum_over_classes(self.shares, change)
        change *= self._weighted_shares

        point_change = place.fetch(change @ z)
        return np.asarray(point_change)

    def _between(self, k: int, j: int) -> Array:
        place = self.rows.place

        # What every row counts between the two classes, (n,).
        spread = self._weighted_shares[k, :] * self.shares[j, :]
        root = place.xp.sqrt(spread)

        # With rows (n, 1 + rank) scaled by the root the product is symmetric.
        scaled = self.rows.z * root[:, None]
        squares = place.fetch(scaled.T @ scaled)
        return np.asarray(squares)

    def factor(self) -> None:
        # The factor would have a column for each row and class, in memory.
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
        """Largest absolute value in every column of z, (1 + rank,), in memory."""
        if not len(self.weights):
            return np.zeros(self.z.shape[1])
        xp = self.place.xp
        largest = xp.max(xp.abs(self.z), axis=0)
        return np.asarray(self.place.fetch(largest))

    # The protocol of attainable sets.

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        # Shares (K, n) and log sums (n,) stay on the device.
        shares, log_sums = self._soft_shares(scores)
        return DeviceLabeling(
            scores=scores,
            # The product is not named: it is as large as the shares.
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
        # Scores that differ by rounding only tie: the first class gets the row.
        # No score of a class is larger than these, (K,).
        largest_scores = np.abs(scores) @ self._largest_entries
        tie = ROUNDING * float(largest_scores.max())

        shares, _ = self.place.label(self.placed_scores(scores), is_soft=False, tie=tie)
        return self._points(shares * self.placed_weights)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        xp = self.place.xp
        # Every row, (n,), goes to the class with the largest score.
        largest_scores = xp.max(self.placed_scores(direction), axis=0)
        return float(self._sum(largest_scores))

    # What the protocol of held rows adds.

    def label_among(self, labels: SoftLabels, *, is_thinned: bool) -> Labeling:
        shares, _ = self._soft_shares(labels.scores)
        return DeviceLabeling(
            scores=labels.scores,
            point=labels.point,
            log_sum=labels.log_sum,
            rows=self,
            shares=shares,
            is_thinned=is_thinned,
        )

    def with_others_fixed(self, labeling: Labeling) -> DeviceSet:
        """Return the set of these rows if all others keep the labels of a labeling."""
        weighted_shares = labeling.shares * self.placed_weights
        own_sums = self.place.fetch(weighted_shares @ self.z)

        # What is left of the point, (K, 1 + rank), is that of all other rows.
        sums_of_others = labeling.point - own_sums
        return DeviceSet(self.z, self.weights, sums_of_others, self.place)

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        shares, log_sums = self._soft_shares(scores)
        # In place, as the shares (S, K, n) of a stack are large.
        shares *= self.placed_weights

        points = self._points(shares)
        sums = self._sum(log_sums)
        return points, sums

    def scores_of_rows(self, scores: Array) -> Array:
        return np.asarray(self.place.fetch(self.placed_scores(scores)))

    def placed_scores(self, scores: Array) -> Any:
        if scores.ndim == 2:
            return self.place.put(scores) @ self.z.T

        # A single product for all scores of the stack, with S and K as one axis.
        *stack, width = scores.shape
        flat_scores = scores.reshape(-1, width)
        flat = self.place.put(flat_scores) @ self.z.T
        return self.place.xp.reshape(flat, (*stack, -1))

    def shares(self, scores: Array) -> Array:
        placed_shares, _ = self._soft_shares(scores)
        shares = np.asarray(self.place.fetch(placed_shares))

        # Of two classes the shares of the second say it all.
        if len(shares) == 2:
            return shares[1:]
        return shares

    def spread(self, gradient: Array) -> float:
        # From the lowest to the highest score of each row, (n,).
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return weighted_spread(ranges, self.weights)

    def _soft_shares(self, scores: Array) -> tuple[Any, Any]:
        """Return the soft shares of all rows and their log sums, on the device."""
        shares, log_sums = self.place.label(self.placed_scores(scores), is_soft=True)
        return shares, log_sums

    def _points(self, weighted_shares: Any) -> Array:
        """Return the points of shares times weights (..., K, n), in memory."""
        if weighted_shares.ndim == 2:
            sums = self.place.fetch(weighted_shares @ self.z)
            return np.asarray(self.labeled_point + sums)

        # A single product for the whole stack, with S and K as one axis.
        *stack, n_rows = weighted_shares.shape
        flat_shares = self.place.xp.reshape(weighted_shares, (-1, n_rows))
        flat_sums = self.place.fetch(flat_shares @ self.z)

        sums = flat_sums.reshape(*stack, -1)
        return np.asarray(self.labeled_point + sums)

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
    mean = place.put(whitening.mean)
    transform = place.put(whitening.transform.T)
    centered = place.put(u) - mean
    whitened = centered @ transform
    ones = place.put(np.ones((len(u), 1)))
    z = place.xp.concat([ones, whitened], axis=1)
    weights_over_total = weights / problem.moments.weight
    return DeviceSet(z, weights_over_total, problem.labeled_point, place)
