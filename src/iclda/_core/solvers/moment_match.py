"""Fits whose mean and covariance are those of all rows.

``match_moments`` moves the supervised fit: labeled rows are mapped by
x -> A (x - m_l) + m. The paper prints T_l^(1/2) where T_l^(-1/2) is meant, and its
formula for the means has a wrong sign; both are corrected here.

``maximize_under_moments`` finds the highest labeled likelihood among all models with
the mean and covariance of all rows. In whitened coordinates these are the points (r, B)
with I - B D^-1 B' positive definite, whether a labeling attains them or not.

``normalize`` combines the covariance of all rows with the means of the labeled ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..._messages import FitError, say
from .. import Array
from ..gaussian import Gaussians, gaussians
from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..moments import factor
from ..problem import WITHIN_TOLERANCE, Problem
from . import Outcome, settings
from .trust_region import minimize

# Variants of the moment-constrained fit that are a formula.
CLOSED_FORMS = ("invariant", "symmetric", "means-shifted")
# A factor whose singular values have a smaller ratio than this has lost its digits.
_MIN_SINGULAR_RATIO = 1e-12


def match_moments(problem: Problem, variant: str) -> Gaussians:
    """Return the moment-constrained model of a problem."""
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
    """Return what moments are matched with: the supervised fit, and the map A.

    The supervised fit is its class weights, its class means about their mean, and its
    covariance.
    """
    whitening = problem.whitening
    labeled = problem.likelihood
    weights = labeled.counts / labeled.weight
    within = problem.labeled_covariance
    rank = problem.labeled_rank
    if rank < whitening.rank:
        sentence = (
            "The labeled rows are too few, or too alike within their classes, for "
            "these columns (they span {rank} of {n_dimensions} dimensions), and "
            "matching moments needs them all: label more rows, or pass {@shrinkage}, "
            "for example 0.1 or 'auto'."
        )
        raise FitError(say(sentence, rank=rank, n_dimensions=whitening.rank))
    mean = weights @ labeled.means
    shifted = labeled.means - mean
    total = within + (weights[:, None] * shifted).T @ shifted
    A = _inverse_root(total) if variant == "invariant" else _user_map(problem, total)
    return weights, shifted, within, A


def normalize(problem: Problem) -> Gaussians:
    """Return the class means of the labeled rows with the covariance of all rows.

    That covariance is I in whitened coordinates.
    """
    labeled = problem.likelihood
    whitening = problem.whitening
    weights = labeled.counts / labeled.weight
    covariance = (1 - problem.shrinkage) * np.eye(whitening.rank)
    return gaussians(
        problem.frame, whitening, weights, labeled.means, covariance, problem.log_priors
    )


def _inverse_root(total: Array) -> Array:
    """Return T_l^(-1/2), which is the invariant map in whitened coordinates."""
    eigenvalues, vectors = scipy.linalg.eigh(total)
    root: Array = (vectors / np.sqrt(eigenvalues)) @ vectors.T
    return root


def _user_map(problem: Problem, total: Array) -> Array:
    """Return T^(1/2) T_l^(-1/2) of the user's units, in whitened coordinates.

    With T = U U' and T_l = H H', where H = U L and L L' is T_l in whitened coordinates,
    the roots are U Q' and H P' for the orthogonal factors Q of U and P of H. In
    whitened coordinates their product is Q'P L^(-1).
    """
    scale = problem.frame.scale
    # One common factor changes nothing, and keeps squares from overflowing.
    half = problem.whitening.inverse * (scale / scale.max())[:, None]
    cholesky = factor(total, 0.0)
    # The labeled rows vary in all directions.
    assert cholesky is not None
    labeled_half = half @ cholesky.lower
    rotation = _orthogonal_factor(half).T @ _orthogonal_factor(labeled_half)
    A: Array = rotation @ cholesky.inverse
    return A


def _orthogonal_factor(half: Array) -> Array:
    """Return Q in half = (half half')^(1/2) Q, by the singular vectors of half."""
    left, singular, right = np.linalg.svd(half, full_matrices=False)
    if singular.size and singular[-1] < _MIN_SINGULAR_RATIO * singular[0]:
        ratio = singular[0] / max(singular[-1], 1e-300)
        raise FitError(
            "The directions in which rows vary most and least differ by a factor of "
            f"{ratio:.1g} in the units of the features, too much for a map formed in "
            "these units: rescale the features, or use variant='invariant'."
        )
    return np.asarray(left @ right)


def maximize_under_moments(problem: Problem) -> tuple[Gaussians, Outcome]:
    """Return the best of the maxima that a few starts lead to, and how it was reached.

    The starts are the invariant moment-constrained fit, and the same with its means
    closer together. Shrinkage applies to the labeled covariance and to that of all
    rows.
    """
    max_unknowns = settings.MOMENT_MATCH.max_unknowns
    n_unknowns = problem.labeled_point[:-1].size
    if n_unknowns > max_unknowns:
        # Four dense matrices at once, of 8 bytes a number.
        n_gib = 4 * 8 * n_unknowns**2 / 2**30
        raise FitError(
            "The fit of highest likelihood has (classes - 1) x (features + 1) = "
            f"{n_unknowns:,} unknowns, whose dense systems would take {n_gib:.3g} GiB; "
            f"at most {max_unknowns:,} are solved. Use the variant 'invariant', or "
            "fewer features (sklearn.decomposition.PCA) or classes."
        )
    weights, shifted, within, A = supervised_moments(problem)
    scatter = problem.likelihood.weight * within
    likelihood = replace(problem.likelihood, within=scatter, shrinkage=0.0)
    ascents = []
    for scale in settings.MOMENT_MATCH.start_mean_scales:
        class_sums = scale * weights[:, None] * (shifted @ A.T)
        start = np.column_stack([weights, class_sums])
        ascents.append(_ascend(likelihood, start))
    best = max(ascents, key=lambda ascent: ascent.value)
    outcome = Outcome.CONVERGED if best.is_maximum else Outcome.STALLED
    return problem.model_of(best.point), outcome


class _Ascent(NamedTuple):
    """The end of an ascent.

    Attributes
    ----------
    point : (K, 1 + rank) the end
    value : the likelihood there, per unit of labeled weight
    is_maximum : whether no further ascent is predicted
    """

    point: Array
    value: float
    is_maximum: bool


def _ascend(likelihood: LabeledLikelihood, start: Array) -> _Ascent:
    """Maximize the likelihood by Newton's method in a trust region."""
    chosen = settings.MOMENT_MATCH
    loss = _Loss(likelihood, start.shape)
    end = minimize(
        loss.value_and_gradient,
        loss.hessian,
        start[:-1].ravel(),
        gradient_left=chosen.gradient_left,
        max_steps=chosen.max_steps,
        first_radius=chosen.first_trust_radius,
    )
    # The ascent that a Newton step predicts. It is negative only where the loss is not
    # convex: such a point is not a maximum of the likelihood.
    newton_step = np.linalg.lstsq(end.hessian, end.gradient)[0]
    ascent_left = end.gradient @ newton_step / 2
    is_maximum = bool(0 <= ascent_left <= chosen.max_ascent_left)
    return _Ascent(loss.point_of(end.unknowns), -end.value, is_maximum)


class _Loss:
    """Minus the likelihood per unit of labeled weight.

    The unknowns are the weights and sums of all classes but the last, as a vector.
    """

    def __init__(self, likelihood: LabeledLikelihood, shape: tuple[int, ...]) -> None:
        self._likelihood = likelihood
        self._shape = shape

    def point_of(self, unknowns: Array) -> Array:
        point = np.empty(self._shape)
        point[:-1] = unknowns.reshape(point[:-1].shape)
        # Class weights add up to 1, class sums to 0.
        point[-1] = -point[:-1].sum(axis=0)
        point[-1, 0] += 1
        return point

    def value_and_gradient(self, unknowns: Array) -> tuple[float, Array]:
        point = self.point_of(unknowns)
        if not smallest_eigenvalue(point) > FLOOR:
            # An infinite loss: the step is not taken.
            return np.inf, np.zeros(len(unknowns))
        value, gradient = self._likelihood.value_and_gradient(point)
        # The last class moves against the others.
        free_gradient = (gradient[:-1] - gradient[-1]).ravel()
        weight = self._likelihood.weight
        return -float(value) / weight, -free_gradient / weight

    def hessian(self, unknowns: Array) -> Array:
        point = self.point_of(unknowns)
        if not smallest_eigenvalue(point) > FLOOR:
            # Only at the start: no step leads to a point of infinite loss.
            return np.eye(len(unknowns))
        return -self._likelihood.hessian(point) / self._likelihood.weight
