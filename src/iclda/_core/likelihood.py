"""Log likelihood of the labeled rows as a function of the point (r, B).

A point is an array (..., K, 1 + rank): class weight r_k, then class sum b_k of z, both
over N. Its covariance within classes is M = I - B D^-1 B' with D = diag(r). All
functions take stacks of points. Symbols and formulas are those of docs/notation.md.
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

# Smallest eigenvalue that M may have: below it the likelihood counts as unbounded.
FLOOR = 1e-10
# For matrices with more rows than this, a Cholesky factor takes the place of
# eigenvalues.
_MAX_EIGENVALUE_ROWS = 128
# A step into the complex plane that is so small that its square is lost to rounding.
_COMPLEX_STEP = 1e-30
# Stacks of up to this many points of two classes are evaluated point by point, which is
# faster.
_MAX_POINTS_ONE_BY_ONE = 6


class Objective:
    """A smooth function of the point, to be maximized over the attainable set.

    Values and gaps are compared with tolerances after division by ``weight``.
    """

    weight: float

    def is_bounded(self, point: Array) -> bool:
        """Whether a path may go on: the model at the point is not nearly singular."""
        return bool(smallest_eigenvalue(point) > 2 * FLOOR)

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """Return the value, which is minus infinity at the floor, and the gradient.

        The gradient is determined up to a row that is added to those of all classes.
        """
        raise NotImplementedError

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        """Return the function that maps directions to changes of the gradient.

        Both are arrays (..., K, 1 + rank). The rows of a direction add up to zero.
        """
        raise NotImplementedError

    def hessian(self, point: Array) -> Array:
        """Return the second derivative with respect to all classes but the last.

        The row of the last class moves against the others, so that sums over classes
        stay fixed.
        """
        n_classes, width = point.shape
        size = (n_classes - 1) * width
        # One direction for each unknown, with its opposite in the last class.
        directions = np.zeros((size, n_classes, width))
        units = np.eye(size)
        directions[:, :-1] = units.reshape(size, n_classes - 1, width)
        directions[:, -1] = -directions[:, :-1].sum(axis=1)
        changes = self.hessian_product(point)(directions)
        free_changes = changes[:, :-1] - changes[:, -1:]
        hessian = free_changes.reshape(size, size)
        # It is symmetric but for rounding.
        return np.asarray((hessian + hessian.T) / 2)


@dataclass
class LabeledLikelihood(Objective):
    """The log likelihood of the labeled rows, summarized in whitened coordinates.

    Attributes
    ----------
    counts : (K,) labeled weights n_k
    means : (K, rank) labeled class means
    within : (rank, rank) scatter W of the labeled rows about their class means
    log_priors : (K,) priors if fixed by the user; None for the class weights r
    shrinkage : s in Sigma = (1 - s) M
    constant : log of 2 pi and of the change of units, per unit of labeled weight
    """

    counts: Array
    means: Array
    within: Array
    log_priors: Array | None
    shrinkage: float
    constant: float
    weight: float = field(init=False)

    def __post_init__(self) -> None:
        self.weight = float(self.counts.sum())

    @cached_property
    def _two_classes(self) -> _TwoClasses | None:
        return _TwoClasses(self) if len(self.counts) == 2 else None

    def value(self, point: Array) -> Array:
        """Return the log likelihood, minus infinity at the floor."""
        is_floored, lifted = _above_floor(point)
        if self._two_classes is None:
            value = _Terms(self, lifted).value()
        else:
            value = self._two_classes.value(lifted)
        return np.where(is_floored, -np.inf, value)

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        if self._two_classes is not None:
            return self._value_and_gradient_of_two(self._two_classes, point)
        is_floored, lifted = _above_floor(point)
        terms = _Terms(self, lifted)
        value = np.where(is_floored, -np.inf, terms.value())
        return value, terms.gradient()

    def _value_and_gradient_of_two(
        self, two_classes: _TwoClasses, point: Array
    ) -> tuple[Any, Array]:
        """Evaluate two classes, in plain floats where that is faster."""
        is_small_stack = point.ndim == 3 and 0 < len(point) <= _MAX_POINTS_ONE_BY_ONE
        if is_small_stack:
            pairs = [self._value_and_gradient_of_two(two_classes, one) for one in point]
            values = np.array([value for value, _ in pairs])
            gradients = np.array([gradient for _, gradient in pairs])
            return values, gradients
        if point.ndim == 2 and smallest_eigenvalue(point) > FLOOR:
            return two_classes.value_and_gradient(point)
        is_floored, lifted = _above_floor(point)
        value, gradient = two_classes.value_and_gradient(lifted)
        return np.where(is_floored, -np.inf, value), gradient

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        return _Terms(self, point).change_of_gradient

    def hessian(self, point: Array) -> Array:
        if self._two_classes is None:
            return super().hessian(point)
        return self._two_classes.hessian(point)


class _Terms:
    """Terms that value and derivatives share, at a point or a stack of points.

    These attributes have a row for each class (docs/notation.md, "Likelihood and
    gradient"):

        mu                     mu_k = b_k / r_k
        deviations             zbar_k - mu_k, with the labeled class means zbar_k
        deviation_sums         s_k - n_k mu_k = n_k (zbar_k - mu_k)
        weighted_means.rows    M^-1 mu_k
        scatter_products       S M^-1 mu_k, with the scatter S of the labeled rows
                               about the mu_k
    """

    def __init__(self, labeled: LabeledLikelihood, point: Array) -> None:
        self.labeled = labeled
        # Shrinkage keeps this share of the covariance: Sigma = (1 - s) M.
        self.keep = 1 - labeled.shrinkage
        self.point = point
        self.r = point[..., 0]
        self.b = point[..., 1:]
        self.mu = self.b / self.r[..., None]
        self.deviations = labeled.means - self.mu
        self.deviation_sums = labeled.counts[:, None] * self.deviations
        self.weighted_means = precision_weighted_means(point)
        # S = W + sum_k n_k (zbar_k - mu_k) (zbar_k - mu_k)'
        rows = self.weighted_means.rows
        within_products = rows @ labeled.within
        self.scatter_products = within_products + _product_of_three(
            rows, self.deviation_sums.mT, self.deviations
        )

    def value(self) -> Array:
        """Return the log likelihood."""
        labeled = self.labeled
        log_priors = labeled.log_priors
        if log_priors is None:
            log_priors = np.log(self.r)
        # tr(M^-1 S) = tr S + sum_k b_k' S M^-1 mu_k
        squared_deviations = self.deviation_sums * self.deviations
        trace = np.trace(labeled.within)
        trace = trace + squared_deviations.sum(axis=(-2, -1))
        trace = trace + np.einsum("...kd,...kd->...", self.b, self.scatter_products)
        rank = self.b.shape[-1]
        log_det = self.weighted_means.log_det + rank * np.log(self.keep)
        prior_terms = (labeled.counts * log_priors).sum(axis=-1)
        det_terms = labeled.weight * (labeled.constant - log_det / 2)
        return np.asarray(prior_terms + det_terms - trace / (2 * self.keep))

    def _solve(self, rows: Array) -> Array:
        """Apply M^-1 = I + B (D - B'B)^-1 B' to rows."""
        change = _product_of_three(rows, self.b.mT, self.weighted_means.rows)
        return np.asarray(rows + change)

    @cached_property
    def _e_and_g_mu(self) -> tuple[Array, Array]:
        """Rows e_k and G mu_k, from which the gradient is computed.

        With shrinkage e_k is M^-1 (s_k - n_k mu_k) / (1 - s), and the first term of G
        is divided by 1 - s, too.
        """
        e = self._solve(self.deviation_sums) / self.keep
        g_mu = self._solve(self.scatter_products) / (2 * self.keep)
        g_mu -= self.labeled.weight / 2 * self.weighted_means.rows
        return e, g_mu

    def gradient(self) -> Array:
        """Return the derivatives by r_k (alpha_k) in column 0, then those by b_k."""
        e, g_mu = self._e_and_g_mu
        r = self.r
        gradient = np.empty(self.point.shape)
        gradient[..., 1:] = e / r[..., None] - 2 * g_mu
        gradient[..., 0] = (self.mu * g_mu).sum(axis=-1)
        gradient[..., 0] -= (self.mu * e).sum(axis=-1) / r
        if self.labeled.log_priors is None:
            gradient[..., 0] += self.labeled.counts / r
        return gradient

    def change_of_gradient(self, direction: Array) -> Array:
        """Differentiate the gradient at one point along directions (..., K, 1 + rank).

        Names with a leading d are changes of the terms without it. With the rows
        u_k = s_k - n_k mu_k (``deviation_sums``), v_k = M^-1 mu_k and V S
        (``scatter_products``), where zbar are the labeled class means,

            dmu = (db - mu dr) / r        dU = -n dmu
            d(V S) = dV W + (dV U' + V dU') (zbar - mu) - V U' dmu
            de = d(U M^-1) / (1 - s)
            d(G mu) = d(V S M^-1) / (2 (1 - s)) - N_l/2 dV

        From beta_k = e_k / r_k - 2 G mu_k and
        alpha_k = n_k / r_k - mu_k'e_k / r_k + mu_k'G mu_k follow

            dbeta = (de - e dr / r) / r - 2 d(G mu)
            dalpha = dmu'G mu + mu'd(G mu) - (dmu'e + mu'de) / r
                     + mu'e dr / r^2 - n dr / r^2

        The last term is absent if the priors are fixed.
        """
        labeled = self.labeled
        r = self.r
        mu = self.mu
        u = self.deviation_sums
        v = self.weighted_means.rows
        e, g_mu = self._e_and_g_mu

        dr = direction[..., 0]
        db = direction[..., 1:]
        dmu = (db - mu * dr[..., None]) / r[:, None]
        du = -labeled.counts[:, None] * dmu
        dv = change_of_precision_weighted_means(
            self.point, self.weighted_means, direction
        )

        dscatter_products = dv @ labeled.within
        dscatter_products += _product_of_three(dv, u.T, self.deviations)
        dscatter_products += _product_of_three(v, du.mT, self.deviations)
        dscatter_products -= _product_of_three(v, u.T, dmu)

        de = self._change_of_solved(u, du, db, dv) / self.keep
        dg_mu = self._change_of_solved(self.scatter_products, dscatter_products, db, dv)
        dg_mu = dg_mu / (2 * self.keep)
        dg_mu -= labeled.weight / 2 * dv

        growth = (dr / r)[..., None]
        dbeta = (de - e * growth) / r[:, None] - 2 * dg_mu
        dalpha = (dmu * g_mu + mu * dg_mu).sum(axis=-1)
        dalpha -= (dmu * e + mu * de).sum(axis=-1) / r
        dalpha += (mu * e).sum(axis=-1) / r**2 * dr
        if labeled.log_priors is None:
            dalpha -= labeled.counts * dr / r**2

        change = np.empty(direction.shape)
        change[..., 0] = dalpha
        change[..., 1:] = dbeta
        return change

    def _change_of_solved(
        self, rows: Array, drows: Array, db: Array, dv: Array
    ) -> Array:
        """Differentiate X M^-1 = X + X b' V for rows X, which ``_solve`` returns.

        The change is dX + (dX b' V + X b' dV) + X db' V.
        """
        b = self.b
        v = self.weighted_means.rows
        by_rows = _product_of_three(drows, b.T, v)
        by_v = _product_of_three(rows, b.T, dv)
        by_b = _product_of_three(rows, db.mT, v)
        return np.asarray(drows + (by_rows + by_v) + by_b)


class _Slopes(NamedTuple):
    """Derivatives of the likelihood of two classes by the five numbers.

    The numbers are r, b'b, b'm_1, b'm_2 and b'W b.
    """

    by_r: Any
    by_square: Any
    by_first_product: Any
    by_second_product: Any
    by_within_product: Any


class _TwoClasses:
    """Likelihood of the labeled rows of two classes, in closed form.

    With the weight r and the sum b of the first class,

        mu_1 = b / r        mu_2 = -b / (1 - r)        M = I - b b' / (r (1 - r))

    The likelihood depends on b through four numbers only, b'b, b'm_1, b'm_2 and b'W b,
    where m_1 and m_2 are the labeled class means and W is the scatter of the labeled
    rows about them. One point is evaluated in plain floats, because arrays of one
    number take ten times as long; a stack of points is evaluated in arrays.
    """

    def __init__(self, labeled: LabeledLikelihood) -> None:
        self._means = labeled.means
        self._within = labeled.within
        self._counts: list[float] = labeled.counts.tolist()
        self._keep = 1 - labeled.shrinkage
        self._has_free_priors = labeled.log_priors is None
        # Sum of the squared lengths of the labeled rows: the trace of S for b = 0.
        squared_lengths = (labeled.means**2).sum(axis=1)
        squares_of_means = labeled.counts @ squared_lengths
        self._trace_about_zero = float(np.trace(labeled.within) + squares_of_means)
        # Shrinkage multiplies the determinant of the covariance.
        rank = labeled.means.shape[1]
        log_det = float(rank * np.log(self._keep))
        self._constant = labeled.weight * (labeled.constant - log_det / 2)
        if labeled.log_priors is not None:
            self._constant += float(labeled.counts @ labeled.log_priors)

    def value(self, point: Array) -> Any:
        """Return the log likelihood at a point (2, 1 + rank) or a stack of points."""
        numbers: tuple[Any, ...]
        if point.ndim == 2:
            numbers, _ = self._numbers_of_point(point)
        else:
            numbers, _ = self._numbers_of_stack(point)
        value, _ = self._value_and_slopes(np.log, *numbers)
        return value

    def value_and_gradient(self, point: Array) -> tuple[Any, Array]:
        """Evaluate a point (2, 1 + rank) or a stack of points.

        The second class moves against the first one: its row of the gradient is zero.
        """
        if point.ndim == 2:
            return self._evaluate_point(point)
        return self._evaluate_stack(point)

    def _evaluate_point(self, point: Array) -> tuple[float, Array]:
        numbers, rows = self._numbers_of_point(point)
        value, slopes = self._value_and_slopes(math.log, *numbers)
        gradient = np.zeros(point.shape)
        gradient[0, 0] = slopes.by_r
        # b'b and b'W b are quadratic in b, hence the factors 2.
        factors = [
            2 * slopes.by_square,
            slopes.by_first_product,
            slopes.by_second_product,
            2 * slopes.by_within_product,
        ]
        np.dot(factors, rows, out=gradient[0, 1:])
        return value, gradient

    def _evaluate_stack(self, points: Array) -> tuple[Array, Array]:
        numbers, within_rows = self._numbers_of_stack(points)
        value, slopes = self._value_and_slopes(np.log, *numbers)
        gradient = np.zeros(points.shape)
        gradient[..., 0, 0] = slopes.by_r
        # b'b and b'W b are quadratic in b, hence the factors 2.
        b = points[..., 0, 1:]
        by_b = gradient[..., 0, 1:]
        by_b += (2 * slopes.by_square)[..., None] * b
        by_b += (2 * slopes.by_within_product)[..., None] * within_rows
        by_means = np.stack(
            [slopes.by_first_product, slopes.by_second_product], axis=-1
        )
        by_b += by_means @ self._means
        return value, gradient

    def _numbers_of_point(self, point: Array) -> tuple[tuple[float, ...], Array]:
        """Return r, b'b, b'm_1, b'm_2 and b'W b, and the rows b, m_1, m_2 and W b.

        The rows are the derivatives of the last four numbers by b, but for a factor 2
        in the first and in the last one.
        """
        r = float(point[0, 0])
        b = point[0, 1:]
        rows = np.empty((4, len(b)))
        rows[0] = b
        rows[1:3] = self._means
        np.dot(b, self._within, out=rows[3])
        products = np.dot(rows, b).tolist()
        return (r, *products), rows

    def _numbers_of_stack(self, points: Array) -> tuple[tuple[Array, ...], Array]:
        """Return r, b'b, b'm_1, b'm_2 and b'W b of every point, and the rows W b."""
        r = points[..., 0, 0]
        b = points[..., 0, 1:]
        within_rows = b @ self._within
        along_means = b @ self._means.T
        square = np.einsum("...d,...d->...", b, b)
        first_product = along_means[..., 0]
        second_product = along_means[..., 1]
        within_product = np.einsum("...d,...d->...", b, within_rows)
        numbers = (r, square, first_product, second_product, within_product)
        return numbers, within_rows

    def _value_and_slopes(
        self,
        log: Callable[[Any], Any],
        r: Any,
        square: Any,
        first_product: Any,
        second_product: Any,
        within_product: Any,
    ) -> tuple[Any, _Slopes]:
        """Return the likelihood and its derivatives by the five numbers.

        The numbers are r, b'b, b'm_1, b'm_2 and b'W b. Let D = diag(r, 1 - r). Then

            |D| = r (1 - r)        |D - B'B| = |D| - b'b
            log|M| = log(|D - B'B| / |D|)        M^-1 = I + b b' / |D - B'B|

        S = W + sum_k n_k (m_k - mu_k) (m_k - mu_k)' is the scatter of the labeled rows
        about the mu_k. With offset_k = b'(m_k - mu_k), which is b'm_1 - b'b / r for the
        first class and b'm_2 + b'b / (1 - r) for the second,

            tr(M^-1 S) = trace + excess
            trace = tr S = tr W + sum_k n_k |m_k|^2 - 2 (n_1/r b'm_1 - n_2/(1-r) b'm_2)
                           + b'b (n_1/r^2 + n_2/(1-r)^2)
            excess = b'S b / |D - B'B|
            b'S b = b'W b + sum_k n_k offset_k^2
            L = n_1 log r + n_2 log(1 - r) - N_l/2 log|M| - (trace + excess) / (2 (1-s))

        up to a constant; s is the shrinkage. With weighted_offset_1 = n_1/r offset_1,
        weighted_offset_2 = n_2/(1-r) offset_2 and |D| = |D - B'B| + b'b,
        differentiation gives

            offsets_by_r = weighted_offset_1/r + weighted_offset_2/(1-r)
            d(trace + excess)/dr = (2 |D| offsets_by_r - (1-2r) excess) / |D - B'B|
            d log|M|/dr = (1-2r) (1 - |M|) / |D - B'B|
            trace_by_square = d trace/d b'b = n_1/r^2 + n_2/(1-r)^2
            half_excess_slope = weighted_offset_2 - weighted_offset_1 + excess/2
            d excess/d b'b = 2 half_excess_slope / |D - B'B|
            d log|M|/d b'b = -1 / |D - B'B|

        and by these, in L,

            dL/dr = (((1-2r) excess/2 - |D| offsets_by_r) / (1-s)
                     - N_l/2 (1-2r) (1 - |M|)) / |D - B'B| + n_1/r - n_2/(1-r)
            dL/d b'b = (N_l/2 - half_excess_slope / (1-s)) / |D - B'B|
                       - trace_by_square / (2 (1-s))
            dL/d b'm_1 = (n_1/r - n_1 offset_1 / |D - B'B|) / (1-s)
            dL/d b'm_2 = -(n_2/(1-r) + n_2 offset_2 / |D - B'B|) / (1-s)
            dL/d b'W b = -1 / (2 (1-s) |D - B'B|)

        Fixed priors take the place of r and 1 - r in log r and log(1 - r): L and dL/dr
        then lack the terms of these. ``log`` is that of floats, of arrays or of complex
        numbers, whichever the five numbers are.
        """
        n_first, n_second = self._counts
        keep = self._keep
        half_weight = (n_first + n_second) / 2
        rest = 1 - r

        # The determinants |D|, |D - B'B| and |M|. The last one is used in the value and
        # in its derivative alike, so that they agree to rounding.
        det_shares = r * rest
        det_core = det_shares - square
        det = det_core / det_shares
        # |D| and |D - B'B| have the same derivative by r.
        det_slope = 1 - 2 * r
        per_core = 1 / det_core

        # The labeled class means relative to the means of the point, along b.
        first_ratio = n_first / r
        second_ratio = n_second / rest
        first_offset = first_product - square / r
        second_offset = second_product + square / rest
        first_weighted_offset = first_ratio * first_offset
        second_weighted_offset = second_ratio * second_offset

        # The two parts of tr(M^-1 S).
        trace_by_square = first_ratio / r + second_ratio / rest
        trace_by_means = 2 * (
            first_ratio * first_product - second_ratio * second_product
        )
        trace = self._trace_about_zero - trace_by_means + square * trace_by_square
        first_scatter = n_first * first_offset * first_offset
        second_scatter = n_second * second_offset * second_offset
        excess = (within_product + first_scatter + second_scatter) * per_core

        value = self._constant - half_weight * log(det) - (trace + excess) / (2 * keep)
        if self._has_free_priors:
            value = value + n_first * log(r) + n_second * log(rest)

        offsets_by_r = first_weighted_offset / r + second_weighted_offset / rest
        by_r = (excess * det_slope / 2 - offsets_by_r * det_shares) / keep
        by_r = by_r - half_weight * det_slope * (1 - det)
        by_r = by_r * per_core
        if self._has_free_priors:
            by_r = by_r + first_ratio - second_ratio

        half_excess_slope = second_weighted_offset - first_weighted_offset + excess / 2
        by_square = per_core * (half_weight - half_excess_slope / keep)
        by_square = by_square - trace_by_square / (2 * keep)

        first_excess_slope = n_first * first_offset * per_core
        second_excess_slope = n_second * second_offset * per_core
        by_first_product = (first_ratio - first_excess_slope) / keep
        by_second_product = -(second_ratio + second_excess_slope) / keep
        by_within_product = per_core / (-2 * keep)
        slopes = _Slopes(
            by_r,
            by_square,
            by_first_product,
            by_second_product,
            by_within_product,
        )
        return value, slopes

    def hessian(self, point: Array) -> Array:
        """Return the second derivative (1 + rank, 1 + rank) by r and b.

        The second derivatives by the five numbers are complex steps of the first ones,
        Im f'(x + ih) / h, which are exact to rounding.
        """
        numbers, rows = self._numbers_of_point(point)
        _, slopes = self._value_and_slopes(math.log, *numbers)
        second = np.empty((5, 5))
        # Each number in turn gets a tiny imaginary part.
        for i in range(5):
            stepped = [complex(number) for number in numbers]
            stepped[i] += 1j * _COMPLEX_STEP
            _, stepped_slopes = self._value_and_slopes(cmath.log, *stepped)
            second[i] = [slope.imag / _COMPLEX_STEP for slope in stepped_slopes]

        # First derivatives of the five numbers by (r, b).
        by_point = np.zeros((5, point.shape[1]))
        # r is the first column of the point; the other numbers do not depend on it.
        by_point[0, 0] = 1
        # b'b and b'W b are quadratic in b, hence the factors 2.
        factors = np.array([2.0, 1.0, 1.0, 2.0])
        by_point[1:, 1:] = factors[:, None] * rows
        # The chain rule: half of the derivative, as its transpose is added at the end.
        half = by_point.T @ (second / 2) @ by_point
        # Second derivatives of b'b and of b'W b are 2 I and 2 W; this is half of them.
        half[1:, 1:] += slopes.by_within_product * self._within
        inner = np.arange(1, len(half))
        half[inner, inner] += slopes.by_square
        return np.asarray(half + half.T)


def _product_of_three(rows: Array, columns: Array, other: Array) -> Array:
    """Return the product of matrices of K x d, d x K and K x d.

    The smaller of the products of two of them is formed first.
    """
    n_classes, rank = rows.shape[-2:]
    if n_classes <= rank:
        return np.asarray((rows @ columns) @ other)
    return np.asarray(rows @ (columns @ other))


def _above_floor(point: Array) -> tuple[AnyArray, Array]:
    """Return which points are at or below the floor, and all points moved above it."""
    # NaN counts as floored.
    is_floored = np.logical_not(smallest_eigenvalue(point) > FLOOR)
    if not is_floored.any():
        return is_floored, point

    # 1. Raise class weights: a point outside the attainable set may give a class none.
    lifted = point.copy()
    r = lifted[..., 0]
    np.maximum(r, FLOOR, out=r)
    r /= r.sum(axis=-1, keepdims=True)

    # 2. Shorten class sums until the smallest eigenvalue is twice the floor: times f,
    # they turn an eigenvalue 1 - t of M into 1 - f^2 t. Points whose smallest
    # eigenvalue is larger keep their class sums, f = 1.
    low_eigenvalue = np.minimum(smallest_eigenvalue(lifted), 2 * FLOOR)
    factor = np.sqrt((1 - 2 * FLOOR) / (1 - low_eigenvalue))
    lifted[..., 1:] *= factor[..., None, None]
    return is_floored, lifted


class PrecisionWeightedMeans(NamedTuple):
    """Class means of a point, times the precision matrix M^-1.

    Attributes
    ----------
    rows : (..., K, rank) with rows M^-1 mu_k
    along : (..., K) with b_k' M^-1 mu_k
    log_det : log |M|
    """

    rows: Array
    along: Array
    log_det: Any


def precision_weighted_means(
    point: Array, *, is_for_newton: bool = False
) -> PrecisionWeightedMeans:
    """Return M^-1 mu_k for a point above the floor, or for a stack of points.

    Rounding makes a computed inverse slightly asymmetric, and the system of a Newton
    step is self-adjoint only if the inverse is symmetric. ``is_for_newton`` makes it
    so; without that, paths take more steps and end at larger gaps.
    """
    r = point[..., 0]
    b = point[..., 1:]
    n_classes, rank = b.shape[-2:]
    if _is_one_point_of_two_classes(r):
        return _precision_weighted_means_of_two(r, b)
    if n_classes > 1 + rank:
        # M itself is smaller than D - B'B.
        means = b / r[..., None]
        covariance = np.eye(rank) - means.mT @ b
        log_det = _log_det(covariance)
        rows = means @ np.linalg.inv(covariance)
    else:
        # M^-1 B D^-1 = B (D - B'B)^-1 needs only a K x K inverse.
        core = -(b @ b.mT)
        classes = np.arange(n_classes)
        core[..., classes, classes] += r
        log_det_of_core = np.linalg.slogdet(core)[1]
        log_det = log_det_of_core - np.log(r).sum(axis=-1)
        inverse = np.linalg.inv(core)
        if is_for_newton:
            inverse = (inverse + inverse.mT) / 2
        rows = inverse @ b
    along = np.einsum("...kd,...kd->...k", rows, b)
    return PrecisionWeightedMeans(rows, along, log_det)


def _precision_weighted_means_of_two(r: Array, b: Array) -> PrecisionWeightedMeans:
    """Return the precision-weighted means of one point of two classes, in closed form.

    M^-1 mu_1 = b_1 (1 - r) / |D - B'B| and M^-1 mu_2 = -b_1 r / |D - B'B|, with
    |D - B'B| = r (1 - r) - b_1'b_1.
    """
    first, second = r.tolist()
    square = float(b[0] @ b[0])
    # The product is rounded as in ``smallest_eigenvalue``: where that is positive, the
    # difference is, too.
    det_shares = first * second
    det_core = det_shares - square
    # b_1 times these numbers are the rows.
    first_factor = second / det_core
    second_factor = first / det_core
    rows = np.multiply.outer([first_factor, -second_factor], b[0])
    along = np.array([first_factor * square, second_factor * square])
    log_det = np.log(det_core / det_shares)
    return PrecisionWeightedMeans(rows, along, log_det)


def _log_det(covariance: Array) -> Any:
    """Return the log determinant of a positive definite matrix or of a stack."""
    if covariance.ndim == 2 and len(covariance) > _MAX_EIGENVALUE_ROWS:
        cholesky = np.linalg.cholesky(covariance)
        log_diagonal = np.log(cholesky.diagonal())
        return 2 * log_diagonal.sum()
    _, log_det = np.linalg.slogdet(covariance)
    return log_det


def change_of_precision_weighted_means(
    point: Array, weighted_means: PrecisionWeightedMeans, direction: Array
) -> Array:
    """Differentiate ``PrecisionWeightedMeans.rows`` at one point along directions.

    The rows are V = P b with P = (D - B'B)^-1. P changes by -P d(D - B'B) P, hence

        dV = P (db - d(D - B'B) V)        d(D - B'B) = diag(dr) - db b' - b db'

    P is not formed, but applied as P = D^-1 (I + B M^-1 mu').
    """
    r = point[:, 0]
    b = point[:, 1:]
    dr = direction[..., :1]
    db = direction[..., 1:]
    rows = weighted_means.rows
    # The parenthesis that P is applied to.
    change = db - dr * rows + _product_of_three(db, b.T, rows)
    change += _product_of_three(b, db.mT, rows)
    # The second term of P, times D.
    correction = _product_of_three(rows * r[:, None], b.T / r, change)
    return np.asarray((change + correction) / r[:, None])


def _is_one_point_of_two_classes(r: Array) -> bool:
    """Return whether class weights are those of one point of two classes.

    The formulas of such a point are evaluated in plain floats, which is faster.
    """
    return r.shape == (2,)


def smallest_eigenvalue(point: Array) -> Any:
    """Return the smallest eigenvalue of M, minus infinity if a class has no weight."""
    r = point[..., 0]
    b = point[..., 1:]
    if _is_one_point_of_two_classes(r):
        return _smallest_eigenvalue_of_two(r, b)
    has_weight = r > 0
    if not has_weight.all():
        # Classes without weight get any numbers: the result is not used.
        filled = np.where(has_weight[..., None], point, 1.0)
        have_all_weights = has_weight.all(axis=-1)
        return np.where(have_all_weights, smallest_eigenvalue(filled), -np.inf)
    if point.shape[-2] == 2:
        # As b_2 = -b_1, B D^-1 B' has one eigenvalue that is not zero.
        first_sum = b[..., 0, :]
        squares = np.einsum("...d,...d->...", first_sum, first_sum)
        return np.asarray(1 - squares / (r[..., 0] * r[..., 1]))
    eigenvalues = np.linalg.eigvalsh(_between(point))
    return np.asarray(1 - eigenvalues[..., -1])


def _smallest_eigenvalue_of_two(r: Array, b: Array) -> float:
    """Return the smallest eigenvalue at one point of two classes, in plain floats.

    b_2 = -b_1, so that B D^-1 B' = b_1 b_1' / (r_1 r_2).
    """
    first, second = r.tolist()
    if not (first > 0 and second > 0):
        return -math.inf
    squared_length = float(b[0] @ b[0])
    return 1.0 - squared_length / float(first * second)


def _between(point: Array) -> Array:
    """Return B D^-1 B', or D^-1/2 B'B D^-1/2 where there are fewer classes.

    Both have the same eigenvalues other than zero.
    """
    n_classes, width = point.shape[-2:]
    scaled = point[..., 1:] / np.sqrt(point[..., :1])
    if n_classes > width > 1:
        return np.asarray(scaled.mT @ scaled)
    return np.asarray(scaled @ scaled.mT)


def is_above_floor(point: Array) -> bool:
    """Return whether all eigenvalues of M are above the floor.

    False if a class has no weight.
    """
    if min(point.shape) <= _MAX_EIGENVALUE_ROWS:
        return bool(smallest_eigenvalue(point) > FLOOR)
    if not point[:, 0].min() > 0:
        return False
    # For a large matrix, a Cholesky factor takes a tenth of the time of eigenvalues. It
    # exists if M less the floor is positive definite.
    between = _between(point)
    covariance_less_floor = (1 - FLOOR) * np.eye(len(between)) - between
    try:
        np.linalg.cholesky(covariance_less_floor)
    except np.linalg.LinAlgError:
        return False
    return True
