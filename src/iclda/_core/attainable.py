"""The set of attainable points (r, B): what some soft labeling of the unlabeled rows would give.

It is a polytope. ``scores`` (K, 1 + rank) label the rows by softmax of scores' (1, z); the point
they give traces the whole interior, and in the limit of large scores every face. The point of
the set furthest in a direction labels every row by its largest score: one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .labelsums import label, soften
from .problem import Problem
from .types import Array


class AttainableSet(Protocol):
    def soft_point(self, scores: Array) -> tuple[Array, float]:
        """The point labeled by softmax of the scores, and the mean of log-sum-exp over N."""
        ...

    def support(self, direction: Array) -> float:
        """max over the set of direction'(point - labeled point)."""
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
        n_free, width = scores.shape[0] - 1, scores.shape[1]
        curvature = np.empty((n_free, width, n_free, width))
        for k in range(n_free):
            for j in range(k + 1):
                spread = shares[k] * (float(j == k) - shares[j]) * self.weights
                block = (self.z * spread[:, None]).T @ self.z
                curvature[k, :, j] = block
                curvature[j, :, k] = block.T
        return curvature.reshape(n_free * width, n_free * width)

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

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        return self._read(scores, is_soft=True)

    def support(self, direction: Array) -> float:
        return self._read(direction, is_soft=False)[1]

    def _read(self, scores: Array, *, is_soft: bool) -> tuple[Array, float]:
        self.n_passes += 1
        problem = self.problem
        rule = problem.rule_of(scores, is_soft=is_soft)
        sums = problem.unlabeled.label_sums(rule, problem.frame)
        return problem.point_of(sums.counts, sums.sums), sums.log_sum / problem.moments.weight


def gap(rows: AttainableSet, point: Array, gradient: Array, labeled_point: Array) -> float:
    """max over the set of gradient'(v - point): zero at a stationary point, never negative."""
    reached = float((gradient * (point - labeled_point)).sum())
    return max(0.0, rows.support(gradient) - reached)
