"""Least gain over the supervised fit, as a function of the point (r, B).

For labels q of the unlabeled rows that give the point p, the fit to all rows has the highest
likelihood of all models, and gains

    h(p) = sum_k r_k log r_k - log|M| / (2 (1 - s)) - (supervised scores)' p + constant

on the supervised model, per row: the likelihood of any one model is linear in p, in these
coordinates. h is a maximum of linear functions, hence convex; its minimum over the attainable set
is the largest gain that a model has whatever the labels are. With shrinkage s both likelihoods are
less the penalty N0/2 (log|Sigma| + nu tr Sigma^-1), N0 = N s / (1 - s). Derivation: docs/safety.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .gaussian import Gaussians
from .likelihood import (
    FLOOR,
    TallInverse,
    cheaper_product,
    core_inverse_and_log_det,
    hessian_of,
    is_above_floor,
    smallest_eigenvalue,
)
from .problem import Problem
from .types import Array


@dataclass(frozen=True)
class Contrast:
    """-h per row, which is concave, with its derivatives."""

    scores: Array  # (K, 1 + rank): linear scores of the supervised model
    constant: float
    log_priors: Array | None  # (K,) when fixed by the user
    shrinkage: float
    weight: float = 1.0  # the unit of gaps: the contrast is per row

    def is_bounded(self, point: Array) -> bool:
        """Whether the covariance at a point is above its floor."""
        return is_above_floor(point)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """-h, minus infinity at the floor, and its gradient, up to a shift common to all classes.

        The gradient is the lead of the supervised scores over those of the model at the point.
        """
        if not smallest_eigenvalue(point) > FLOOR:
            return -np.inf, np.zeros_like(point)
        r, b, keep = point[:, 0], point[:, 1:], 1 - self.shrinkage
        inverse, log_det = core_inverse_and_log_det(point)
        precise = inverse @ b
        log_r = np.log(r)
        log_priors = log_r if self.log_priors is None else self.log_priors
        value = (log_det - log_r.sum()) / (2 * keep) - r @ log_priors
        gradient = self.scores.copy()
        gradient[:, 0] -= log_priors - (inverse.diagonal() - 1 / r) / (2 * keep)
        gradient[:, 1:] -= precise / keep
        return float(value + np.vdot(self.scores, point) + self.constant), gradient

    def hessian(self, point: Array) -> Array:
        """Second derivative with respect to all classes but the last, whose row balances them."""
        return hessian_of(self.hessian_product(point), point.shape)

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        """Maps directions (..., K, 1 + rank), whose classes balance, to changes of the gradient."""
        r, b, keep = point[:, 0], point[:, 1:], 1 - self.shrinkage
        inverse, _ = core_inverse_and_log_det(point)
        precise = inverse @ b
        by_squares: Callable[[Array], Array]
        if isinstance(inverse, TallInverse):
            by_squares = inverse.squares_product
        else:
            by_squares = partial(_times, inverse**2)

        def change(direction: Array) -> Array:
            dr, db = direction[..., 0], direction[..., 1:]
            # The core matrix changes by diag(dr) - db b' - b db': never formed, nor multiplied.
            ahead = inverse @ db
            turned = inverse @ (dr[..., None] * precise) - cheaper_product(ahead, b.T, precise)
            turned -= precise @ (np.swapaxes(db, -1, -2) @ precise)
            found = np.empty(direction.shape)
            found[..., 1:] = (turned - ahead) / keep
            bent = by_squares(dr) - 2 * (ahead * precise).sum(axis=-1)
            found[..., 0] = (dr / r**2 - bent) / (2 * keep)
            if self.log_priors is None:
                found[..., 0] -= dr / r
            return found

        return change


def _times(matrix: Array, rows: Array) -> Array:
    return np.asarray(rows @ matrix)


def contrast_with(problem: Problem, reference: Gaussians) -> Contrast:
    """The contrast of a problem with its supervised model."""
    whitening, keep, rank = problem.whitening, 1 - problem.shrinkage, problem.whitening.rank
    scores = problem.scores_of(reference.score_rule())
    # A row z in whitened coordinates is half @ z + shift, standardized by the reference.
    half = reference.projection @ whitening.inverse
    shift = reference.projection @ (whitening.mean - reference.center)
    spread = float(np.vdot(half, half) + shift @ shift)
    log_det = reference.log_det - whitening.log_det
    constant = (rank + rank * np.log(keep) - log_det) / (2 * keep) - spread / 2
    return Contrast(scores, float(constant), problem.log_priors, problem.shrinkage)
