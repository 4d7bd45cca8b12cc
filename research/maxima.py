"""Local maxima of the labeled likelihood over all labelings of the unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from iclda._core import Array
from iclda._core.solvers.alternate import start_scores
from iclda._core.solvers.attainable import gap
from iclda._core.solvers.continuation import Effort, Follower
from iclda._core.solvers.held import hold_all
from iclda.studies.engine import rng_of
from iclda.studies.paper.fits import CellRows

# Shares 0, 1/3, 2/3 and 1 of every unlabeled row are starts of ``prove_maxima``.
_N_START_SHARES = 4
# Step of the finite differences of slopes.
_SHARE_STEP = 1e-5
_MAX_GAP_OF_A_MAXIMUM = 1e-6
# Paths of ``find_maxima`` begin at this tau, over the spread of the gradient. It is
# lower than that of the search, so that a path leads to a maximum near its start.
_FIRST_TAU = 0.01
_MIN_SPREAD_PER_ROW = 1e-3
_TOL_PER_ROW = 1e-6
_MAX_ITER = 200
# Scores of the supervised fit are cut off here.
_MIN_SCORE = -1e6


def objective_of(rows: CellRows, shares: Array) -> tuple[Array, Array, Array]:
    """Return the objective of labelings, its derivatives by their shares, and the gaps.

    ``shares`` (S, n) has the shares of n unlabeled rows in class 1, of two classes.
    """
    problem = rows.problem
    held = hold_all(problem)
    second = problem.labeled_point[1] + (shares * held.weights) @ held.z
    total = problem.labeled_point.sum(axis=0) + held.weights @ held.z
    points = np.stack([total - second, second], axis=1)
    values, gradients = problem.likelihood.value_and_gradient(points)
    slopes = (gradients[:, 1] - gradients[:, 0]) @ held.z.T * held.weights
    gaps = [
        gap(held, point, gradient)
        for point, gradient in zip(points, gradients, strict=True)
    ]
    return values, slopes, np.array(gaps)


def prove_maxima(rows: CellRows) -> list[dict[str, Any]]:
    """List the local maxima over all labelings of few unlabeled rows.

    Every maximum has the numbers that prove it. A hard share belongs to a strict
    maximum if its slope leads out of [0, 1], a single soft share if its slope is 0 and
    the curvature (``bend``) is negative.
    """

    def negative_objective(shares: Array) -> tuple[float, Array]:
        values, slopes, _ = objective_of(rows, shares[None])
        return -float(values[0]), -slopes[0]

    maxima: list[dict[str, Any]] = []
    n_unlabeled = len(rows.X_unlabeled)
    for corner in np.ndindex(*[_N_START_SHARES] * n_unlabeled):
        start = np.array(corner) / (_N_START_SHARES - 1)
        shares = minimize(
            negative_objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * n_unlabeled,
            options={"gtol": 1e-10, "ftol": 1e-16},
        ).x
        [value], [slopes], [remaining_gap] = objective_of(rows, shares[None])
        neighbors = shares + _SHARE_STEP * np.array([[1.0], [-1.0]])
        slopes_ahead, slopes_behind = objective_of(rows, neighbors)[1]
        curvature = (slopes_ahead - slopes_behind) / (2 * _SHARE_STEP)
        is_soft = (shares > 0) & (shares < 1)
        bend = np.where(is_soft, curvature, 0.0)
        maximum = {
            "value": _rounded(value),
            "shares": _rounded(shares),
            "gap": _rounded(remaining_gap),
            "slopes": _rounded(slopes),
            "bend": _rounded(bend),
        }
        is_new = maximum["shares"] not in [known["shares"] for known in maxima]
        is_maximum = remaining_gap < _MAX_GAP_OF_A_MAXIMUM and (bend <= 0).all()
        if is_maximum and is_new:
            maxima.append(maximum)
    return maxima


def _rounded(number: Any) -> Any:
    return np.asarray(number).round(6).tolist()


def find_maxima(rows: CellRows, n_starts: int) -> list[tuple[float, Any]]:
    """Follow paths from many starts; return where those that reach a maximum end.

    An end is the objective per labeled row, and the model. The first start is the
    supervised fit, the others are random hyperplanes of random sharpness.
    """
    problem = rows.problem
    held = hold_all(problem)
    likelihood = problem.likelihood
    shape = problem.labeled_point.shape
    follower = Follower(likelihood, held)
    spread = held.spread(follower.state(np.zeros(shape), 1.0).gradient)
    tau = _FIRST_TAU * max(spread, _MIN_SPREAD_PER_ROW * likelihood.weight)
    effort = Effort(tol=_TOL_PER_ROW * likelihood.weight, max_iter=_MAX_ITER)

    starts = [np.maximum(start_scores(problem), _MIN_SCORE)]
    rng = rng_of(rows.seed, "starts")
    for _ in range(n_starts):
        sharpness = np.exp(rng.uniform(-1, 3))
        starts.append(sharpness * rng.standard_normal(shape))

    ends = []
    for scores in starts:
        path = None
        state = follower.state(scores, tau)
        if likelihood.is_bounded(state.point):
            path = follower.follow(state, effort)
        if path is not None and path.is_bounded and path.gap <= effort.tol:
            rule = problem.rule_of(path.state.labeling.scores, is_soft=True)
            model = problem.model_of(path.state.point, rule)
            ends.append((path.state.value / likelihood.weight, model))
        elif not ends:
            # The supervised start leads to no maximum that others can be compared with.
            break
    return ends
