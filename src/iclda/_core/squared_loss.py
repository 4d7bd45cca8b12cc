"""Squared losses as functions of the point (r, B).

In whitened coordinates the columns of (1, z) are orthonormal over all rows: the least squares fit
of any labeling, with an intercept and targets 0 and 1, is its point, f_k(z) = r_k + b_k' z. Losses
are half the sum over classes of squared differences, for two classes the square itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .likelihood import Objective, PreciseMeans
from .problem import LabeledSummary, Problem
from .types import Array
from .whitening import Whitening

_DEPENDENT = 1e-12  # eigenvalue of the labeled covariance, over the largest, that is rounding


@dataclass(frozen=True)
class SquaredLoss(Objective):
    """Minus (<p S, p> - 2 <C, p> + constant) / 2, which is concave, with its derivatives."""

    metric: Array  # S: (1 + rank, 1 + rank)
    target: Array  # C: (K, 1 + rank)
    constant: float
    weight: float = 1.0  # the unit of gaps: the loss is per row

    def is_bounded(self, point: Array) -> bool:
        return True

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        seen = point @ self.metric
        value = float(np.vdot(self.target, point) - np.vdot(seen, point) / 2) - self.constant / 2
        return value, self.target - seen

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        return lambda direction: np.asarray(-(direction @ self.metric))


@dataclass(frozen=True)
class SquaresProblem(Problem):
    """A problem whose rows are labeled by their largest least squares prediction."""

    def smallest_variance(self, point: Array) -> float:
        return math.inf  # every labeling has a fit

    def posterior_scores(self, point: Array, precise: PreciseMeans | None = None) -> Array:
        return point


def labeled_loss(problem: Problem) -> SquaredLoss:
    """Mean squared loss of the labeled rows."""
    return _loss_of(problem.labeled, problem.whitening)


def distance_from_supervised(problem: Problem) -> SquaredLoss:
    """Mean over all rows of the squared difference from the supervised least squares fit."""
    supervised = supervised_squares(problem.labeled, problem.whitening)
    size = float(np.vdot(supervised, supervised))
    return SquaredLoss(np.eye(supervised.shape[1]), supervised, size)


def supervised_squares(labeled: LabeledSummary, whitening: Whitening) -> Array:
    """(K, 1 + rank): least squares fit of the labeled rows, of several that of smallest slopes."""
    loss = _loss_of(labeled, whitening)
    mean, weights = loss.metric[0, 1:], loss.target[:, 0]
    covariance = loss.metric[1:, 1:] - np.outer(mean, mean)
    eigenvalues, vectors = scipy.linalg.eigh(covariance)
    is_kept = eigenvalues > _DEPENDENT * max(eigenvalues.max(initial=0.0), 1e-300)
    vectors = vectors[:, is_kept]
    between = loss.target[:, 1:] - np.outer(weights, mean)
    slopes = (between @ vectors / eigenvalues[is_kept]) @ vectors.T
    return np.column_stack([weights - slopes @ mean, slopes])


def _loss_of(labeled: LabeledSummary, whitening: Whitening) -> SquaredLoss:
    weights, means = labeled.counts / labeled.weight, whitening.points(labeled.means)
    target = np.column_stack([weights, weights[:, None] * means])
    metric = np.empty((1 + whitening.rank, 1 + whitening.rank))
    metric[0] = metric[:, 0] = target.sum(axis=0)
    within = whitening.transform @ labeled.within @ whitening.transform.T / labeled.weight
    metric[1:, 1:] = within + means.T @ target[:, 1:]
    return SquaredLoss(metric, target, 1.0)
