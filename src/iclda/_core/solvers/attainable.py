"""The attainable set: the points (r, B) that soft labelings of the unlabeled rows give.

A point is an array (K, 1 + rank): row k holds the weight of class k and the sum of the whitened
rows z in it, labeled and unlabeled rows together, both over the total weight N. The set of all
attainable points is a convex polytope.

``scores`` c, (K, 1 + rank) too, label a row z by softmax of the K numbers c_k' z~, where
z~ = (1, z). Finite scores give all points of the interior of the set; a face is reached in the
limit of large scores. The maximum of a linear function over the set labels every row by its largest
score, which takes one pass over the rows.

``HeldSet`` holds its rows, ``StreamedSet`` reads them in every pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..labelsums import (
    ROUNDING,
    LabelSums,
    label,
    second_of_two,
    soft_second_of_two,
    soften,
)
from ..problem import Problem
from ..rows import HARD, Near, choose_near, near_boundary
from . import settings

_GATHERED_SHARE = 0.6  # share of rows near a boundary below which they are copied


class Shift(NamedTuple):
    """Numbers added to the first column of scores so that the labels fill quotas (``quotas``).

    It is also where the search for the shift of similar scores starts.
    """

    values: Array  # (K,)
    score_range: float  # largest range, over classes, of the scores of a row
    rows: Any  # the ``QuotaSet`` on which they were found


class Labeling:
    """Rows labeled softly by scores: the point they attain, and its derivative J by the scores.

    J is the sum over rows of w (diag g - g g') x z~ z~' (a Kronecker product), with the weight w of
    a row, its shares g (K,) in the classes and z~ = (1, z). Rows whose labels are hard add nothing,
    so that only rows near class boundaries are summed.
    """

    shift: Shift | None = None  # None without quotas
    n_sought: float = 0.0  # numbers that were read to find the shift

    def __init__(self, sums: AllSums, rows: HeldSet, shares: Any) -> None:
        """Keep the sums over all rows, the rows that are held, and their shares.

        ``shares`` are (K, n); of two classes in memory (1, n), the shares in the second.
        """
        self.point, self.log_sum, self.is_thinned = sums
        self.rows, self.shares = rows, shares

    @cached_property
    def near(self) -> tuple[Any, Any, Any]:
        """Rows near a class boundary, their weights and their shares; on a device all rows."""
        z, weights, shares = self.rows.z, self.rows.placed_weights, self.shares
        if not self.rows.is_in_memory:
            return z, weights, shares
        near = near_boundary(shares)
        if len(near) > _GATHERED_SHARE * len(z):
            return z, weights, shares
        return z[near], weights[near], shares[:, near]

    @cached_property
    def n_near(self) -> int:
        """Number of rows near a boundary."""
        if self.rows.is_in_memory:
            return len(self.near[0])
        xp = self.rows.place.xp
        return int(xp.count_nonzero(xp.max(self.shares, axis=0) < 1 - HARD))

    @cached_property
    def _weighted(self) -> Any:
        _, weights, shares = self.near
        return shares * weights

    @cached_property
    def _spread_of_two(self) -> Array:
        _, weights, shares = self.near
        return np.asarray(weights * shares[0] * (1 - shares[0]))

    def product(self, direction: Array) -> Array:
        """Return J times a direction (K, 1 + rank): the change of the point."""
        (z, _, shares), place = self.near, self.rows.place
        if shares.shape[0] == 1:
            second = (self._spread_of_two * (z @ (direction[1] - direction[0]))) @ z
            return np.array([-second, second])
        change = place.put(direction) @ z.T
        change -= place.sum_over_classes(shares, change)
        change *= self._weighted
        return np.asarray(place.fetch(change @ z))

    def factor(self) -> Array:
        """Return C, (m, K, 1 + rank), whose products C C' add up to J: K for each row."""
        z, weights, shares = self.near
        shares = np.vstack([1 - shares, shares]) if len(shares) == 1 else shares
        root = np.sqrt(shares)
        spread = root[:, None] * (np.eye(len(root))[..., None] - root[:, None] * root)
        columns = np.einsum("jkn,nd->nkjd", spread * np.sqrt(weights), z)
        return np.asarray(columns.reshape(-1, len(root), z.shape[1]))

    @cached_property
    def local_set(self) -> HeldSet:
        """Attainable set of the held rows, with the labels of all other rows fixed."""
        z, weights, place = self.rows.z, self.rows.placed_weights, self.rows.place
        sums = place.fetch((self.shares * weights) @ z)
        if self.shares.shape[0] == 1:
            sums = np.vstack([weights @ z - sums[0], sums])
        return HeldSet(z, self.rows.weights, self.point - sums, place=place)

    def matrix(self) -> Array:
        """Return J as a matrix, for the scores of all classes but the last, which are fixed."""
        n_free, width = len(self.point) - 1, self.point.shape[1]
        if n_free == 1:
            return self._between(1, 0)
        found = np.zeros((n_free, width, n_free, width))
        for k in range(n_free + 1):
            for j in range(k):
                between = self._between(k, j)
                found[j, :, j] += between
                if k < n_free:
                    found[k, :, k] += between
                    found[k, :, j] = found[j, :, k] = -between
        return found.reshape(n_free * width, n_free * width)

    def _between(self, k: int, j: int) -> Array:
        """Return the sum over rows of w g_k g_j z~ z~', (1 + rank, 1 + rank)."""
        (z, _, shares), place = self.near, self.rows.place
        is_of_two = shares.shape[0] == 1
        spread = (
            self._spread_of_two if is_of_two else self._weighted[k, :] * shares[j, :]
        )
        scaled = z * place.xp.sqrt(spread)[:, None]
        return np.asarray(place.fetch(scaled.T @ scaled))


def shifted(scores: Array, shift: Array) -> Array:
    """Return scores (..., K, 1 + rank) with shifts (..., K) added to their first column."""
    moved = scores.copy()
    moved[..., 0] += shift
    return moved


class AllSums(NamedTuple):
    """Sums over all rows under a labeling."""

    point: Array
    log_sum: float  # weighted sum over rows of log-sum-exp of the scores, over N
    is_thinned: bool = (
        False  # whether only some rows near boundaries are held, with larger weights
    )


class Memory:
    """The place of rows in memory; ``_rows.places.Place`` is that of rows on a device."""

    xp: Any = np
    put = fetch = staticmethod(np.asarray)
    label = staticmethod(label)

    @staticmethod
    def sum_over_classes(shares: Array, values: Array) -> Array:
        """Return the sum over classes of shares times values, both (K, n)."""
        return np.asarray(np.einsum("kn,kn->n", shares, values))


MEMORY = Memory()


@dataclass(eq=False)
class HeldSet:
    """The attainable set of rows that are held, in memory or on a device: all, or a sample.

    Scores and results are in memory, (K, 1 + rank). Two classes in memory have formulas of their
    own, with one exponential and one product a row. The methods ``label``, ``soft_point``,
    ``hard_point`` and ``support`` are also those of ``StreamedSet``.
    """

    z: Any  # (n, 1 + rank) where the rows are, first column ones
    weights: Array  # (n,) in memory, over N
    labeled_point: Array  # (K, 1 + rank): of the labeled rows, a part of every point
    place: Any = field(default=MEMORY, kw_only=True)

    @property
    def is_in_memory(self) -> bool:
        return self.place is MEMORY

    @property
    def _is_of_two(self) -> bool:
        return len(self.labeled_point) == 2 and self.place is MEMORY

    @cached_property
    def placed_weights(self) -> Any:
        return self.place.put(self.weights)

    @cached_property
    def _unlabeled_total(self) -> Array:
        return np.asarray(self.weights @ self.z)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.labeled_point.sum(axis=0) + self._unlabeled_total)

    def label(self, scores: Array, start: Shift | None = None) -> Labeling:
        """Label by softmax of the scores; with quotas ``start`` is the shift of similar scores."""
        if not self._is_of_two:
            shares, log_sums = self.place.label(self._scores(scores), is_soft=True)
            point = self._points(shares * self.placed_weights)
            return Labeling(AllSums(point, float(self._sum(log_sums))), self, shares)
        share = self.z @ (scores[0] - scores[1])  # lead of the first class
        log_sums = soft_second_of_two(share, out=share)
        log_sum = float(self.weights @ log_sums + scores[1] @ self._unlabeled_total)
        # One product of a vector and a matrix: BLAS is slow at two of them at once.
        second = (share * self.weights) @ self.z
        second += self.labeled_point[1]
        point = np.array([self._total - second, second])
        return Labeling(AllSums(point, log_sum), self, share[None])

    def label_among(self, scores: Array, sums: AllSums) -> Labeling:
        """Return a labeling of all rows, whose sums are given; J is formed from the held rows."""
        return Labeling(sums, self, self._soft_shares(scores))

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        """Return the point of labels by softmax, and log-sum-exp summed over rows, over N."""
        found = self.label(scores)
        return found.point, found.log_sum

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        """Return ``soft_point`` of each of a stack of scores (S, K, 1 + rank)."""
        if not self._is_of_two:
            shares, log_sums = self.place.label(self._scores(scores), is_soft=True)
            shares *= self.placed_weights
            return self._points(shares), self._sum(log_sums)
        lead = (scores[:, 0] - scores[:, 1]) @ self.z.T
        log_sums = soft_second_of_two(lead, out=lead) @ self.weights
        lead *= self.weights
        points = np.empty(scores.shape)
        np.matmul(lead, self.z, out=points[:, 1])
        points[:, 1] += self.labeled_point[1]
        np.subtract(self._total, points[:, 1], out=points[:, 0])
        return points, log_sums + scores[:, 1] @ self._unlabeled_total

    @cached_property
    def _reach(self) -> Array:
        return np.asarray(np.abs(self.place.fetch(self.z)).max(axis=0, initial=0))

    def hard_point(self, scores: Array) -> Array:
        """Return the point of labels by the largest score."""
        tie = ROUNDING * float((np.abs(scores) @ self._reach).max())
        if not self._is_of_two:
            shares = self.place.label(self._scores(scores), is_soft=False, tie=tie)[0]
            return self._points(shares * self.placed_weights)
        is_first = self.z @ (scores[0] - scores[1]) >= -tie
        first = np.where(is_first, self.weights, 0.0) @ self.z
        first += self.labeled_point[0]
        return np.array([first, self._total - first])

    def scores_of_rows(self, scores: Array) -> Array:
        """Return the score of every row in each class, (K, n)."""
        return np.asarray(self.place.fetch(self._scores(scores)))

    def shares(self, scores: Array) -> Array:
        """Return the soft shares (K, n) of the rows; for two classes (1, n), in the second."""
        shares = np.asarray(self.place.fetch(self._soft_shares(scores)))
        return shares[1:] if len(shares) == 2 else shares

    def spread(self, gradient: Array) -> float:
        """Return the root mean square over rows of the range over classes of gradient_k' z~."""
        ranges = np.ptp(self.scores_of_rows(gradient), axis=0)
        return float(np.sqrt(self.weights @ ranges**2 / self.weights.sum()))

    def support(self, direction: Array, start: Shift | None = None) -> float:
        """Return the maximum over the set of direction'(point - labeled point).

        With quotas ``start`` is the shift of the labeling at which the direction is the gradient.
        """
        if not self._is_of_two:
            return float(self._sum(self.place.xp.max(self._scores(direction), axis=0)))
        ahead = self.weights @ np.maximum(self.z @ (direction[0] - direction[1]), 0)
        return float(ahead + direction[1] @ self._unlabeled_total)

    def _scores(self, scores: Array) -> Any:
        """Return the scores (..., K, n) of all rows, where the rows are."""
        if scores.ndim == 2:
            return self.place.put(scores) @ self.z.T
        *stack, width = scores.shape
        flat = self.place.put(scores.reshape(-1, width)) @ self.z.T
        return self.place.xp.reshape(flat, (*stack, -1))

    def _soft_shares(self, scores: Array) -> Any:
        if self._is_of_two:
            return second_of_two(self.z @ (scores[0] - scores[1]))[None]
        return self.place.label(self._scores(scores), is_soft=True)[0]

    def _points(self, weighted: Any) -> Array:
        """Return the points of shares times weights (..., K, n)."""
        if weighted.ndim == 2:
            return np.asarray(self.labeled_point + self.place.fetch(weighted @ self.z))
        *stack, n_rows = weighted.shape
        sums = self.place.xp.reshape(weighted, (-1, n_rows)) @ self.z
        return np.asarray(
            self.labeled_point + self.place.fetch(sums).reshape(*stack, -1)
        )

    def _sum(self, values: Any) -> Any:
        """Return the weighted sum over rows of values (..., n)."""
        return self.place.fetch(values @ self.placed_weights)


