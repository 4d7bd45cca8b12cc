"""The units the core computes in: one shared origin and one scale per feature.

Frame coordinates are ``u = (x - origin) / scale``. Second moments about zero lose the
variance to rounding once the data sit far from it (offset 1e6: relative error 2e-3
instead of 2e-16), and squares overflow at 1e154: hence one origin and one scale, chosen
from a sample before any sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import AnyArray, Array

# Folding the origin into an intercept costs about as many digits as |origin| / scale
# has: a frame is folded only up to this offset ...
_MAX_FOLDABLE_OFFSET = 1e3
# ... and only if its scales lie within this factor of 1, so that no product overflows.
_MAX_FOLDABLE_SCALE = 1e100
# Rows with fewer features than this are transposed before columns are compared.
_SHORT_ROW_FEATURES = 64
# Powers of two beyond this one are not used as scales: their inverses stay exact.
_MAX_SCALE_EXPONENT = 1000
# Standard deviations of columns for which variances, ratios of variances and variances
# times weights all stay finite.
SMALLEST_SPREAD = 1e-50
LARGEST_SPREAD = 1e50


@dataclass(frozen=True)
class Frame:
    """Origin and scale of every feature. Scales are powers of two: scaling is exact."""

    origin: Array
    scale: Array

    @property
    def is_foldable(self) -> bool:
        """Whether linear rules may be applied to raw rows without losing digits."""
        offset = np.max(np.abs(self.origin / self.scale), initial=0.0)
        log_scale = np.max(np.abs(np.log(self.scale)), initial=0.0)
        is_near = offset <= _MAX_FOLDABLE_OFFSET
        return bool(is_near and log_scale <= np.log(_MAX_FOLDABLE_SCALE))

    def apply(self, rows: AnyArray) -> Array:
        """Return rows in frame coordinates (a copy, float64)."""
        u = np.subtract(rows, self.origin, dtype=np.float64)
        # Multiplying by the inverse is several times faster than dividing, and exact,
        # because scales are powers of two within the range of their inverses.
        u *= 1 / self.scale
        return u

    def restore(self, u: Array) -> Array:
        """Return rows in the user's units."""
        return u * self.scale + self.origin


def frame_of(sample: AnyArray) -> Frame:
    """Return a frame: the mean of a sample, its largest deviation as a power of two."""
    sample = np.asarray(sample, dtype=np.float64)
    columns = sample.T
    if sample.shape[1] < _SHORT_ROW_FEATURES:
        # NumPy compares a few long rows several times faster than many short ones.
        columns = np.ascontiguousarray(columns)
    lowest = columns.min(axis=1)
    highest = columns.max(axis=1)

    # Halving first keeps the mean of entries near the largest float finite. Clipping
    # gives a constant column its exact value, so that its deviations are exactly zero.
    half_weights = np.full(len(sample), 0.5 / len(sample))
    half_mean = np.dot(half_weights, sample)
    origin = np.minimum(np.maximum(2 * half_mean, lowest), highest)

    half_spread = np.maximum(highest / 2 - origin / 2, origin / 2 - lowest / 2)
    exponent = np.frexp(half_spread)[1] + 1
    exponent = np.maximum(exponent, -_MAX_SCALE_EXPONENT)
    exponent = np.minimum(exponent, _MAX_SCALE_EXPONENT)
    return Frame(origin, np.ldexp(1.0, exponent))


def mean_variance_in_frame(
    covariance: Array, frame: Frame, n_constant: int = 0
) -> Array:
    """Return the mean variance of the features, in the squared frame unit of each (d,).

    ``n_constant`` further features do not vary.
    """
    return np.asarray(mean_variances(np.diag(covariance), frame.scale, n_constant, np))


def mean_variances(variances: Any, scale: Any, n_constant: int, xp: Any) -> Any:
    """Return the mean of the variances (..., d) in the frame unit of each feature.

    ``scale`` (d,) and the variances are arrays of the library ``xp``.
    """
    deviations = xp.sqrt(xp.clip(variances, 0, None)) * scale
    # Divide before squaring: squares in the user's units may overflow, ratios do not.
    ratios = deviations[..., :, None] / scale
    total = xp.sum(ratios**2, axis=-2)
    return total / (variances.shape[-1] + n_constant)
