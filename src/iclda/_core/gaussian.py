"""Gaussian classes with one covariance: parameters, linear scores and densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from . import AnyArray, Array
from .frame import Frame
from .labelsums import LinearRule
from .likelihood import FLOOR
from .moments import Whitening, factor

LOG_2PI = float(np.log(2 * np.pi))
_LARGEST_DISTANCE = 1e150  # from zero, in standard deviations


@dataclass(frozen=True)
class Complement:
    """Directions in which no row of the fit varied; shrinkage gives all of them one variance.

    They are those orthogonal to the basis, for rows (x - origin) / units in the user's units.
    """

    origin: Array  # (d,)
    units: Array  # (d,)
    basis: Array  # (d, m)
    variance: float

    @property
    def size(self) -> int:
        return int(self.basis.shape[0] - self.basis.shape[1])

    def outside(self, rows: AnyArray) -> Array:
        """Components of rows in these directions, in units of the features."""
        centered = (rows - self.origin) / self.units
        return np.asarray(centered - (centered @ self.basis) @ self.basis.T)


@dataclass(frozen=True)
class Gaussians:
    """A fitted model. Standardized rows s = projection (u - center) have unit covariance."""

    frame: Frame
    center: Array  # (d,) frame coordinates
    class_weights: Array  # (K,)
    log_priors: Array  # (K,)
    means: Array  # (K, d) frame coordinates
    covariance: (
        Array | None
    )  # (d, d) frame coordinates; None for few rows of many features
    projection: Array  # (rank, d)
    class_points: Array  # (K, rank): the means in standardized coordinates
    log_det: float  # of the covariance in the user's units
    is_floored: bool
    half: Array | None = (
        None  # (d, m), in place of the covariance: half half', and the complement
    )
    complement: Complement | None = None

    @property
    def rank(self) -> int:
        return len(self.projection) + (self.complement.size if self.complement else 0)

    def full_covariance(self) -> Array:
        """Return the covariance (d, d) in frame coordinates."""
        if self.covariance is not None:
            return self.covariance
        assert self.half is not None
        covariance = self.half @ self.half.T
        if self.complement is not None:
            units, basis = (
                self.complement.units / self.frame.scale,
                self.complement.basis,
            )
            rest = -self.complement.variance * (basis @ basis.T)
            rest[np.diag_indices(len(rest))] += self.complement.variance
            covariance += rest * units[:, None] * units
        return covariance

    @property
    def variances(self) -> Array:
        """(d,): the diagonal of the covariance."""
        if self.covariance is not None:
            return np.diag(self.covariance)
        assert self.half is not None
        variances = (self.half**2).sum(axis=1)
        if self.complement is not None:
            units, basis = (
                self.complement.units / self.frame.scale,
                self.complement.basis,
            )
            variances += (
                self.complement.variance * (1 - (basis**2).sum(axis=1)) * units**2
            )
        return np.asarray(variances)

    def score_rule(self, *, is_soft: bool = True) -> LinearRule:
        """Scores log prior + mu' Sigma^-1 u - mu' Sigma^-1 mu / 2 of rows u in the frame."""
        coef = self.projection.T @ self.class_points.T
        intercept = self.log_priors - (self.class_points**2).sum(axis=1) / 2
        return LinearRule(coef, intercept - self.center @ coef, is_soft)

    @property
    def linear_scores(self) -> tuple[Array, Array]:
        """Coefficients (K, d) and intercepts (K,) in the user's units: Sigma^-1 mu_k, as is usual.

        They differ from the scores of ``score_rule`` by a term common to all classes. Those of
        ``score_rule``, which are about the center, are returned where zero is too far away to
        square the distance.
        """
        zero = -self.frame.origin / self.frame.scale
        from_zero = self.class_points + (self.center - zero) @ self.projection.T
        if not np.abs(from_zero).max(initial=0.0) < _LARGEST_DISTANCE:
            rule = self.score_rule().folded(self.frame)
            return rule.coef.T.copy(), rule.intercept
        coef = from_zero @ self.projection / self.frame.scale
        intercept = self.log_priors - (from_zero**2).sum(axis=1) / 2
        if (rest := self.complement) is not None:  # zero may lie outside the basis
            offset = rest.outside(np.zeros((1, len(zero))))[0]
            coef = coef - offset / (rest.units * rest.variance)
            intercept = intercept - offset @ offset / (2 * rest.variance)
        return coef, intercept

    def log_joint(self, rows: AnyArray) -> Array:
        """(n, K): log of prior times density of every row in every class."""
        s = (self.frame.apply(rows) - self.center) @ self.projection.T
        scores = s @ self.class_points.T - (self.class_points**2).sum(axis=1) / 2
        constant = -(self.rank * LOG_2PI + self.log_det) / 2
        scores += self.log_priors + constant
        with np.errstate(over="ignore"):  # so far away the density is zero
            distances = (s**2).sum(axis=1)
        if (rest := self.complement) is not None:
            distances = (
                distances + (rest.outside(rows) ** 2).sum(axis=1) / rest.variance
            )
        return np.asarray(scores - distances[:, None] / 2)

    def discriminants(self, n_components: int) -> Array:
        """(d, n_components): directions that separate the class means best, within unit spread."""
        # At the floor all directions separate equally well under the class weights: order them
        # by the plain spread of the means instead.
        weights = self.class_weights
        if self.is_floored:
            weights = np.full(len(weights), 1 / len(weights))
        between = np.sqrt(weights)[:, None] * (
            self.class_points - weights @ self.class_points
        )
        axes = np.zeros((n_components, len(self.projection)))
        found = scipy.linalg.svd(between, full_matrices=False)[2][:n_components]
        # The sign of a singular vector is arbitrary: let the class furthest from the first one
        # lie on the positive side.
        ahead = (self.class_points - self.class_points[0]) @ found.T
        furthest = ahead[np.abs(ahead).argmax(axis=0), np.arange(len(found))]
        axes[: len(found)] = found * np.where(furthest < 0, -1.0, 1.0)[:, None]
        return self.projection.T @ axes.T


def gaussians(
    frame: Frame,
    whitening: Whitening,
    class_weights: Array,
    means: Array,
    covariance: Array,
    log_priors: Array | None,
    floor: float = FLOOR,
) -> Gaussians:
    """Model from class weights, means (K, rank) and covariance in whitened coordinates."""
    root, inverse_root, is_floored = _floored_root(covariance, floor)
    projection = inverse_root @ whitening.transform
    class_points = means @ inverse_root.T
    half = whitening.inverse @ root
    return Gaussians(
        frame=frame,
        center=whitening.mean,
        class_weights=class_weights,
        log_priors=np.log(class_weights) if log_priors is None else log_priors,
        means=means @ whitening.inverse.T + whitening.mean,
        covariance=half @ half.T,
        projection=projection,
        class_points=class_points,
        log_det=whitening.log_det + 2 * float(np.log(np.diag(root)).sum()),
        is_floored=is_floored,
    )


def _floored_root(covariance: Array, floor: float) -> tuple[Array, Array, bool]:
    """Lower triangular root of a covariance whose eigenvalues are kept at or above the floor.

    Also its inverse, and whether the floor was needed.
    """
    covariance = (covariance + covariance.T) / 2
    found = factor(covariance, floor)
    if found is not None:
        return found.lower, found.inverse, False
    eigenvalues, vectors = scipy.linalg.eigh(covariance)
    half = vectors * np.sqrt(np.maximum(eigenvalues, floor))
    root = scipy.linalg.qr(half.T, mode="r")[0].T
    root = root * np.where(np.diag(root) < 0, -1.0, 1.0)
    inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    return root, np.asarray(inverse), bool(eigenvalues[0] <= floor)
