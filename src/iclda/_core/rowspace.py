"""Few rows of many features: the problem in the directions in which the rows vary.

n rows span at most n directions, whatever the number of features d. A fit in
coordinates along these is the fit in all features: without shrinkage the other
directions are left out anyway, and with it their variance is that of the target of the
shrinkage, the same for every labeling. No matrix of d x d numbers is formed.
``prepare`` reduces the rows, and the base class of the classifiers lifts the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from . import AnyArray, Array
from .frame import Frame
from .gaussian import LOG_2PI, Complement, Gaussians
from .labelsums import LinearRule
from .moments import RANK_TOLERANCE

# Larger numbers are not squared: sums of their squares might overflow.
_MAX_SQUARED_NUMBER = 1e100
# Stands in for zero in a product.
_TINY = 1e-300


@dataclass(frozen=True)
class FeatureSpace:
    """The space of all features: rows are fitted as they are.

    ``frame`` is that of the features.
    """

    frame: Frame

    @property
    def n_left_out(self) -> int:
        """Number of directions in which no row varies, without coordinates."""
        return 0

    def features(self, rows: AnyArray) -> AnyArray:
        """Return rows of this space in the user's units."""
        return rows

    def points(self, u: Array) -> Array:
        """Return points in frame coordinates of the features."""
        return u

    def variances(self, covariance: Array) -> Array:
        """Return the variances (d,) of the features, in their frame coordinates."""
        return np.diag(covariance)

    def rule(self, rule: Any) -> Any:
        """Return a rule for rows in frame coordinates of the features."""
        return rule

    def model(self, model: Gaussians, variance: float | None) -> Gaussians:
        """Return a model of the features.

        ``variance`` is that of the directions left out, if any.
        """
        return model


@dataclass(frozen=True)
class RowSpace(FeatureSpace):
    """The span of few rows x of many features.

    Coordinates are c = ((x - origin) / units) basis, with an orthonormal basis (d, m);
    origin and units (d,) are in the user's units. ``reduced`` is the frame of the
    coordinates.
    """

    origin: Array
    units: Array
    basis: Array
    reduced: Frame

    @property
    def n_left_out(self) -> int:
        n_features, n_coordinates = self.basis.shape
        return int(n_features - n_coordinates)

    def coordinates(self, rows: AnyArray) -> Array:
        """Return rows in the user's units along the basis."""
        in_units = (rows - self.origin) / self.units
        return np.asarray(in_units @ self.basis)

    def features(self, rows: AnyArray) -> Array:
        in_units = rows @ self.basis.T
        return np.asarray(self.origin + self.units * in_units)

    def _lift(self) -> Array:
        """Return the linear map (d, m) from this space to the features.

        Both are in their frame coordinates.
        """
        # Multiply by the scale of coordinates, and divide by that of features.
        units = self.units / self.frame.scale
        return units[:, None] * self.basis * self.reduced.scale

    def _into(self) -> tuple[Array, Array]:
        """Return the affine map, (d, m) and (m,), from the features to this space.

        Both are in their frame coordinates.
        """
        reduced = self.reduced
        units = self.frame.scale / self.units
        into = units[:, None] * self.basis / reduced.scale
        # Where the origin of the features lies.
        origin = ((self.frame.origin - self.origin) / self.units) @ self.basis
        shift = (origin - reduced.origin) / reduced.scale
        return into, shift

    def points(self, u: Array) -> Array:
        # Where coordinates of 0 in the reduced frame lie, in the user's units.
        zero_in_units = self.basis @ self.reduced.origin
        zero = self.units * zero_in_units + self.origin
        shift = (zero - self.frame.origin) / self.frame.scale
        return u @ self._lift().T + shift

    def variances(self, covariance: Array) -> Array:
        # The diagonal of lift covariance lift', without the other entries.
        lift = self._lift()
        products = (lift @ covariance) * lift
        return np.asarray(products.sum(axis=1))

    def rule(self, rule: LinearRule) -> LinearRule:
        # Scores that are affine in the coordinates are affine in the features.
        into, shift = self._into()
        intercept = rule.intercept + shift @ rule.coef
        return replace(rule, coef=into @ rule.coef, intercept=intercept)

    def model(self, model: Gaussians, variance: float | None) -> Gaussians:
        assert model.covariance is not None
        # 1. Find a root of the covariance with as many columns as there are
        # coordinates: no matrix of d x d. The covariance may be singular to rounding:
        # hence no Cholesky factor.
        eigenvalues, vectors = scipy.linalg.eigh(model.covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0))

        # 2. The determinant is one of coordinates along the basis: turn it into one of
        # the user's units.
        log_det = model.log_det
        complement = None
        if variance is None:
            # The directions left out have no variance and do not count.
            squared_units = (self.units**2)[:, None]
            volume = self.basis.T @ (self.basis * squared_units)
            _, log_volume = np.linalg.slogdet(volume)
            log_det += float(log_volume)
        else:
            log_units = 2 * float(np.log(self.units).sum())
            log_variances = self.n_left_out * float(np.log(variance))
            log_det += log_variances + log_units
            complement = Complement(self.origin, self.units, self.basis, variance)

        # 3. Move everything else to the features.
        into, _ = self._into()
        return replace(
            model,
            frame=self.frame,
            center=self.points(model.center[None])[0],
            means=self.points(model.means),
            means_of_rows=(
                None
                if model.means_of_rows is None
                else self.points(model.means_of_rows)
            ),
            covariance=None,
            half=self._lift() @ root,
            projection=model.projection @ into.T,
            log_det=log_det,
            complement=complement,
        )


