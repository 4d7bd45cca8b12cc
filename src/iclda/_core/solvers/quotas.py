"""Quotas of the classes, and the shifts of scores by which labels fill them.

Labels are softmax of the scores s_ik = c_k' z~_i of row i in class k plus a shift
lambda_k. The shifts minimize a convex function of K numbers, the dual,

    D(lambda) = sum_i w_i log sum_k exp(s_ik + lambda_k) - sum_k quota_k lambda_k

At its minimum the derivative by each lambda_k vanishes: class k has the weight quota_k.
As a function of the scores, the minimum takes the place of the sum of log-sum-exp: its
gradient is the point of the labeling, and its second derivative is J.

A quota may be an interval from low to low + width. The class then has the weight
low + width / (1 + exp(sharpness lambda_k)), which lies in the interval for every shift,
and the term quota_k lambda_k of the dual is replaced by the integral of this weight
(``Quotas.cost``).

The maximum of a linear function over the set minimizes the same dual with max in place
of log-sum-exp. Any shift gives an upper bound of it.

Newton's method converges from zero if labels are soft. Scores are therefore divided by
a tau that falls to 1, and the shifts of the next level are extrapolated linearly from
the last two. Two classes have one shift, which lies in a bracket.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import AnyArray, Array
from ..labelsums import label, second_of_two
from . import settings

# Error of filled quotas, over the weight of the rows, at which Newton's method stops
# ...
_FILLED_ERROR = 1e-13
# ... and one that is accepted where rounding prevents further progress.
_ROUNDED_ERROR = 1e-10
# Rounding of the dual, relative to its value, and how many times it a step must gain.
_DUAL_ROUNDING = 1e-15
_SURE_GAIN = 8
# Divisors and logarithms are kept above this.
_SMALLEST_DIVISOR = 1e-300
# Ridge that rounding takes, over the trace of Newton's equations.
_ROUNDING_RIDGE = 1e-12


@dataclass(frozen=True)
class Quotas:
    """Weights, over N, that the classes get of some rows.

    A class gets from ``low`` to ``low + width``.

    Attributes
    ----------
    low : (K,) smallest weights
    width : (K,) widths of the intervals
    is_shifted : (K,) classes that are shifted; others have no quota, or get the rest
    weight : weight of all rows
    sharpness : of intervals, how fast the weight of a class changes with its shift
    """

    low: Array
    width: Array
    is_shifted: AnyArray
    weight: float
    sharpness: float = 1.0

    @property
    def has_slack(self) -> bool:
        """Whether any quota is an interval."""
        return bool(self.width.any())

    def less(self, taken: Array) -> Quotas:
        """Return what is left of the quotas if other rows take weights ``taken``."""
        return replace(self, low=self.low - taken)

    def can_be_filled(self, weight: float) -> bool:
        """Whether rows of this weight can fill the quotas in more than one way."""
        return bool((self.low < weight).all() and (self.low + self.width > 0).all())

    def cost(self, shifts: Array) -> Array:
        """Return the terms of the dual other than log-sum-exp, at shifts (..., K)."""
        cost = -(shifts @ self.low)
        if self.has_slack:
            slack = np.logaddexp(0, -self.sharpness * shifts) / self.sharpness
            cost = cost + slack @ (self.is_shifted * self.width)
        return np.asarray(cost)

    def hard_cost(self, shift: Array) -> float:
        """Return the cost for hard labels: the limit of infinite sharpness."""
        return float(np.maximum(-shift, 0) @ self.width - shift @ self.low)

    def filled(self, shifts: Array) -> Array:
        """Return the weights that the classes must have at shifts, (..., K) or (K,)."""
        if not self.has_slack:
            return self.low
        return np.asarray(
            self.low + self.width * second_of_two(self.sharpness * shifts)
        )

    def curvatures(self, shifts: Array) -> Array:
        """Return the second derivatives of ``cost`` by each shift, (..., K)."""
        if not self.has_slack:
            return np.zeros_like(shifts)
        share = second_of_two(self.sharpness * shifts)
        return np.asarray(self.sharpness * self.width * share * (1 - share))


def balance(
    scores: Array, weights: Array, quotas: Quotas, start: Array | None = None
) -> Array:
    """Return the shifts (S, K) by which softmax of scores (S, K, n) fills the quotas.

    ``start`` (S, K) are shifts of similar scores.
    """
    if scores.shape[1] == 2:
        return _balance_two(scores, weights, quotas, start)
    if start is not None:
        n_steps = settings.QUOTA_NEWTON.max_warm_steps
        shifts, is_filled = minimize_dual(scores, weights, quotas, start, n_steps)
        if is_filled.all():
            return shifts
    return _balance_from_above(scores, weights, quotas)


def _balance_from_above(scores: Array, weights: Array, quotas: Quotas) -> Array:
    """Fill the quotas, with soft labels first: the tau over the scores falls to 1."""
    chosen = settings.QUOTA_NEWTON
    n_steps = chosen.max_steps
    soft = replace(quotas, sharpness=1.0)
    score_range = float(np.ptp(scores, axis=1).max(initial=0))
    tau = max(1.0, score_range / chosen.soft_range)
    shifts = np.zeros(scores.shape[:2])
    previous_tau = np.inf
    previous = shifts
    while tau > 1:
        divided, _ = minimize_dual(
            scores / tau, weights, soft, shifts / tau, n_steps, chosen.rough_error
        )
        found = tau * divided
        slope = (found - previous) / (tau - previous_tau)
        previous_tau = tau
        previous = found
        tau = max(1.0, chosen.tau_factor * tau)
        shifts = found + (tau - previous_tau) * slope
    while True:
        shifts, _ = minimize_dual(scores, weights, soft, shifts, n_steps)
        if soft.sharpness >= quotas.sharpness:
            return shifts
        sharper = soft.sharpness * chosen.sharpness_factor
        soft = replace(soft, sharpness=min(quotas.sharpness, sharper))


def _balance_two(
    scores: Array, weights: Array, quotas: Quotas, start: Array | None
) -> Array:
    """Find the shifts of the first of two classes, by Newton's method in a bracket."""
    chosen = settings.QUOTA_NEWTON
    total = float(weights.sum())
    leads = scores[:, 0] - scores[:, 1]
    if start is None:
        shifts = np.zeros(scores.shape[:2])
        shift = -np.median(leads, axis=-1)
    else:
        shifts = start.copy()
        shift = start[:, 0]
    low = np.minimum(-leads.max(axis=-1) - chosen.hard_score, -chosen.hard_score)
    high = np.maximum(-leads.min(axis=-1) + chosen.hard_score, chosen.hard_score)
    shift = np.clip(shift, low, high)
    tried = np.zeros((len(leads), 2))
    second = np.empty(leads.shape)
    for _ in range(chosen.max_steps):
        np.add(leads, shift[:, None], out=second)
        second_of_two(second, out=second)
        tried[:, 0] = shift
        # Weight of the second class beyond what it must have.
        excess = second @ weights - (total - quotas.filled(tried)[..., 0])
        if np.abs(excess).max() <= _FILLED_ERROR * total:
            break
        slope = (second * (1 - second)) @ weights + quotas.curvatures(tried)[:, 0]
        is_too_low = excess > 0
        low = np.where(is_too_low, shift, low)
        high = np.where(is_too_low, high, shift)
        newton = shift + excess / np.maximum(slope, _SMALLEST_DIVISOR)
        is_inside = (newton > low) & (newton < high)
        moved = np.where(is_inside, newton, (low + high) / 2)
        if np.array_equal(moved, shift):
            break
        shift = moved
    shifts[:, 0] = shift
    return shifts


