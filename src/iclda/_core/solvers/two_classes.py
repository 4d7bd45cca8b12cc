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

from ..types import Array

# t and w are quadratic in b: by b they change by twice what ``turns`` say. Half of everything:
# a Hessian is put together from a half and its transpose.
_BY_TURNS = np.outer([1.0, 2.0, 1.0, 1.0, 2.0], [1.0, 2.0, 1.0, 1.0, 2.0]) / 2


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

    def lie_above(self, points: Array, floor: float) -> bool:
        """Whether both classes have weight, and all eigenvalues of the covariance exceed a floor.

        At a point (2, 1 + rank), or at all of a stack of them.
        """
        at = self._numbers(points)
        if points.ndim == 2:
            return bool(at.q > 0 and at.g > floor * at.q)
        return bool(((at.q > 0) & (at.g > floor * at.q)).all())

    def value(self, point: Array) -> Any:
        """At a point (2, 1 + rank) or a stack of them."""
        return self._value_and_slopes(self._numbers(point))[0]

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """At a point (2, 1 + rank) or a stack of them; the gradient is that of the first class."""
        at = self._numbers(point)
        value, slopes = self._value_and_slopes(at)
        gradient = np.zeros(point.shape)
        gradient[..., 0, 0] = slopes[0]
        by_t, by_x, by_y, by_w = slopes[1:]
        if point.ndim == 2:
            np.dot([2 * by_t, by_x, by_y, 2 * by_w], at.turns, out=gradient[0, 1:])
            return value, gradient
        by_b = gradient[..., 0, 1:]
        by_b += (2 * by_t)[..., None] * at.b
        by_b += (2 * by_w)[..., None] * at.turns
        by_b += np.stack([by_x, by_y], axis=-1) @ self.means
        return value, gradient

    def _numbers(self, point: Array) -> _Numbers:
        """What there is to know of a point, kept of the last one: more will be asked about it."""
        if not self._last or self._last[0].point is not point:
            of = _numbers_of_one if point.ndim == 2 else _numbers_of_many
            self._last[:] = [of(point, self.within, self.means)]
        return self._last[0]

    def _value_and_slopes(self, at: _Numbers) -> tuple[Any, tuple[Any, ...]]:
        """Likelihood, and its derivatives by r, t, x, y and w."""
        if at.known is None:
            at.known = self._value_and_slopes_anew(at)
        return at.known

    def _value_and_slopes_anew(self, at: _Numbers) -> tuple[Any, tuple[Any, ...]]:
        n, m, about_zero = self._sizes
        r, s, t, q, h, keep, log = at.r, at.s, at.t, at.q, at.h, self.keep, at.log
        half, per_g = (n + m) / 2, 1 / at.g
        first, second = n / r, m / s
        p, o = at.x - t / r, at.y + t / s  # how far the labeled means are from the model's, by b
        pull, push = first * p, second * o
        near = first / r + second / s
        spread = about_zero - 2 * (first * at.x - second * at.y) + t * near
        along = (at.w + n * p * p + m * o * o) * per_g
        value = self.constant - half * log(at.g / q) - (spread + along) / (2 * keep)
        by_r = (along * h / 2 - (pull / r + push / s) * q) / keep - half * h * (1 - at.g / q)
        by_r = by_r * per_g
        if self.log_priors is None:
            value = value + n * log(r) + m * log(s)
            by_r = by_r + first - second
        by_t = per_g * (half - (push - pull + along / 2) / keep) - near / (2 * keep)
        by_x = (first - n * p * per_g) / keep
        by_y = -(second + m * o * per_g) / keep
        return value, (by_r, by_t, by_x, by_y, per_g / (-2 * keep))

    def hessian(self, point: Array) -> Array:
        """(1 + rank, 1 + rank): second derivative, the second class balancing the first."""
        at = self._numbers(point)
        slopes, second = self._value_and_slopes(at)[1], self._second_slopes(at)
        second *= _BY_TURNS
        turns = np.zeros((5, 1 + len(at.b)))
        turns[0, 0] = 1
        turns[1:, 1:] = at.turns
        half: Array = turns.T @ (second @ turns)
        half[1:, 1:] += slopes[4] * self.within
        half.ravel()[len(half) + 1 :: len(half) + 1] += slopes[1]
        return half + half.T

    def _second_slopes(self, at: _Numbers) -> Array:
        """(5, 5): second derivatives of the likelihood by r, t, x, y and w."""
        n, m, _ = self._sizes
        r, s, t, g, q, h = at.r, at.s, at.t, at.g, at.q, at.h
        p, o = at.x - t / r, at.y + t / s
        along = at.w + n * p**2 + m * o**2
        pull, push, keep = n * p, m * o, self.keep
        # p, o, along and g by the five numbers, and the likelihood by these four, twice.
        inner = np.array(
            [
                [t / r**2, -1 / r, 1, 0, 0],
                [t / s**2, 1 / s, 0, 1, 0],
                [
                    2 * t * (pull / r**2 + push / s**2),
                    2 * (push / s - pull / r),
                    2 * pull,
                    2 * push,
                    1,
                ],
                [h, -1, 0, 0, 0],
            ]
        )
        outer = np.zeros((4, 4))
        outer[0, 0], outer[1, 1] = -n / (keep * g), -m / (keep * g)
        outer[2, 3] = outer[3, 2] = 1 / (2 * keep * g**2)
        outer[3, 3] = ((n + m) / 2 - along / (keep * g)) / g**2
        found: Array = inner.T @ outer @ inner
        # What bends by itself: r and t enter p, o, g, q and the squared distances nonlinearly.
        far = n * (6 * t / r - 4 * at.x) / r**3 + m * (6 * t / s + 4 * at.y) / s**3
        far += (4 * t * (push / s**3 - pull / r**3) + 2 * along / g) / g
        by_r = (n + m) / 2 * (2 / g - 2 / q - (h / q) ** 2) - far / (2 * keep)
        if self.log_priors is None:
            by_r -= n / r**2 + m / s**2
        by_t = n / r**3 - m / s**3 - (pull / r**2 + push / s**2) / g
        mixed = [by_t / keep, -n / (keep * r**2), -m / (keep * s**2)]
        found[0, 0] += by_r
        found[0, 1:4] += mixed
        found[1:4, 0] += mixed
        return found


@dataclass
class _Numbers:
    """What the likelihood sees of a point: floats, or arrays for a stack of points."""

    point: Array
    b: Array
    turns: Array  # W b; at one point (4, rank): b, m_1, m_2 and W b
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


def _numbers_of_one(point: Array, within: Array, means: Array) -> _Numbers:
    """In plain floats: arrays of one number cost ten times as much."""
    b = point[0, 1:]
    turns = np.empty((4, len(b)))
    turns[0], turns[1:3] = b, means
    np.dot(b, within, out=turns[3])
    t, x, y, w = np.dot(turns, b).tolist()
    r = float(point[0, 0])
    q = r * (1 - r)
    return _Numbers(point, b, turns, r, t, x, y, w, 1 - r, q, q - t, 1 - 2 * r, math.log)


def _numbers_of_many(points: Array, within: Array, means: Array) -> _Numbers:
    r, b = points[..., 0, 0], points[..., 0, 1:]
    scattered, along = b @ within, b @ means.T
    t = np.einsum("...d,...d->...", b, b)
    w = np.einsum("...d,...d->...", b, scattered)
    x, y = along[..., 0], along[..., 1]
    q = r * (1 - r)
    return _Numbers(points, b, scattered, r, t, x, y, w, 1 - r, q, q - t, 1 - 2 * r, np.log)
