"""The attainable set: the points (r, B) that soft labelings of the unlabeled rows give.

A point is an array (K, 1 + rank): row k holds the weight of class k and the sum of the whitened
rows z in it, labeled and unlabeled rows together, both over the total weight N. The set of all
attainable points is a convex polytope.

``scores`` c, (K, 1 + rank) too, label a row z by softmax of the K numbers c_k' z~, where
z~ = (1, z). Finite scores give all points of the interior of the set; a face is reached in the
limit of large scores. The maximum of a linear function over the set labels every row by its largest
score, which takes one pass over the rows.

``InMemorySet`` holds its rows, ``StreamedSet`` reads them in every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..labelsums import ROUNDING, LabelSums, label, second_of_two, soft_second_of_two, soften
from ..problem import Problem
from ..rows import Near, choose_near, near_boundary
from ..types import AnyArray, Array
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

    def __init__(self, sums: AllSums, z: Array, weights: Array, shares: Array) -> None:
        """Keep the sums over all rows, and the rows that are held.

        These are ``z`` (n, 1 + rank), ``weights`` (n,) and ``shares`` (K, n); for two classes
        (1, n), the shares in the second.
        """
        self.point, self.log_sum, self.is_thinned = sums
        self.parts = z, weights, shares

    @cached_property
    def near(self) -> tuple[Array, Array, Array]:
        """Rows near a class boundary, their weights and their shares."""
        z, weights, shares = self.parts
        near = near_boundary(shares)
        if len(near) > _GATHERED_SHARE * len(z):
            return self.parts
        return z[near], weights[near], shares[:, near]

    @property
    def n_near(self) -> int:
        """Number of rows near a boundary."""
        return len(self.near[0])

    @cached_property
    def _weighted(self) -> Array:
        _, weights, shares = self.near
        return shares * weights

    @cached_property
    def _two(self) -> tuple[Array, Array]:
        z, weights, shares = self.near
        return z, weights * shares[0] * (1 - shares[0])

    def product(self, direction: Array) -> Array:
        """Return J times a direction (K, 1 + rank): the change of the point."""
        if len(direction) == 2:
            z, spread = self._two
            second = (spread * (z @ (direction[1] - direction[0]))) @ z
            return np.array([-second, second])
        z, _, shares = self.near
        change = direction @ z.T
        change -= np.einsum("kn,kn->n", shares, change)
        change *= self._weighted
        return np.asarray(change @ z)

    @cached_property
    def local_set(self) -> HeldSet:
        """Attainable set of the held rows, with the labels of all other rows fixed."""
        z, weights, shares = self.parts
        sums = (shares * weights) @ z
        if len(shares) == 1:
            sums = np.vstack([weights @ z - sums[0], sums])
        return InMemorySet(z, weights, self.point - sums)

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
        z, weights, shares = self.near
        spread = self._two[1] if len(shares) == 1 else weights * shares[k] * shares[j]
        scaled = z * np.sqrt(spread)[:, None]
        return np.asarray(scaled.T @ scaled)


def shifted(scores: Array, shift: Array) -> Array:
    """Return scores (..., K, 1 + rank) with shifts (..., K) added to their first column."""
    moved = scores.copy()
    moved[..., 0] += shift
    return moved


class AttainableSet(Protocol):
    """Points that labelings of some rows give; arguments are (K, 1 + rank)."""

    @property
    def labeled_point(self) -> Array:
        """Part of every point that is fixed: that of the labeled rows, (K, 1 + rank)."""

    def label(self, scores: Array, start: Shift | None = None) -> Labeling:
        """Label by softmax of the scores; with quotas ``start`` is the shift of similar scores."""

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        """Return the point of labels by softmax, and log-sum-exp summed over rows, over N."""

    def hard_point(self, scores: Array) -> Array:
        """Return the point of labels by the largest score."""

    def support(self, direction: Array, start: Shift | None = None) -> float:
        """Return the maximum over the set of direction'(point - labeled point).

        With quotas ``start`` is the shift of the labeling at which the direction is the gradient.
        """


class AllSums(NamedTuple):
    """Sums over all rows under a labeling."""

    point: Array
    log_sum: float  # weighted sum over rows of log-sum-exp of the scores, over N
    is_thinned: bool = False  # whether only some rows near boundaries are held, with larger weights


class HeldSet(AttainableSet, Protocol):
    """The attainable set of rows that are held: all, or a sample."""

    @property
    def weights(self) -> Array:
        """(n,), over N."""

    def label_among(self, scores: Array, sums: AllSums) -> Labeling:
        """Return a labeling of all rows, whose sums are given; J is formed from the held rows."""

    def scores_of_rows(self, scores: Array) -> Array:
        """Return the score of every row in each class, (K, n)."""

    def shares(self, scores: Array) -> Array:
        """Return the soft shares (K, n) of the rows; for two classes (1, n), in the second."""

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        """Return ``soft_point`` of each of a stack of scores (S, K, 1 + rank)."""

    def spread(self, gradient: Array) -> float:
        """Return the root mean square over rows of the range over classes of gradient_k' z~."""