def minimize_dual(
    scores: Array,
    weights: Array,
    quotas: Quotas,
    start: Array,
    max_steps: int,
    max_error: float = _FILLED_ERROR,
) -> tuple[Array, AnyArray]:
    """Minimize the dual for a stack of scores (S, K, n), by damped Newton steps.

    Return the shifts (S, K), and which of them fill the quotas to ``max_error``.
    """
    newton = _DualNewton(scores, weights, quotas, start, max_error)
    for _ in range(max_steps):
        open_indices = newton.find_open()
        if not len(open_indices):
            break
        newton.step(open_indices)
    return newton.shifts, newton.is_filled()


class _DualNewton:
    """Newton's method for the shifts of a stack of scores, each damped by itself."""

    def __init__(
        self,
        scores: Array,
        weights: Array,
        quotas: Quotas,
        start: Array,
        max_error: float,
    ) -> None:
        self._scores = scores
        self._weights = weights
        self._quotas = quotas
        self._max_error = max_error * quotas.weight
        self._shifted_classes = np.flatnonzero(quotas.is_shifted)
        self.shifts = start.copy()
        self._ridges = np.zeros(len(scores))
        # Steps in a row that lowered the dual by no more than rounding.
        self._n_idle = np.zeros(len(scores), dtype=int)
        self._is_open = np.ones(len(scores), dtype=bool)
        self._values, self._gradients, self._hessians = _dual(
            scores, weights, quotas, self.shifts
        )

    def find_open(self) -> AnyArray:
        """Return the indices of the stack that are not filled and make progress."""
        errors = np.abs(self._gradients).max(axis=1)
        max_idle_steps = settings.QUOTA_NEWTON.max_idle_steps
        self._is_open &= (errors > self._max_error) & (self._n_idle < max_idle_steps)
        return np.flatnonzero(self._is_open)

    def is_filled(self) -> AnyArray:
        """Return which quotas are filled, to the rounding where steps became idle."""
        has_ended_idle = self._n_idle >= settings.QUOTA_NEWTON.max_idle_steps
        rounded_error = _ROUNDED_ERROR * self._quotas.weight
        allowed = np.where(has_ended_idle, rounded_error, self._max_error)
        return np.asarray(np.abs(self._gradients).max(axis=1) <= allowed)

    def step(self, indices: AnyArray) -> None:
        """Take a Newton step at each index or, if it raises the dual, another one."""
        chosen = settings.QUOTA_NEWTON
        traces = np.trace(self._hessians[indices], axis1=1, axis2=2)
        ridge = self._ridges[indices] + _ROUNDING_RIDGE * traces + _SMALLEST_DIVISOR
        unit = np.eye(len(self._shifted_classes))
        damped = self._hessians[indices] + ridge[:, None, None] * unit
        right = self._gradients[indices][..., None]
        steps = -np.linalg.solve(damped, right)[..., 0]
        lengths = np.maximum(np.abs(steps).max(axis=1), chosen.hard_score)
        steps *= (chosen.hard_score / lengths)[:, None]
        is_lower = self._move(indices, steps, n_roundings=1.0)

        first_ridge = np.maximum(chosen.first_ridge * traces, _ROUNDING_RIDGE)
        old_ridge = self._ridges[indices]
        lowered = chosen.lowered_ridge_factor * old_ridge
        raised = np.maximum(chosen.raised_ridge_factor * old_ridge, first_ridge)
        self._ridges[indices] = np.where(is_lower, lowered, raised)
        is_stuck = ~is_lower & (self._ridges[indices] > chosen.max_ridge)
        self._is_open[indices[is_stuck]] = False
        if not is_lower.all():
            self._scale_odds(indices[~is_lower])

    def _scale_odds(self, indices: AnyArray) -> None:
        """Scale the odds of each class by the ratio of its quota to its weight.

        Newton's step is far too long where a class is far below its quota.
        """
        filled = self._quotas.filled(self.shifts[indices])
        wanted = filled[..., self._shifted_classes]
        counts = np.maximum(self._gradients[indices] + wanted, _SMALLEST_DIVISOR)
        steps = np.log(np.maximum(wanted, _SMALLEST_DIVISOR) / counts)
        self._move(indices, steps, n_roundings=0.0)

    def _move(self, indices: AnyArray, steps: Array, n_roundings: float) -> AnyArray:
        """Take the steps that do not raise the dual, up to some times its rounding.

        Return which were taken.
        """
        longest_step = settings.QUOTA_NEWTON.hard_score
        moved = self.shifts[indices]
        moved[:, self._shifted_classes] += np.clip(steps, -longest_step, longest_step)
        trial = _dual(self._scores[indices], self._weights, self._quotas, moved)
        fall = self._values[indices] - trial[0]
        rounding = _DUAL_ROUNDING * np.abs(self._values[indices])
        is_lower = fall >= -n_roundings * rounding
        is_sure = fall > _SURE_GAIN * rounding
        self._n_idle[indices] = np.where(is_sure, 0, self._n_idle[indices] + is_lower)
        taken = indices[is_lower]
        self.shifts[taken] = moved[is_lower]
        kept = (self._values, self._gradients, self._hessians)
        for mine, tried in zip(kept, trial, strict=True):
            mine[taken] = tried[is_lower]
        return np.asarray(is_lower)


