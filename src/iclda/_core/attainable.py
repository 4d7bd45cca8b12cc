"""The set of attainable points (r, B): what some soft labeling of the unlabeled rows would give.

It is a polytope. ``scores`` (K, 1 + rank) label the rows by softmax of scores' (1, z); the point
they give traces the whole interior, and in the limit of large scores every face. The point of
the set furthest in a direction labels every row by its largest score: one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .labelsums import LabelSums, boundary_scatter, is_near_boundary, label, soften
from .problem import Problem
from .types import Array


class AttainableSet(Protocol):
    def soft_point(self, scores: Array) -> tuple[Array, float]:
        """The point labeled by softmax of the scores, and the mean of log-sum-exp over N."""
        ...

    def support(self, direction: Array) -> float:
        """max over the set of direction'(point - labeled point)."""
        ...

    def curvature(self, scores: Array) -> Array:
        """Derivative of the soft point with respect to the scores, last class held."""
        ...


@dataclass(frozen=True)
class HeldRows:
    """The attainable set of rows held in memory in whitened coordinates: all, or a sample."""

    z: Array  # (n, 1 + rank), first column ones
    weights: Array  # (n,), over N
    labeled_point: Array  # (K, 1 + rank)

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        shares, log_sums = label(scores @ self.z.T, is_soft=True)
        return self._point(shares), float(self.weights @ log_sums)

    def soft_points(self, scores: Array) -> Array:
        """Points of a stack of scores (S, K, 1 + rank): two matrix products for all of them."""
        n_stack, n_classes, width = scores.shape
        product = scores.reshape(n_stack * n_classes, width) @ self.z.T
        shares = soften(product.reshape(n_stack, n_classes, -1))
        shares *= self.weights
        sums = shares.reshape(n_stack * n_classes, -1) @ self.z
        return self.labeled_point + sums.reshape(scores.shape)

    def support(self, direction: Array) -> float:
        return float(self.weights @ (direction @ self.z.T).max(axis=0))

    def curvature(self, scores: Array) -> Array:
        """Derivative of the soft point with respect to the scores, last class held."""
        shares = soften(scores @ self.z.T)
        near = is_near_boundary(shares)
        scatter = boundary_scatter(self.z[near, 1:], self.weights[near], shares[:, near])
        size = scatter.shape[0] * scatter.shape[1]
        return scatter.reshape(size, size)

    def _point(self, shares: Array) -> Array:
        return self.labeled_point + (shares * self.weights) @ self.z


def hold(problem: Problem, rows: Array, weights: Array) -> HeldRows:
    """Hold rows given in the user's units."""
    z = problem.whitening.points(problem.frame.apply(rows))
    augmented = np.column_stack([np.ones(len(z)), z])
    return HeldRows(augmented, weights / problem.moments.weight, problem.labeled_point)


@dataclass
class ReadRows:
    """The attainable set of all unlabeled rows, read anew for every question."""

    problem: Problem
    n_passes: int = 0
    _last: tuple[Array, Array] | None = None  # scores and the curvature there

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        sums = self._read(scores, is_soft=True)
        assert sums.curvature is not None
        self._last = scores, self._whitened(sums.curvature)
        point = self.problem.point_of(sums.counts, sums.sums)
        return point, sums.log_sum / self.problem.moments.weight

    def support(self, direction: Array) -> float:
        return self._read(direction, is_soft=False).log_sum / self.problem.moments.weight

    def curvature(self, scores: Array) -> Array:
        if self._last is None or not np.array_equal(self._last[0], scores):
            self.soft_point(scores)
        assert self._last is not None
        return self._last[1]

    def _read(self, scores: Array, *, is_soft: bool) -> LabelSums:
        self.n_passes += 1
        rule = self.problem.rule_of(scores, is_soft=is_soft)
        return self.problem.unlabeled.label_sums(rule, self.problem.frame, curvature=is_soft)

    def _whitened(self, curvature: Array) -> Array:
        """From (1, u) to (1, z), over N."""
        whitening = self.problem.whitening
        to_z = np.zeros((1 + whitening.rank, curvature.shape[1]))
        to_z[0, 0] = 1
        to_z[1:, 0] = -whitening.transform @ whitening.mean
        to_z[1:, 1:] = whitening.transform
        whitened = np.einsum("ad,kdje,be->kajb", to_z, curvature, to_z, optimize=True)
        size = whitened.shape[0] * whitened.shape[1]
        return np.asarray(whitened.reshape(size, size)) / self.problem.moments.weight


def gap(rows: AttainableSet, point: Array, gradient: Array, labeled_point: Array) -> float:
    """max over the set of gradient'(v - point): zero at a stationary point, never negative."""
    reached = float((gradient * (point - labeled_point)).sum())
    return max(0.0, rows.support(gradient) - reached)
