"""Least squares: losses as functions of the point (r, B), and the fit with soft labels.

In whitened coordinates the columns of (1, z) are orthonormal over all rows. The least
squares fit of any labeling, with an intercept and targets 0 and 1, is therefore its
point: f_k(z) = r_k + b_k' z. Losses are half the sum over classes of squared
differences, which for two classes is the squared difference itself.

The fit with soft labels minimizes the squared loss of all rows over the fit and the
shares of the classes in every unlabeled row. The best shares of a fit are its
predictions, projected on the simplex. With these shares the loss is convex in the fit,
and its gradient is the difference between the fit and the refitted point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from .. import AnyArray, Array
from ..likelihood import Objective, PrecisionWeightedMeans
from ..moments import Whitening
from ..problem import LabeledSummary, Problem
from . import Limits, Outcome, settings
from .held import HeldSet, hold_all

# Eigenvalues of the labeled covariance below this share of the largest are rounding.
_EIGENVALUE_ROUNDING = 1e-12
# Stands in for zero in a divisor.
_TINY = 1e-300
# A step of this size is rounding.
_STEP_ROUNDING = 1e-12


@dataclass(frozen=True)
class SquaredLoss(Objective):
    """Minus the loss (<p S, p> - 2 <C, p> + constant) / 2 of a point p.

    ``metric`` is S (1 + rank, 1 + rank), ``target`` is C (K, 1 + rank). The unit of
    gaps, ``weight``, is 1: the loss is per row.
    """

    metric: Array
    target: Array
    constant: float
    weight: float = 1.0

    def is_bounded(self, point: Array) -> bool:
        return True

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        # p S, the derivative of the quadratic term.
        slope = point @ self.metric
        half_square = np.vdot(slope, point) / 2
        gain = float(np.vdot(self.target, point) - half_square)
        return gain - self.constant / 2, self.target - slope

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        return lambda direction: np.asarray(-(direction @ self.metric))


@dataclass(frozen=True)
class SquaresProblem(Problem):
    """A problem whose rows are labeled by their largest least squares prediction."""

    def is_admissible(self, point: Array) -> bool:
        # Every labeling has a fit.
        return True

    def posterior_scores(
        self, point: Array, weighted_means: PrecisionWeightedMeans | None = None
    ) -> Array:
        return point


def labeled_loss(problem: Problem) -> SquaredLoss:
    """Return the mean squared loss of the labeled rows."""
    return _loss_of(problem.labeled, problem.whitening)


def distance_from_supervised(problem: Problem) -> SquaredLoss:
    """Return the mean squared difference from the supervised fit, over all rows."""
    supervised = supervised_squares(problem.labeled, problem.whitening)
    squares = float(np.vdot(supervised, supervised))
    return SquaredLoss(np.eye(supervised.shape[1]), supervised, squares)


def supervised_squares(labeled: LabeledSummary, whitening: Whitening) -> Array:
    """Return the least squares fit (K, 1 + rank) of the labeled rows.

    If several fits are equally good, it is the one with the smallest slopes.
    """
    loss = _loss_of(labeled, whitening)
    # 1. Find the mean and the covariance of the labeled rows, and the directions in
    # which they vary: the others get no slope.
    mean = loss.metric[0, 1:]
    covariance = loss.metric[1:, 1:] - np.outer(mean, mean)
    eigenvalues, vectors = scipy.linalg.eigh(covariance)
    largest = max(eigenvalues.max(initial=0.0), _TINY)
    is_kept = eigenvalues > _EIGENVALUE_ROUNDING * largest
    eigenvalues = eigenvalues[is_kept]
    vectors = vectors[:, is_kept]

    # 2. Divide the covariance of rows and targets by it.
    weights = loss.target[:, 0]
    between = loss.target[:, 1:] - np.outer(weights, mean)
    slopes_along_vectors = between @ vectors / eigenvalues
    slopes = slopes_along_vectors @ vectors.T
    intercepts = weights - slopes @ mean
    return np.column_stack([intercepts, slopes])


def _loss_of(labeled: LabeledSummary, whitening: Whitening) -> SquaredLoss:
    """Return the loss whose S and C are the mean products of (1, z) and the targets."""
    weights = labeled.counts / labeled.weight
    means = whitening.points(labeled.means)
    weighted_means = weights[:, None] * means
    target = np.column_stack([weights, weighted_means])

    transform = whitening.transform
    within = transform @ labeled.within @ transform.T / labeled.weight
    width = 1 + whitening.rank
    metric = np.empty((width, width))
    # The mean of z is the sum over the classes of their weighted means.
    metric[0] = target.sum(axis=0)
    metric[:, 0] = metric[0]
    metric[1:, 1:] = within + means.T @ target[:, 1:]
    return SquaredLoss(metric, target, 1.0)


@dataclass(frozen=True)
class SoftSquares:
    """Result of the minimization: the fit, its loss, the class weights of its labels.

    ``n_passes`` is 1, for the moments; rows are read once more to be held.
    """

    point: Array
    objective: float
    class_weights: Array
    n_iter: int
    outcome: Outcome
    n_passes: int = 1


def minimize_soft_squares(
    problem: Problem, start: Array, limits: Limits
) -> SoftSquares:
    """Minimize the loss of all rows with soft labels, by Newton's method.

    It ends when labels and refit move the point by ``tol`` at most. All unlabeled rows
    are held in memory.
    """
    rows = hold_all(problem)
    max_iter = problem.rounds(limits.max_iter)
    state = _evaluate(rows, start)
    n_iter = 0
    outcome = None
    while outcome is None:
        if np.abs(state.gradient).max() <= max(limits.tol, _STEP_ROUNDING):
            outcome = Outcome.CONVERGED
        elif n_iter == max_iter:
            outcome = Outcome.MAX_ITERATIONS
        else:
            n_iter += 1
            lower = _descend(rows, state)
            if lower is None:
                outcome = Outcome.STALLED
            else:
                state = lower
    # Without its gradient the point is the refitted one, whose first column has the
    # class weights of the labels.
    weights = (state.point - state.gradient)[:, 0]
    return SoftSquares(state.point, state.loss, weights, max(1, n_iter), outcome)


@dataclass(frozen=True)
class _State:
    """A fit, its loss and gradient; ``is_kept`` (K, n) marks shares that are not 0."""

    point: Array
    loss: float
    gradient: Array
    is_kept: AnyArray


def _evaluate(rows: HeldSet, point: Array) -> _State:
    """Label rows by a fit, and evaluate the loss that is left.

    Columns of (1, z) are orthonormal over all rows. With the refitted point q, the sums
    over rows of squared predictions and of predictions times labels are <p, p> and
    <p, q>. The sum of squared labels is the weight of the labeled rows plus the squared
    shares of the unlabeled ones. The loss is (<p, p> - 2 <p, q> + labels) / 2.
    """
    predictions = point @ rows.z.T
    shares = _nearest_shares(predictions)
    refitted = rows.labeled_point + (shares * rows.weights) @ rows.z
    gradient = point - refitted
    squared_shares = (shares**2).sum(axis=0)
    labeled_weight = rows.labeled_point[:, 0].sum()
    labels = labeled_weight + float(rows.weights @ squared_shares)
    # <p, p> - <p, q> in one product, which rounds less.
    products = np.vdot(point, gradient) - np.vdot(point, refitted)
    loss = float(products + labels) / 2
    return _State(point, loss, gradient, is_kept=shares > 0)


def _nearest_shares(predictions: Array) -> Array:
    """Project columns (K, n) on the simplex: nonnegative shares that add up to 1.

    The projection subtracts a number from every column and clips it at zero. It is the
    number with which the shares that stay positive, the largest ones, add up to 1.
    """
    ordered = -np.sort(-predictions, axis=0)
    n_classes, n_rows = predictions.shape
    counts = np.arange(1, n_classes + 1)[:, None]
    shifts = (np.cumsum(ordered, axis=0) - 1) / counts
    n_kept = (ordered > shifts).sum(axis=0)
    shift = shifts[n_kept - 1, np.arange(n_rows)]
    return np.asarray(np.maximum(predictions - shift, 0))


def _descend(rows: HeldSet, state: _State) -> _State | None:
    """Take a Newton step, or a part of it; None if no part is an improvement.

    A step is an improvement if it lowers the loss or halves the gradient.
    """
    chosen = settings.SOFT_SQUARES
    shape = state.point.shape
    size = state.point.size
    is_kept = state.is_kept
    n_kept = is_kept.sum(axis=0)

    def hessian_product(flat: Array) -> Array:
        # Shares follow the predictions, but for those at 0, and add up to 1.
        direction = flat.reshape(shape)
        change = np.where(is_kept, direction @ rows.z.T, 0)
        excess = change.sum(axis=0) / n_kept
        change = np.where(is_kept, change - excess, 0)
        refitted_change = (change * rows.weights) @ rows.z
        return np.asarray(direction - refitted_change).ravel()

    # 1. Solve Newton's equations.
    hessian = LinearOperator((size, size), matvec=hessian_product, dtype=float)
    solved, _ = cg(hessian, state.gradient.ravel(), rtol=chosen.residual_left)
    step = solved.reshape(shape)

    # 2. Halve the step until it is an improvement. Near the minimum the loss falls by
    # no more than rounding: there the gradient decides.
    half_gradient = np.linalg.norm(state.gradient) / 2
    step_share = 1.0
    while step_share > chosen.min_step_part:
        trial = _evaluate(rows, state.point - step_share * step)
        is_flatter = np.linalg.norm(trial.gradient) < half_gradient
        if trial.loss < state.loss or is_flatter:
            return trial
        step_share /= 2
    return None
