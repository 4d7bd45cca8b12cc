"""Few rows of many features: the problem in the directions in which the rows vary.

n rows span at most n directions, whatever the number of features d. A fit in coordinates along
these is the fit in all features: without shrinkage the other directions are left out anyway, and
with it their variance is that of the target of the shrinkage, the same for every labeling. No
matrix of d x d numbers is formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from .frame import Frame
from .gaussian import Complement, Gaussians
from .labelsums import LexicographicRule, LinearRule
from .types import AnyArray, Array
from .whitening import RANK_TOLERANCE

_LOG_2PI = float(np.log(2 * np.pi))
_EXTREME = 1e100  # beyond, squares may overflow


@dataclass(frozen=True)
class RowSpace:
    """Coordinates c = ((x - origin) / units) basis of rows x, and the way back."""

    frame: Frame  # of the features
    origin: Array  # (d,) in the user's units, as are the units
    units: Array  # (d,)
    basis: Array  # (d, m) orthonormal
    class_shrinkages: Array | None = None  # where classes were shrunk toward the squared units

    @property
    def n_left_out(self) -> int:
        """Number of directions in which no row varies."""
        return int(self.basis.shape[0] - self.basis.shape[1])

    def coordinates(self, rows: AnyArray) -> Array:
        return np.asarray(((rows - self.origin) / self.units) @ self.basis)

    def _lift(self, reduced: Frame) -> Array:
        """(d, m): from frame coordinates along the basis to those of the features, but a shift."""
        return (self.units / self.frame.scale)[:, None] * self.basis * reduced.scale

    def _into(self, reduced: Frame) -> tuple[Array, Array]:
        """(d, m) and (m,): from frame coordinates of the features to those along the basis."""
        into = (self.frame.scale / self.units)[:, None] * self.basis / reduced.scale
        start = ((self.frame.origin - self.origin) / self.units) @ self.basis
        return into, (start - reduced.origin) / reduced.scale

    def points(self, u: Array, reduced: Frame) -> Array:
        """Points in frame coordinates of the features."""
        shift = (self.units * (self.basis @ reduced.origin) + self.origin) - self.frame.origin
        return u @ self._lift(reduced).T + shift / self.frame.scale

    def restore(self, u: Array, reduced: Frame) -> Array:
        """Rows in the user's units."""
        return self.frame.restore(self.points(u, reduced))

    def diagonal(self, matrix: Array, reduced: Frame) -> Array:
        """(d,): diagonal of a covariance, in frame coordinates of the features."""
        lift = self._lift(reduced)
        return np.asarray(((lift @ matrix) * lift).sum(axis=1))

    def rule(
        self, rule: LinearRule | LexicographicRule, reduced: Frame
    ) -> LinearRule | LexicographicRule:
        """A rule for rows in frame coordinates of the features."""
        if isinstance(rule, LexicographicRule):
            first, second = (self.rule(each, reduced) for each in (rule.first, rule.second))
            return replace(rule, first=first, second=second)  # type: ignore[arg-type]
        into, shift = self._into(reduced)
        return replace(rule, coef=into @ rule.coef, intercept=rule.intercept + shift @ rule.coef)

    def model(self, model: Gaussians, variance: float | None) -> Gaussians:
        """A model of the features; ``variance`` is that of the directions left out, if any."""
        reduced = model.frame
        into, _ = self._into(reduced)
        assert model.covariance is not None
        complement, log_det = None, model.log_det
        if variance is None:
            volume = self.basis.T @ (self.basis * (self.units**2)[:, None])
            log_det += float(np.linalg.slogdet(volume)[1])
        else:
            n_left_out = self.n_left_out
            log_det += n_left_out * float(np.log(variance)) + 2 * float(np.log(self.units).sum())
            complement = Complement(self.origin, self.units, self.basis, variance)
        return replace(
            model,
            frame=self.frame,
            center=self.points(model.center[None], reduced)[0],
            means=self.points(model.means, reduced),
            covariance=None,
            half=self._lift(reduced) @ _root(model.covariance),
            projection=model.projection @ into.T,
            log_det=log_det,
            complement=complement,
        )

    def reduced(self, model: Gaussians, reduced: Frame) -> Gaussians:
        """A model of the features, in coordinates along the basis; no more than its moments."""
        assert model.half is not None
        into, shift = self._into(reduced)
        half = into.T @ model.half
        means = model.means @ into + shift
        return replace(model, frame=reduced, means=means, covariance=half @ half.T, complement=None)


