"""Log likelihood of the labeled rows as a function of the point (r, B), and its derivatives.

A point is an array (..., K, 1 + rank): class weight r_k, then class sum b_k of z, both over N.
All functions take stacks of points. Notation and formulas: docs/notation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .types import AnyArray, Array
from .whitening import factor

# Smallest eigenvalue allowed to I - B D^-1 B': below it the likelihood counts as unbounded.
FLOOR = 1e-10
_CLEAR = 1e-6  # so far from 0 a closed form, good to 1e-8, does for eigenvalues
_MANY = 32  # classes from which no K x K matrix is formed, if dimensions are fewer
_FEW = 6  # points that are evaluated faster one by one than as a stack
# Factors of the derivatives by b: t and w are quadratic in b, hence 2. Halved, because the Hessian
# is the sum of a matrix and its transpose.
_BY_TURNS = np.outer([1.0, 2.0, 1.0, 1.0, 2.0], [1.0, 2.0, 1.0, 1.0, 2.0]) / 2


@dataclass(frozen=True)
class LabeledLikelihood:
    """What the likelihood of the labeled rows needs to know of them, in whitened coordinates."""

    counts: Array  # (K,) class weights n_k
    means: Array  # (K, rank)
    within: Array  # (rank, rank) scatter about the class means
    log_priors: Array | None  # (K,) when fixed by the user
    shrinkage: float  # Sigma = (1 - shrinkage) (I - B D^-1 B')
    constant: float  # per unit of labeled weight: 2 pi and the change of units
    _last: list[tuple[Array, _Parts]] = field(default_factory=list, compare=False, repr=False)

    @cached_property
    def weight(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def _trace_within(self) -> float:
        return float(np.trace(self.within))

    @cached_property
    def _two(self) -> _TwoClasses:
        keep, rank = 1 - self.shrinkage, self.means.shape[1]
        constant = self.weight * (self.constant - rank * np.log(keep) / 2)
        if self.log_priors is not None:
            constant += float(self.counts @ self.log_priors)
        return _TwoClasses(
            self.counts, self.means, self.within, self.log_priors, keep, float(constant)
        )

    def is_bounded(self, point: Array) -> bool:
        """Whether the covariance at a point is above its floor."""
        return is_above_floor(point)

    def value(self, point: Array) -> Array:
        """Log likelihood, minus infinity at the floor."""
        if len(self.counts) == 2 and self._two.lie_above(point, FLOOR):
            return np.asarray(self._two.value(point))
        is_floored, lifted = _above_floor(point)
        if len(self.counts) == 2:
            value = self._two.value(lifted)
        else:
            value = self._value(_Parts(self, lifted))
        return np.where(is_floored, -np.inf, value)

    def value_and_gradient(self, point: Array) -> tuple[Array, Array]:
        """Log likelihood, minus infinity at the floor, and gradient with respect to the point.

        The gradient matters up to a shift common to all classes.
        """
        if len(self.counts) == 2 and point.ndim == 3 and 0 < len(point) <= _FEW:
            values, gradients = zip(*map(self.value_and_gradient, point), strict=True)
            return np.array(values), np.array(gradients)
        if len(self.counts) == 2 and self._two.lie_above(point, FLOOR):
            return self._two.value_and_gradient(point)
        if len(self.counts) > 2 and point.ndim == 2:
            core = _safe_inverse_and_log_det(point)
            if core is not None:
                parts = _Parts(self, point, core)
                self._last[:] = [(point, parts)]  # for the Hessian
                return self._value(parts), parts.gradient()
        is_floored, lifted = _above_floor(point)
        if len(self.counts) == 2:
            value, gradient = self._two.value_and_gradient(lifted)
        else:
            parts = _Parts(self, lifted)
            value, gradient = self._value(parts), parts.gradient()
        return np.where(is_floored, -np.inf, value) if is_floored.any() else value, gradient

    def hessian(self, point: Array) -> Array:
        """Second derivative with respect to all classes but the last, whose row balances them."""
        if len(self.counts) == 2:
            return self._two.hessian(point)
        return hessian_of(self.hessian_product(point), point.shape)

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        """Maps directions (..., K, 1 + rank), whose classes balance, to changes of the gradient."""
        if len(self.counts) == 2:
            hessian = self._two.hessian(point)

            def change(direction: Array) -> Array:
                first = direction[..., 0, :] @ hessian
                return np.stack([first, np.zeros_like(first)], axis=-2)

            return change
        is_known = bool(self._last) and self._last[0][0] is point
        return (self._last[0][1] if is_known else _Parts(self, point)).change_of_gradient

    def _value(self, parts: _Parts) -> Array:
        r, b, keep = parts.r, parts.b, 1 - self.shrinkage
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        distances = (parts.pulled * parts.deviations).sum(axis=(-2, -1))
        spread = self._trace_within + distances + np.einsum("...kd,...kd->...", b, parts.scattered)
        log_det = parts.log_det_core - np.log(r).sum(axis=-1)
        return np.asarray(
            (self.counts * log_priors).sum(axis=-1)
            - self.weight / 2 * (log_det + b.shape[-1] * np.log(keep))
            - spread / (2 * keep)
            + self.weight * self.constant
        )


@dataclass(frozen=True)
class _TwoClasses:
    """Likelihood of the labeled rows of two classes, in closed form.

    With r and b those of the first class, q = r (1 - r) and t = b'b the covariance is I - b b' / q,
    and the likelihood depends on b through four numbers only: t, x = b'm_1, y = b'm_2 and
    w = b'W b, where m_k are the class means of the labeled rows and W their scatter within classes.
    Value, gradient and Hessian follow from the derivatives of a function of five numbers.
    """

    counts: Array  # (2,)
    means: Array  # (2, rank)
    within: Array  # (rank, rank)
    log_priors: Array | None
    keep: float  # 1 - shrinkage
    constant: float  # all that does not depend on the point
    _last: list[_Numbers] = field(default_factory=list, compare=False, repr=False)

    @cached_property
    def _sizes(self) -> tuple[float, float, float]:
        """Weights of both classes, and the trace of the scatter about zero."""
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
        """Numbers of a point; those of the last point are kept for the Hessian."""
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
    known: tuple[Any, tuple[Any, ...]] | None = None  # value and slopes, once computed


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


class _Parts:
    """Shared pieces of value, gradient and Hessian at a point or a stack of points."""

    def __init__(
        self,
        labeled: LabeledLikelihood,
        point: Array,
        core: tuple[Array | TallInverse, Any] | None = None,
    ) -> None:
        self.labeled = labeled
        self.r, self.b = point[..., 0], point[..., 1:]
        self.mu = self.b / self.r[..., None]
        self.deviations = labeled.means - self.mu
        self.pulled = labeled.counts[:, None] * self.deviations
        # Rows of `precise` are M^-1 mu_k: with M = I - B D^-1 B', M^-1 B D^-1 = B (D - B'B)^-1.
        found: tuple[Array | TallInverse, Any] = core or _core_inverse_and_log_det(point)
        self.core_inverse, self.log_det_core = found
        self.precise = self.core_inverse @ self.b
        # Rows of `scattered` are S v_k, S the scatter of the labeled rows about the mu_k.
        self.scattered = self.precise @ labeled.within + cheaper_product(
            self.precise, _transposed(self.pulled), self.deviations
        )

    def _solve(self, rows: Array) -> Array:
        """M^-1 applied to rows: M^-1 = I + B (D - B'B)^-1 B'."""
        return np.asarray(rows + cheaper_product(rows, _transposed(self.b), self.precise))

    @cached_property
    def e(self) -> Array:
        return self._solve(self.pulled) / (1 - self.labeled.shrinkage)

    @cached_property
    def g_mu(self) -> Array:
        keep = 1 - self.labeled.shrinkage
        return self._solve(self.scattered) / (2 * keep) - self.labeled.weight / 2 * self.precise

    def gradient(self) -> Array:
        r, mu = self.r, self.mu
        beta = self.e / r[..., None] - 2 * self.g_mu
        alpha = (mu * self.g_mu).sum(axis=-1) - (mu * self.e).sum(axis=-1) / r
        if self.labeled.log_priors is None:
            alpha = alpha + self.labeled.counts / r
        return np.concatenate([alpha[..., None], beta], axis=-1)

    def change_of_gradient(self, direction: Array) -> Array:
        """Derivative of the gradient along directions (..., K, 1 + rank)."""
        labeled, r, b, mu, keep = self.labeled, self.r, self.b, self.mu, 1 - self.labeled.shrinkage
        dr, db = direction[..., 0], direction[..., 1:]
        per_r = (1 / r)[:, None]
        dmu = (db - mu * dr[..., None]) * per_r
        dpulled = -labeled.counts[:, None] * dmu
        # The core matrix changes by diag(dr) - db b' - b db'.
        dcored = dr[..., None] * self.precise - cheaper_product(db, b.T, self.precise)
        dcored -= cheaper_product(b, _transposed(db), self.precise)
        dprecise = self.core_inverse @ (db - dcored)
        dscattered = dprecise @ labeled.within + cheaper_product(
            dprecise, self.pulled.T, self.deviations
        )
        dscattered += cheaper_product(self.precise, _transposed(dpulled), self.deviations)
        dscattered -= cheaper_product(self.precise, self.pulled.T, dmu)

        def dsolve(rows: Array, drows: Array) -> Array:
            seen = cheaper_product(drows, b.T, self.precise) + cheaper_product(rows, b.T, dprecise)
            return np.asarray(drows + seen + cheaper_product(rows, _transposed(db), self.precise))

        de = dsolve(self.pulled, dpulled) / keep
        dg = dsolve(self.scattered, dscattered) / (2 * keep) - labeled.weight / 2 * dprecise
        found = np.empty(direction.shape)
        found[..., 1:] = (de - self.e * (dr / r)[..., None]) * per_r - 2 * dg
        along = (mu * self.e).sum(axis=-1) / r
        found[..., 0] = (dmu * self.g_mu + mu * dg).sum(axis=-1)
        found[..., 0] += (along * dr - (dmu * self.e + mu * de).sum(axis=-1)) / r
        if labeled.log_priors is None:
            found[..., 0] -= labeled.counts * dr / r**2
        return found


def hessian_of(product: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """Dense second derivative, the last class balancing the others, from products with it."""
    n_classes, width = shape
    size = (n_classes - 1) * width
    directions = np.zeros((size, n_classes, width))
    directions[:, :-1] = np.eye(size).reshape(size, n_classes - 1, width)
    directions[:, -1] = -directions[:, :-1].sum(axis=1)
    changes = product(directions)
    found = (changes[:, :-1] - changes[:, -1:]).reshape(size, size)
    return np.asarray((found + found.T) / 2)


def _transposed(rows: Array) -> Array:
    return np.swapaxes(rows, -1, -2)


def _above_floor(point: Array) -> tuple[AnyArray, Array]:
    """Which points are at the floor or below, and points moved just above it, if need be."""
    is_floored = ~(smallest_eigenvalue(point) > FLOOR)
    if not is_floored.any():
        return is_floored, point
    lifted = point.copy()
    # Outside the set of all points a class may have no weight at all.
    lifted[..., 0] = np.maximum(lifted[..., 0], FLOOR)
    lifted[..., 0] /= lifted[..., 0].sum(axis=-1, keepdims=True)
    eigenvalue = smallest_eigenvalue(lifted)
    shrink = np.sqrt((1 - 2 * FLOOR) / (1 - np.minimum(eigenvalue, 2 * FLOOR)))
    lifted[..., 1:] *= shrink[..., None, None]
    return is_floored, lifted


def _core_matrix(point: Array) -> Array:
    """D - B'B: (K, K)."""
    r, b = point[..., 0], point[..., 1:]
    core = -(b @ _transposed(b))
    each = np.arange(r.shape[-1])
    core[..., each, each] += r
    return core


def cheaper_product(rows: Array, columns: Array, other: Array) -> Array:
    """rows @ columns @ other, of K x d, d x K and K x d, by the smaller of K x K and d x d."""
    if rows.shape[-2] <= max(_MANY, rows.shape[-1]):
        return np.asarray((rows @ columns) @ other)
    return np.asarray(rows @ (columns @ other))


@dataclass(frozen=True)
class TallInverse:
    """(D - B'B)^-1 = D^-1 + mu M^-1 mu', without a matrix of order K x K."""

    r: Array  # (..., K)
    mu: Array  # (..., K, rank)
    precise: Array  # (..., K, rank): mu M^-1

    def __matmul__(self, rows: Array) -> Array:
        return np.asarray(rows / self.r[..., None] + self.precise @ (_transposed(self.mu) @ rows))

    def diagonal(self) -> Array:
        return np.asarray(1 / self.r + (self.mu * self.precise).sum(axis=-1))

    def squares_product(self, dr: Array) -> Array:
        """dr @ (all entries squared), at one point."""
        within = (self.mu.T * dr[..., None, :]) @ self.mu
        own = (self.mu * self.precise).sum(axis=-1)
        crossed = ((self.precise @ within) * self.precise).sum(axis=-1)
        return np.asarray(crossed + dr * (self.diagonal() ** 2 - own**2))


def _is_tall(point: Array) -> bool:
    return bool(point.shape[-2] > max(_MANY, point.shape[-1]))


def _inverse_and_log_det(core: Array) -> tuple[Array, Array]:
    return np.asarray(np.linalg.inv(core)), np.asarray(np.linalg.slogdet(core)[1])


def _core_inverse_and_log_det(point: Array) -> tuple[Array | TallInverse, Array]:
    """Inverse and log determinant of D - B'B, at a point or a stack of points."""
    if not _is_tall(point):
        return _inverse_and_log_det(_core_matrix(point))
    r, b = point[..., 0], point[..., 1:]
    mu = b / r[..., None]
    inverse, log_det = _inverse_and_log_det(np.eye(b.shape[-1]) - _transposed(mu) @ b)
    return TallInverse(r, mu, mu @ inverse), log_det + np.log(r).sum(axis=-1)


def _safe_inverse_and_log_det(point: Array) -> tuple[Array | TallInverse, float] | None:
    """Inverse and log determinant of D - B'B at one point, if it is far above the floor."""
    r = point[:, 0]
    if not r.min() > 0:
        return None
    root = np.sqrt(r)
    scaled = point[:, 1:] / root[:, None]
    if _is_tall(point):
        found = factor(np.eye(scaled.shape[1]) - scaled.T @ scaled, _CLEAR)
        if found is None:
            return None
        mu = point[:, 1:] / r[:, None]
        inverse = TallInverse(r, mu, mu @ found.inverse.T @ found.inverse)
        return inverse, found.log_det + float(np.log(r).sum())
    unit = -(scaled @ scaled.T)
    unit.ravel()[:: len(unit) + 1] += 1
    found = factor(unit, _CLEAR)
    if found is None:
        return None
    half = found.inverse / root
    return half.T @ half, found.log_det + float(np.log(r).sum())


def core_inverse_and_log_det(point: Array) -> tuple[Array | TallInverse, float]:
    """Inverse and log determinant of D - B'B at one point above the floor."""
    found = _safe_inverse_and_log_det(point)
    if found is not None:
        return found
    inverse, log_det = _core_inverse_and_log_det(point)
    return inverse, float(log_det)


class PreciseMeans(NamedTuple):
    """Class means of a point times the inverse of its covariance M = I - B D^-1 B'."""

    rows: Array  # (K, rank): M^-1 mu_k
    along: Array  # (K,): b_k' M^-1 mu_k
    log_det: float  # log |M|


def precise_means(point: Array) -> PreciseMeans:
    b = point[:, 1:]
    if len(point) == 2:  # in closed form
        (r, other), t = point[:, 0].tolist(), float(b[0] @ b[0])
        q = r * other  # as ``smallest_eigenvalue`` has it, which says whether q > t
        first, second = other / (q - t), r / (q - t)
        rows = np.array([first * b[0], -second * b[0]])
        return PreciseMeans(rows, np.array([first * t, second * t]), float(np.log((q - t) / q)))
    if len(point) > 1 + b.shape[1]:  # M itself is the smaller matrix
        means = b / point[:, :1]
        inverse, log_det = _inverse_and_log_det(np.eye(b.shape[1]) - means.T @ b)
        rows = means @ inverse
    else:
        inverse, log_det = _inverse_and_log_det(_core_matrix(point))
        rows, log_det = inverse @ b, log_det - np.log(point[:, 0]).sum()
    return PreciseMeans(rows, np.einsum("kd,kd->k", rows, b), float(log_det))


def is_above_floor(point: Array) -> bool:
    """Whether the covariance at a point is so far above the floor that a search can go on."""
    return bool(smallest_eigenvalue(point) > 2 * FLOOR)


def smallest_eigenvalue(point: Array) -> Array:
    """Smallest eigenvalue of I - B D^-1 B'; minus infinity where a class has no weight."""
    r, b = point[..., 0], point[..., 1:]
    if r.shape == (2,):  # one point, in plain floats
        first, second = r.tolist()
        is_shared = first > 0 and second > 0
        return np.asarray(1 - float(b[0] @ b[0]) / (first * second) if is_shared else -np.inf)
    if not r.min(initial=1) > 0:
        is_shared = (r > 0).all(axis=-1)
        filled = np.where(r[..., None] > 0, point, 1.0)
        return np.where(is_shared, smallest_eigenvalue(filled), -np.inf)
    if point.shape[-2] == 2:  # the class sums of z balance: one eigenvalue is zero
        first = b[..., 0, :]
        squares = np.einsum("...d,...d->...", first, first)
        return np.asarray(1 - squares / (r[..., 0] * r[..., 1]))
    scaled = b / np.sqrt(r)[..., None]
    is_tall = point.shape[-2] > point.shape[-1] > 1
    gram = _transposed(scaled) @ scaled if is_tall else scaled @ _transposed(scaled)
    if point.shape[-2] == 3:  # one eigenvalue is zero: trace and norm give the others
        trace = gram.trace(axis1=-2, axis2=-1)
        squares = np.einsum("...kj,...kj->...", gram, gram)
        largest = (trace + np.sqrt(np.maximum(2 * squares - trace**2, 0))) / 2
        if (largest < 1 - _CLEAR).all():
            return np.asarray(1 - largest)
    return np.asarray(1 - np.linalg.eigvalsh(gram)[..., -1])
