"""The moment-constrained maps: move the supervised fit so that its moments are those of all rows.

Labeled rows are mapped by x -> A (x - m_l) + m. The paper prints T_l^(1/2) where T_l^(-1/2) is
meant, and its mean formula has a sign slip; both are mended here.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .gaussian import Gaussians, gaussians
from .problem import WITHIN_TOLERANCE, Problem, within_rank
from .types import Array

_SMALLEST_RATIO = 1e-12
VARIANTS = ("invariant", "symmetric", "means-shifted")


def match_moments(problem: Problem, variant: str) -> Gaussians:
    """Moment-constrained model of a problem."""
    whitening, labeled = problem.whitening, problem.likelihood
    weights = labeled.counts / labeled.weight
    within = labeled.within / labeled.weight + problem.whitened_ridge
    rank = within_rank(within)
    if rank < whitening.rank:
        raise ValueError(
            f"The labeled rows vary within their classes in {rank} of the {whitening.rank} "
            "directions in which all rows vary, and matching moments needs them all: label more "
            "rows, or pass shrinkage, for example 0.1 or 'auto'."
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


def _inverse_root(total: Array) -> Array:
    """T_l^(-1/2): in whitened coordinates, where T = I, this is the invariant map itself."""
    eigenvalues, vectors = scipy.linalg.eigh(total)
    root: Array = (vectors / np.sqrt(eigenvalues)) @ vectors.T
    return root


def _user_map(problem: Problem, total: Array) -> Array:
    """T^(1/2) T_l^(-1/2) formed in the user's units, expressed in whitened coordinates."""
    whitening, scale = problem.whitening, problem.frame.scale
    # One common factor changes nothing and keeps squares from overflowing.
    units = whitening.inverse * (scale / scale.max())[:, None]
    half_labeled = units @ scipy.linalg.cholesky(total, lower=True)
    root = _symmetric_root(units)
    inverse_root = _symmetric_root(half_labeled, inverse=True)
    to_whitened = whitening.transform / (scale / scale.max())
    A: Array = to_whitened @ root @ inverse_root @ units
    return A


def _symmetric_root(half: Array, *, inverse: bool = False) -> Array:
    """(half half')^(1/2) or its pseudo-inverse, by the singular values of half."""
    left, singular, _ = scipy.linalg.svd(half, full_matrices=False)
    if singular.size and singular[-1] < _SMALLEST_RATIO * singular[0]:
        raise ValueError(
            f"The directions in which rows vary most and least differ by a factor of "
            f"{singular[0] / max(singular[-1], 1e-300):.1g} in the units of the features, too much "
            "for a map formed in these units: rescale the features "
            "(sklearn.preprocessing.StandardScaler), or use variant='invariant'."
        )
    powers = 1 / singular if inverse else singular
    root: Array = (left * powers) @ left.T
    return root
