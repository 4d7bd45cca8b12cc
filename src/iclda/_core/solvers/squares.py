"""Least squares: losses as functions of the point (r, B), and the fit with soft labels.

In whitened coordinates the columns of (1, z) are orthonormal over all rows: the least squares fit
of any labeling, with an intercept and targets 0 and 1, is its point, f_k(z) = r_k + b_k' z. Losses
are half the sum over classes of squared differences, for two classes the square itself.

With soft labels the squared loss of all rows is minimized over the fit and the labels of the
unlabeled rows, shares of the classes, together. The best labels of a fit are its predictions,
projected on the simplex; the loss that is left is convex in the fit, and its gradient is the step
to the refitted point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from .. import AnyArray, Array
from ..likelihood import Objective, PreciseMeans
from ..moments import Whitening
from ..problem import LabeledSummary, Problem
from . import Limits, Outcome
from .held import HeldSet, hold_all

_DEPENDENT_RATIO = (
    1e-12  # eigenvalue of the labeled covariance, over the largest, that is rounding
)
_STEP_ROUNDING = 1e-12  # of a step
_CG_TOLERANCE = 1e-8  # of Newton's equations, over the gradient
_SHORTEST_STEP = 1e-6  # part of a Newton step


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
        value = (
            float(np.vdot(self.target, point) - np.vdot(seen, point) / 2)
            - self.constant / 2
        )
        return value, self.target - seen

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        return lambda direction: np.asarray(-(direction @ self.metric))


@dataclass(frozen=True)
class SquaresProblem(Problem):
    """A problem whose rows are labeled by their largest least squares prediction."""

    def is_admissible(self, point: Array) -> bool:
        return True  # every labeling has a fit

    def posterior_scores(
        self, point: Array, precise: PreciseMeans | None = None
    ) -> Array:
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
    is_kept = eigenvalues > _DEPENDENT_RATIO * max(eigenvalues.max(initial=0.0), 1e-300)
    vectors = vectors[:, is_kept]
    between = loss.target[:, 1:] - np.outer(weights, mean)
    slopes = (between @ vectors / eigenvalues[is_kept]) @ vectors.T
    return np.column_stack([weights - slopes @ mean, slopes])


def _loss_of(labeled: LabeledSummary, whitening: Whitening) -> SquaredLoss:
    weights, means = labeled.counts / labeled.weight, whitening.points(labeled.means)
    target = np.column_stack([weights, weights[:, None] * means])
    metric = np.empty((1 + whitening.rank, 1 + whitening.rank))
    metric[0] = metric[:, 0] = target.sum(axis=0)
    within = (
        whitening.transform @ labeled.within @ whitening.transform.T / labeled.weight
    )
    metric[1:, 1:] = within + means.T @ target[:, 1:]
    return SquaredLoss(metric, target, 1.0)


@dataclass(frozen=True)
class SoftSquares:
    """Result of the minimization: the fit, its loss, and the class weights of its labels."""

    point: Array
    objective: float
    class_weights: Array
    n_iter: int
    outcome: Outcome
    n_passes: int = 1  # for the moments; once more all rows are read to be held


def minimize_soft_squares(
    problem: Problem, start: Array, limits: Limits
) -> SoftSquares:
    """Newton's method from ``start``, until a round of labels and refit moves by ``tol`` at most.

    All unlabeled rows are held in memory.
    """
    rows, max_iter = hold_all(problem), problem.rounds(limits.max_iter)
    last = _evaluate(rows, start)
    n_iter, outcome = 0, None
    while outcome is None:
        if np.abs(last.gradient).max() <= max(limits.tol, _STEP_ROUNDING):
            outcome = Outcome.CONVERGED
        elif n_iter == max_iter:
            outcome = Outcome.MAX_ITERATIONS
        else:
            n_iter += 1
            lower = _descend(rows, last)
            if lower is None:
                outcome = Outcome.STALLED
            else:
                last = lower
    weights = (last.point - last.gradient)[:, 0]
    return SoftSquares(last.point, last.value, weights, max(1, n_iter), outcome)


@dataclass(frozen=True)
class _State:
    point: Array
    value: float
    gradient: Array
    is_kept: AnyArray  # (K, n): classes that a row has a share of


def _evaluate(rows: HeldSet, point: Array) -> _State:
    shares = _nearest_shares(point @ rows.z.T)
    refitted = rows.labeled_point + (shares * rows.weights) @ rows.z
    gradient = point - refitted
    # Columns of (1, z) are orthonormal over all rows: sums over rows are sums over coefficients.
    labels = rows.labeled_point[:, 0].sum() + float(
        rows.weights @ (shares**2).sum(axis=0)
    )
    value = float(np.vdot(point, gradient) - np.vdot(point, refitted) + labels) / 2
    return _State(point, value, gradient, shares > 0)


def _nearest_shares(predictions: Array) -> Array:
    """(K, n): the nearest columns that are nonnegative and add up to 1."""
    ordered = -np.sort(-predictions, axis=0)
    n_classes, n_rows = predictions.shape
    shifts = (np.cumsum(ordered, axis=0) - 1) / np.arange(1, n_classes + 1)[:, None]
    n_kept = (ordered > shifts).sum(axis=0)
    return np.asarray(
        np.maximum(predictions - shifts[n_kept - 1, np.arange(n_rows)], 0)
    )


def _descend(rows: HeldSet, last: _State) -> _State | None:
    """A Newton step, shorter if need be; None if no part of it lowers the loss."""
    shape, is_kept = last.point.shape, last.is_kept
    n_kept = is_kept.sum(axis=0)

    def product(flat: Array) -> Array:
        """The second derivative: labels follow predictions, but for those at 0 and their mean."""
        direction = flat.reshape(shape)
        moved = np.where(is_kept, direction @ rows.z.T, 0)
        moved = np.where(is_kept, moved - moved.sum(axis=0) / n_kept, 0)
        return np.asarray(direction - (moved * rows.weights) @ rows.z).ravel()

    hessian = LinearOperator(
        (last.point.size, last.point.size), matvec=product, dtype=float
    )
    step = cg(hessian, last.gradient.ravel(), rtol=_CG_TOLERANCE)[0].reshape(shape)
    size = 1.0
    while size > _SHORTEST_STEP:
        found = _evaluate(rows, last.point - size * step)
        is_lower = found.value < last.value
        if (
            is_lower
            or np.linalg.norm(found.gradient) < np.linalg.norm(last.gradient) / 2
        ):
            return found
        size /= 2
    return None
