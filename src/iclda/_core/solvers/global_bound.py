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
from itertools import count, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from .. import Array
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


class UpperBounds:
    """Upper bounds of the likelihood, one for every vector of multipliers.

    Multipliers are an array (1 + rank + 1,): the scores (c_0, c_b) of the support
    function, and the multiplier l of b'b. For fixed r and v the likelihood is

        level(r) - N/2 log v - Q / k        k = 2 (1 - s) r (1 - r) v

    with the squared residuals Q = loss(r) + b'G b - 2 b'(first - r total). Coordinates
    of b are those in which G, the sum of z z' over the labeled rows, is diagonal: its
    eigenvalues are the ``curvatures``. ``first`` is the sum of z over the labeled rows
    of the first class, ``total`` that over all labeled rows. docs/solvers.md derives
    this.
    """

    def __init__(self, problem: Problem, point: Array) -> None:
        likelihood = problem.likelihood
        counts = likelihood.counts
        means = likelihood.means
        self.weight = likelihood.weight
        self._keep = 1 - likelihood.shrinkage
        self._n_first, self._n_second = counts.tolist()
        # With fixed priors the likelihood has no terms in log r and log(1 - r).
        has_free_priors = likelihood.log_priors is None
        self._first_log_weight = self._n_first if has_free_priors else 0.0
        self._second_log_weight = self._n_second if has_free_priors else 0.0

        # The labeled rows, then the unlabeled ones, in coordinates that make G
        # diagonal.
        labeled_squares = likelihood.within + (counts * means.T) @ means
        self._curvatures, axes = np.linalg.eigh(labeled_squares)
        self._first = counts[0] * means[0] @ axes
        self._total = counts @ means @ axes
        held = hold_all(problem)
        self._row_weights = held.weights
        self._z = held.z.copy()
        self._z[:, 1:] = held.z[:, 1:] @ axes
        labeled_point = held.labeled_point[0]
        self._labeled = np.append(labeled_point[0], labeled_point[1:] @ axes)

        # The maximum, and the constant with which the formula above attains it.
        value, gradient = likelihood.value_and_gradient(point)
        self.maximum = float(value)
        self.r = float(point[0, 0])
        b = point[0, 1:] @ axes
        det_core = self.r * (1 - self.r) - float(b @ b)
        self.v = det_core / (self.r * (1 - self.r))
        loss = float(self._loss(self.r) + b @ (self._curvatures * b))
        loss -= 2 * float(b @ (self._first - self.r * self._total))
        half_log_v = self.weight / 2 * math.log(self.v)
        self._constant = self.maximum + half_log_v - self._terms_of_r(0.0, self.r)
        self._constant += loss / (2 * self._keep * det_core)

        # Multipliers whose bound touches the likelihood at the maximum.
        lead = gradient[0] - gradient[1]
        multiplier = loss / det_core - self._keep * self.weight
        self.start = np.concatenate([lead[:1], lead[1:] @ axes, [multiplier]])

        # At the maximum the bound has to be concave in b.
        min_curvature = _MIN_LABELED_SPREAD * self.weight
        self._least_loss = self._least_squares_loss(min_curvature)
        smallest = float(self._curvatures[0])
        is_regular = min(self._least_loss, smallest) > min_curvature
        self.are_tight = is_regular and smallest + multiplier > 0

    def _least_squares_loss(self, min_curvature: float) -> float:
        """Return the squared residuals of the least squares fit to the labeled rows."""
        gram = np.diag(np.append(self.weight, self._curvatures.clip(min_curvature)))
        gram[0, 1:] = self._total
        gram[1:, 0] = self._total
        right = np.append(self._n_first, self._first)
        explained = float(right @ np.linalg.solve(gram, right))
        return float(self._n_first - explained)

    def _loss(self, r: Any) -> Any:
        """Return the squared residuals of the constant r: Q for b = 0."""
        return self.weight * r**2 - 2 * self._n_first * r + self._n_first

    def _level(self, r: Any) -> Any:
        """Return the part of the likelihood that depends on r alone."""
        return self._terms_of_r(self._constant, r)

    def _terms_of_r(self, constant: float, r: Any) -> Any:
        inverse = self._n_first / r + self._n_second / (1 - r)
        return (
            constant
            + self._first_log_weight * np.log(r)
            + self._second_log_weight * np.log(1 - r)
            + inverse / (2 * self._keep)
        )

    def cells(self, target: float) -> list[ProofCell]:
        """Return cells that cover all attainable points that are above the target."""
        smallest_r = self._labeled[0]
        ends = logit([smallest_r, smallest_r + self._row_weights.sum()])
        # The maximum lies on an edge, where bounds touch the likelihood.
        middle = np.clip(logit(self.r), *ends)
        n_cuts = settings.PROOF.n_columns + 1
        cuts = np.unique([middle, *np.linspace(ends[0], ends[1], n_cuts)])
        cells = []
        for column in pairwise(cuts):
            lowest = self._lowest_log_v(column, target)
            edges = np.linspace(lowest, 0, 2 + int(-lowest))
            cells += [ProofCell(column, interval) for interval in pairwise(edges)]
        return cells

    def _lowest_log_v(self, column: tuple[float, float], target: float) -> float:
        """Return a log(v) below which no point of a column is above the target.

        The squared residuals Q are at least those of the least squares fit to the
        labeled rows, and k is at most (1 - s) v / 2. Each term of the level is largest
        at an end of the column.
        """
        lowest_r, highest_r = expit(column).tolist()
        inverse = self._n_first / lowest_r + self._n_second / (1 - highest_r)
        largest = self._constant + inverse / (2 * self._keep)
        log_first = self._first_log_weight * math.log(highest_r)
        log_second = self._second_log_weight * math.log(1 - lowest_r)
        largest += log_first + log_second

        # From where the likelihood is largest in v, it falls as v does.
        loss = 2 * self._least_loss / self._keep
        log_v = math.log(min(1.0, 2 * loss / self.weight))
        while largest - self.weight / 2 * log_v - loss * math.exp(-log_v) > target:
            log_v -= settings.PROOF.log_v_step
        return log_v

    def _at_pairs(self, multipliers: Array, r: Array, v: Array) -> _Pairs:
        """Bound the likelihood at several pairs (r, v)."""
        scores = multipliers[:-1]
        curvatures = self._curvatures + multipliers[-1]
        det_shares = r * (1 - r)
        k = 2 * self._keep * det_shares * v

        # The b (pairs, rank) that maximizes the bound of each pair.
        b = self._first - np.outer(r, self._total) - np.outer(k, scores[1:] / 2)
        b /= curvatures

        # What does not depend on b, then the quadratic part and the sphere.
        sphere = det_shares * (1 - v) / k
        values = self._level(r) - self.weight / 2 * np.log(v) - scores[0] * r
        squares = b**2 @ curvatures
        quadratic_parts = (squares - self._loss(r)) / k
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
        scores = multipliers[:-1]
        size = len(scores)
        curvatures = self._curvatures + multipliers[-1]
        smallest = curvatures[0]
        if not smallest > 0:
            return _Softened(math.inf, math.inf, multipliers, multipliers)
        pairs = self._at_pairs(multipliers, r, v)
        largest = float(pairs.values.max())

        # The support function: every row goes to the class with the larger score.
        leads = self._z @ scores
        decay = np.exp(-np.abs(leads) / tau)
        won = self._row_weights @ np.maximum(leads, 0)
        support = float(scores @ self._labeled + won)

        # The softened value.
        shares = np.exp((pairs.values - largest) / tau)
        barrier = settings.PROOF.barrier_per_tau * tau
        excess_over_rows = float(self._row_weights @ np.log1p(decay))
        value = support + largest + tau * excess_over_rows
        log_barrier = barrier * math.log(smallest / self.weight)
        excess_over_pairs = math.log(shares.sum())
        value += tau * excess_over_pairs - log_barrier

        # Its gradient: of the maximum over pairs, the support function and the barrier.
        shares /= shares.sum()
        squared_lengths = (pairs.b**2).sum(axis=1)
        by_multiplier = pairs.sphere - squared_lengths / pairs.k
        # Gradients (pairs, 1 + rank + 1) of the bounds, and their mean.
        by_pair = np.column_stack([-r, -pairs.b, by_multiplier])
        gradient = shares @ by_pair
        roots = np.sqrt(shares / tau)
        apart = (by_pair - gradient) * roots[:, None]

        labels = np.where(leads >= 0, 1, decay) / (1 + decay)
        unlabeled = (self._row_weights * labels) @ self._z
        gradient[:size] += self._labeled + unlabeled
        gradient[size] -= barrier / smallest

        # Its Hessian, in the same order. The maximum over pairs adds their spread about
        # the mean gradient, and the curvature of each bound.
        hessian = apart.T @ apart
        spread = self._row_weights * decay / (1 + decay) ** 2 / tau
        hessian[:size, :size] += (self._z * spread[:, None]).T @ self._z

        # The curvature by the scores of b, by both, and by the multiplier.
        inner = np.arange(1, size)
        mixed = shares @ pairs.b / curvatures
        mean_k = shares @ pairs.k
        hessian[inner, inner] += mean_k / (2 * curvatures)
        hessian[inner, size] += mixed
        hessian[size, inner] += mixed
        scaled_squares = (pairs.b**2 / curvatures).sum(axis=1)
        bends = 2 / pairs.k * scaled_squares
        hessian[size, size] += shares @ bends
        hessian[size, size] += barrier / smallest**2
        return _Softened(support + largest, value, gradient, hessian)

    def improve(
        self, multipliers: Array, r: Array, v: Array, target: float, max_steps: int
    ) -> tuple[float, Array, int]:
        """Lower the largest bound at pairs (r, v) by Newton steps, down to ``target``.

        Return the bound, its multipliers and the number of steps.
        """
        chosen = settings.PROOF
        unit = self.weight
        lack = self.largest_bound(multipliers, r, v, unit).largest - target
        # tau begins at what is lacking and falls to a small part of it.
        tau = max(lack, chosen.min_first_tau * unit)
        smallest, largest = chosen.last_tau_limits
        last_tau = max(chosen.last_tau_share * tau, smallest * unit)
        min_tau = min(last_tau, largest * unit)
        current = self.largest_bound(multipliers, r, v, tau)
        best_bound = current.largest
        best_multipliers = multipliers
        damping = chosen.min_damping
        n_steps = 0
        while best_bound > target and n_steps < max_steps:
            n_steps += 1

            # A step that lowers the bound too little is damped more, not taken.
            step = _newton_step(current, damping)
            slope = float(current.gradient @ step)
            ahead = self.largest_bound(multipliers + step, r, v, tau)
            max_value = current.value + chosen.sufficient_gain * slope
            if not ahead.value <= max_value:
                raised = chosen.raised_damping_factor * damping
                damping = max(raised, chosen.damping_after_failure)
                continue

            multipliers = multipliers + step
            current = ahead
            damping = max(chosen.lowered_damping_factor * damping, chosen.min_damping)
            if current.largest < best_bound:
                best_bound = current.largest
                best_multipliers = multipliers

            # Stop where the predicted fall is far too small to reach the target.
            lack = current.value + slope - tau - target
            if -slope < chosen.min_fall_over_lack * lack:
                break

            # Soften less once the steps are hardly damped.
            if damping <= chosen.damping_after_failure and tau > min_tau:
                tau = max(min_tau, chosen.tau_factor * tau)
                current = self.largest_bound(multipliers, r, v, tau)
        return best_bound, best_multipliers, n_steps

    def _without_b(self, multipliers: Array) -> _BoundInRAndV:
        """Return the bound of given multipliers at the b that maximizes it."""
        scores = multipliers[:-1]
        multiplier = multipliers[-1]
        curvatures = self._curvatures + multiplier
        first = self._first / curvatures
        total = self._total / curvatures
        intercept = scores @ self._labeled - scores[1:] @ first
        intercept = intercept - multiplier / (2 * self._keep)
        intercept += self._row_weights @ np.maximum(self._z @ scores, 0)
        return _BoundInRAndV(
            a_0=self._first @ first - self._n_first,
            a_1=2 * (self._n_first - self._first @ total) + multiplier,
            a_2=self._total @ total - self.weight - multiplier,
            intercept=intercept,
            slope=scores[1:] @ total - scores[0],
            rise=scores[1:] @ (scores[1:] / curvatures) / 4,
        )

    def _excess_over_chord(
        self, bound: _BoundInRAndV, cell: ProofCell
    ) -> tuple[float, float, float]:
        """Bound how far the bound of a cell exceeds its chord between both ends of r.

        The excess is at most the largest second derivative by r times width^2 / 8. It
        is returned in three parts, to be added: one constant in v, one to be divided by
        v, and one to be multiplied by v.
        """
        keep = self._keep
        (low_r, high_r), _ = cell.ends
        bend = (high_r - low_r) ** 2 / 8

        # The part that is constant in v is due to the level.
        inverse_first = self._n_first / high_r**3
        inverse_second = self._n_second / (1 - low_r) ** 3
        inverse = (inverse_first + inverse_second) / keep
        log_first = self._first_log_weight / low_r**2
        log_second = self._second_log_weight / (1 - high_r) ** 2
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
            k = 2 * self._keep * r * (1 - r)
            level = self._level(r) + bound.intercept + bound.slope * r + fixed
            quadratic = bound.a_0 + bound.a_1 * r + bound.a_2 * r**2
            fall = quadratic / k + over_v
            growth = k * bound.rise + times_v

            # Where the derivative by v vanishes, if it does.
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
            width_in_r, width_in_v = np.ptp(cell, axis=1)
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

            # Split where the bound loses most.
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
        pairs = dict.fromkeys([*product(*cell.ends), (bound.r, bound.v)])
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
        for i in np.argsort(values):
            lack = lowest - self._target
            # A large cell is split sooner than improved from a start that is far
            # behind.
            is_behind = values[i] - self._target > chosen.max_lack_over_best * lack
            if lack <= 0 or (not is_small and is_behind):
                break
            value, improved, n_more = self._bounds.improve(
                starts[i], r, v, aim, max_steps
            )
            n_steps += n_more
            if value < lowest:
                lowest = value
                multipliers = improved
        return multipliers, n_steps
