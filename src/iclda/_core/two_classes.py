"""Likelihood of the labeled rows for two classes, in closed form.

With r and b those of the first class, q = r (1 - r) and t = b'b the covariance is I - b b' / q, and
the likelihood depends on b through four numbers only: t, x = b'm_1, y = b'm_2 and w = b'W b, where
m_k are the class means of the labeled rows and W their scatter within classes. Value, gradient and
Hessian follow from the derivatives of a function of five numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
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
    _last: list[_Numbers] = field(default_factory=list, compare=False, repr=False)

    @cached_property
    def _sizes(self) -> tuple[float, float, float]:
        """Weights of both classes, and what their spread about zero is."""
        first, second = self.counts.tolist()
        about_zero = np.trace(self.within) + self.counts @ (self.means**2).sum(axis=1)
        return first, second, float(about_zero)

    def smallest_eigenvalue(self, point: Array) -> float:
        """Of the covariance at one point; minus infinity where a class has no weight."""
        at = self._numbers(point)
        return at.g / at.q if at.r > 0 and at.s > 0 else -math.inf

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """At a point (2, 1 + rank) or a stack of them; the gradient is that of the first class."""
        at = self._numbers(point)
        value, slopes = self._value_and_slopes(at)
        gradient = np.zeros(point.shape)
        gradient[..., 0, 0] = slopes[0]
        by_t, by_x, by_y, by_w = slopes[1:]
        if at.b.ndim > 1:
            by_t, by_x, by_y, by_w = (slope[..., None] for slope in slopes[1:])
        gradient[..., 0, 1:] = (
            2 * by_t * at.b + by_x * self.means[0] + by_y * self.means[1] + 2 * by_w * at.scattered
        )
        return value, gradient

    def _numbers(self, point: Array) -> _Numbers:
        """What there is to know of a point, kept of the last one: more will be asked about it."""
        if self._last and self._last[0].point is point:
            return self._last[0]
        found = _Numbers.of(point, self.within, self.means)
        if point.ndim == 2:
            self._last[:] = [found]
        return found

    def _value_and_slopes(self, at: _Numbers) -> tuple[Any, tuple[Any, ...]]:
        """Likelihood, and its derivatives by r, t, x, y and w."""
        if at.known is None:
            at.known = self._value_and_slopes_anew(at)
        return at.known

    def _value_and_slopes_anew(self, at: _Numbers) -> tuple[Any, tuple[Any, ...]]:
        n, m, about_zero = self._sizes
        r, s, t, g, keep, log = at.r, at.s, at.t, at.g, self.keep, at.log
        half = (n + m) / 2
        p, o = at.x - t / r, at.y + t / s  # how far the labeled means are from the model's, by b
        pulls, near = n * p / r**2 + m * o / s**2, n / r**2 + m / s**2
        spread = about_zero - 2 * n * at.x / r + 2 * m * at.y / s + t * near
        along = (at.w + n * p**2 + m * o**2) / g
        value = -half * log(g / at.q) - (spread + along) / (2 * keep) + self.constant
        by_r = -half * at.h * (1 / g - 1 / at.q) - (pulls * at.q - along * at.h / 2) / (g * keep)
        if self.log_priors is None:
            value = value + n * log(r) + m * log(s)
            by_r = by_r + n / r - m / s
        by_t = half / g - (near + (2 * (m * o / s - n * p / r) + along) / g) / (2 * keep)
        by_x = n / keep * (1 / r - p / g)
        by_y = -m / keep * (1 / s + o / g)
        return value, (by_r, by_t, by_x, by_y, -1 / (2 * keep * g))

    def hessian(self, point: Array) -> Array:
        """(1 + rank, 1 + rank): second derivative, the second class balancing the first."""
        at = self._numbers(point)
        b, scattered, slopes = at.b, at.scattered, self._value_and_slopes(at)[1]
        second = np.array(self._second_slopes(at))
        turns = np.empty((4, len(b)))
        turns[0], turns[1:3], turns[3] = 2 * b, self.means, 2 * scattered
        hessian = np.empty((1 + len(b), 1 + len(b)))
        hessian[0, 0] = second[0, 0]
        hessian[0, 1:] = hessian[1:, 0] = second[0, 1:] @ turns
        bent = turns.T @ (second[1:, 1:] @ turns) / 2 + slopes[4] * self.within
        bent.ravel()[:: len(b) + 1] += slopes[1]
        np.add(bent, bent.T, out=hessian[1:, 1:])
        return hessian

    def _second_slopes(self, at: _Numbers) -> list[list[float]]:
        """(5, 5): second derivatives of the likelihood by r, t, x, y and w."""
        n, m, _ = self._sizes
        r, s, t, g, q, h = at.r, at.s, at.t, at.g, at.q, at.h
        p, o = at.x - t / r, at.y + t / s
        along = at.w + n * p**2 + m * o**2
        by_p, by_o = (t / r**2, -1 / r, 1.0, 0.0, 0.0), (t / s**2, 1 / s, 0.0, 1.0, 0.0)
        by_g = (h, -1.0, 0.0, 0.0, 0.0)
        by_along = [2 * (n * p * by_p[i] + m * o * by_o[i]) for i in range(5)]
        by_along[4] = 1.0
        found = [[0.0] * 5 for _ in range(5)]
        for i in range(5):
            for j in range(i, 5):
                of_along = 2 * (n * by_p[i] * by_p[j] + m * by_o[i] * by_o[j])
                ratio = of_along - (by_along[i] * by_g[j] + by_along[j] * by_g[i]) / g
                ratio = (ratio + 2 * along * by_g[i] * by_g[j] / g**2) / g
                bend = (n + m) / 2 * by_g[i] * by_g[j] / g**2 - ratio / (2 * self.keep)
                found[i][j] = found[j][i] = bend
        # What bends by itself: r and t enter p, o, g, q and the squared distances nonlinearly.
        pulls = n * p / r**2 + m * o / s**2
        far = n * (6 * t / r - 4 * at.x) / r**3 + m * (6 * t / s + 4 * at.y) / s**3
        far += (4 * t * (m * o / s**3 - n * p / r**3) + 2 * along / g) / g
        found[0][0] += (n + m) / 2 * (2 / g - 2 / q - (h / q) ** 2) - far / (2 * self.keep)
        for j, extra in (
            (1, 2 * m / s**3 - 2 * n / r**3 + 2 * pulls / g),
            (2, 2 * n / r**2),
            (3, 2 * m / s**2),
        ):
            found[0][j] -= extra / (2 * self.keep)
            found[j][0] = found[0][j]
        if self.log_priors is None:
            found[0][0] -= n / r**2 + m / s**2
        return found


@dataclass
class _Numbers:
    """What the likelihood sees of a point: floats, or arrays for a stack of points."""

    point: Array
    b: Array
    scattered: Array  # W b
    r: Any
    t: Any  # b'b
    x: Any  # b'm_1
    y: Any  # b'm_2
    w: Any  # b'W b
    s: Any  # 1 - r
    q: Any  # r s
    g: Any  # q - t
    h: Any  # derivative of q by r
    log: Callable[[Any], Any]
    known: tuple[Any, tuple[Any, ...]] | None = None  # value and slopes, once they were asked for

    @classmethod
    def of(cls, point: Array, within: Array, means: Array) -> _Numbers:
        r: Any
        b = point[..., 0, 1:]
        scattered = b @ within
        if b.ndim == 1:  # plain floats: arrays of one number cost ten times as much
            r, t, w = float(point[0, 0]), float(b @ b), float(b @ scattered)
            x, y = (means @ b).tolist()
            log: Callable[[Any], Any] = math.log
        else:
            r, t = point[..., 0, 0], np.einsum("...d,...d->...", b, b)
            w = np.einsum("...d,...d->...", b, scattered)
            along = b @ means.T
            x, y = along[..., 0], along[..., 1]
            log = np.log
        s = 1 - r
        q = r * s
        return cls(point, b, scattered, r, t, x, y, w, s, q, q - t, 1 - 2 * r, log)