@dataclass(eq=False)
class InMemorySet:
    """Rows held in memory in whitened coordinates."""

    z: Array  # (n, 1 + rank), first column ones
    weights: Array  # (n,), over N
    labeled_point: Array  # (K, 1 + rank)

    @cached_property
    def _unlabeled_total(self) -> Array:
        return np.asarray(self.weights @ self.z)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.labeled_point.sum(axis=0) + self._unlabeled_total)

    def label(self, scores: Array, start: Shift | None = None) -> Labeling:
        if len(scores) > 2:
            shares, log_sums = label(scores @ self.z.T, is_soft=True)
            point = self.labeled_point + (shares * self.weights) @ self.z
            log_sum = float(self.weights @ log_sums)
            return Labeling(AllSums(point, log_sum), self.z, self.weights, shares)
        share = self.z @ (scores[0] - scores[1])  # lead of the first class
        log_sums = soft_second_of_two(share, out=share)
        log_sum = float(self.weights @ log_sums + scores[1] @ self._unlabeled_total)
        # One product of a vector and a matrix: BLAS is slow at two of them at once.
        second = (share * self.weights) @ self.z
        second += self.labeled_point[1]
        point = np.array([self._total - second, second])
        return Labeling(AllSums(point, log_sum), self.z, self.weights, share[None])

    def label_among(self, scores: Array, sums: AllSums) -> Labeling:
        return Labeling(sums, self.z, self.weights, self.shares(scores))

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        found = self.label(scores)
        return found.point, found.log_sum

    @cached_property
    def _reach(self) -> Array:
        return np.asarray(np.abs(self.z).max(axis=0, initial=0))

    def hard_point(self, scores: Array) -> Array:
        tie = ROUNDING * float((np.abs(scores) @ self._reach).max())
        if len(scores) > 2:
            shares = label(scores @ self.z.T, is_soft=False, tie=tie)[0]
            return self.labeled_point + (shares * self.weights) @ self.z
        is_first = self.z @ (scores[0] - scores[1]) >= -tie
        first = np.where(is_first, self.weights, 0.0) @ self.z
        first += self.labeled_point[0]
        return np.array([first, self._total - first])

    def scores_of_rows(self, scores: Array) -> Array:
        return np.asarray(scores @ self.z.T)

    def shares(self, scores: Array) -> Array:
        if len(scores) == 2:
            return second_of_two(self.z @ (scores[0] - scores[1]))[None]
        return soften(scores @ self.z.T)

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        """Return ``soft_point`` of each of a stack, by two matrix products for all of them."""
        n_stack, n_classes, width = scores.shape
        if n_classes == 2:
            lead = (scores[:, 0] - scores[:, 1]) @ self.z.T
            log_sums = soft_second_of_two(lead, out=lead) @ self.weights
            lead *= self.weights
            points = np.empty(scores.shape)
            np.matmul(lead, self.z, out=points[:, 1])
            points[:, 1] += self.labeled_point[1]
            np.subtract(self._total, points[:, 1], out=points[:, 0])
            return points, log_sums + scores[:, 1] @ self._unlabeled_total
        product = scores.reshape(n_stack * n_classes, width) @ self.z.T
        shares, log_sums = label(product.reshape(n_stack, n_classes, -1), is_soft=True)
        shares *= self.weights
        sums = shares.reshape(n_stack * n_classes, -1) @ self.z
        return self.labeled_point + sums.reshape(scores.shape), log_sums @ self.weights

    def spread(self, gradient: Array) -> float:
        ranges = np.ptp(gradient @ self.z.T, axis=0)
        return float(np.sqrt(self.weights @ ranges**2 / self.weights.sum()))

    def support(self, direction: Array, start: Shift | None = None) -> float:
        if len(direction) > 2:
            return float(self.weights @ (direction @ self.z.T).max(axis=0))
        ahead = self.weights @ np.maximum(self.z @ (direction[0] - direction[1]), 0)
        return float(ahead + direction[1] @ self._unlabeled_total)


