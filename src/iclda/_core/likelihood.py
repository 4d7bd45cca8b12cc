"""Log likelihood of the labeled rows as a function of the point (r, B), and its derivatives.

A point is an array (..., K, 1 + rank): class weight r_k, then class sum b_k of z, both over N.
All functions take stacks of points. Notation and formulas: docs/notation.md.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from . import AnyArray, Array

# Smallest eigenvalue allowed to I - B D^-1 B': below it the likelihood counts as unbounded.
FLOOR = 1e-10
_FACTORED = (
    128  # rows of a matrix, above which a factor takes the place of its eigenvalues
)
_COMPLEX_STEP = 1e-30  # its square is lost to rounding beside the point
_POINTS_ONE_BY_ONE = (
    6  # stacks of two classes up to this length are faster point by point
)


class Objective:
    """A smooth function of the point that is maximized over the attainable set."""

    weight: float  # the unit of values and gaps

    def is_bounded(self, point: Array) -> bool:
        """Whether the model at a point is far enough from a singular one to go on."""
        return bool(smallest_eigenvalue(point) > 2 * FLOOR)

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """Value, minus infinity at the floor, and gradient, up to a shift common to all classes."""
        raise NotImplementedError

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        """Map directions (..., K, 1 + rank), whose classes balance, to changes of the gradient."""
        raise NotImplementedError

    def hessian(self, point: Array) -> Array:
        """Second derivative with respect to all classes but the last, whose row balances them."""
        n_classes, width = point.shape
        size = (n_classes - 1) * width
        directions = np.zeros((size, n_classes, width))
        directions[:, :-1] = np.eye(size).reshape(size, n_classes - 1, width)
        directions[:, -1] = -directions[:, :-1].sum(axis=1)
        changes = self.hessian_product(point)(directions)
        hessian = (changes[:, :-1] - changes[:, -1:]).reshape(size, size)
        return np.asarray((hessian + hessian.T) / 2)


@dataclass
class LabeledLikelihood(Objective):
    """The log likelihood of the labeled rows, summarized in whitened coordinates."""

    counts: Array  # (K,) class weights n_k
    means: Array  # (K, rank)
    within: Array  # (rank, rank) scatter about the class means
    log_priors: Array | None  # (K,) when fixed by the user
    shrinkage: float  # Sigma = (1 - shrinkage) (I - B D^-1 B')
    constant: float  # per unit of labeled weight: 2 pi and the change of units
    weight: float = field(init=False)

    def __post_init__(self) -> None:
        self.weight = float(self.counts.sum())

    @cached_property
    def _two(self) -> _TwoClasses | None:
        return _TwoClasses(self) if len(self.counts) == 2 else None

    def value(self, point: Array) -> Array:
        """Log likelihood, minus infinity at the floor."""
        is_floored, lifted = _above_floor(point)
        value = (
            _Terms(self, lifted).value()
            if self._two is None
            else self._two.value(lifted)
        )
        return np.where(is_floored, -np.inf, value)

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        if (
            self._two is not None
            and point.ndim == 3
            and 0 < len(point) <= _POINTS_ONE_BY_ONE
        ):
            values, gradients = zip(*map(self.value_and_gradient, point), strict=True)
            return np.array(values), np.array(gradients)
        if (
            self._two is not None
            and point.ndim == 2
            and smallest_eigenvalue(point) > FLOOR
        ):
            return self._two.value_and_gradient(point)
        is_floored, lifted = _above_floor(point)
        if self._two is None:
            terms = _Terms(self, lifted)
            value, gradient = terms.value(), terms.gradient()
        else:
            value, gradient = self._two.value_and_gradient(lifted)
        return np.where(is_floored, -np.inf, value), gradient

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        return _Terms(self, point).change_of_gradient

    def hessian(self, point: Array) -> Array:
        return super().hessian(point) if self._two is None else self._two.hessian(point)


class _Terms:
    """Terms that value and derivatives share, at a point or a stack of points."""

    def __init__(self, labeled: LabeledLikelihood, point: Array) -> None:
        self.labeled, self.keep, self.point = labeled, 1 - labeled.shrinkage, point
        self.r, self.b = point[..., 0], point[..., 1:]
        self.mu = self.b / self.r[..., None]
        self.deviations = labeled.means - self.mu
        self.pulled = labeled.counts[:, None] * self.deviations
        self.precise = precise_means(point)
        # Rows of `scattered` are S v_k, S the scatter of the labeled rows about the mu_k.
        self.scattered = self.precise.rows @ labeled.within + _chain(
            self.precise.rows, self.pulled.mT, self.deviations
        )

    def value(self) -> Array:
        labeled = self.labeled
        log_priors = (
            np.log(self.r) if labeled.log_priors is None else labeled.log_priors
        )
        spread = np.trace(labeled.within) + (self.pulled * self.deviations).sum(
            axis=(-2, -1)
        )
        spread = spread + np.einsum("...kd,...kd->...", self.b, self.scattered)
        log_det = self.precise.log_det + self.b.shape[-1] * np.log(self.keep)
        return np.asarray(
            (labeled.counts * log_priors).sum(axis=-1)
            + labeled.weight * (labeled.constant - log_det / 2)
            - spread / (2 * self.keep)
        )

    def _solve(self, rows: Array) -> Array:
        """M^-1 applied to rows: M^-1 = I + B (D - B'B)^-1 B'."""
        return np.asarray(rows + _chain(rows, self.b.mT, self.precise.rows))

    @cached_property
    def _e_and_g_mu(self) -> tuple[Array, Array]:
        g_mu = self._solve(self.scattered) / (2 * self.keep)
        g_mu -= self.labeled.weight / 2 * self.precise.rows
        return self._solve(self.pulled) / self.keep, g_mu

    def gradient(self) -> Array:
        (e, g_mu), r = self._e_and_g_mu, self.r
        gradient = np.empty(self.point.shape)
        gradient[..., 1:] = e / r[..., None] - 2 * g_mu
        gradient[..., 0] = (self.mu * g_mu).sum(axis=-1) - (self.mu * e).sum(
            axis=-1
        ) / r
        if self.labeled.log_priors is None:
            gradient[..., 0] += self.labeled.counts / r
        return gradient

    def change_of_gradient(self, direction: Array) -> Array:
        """Derivative of the gradient at one point along directions (..., K, 1 + rank)."""
        labeled, r, b, mu, keep = self.labeled, self.r, self.b, self.mu, self.keep
        (e, g_mu), precise = self._e_and_g_mu, self.precise.rows
        dr, db = direction[..., 0], direction[..., 1:]
        dmu = (db - mu * dr[..., None]) / r[:, None]
        dpulled = -labeled.counts[:, None] * dmu
        dprecise = change_of_precise_means(self.point, self.precise, direction)
        dscattered = dprecise @ labeled.within
        dscattered += _chain(dprecise, self.pulled.T, self.deviations)
        dscattered += _chain(precise, dpulled.mT, self.deviations)
        dscattered -= _chain(precise, self.pulled.T, dmu)

        def change_of_solved(rows: Array, drows: Array) -> Array:
            seen = _chain(drows, b.T, precise) + _chain(rows, b.T, dprecise)
            return np.asarray(drows + seen + _chain(rows, db.mT, precise))

        de = change_of_solved(self.pulled, dpulled) / keep
        dg_mu = change_of_solved(self.scattered, dscattered) / (2 * keep)
        dg_mu -= labeled.weight / 2 * dprecise
        change = np.empty(direction.shape)
        change[..., 1:] = (de - e * (dr / r)[..., None]) / r[:, None] - 2 * dg_mu
        change[..., 0] = (dmu * g_mu + mu * dg_mu).sum(axis=-1)
        change[..., 0] -= (dmu * e + mu * de).sum(axis=-1) / r
        change[..., 0] += (mu * e).sum(axis=-1) / r**2 * dr
        if labeled.log_priors is None:
            change[..., 0] -= labeled.counts * dr / r**2
        return change


class _TwoClasses:
    """Likelihood of the labeled rows of two classes, in closed form.

    With r and b those of the first class, q = r (1 - r) and t = b'b the covariance is I - b b' / q,
    and the likelihood depends on b through four numbers only: t, x = b'm_1, y = b'm_2 and
    w = b'W b, where m_k are the class means of the labeled rows and W their scatter within classes.
    One point is evaluated in plain floats: arrays of one number cost ten times as much.
    """

    def __init__(self, labeled: LabeledLikelihood) -> None:
        self._means, self._within = labeled.means, labeled.within
        self._counts: list[float] = labeled.counts.tolist()
        self._keep, self._has_free_priors = (
            1 - labeled.shrinkage,
            labeled.log_priors is None,
        )
        squares = labeled.counts @ (labeled.means**2).sum(axis=1)
        self._about_zero = float(np.trace(labeled.within) + squares)
        log_det = labeled.means.shape[1] * np.log(self._keep)
        self._constant = labeled.weight * (labeled.constant - float(log_det) / 2)
        if labeled.log_priors is not None:
            self._constant += float(labeled.counts @ labeled.log_priors)

    def value(self, point: Array) -> Any:
        return self._value_and_slopes(np.log, *self._numbers(point)[0])[0]

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """At a point (2, 1 + rank) or a stack of them; the gradient is that of the first class."""
        numbers, turns = self._numbers(point)
        log = math.log if point.ndim == 2 else np.log
        value, (by_r, by_t, by_x, by_y, by_w) = self._value_and_slopes(log, *numbers)
        gradient = np.zeros(point.shape)
        gradient[..., 0, 0] = by_r
        if point.ndim == 2:
            np.dot([2 * by_t, by_x, by_y, 2 * by_w], turns, out=gradient[0, 1:])
            return value, gradient
        by_b = gradient[..., 0, 1:]
        by_b += (2 * by_t)[..., None] * point[..., 0, 1:]
        by_b += (2 * by_w)[..., None] * turns
        by_b += np.stack([by_x, by_y], axis=-1) @ self._means
        return value, gradient

    def _numbers(self, point: Array) -> tuple[tuple[Any, ...], Array]:
        """Return r, t, x, y, w, and the rows b, m_1, m_2 and W b (for a stack only W b)."""
        b = point[..., 0, 1:]
        if point.ndim == 2:
            turns = np.empty((4, len(b)))
            turns[0] = b
            turns[1:3] = self._means
            np.dot(b, self._within, out=turns[3])
            return (float(point[0, 0]), *np.dot(turns, b).tolist()), turns
        turns, along = b @ self._within, b @ self._means.T
        t, w = (np.einsum("...d,...d->...", b, rows) for rows in (b, turns))
        return (point[..., 0, 0], t, along[..., 0], along[..., 1], w), turns

    def _value_and_slopes(
        self, log: Callable[[Any], Any], r: Any, t: Any, x: Any, y: Any, w: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """Likelihood, and its derivatives by r, t, x, y and w."""
        n, m = self._counts
        s, keep, half = 1 - r, self._keep, (n + m) / 2
        q = r * s
        g = q - t
        h, per_g = 1 - 2 * r, 1 / g
        first, second = n / r, m / s
        p, o = (
            x - t / r,
            y + t / s,
        )  # how far the labeled means are from the model's, by b
        pull, push = first * p, second * o
        near = first / r + second / s
        spread = self._about_zero - 2 * (first * x - second * y) + t * near
        along = (w + n * p * p + m * o * o) * per_g
        value = self._constant - half * log(g / q) - (spread + along) / (2 * keep)
        by_r = (along * h / 2 - (pull / r + push / s) * q) / keep - half * h * (
            1 - g / q
        )
        by_r = by_r * per_g
        if self._has_free_priors:
            value = value + n * log(r) + m * log(s)
            by_r = by_r + first - second
        by_t = per_g * (half - (push - pull + along / 2) / keep) - near / (2 * keep)
        by_x = (first - n * p * per_g) / keep
        by_y = -(second + m * o * per_g) / keep
        return value, (by_r, by_t, by_x, by_y, per_g / (-2 * keep))

    def hessian(self, point: Array) -> Array:
        """(1 + rank, 1 + rank): second derivative, the second class balancing the first."""
        numbers, turns = self._numbers(point)
        slopes = self._value_and_slopes(math.log, *numbers)[1]
        second = np.empty((5, 5))
        for i in range(5):
            steps = [
                each + 1j * _COMPLEX_STEP * (i == j) for j, each in enumerate(numbers)
            ]
            ahead = self._value_and_slopes(cmath.log, *steps)[1]
            second[i] = [slope.imag / _COMPLEX_STEP for slope in ahead]
        # t and w are quadratic in b, hence the factors 2.
        by_point = np.zeros((5, point.shape[1]))
        by_point[0, 0] = 1
        by_point[1:, 1:] = np.array([2.0, 1.0, 1.0, 2.0])[:, None] * turns
        half = by_point.T @ (second / 2) @ by_point
        half[1:, 1:] += slopes[4] * self._within
        half.ravel()[len(half) + 1 :: len(half) + 1] += slopes[1]
        return np.asarray(half + half.T)


def _chain(rows: Array, columns: Array, other: Array) -> Array:
    """rows @ columns @ other, of K x d, d x K and K x d, by the smaller of K x K and d x d."""
    if rows.shape[-2] <= rows.shape[-1]:
        return np.asarray((rows @ columns) @ other)
    return np.asarray(rows @ (columns @ other))


def _above_floor(point: Array) -> tuple[AnyArray, Array]:
    """Mask of points at the floor or below, and the points, moved above it where masked."""
    is_floored = np.logical_not(smallest_eigenvalue(point) > FLOOR)
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


class PreciseMeans(NamedTuple):
    """Class means of points times the inverse of their covariance M = I - B D^-1 B'."""

    rows: Array  # (..., K, rank): M^-1 mu_k
    along: Array  # (..., K): b_k' M^-1 mu_k
    log_det: Any  # log |M|


def precise_means(point: Array, *, is_for_newton: bool = False) -> PreciseMeans:
    """Precise means of a point above the floor, or of a stack of them.

    The two halves of an inverse round differently. Newton steps are self-adjoint only if they
    agree: ``is_for_newton`` averages them, without which paths take more steps and end at larger
    gaps.
    """
    r, b = point[..., 0], point[..., 1:]
    n_classes, rank = b.shape[-2:]
    if r.shape == (2,):  # in closed form
        (first, second), t = r.tolist(), float(b[0] @ b[0])
        q = (
            first * second
        )  # as ``smallest_eigenvalue`` has it, which says whether q > t
        slope, other = second / (q - t), first / (q - t)
        rows = np.multiply.outer([slope, -other], b[0])
        return PreciseMeans(rows, np.array([slope * t, other * t]), np.log((q - t) / q))
    if n_classes > 1 + rank:  # M itself is the smaller matrix
        means = b / r[..., None]
        covariance = np.eye(rank) - means.mT @ b
        log_det = _log_det(covariance)
        rows = means @ np.linalg.inv(covariance)
    else:  # M^-1 B D^-1 = B (D - B'B)^-1
        core = -(b @ b.mT)
        classes = np.arange(n_classes)
        core[..., classes, classes] += r
        log_det = np.linalg.slogdet(core)[1] - np.log(r).sum(axis=-1)
        inverse = np.linalg.inv(core)
        rows = ((inverse + inverse.mT) / 2 if is_for_newton else inverse) @ b
    return PreciseMeans(rows, np.einsum("...kd,...kd->...k", rows, b), log_det)


def _log_det(covariance: Array) -> Any:
    """Log determinant of a positive definite matrix, or of a stack of them."""
    if covariance.ndim == 2 and len(covariance) > _FACTORED:
        return 2 * np.log(np.linalg.cholesky(covariance).diagonal()).sum()
    return np.linalg.slogdet(covariance)[1]


def change_of_precise_means(
    point: Array, precise: PreciseMeans, direction: Array
) -> Array:
    """Derivative of the rows of precise means at one point along directions."""
    r, b, db = point[:, 0], point[:, 1:], direction[..., 1:]
    # The rows are P b with P = (D - B'B)^-1 = D^-1 (I + B M^-1 mu'): P changes by
    # -P (diag(dr) - db b' - b db') P.
    change = db - direction[..., :1] * precise.rows + _chain(db, b.T, precise.rows)
    change += _chain(b, db.mT, precise.rows)
    return np.asarray(
        (change + _chain(precise.rows * r[:, None], b.T / r, change)) / r[:, None]
    )


def smallest_eigenvalue(point: Array) -> Any:
    """Smallest eigenvalue of I - B D^-1 B'; minus infinity where a class has no weight."""
    r, b = point[..., 0], point[..., 1:]
    if r.shape == (2,):  # one point, in plain floats
        first, second = r.tolist()
        is_shared = first > 0 and second > 0
        return 1 - float(b[0] @ b[0]) / (first * second) if is_shared else -math.inf
    if not r.min(initial=1) > 0:
        is_shared = (r > 0).all(axis=-1)
        filled = np.where(r[..., None] > 0, point, 1.0)
        return np.where(is_shared, smallest_eigenvalue(filled), -np.inf)
    if point.shape[-2] == 2:  # the class sums of z balance: one eigenvalue is zero
        first = b[..., 0, :]
        squares = np.einsum("...d,...d->...", first, first)
        return np.asarray(1 - squares / (r[..., 0] * r[..., 1]))
    return np.asarray(1 - np.linalg.eigvalsh(_between(point))[..., -1])


def _between(point: Array) -> Array:
    """B D^-1 B', or D^-1/2 B'B D^-1/2 where there are fewer classes: of the same eigenvalues."""
    scaled = point[..., 1:] / np.sqrt(point[..., :1])
    is_tall = point.shape[-2] > point.shape[-1] > 1
    return np.asarray(scaled.mT @ scaled if is_tall else scaled @ scaled.mT)


def is_above_floor(point: Array) -> bool:
    """Whether all classes have weight and the smallest eigenvalue is above the floor."""
    if min(point.shape) <= _FACTORED:
        return bool(smallest_eigenvalue(point) > FLOOR)
    if not point[:, 0].min() > 0:
        return False
    between = _between(point)
    try:  # a factor costs a tenth of the eigenvalues of a large matrix
        np.linalg.cholesky((1 - FLOOR) * np.eye(len(between)) - between)
    except np.linalg.LinAlgError:
        return False
    return True
