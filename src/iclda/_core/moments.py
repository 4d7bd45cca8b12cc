"""Weight, mean and scatter of rows, and coordinates of unit covariance.

Moments are additive: any split of the rows into blocks gives the same sums. Whitened
coordinates of a row u in the frame are z = transform (u - mean).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from . import Array
from .frame import Frame

# Sums from zero keep their digits while the squared mean of every feature is at most
# this multiple of its variance.
_MAX_SQUARED_OFFSET = 100.0
# Sums from zero are tried only if the first rows lie well within that limit.
_MAX_SQUARED_OFFSET_OF_FIRST_ROWS = 10.0
# Directions of the correlation matrix below this share of its largest eigenvalue are
# rounding.
RANK_TOLERANCE = 1e-12
# A correlation matrix whose eigenvalues lie above this share of the largest possible
# one, the number of features, has full rank.
_SAFE_EIGENVALUE_SHARE = 1e-9
# Stands in for zero in logarithms and divisors.
_TINY = 1e-300


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter (squares about the mean) of rows, in the frame."""

    weight: float
    mean: Array
    scatter: Array

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift = other.mean - self.mean
        # Divide first: the product of both weights may overflow.
        share = other.weight / weight
        mean = self.mean + shift * share
        between = np.outer(shift, shift) * (self.weight * share)
        scatter = self.scatter + other.scatter + between
        return Moments(weight, mean, scatter)

    def scaled(self, factor: float) -> Moments:
        """Return the moments with all weights multiplied by a factor."""
        return Moments(self.weight * factor, self.mean, self.scatter * factor)

    @property
    def covariance(self) -> Array:
        return self.scatter / self.weight


def no_moments(n_features: int) -> Moments:
    """Return the moments of no rows."""
    mean = np.zeros(n_features)
    scatter = np.zeros((n_features, n_features))
    return Moments(0.0, mean, scatter)


def moments_of_block(u: Array, weights: Array | None) -> Moments:
    """Return the moments of one block of rows in frame coordinates."""
    weight = float(len(u)) if weights is None else float(weights.sum())
    if weight == 0:
        return no_moments(u.shape[1])
    # A product with ones is several times faster than a sum over short rows.
    row_weights = np.ones(len(u)) if weights is None else weights
    mean = np.dot(row_weights, u) / weight
    centered = u - mean
    if weights is not None:
        # Each weight enters the product once, by its root on either side.
        centered *= np.sqrt(weights)[:, None]
    scatter = np.dot(centered.T, centered)
    return Moments(weight, mean, scatter)


@dataclass(frozen=True)
class SumsFromZero:
    """Weight, sum and sum of squares (d, d) of rows in the user's units.

    Summing about zero needs no centered copy of the rows.
    """

    weight: float
    sums: Array
    squares: Array

    def __add__(self, other: SumsFromZero) -> SumsFromZero:
        return SumsFromZero(
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
        )

    def moments(self, frame: Frame) -> Moments | None:
        """Return moments in frame coordinates, or None if rows lie too far from zero.

        Far from zero the difference between ``squares`` and the square of the mean has
        lost its digits.
        """
        mean = self.sums / self.weight
        scatter = self.squares - np.outer(self.sums, mean)
        squared_offset = self.weight * mean**2
        max_squared_offset = _MAX_SQUARED_OFFSET * np.diag(scatter)
        if not np.all(squared_offset <= max_squared_offset):
            return None
        mean_in_frame = (mean - frame.origin) / frame.scale
        scatter_in_frame = scatter / frame.scale[:, None] / frame.scale
        return Moments(self.weight, mean_in_frame, scatter_in_frame)


def sums_from_zero(rows: Array) -> SumsFromZero:
    """Return the sums of one block of rows in the user's units."""
    # Unlike ``@``, ``dot`` lets other threads run whatever the size of its result.
    sums = np.dot(np.ones(len(rows)), rows)
    squares = np.dot(rows.T, rows)
    return SumsFromZero(float(len(rows)), sums, squares)


