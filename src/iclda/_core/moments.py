"""Weight, mean and scatter of rows, and coordinates in which their covariance is the identity.

Moments are additive: any split of the rows gives the same. Whitened coordinates of a row u in the
frame are z = transform (u - mean).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from . import Array
from .frame import Frame

# Squared mean over variance, of any feature, up to which sums from zero keep their digits: tried
# where the first rows lie well within it.
_FAR_FROM_ZERO, _NEAR_ZERO = 100.0, 10.0
# Directions of the correlation matrix below this share of its largest eigenvalue are rounding.
RANK_TOLERANCE = 1e-12
_SAFE_EIGENVALUE = 1e-9  # share of the largest possible one: above it no rank is lost


@dataclass(frozen=True)
class Moments:
    """Total weight, mean and scatter (sum of squares about the mean) in frame coordinates."""

    weight: float
    mean: Array
    scatter: Array

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift = other.mean - self.mean
        share = other.weight / weight  # first: products of weights may overflow
        mean = self.mean + shift * share
        between = np.outer(shift, shift) * (self.weight * share)
        return Moments(weight, mean, self.scatter + other.scatter + between)

    def scaled(self, factor: float) -> Moments:
        """Return the moments with all weights multiplied by a factor."""
        return Moments(self.weight * factor, self.mean, self.scatter * factor)

    @property
    def covariance(self) -> Array:
        return self.scatter / self.weight


def no_moments(n_features: int) -> Moments:
    return Moments(0.0, np.zeros(n_features), np.zeros((n_features, n_features)))


def moments_of_block(u: Array, weights: Array | None) -> Moments:
    """Moments of one block of rows in frame coordinates."""
    weight = float(len(u)) if weights is None else float(weights.sum())
    if weight == 0:
        return no_moments(u.shape[1])
    # A product with ones is several times faster than a sum over short rows.
    mean = np.dot(np.ones(len(u)) if weights is None else weights, u) / weight
    centered = u - mean
    if weights is not None:
        centered *= np.sqrt(weights)[:, None]
    return Moments(weight, mean, np.dot(centered.T, centered))


@dataclass(frozen=True)
class SumsFromZero:
    """Weight, sum and sum of squares of rows in the user's units: no copy of the rows is made."""

    weight: float
    sums: Array
    squares: Array  # (d, d)

    def __add__(self, other: SumsFromZero) -> SumsFromZero:
        return SumsFromZero(
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
        )

    def moments(self, frame: Frame) -> Moments | None:
        """Moments in frame coordinates; None where they lie too far from zero for that."""
        mean = self.sums / self.weight
        scatter = self.squares - np.outer(self.sums, mean)
        if not np.all(self.weight * mean**2 <= _FAR_FROM_ZERO * np.diag(scatter)):
            return None
        scaled = scatter / frame.scale[:, None] / frame.scale
        return Moments(self.weight, (mean - frame.origin) / frame.scale, scaled)


def sums_from_zero(rows: Array) -> SumsFromZero:
    """Sums of one block of rows in the user's units."""
    # Unlike ``@``, ``dot`` lets other threads run whatever the size of its result.
    return SumsFromZero(
        float(len(rows)), np.dot(np.ones(len(rows)), rows), np.dot(rows.T, rows)
    )


def is_near_zero(rows: Array, frame: Frame) -> bool:
    """Whether some rows suggest that all of them can be summed from zero."""
    if len(rows) < 2 or not frame.is_foldable:
        return False
    mean = rows.mean(axis=0) / frame.scale
    variance = ((rows / frame.scale - mean) ** 2).mean(axis=0)
    return bool(np.all(mean**2 <= _NEAR_ZERO * variance))


@dataclass(frozen=True)
class Factor:
    """A = lower lower', and the inverse of lower."""

    lower: Array
    inverse: Array

    @property
    def log_det(self) -> float:
        return 2 * float(np.log(self.lower.diagonal()).sum())