def _root(covariance: Array) -> Array:
    """H with H H' = covariance, which may be singular to rounding."""
    eigenvalues, vectors = scipy.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0)))


def objective_shift(lifted: Gaussians, reduced: Gaussians) -> float:
    """What the directions left out add to the log likelihood of a row that does not vary there."""
    rank = lifted.rank - reduced.rank
    return -(rank * _LOG_2PI + lifted.log_det - reduced.log_det) / 2


def likelihood_shift(
    lifted: Gaussians, reduced: Gaussians, weight: float, shrinkage: float
) -> float:
    """The same for all rows, of this weight, less the penalty of the shrinkage there.

    The variance of every direction left out is ``shrinkage`` times the target, so that the penalty
    N0/2 (log|Sigma| + nu tr Sigma^-1), N0 = N s / (1 - s), adds log(s nu) + 1 / s for each.
    """
    added = weight * objective_shift(lifted, reduced)
    if shrinkage > 0:
        n_left_out, log_det = lifted.rank - reduced.rank, lifted.log_det - reduced.log_det
        penalty = log_det + n_left_out / shrinkage
        added -= weight * shrinkage / (1 - shrinkage) * penalty / 2
    return added


def row_space(rows: Array, frame: Frame, *, is_shrunk: bool) -> RowSpace | None:
    """Space of some rows; None where numbers are too extreme to square.

    Shrinkage is toward equal variances in the user's units. Without it, directions left out are
    those orthogonal to the rows in units of their spread, as ``whiten`` has it.
    """
    if max(np.abs(rows).max(initial=0.0), 1 / frame.scale.min()) > _EXTREME:
        return None
    deviations = np.sqrt(((rows - frame.origin) ** 2).mean(axis=0))
    if is_shrunk:
        # One factor for all of them keeps the numbers near 1.
        units = np.full(len(deviations), deviations.max(initial=0.0) or 1.0)
    else:
        units = np.where(deviations > 0, deviations, 1.0)
    tolerance = np.finfo(float).eps * max(rows.shape) if is_shrunk else RANK_TOLERANCE**0.5
    return _spanned(rows, frame, units, tolerance)


def class_row_space(
    rows: Array, frame: Frame, shrinkages: Array, targets: Array
) -> RowSpace | None:
    """Space of rows whose classes are shrunk toward diagonal targets (d,), in the user's units."""
    if not shrinkages.any():
        found = row_space(rows, frame, is_shrunk=False)
    elif not (targets > 0).all() or np.abs(rows).max(initial=0.0) > _EXTREME:
        return None
    else:
        tolerance = np.finfo(float).eps * max(rows.shape)
        found = _spanned(rows, frame, np.sqrt(targets), tolerance)
    return None if found is None else replace(found, class_shrinkages=shrinkages)


def _spanned(rows: Array, frame: Frame, units: Array, tolerance: float) -> RowSpace | None:
    """The frame of the rows has their mean for its origin, exactly where a feature is constant."""
    centered = (rows - frame.origin) / units
    _, lengths, axes = scipy.linalg.svd(centered, full_matrices=False)
    axes = axes[lengths > tolerance * max(lengths[0], 1e-300)]
    varies = np.asarray(centered.any(axis=0))
    basis = np.where(varies[:, None], axes.T, 0.0)
    return RowSpace(frame, frame.origin, units, basis) if len(axes) else None