def _dual(
    scores: Array, weights: Array, quotas: Quotas, shifts: Array
) -> tuple[Array, Array, Array]:
    """Return the dual (S,), its gradient (S, m) and its Hessian (S, m, m).

    The derivatives are by the shifts of the m classes that are shifted.
    """
    is_shifted = quotas.is_shifted
    shares, log_sums = label(scores + shifts[..., None], is_soft=True)
    shares = shares[:, is_shifted]
    weighted = shares * weights
    counts = weighted.sum(axis=-1)
    hessians = -(weighted @ np.swapaxes(shares, -1, -2))
    diagonal = np.arange(np.count_nonzero(is_shifted))
    curvatures = quotas.curvatures(shifts)[:, is_shifted]
    hessians[:, diagonal, diagonal] += counts + curvatures
    values = log_sums @ weights + quotas.cost(shifts)
    gradients = counts - quotas.filled(shifts)[..., is_shifted]
    return values, gradients, hessians


def hard_shift(scores: Array, weights: Array, quotas: Quotas) -> Array:
    """Return the shifts (K,) by which hard labels by scores (K, n) fill the quotas."""
    if len(scores) == 2:
        return _hard_shift_of_two(scores, weights, quotas)
    score_range = float(np.ptp(scores, axis=0).max(initial=0))
    tau = settings.QUOTA_NEWTON.hard_tau * score_range
    if tau == 0:
        return np.zeros(len(scores))
    divided = balance(scores[None] / tau, weights, quotas)[0]
    return np.asarray(tau * divided)


def _hard_shift_of_two(scores: Array, weights: Array, quotas: Quotas) -> Array:
    """Return the shifts of two classes: the lead at a quantile is the threshold."""
    shift = np.zeros(2)
    leads = scores[0] - scores[1]
    first = float(weights[leads > 0].sum())
    smallest = quotas.low[0]
    wanted = float(np.clip(first, smallest, smallest + quotas.width[0]))
    if wanted != first:
        order = np.argsort(-leads, kind="stable")
        last = int(np.searchsorted(np.cumsum(weights[order]), wanted))
        shift[0] = -leads[order[min(last, len(order) - 1)]]
    return shift