def is_near_zero(rows: Array, frame: Frame) -> bool:
    """Whether some rows suggest that all of them can be summed from zero."""
    if len(rows) < 2 or not frame.is_foldable:
        return False
    mean = rows.mean(axis=0) / frame.scale
    deviations = rows / frame.scale - mean
    variance = (deviations**2).mean(axis=0)
    max_squared_offset = _MAX_SQUARED_OFFSET_OF_FIRST_ROWS * variance
    return bool(np.all(mean**2 <= max_squared_offset))


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of a matrix, ``lower @ lower.T``, and the inverse of it."""

    lower: Array
    inverse: Array

    @property
    def log_det(self) -> float:
        return 2 * float(np.log(self.lower.diagonal()).sum())


def factor(matrix: Array, floor: float) -> Factor | None:
    """Return the Cholesky factor if it shows that all eigenvalues lie above the floor.

    LAPACK is called directly: for small matrices, SciPy's checks cost more than the
    factorization.
    """
    if len(matrix) == 0:
        return Factor(matrix, matrix)
    lower, is_failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if is_failed:
        return None
    inverse, is_failed = lapack.dtrtri(lower, lower=1)
    if is_failed:
        return None
    # The inverse of the matrix has trace |inverse|^2, which its largest eigenvalue does
    # not exceed: 1 / trace is a lower bound of the eigenvalues of the matrix.
    flat = inverse.ravel("K")
    trace_of_inverse = float(flat @ flat)
    if not 1 / trace_of_inverse > floor:
        return None
    return Factor(lower, inverse)


@dataclass(frozen=True)
class Whitening:
    """Map to coordinates of unit covariance, in the directions in which rows vary.

    Problems whose covariance has another form use it for their own coordinates z.

    Attributes
    ----------
    mean : (d,) the mean of the rows in frame coordinates
    transform : (rank, d) with z = transform (u - mean)
    inverse : (d, rank) with u - mean = inverse z
    basis : (d, rank) orthonormal directions, up to the scale of each feature
    log_det : log determinant of the covariance (with its ridge) in the user's units,
        over the directions in which rows vary
    """

    mean: Array
    transform: Array
    inverse: Array
    basis: Array
    log_det: float

    @property
    def rank(self) -> int:
        return len(self.transform)

    def points(self, u: Array) -> Array:
        """Return rows in whitened coordinates."""
        centered = u - self.mean
        return centered @ self.transform.T

    def class_sums(self, counts: Array, sums: Array) -> Array:
        """Return class weights and class sums of z, from sums in frame coordinates.

        The result has the shape (K, 1 + rank).
        """
        centered_sums = sums - counts[:, None] * self.mean
        sums_of_z = centered_sums @ self.transform.T
        return np.column_stack([counts, sums_of_z])


def whiten(moments: Moments, frame: Frame, ridge: Array | None = None) -> Whitening:
    """Whiten the covariance of ``moments`` plus ``ridge`` (d,) on its diagonal."""
    covariance = moments.covariance
    if ridge is not None:
        covariance = covariance + np.diag(ridge)
    whitening = safe_whitening(moments.mean, covariance, frame)
    if whitening is not None:
        return whitening

    # Some direction may not vary: keep the eigenvectors of the correlations that do.
    spread = np.sqrt(covariance.diagonal())
    inverse_spread = 1 / np.where(spread > 0, spread, np.inf)
    correlation = covariance * inverse_spread[:, None] * inverse_spread
    eigenvalues, vectors = scipy.linalg.eigh(correlation)
    is_kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], _TINY)
    eigenvalues = eigenvalues[is_kept]
    vectors = vectors[:, is_kept]
    root = np.sqrt(eigenvalues)
    log_det_of_correlation = float(np.sum(np.log(eigenvalues)))
    log_volume = _log_volume(vectors, spread, frame)
    transposed = vectors * inverse_spread[:, None] / root
    return Whitening(
        mean=moments.mean,
        transform=transposed.T,
        inverse=vectors * spread[:, None] * root,
        basis=vectors,
        log_det=log_det_of_correlation + log_volume,
    )


def safe_whitening(mean: Array, covariance: Array, frame: Frame) -> Whitening | None:
    """Whiten by a Cholesky factor; None unless the correlations are safely positive."""
    spread = np.sqrt(covariance.diagonal())
    if not spread.min(initial=np.inf) > 0:
        return None
    inverse_spread = 1 / spread
    correlation = covariance * inverse_spread[:, None]
    correlation *= inverse_spread
    safe_eigenvalue = len(correlation) * _SAFE_EIGENVALUE_SHARE
    cholesky = factor(correlation, safe_eigenvalue)
    if cholesky is None:
        return None
    log_det_of_spread = 2 * float(np.log(spread * frame.scale).sum())
    return Whitening(
        mean=mean,
        transform=cholesky.inverse * inverse_spread,
        inverse=cholesky.lower * spread[:, None],
        basis=np.eye(len(spread)),
        log_det=cholesky.log_det + log_det_of_spread,
    )


def _log_volume(vectors: Array, spread: Array, frame: Frame) -> float:
    """Return the log of the squared volume of the basis in the user's units."""
    is_varying = spread > 0
    log_spread = np.log(spread[is_varying]) + np.log(frame.scale[is_varying])
    if vectors.shape[1] == is_varying.sum():
        return 2 * float(log_spread.sum())
    # The largest spread is taken out, so that no exponential overflows.
    largest = log_spread.max(initial=0.0)
    scaled = vectors[is_varying] * np.exp(log_spread - largest)[:, None]
    # The triangular factor has the same volume, the product of its diagonal.
    (triangular,) = scipy.linalg.qr(scaled, mode="r")
    diagonal = np.abs(np.diag(triangular))
    log_diagonal = np.log(np.maximum(diagonal, _TINY))
    rank = vectors.shape[1]
    return 2 * float(np.sum(log_diagonal) + largest * rank)