def hold(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldSet:
    """Hold rows in memory or, if they are worth moving, on the device of the unlabeled rows.

    Rows are in the user's units or, if ``is_framed``, in frame coordinates.
    """
    whitening, place = problem.whitening, problem.unlabeled.held_at
    is_worth = len(rows) * whitening.rank >= settings.NUMBERS_WORTH_MOVING
    if place is None or not is_worth or problem.proportions is not None:
        return hold_in_memory(problem, rows, weights, is_framed=is_framed)
    u = rows if is_framed else problem.frame.apply(rows)
    z = (place.put(u) - place.put(whitening.mean)) @ place.put(whitening.transform.T)
    z = place.xp.concat([place.put(np.ones((len(u), 1))), z], axis=1)
    return HeldSet(
        z, weights / problem.moments.weight, problem.labeled_point, place=place
    )


def hold_in_memory(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldSet:
    """Hold rows in memory; see ``hold``."""
    z = np.ones((len(rows), 1 + problem.whitening.rank))
    for start in range(0, len(rows), settings.ROWS_WHITENED_AT_ONCE):
        part = slice(start, start + settings.ROWS_WHITENED_AT_ONCE)
        u = rows[part] if is_framed else problem.frame.apply(rows[part])
        z[part, 1:] = problem.whitening.points(u)
    return HeldSet(z, weights / problem.moments.weight, problem.labeled_point)


def hold_all(problem: Problem) -> HeldSet:
    """Hold all unlabeled rows in memory."""
    return hold_in_memory(
        problem, *problem.unlabeled.sample(problem.unlabeled.n_rows, 0)
    )


class _Returned(NamedTuple):
    """Rows near class boundaries that a pass returned."""

    rows: HeldSet
    every: AnyArray  # as in ``Near``
    near: AnyArray  # rows of the sample that are near, too

    def serve(self, every: AnyArray, near: AnyArray) -> bool:
        """Return whether a pass would return no other rows."""
        return np.array_equal(every, self.every) and bool(
            np.isin(near, self.near).all()
        )


@dataclass
class StreamedSet:
    """The attainable set of all unlabeled rows; every method reads them in one pass."""

    problem: Problem
    held: HeldSet | None = (
        None  # a sample, by which ``label`` chooses rows near boundaries
    )
    n_passes: int = 0
    _returned: _Returned | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # Rows near boundaries that a pass returns, at least and at most.
        self._least = settings.ROWS_PER_UNKNOWN * self.labeled_point[:-1].size
        self._most = 0 if self.held is None else len(self.held.weights)

    def return_more(self, most: int) -> None:
        """Return up to four times as many rows near boundaries, at most ``most``, from now on."""
        self._returned = None
        self._most = max(self._most, min(4 * self._most, most))
        # One of every two rows would come back if only few more than the most were near.
        self._least = max(self._least, min(4 * self._least, self._most // 2))

    @property
    def labeled_point(self) -> Array:
        return self.problem.labeled_point

    def label(self, scores: Array, start: Shift | None = None) -> Labeling:
        assert self.held is not None
        n_all, seen = self.problem.unlabeled.n_rows, self.held.scores_of_rows(scores)
        near = choose_near(seen, n_all, self._least, self._most)
        as_near = near_boundary(soften(seen / near.softening))
        if self._returned is not None and self._returned.serve(near.every, as_near):
            sums = self._read(scores, is_soft=True)
        else:
            sums = self._read(scores, is_soft=True, near=near)
            assert sums.near is not None
            rows = hold(self.problem, sums.near[:, 1:], sums.near[:, 0], is_framed=True)
            self._returned = _Returned(rows, near.every, as_near)
        point, weight = (
            self.problem.point_of(sums.counts, sums.sums),
            self.problem.moments.weight,
        )
        found = AllSums(point, sums.log_sum / weight, bool(near.every.max() > 1))
        return self._returned.rows.label_among(scores, found)

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        sums = self._read(scores, is_soft=True)
        point = self.problem.point_of(sums.counts, sums.sums)
        return point, sums.log_sum / self.problem.moments.weight

    def hard_point(self, scores: Array) -> Array:
        sums = self._read(scores, is_soft=False)
        return self.problem.point_of(sums.counts, sums.sums)

    def support(self, direction: Array, start: Shift | None = None) -> float:
        return (
            self._read(direction, is_soft=False).log_sum / self.problem.moments.weight
        )

    def _read(
        self, scores: Array, *, is_soft: bool, near: Near | None = None
    ) -> LabelSums:
        self.n_passes += 1
        rule = self.problem.rule_of(scores, is_soft=is_soft)
        return self.problem.unlabeled.label_sums(rule, self.problem.frame, near=near)


AttainableSet = HeldSet | StreamedSet


def gap(
    rows: AttainableSet, point: Array, gradient: Array, start: Shift | None = None
) -> float:
    """Return the first-order gap: the maximum over points v of the set of gradient'(v - point).

    It is zero at a stationary point, and never negative. ``start`` as in ``support``.
    """
    reached = float(np.vdot(gradient, point - rows.labeled_point))
    return max(0.0, rows.support(gradient, start) - reached)
