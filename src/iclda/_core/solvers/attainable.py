"""The set of attainable points (r, B): what some soft labeling of the unlabeled rows would give.

It is a polytope. ``scores`` (K, 1 + rank) label the rows by softmax of scores' (1, z); the point
they give traces the whole interior, and in the limit of large scores every face. The point of
the set furthest in a direction labels every row by its largest score: one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.special

from ..boundary import (
    HARD,
    between_classes,
    in_pairs,
    mapped_curvature,
    near_boundary,
    of_pairs,
)
from ..labelsums import ROUNDING, LabelSums, label, second_of_two, soft_second_of_two, soften
from ..problem import Problem
from ..types import AnyArray, Array

AT_ONCE = 4096  # rows of a sample that are worked on before the next ones
_ENOUGH_NEAR = 100  # rows near a boundary, per unknown, for an estimate of the curvature


class AttainableSet(Protocol):
    def soft_point(self, scores: Array) -> tuple[Array, float]:
        """The point labeled by softmax of the scores, and the mean of log-sum-exp over N."""
        ...

    def hard_point(self, scores: Array) -> Array:
        """The point labeled by the largest score."""
        ...

    def support(self, direction: Array) -> float:
        """max over the set of direction'(point - labeled point)."""
        ...

    def curvature(self, scores: Array) -> Array:
        """Derivative of the soft point with respect to the scores, last class held."""
        ...


