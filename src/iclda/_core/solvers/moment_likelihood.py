"""Maximize the labeled likelihood over all models whose overall moments are those of all rows.

In whitened coordinates these models are the points (r, B) with I - B D^-1 B' positive definite,
whether some labeling attains them or not: no row is read beyond the moments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.optimize

from ..gaussian import Gaussians
from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..problem import Problem
from ..types import Array
from . import Outcome
from .moment_match import supervised_moments

_FLAT = 1e-9  # gradient, per unit of labeled weight, that is aimed at
_SMALL_ASCENT = 1e-10  # per unit of labeled weight, that Newton's method predicts at a maximum
_MOST_STEPS = 500
_TINY = 1e-12  # step that changes nothing
_MOST_UNKNOWNS = 2_500  # some minutes
_SCALES = (1.0, 0.1)  # of the distances between class means, to start from


def maximize_under_moments(problem: Problem) -> tuple[Gaussians, Outcome]:
    """The best of the maxima that a few starts lead to.

    They begin at the invariant moment-constrained fit, and at the same with its means closer. With
    shrinkage, the labeled covariance and that of all rows are shrunk alike.
    """
    n_unknowns = problem.labeled_point[:-1].size
    if n_unknowns > _MOST_UNKNOWNS:
        raise ValueError(
            f"The fit of highest likelihood has (classes - 1) x (features + 1) = {n_unknowns:,} "
            f"unknowns, whose dense systems would take {4 * 8 * n_unknowns**2 / 2**30:.3g} GiB; at "
            f"most {_MOST_UNKNOWNS:,} are solved. Use the variant 'invariant', or fewer features "
            "(sklearn.decomposition.PCA) or classes."
        )
    weights, shifted, within, A = supervised_moments(problem)
    scatter = problem.likelihood.weight * within
    likelihood = replace(problem.likelihood, within=scatter, shrinkage=0.0)
    found = [
        _ascend(likelihood, np.column_stack([weights, scale * weights[:, None] * (shifted @ A.T)]))
        for scale in _SCALES
    ]
    point, _, is_maximum = max(found, key=lambda each: each[1])
    outcome = Outcome.CONVERGED if is_maximum else Outcome.STALLED
    return problem.model_of(point), outcome


def _ascend(likelihood: LabeledLikelihood, start: Array) -> tuple[Array, float, bool]:
    """Newton's method in a trust region: the point, its value, and whether it is a maximum."""
    weight, shape = likelihood.weight, start.shape
    tried = last = start[:-1].ravel()

    def point_of(free: Array) -> Array:
        point = np.empty(shape)
        point[:-1] = free.reshape(point[:-1].shape)
        point[-1] = -point[:-1].sum(axis=0)  # class weights add up to 1, class sums to 0
        point[-1, 0] += 1
        return point

    def loss(free: Array) -> tuple[float, Array]:
        nonlocal tried
        tried, point = free.copy(), point_of(free)
        if not smallest_eigenvalue(point) > FLOOR:  # a step that is not taken
            return np.inf, np.zeros(len(free))
        value, gradient = likelihood.value_and_gradient(point)
        return -float(value) / weight, -(gradient[:-1] - gradient[-1]).ravel() / weight

    def hessian(free: Array) -> Array:
        point = point_of(free)
        if not smallest_eigenvalue(point) > FLOOR:
            return np.eye(len(free))
        return -likelihood.hessian(point) / weight

    def watch(free: Array) -> None:
        """Stop before the region is so small that SciPy looks for a step in it for ever."""
        nonlocal last
        if np.abs(tried - last).max() <= _TINY:
            raise StopIteration
        last = free.copy()

    found = scipy.optimize.minimize(
        loss,
        start[:-1].ravel(),
        jac=True,
        hess=hessian,
        method="trust-exact",
        callback=watch,
        options={"gtol": _FLAT, "maxiter": _MOST_STEPS, "initial_trust_radius": 0.1},
    )
    ascent = found.jac @ np.linalg.lstsq(found.hess, found.jac)[0] / 2
    return point_of(found.x), -float(found.fun), bool(0 <= ascent <= _SMALL_ASCENT)