@dataclass(frozen=True)
class LogLikelihood:
    """A log likelihood, or an array of them, in coordinates along the basis.

    ``weight`` is that of the rows. Shrinkage subtracts the penalty
    N0/2 (log|Sigma| + nu tr Sigma^-1) with N0 = N s / (1 - s). The variance of every
    direction left out is s nu, so that each adds log(s nu) + 1 / s to the parenthesis.
    """

    value: Any
    weight: float
    shrinkage: float = 0.0

    def lifted(self, model: Gaussians, reduced: Gaussians) -> Any:
        """Return the log likelihood under the model of the features."""
        if model is reduced:
            return self.value
        n_left_out = model.rank - reduced.rank
        added_log_det = model.log_det - reduced.log_det
        constant = n_left_out * LOG_2PI + added_log_det
        added = -self.weight * constant / 2
        if self.shrinkage > 0:
            penalty_weight = self.weight * self.shrinkage / (1 - self.shrinkage)
            penalty = added_log_det + n_left_out / self.shrinkage
            added -= penalty_weight * penalty / 2
        return self.value + added


def row_space(rows: Array, frame: Frame, *, keeps_units: bool) -> RowSpace | None:
    """Return the space of some rows; None where numbers are too extreme to square.

    Shrinkage is toward equal variances in the user's units, which ``keeps_units`` then
    keeps. Otherwise, directions left out are those orthogonal to the rows in units of
    their spread, as in ``whiten``.
    """
    largest = np.abs(rows).max(initial=0.0)
    largest_inverse_scale = 1 / frame.scale.min()
    if max(largest, largest_inverse_scale) > _MAX_SQUARED_NUMBER:
        return None
    mean_squares = ((rows - frame.origin) ** 2).mean(axis=0)
    deviations = np.sqrt(mean_squares)
    if keeps_units:
        # One common unit keeps the directions, and the numbers near 1.
        unit = deviations.max(initial=0.0) or 1.0
        units = np.full(len(deviations), unit)
        tolerance = np.finfo(float).eps * max(rows.shape)
    else:
        units = np.where(deviations > 0, deviations, 1.0)
        # Singular values are roots of eigenvalues.
        tolerance = RANK_TOLERANCE**0.5
    return _spanned(rows, frame, units, tolerance)


def _spanned(
    rows: Array, frame: Frame, units: Array, tolerance: float
) -> RowSpace | None:
    """Return the space that rows span, None if they do not vary.

    Singular values below the tolerance, relative to the largest, are rounding.
    """
    centered = (rows - frame.origin) / units
    _, lengths, axes = scipy.linalg.svd(centered, full_matrices=False)
    is_kept = lengths > tolerance * max(lengths[0], _TINY)
    axes = axes[is_kept]
    if not len(axes):
        return None
    # A feature that is constant has no part in any direction, not even by rounding.
    is_varying = np.asarray(centered.any(axis=0))
    basis = np.where(is_varying[:, None], axes.T, 0.0)
    unscaled = Frame(np.zeros(len(axes)), np.ones(len(axes)))
    return RowSpace(frame, frame.origin, units, basis, unscaled)