def hold(problem: Problem, rows: AnyArray, weights: Array) -> HeldSet:
    """Hold rows, given in the user's units, in memory or on the device of the unlabeled rows."""
    place = _place(problem, len(rows))
    if place is None:
        return hold_in_memory(problem, rows, weights)
    return place(problem, problem.frame.apply(rows), weights)


def _hold_framed(problem: Problem, u: Array, weights: Array) -> HeldSet:
    """Hold rows, given in frame coordinates, in memory or on the device of the unlabeled rows."""
    place = _place(problem, len(u))
    if place is not None:
        return place(problem, u, weights)
    z = np.ones((len(u), 1 + problem.whitening.rank))
    z[:, 1:] = problem.whitening.points(u)
    return InMemorySet(z, weights / problem.moments.weight, problem.labeled_point)


def _place(problem: Problem, n_rows: int) -> Callable[[Problem, Array, Array], HeldSet] | None:
    """Return ``Rows.holder`` if so many rows are worth moving to a device, else None."""
    is_worth = (
        n_rows * problem.whitening.rank >= settings.NUMBERS_WORTH_MOVING
        and problem.proportions is None
    )
    return problem.unlabeled.holder if is_worth else None


def hold_in_memory(problem: Problem, rows: AnyArray, weights: Array) -> InMemorySet:
    augmented = np.empty((len(rows), 1 + problem.whitening.rank))
    augmented[:, 0] = 1
    is_few = len(rows) <= settings.ROWS_WHITENED_AT_ONCE
    write_whitened = problem.write_whitened if is_few else problem.write_whitened_folded
    for start in range(0, len(rows), settings.ROWS_WHITENED_AT_ONCE):
        part = slice(start, start + settings.ROWS_WHITENED_AT_ONCE)
        write_whitened(rows[part], out=augmented[part, 1:])
    return InMemorySet(augmented, weights / problem.moments.weight, problem.labeled_point)


def hold_all(problem: Problem) -> InMemorySet:
    """Hold all unlabeled rows in memory."""
    return hold_in_memory(problem, *problem.unlabeled.sample(problem.unlabeled.n_rows, 0))


@dataclass
class StreamedSet:
    """The attainable set of all unlabeled rows; every method reads them in one pass."""

    problem: Problem
    held: HeldSet | None = None  # a sample, by which ``label`` chooses rows near boundaries
    n_passes: int = 0

    def __post_init__(self) -> None:
        # Rows near boundaries that a pass returns, at least and at most.
        self._least = settings.ROWS_PER_UNKNOWN * self.labeled_point[:-1].size
        self._most = 0 if self.held is None else len(self.held.weights)

    def return_more(self, most: int) -> None:
        """Return up to four times as many rows near boundaries, at most ``most``, from now on."""
        self._most = max(self._most, min(4 * self._most, most))
        self._least = min(4 * self._least, self._most)

    @property
    def labeled_point(self) -> Array:
        return self.problem.labeled_point

    def label(self, scores: Array, start: Shift | None = None) -> Labeling:
        assert self.held is not None
        n_all = self.problem.unlabeled.n_rows
        near = choose_near(self.held.scores_of_rows(scores), n_all, self._least, self._most)
        sums = self._read(scores, is_soft=True, near=near)
        point, weight = self.problem.point_of(sums.counts, sums.sums), self.problem.moments.weight
        assert sums.near is not None
        found = AllSums(point, sums.log_sum / weight, bool(near.every.max() > 1))
        held = _hold_framed(self.problem, sums.near[:, 1:], sums.near[:, 0])
        return held.label_among(scores, found)

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        sums = self._read(scores, is_soft=True)
        point = self.problem.point_of(sums.counts, sums.sums)
        return point, sums.log_sum / self.problem.moments.weight

    def hard_point(self, scores: Array) -> Array:
        sums = self._read(scores, is_soft=False)
        return self.problem.point_of(sums.counts, sums.sums)

    def support(self, direction: Array, start: Shift | None = None) -> float:
        return self._read(direction, is_soft=False).log_sum / self.problem.moments.weight

    def _read(self, scores: Array, *, is_soft: bool, near: Near | None = None) -> LabelSums:
        self.n_passes += 1
        rule = self.problem.rule_of(scores, is_soft=is_soft)
        return self.problem.unlabeled.label_sums(rule, self.problem.frame, near=near)


def gap(rows: AttainableSet, point: Array, gradient: Array, start: Shift | None = None) -> float:
    """Return the first-order gap: the maximum over points v of the set of gradient'(v - point).

    It is zero at a stationary point, and never negative. ``start`` as in ``support``.
    """
    reached = float(np.vdot(gradient, point - rows.labeled_point))
    return max(0.0, rows.support(gradient, start) - reached)
