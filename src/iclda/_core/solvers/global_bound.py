"""Prove that a maximum of the likelihood of the labeled rows of two classes is global.

The proof is branch and bound over two numbers, the class weight r and v = 1 - b'b / (r
(1 - r)). For fixed r and v the likelihood is a quadratic function of b, which lies on a
sphere and in the attainable set. Any multipliers of these two constraints give an upper
bound, a closed form in r and v. A cell, an interval of r and one of v, whose bound is
not above the maximum holds nothing better; the others are split. The formulas are in
docs/solvers.md.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .. import Array
from ..likelihood import LabeledLikelihood
from ..problem import Problem
from . import settings
from .held import hold_all
from .sets import attainable_sets

# Smallest spread of the labeled rows in any direction, per unit of weight, that counts.
_MIN_LABELED_SPREAD = 1e-6


def is_proved_global(problem: Problem, point: Array) -> bool:
    """Whether no attainable point has a higher likelihood than a maximum.

    The tolerance is ``settings.Proof.gap`` per unit of labeled weight. False says
    nothing: the proof may take too long, or the bounds may be too weak.
    """
    chosen = settings.PROOF
    n_rows = problem.unlabeled.n_rows
    width = point.shape[1]
    if len(point) != 2 or not attainable_sets(problem).are_free:
        return False
    if n_rows > settings.HOLDING.max_rows or width > chosen.max_width:
        return False
    bounds = UpperBounds(problem, point)
    numbers_per_step = n_rows * width**2 + chosen.overhead_numbers_of_step
    max_steps = chosen.max_numbers_read / numbers_per_step
    return bounds.are_tight and _Search(bounds).run(max_steps)


class ProofCell(NamedTuple):
    """Intervals of logit(r) and of log(v)."""

    r: tuple[float, float]
    v: tuple[float, float]

    @property
    def ends(self) -> tuple[list[float], list[float]]:
        """Both ends of r, and both ends of v."""
        return expit(self.r).tolist(), np.exp(self.v).tolist()

    def halves(self, *, is_split_in_r: bool) -> list[ProofCell]:
        """Split the cell in the middle of one of its intervals."""
        low, high = self.r if is_split_in_r else self.v
        middle = (low + high) / 2
        intervals = [(low, middle), (middle, high)]
        if is_split_in_r:
            return [ProofCell(interval, self.v) for interval in intervals]
        return [ProofCell(self.r, interval) for interval in intervals]


class CellBound(NamedTuple):
    """Upper bound of the likelihood in a cell, and where in (r, v) it is attained.

    ``error_of_r`` is the part of the bound that is due to the width of the cell in r.
    """

    value: float
    r: float
    v: float
    error_of_r: float


class _BoundInRAndV(NamedTuple):
    """The bound at the b that maximizes it, a function of r and v alone.

    It is level(r) - N/2 log v + (a_0 + a_1 r + a_2 r^2) / k + intercept + slope r +
    rise k, with level and k of ``UpperBounds``.
    """

    a_0: float
    a_1: float
    a_2: float
    intercept: float
    slope: float
    rise: float


class _Pairs(NamedTuple):
    """Bounds at pairs (r, v) without the support function, and where they are attained.

    Row i of ``b`` maximizes the bound ``values[i]``; ``k`` is that of ``UpperBounds``.
    ``sphere`` is b'b / k on the sphere b'b = r (1 - r) (1 - v).
    """

    values: Array
    b: Array
    k: Array
    sphere: Array


class _Softened(NamedTuple):
    """The largest of several bounds, and a smooth bound of it with derivatives."""

    largest: float
    value: float
    gradient: Array
    hessian: Array


class _SoftSupport(NamedTuple):
    """The support function at some scores, and a smooth bound of it with derivatives.

    The smooth bound is ``value`` + ``excess``. Its derivatives are by the scores,
    (1 + rank,) and (1 + rank, 1 + rank).
    """

    value: float
    excess: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True)
class _QuadraticLikelihood:
    """The likelihood of the labeled rows, a quadratic function of b for fixed r and v.

    It is, with k = 2 (1 - s) r (1 - r) v and the squared residuals Q,

        level(r) - N/2 log v - Q / k        Q = loss(r) + b'G b - 2 b'(first - r total)

    where G is the sum of z z' over the labeled rows (docs/solvers.md). Coordinates of
    b and of z are those in which G is diagonal.

    Attributes
    ----------
    weight : N
    keep : 1 - s
    n_first, n_second : labeled weights of the two classes
    first_log_weight, second_log_weight : factors of log r and log(1 - r), 0 if the
        priors are fixed
    axes : (rank, rank) z @ axes is z in these coordinates
    curvatures : (rank,) the diagonal of G, smallest first
    first : (rank,) sum of z over the labeled rows of the first class
    total : (rank,) sum of z over all labeled rows
    """

    weight: float
    keep: float
    n_first: float
    n_second: float
    first_log_weight: float
    second_log_weight: float
    axes: Array
    curvatures: Array
    first: Array
    total: Array

    @classmethod
    def of(cls, likelihood: LabeledLikelihood) -> _QuadraticLikelihood:
        """Return the quadratic form of a likelihood, without its constant."""
        counts = likelihood.counts
        means = likelihood.means
        n_first, n_second = counts.tolist()
        # With fixed priors the likelihood has no terms in log r and log(1 - r).
        has_free_priors = likelihood.log_priors is None
        # Squares about zero are those about the class means plus those of the means.
        squares = likelihood.within + (counts * means.T) @ means
        curvatures, axes = np.linalg.eigh(squares)
        return cls(
            weight=likelihood.weight,
            keep=1 - likelihood.shrinkage,
            n_first=n_first,
            n_second=n_second,
            first_log_weight=n_first if has_free_priors else 0.0,
            second_log_weight=n_second if has_free_priors else 0.0,
            axes=axes,
            curvatures=curvatures,
            first=counts[0] * means[0] @ axes,
            total=counts @ means @ axes,
        )

    def loss(self, r: Any) -> Any:
        """Return the squared residuals of the constant r: Q for b = 0."""
        return self.weight * r**2 - 2 * self.n_first * r + self.n_first

    def squared_residuals(self, r: float, b: Array) -> float:
        """Return Q."""
        squares = float(self.loss(r) + b @ (self.curvatures * b))
        return squares - 2 * float(b @ (self.first - r * self.total))

    def level(self, r: Any, constant: float) -> Any:
        """Return the terms that depend on r alone, with the constant of all points."""
        inverse = self.n_first / r + self.n_second / (1 - r)
        return (
            constant
            + self.first_log_weight * np.log(r)
            + self.second_log_weight * np.log(1 - r)
            + inverse / (2 * self.keep)
        )

    def least_loss(self, min_curvature: float) -> float:
        """Return the squared residuals of the least squares fit to the labeled rows.

        Curvatures are raised to ``min_curvature``, so that there is one such fit.
        """
        # The normal equations of the intercept and b.
        curvatures = self.curvatures.clip(min_curvature)
        gram = np.diag(np.append(self.weight, curvatures))
        gram[0, 1:] = self.total
        gram[1:, 0] = self.total
        right = np.append(self.n_first, self.first)
        explained = float(right @ np.linalg.solve(gram, right))
        return float(self.n_first - explained)


@dataclass(frozen=True)
class _Support:
    """The support function of the attainable set in (r, b).

    At the scores (c_0, c_b) it is the largest c_0 r + c_b'b of an attainable point.

    Attributes
    ----------
    z : (n, 1 + rank) the unlabeled rows, after a column of ones
    row_weights : (n,) their weights, over that of all rows
    labeled : (1 + rank,) what the labeled rows contribute to r and b
    """

    z: Array
    row_weights: Array
    labeled: Array

    @classmethod
    def of(cls, problem: Problem, axes: Array) -> _Support:
        """Return the support function in the coordinates z @ axes."""
        held = hold_all(problem)
        z = held.z.copy()
        z[:, 1:] = held.z[:, 1:] @ axes
        labeled_point = held.labeled_point[0]
        labeled = np.append(labeled_point[0], labeled_point[1:] @ axes)
        return cls(z, held.weights, labeled)

    @property
    def range_of_r(self) -> list[float]:
        """The smallest and the largest class weight that is attainable."""
        smallest = self.labeled[0]
        return [smallest, smallest + self.row_weights.sum()]

    def sum_of_won(self, leads: Array) -> Any:
        """Sum the leads of the first class over the unlabeled rows that it gets."""
        return self.row_weights @ np.maximum(leads, 0)

    def softened(self, scores: Array, tau: float) -> _SoftSupport:
        """Return the support function, softened: tau is the weight of the entropy.

        The lead l of a row counts tau log(1 + exp(l / tau)), which is above max(l, 0).
        Its derivative by l is the soft label of the row.
        """
        leads = self.z @ scores
        # Of exp(l / tau) and its inverse the one that cannot overflow.
        decay = np.exp(-np.abs(leads) / tau)
        labels = np.where(leads >= 0, 1, decay) / (1 + decay)
        spread = self.row_weights * decay / (1 + decay) ** 2 / tau
        unlabeled = (self.row_weights * labels) @ self.z
        return _SoftSupport(
            value=float(scores @ self.labeled + self.sum_of_won(leads)),
            excess=tau * float(self.row_weights @ np.log1p(decay)),
            gradient=self.labeled + unlabeled,
            hessian=(self.z * spread[:, None]).T @ self.z,
        )


class UpperBounds:
    """Upper bounds of the likelihood, one for every vector of multipliers.

    Multipliers are an array (1 + rank + 1,): the scores (c_0, c_b) of the support
    function, and the multiplier l of b'b. docs/solvers.md derives the bounds.

    Attributes
    ----------
    weight : labeled weight
    maximum : the likelihood at the point that may be a global maximum
    r, v : class weight and v of that point
    start : multipliers whose bound touches the likelihood there
    are_tight : whether that bound is concave in b, without which no proof is tried
    """

    def __init__(self, problem: Problem, point: Array) -> None:
        quadratic = _QuadraticLikelihood.of(problem.likelihood)
        self._quadratic = quadratic
        self._support = _Support.of(problem, quadratic.axes)
        self.weight = quadratic.weight

        # The maximum.
        value, gradient = problem.likelihood.value_and_gradient(point)
        self.maximum = float(value)
        self.r = float(point[0, 0])
        b = point[0, 1:] @ quadratic.axes
        det_shares = self.r * (1 - self.r)
        det_core = det_shares - float(b @ b)
        self.v = det_core / det_shares

        # The constant with which the quadratic formula attains it.
        loss = quadratic.squared_residuals(self.r, b)
        half_log_v = self.weight / 2 * math.log(self.v)
        self._constant = self.maximum + half_log_v - quadratic.level(self.r, 0.0)
        self._constant += loss / (2 * quadratic.keep * det_core)

        # The bound touches the likelihood where both have the same derivative by the
        # point. Only the lead of the first class counts, as its b is minus that of the
        # second one.
        lead = gradient[0] - gradient[1]
        multiplier = loss / det_core - quadratic.keep * self.weight
        scores = [lead[:1], lead[1:] @ quadratic.axes]
        self.start = np.concatenate([*scores, [multiplier]])

        # At the maximum the bound has to be concave in b.
        min_curvature = _MIN_LABELED_SPREAD * self.weight
        self._least_loss = quadratic.least_loss(min_curvature)
        smallest = float(quadratic.curvatures[0])
        is_regular = min(self._least_loss, smallest) > min_curvature
        self.are_tight = is_regular and smallest + multiplier > 0

    def _level(self, r: Any) -> Any:
        """Return the part of the likelihood that depends on r alone."""
        return self._quadratic.level(r, self._constant)

    def cells(self, target: float) -> list[ProofCell]:
        """Return cells that cover all attainable points that are above the target."""
        ends = logit(self._support.range_of_r)
        # The maximum lies on an edge, where bounds touch the likelihood.
        middle = np.clip(logit(self.r), *ends)
        n_cuts = settings.PROOF.n_columns + 1
        equal_cuts = np.linspace(ends[0], ends[1], n_cuts)
        cuts = np.unique([middle, *equal_cuts])
        cells = []
        for column in pairwise(cuts):
            lowest = self._lowest_log_v(column, target)
            # Each cell is narrower than 1 in log(v).
            n_cells = 1 + int(-lowest)
            edges = np.linspace(lowest, 0, n_cells + 1)
            cells += [ProofCell(column, interval) for interval in pairwise(edges)]
        return cells

    def _lowest_log_v(self, column: tuple[float, float], target: float) -> float:
        """Return a log(v) below which no point of a column is above the target.

        The squared residuals Q are at least those of the least squares fit to the
        labeled rows, and k is at most (1 - s) v / 2. Each term of the level is largest
        at an end of the column.
        """
        quadratic = self._quadratic
        lowest_r, highest_r = expit(column).tolist()
        inverse = quadratic.n_first / lowest_r + quadratic.n_second / (1 - highest_r)
        largest = self._constant + inverse / (2 * quadratic.keep)
        log_first = quadratic.first_log_weight * math.log(highest_r)
        log_second = quadratic.second_log_weight * math.log(1 - lowest_r)
        largest += log_first + log_second

        # From where the likelihood is largest in v, it falls as v does.
        loss = 2 * self._least_loss / quadratic.keep
        half_weight = self.weight / 2
        log_v = math.log(min(1.0, 2 * loss / self.weight))
        while largest - half_weight * log_v - loss * math.exp(-log_v) > target:
            log_v -= settings.PROOF.log_v_step
        return log_v

    def _at_pairs(self, multipliers: Array, r: Array, v: Array) -> _Pairs:
        """Bound the likelihood at several pairs (r, v)."""
        quadratic = self._quadratic
        scores = multipliers[:-1]
        curvatures = quadratic.curvatures + multipliers[-1]
        det_shares = r * (1 - r)
        k = 2 * quadratic.keep * det_shares * v

        # The b (pairs, rank) that maximizes the bound of each pair.
        b = quadratic.first - np.outer(r, quadratic.total)
        b -= np.outer(k, scores[1:] / 2)
        b /= curvatures

        # What does not depend on b, then the quadratic part and the sphere.
        sphere = det_shares * (1 - v) / k
        half_log_v = self.weight / 2 * np.log(v)
        values = self._level(r) - half_log_v - scores[0] * r
        squares = b**2 @ curvatures
        quadratic_parts = (squares - quadratic.loss(r)) / k
        values += quadratic_parts + multipliers[-1] * sphere
        return _Pairs(values, b, k, sphere)

    def largest_bound(
        self, multipliers: Array, r: Array, v: Array, tau: float
    ) -> _Softened:
        """Return the largest bound at several pairs (r, v), with derivatives.

        It is the largest value at the pairs plus the support function of the attainable
        set, the same for all pairs. tau softens both maxima: that over pairs, and that
        over the labels of each row. A logarithmic barrier keeps the bound concave in b.
        """
        curvatures = self._quadratic.curvatures + multipliers[-1]
        smallest = curvatures[0]
        if not smallest > 0:
            # The bound has no maximum over b. Such multipliers are never taken, so that
            # nothing needs the derivatives.
            return _Softened(math.inf, math.inf, np.empty(0), np.empty((0, 0)))
        support = self._support.softened(multipliers[:-1], tau)
        pairs = self._at_pairs(multipliers, r, v)
        barrier = settings.PROOF.barrier_per_tau * tau

        # The value: tau log sum exp(values / tau) over the pairs, less the barrier.
        largest = float(pairs.values.max())
        shares = np.exp((pairs.values - largest) / tau)
        excess_over_pairs = tau * math.log(shares.sum())
        log_barrier = barrier * math.log(smallest / self.weight)
        value = support.value + largest + support.excess
        value += excess_over_pairs - log_barrier

        # The gradient: the mean of those at the pairs, (pairs, 1 + rank + 1).
        shares /= shares.sum()
        squared_lengths = (pairs.b**2).sum(axis=1)
        by_multiplier = pairs.sphere - squared_lengths / pairs.k
        by_pair = np.column_stack([-r, -pairs.b, by_multiplier])
        gradient = shares @ by_pair
        # The soft maximum bends by the spread of these gradients about their mean.
        apart = (by_pair - gradient) * np.sqrt(shares / tau)[:, None]
        gradient[:-1] += support.gradient
        gradient[-1] -= barrier / smallest

        # The Hessian, of the same parts.
        hessian = apart.T @ apart
        hessian[:-1, :-1] += support.hessian
        hessian += _mean_curvature(pairs, shares, curvatures)
        hessian[-1, -1] += barrier / smallest**2
        return _Softened(support.value + largest, value, gradient, hessian)

    def improve(
        self, multipliers: Array, r: Array, v: Array, target: float, max_steps: int
    ) -> tuple[float, Array, int]:
        """Lower the largest bound at pairs (r, v) by Newton steps, down to ``target``.

        Return the bound, its multipliers and the number of steps.
        """
        chosen = settings.PROOF
        # The largest bound itself does not depend on tau.
        bound = self.largest_bound(multipliers, r, v, self.weight)
        tau, min_tau = _range_of_tau(bound.largest - target, self.weight)
        current = self.largest_bound(multipliers, r, v, tau)
        best_bound = current.largest
        best_multipliers = multipliers
        damping = chosen.min_damping
        n_steps = 0
        while best_bound > target and n_steps < max_steps:
            n_steps += 1

            # 1. A step that lowers the bound too little is damped more, not taken.
            step = _newton_step(current, damping)
            slope = float(current.gradient @ step)
            ahead = self.largest_bound(multipliers + step, r, v, tau)
            max_value = current.value + chosen.sufficient_gain * slope
            if not ahead.value <= max_value:
                raised = chosen.raised_damping_factor * damping
                damping = max(raised, chosen.damping_after_failure)
                continue

            # 2. Take it. The softened bound falls with every step; the bound itself,
            # the largest of several, may rise.
            multipliers = multipliers + step
            current = ahead
            damping = max(chosen.lowered_damping_factor * damping, chosen.min_damping)
            if current.largest < best_bound:
                best_bound = current.largest
                best_multipliers = multipliers

            # 3. Stop where the predicted fall is far too small to reach the target.
            lack = current.value + slope - tau - target
            if -slope < chosen.min_fall_over_lack * lack:
                break

            # 4. Soften less once the steps are hardly damped.
            if damping <= chosen.damping_after_failure and tau > min_tau:
                tau = max(min_tau, chosen.tau_factor * tau)
                current = self.largest_bound(multipliers, r, v, tau)
        return best_bound, best_multipliers, n_steps

    def _without_b(self, multipliers: Array) -> _BoundInRAndV:
        """Return the bound of given multipliers at the b that maximizes it."""
        quadratic = self._quadratic
        support = self._support
        scores = multipliers[:-1]
        multiplier = multipliers[-1]
        curvatures = quadratic.curvatures + multiplier
        # The b that maximizes the bound is first - r total, as named here, less
        # k c_b / 2 over the curvatures.
        first = quadratic.first / curvatures
        total = quadratic.total / curvatures
        scores_of_b = scores[1:]
        leads = support.z @ scores
        intercept = scores @ support.labeled - scores_of_b @ first
        intercept = intercept - multiplier / (2 * quadratic.keep)
        intercept += support.sum_of_won(leads)
        return _BoundInRAndV(
            a_0=quadratic.first @ first - quadratic.n_first,
            a_1=2 * (quadratic.n_first - quadratic.first @ total) + multiplier,
            a_2=quadratic.total @ total - self.weight - multiplier,
            intercept=intercept,
            slope=scores_of_b @ total - scores[0],
            rise=scores_of_b @ (scores_of_b / curvatures) / 4,
        )

    def _excess_over_chord(
        self, bound: _BoundInRAndV, cell: ProofCell
    ) -> tuple[float, float, float]:
        """Bound how far the bound of a cell exceeds its chord between both ends of r.

        The excess is at most the largest second derivative by r times width^2 / 8. It
        is returned in three parts, to be added: one constant in v, one to be divided by
        v, and one to be multiplied by v.
        """
        quadratic = self._quadratic
        keep = quadratic.keep
        (low_r, high_r), _ = cell.ends
        bend = (high_r - low_r) ** 2 / 8

        # The part that is constant in v is due to the level.
        inverse_first = quadratic.n_first / high_r**3
        inverse_second = quadratic.n_second / (1 - low_r) ** 3
        inverse = (inverse_first + inverse_second) / keep
        log_first = quadratic.first_log_weight / low_r**2
        log_second = quadratic.second_log_weight / (1 - high_r) ** 2
        fixed = bend * max(0.0, log_first + log_second - inverse)

        # The quadratic function of r over k has poles at 0 and 1.
        negative_at_one = -bound.a_0 - bound.a_1 - bound.a_2
        at_zero = max(0.0, -bound.a_0) / low_r**3
        at_one = max(0.0, negative_at_one) / (1 - high_r) ** 3
        over_v = bend * (at_zero + at_one) / keep

        times_v = bend * 4 * keep * bound.rise
        return fixed, over_v, times_v

    def bound(self, multipliers: Array, cell: ProofCell) -> CellBound:
        """Return an upper bound in a cell, by multipliers that make it concave in b.

        In r the bound is replaced by its chord, which is largest at an end of the cell,
        plus the excess over it. At an end it is level - N/2 log v + fall / v +
        growth v, whose maximum lies at an end of v or where the derivative vanishes.
        """
        bound = self._without_b(multipliers)
        fixed, over_v, times_v = self._excess_over_chord(bound, cell)
        half_weight = self.weight / 2
        ends_of_r, (low_v, high_v) = cell.ends
        candidates = []
        for r in ends_of_r:
            k = 2 * self._quadratic.keep * r * (1 - r)
            level = self._level(r) + bound.intercept + bound.slope * r + fixed
            quadratic = bound.a_0 + bound.a_1 * r + bound.a_2 * r**2
            fall = quadratic / k + over_v
            growth = k * bound.rise + times_v

            # The derivative by v vanishes where growth v^2 - N/2 v - fall = 0. Of the
            # two roots the smaller one is the maximum; in this form its divisor is
            # never zero.
            discriminant = self.weight**2 / 4 + 4 * growth * fall
            peak = 0.0
            if discriminant >= 0:
                peak = -2 * fall / (half_weight + math.sqrt(discriminant))
            inner_v = min(max(peak, low_v), high_v)

            for v in (low_v, high_v, inner_v):
                value = level - half_weight * math.log(v) + fall / v + growth * v
                candidates.append((float(value), r, v))

        value, r, v = max(candidates)
        error_of_r = fixed + over_v / v + times_v * v
        return CellBound(value, r, v, error_of_r)


def _mean_curvature(pairs: _Pairs, shares: Array, curvatures: Array) -> Array:
    """Return the mean second derivative (1 + rank + 1, same) of the bounds at pairs.

    At the best b a bound has, by c_b, the multiplier l and both of them, with the
    ``curvatures`` g of b (those of G plus l), the second derivatives

        diag(k / (2 g))        2 / k sum b^2 / g        b / g
    """
    size = 2 + len(curvatures)
    of_b = np.arange(1, size - 1)
    mean_k = shares @ pairs.k
    mixed = shares @ pairs.b / curvatures
    scaled_squares = (pairs.b**2 / curvatures).sum(axis=1)
    bends = 2 / pairs.k * scaled_squares

    hessian = np.zeros((size, size))
    hessian[of_b, of_b] = mean_k / (2 * curvatures)
    hessian[of_b, -1] = mixed
    hessian[-1, of_b] = mixed
    hessian[-1, -1] = shares @ bends
    return hessian


def _range_of_tau(lack: float, weight: float) -> tuple[float, float]:
    """Return the tau with which Newton steps begin, and the one to which it falls.

    It begins at what is lacking to the target, and falls to a small part of it.
    """
    chosen = settings.PROOF
    tau = max(lack, chosen.min_first_tau * weight)
    smallest, largest = chosen.last_tau_limits
    last_tau = max(chosen.last_tau_share * tau, smallest * weight)
    return tau, min(last_tau, largest * weight)


def _newton_step(current: _Softened, damping: float) -> Array:
    """Return a Newton step with damping relative to the diagonal of the Hessian."""
    diagonal = current.hessian.diagonal()
    scale = np.full(len(diagonal), diagonal[:-1].max())
    scale[-1] = diagonal[-1]
    damped = current.hessian + np.diag(damping * scale)
    return np.asarray(-np.linalg.solve(damped, current.gradient))


class _Search:
    """Branch and bound over the cells whose bounds are above the target."""

    def __init__(self, bounds: UpperBounds) -> None:
        self._bounds = bounds
        self._tolerance = settings.PROOF.gap * bounds.weight
        self._target = bounds.maximum + self._tolerance
        # A heap with the largest bound first; the counter decides between equal bounds.
        self._cells: list[tuple[float, int, ProofCell, Array, CellBound]] = []
        self._order = count()
        for cell in bounds.cells(self._target):
            self._add(cell, bounds.start)

    def _add(self, cell: ProofCell, multipliers: Array) -> None:
        bound = self._bounds.bound(multipliers, cell)
        if not bound.value <= self._target:
            entry = (-bound.value, next(self._order), cell, multipliers, bound)
            heapq.heappush(self._cells, entry)

    def run(self, max_steps: float) -> bool:
        """Split cells until none is left; return False if that takes too many steps."""
        chosen = settings.PROOF
        while self._cells and max_steps > 0:
            _, _, cell, multipliers, bound = heapq.heappop(self._cells)
            width_in_r = cell.r[1] - cell.r[0]
            width_in_v = cell.v[1] - cell.v[0]
            width = max(width_in_r, width_in_v)
            is_small = bool(width < chosen.small_cell_width)
            multipliers, n_steps = self._improved(
                cell, multipliers, bound, is_small=is_small
            )
            max_steps -= 1 + n_steps
            bound = self._bounds.bound(multipliers, cell)
            lack = bound.value - self._target
            if lack <= 0:
                continue
            if width < chosen.min_cell_width:
                return False

            # Split where the bound loses most: both halves begin with the multipliers
            # of the whole.
            max_error_of_r = chosen.splitting_share_of_lack * lack
            is_split_in_r = bound.error_of_r > max_error_of_r
            is_split_in_r = is_split_in_r or width_in_r > width_in_v
            for half in cell.halves(is_split_in_r=bool(is_split_in_r)):
                self._add(half, multipliers)
        return not self._cells

    def _improved(
        self, cell: ProofCell, multipliers: Array, bound: CellBound, *, is_small: bool
    ) -> tuple[Array, int]:
        """Return multipliers with a lower bound, and the number of Newton steps."""
        # Bounds are lowered at the corners and where the bound of the cell is attained.
        # The dictionary keeps one of pairs that are equal.
        corners = product(*cell.ends)
        pairs = dict.fromkeys([*corners, (bound.r, bound.v)])
        r = np.array([pair[0] for pair in pairs])
        v = np.array([pair[1] for pair in pairs])
        starts = [multipliers, self._bounds.start, np.zeros(len(multipliers))]
        values = [
            self._bounds.largest_bound(start, r, v, self._tolerance).largest
            for start in starts
        ]
        chosen = settings.PROOF
        aim = self._target - chosen.aimed_share_of_tol * self._tolerance
        max_steps = chosen.max_steps_of_large_cell
        if is_small:
            max_steps = chosen.max_steps_of_small_cell
        lowest = math.inf
        n_steps = 0
        # The start with the lowest bound comes first.
        for i in np.argsort(values):
            if lowest <= self._target:
                break
            # A large cell is rather split than improved from a start far behind the
            # best bound so far.
            max_lack = chosen.max_lack_over_best * (lowest - self._target)
            if not is_small and values[i] - self._target > max_lack:
                break
            value, improved, n_more = self._bounds.improve(
                starts[i], r, v, aim, max_steps
            )
            n_steps += n_more
            if value < lowest:
                lowest = value
                multipliers = improved
        return multipliers, n_steps
