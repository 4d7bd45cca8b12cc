"""The moment-constrained maps: move the supervised fit so that its moments are those of all rows.

Also the fit that takes its covariance from all rows and its means from the labeled ones, and the
fit of highest labeled likelihood among all models whose moments are those of all rows: in whitened
coordinates the points (r, B) with I - B D^-1 B' positive definite, attained by a labeling or not.

Labeled rows are mapped by x -> A (x - m_l) + m. The paper prints T_l^(1/2) where T_l^(-1/2) is
meant, and its mean formula has a sign slip; both are mended here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.optimize

from ..._messages import FitError, say
from .. import Array
from ..gaussian import Gaussians, gaussians
from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..moments import factor
from ..problem import WITHIN_TOLERANCE, Problem
from . import Outcome

_SMALLEST_SINGULAR_RATIO = 1e-12
CLOSED_FORMS = ("invariant", "symmetric", "means-shifted")  # variants
_GRADIENT_TOLERANCE = 1e-9  # gradient, per unit of labeled weight, that is aimed at
_SMALL_ASCENT = (
    1e-10  # per unit of labeled weight, that Newton's method predicts at a maximum
)
_MOST_STEPS = 500
_TINY_STEP = 1e-12  # step that changes nothing
_MOST_UNKNOWNS = 2_500  # some minutes
_MEAN_SCALES = (1.0, 0.1)  # of the distances between class means, to start from


def match_moments(problem: Problem, variant: str) -> Gaussians:
    """Moment-constrained model of a problem."""
    weights, shifted, within, A = supervised_moments(problem, variant)
    covariance = (1 - problem.shrinkage) * (A @ within @ A.T)
    means = shifted if variant == "means-shifted" else shifted @ A.T
    return gaussians(
        problem.frame,
        problem.whitening,
        weights,
        means,
        covariance,
        problem.log_priors,
        floor=WITHIN_TOLERANCE,
    )


def supervised_moments(
    problem: Problem, variant: str = "invariant"
) -> tuple[Array, Array, Array, Array]:
    """Class weights, means about their mean and covariance of the labeled rows, and the map A."""
    whitening, labeled = problem.whitening, problem.likelihood
    weights = labeled.counts / labeled.weight
    within, rank = problem.labeled_covariance, problem.labeled_rank
    if rank < whitening.rank:
        raise FitError(
            say(
                "The labeled rows are too few, or too alike within their classes, for these "
                "columns (they span {rank} of {n_dimensions} dimensions), and matching moments "
                "needs them all: label more rows, or pass {@shrinkage}, for example 0.1 or 'auto'.",
                rank=rank,
                n_dimensions=whitening.rank,
            )
        )
    mean = weights @ labeled.means
    shifted = labeled.means - mean
    total = within + (weights[:, None] * shifted).T @ shifted
    A = _inverse_root(total) if variant == "invariant" else _user_map(problem, total)
    return weights, shifted, within, A


def normalize(problem: Problem) -> Gaussians:
    """Class means of the labeled rows, covariance of all rows: I in whitened coordinates."""
    frame, whitening, labeled = problem.frame, problem.whitening, problem.likelihood
    covariance = (1 - problem.shrinkage) * np.eye(whitening.rank)
    weights = labeled.counts / labeled.weight
    return gaussians(
        frame, whitening, weights, labeled.means, covariance, problem.log_priors
    )


def _inverse_root(total: Array) -> Array:
    """T_l^(-1/2): in whitened coordinates, where T = I, this is the invariant map itself."""
    eigenvalues, vectors = scipy.linalg.eigh(total)
    root: Array = (vectors / np.sqrt(eigenvalues)) @ vectors.T
    return root


def _user_map(problem: Problem, total: Array) -> Array:
    """T^(1/2) T_l^(-1/2) formed in the user's units, expressed in whitened coordinates.

    With T = U U' and T_l = H H', where H = U L and L L' is T_l in whitened coordinates, the roots
    are U Q' and H P' for the orthogonal factors Q of U and P of H: what is left is Q'P L^(-1).
    """
    scale = problem.frame.scale
    # One common factor changes nothing and keeps squares from overflowing.
    units = problem.whitening.inverse * (scale / scale.max())[:, None]
    found = factor(total, 0.0)
    assert found is not None  # the labeled rows vary in all directions
    turn = _orthogonal_factor(units).T @ _orthogonal_factor(units @ found.lower)
    A: Array = turn @ found.inverse
    return A


def _orthogonal_factor(half: Array) -> Array:
    """Q in half = (half half')^(1/2) Q, by the singular vectors of half."""
    left, singular, right = np.linalg.svd(half, full_matrices=False)
    if singular.size and singular[-1] < _SMALLEST_SINGULAR_RATIO * singular[0]:
        raise FitError(
            f"The directions in which rows vary most and least differ by a factor of "
            f"{singular[0] / max(singular[-1], 1e-300):.1g} in the units of the features, too much "
            "for a map formed in these units: rescale the features, or use variant='invariant'."
        )
    return np.asarray(left @ right)


def maximize_under_moments(problem: Problem) -> tuple[Gaussians, Outcome]:
    """The best of the maxima that a few starts lead to.

    They begin at the invariant moment-constrained fit, and at the same with its means closer. With
    shrinkage, the labeled covariance and that of all rows are shrunk alike.
    """
    n_unknowns = problem.labeled_point[:-1].size
    if n_unknowns > _MOST_UNKNOWNS:
        raise FitError(
            f"The fit of highest likelihood has (classes - 1) x (features + 1) = {n_unknowns:,} "
            f"unknowns, whose dense systems would take {4 * 8 * n_unknowns**2 / 2**30:.3g} GiB; at "
            f"most {_MOST_UNKNOWNS:,} are solved. Use the variant 'invariant', or fewer features "
            "(sklearn.decomposition.PCA) or classes."
        )
    weights, shifted, within, A = supervised_moments(problem)
    scatter = problem.likelihood.weight * within
    likelihood = replace(problem.likelihood, within=scatter, shrinkage=0.0)
    found = [
        _ascend(
            likelihood,
            np.column_stack([weights, scale * weights[:, None] * (shifted @ A.T)]),
        )
        for scale in _MEAN_SCALES
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
        point[-1] = -point[:-1].sum(
            axis=0
        )  # class weights add up to 1, class sums to 0
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
        if np.abs(tried - last).max() <= _TINY_STEP:
            raise StopIteration
        last = free.copy()

    found = scipy.optimize.minimize(
        loss,
        start[:-1].ravel(),
        jac=True,
        hess=hessian,
        method="trust-exact",
        callback=watch,
        options={
            "gtol": _GRADIENT_TOLERANCE,
            "maxiter": _MOST_STEPS,
            "initial_trust_radius": 0.1,
        },
    )
    ascent = found.jac @ np.linalg.lstsq(found.hess, found.jac)[0] / 2
    return point_of(found.x), -float(found.fun), bool(0 <= ascent <= _SMALL_ASCENT)
