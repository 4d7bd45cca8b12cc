"""Likelihood of the labeled rows for two classes, in closed form.

With r and b those of the first class, s = 1 - r, q = r s and t = b'b the covariance is I - b b' / q,
and the likelihood depends on b through four numbers only: t, x = (b'm_1, b'm_2) and w = b'W b, where
m_k are the class means of the labeled rows and W their scatter within classes. Value, gradient and
Hessian follow from the derivatives of a function of five numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .types import Array


@dataclass(frozen=True)
class TwoClasses:
    """What the likelihood needs to know of the labeled rows of two classes."""

    counts: Array  # (2,)
    means: Array  # (2, rank)
    within: Array  # (rank, rank)
    log_priors: Array | None
    keep: float  # 1 - shrinkage
    constant: float  # all that does not depend on the point

    @cached_property
    def _sizes(self) -> tuple[float, float, float]:
        """Weights of both classes, and what their spread about zero is."""
        first, second = self.counts.tolist()
        about_zero = np.trace(self.within) + self.counts @ (self.means**2).sum(axis=1)
        return first, second, float(about_zero)

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """At a point (2, 1 + rank) or a stack of them; the gradient is that of the first class."""
        b = point[..., 0, 1:]
        scattered = b @ self.within
        numbers = _Numbers.of(point, b, scattered, self.means)
        value, slopes = self._value_and_slopes(numbers)
        gradient = np.zeros(point.shape)
        gradient[..., 0, 0] = slopes[0]
        by_t, by_x, by_y, by_w = (np.asarray(slope)[..., None] for slope in slopes[1:])
        gradient[..., 0, 1:] = (
            2 * by_t * b + by_x * self.means[0] + by_y * self.means[1] + 2 * by_w * scattered
        )
        return value, gradient

    def _value_and_slopes(self, at: _Numbers) -> tuple[Any, tuple[Any, ...]]:
        """Likelihood, and its derivatives by r, t, x, y and w."""
        n, m, about_zero = self._sizes
        r, s, t, g, keep = at.r, at.s, at.t, at.g, self.keep
        weight = n + m
        p, o = at.x - t / r, at.y + t / s  # distances of the labeled means from the model's, by b
        spread = about_zero - 2 * n * at.x / r + 2 * m * at.y / s + t * (n / r**2 + m / s**2)
        along = at.w + n * p**2 + m * o**2
        value = -weight / 2 * np.log(g / at.q) - (spread + along / g) / (2 * keep) + self.constant
        by_r = (
            -weight / 2 * at.h * (1 / g - 1 / at.q)
            - (n * p / r**2 + m * o / s**2) / keep
            - (n * p / r**2 + m * o / s**2) * t / g / keep
            + along * at.h / g**2 / (2 * keep)
        )
        if self.log_priors is None:
            value = value + n * np.log(r) + m * np.log(s)
            by_r = by_r + n / r - m / s
        by_t = weight / (2 * g) - (
            n / r**2 + m / s**2 + 2 * (m * o / s - n * p / r) / g + along / g**2
        ) / (2 * keep)
        by_x = n / keep * (1 / r - p / g)
        by_y = -m / keep * (1 / s + o / g)
        return value, (by_r, by_t, by_x, by_y, -1 / (2 * keep * g))

    def hessian(self, point: Array) -> Array:
        """(1 + rank, 1 + rank): second derivative, the second class balancing the first."""
        b = point[0, 1:]
        scattered = b @ self.within
        numbers = _Numbers.of(point, b, scattered, self.means)
        slopes = self._value_and_slopes(numbers)[1]
        second = self._second_slopes(numbers)
        turns = np.array([2 * b, self.means[0], self.means[1], 2 * scattered])
        hessian = np.empty((1 + len(b), 1 + len(b)))
        hessian[0, 0] = second[0, 0]
        hessian[0, 1:] = hessian[1:, 0] = second[0, 1:] @ turns
        bent = turns.T @ (second[1:, 1:] @ turns) / 2 + slopes[4] * self.within
        hessian[1:, 1:] = bent + bent.T
        hessian[np.arange(1, 1 + len(b)), np.arange(1, 1 + len(b))] += 2 * slopes[1]
        return hessian

    def _second_slopes(self, at: _Numbers) -> Array:
        """(5, 5): second derivatives of the likelihood by r, t, x, y and w."""
        n, m, _ = self._sizes
        r, s, t, g, q, h, keep = at.r, at.s, at.t, at.g, at.q, at.h, self.keep
        p, o = at.x - t / r, at.y + t / s
        by_p = np.array([t / r**2, -1 / r, 1.0, 0.0, 0.0])
        by_o = np.array([t / s**2, 1 / s, 0.0, 1.0, 0.0])
        by_g = np.array([h, -1.0, 0.0, 0.0, 0.0])
        along = at.w + n * p**2 + m * o**2
        by_along = 2 * n * p * by_p + 2 * m * o * by_o
        by_along[4] = 1
        second = 2 * n * np.outer(by_p, by_p) + 2 * m * np.outer(by_o, by_o)
        second[0, 0] += 4 * t * (m * o / s**3 - n * p / r**3)
        second[0, 1] += 2 * (n * p / r**2 + m * o / s**2)
        second[1, 0] = second[0, 1]
        cross = np.outer(by_along, by_g)
        ratio = second / g - (cross + cross.T) / g**2 + 2 * along / g**3 * np.outer(by_g, by_g)
        ratio[0, 0] += 2 * along / g**2
        spread = self._second_of_spread(at)
        weight = n + m
        volume = -np.outer(by_g, by_g) / g**2
        volume[0, 0] += -2 / g + 2 / q + h**2 / q**2
        found = -weight / 2 * volume - (spread + ratio) / (2 * keep)
        if self.log_priors is None:
            found[0, 0] -= n / r**2 + m / s**2
        return np.asarray(found)

    def _second_of_spread(self, at: _Numbers) -> Array:
        """Second derivatives of the squared distances between labeled means and the model's."""
        n, m, _ = self._sizes
        r, s, t = at.r, at.s, at.t
        spread = np.zeros((5, 5))
        spread[0, 0] = n * (6 * t / r - 4 * at.x) / r**3 + m * (6 * t / s + 4 * at.y) / s**3
        spread[0, 1] = spread[1, 0] = 2 * m / s**3 - 2 * n / r**3
        spread[0, 2] = spread[2, 0] = 2 * n / r**2
        spread[0, 3] = spread[3, 0] = 2 * m / s**2
        return spread


@dataclass(frozen=True)
class _Numbers:
    """What the likelihood sees of a point: floats, or arrays for a stack of points."""

    r: Any
    t: Any  # b'b
    x: Any  # b'm_1
    y: Any  # b'm_2
    w: Any  # b'W b
    s: Any  # 1 - r
    q: Any  # r s
    g: Any  # q - t
    h: Any  # derivative of q by r

    @classmethod
    def of(cls, point: Array, b: Array, scattered: Array, means: Array) -> _Numbers:
        if b.ndim == 1:  # plain floats: arrays of one number cost ten times as much
            r, t, w = float(point[0, 0]), float(b @ b), float(b @ scattered)
            x, y = (means @ b).tolist()
        else:
            r, t = point[..., 0, 0], np.einsum("...d,...d->...", b, b)
            w = np.einsum("...d,...d->...", b, scattered)
            along = b @ means.T
            x, y = along[..., 0], along[..., 1]
        s = 1 - r
        return cls(r, t, x, y, w, s, r * s, r * s - t, 1 - 2 * r)
