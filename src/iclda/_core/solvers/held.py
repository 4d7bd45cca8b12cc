"""The attainable set of rows in memory, whitened once: plain NumPy.

With two classes, labels depend on the lead z~'(c_1 - c_2) of the first class alone. A
row then takes one exponential and one product instead of two, as the first class gets
what the second one leaves: every method that labels rows has a case for two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import AnyArray, Array
from ..labelsums import ROUNDING, label, second_of_two, soft_second_of_two, soften
from ..problem import Problem
from ..rows import MEMORY
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
    place: ClassVar[Any] = MEMORY

    z: Array
    weights: Array
    labeled_point: Array

    @property
    def _has_two_classes(self) -> bool:
        return len(self.labeled_point) == 2

    @property
    def placed_weights(self) -> Array:
        return self.weights

    @property
    def n_read_by_labeling(self) -> int:
        return len(self.weights) * self.labeled_point.size

    @cached_property
    def _unlabeled_total(self) -> Array:
        """Weight and sum of these rows, (1 + rank,)."""
        return np.asarray(self.weights @ self.z)

    @cached_property
    def _total(self) -> Array:
        """Weight and sum of these and the labeled rows, (1 + rank,)."""
        return np.asarray(self.labeled_point.sum(axis=0) + self._unlabeled_total)

    @cached_property
    def _largest_entries(self) -> Array:
        """Largest absolute value in every column of z, (1 + rank,)."""
        return np.asarray(np.abs(self.z).max(axis=0, initial=0))

    # The protocol of attainable sets.

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        if self._has_two_classes:
            return self._label_two(scores)
        shares, log_sums = label(self.placed_scores(scores), is_soft=True)
        point = self._points(shares * self.weights)
        log_sum = float(log_sums @ self.weights)
        return self._labeling(scores, point, log_sum, shares)

    def _label_two(self, scores: Array) -> Labeling:
        lead = self._lead(scores)
        # The shares of the second class are written over the leads.
        log_sums_over_second = soft_second_of_two(lead, out=lead)
        shares_of_second = lead
        sum_over_second = self.weights @ log_sums_over_second
        sum_of_second = scores[1] @ self._unlabeled_total
        log_sum = float(sum_over_second + sum_of_second)
        # One product of a vector and a matrix: BLAS is slow at two of them at once.
        second = (shares_of_second * self.weights) @ self.z
        second += self.labeled_point[1]
        first = self._total - second
        point = np.array([first, second])
        return self._labeling(scores, point, log_sum, shares_of_second[None])

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
        # Scores that differ by rounding only tie: the first class gets the row.
        # No score of a class is larger than these, (K,).
        largest_scores = np.abs(scores) @ self._largest_entries
        tie = ROUNDING * float(largest_scores.max())
        if not self._has_two_classes:
            shares, _ = label(self.placed_scores(scores), is_soft=False, tie=tie)
            return self._points(shares * self.weights)
        is_first = self._lead(scores) >= -tie
        weights_of_first = np.where(is_first, self.weights, 0.0)
        first = weights_of_first @ self.z
        first += self.labeled_point[0]
        second = self._total - first
        return np.array([first, second])

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        if not self._has_two_classes:
            largest_scores = self.placed_scores(direction).max(axis=0)
            return float(largest_scores @ self.weights)
        # The largest score is that of the second class plus the lead, if positive.
        lead = self._lead(direction)
        sum_of_leads = self.weights @ np.maximum(lead, 0)
        sum_of_second = direction[1] @ self._unlabeled_total
        return float(sum_of_leads + sum_of_second)

    # What the protocol of held rows adds.

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
        own_sums = (shares * self.weights) @ self.z
        has_second_only = len(shares) == 1
        if has_second_only:
            # The first class has the rest.
            first_sum = self.weights @ self.z - own_sums[0]
            own_sums = np.vstack([first_sum, own_sums])
        sums_of_others = labeling.point - own_sums
        return HeldSet(self.z, self.weights, sums_of_others)

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        if self._has_two_classes:
            return self._soft_points_of_two(scores)
        shares, log_sums = label(self.placed_scores(scores), is_soft=True)
        # In place, as the shares (S, K, n) of a stack are large.
        shares *= self.weights
        points = self._points(shares)
        return points, log_sums @ self.weights

    def _soft_points_of_two(self, scores: Array) -> tuple[Array, Array]:
        lead_scores = scores[:, 0] - scores[:, 1]
        leads = lead_scores @ self.z.T
        # The shares of the second class are written over the leads, then weighted.
        log_sums_over_second = soft_second_of_two(leads, out=leads)
        sums_over_second = log_sums_over_second @ self.weights
        sums_of_second = scores[:, 1] @ self._unlabeled_total
        log_sums = sums_over_second + sums_of_second
        weighted_shares = leads
        weighted_shares *= self.weights

        points = np.empty(scores.shape)
        first = points[:, 0]
        second = points[:, 1]
        np.matmul(weighted_shares, self.z, out=second)
        second += self.labeled_point[1]
        np.subtract(self._total, second, out=first)
        return points, log_sums

    def scores_of_rows(self, scores: Array) -> Array:
        return self.placed_scores(scores)

    def placed_scores(self, scores: Array) -> Array:
        if scores.ndim == 2:
            return np.asarray(scores @ self.z.T)
        # A single product for all scores of the stack.
        *stack, width = scores.shape
        flat_scores = scores.reshape(-1, width)
        flat = flat_scores @ self.z.T
        return flat.reshape(*stack, -1)

    def shares(self, scores: Array) -> Array:
        return self._soft_shares(scores)

    def spread(self, gradient: Array) -> float:
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return weighted_spread(ranges, self.weights)

    def _lead(self, scores: Array) -> Array:
        """Return how far the first of two classes is ahead, (n,)."""
        lead_scores = scores[0] - scores[1]
        return np.asarray(self.z @ lead_scores)

    def _soft_shares(self, scores: Array) -> Array:
        """Return the soft shares (K, n) of the rows; of two classes (1, n)."""
        if self._has_two_classes:
            shares_of_second = second_of_two(self._lead(scores))
            return shares_of_second[None]
        return soften(self.placed_scores(scores))

    def _points(self, weighted_shares: Array) -> Array:
        """Return the points of shares times weights (..., K, n)."""
        if weighted_shares.ndim == 2:
            sums = weighted_shares @ self.z
            return np.asarray(self.labeled_point + sums)
        # A single product for the whole stack.
        *stack, n_rows = weighted_shares.shape
        flat_shares = weighted_shares.reshape(-1, n_rows)
        flat_sums = flat_shares @ self.z
        sums = flat_sums.reshape(*stack, -1)
        return np.asarray(self.labeled_point + sums)


def n_held_rows(problem: Problem) -> int:
    """Return the number of unlabeled rows that are held: all, or a sample."""
    chosen = settings.HOLDING
    width = 1 + problem.whitening.rank
    n_rows = problem.unlabeled.n_rows
    # The shares of all classes are held, too.
    max_by_shares = max(chosen.min_rows, chosen.max_shares // problem.n_classes)
    max_rows = min(chosen.max_rows, max_by_shares)
    if n_rows <= max_rows and n_rows * width <= chosen.max_entries_of_all:
        return n_rows
    max_by_entries = max(chosen.min_rows, chosen.max_entries_of_sample // width)
    return min(max_rows, max_by_entries, n_rows)


def hold_in_memory(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldSet:
    """Whiten rows and hold them in memory.

    Rows are in the user's units or, if ``is_framed``, in frame coordinates.
    """
    whitening = problem.whitening
    # Block by block, so that no second copy of all rows is made on the way.
    z = np.ones((len(rows), 1 + whitening.rank))
    rows_per_block = settings.HOLDING.rows_per_block
    for start in range(0, len(rows), rows_per_block):
        block = slice(start, start + rows_per_block)
        u = rows[block]
        if not is_framed:
            u = problem.frame.apply(u)
        z[block, 1:] = whitening.points(u)
    weights_over_total = weights / problem.moments.weight
    return HeldSet(z, weights_over_total, problem.labeled_point)


def hold_all(problem: Problem) -> HeldSet:
    """Hold all unlabeled rows in memory, with labels that are free."""
    rows, weights = problem.unlabeled.sample(problem.unlabeled.n_rows, 0)
    return hold_in_memory(problem, rows, weights)
