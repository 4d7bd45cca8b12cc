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
from .labelsums import LexicographicRule, LinearRule
from .moments import RANK_TOLERANCE

# Squares of numbers beyond this one may overflow.
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
        return int(self.basis.shape[0] - self.basis.shape[1])

    def coordinates(self, rows: AnyArray) -> Array:
        return np.asarray(((rows - self.origin) / self.units) @ self.basis)

    def features(self, rows: AnyArray) -> Array:
        return np.asarray(self.origin + self.units * (rows @ self.basis.T))

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
        units = self.frame.scale / self.units
        into = units[:, None] * self.basis / self.reduced.scale
        start = ((self.frame.origin - self.origin) / self.units) @ self.basis
        return into, (start - self.reduced.origin) / self.reduced.scale

    def points(self, u: Array) -> Array:
        # Where coordinates of 0 in the reduced frame lie, in the user's units.
        origin = self.units * (self.basis @ self.reduced.origin) + self.origin
        shift = origin - self.frame.origin
        return u @ self._lift().T + shift / self.frame.scale

    def variances(self, covariance: Array) -> Array:
        lift = self._lift()
        return np.asarray(((lift @ covariance) * lift).sum(axis=1))

    def rule(
        self, rule: LinearRule | LexicographicRule
    ) -> LinearRule | LexicographicRule:
        if isinstance(rule, LexicographicRule):
            first = self._lifted_rule(rule.first)
            second = self._lifted_rule(rule.second)
            return replace(rule, first=first, second=second)
        return self._lifted_rule(rule)

    def _lifted_rule(self, rule: LinearRule) -> LinearRule:
        # Scores that are affine in the coordinates are affine in the features.
        into, shift = self._into()
        intercept = rule.intercept + shift @ rule.coef
        return replace(rule, coef=into @ rule.coef, intercept=intercept)

    def model(self, model: Gaussians, variance: float | None) -> Gaussians:
        assert model.covariance is not None
        # The covariance may be singular to rounding: hence no Cholesky factor.
        eigenvalues, vectors = scipy.linalg.eigh(model.covariance)
        # A root with as many columns as there are coordinates: no matrix of d x d.
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
        complement = None
        # The determinant is one of coordinates along the basis: turn it into one of the
        # user's units.
        log_det = model.log_det
        if variance is None:
            # The directions left out have no variance and do not count.
            squared_units = (self.units**2)[:, None]
            volume = self.basis.T @ (self.basis * squared_units)
            log_det += float(np.linalg.slogdet(volume)[1])
        else:
            log_units = 2 * float(np.log(self.units).sum())
            log_det += self.n_left_out * float(np.log(variance)) + log_units
            complement = Complement(self.origin, self.units, self.basis, variance)
        return replace(
            model,
            frame=self.frame,
            center=self.points(model.center[None])[0],
            means=self.points(model.means),
            covariance=None,
            half=self._lift() @ root,
            projection=model.projection @ self._into()[0].T,
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
        log_det = model.log_det - reduced.log_det
        added = -self.weight * (n_left_out * LOG_2PI + log_det) / 2
        if self.shrinkage > 0:
            penalty = log_det + n_left_out / self.shrinkage
            added -= self.weight * self.shrinkage / (1 - self.shrinkage) * penalty / 2
        return self.value + added


def row_space(rows: Array, frame: Frame, *, is_shrunk: bool) -> RowSpace | None:
    """Return the space of some rows; None where numbers are too extreme to square.

    Shrinkage is toward equal variances in the user's units. Without it, directions left
    out are those orthogonal to the rows in units of their spread, as in ``whiten``.
    """
    largest = np.abs(rows).max(initial=0.0)
    if max(largest, 1 / frame.scale.min()) > _MAX_SQUARED_NUMBER:
        return None
    mean_squares = ((rows - frame.origin) ** 2).mean(axis=0)
    deviations = np.sqrt(mean_squares)
    if is_shrunk:
        # One common unit keeps the directions, and the numbers near 1.
        units = np.full(len(deviations), deviations.max(initial=0.0) or 1.0)
        rounding = np.finfo(float).eps * max(rows.shape)
        return _spanned(rows, frame, units, rounding)
    units = np.where(deviations > 0, deviations, 1.0)
    return _spanned(rows, frame, units, RANK_TOLERANCE**0.5)


def _spanned(
    rows: Array, frame: Frame, units: Array, tolerance: float
) -> RowSpace | None:
    """Return the space that rows span, None if they do not vary.

    Singular values below the tolerance, relative to the largest, are rounding.
    """
    centered = (rows - frame.origin) / units
    _, lengths, axes = scipy.linalg.svd(centered, full_matrices=False)
    axes = axes[lengths > tolerance * max(lengths[0], _TINY)]
    if not len(axes):
        return None
    # A feature that is constant has no part in any direction, not even by rounding.
    is_varying = np.asarray(centered.any(axis=0))
    basis = np.where(is_varying[:, None], axes.T, 0.0)
    unscaled = Frame(np.zeros(len(axes)), np.ones(len(axes)))
    return RowSpace(frame, frame.origin, units, basis, unscaled)
