"""The moment-constrained maps: move the supervised fit so that its moments are those of all rows.

Also the fit that takes its covariance from all rows and its means from the labeled ones.

Labeled rows are mapped by x -> A (x - m_l) + m. The paper prints T_l^(1/2) where T_l^(-1/2) is
meant, and its mean formula has a sign slip; both are mended here.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..._messages import say
from .. import Array
from ..gaussian import Gaussians, gaussians
from ..moments import factor
from ..problem import WITHIN_TOLERANCE, Problem

_SMALLEST_SINGULAR_RATIO = 1e-12
VARIANTS = ("invariant", "symmetric", "means-shifted")


def match_moments(problem: Problem, variant: str) -> Gaussians:
    """Moment-constrained model of a problem."""
    whitening, labeled = problem.whitening, problem.likelihood
    weights = labeled.counts / labeled.weight
    within, rank = problem.labeled_covariance, problem.labeled_rank
    if rank < whitening.rank:
        raise ValueError(
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
    covariance = (1 - problem.shrinkage) * (A @ within @ A.T)
    means = shifted if variant == "means-shifted" else shifted @ A.T
    return gaussians(
        problem.frame,
        whitening,
        weights,
        means,
        covariance,
        problem.log_priors,
        floor=WITHIN_TOLERANCE,
    )


def normalize(problem: Problem) -> Gaussians:
    """Class means of the labeled rows, covariance of all rows: I in whitened coordinates."""
    frame, whitening, labeled = problem.frame, problem.whitening, problem.likelihood
    covariance = (1 - problem.shrinkage) * np.eye(whitening.rank)
    weights = labeled.counts / labeled.weight
    return gaussians(frame, whitening, weights, labeled.means, covariance, problem.log_priors)


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
        raise ValueError(
            f"The directions in which rows vary most and least differ by a factor of "
            f"{singular[0] / max(singular[-1], 1e-300):.1g} in the units of the features, too much "
            "for a map formed in these units: rescale the features, or use variant='invariant'."
        )
    return np.asarray(left @ right)
