"""Coordinates in which the covariance of all rows is the identity: z = transform (u - mean)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .frame import Frame
from .moments import Moments
from .types import Array

# Directions of the correlation matrix below this share of its largest eigenvalue are rounding.
RANK_TOLERANCE = 1e-12
_SAFE_EIGENVALUE = 1e-9  # share of the largest possible one: above it no rank is lost


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
        log_det=float(np.sum(np.log(eigenvalues))) + _log_volume(vectors, spread, frame),
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
    """Logarithm of the squared volume that features in the user's units give to the basis."""
    is_varying = spread > 0
    log_spread = np.log(spread[is_varying]) + np.log(frame.scale[is_varying])
    if vectors.shape[1] == is_varying.sum():
        return 2 * float(log_spread.sum())
    top = log_spread.max(initial=0.0)
    scaled = vectors[is_varying] * np.exp(log_spread - top)[:, None]
    diagonal = np.abs(np.diag(scipy.linalg.qr(scaled, mode="r")[0]))
    return 2 * float(np.sum(np.log(np.maximum(diagonal, 1e-300))) + top * vectors.shape[1])