def factor(matrix: Array, floor: float) -> Factor | None:
    """Cholesky's factor, if it shows that all eigenvalues lie above the floor.

    LAPACK is called directly: checks around it cost more than the work on small matrices.
    """
    if len(matrix) == 0:
        return Factor(matrix, matrix)
    lower, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        return None
    inverse, failed = lapack.dtrtri(lower, lower=1)
    flat = inverse.ravel("K")
    # The inverse of the matrix has trace |inverse|^2, which no eigenvalue of it exceeds.
    if failed or not 1 / float(flat @ flat) > floor:
        return None
    return Factor(lower, inverse)


@dataclass(frozen=True)
class Whitening:
    """Map to coordinates of unit covariance, restricted to the directions in which rows vary."""

    mean: Array  # (d,) in frame coordinates
    transform: Array  # (rank, d)
    inverse: Array  # (d, rank): u - mean = inverse z
    basis: Array  # (d, rank) orthonormal directions, up to the scale of each feature
    log_det: float  # of the covariance of all rows (and ridge) in the user's units, in its range

    @property
    def rank(self) -> int:
        return len(self.transform)

    def points(self, u: Array) -> Array:
        """Rows in whitened coordinates."""
        return (u - self.mean) @ self.transform.T

    def class_sums(self, counts: Array, sums: Array) -> Array:
        """(K, 1 + rank): class weights and class sums of z, from sums in frame coordinates."""
        z = (sums - counts[:, None] * self.mean) @ self.transform.T
        return np.column_stack([counts, z])


def whiten(moments: Moments, frame: Frame, ridge: Array | None = None) -> Whitening:
    """Whitening of the covariance of ``moments``, plus ``ridge`` (d,) on its diagonal."""
    covariance = moments.covariance
    if ridge is not None:
        covariance = covariance + np.diag(ridge)
    found = safe_whitening(moments.mean, covariance, frame)
    if found is not None:
        return found
    spread = np.sqrt(covariance.diagonal())
    inverse_spread = 1 / np.where(spread > 0, spread, np.inf)
    correlation = covariance * inverse_spread[:, None] * inverse_spread
    eigenvalues, vectors = scipy.linalg.eigh(correlation)
    is_kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], 1e-300)
    eigenvalues, vectors = eigenvalues[is_kept], vectors[:, is_kept]
    root = np.sqrt(eigenvalues)
    return Whitening(
        mean=moments.mean,
        transform=(vectors * inverse_spread[:, None] / root).T,
        inverse=vectors * spread[:, None] * root,
        basis=vectors,
        log_det=float(np.sum(np.log(eigenvalues)))
        + _log_volume(vectors, spread, frame),
    )


def safe_whitening(mean: Array, covariance: Array, frame: Frame) -> Whitening | None:
    """Whitening by Cholesky's factor, where the correlations are safely positive definite."""
    spread = np.sqrt(covariance.diagonal())
    if not spread.min(initial=np.inf) > 0:
        return None
    inverse_spread = 1 / spread
    correlation = covariance * inverse_spread[:, None]
    correlation *= inverse_spread
    found = factor(correlation, len(correlation) * _SAFE_EIGENVALUE)
    if found is None:
        return None
    return Whitening(
        mean=mean,
        transform=found.inverse * inverse_spread,
        inverse=found.lower * spread[:, None],
        basis=np.eye(len(spread)),
        log_det=found.log_det + 2 * float(np.log(spread * frame.scale).sum()),
    )


def _log_volume(vectors: Array, spread: Array, frame: Frame) -> float:
    """Return the log of the squared volume of the basis in the user's units."""
    is_varying = spread > 0
    log_spread = np.log(spread[is_varying]) + np.log(frame.scale[is_varying])
    if vectors.shape[1] == is_varying.sum():
        return 2 * float(log_spread.sum())
    top = log_spread.max(initial=0.0)
    scaled = vectors[is_varying] * np.exp(log_spread - top)[:, None]
    diagonal = np.abs(np.diag(scipy.linalg.qr(scaled, mode="r")[0]))
    return 2 * float(
        np.sum(np.log(np.maximum(diagonal, 1e-300))) + top * vectors.shape[1]
    )
