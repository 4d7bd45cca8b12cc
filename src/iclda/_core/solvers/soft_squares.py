"""Least squares that labels rows softly: the fit and the soft labels that agree best.

The squared loss of all rows is minimized over the fit and the labels of the unlabeled rows, shares
of the classes, together. The best labels of a fit are its predictions, projected on the simplex;
the loss that is left is convex in the fit, and its gradient is the step to the refitted point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from ..problem import Problem
from ..types import AnyArray, Array
from . import Limits, Outcome
from .attainable import InMemorySet, hold_all

_ROUNDING = 1e-12  # of a step
_ACCURACY = 1e-8  # of Newton's equations, over the gradient
_SHORTEST = 1e-6  # part of a Newton step


@dataclass(frozen=True)
class SoftSquares:
    """Where the minimization ended: the fit, its loss, and the class weights of its labels."""

    point: Array
    objective: float
    class_weights: Array
    n_iter: int
    outcome: Outcome
    n_passes: int = 1  # for the moments; once more all rows are read to be held


def minimize_soft_squares(problem: Problem, start: Array, limits: Limits) -> SoftSquares:
    """Newton's method from ``start``, until a round of labels and refit moves by ``tol`` at most.

    All unlabeled rows are held in memory.
    """
    rows, max_iter = hold_all(problem), problem.rounds(limits.max_iter)
    last = _evaluate(rows, start)
    n_iter, outcome = 0, None
    while outcome is None:
        if np.abs(last.gradient).max() <= max(limits.tol, _ROUNDING):
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


def _evaluate(rows: InMemorySet, point: Array) -> _State:
    shares = _nearest_shares(point @ rows.z.T)
    refitted = rows.labeled_point + (shares * rows.weights) @ rows.z
    gradient = point - refitted
    # Columns of (1, z) are orthonormal over all rows: sums over rows are sums over coefficients.
    labels = rows.labeled_point[:, 0].sum() + float(rows.weights @ (shares**2).sum(axis=0))
    value = float(np.vdot(point, gradient) - np.vdot(point, refitted) + labels) / 2
    return _State(point, value, gradient, shares > 0)


def _nearest_shares(predictions: Array) -> Array:
    """(K, n): the nearest columns that are nonnegative and add up to 1."""
    ordered = -np.sort(-predictions, axis=0)
    n_classes, n_rows = predictions.shape
    shifts = (np.cumsum(ordered, axis=0) - 1) / np.arange(1, n_classes + 1)[:, None]
    n_kept = (ordered > shifts).sum(axis=0)
    return np.asarray(np.maximum(predictions - shifts[n_kept - 1, np.arange(n_rows)], 0))


def _descend(rows: InMemorySet, last: _State) -> _State | None:
    """A Newton step, shorter if need be; None if no part of it lowers the loss."""
    shape, is_kept = last.point.shape, last.is_kept
    n_kept = is_kept.sum(axis=0)

    def product(flat: Array) -> Array:
        """The second derivative: labels follow predictions, but for those at 0 and their mean."""
        direction = flat.reshape(shape)
        moved = np.where(is_kept, direction @ rows.z.T, 0)
        moved = np.where(is_kept, moved - moved.sum(axis=0) / n_kept, 0)
        return np.asarray(direction - (moved * rows.weights) @ rows.z).ravel()

    hessian = LinearOperator((last.point.size, last.point.size), matvec=product, dtype=float)
    step = cg(hessian, last.gradient.ravel(), rtol=_ACCURACY)[0].reshape(shape)
    size = 1.0
    while size > _SHORTEST:
        found = _evaluate(rows, last.point - size * step)
        is_lower = found.value < last.value
        if is_lower or np.linalg.norm(found.gradient) < np.linalg.norm(last.gradient) / 2:
            return found
        size /= 2
    return None
