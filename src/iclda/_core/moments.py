"""Count, mean and scatter of rows: additive, so that any split of the rows gives the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .frame import Frame
from .types import Array

# Squared mean over variance, of any feature, up to which sums from zero keep their digits: tried
# where the first rows lie well within it.
_FAR_FROM_ZERO, _NEAR_ZERO = 100.0, 10.0


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
        """With all weights multiplied."""
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
            self.weight + other.weight, self.sums + other.sums, self.squares + other.squares
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
    return SumsFromZero(float(len(rows)), np.dot(np.ones(len(rows)), rows), np.dot(rows.T, rows))


def is_near_zero(rows: Array, frame: Frame) -> bool:
    """Whether some rows suggest that all of them can be summed from zero."""
    if len(rows) < 2 or not frame.is_foldable:
        return False
    mean = rows.mean(axis=0) / frame.scale
    variance = ((rows / frame.scale - mean) ** 2).mean(axis=0)
    return bool(np.all(mean**2 <= _NEAR_ZERO * variance))
