"""The units the core computes in: one shared origin and one scale per feature.

Frame coordinates are ``u = (x - origin) / scale``. Second moments about zero lose the variance to
rounding once the data sit far from it (offset 1e6: relative error 2e-3 instead of 2e-16), and
squares overflow at 1e154: hence one origin and one scale, chosen from a sample before any sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import AnyArray, Array

# Folding the origin into the intercept costs about as many digits as |origin| / scale has.
_FOLDABLE_OFFSET = 1e3
_FOLDABLE_SCALE = 1e100
_SHORT_ROW = 64  # features
# Standard deviations of columns: variances, their ratios and these times weights stay finite.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-50, 1e50


@dataclass(frozen=True)
class Frame:
    """Origin and scale (powers of two, so that scaling is exact) of every feature."""

    origin: Array
    scale: Array

    @property
    def is_foldable(self) -> bool:
        """Whether linear rules may be applied to raw rows without losing digits."""
        offset = np.max(np.abs(self.origin / self.scale), initial=0.0)
        extreme = np.max(np.abs(np.log(self.scale)), initial=0.0)
        return bool(offset <= _FOLDABLE_OFFSET and extreme <= np.log(_FOLDABLE_SCALE))

    def apply(self, rows: AnyArray) -> Array:
        """Rows in frame coordinates (a copy, float64)."""
        u = np.subtract(rows, self.origin, dtype=np.float64)
        # Several times faster than to divide, and exact: no scale lies beyond 2^1000.
        u *= 1 / self.scale
        return u

    def restore(self, u: Array) -> Array:
        """Return rows in the user's units."""
        return u * self.scale + self.origin


def frame_of(sample: AnyArray) -> Frame:
    """Return the frame of a sample: its mean, and the largest deviation as a power of two."""
    sample = np.asarray(sample, dtype=np.float64)
    # NumPy compares a few long rows several times faster than many short ones.
    columns = (
        np.ascontiguousarray(sample.T) if sample.shape[1] < _SHORT_ROW else sample.T
    )
    low, high = columns.min(axis=1), columns.max(axis=1)
    # Halving first keeps the mean of entries near the largest float finite; a column that is
    # constant keeps its exact value, so that its deviations are exactly zero.
    half_mean = np.dot(np.full(len(sample), 0.5 / len(sample)), sample)
    origin = np.minimum(np.maximum(2 * half_mean, low), high)
    half_spread = np.maximum(high / 2 - origin / 2, origin / 2 - low / 2)
    exponent = np.minimum(np.maximum(np.frexp(half_spread)[1] + 1, -1000), 1000)
    return Frame(origin, np.ldexp(1.0, exponent))


def mean_variance_in_frame(
    covariance: Array, frame: Frame, n_constant: int = 0
) -> Array:
    """Return the mean variance of the features, in the squared frame units of each feature (d,).

    ``n_constant`` further features do not vary.
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0)) * frame.scale
    # Ratios first: squares of the user's units may overflow where those of ratios do not.
    total = ((deviations[:, None] / frame.scale) ** 2).sum(axis=0)
    return np.asarray(total / (len(deviations) + n_constant))
