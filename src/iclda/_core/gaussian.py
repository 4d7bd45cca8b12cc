"""Gaussian classes with one covariance: parameters, linear scores and densities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from . import AnyArray, Array
from .frame import Frame
from .labelsums import LinearRule
from .likelihood import FLOOR
from .moments import Whitening, factor

LOG_2PI = float(np.log(2 * np.pi))
# Class means farther from zero than this, in standard deviations, are not squared.
_MAX_DISTANCE_FROM_ZERO = 1e150


@dataclass(frozen=True)
class Complement:
    """Directions in which no row of the fit varied; shrinkage gives them one variance.

    They are orthogonal to the basis (d, m), for rows (x - origin) / units with x in the
    user's units.
    """

    origin: Array
    units: Array
    basis: Array
    variance: float

    @property
    def size(self) -> int:
        """Number of these directions."""
        n_features, n_in_basis = self.basis.shape
        return int(n_features - n_in_basis)

    def outside(self, rows: AnyArray) -> Array:
        """Return the components of rows in these directions, in ``units``."""
        centered = (rows - self.origin) / self.units
        along_basis = (centered @ self.basis) @ self.basis.T
        return np.asarray(centered - along_basis)

    def covariance(self, frame: Frame) -> Array:
        """Return the covariance (d, d) of these directions, in frame coordinates."""
        # The variance times I - basis basis', the projection on these directions.
        covariance = -self.variance * (self.basis @ self.basis.T)
        diagonal = np.diag_indices(len(covariance))
        covariance[diagonal] += self.variance
        units = self.units / frame.scale
        return np.asarray(covariance * units[:, None] * units)

    def variances(self, frame: Frame) -> Array:
        """Return the diagonal (d,) of ``covariance``."""
        units = self.units / frame.scale
        shares_of_basis = (self.basis**2).sum(axis=1)
        variances_in_units = self.variance * (1 - shares_of_basis)
        return np.asarray(variances_in_units * units**2)


@dataclass(frozen=True)
class Gaussians:
    """A fitted model: rows s = projection (u - center) have unit covariance in a class.

    Attributes
    ----------
    center : (d,) origin of the standardized coordinates, in frame coordinates
    class_weights, log_priors : (K,)
    means : (K, d) in frame coordinates
    covariance : (d, d) in frame coordinates; None for few rows of many features
    projection : (rank, d)
    class_points : (K, rank) the means in standardized coordinates
    log_det : log determinant of the covariance in the user's units
    is_floored : whether an eigenvalue of the covariance was raised to its floor
    half : (d, m) with half half' in place of the covariance, for few rows of many
        features
    complement : directions that ``half`` leaves out and shrinkage fills
    offset : (d,) by which all classes were moved after the fit, in frame coordinates
    means_of_rows : (K, d) means of the rows as the posteriors label them, in frame
        coordinates, where ``means`` only serve the posteriors
    """

    frame: Frame
    center: Array
    class_weights: Array
    log_priors: Array
    means: Array
    covariance: Array | None
    projection: Array
    class_points: Array
    log_det: float
    is_floored: bool
    half: Array | None = None
    complement: Complement | None = None
    offset: Array | None = None
    means_of_rows: Array | None = None

    @property
    def rank(self) -> int:
        n_in_complement = 0 if self.complement is None else self.complement.size
        return len(self.projection) + n_in_complement

    def moved(self, offset: Array, log_priors: Array | None = None) -> Gaussians:
        """Return the model with all classes moved, and other priors if they are given.

        The offset is in frame coordinates.
        """
        complement = self.complement
        if complement is not None:
            origin = complement.origin + offset * self.frame.scale
            complement = replace(complement, origin=origin)
        return replace(
            self,
            center=self.center + offset,
            means=self.means + offset,
            log_priors=self.log_priors if log_priors is None else log_priors,
            complement=complement,
            offset=offset if self.offset is None else self.offset + offset,
            means_of_rows=(
                None if self.means_of_rows is None else self.means_of_rows + offset
            ),
        )

    def at_rows(self) -> Gaussians:
        """Return the classes where their rows lie, for densities."""
        means = self.means_of_rows
        if means is None:
            return self
        center = self.class_weights @ means
        return replace(
            self,
            center=center,
            means=means,
            class_points=(means - center) @ self.projection.T,
            means_of_rows=None,
        )

    def full_covariance(self) -> Array:
        """Return the covariance (d, d) in frame coordinates."""
        if self.covariance is not None:
            return self.covariance
        assert self.half is not None
        covariance = self.half @ self.half.T
        if self.complement is not None:
            covariance += self.complement.covariance(self.frame)
        return covariance

    @property
    def variances(self) -> Array:
        """The diagonal (d,) of the covariance."""
        if self.covariance is not None:
            return np.diag(self.covariance)
        assert self.half is not None
        variances = (self.half**2).sum(axis=1)
        if self.complement is not None:
            variances += self.complement.variances(self.frame)
        return np.asarray(variances)

    def score_rule(self, *, is_soft: bool = True) -> LinearRule:
        """Return scores log prior + (mu' Sigma^-1)(u - mu / 2) of rows u in the frame.

        Both u and mu are taken about the center.
        """
        coef = self.projection.T @ self.class_points.T
        squared_points = (self.class_points**2).sum(axis=1)
        about_center = self.log_priors - squared_points / 2
        intercept = about_center - self.center @ coef
        return LinearRule(coef, intercept, is_soft)

    @property
    def linear_scores(self) -> tuple[Array, Array]:
        """Coefficients (K, d) and intercepts (K,) in the user's units.

        Coefficients are Sigma^-1 mu_k, as is usual: these scores differ from those of
        ``score_rule``, which are about the center, by a term common to all classes.
        Where zero is too far away to square the distance, ``score_rule`` is returned.
        """
        frame = self.frame
        if self.offset is not None:
            # Those of the rows moved back: coefficients stay those of the fit.
            unmoved = replace(self.moved(-self.offset), offset=None)
            coef, intercept = unmoved.linear_scores
            return coef, intercept - coef @ (self.offset * frame.scale)
        zero = -frame.origin / frame.scale
        # Class means relative to zero, in standardized coordinates.
        center_from_zero = (self.center - zero) @ self.projection.T
        from_zero = self.class_points + center_from_zero
        largest = np.abs(from_zero).max(initial=0.0)
        if not largest < _MAX_DISTANCE_FROM_ZERO:
            rule = self.score_rule().folded(frame)
            return rule.coef.T.copy(), rule.intercept
        # With projection' projection = Sigma^-1, these rows are Sigma^-1 mu_k.
        coef = from_zero @ self.projection / frame.scale
        squared_distances = (from_zero**2).sum(axis=1)
        intercept = self.log_priors - squared_distances / 2
        complement = self.complement
        if complement is not None:
            # Zero may lie outside the basis.
            zero_row = np.zeros((1, len(zero)))
            offset = complement.outside(zero_row)[0]
            coef = coef - offset / (complement.units * complement.variance)
            intercept = intercept - offset @ offset / (2 * complement.variance)
        return coef, intercept

    def log_joint(self, rows: AnyArray) -> Array:
        """Return the log of prior times density of rows in every class, (n, K)."""
        # With the class point c, |s - c|^2 = |s|^2 - 2 s'c + |c|^2: the first term is
        # the same for all classes.
        centered = self.frame.apply(rows) - self.center
        s = centered @ self.projection.T
        squared_points = (self.class_points**2).sum(axis=1)
        scores = s @ self.class_points.T - squared_points / 2
        constant = -(self.rank * LOG_2PI + self.log_det) / 2
        scores += self.log_priors + constant
        # A square overflows only where the density is zero.
        with np.errstate(over="ignore"):
            distances = (s**2).sum(axis=1)
        if self.complement is not None:
            outside = self.complement.outside(rows)
            squares_outside = (outside**2).sum(axis=1)
            distances = distances + squares_outside / self.complement.variance
        return np.asarray(scores - distances[:, None] / 2)

    def discriminants(self, n_components: int) -> Array:
        """Return the directions (d, n_components) that separate the class means best.

        Rows have unit variance within classes along each of them.
        """
        weights = self.class_weights
        if self.is_floored:
            # At the floor all directions separate equally well under the class weights:
            # order them by the plain spread of the means instead.
            weights = np.full(len(weights), 1 / len(weights))
        centered = self.class_points - weights @ self.class_points
        # between' between is the covariance between the classes, and the covariance
        # within them is I: its eigenvectors are the directions.
        between = np.sqrt(weights)[:, None] * centered
        _, _, all_axes = scipy.linalg.svd(between, full_matrices=False)
        axes = all_axes[:n_components]

        # The sign of a singular vector is arbitrary: let the class farthest from the
        # first one lie on the positive side.
        from_first = self.class_points - self.class_points[0]
        positions = from_first @ axes.T
        farthest = np.abs(positions).argmax(axis=0)
        is_turned = positions[farthest, np.arange(len(axes))] < 0
        signs = np.where(is_turned, -1.0, 1.0)

        # Components beyond the rank of the means are zero.
        components = np.zeros((n_components, len(self.projection)))
        components[: len(axes)] = axes * signs[:, None]
        return self.projection.T @ components.T


def gaussians(
    frame: Frame,
    whitening: Whitening,
    class_weights: Array,
    means: Array,
    covariance: Array,
    log_priors: Array | None,
    floor: float = FLOOR,
) -> Gaussians:
    """Return a model from class weights, means (K, rank) and covariance.

    Means and covariance are in whitened coordinates.
    """
    root, inverse_root, is_floored = _floored_root(covariance, floor)
    # half half' is the covariance in frame coordinates.
    half = whitening.inverse @ root
    log_det_of_root = float(np.log(np.diag(root)).sum())
    if log_priors is None:
        log_priors = np.log(class_weights)
    return Gaussians(
        frame=frame,
        center=whitening.mean,
        class_weights=class_weights,
        log_priors=log_priors,
        means=means @ whitening.inverse.T + whitening.mean,
        covariance=half @ half.T,
        projection=inverse_root @ whitening.transform,
        class_points=means @ inverse_root.T,
        log_det=whitening.log_det + 2 * log_det_of_root,
        is_floored=is_floored,
    )


def _floored_root(covariance: Array, floor: float) -> tuple[Array, Array, bool]:
    """Return a lower triangular root of a covariance with its eigenvalues floored.

    Also return the inverse of the root, and whether the floor was needed.
    """
    # Rounding has made it slightly asymmetric.
    covariance = (covariance + covariance.T) / 2
    cholesky = factor(covariance, floor)
    if cholesky is not None:
        return cholesky.lower, cholesky.inverse, False
    eigenvalues, vectors = scipy.linalg.eigh(covariance)
    half = vectors * np.sqrt(np.maximum(eigenvalues, floor))
    # With half' = Q R, half half' is R'R.
    (upper,) = scipy.linalg.qr(half.T, mode="r")
    root = upper.T
    # The logarithms of the diagonal are summed: make it positive.
    signs = np.where(np.diag(root) < 0, -1.0, 1.0)
    root = root * signs
    inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    is_floored = bool(eigenvalues[0] <= floor)
    return root, np.asarray(inverse), is_floored
