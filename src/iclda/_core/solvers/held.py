"""The attainable set of rows in memory, whitened once: plain NumPy.

With two classes a labeling depends on the lead z~'(c_1 - c_2) of the first class alone,
which takes one exponential and one product for each row, and the first class gets what
the second one leaves. More classes take one of each for every class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from .. import AnyArray, Array
from ..labelsums import ROUNDING, label, second_of_two, soft_second_of_two
from ..problem import Problem
from . import settings
from .attainable import Labeling, SoftLabels, weighted_spread


@dataclass(eq=False)
class HeldSet:
    """The attainable set of rows in memory: all rows, or a sample of them.

    Attributes
    ----------
    z : (n, 1 + rank) the rows, after a column of ones
    weights : (n,) their weights, over N
    labeled_point : (K, 1 + rank) of the labeled rows, a part of every point
    """

    # Rows in memory are never read again.
    n_passes: ClassVar[int] = 0

    z: Array
    weights: Array
    labeled_point: Array

    @property
    def _has_two_classes(self) -> bool:
        return len(self.labeled_point) == 2

    @property
    def n_read_by_labeling(self) -> int:
        return len(self.weights) * self.labeled_point.size

    @cached_property
    def _unlabeled_total(self) -> Array:
        return np.asarray(self.weights @ self.z)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.labeled_point.sum(axis=0) + self._unlabeled_total)

    @cached_property
    def _largest_entries(self) -> Array:
        return np.asarray(np.abs(self.z).max(axis=0, initial=0))

    # The protocol of attainable sets.

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        if not self._has_two_classes:
            shares, log_sums = label(self._scores(scores), is_soft=True)
            point = self._points(shares * self.weights)
            log_sum = float(log_sums @ self.weights)
            return self._labeling(scores, point, log_sum, shares)
        lead = self._lead(scores)
        # The shares of the second class are written over the leads.
        log_sums = soft_second_of_two(lead, out=lead)
        log_sum = float(self.weights @ log_sums + scores[1] @ self._unlabeled_total)
        # One product of a vector and a matrix: BLAS is slow at two of them at once.
        second = (lead * self.weights) @ self.z
        second += self.labeled_point[1]
        point = np.array([self._total - second, second])
        return self._labeling(scores, point, log_sum, lead[None])

    def _labeling(
        self, scores: Array, point: Array, log_sum: float, shares: Array
    ) -> Labeling:
        return Labeling(
            scores=scores, point=point, log_sum=log_sum, rows=self, shares=shares
        )

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        return self.label(scores, warm_start)

    def hard_point(self, scores: Array) -> Array:
        tie = ROUNDING * float((np.abs(scores) @ self._largest_entries).max())
        if not self._has_two_classes:
            shares, _ = label(self._scores(scores), is_soft=False, tie=tie)
            return self._points(shares * self.weights)
        is_first = self._lead(scores) >= -tie
        weights_of_first = np.where(is_first, self.weights, 0.0)
        first = weights_of_first @ self.z
        first += self.labeled_point[0]
        return np.array([first, self._total - first])

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        if not self._has_two_classes:
            return float(self._scores(direction).max(axis=0) @ self.weights)
        lead = self._lead(direction)
        ahead = self.weights @ np.maximum(lead, 0)
        return float(ahead + direction[1] @ self._unlabeled_total)

    # What held rows promise besides.

    def label_among(self, labels: SoftLabels, *, is_thinned: bool) -> Labeling:
        return Labeling(
            scores=labels.scores,
            point=labels.point,
            log_sum=labels.log_sum,
            rows=self,
            shares=self._soft_shares(labels.scores),
            is_thinned=is_thinned,
        )

    def with_others_fixed(self, labeling: Labeling) -> HeldSet:
        """Return the set of these rows if all others keep the labels of a labeling."""
        shares = labeling.shares
        sums = (shares * self.weights) @ self.z
        if len(shares) == 1:
            sums = np.vstack([self.weights @ self.z - sums[0], sums])
        return HeldSet(self.z, self.weights, labeling.point - sums)

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        if not self._has_two_classes:
            shares, log_sums = label(self._scores(scores), is_soft=True)
            shares *= self.weights
            return self._points(shares), log_sums @ self.weights
        lead = (scores[:, 0] - scores[:, 1]) @ self.z.T
        log_sums = soft_second_of_two(lead, out=lead) @ self.weights
        lead *= self.weights
        points = np.empty(scores.shape)
        np.matmul(lead, self.z, out=points[:, 1])
        points[:, 1] += self.labeled_point[1]
        np.subtract(self._total, points[:, 1], out=points[:, 0])
        return points, log_sums + scores[:, 1] @ self._unlabeled_total

    def scores_of_rows(self, scores: Array) -> Array:
        return self._scores(scores)

    def shares(self, scores: Array) -> Array:
        return self._soft_shares(scores)

    def spread(self, gradient: Array) -> float:
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return weighted_spread(ranges, self.weights)

    def _scores(self, scores: Array) -> Array:
        """Return the scores (..., K, n) of all rows."""
        if scores.ndim == 2:
            return np.asarray(scores @ self.z.T)
        *stack, width = scores.shape
        flat = scores.reshape(-1, width) @ self.z.T
        return flat.reshape(*stack, -1)

    def _lead(self, scores: Array) -> Array:
        """Return how far the first of two classes is ahead, (n,)."""
        return np.asarray(self.z @ (scores[0] - scores[1]))

    def _soft_shares(self, scores: Array) -> Array:
        if self._has_two_classes:
            return second_of_two(self._lead(scores))[None]
        return label(self._scores(scores), is_soft=True)[0]

    def _points(self, weighted: Array) -> Array:
        """Return the points of shares times weights (..., K, n)."""
        if weighted.ndim == 2:
            return np.asarray(self.labeled_point + weighted @ self.z)
        *stack, n_rows = weighted.shape
        sums = weighted.reshape(-1, n_rows) @ self.z
        return np.asarray(self.labeled_point + sums.reshape(*stack, -1))


def hold_in_memory(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldSet:
    """Whiten rows and hold them in memory.

    Rows are in the user's units or, if ``is_framed``, in frame coordinates.
    """
    step = settings.HOLDING.rows_per_block
    z = np.ones((len(rows), 1 + problem.whitening.rank))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        u = rows[part] if is_framed else problem.frame.apply(rows[part])
        z[part, 1:] = problem.whitening.points(u)
    return HeldSet(z, weights / problem.moments.weight, problem.labeled_point)


def hold_all(problem: Problem) -> HeldSet:
    """Hold all unlabeled rows in memory, with labels that are free."""
    rows, weights = problem.unlabeled.sample(problem.unlabeled.n_rows, 0)
    return hold_in_memory(problem, rows, weights)