@dataclass(frozen=True)
class InMemorySet:
    """The attainable set of rows held in memory in whitened coordinates: all, or a sample."""

    z: Array  # (n, 1 + rank), first column ones
    weights: Array  # (n,), over N
    labeled_point: Array  # (K, 1 + rank)
    _last: dict[bytes, Array] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _unlabeled_total(self) -> Array:
        return np.asarray(self.weights @ self.z)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.labeled_point.sum(axis=0) + self._unlabeled_total)

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        if len(scores) > 2:
            shares, log_sums = label(scores @ self.z.T, is_soft=True)
            point = self.labeled_point + (shares * self.weights) @ self.z
            return point, float(self.weights @ log_sums)
        lead = self._lead(scores)
        share = np.empty((1, len(lead)))
        log_sums = soft_second_of_two(lead, out=share[0])
        log_sum = self.weights @ log_sums + scores[1] @ self._unlabeled_total
        self._keep(scores, share)
        # One product of a vector and a matrix: BLAS is slow at two of them at once.
        second = (share[0] * self.weights) @ self.z
        second += self.labeled_point[1]
        return np.array([self._total - second, second]), float(log_sum)

    @cached_property
    def _reach(self) -> Array:
        return np.asarray(np.abs(self.z).max(axis=0, initial=0))

    def hard_point(self, scores: Array) -> Array:
        tie = ROUNDING * float((np.abs(scores) @ self._reach).max())
        if len(scores) > 2:
            shares = label(scores @ self.z.T, is_soft=False, tie=tie)[0]
            return self.labeled_point + (shares * self.weights) @ self.z
        first = np.where(self._lead(scores) >= -tie, self.weights, 0.0) @ self.z
        first += self.labeled_point[0]
        return np.array([first, self._total - first])

    def soft_points(self, scores: Array) -> Array:
        """Points of a stack of scores (S, K, 1 + rank): two matrix products for all of them."""
        n_stack, n_classes, width = scores.shape
        if n_classes == 2:
            lead = (scores[:, 0] - scores[:, 1]) @ self.z.T
            second = second_of_two(lead, out=lead)
            second *= self.weights
            points = np.empty(scores.shape)
            np.matmul(second, self.z, out=points[:, 1])
            points[:, 1] += self.labeled_point[1]
            np.subtract(self._total, points[:, 1], out=points[:, 0])
            return points
        product = scores.reshape(n_stack * n_classes, width) @ self.z.T
        shares = soften(product.reshape(n_stack, n_classes, -1))
        shares *= self.weights
        sums = shares.reshape(n_stack * n_classes, -1) @ self.z
        return self.labeled_point + sums.reshape(scores.shape)

    def support(self, direction: Array) -> float:
        if len(direction) > 2:
            return float(self.weights @ (direction @ self.z.T).max(axis=0))
        ahead = self.weights @ np.maximum(self._lead(direction), 0)
        return float(ahead + direction[1] @ self._unlabeled_total)

    def shortfall(self, scores: Array, direction: Array) -> float:
        """Support in a direction less what soft labels reach: an estimate of the gap."""
        shares, along = self._shares(scores), self._scores(direction)
        if len(shares) == 1:  # by how far the first of two classes is ahead
            return float(self.weights @ (np.maximum(along[0], 0) - (1 - shares[0]) * along[0]))
        return float(self.weights @ (along.max(axis=0) - (shares * along).sum(axis=0)))

    def entropy(self, scores: Array, groups: AnyArray) -> float:
        """Entropy of the labels when groups of classes are merged."""
        shares = self._all_shares(scores)
        merged = [shares[groups == group].sum(axis=0) for group in np.unique(groups)]
        return float(self.weights @ scipy.special.entr(merged).sum(axis=0))

    def shifted(self, shift: Array) -> InMemorySet:
        """The same set moved by ``shift``."""
        return replace(self, labeled_point=self.labeled_point + shift, _last={})

    def n_between(self, scores: Array) -> AnyArray:
        """(K, K): number of rows between two classes that add to the curvature."""
        return between_classes(self._shares(scores))

    def knows_curvature(self, scores: Array) -> bool:
        """Whether a sample has enough rows near boundaries to estimate the curvature."""
        n_near = len(near_boundary(self._shares(scores)))
        return n_near >= _ENOUGH_NEAR * scores[:-1].size

    def curvature(self, scores: Array, pairs: AnyArray | None = None) -> Array:
        """Derivative of the soft point with respect to the scores, last class held.

        With ``pairs`` (K, K): of rows between the classes that are marked in it only.
        """
        return self.curvature_of(self._shares(scores), pairs)

    def curvature_of(self, shares: Array, pairs: AnyArray | None = None) -> Array:
        """The same from soft shares (K, n), or (1, n) in the second of two classes."""
        if len(shares) <= 2:
            return self._scatter_between(shares[-1] * (1 - shares[-1]))
        n_classes, width = len(shares), self.z.shape[1]
        size = (n_classes - 1) * width
        found = np.zeros((n_classes, n_classes, width, width))
        for k in range(n_classes):
            for j in range(k):
                if pairs is None or pairs[k, j]:
                    found[k, j] = found[j, k] = self._scatter_between(shares[k] * shares[j])
        return of_pairs(found).reshape(size, size)

    def _scatter_between(self, spread: Array) -> Array:
        """Scatter of rows with weights ``spread``."""
        near = np.flatnonzero(spread > HARD)
        root = np.sqrt(spread[near] * self.weights[near])
        found = np.zeros((self.z.shape[1],) * 2)
        for start in range(0, len(near), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            rows = self.z.take(near[part], axis=0)
            rows *= root[part, None]
            found += np.dot(rows.T, rows)
        return found

    def _all_shares(self, scores: Array) -> Array:
        """Soft shares (K, n)."""
        shares = self._shares(scores)
        return shares if len(shares) > 1 else np.vstack([1 - shares, shares])

    def _shares(self, scores: Array) -> Array:
        """Soft shares (K, n), or (1, n) in the second of two classes; the last ones are kept."""
        key = scores.tobytes()
        if key not in self._last:
            found = soften(self._scores(scores))
            self._keep(scores, found if len(found) > 2 else found[1:])
        return self._last[key]

    def _keep(self, scores: Array, shares: Array) -> None:
        self._last.clear()
        self._last[scores.tobytes()] = shares

    def _scores(self, scores: Array) -> Array:
        """(K, n), or of two classes how far the first is ahead: (1, n)."""
        return self._lead(scores)[None] if len(scores) == 2 else np.asarray(scores @ self.z.T)

    def _lead(self, scores: Array) -> Array:
        """(n,): how far the first of two classes is ahead."""
        return np.asarray(self.z @ (scores[0] - scores[1]))


def hold(problem: Problem, rows: Array, weights: Array) -> InMemorySet:
    """Hold rows given in the user's units."""
    augmented = np.empty((len(rows), 1 + problem.whitening.rank))
    augmented[:, 0] = 1
    is_few = len(rows) <= AT_ONCE
    write_whitened = problem.write_whitened if is_few else problem.write_whitened_folded
    for start in range(0, len(rows), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        write_whitened(rows[part], out=augmented[part, 1:])
    return InMemorySet(augmented, weights / problem.moments.weight, problem.labeled_point)


def hold_all(problem: Problem) -> InMemorySet:
    """Hold all unlabeled rows."""
    return hold(problem, *problem.unlabeled.sample(problem.unlabeled.n_rows, 0))


@dataclass
class StreamedSet:
    """The attainable set of all unlabeled rows, each method a pass over them."""

    problem: Problem
    sample: InMemorySet | None = None  # rows to estimate the curvature from
    has_curvature: bool = True  # whether soft points also sum it
    n_passes: int = 0
    _last: tuple[Array, Array] | None = None  # scores and the curvature there

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        thinning = self._thinning(scores)
        sums = self._read(scores, is_soft=True, curvature=thinning)
        if sums.curvature is not None:
            self._last = scores, self._completed(self._whitened(sums.curvature), thinning, scores)
        point = self.problem.point_of(sums.counts, sums.sums)
        return point, sums.log_sum / self.problem.moments.weight

    def hard_point(self, scores: Array) -> Array:
        sums = self._read(scores, is_soft=False)
        return self.problem.point_of(sums.counts, sums.sums)

    def support(self, direction: Array) -> float:
        return self._read(direction, is_soft=False).log_sum / self.problem.moments.weight

    def curvature(self, scores: Array) -> Array:
        if self.sample is not None and not np.any(self._thinning(scores)):
            return self.sample.curvature(scores)
        if self._last is None or not np.array_equal(self._last[0], scores):
            self.soft_point(scores)
        assert self._last is not None
        return self._last[1]

    def _thinning(self, scores: Array) -> int | AnyArray:
        """n: the curvature is summed over every n-th row between two classes; 0: the sample's."""
        if self.sample is None:
            return int(self.has_curvature)
        counts = self.sample.n_between(scores)
        enough = _ENOUGH_NEAR * scores.shape[1]
        n_all, n_held = self.problem.unlabeled.n_rows, len(self.sample.weights)
        surplus = np.maximum(1, counts * (n_all / (n_held * enough)))
        each: AnyArray = 2 ** np.rint(np.log2(surplus)).astype(np.int64)
        each[(counts >= enough) | np.eye(len(counts), dtype=bool)] = 0
        return each

    def _completed(self, read: Array, thinning: int | AnyArray, scores: Array) -> Array:
        """Curvature from the pass, completed by the sample where that has enough rows."""
        is_known = np.broadcast_to(np.equal(thinning, 0), (len(scores), len(scores)))
        if self.sample is None or len(scores) == 2 or is_known.sum() == len(scores):
            return read
        shape = (len(scores) - 1, scores.shape[1]) * 2
        pairs = in_pairs(read.reshape(shape))  # may include more than the pairs requested
        pairs[is_known] = in_pairs(self.sample.curvature(scores, is_known).reshape(shape))[is_known]
        return of_pairs(pairs).reshape(read.shape)

    def _read(self, scores: Array, *, is_soft: bool, curvature: int | AnyArray = 0) -> LabelSums:
        self.n_passes += 1
        rule = self.problem.rule_of(scores, is_soft=is_soft)
        return self.problem.unlabeled.label_sums(rule, self.problem.frame, curvature=curvature)

    def _whitened(self, curvature: Array) -> Array:
        """From (1, u) to (1, z), over N."""
        transform, mean = self.problem.whitening.transform, self.problem.whitening.mean
        whitened = mapped_curvature(curvature, -transform @ mean, transform)
        size = whitened.shape[0] * whitened.shape[1]
        return whitened.reshape(size, size) / self.problem.moments.weight


def gap(rows: AttainableSet, point: Array, gradient: Array, labeled_point: Array) -> float:
    """max over the set of gradient'(v - point): zero at a stationary point, never negative."""
    reached = float((gradient * (point - labeled_point)).sum())
    return max(0.0, rows.support(gradient) - reached)
