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

The maximum of a linear function over the set is the minimum of the same dual with max
in place of log-sum-exp. The dual at any shifts is an upper bound of that maximum.

Newton's method converges from zero if labels are soft. Scores are therefore divided by
a tau that falls to 1, and the shifts of the next level are extrapolated linearly from
the last two. Two classes have a single shift, which lies in a bracket.

The shifts of several labelings are found at once: a stack of scores (S, K, n), of n
rows, has shifts (S, K).

Scores and weights, which have an axis of rows, are at a place, in memory or on a
device, where the dual is evaluated. Shifts and what else has an axis of classes alone
are in memory, where Newton's equations are solved. Two classes are in memory only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..labelsums import second_of_two
from ..rows import MEMORY
from . import settings
from .attainable import Shift

# Quotas are filled if no class misses its weight by more than this share of the weight
# of the rows ...
_FILLED_ERROR = 1e-13
# ... or by more than this share where rounding prevents further progress.
_ROUNDED_ERROR = 1e-10
# Rounding error of the dual, relative to its value.
_DUAL_ROUNDING = 1e-15
# A step that lowers the dual by fewer rounding errors than this makes no progress.
_ROUNDINGS_OF_PROGRESS = 8
# Divisors and arguments of logarithms are raised to this number.
SMALLEST_DIVISOR = 1e-300
# Ridge that keeps Newton's equations solvable in spite of rounding, over their trace.
ROUNDING_RIDGE = 1e-12


@dataclass(frozen=True)
class Quotas:
    """Weights, over N, that some rows must give to the classes.

    A class must get at least ``low`` and at most ``low + width``.

    Attributes
    ----------
    low : (K,) smallest weights
    width : (K,) widths of the intervals
    is_shifted : (K,) which classes are shifted; the others have no quota, or get what
        is left
    weight : weight of all rows
    sharpness : how fast the weight of a class moves through its interval as its shift
        changes
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
        """Return the quotas that are left when other rows have filled ``taken``."""
        return replace(self, low=self.low - taken)

    def can_be_filled(self, weight: float) -> bool:
        """Whether rows of this weight can fill the quotas in more than one way."""
        high = self.low + self.width
        return bool((self.low < weight).all() and (high > 0).all())

    def cost(self, shifts: Array) -> Array:
        """Return the terms of the dual other than log-sum-exp, at shifts (..., K)."""
        cost_of_low = -(shifts @ self.low)
        if not self.has_slack:
            return np.asarray(cost_of_low)
        # Minus the integral of 1 / (1 + exp(sharpness lambda)), the share of its
        # interval that a class gets. Of classes that are not shifted it is a constant,
        # and is left out.
        softplus = np.logaddexp(0, -self.sharpness * shifts) / self.sharpness
        cost_of_width = softplus @ (self.is_shifted * self.width)
        return np.asarray(cost_of_low + cost_of_width)

    def hard_cost(self, shift: Array) -> float:
        """Return the cost for hard labels: the limit of infinite sharpness."""
        cost_of_width = np.maximum(-shift, 0) @ self.width
        return float(cost_of_width - shift @ self.low)

    def filled(self, shifts: Array) -> Array:
        """Return the weights that the classes must have at shifts, (..., K) or (K,)."""
        if not self.has_slack:
            return self.low
        share_of_width = second_of_two(self.sharpness * shifts)
        return np.asarray(self.low + self.width * share_of_width)

    def curvatures(self, shifts: Array) -> Array:
        """Return the second derivatives of ``cost`` by each shift, (..., K)."""
        if not self.has_slack:
            return np.zeros_like(shifts)
        share_of_width = second_of_two(self.sharpness * shifts)
        slope = self.sharpness * self.width
        return np.asarray(slope * share_of_width * (1 - share_of_width))


def largest_range(scores: Any, place: Any = MEMORY) -> float:
    """Return the largest range, over classes, of the scores (..., K, n) of a row."""
    if 0 in scores.shape:
        return 0.0
    xp = place.xp
    ranges = xp.max(scores, axis=-2) - xp.min(scores, axis=-2)
    return float(place.fetch(xp.max(ranges)))


def balance(
    scores: Any,
    weights: Any,
    quotas: Quotas,
    start: Array | None = None,
    place: Any = MEMORY,
) -> Array:
    """Return the shifts (S, K) by which softmax of scores (S, K, n) fills the quotas.

    ``start`` (S, K) are shifts of similar scores.
    """
    if scores.shape[1] == 2:
        return _balance_two(scores, weights, quotas, start)
    if start is not None:
        n_steps = settings.QUOTA_NEWTON.max_warm_steps
        shifts, is_filled = minimize_dual(
            scores, weights, quotas, start, n_steps, place=place
        )
        if is_filled.all():
            return shifts
    return _balance_from_above(scores, weights, quotas, place)


def _balance_from_above(scores: Any, weights: Any, quotas: Quotas, place: Any) -> Array:
    """Fill the quotas from zero, with labels that are soft at first."""
    # 1. Newton's method converges where the intervals of quotas are soft, too.
    soft = replace(quotas, sharpness=1.0)
    shifts = _extrapolated_to_scores(scores, weights, soft, place)

    # 2. Sharpen the intervals, level by level.
    chosen = settings.QUOTA_NEWTON
    while True:
        shifts, _ = minimize_dual(
            scores, weights, soft, shifts, chosen.max_steps, place=place
        )
        if soft.sharpness >= quotas.sharpness:
            return shifts
        sharper = soft.sharpness * chosen.sharpness_factor
        soft = replace(soft, sharpness=min(quotas.sharpness, sharper))


def _extrapolated_to_scores(
    scores: Any, weights: Any, quotas: Quotas, place: Any
) -> Array:
    """Return shifts near those that fill the quotas, from levels of softer labels.

    Level tau fills the quotas for the scores over tau. Its shifts times tau are
    extrapolated linearly to the next level, and from the last level to tau = 1.
    """
    chosen = settings.QUOTA_NEWTON
    tau = max(1.0, largest_range(scores, place) / chosen.soft_range)
    shifts = np.zeros(scores.shape[:2])
    # Before the first level nothing is known: an infinite tau makes the first slope 0.
    previous_tau = np.inf
    previous_shifts = shifts
    while tau > 1:
        # 1. Fill the quotas at this level.
        shifts_over_tau, _ = minimize_dual(
            scores / tau,
            weights,
            quotas,
            start=shifts / tau,
            max_steps=chosen.max_steps,
            max_error=chosen.rough_error,
            place=place,
        )
        filling_shifts = tau * shifts_over_tau

        # 2. Extrapolate to the next one.
        slope = (filling_shifts - previous_shifts) / (tau - previous_tau)
        previous_tau = tau
        previous_shifts = filling_shifts
        tau = max(1.0, chosen.tau_factor * tau)
        shifts = filling_shifts + (tau - previous_tau) * slope
    return shifts


def _balance_two(
    scores: Array, weights: Array, quotas: Quotas, start: Array | None
) -> Array:
    """Find the shifts of the first of two classes, by Newton's method in a bracket.

    The lead of the first class is its score less that of the second one. The more it is
    shifted, the less weight is left to the second class.
    """
    chosen = settings.QUOTA_NEWTON
    leads = scores[:, 0] - scores[:, 1]
    if start is None:
        # Half of the rows go to each class.
        shift = -np.median(leads, axis=-1)
        shifts = np.zeros(scores.shape[:2])
    else:
        shift = start[:, 0]
        shifts = start.copy()

    low, high = _bracket(leads)
    shift = np.clip(shift, low, high)
    total = float(weights.sum())
    # Written over in every step, as it is as large as the leads, (S, n).
    second_shares = np.empty(leads.shape)
    for _ in range(chosen.max_steps):
        # 1. Compute the weight of the second class beyond what it must have.
        shifts[:, 0] = shift
        np.add(leads, shift[:, None], out=second_shares)
        second_of_two(second_shares, out=second_shares)
        second_quota = total - quotas.filled(shifts)[..., 0]
        excess = second_shares @ weights - second_quota
        if np.abs(excess).max() <= _FILLED_ERROR * total:
            break

        # 2. Narrow the bracket.
        is_too_low = excess > 0
        low = np.where(is_too_low, shift, low)
        high = np.where(is_too_low, high, shift)

        # 3. Take Newton's step or, if it leaves the bracket, halve the bracket.
        curvature = (second_shares * (1 - second_shares)) @ weights
        curvature = curvature + quotas.curvatures(shifts)[:, 0]
        newton_shift = shift + excess / np.maximum(curvature, SMALLEST_DIVISOR)
        is_inside = (newton_shift > low) & (newton_shift < high)
        next_shift = np.where(is_inside, newton_shift, (low + high) / 2)
        if np.array_equal(next_shift, shift):
            # Rounding prevents further progress.
            break
        shift = next_shift
    shifts[:, 0] = shift
    return shifts


def _bracket(leads: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest shifts (S,) that are of use for leads (S, n).

    At either one all rows are in one class, and an interval of weights is at one end.
    """
    hard_score = settings.QUOTA_NEWTON.hard_score
    low = np.minimum(-leads.max(axis=-1) - hard_score, -hard_score)
    high = np.maximum(-leads.min(axis=-1) + hard_score, hard_score)
    return low, high


def minimize_dual(
    scores: Any,
    weights: Any,
    quotas: Quotas,
    start: Array,
    max_steps: int,
    max_error: float = _FILLED_ERROR,
    place: Any = MEMORY,
) -> tuple[Array, AnyArray]:
    """Minimize the dual for a stack of scores (S, K, n), by damped Newton steps.

    Return the shifts (S, K), and which of them fill the quotas to ``max_error``.
    """
    newton = _DualNewton(scores, weights, quotas, start, max_error, place)
    for _ in range(max_steps):
        open_indices = newton.find_open()
        if not len(open_indices):
            break
        newton.step(open_indices)
    return newton.shifts, newton.is_filled()


class _Dual(NamedTuple):
    """The dual of a stack of scores, with its derivatives.

    The derivatives are by the shifts of the m classes that are shifted.

    Attributes
    ----------
    values : (S,) the dual
    gradients : (S, m) weights of the classes beyond their quotas
    hessians : (S, m, m) second derivatives
    """

    values: Array
    gradients: Array
    hessians: Array

    def replace_at(self, indices: AnyArray, other: _Dual, is_taken: AnyArray) -> None:
        """Take some values of another dual, whose stack is that at ``indices``."""
        taken = indices[is_taken]
        self.values[taken] = other.values[is_taken]
        self.gradients[taken] = other.gradients[is_taken]
        self.hessians[taken] = other.hessians[is_taken]


class _DualNewton:
    """Newton's method for the shifts of a stack of scores, each damped by itself.

    Attributes
    ----------
    shifts : (S, K) the shifts so far
    """

    def __init__(
        self,
        scores: Any,
        weights: Any,
        quotas: Quotas,
        start: Array,
        max_error: float,
        place: Any,
    ) -> None:
        self._scores = scores
        self._weights = weights
        self._quotas = quotas
        self._max_error = max_error * quotas.weight
        self._place = place
        self._shifted_classes = np.flatnonzero(quotas.is_shifted)
        self._placed_classes = place.put_as_is(self._shifted_classes)
        self.shifts = start.copy()
        self._dual = self._evaluate(scores, self.shifts)
        self._ridges = np.zeros(len(start))
        # Number of steps in a row that lowered the dual by no more than rounding.
        self._n_idle = np.zeros(len(start), dtype=int)
        self._is_open = np.ones(len(start), dtype=bool)

    @property
    def _errors(self) -> Array:
        """Largest error of a quota, (S,)."""
        return np.asarray(np.abs(self._dual.gradients).max(axis=1))

    def find_open(self) -> AnyArray:
        """Return the indices of the stack that are not filled and make progress."""
        is_unfilled = self._errors > self._max_error
        makes_progress = self._n_idle < settings.QUOTA_NEWTON.max_idle_steps
        self._is_open &= is_unfilled & makes_progress
        return np.flatnonzero(self._is_open)

    def is_filled(self) -> AnyArray:
        """Return which quotas are filled, up to rounding where steps became idle."""
        is_idle = self._n_idle >= settings.QUOTA_NEWTON.max_idle_steps
        rounded_error = _ROUNDED_ERROR * self._quotas.weight
        allowed_errors = np.where(is_idle, rounded_error, self._max_error)
        return np.asarray(self._errors <= allowed_errors)

    def step(self, indices: AnyArray) -> None:
        """Take a Newton step at each index or, if that raises the dual, another one."""
        chosen = settings.QUOTA_NEWTON
        hessians = self._dual.hessians[indices]
        gradients = self._dual.gradients[indices]
        ridges = self._ridges[indices]

        # 1. Take the steps that lower the dual. The smallest ridge is not zero, because
        # the Hessian is singular where all labels are hard.
        traces = np.trace(hessians, axis1=1, axis2=2)
        added_ridges = ridges + ROUNDING_RIDGE * traces + SMALLEST_DIVISOR
        steps = _newton_steps(gradients, hessians, added_ridges)
        is_lower = self._move(indices, steps, allowed_roundings=1.0)

        # 2. Lower the ridge after a step that was taken, and raise it after others.
        first_ridges = np.maximum(chosen.first_ridge * traces, ROUNDING_RIDGE)
        lowered = chosen.lowered_ridge_factor * ridges
        raised = np.maximum(chosen.raised_ridge_factor * ridges, first_ridges)
        new_ridges = np.where(is_lower, lowered, raised)
        self._ridges[indices] = new_ridges
        is_stuck = ~is_lower & (new_ridges > chosen.max_ridge)
        self._is_open[indices[is_stuck]] = False

        # 3. Where it was not taken, try a step of another kind.
        if not is_lower.all():
            self._scale_odds(indices[~is_lower])

    def _scale_odds(self, indices: AnyArray) -> None:
        """Scale the odds of each class by the ratio of its quota to its weight.

        Newton's step is far too long where a class is far below its quota.
        """
        filled = self._quotas.filled(self.shifts[indices])
        wanted = filled[..., self._shifted_classes]
        counts = self._dual.gradients[indices] + wanted
        counts = np.maximum(counts, SMALLEST_DIVISOR)
        steps = np.log(np.maximum(wanted, SMALLEST_DIVISOR) / counts)
        self._move(indices, steps, allowed_roundings=0.0)

    def _move(
        self, indices: AnyArray, steps: Array, allowed_roundings: float
    ) -> AnyArray:
        """Take the steps that lower the dual, and return which these are.

        A step that raises it by no more than ``allowed_roundings`` times its rounding
        error is taken, too.
        """
        # 1. Evaluate the dual at the end of every step.
        longest_step = settings.QUOTA_NEWTON.hard_score
        moved = self.shifts[indices]
        moved[:, self._shifted_classes] += np.clip(steps, -longest_step, longest_step)
        scores = self._scores
        if len(indices) < len(self.shifts):
            placed_indices = self._place.put_as_is(indices)
            scores = self._place.xp.take(scores, placed_indices, axis=0)
        trial = self._evaluate(scores, moved)

        # 2. Judge the steps.
        values = self._dual.values[indices]
        falls = values - trial.values
        rounding = _DUAL_ROUNDING * np.abs(values)
        is_lower = falls >= -allowed_roundings * rounding
        is_progress = falls > _ROUNDINGS_OF_PROGRESS * rounding
        n_idle = self._n_idle[indices] + is_lower
        self._n_idle[indices] = np.where(is_progress, 0, n_idle)

        # 3. Take the good ones.
        self.shifts[indices[is_lower]] = moved[is_lower]
        self._dual.replace_at(indices, trial, is_lower)
        return np.asarray(is_lower)

    def _evaluate(self, scores: Any, shifts: Array) -> _Dual:
        return _evaluate_dual(
            scores,
            self._weights,
            self._quotas,
            shifts,
            self._place,
            self._placed_classes,
        )


def _newton_steps(gradients: Array, hessians: Array, ridges: Array) -> Array:
    """Return the Newton steps (S, m) with ridges (S,), none longer than is of use.

    Beyond a difference of scores at which labels are hard, the dual is linear.
    """
    identity = np.eye(gradients.shape[1])
    damped_hessians = hessians + ridges[:, None, None] * identity
    steps = -np.linalg.solve(damped_hessians, gradients[..., None])[..., 0]
    max_length = settings.QUOTA_NEWTON.hard_score
    lengths = np.maximum(np.abs(steps).max(axis=1), max_length)
    return np.asarray(steps * (max_length / lengths)[:, None])


def _evaluate_dual(
    scores: Any, weights: Any, quotas: Quotas, shifts: Array, place: Any, classes: Any
) -> _Dual:
    """Return the dual of a stack of scores at shifts, with its derivatives.

    ``classes`` are the classes that are shifted, at the place.
    """
    xp = place.xp
    # 1. Sum over the rows where these are; only the sums leave. Large arrays that are
    # not named make room for the next ones.
    placed_shifts = place.put(shifts)
    shares, placed_log_sums = place.label(
        scores + placed_shifts[..., None], is_soft=True
    )
    shares = place.take_classes(shares, classes)
    weighted_shares = shares * weights
    log_sums, counts, products = place.fetch_all(
        placed_log_sums @ weights,
        xp.sum(weighted_shares, axis=-1),
        weighted_shares @ xp.matrix_transpose(shares),
    )

    # 2. The Hessian of log-sum-exp is diag g - g g', for the shares g of a row.
    is_shifted = quotas.is_shifted
    hessians = -products
    curvatures = quotas.curvatures(shifts)[:, is_shifted]
    diagonal = np.arange(np.count_nonzero(is_shifted))
    hessians[:, diagonal, diagonal] += counts + curvatures
    return _Dual(
        values=log_sums + quotas.cost(shifts),
        gradients=counts - quotas.filled(shifts)[..., is_shifted],
        hessians=hessians,
    )


def hard_shift(scores: Any, weights: Any, quotas: Quotas, place: Any = MEMORY) -> Array:
    """Return the shifts (K,) by which hard labels by scores (K, n) fill the quotas."""
    if scores.shape[0] == 2:
        return _hard_shift_of_two(scores, weights, quotas)
    tau = settings.QUOTA_NEWTON.hard_tau * largest_range(scores, place)
    if tau == 0:
        # All classes tie on every row.
        return np.zeros(scores.shape[0])
    # Scores over such a tau label all rows hard but those that nearly tie.
    stack = scores[None, ...] / tau
    divided = balance(stack, weights, quotas, place=place)[0]
    return np.asarray(tau * divided)


def bounding_shift(
    scores: Any,
    weights: Any,
    quotas: Quotas,
    attained: float,
    start: Shift,
    place: Any = MEMORY,
) -> Array:
    """Return shifts (K,) whose dual for hard labels is close to its minimum.

    The dual at any shifts is an upper bound of the linear maximum. That of soft labels
    at a level tau is too high by no more than these labels lose. Tau falls until this
    is a small share of what the bound exceeds the value ``attained`` by. Rows whose
    labels are hard for good are left out of the next levels.

    ``start`` is the shift of a labeling. Scores are nearly multiples of its scores, and
    the first level is as soft as it.
    """
    if scores.shape[0] == 2:
        return _hard_shift_of_two(scores, weights, quotas)
    xp = place.xp
    score_range = largest_range(scores, place)
    if score_range == 0:
        # All classes tie on every row.
        return np.zeros(scores.shape[0])
    chosen = settings.QUOTA_BOUNDS
    tau = score_range / start.score_range
    filling = tau * start.values
    shift = filling
    # Before the first level nothing is known: an infinite tau makes the first slope 0.
    previous_tau = np.inf
    value_of_hard = 0.0
    while tau > settings.QUOTA_NEWTON.hard_tau * score_range:
        # 1. Fill the quotas at this level.
        previous_shift = filling
        divided = scores[None, ...] / tau
        shifts_over_tau, is_filled = minimize_dual(
            divided,
            weights,
            quotas,
            start=shift[None] / tau,
            max_steps=chosen.max_steps,
            max_error=settings.QUOTA_NEWTON.rough_error,
            place=place,
        )
        if previous_tau == np.inf and not is_filled.all():
            shifts_over_tau = _balance_from_above(divided, weights, quotas, place)
        filling = tau * shifts_over_tau[0]

        # 2. Stop where soft labels lose little.
        moved = scores + place.put(filling)[:, None]
        shares, _ = place.label(moved / tau, is_soft=True)
        largest = xp.max(moved, axis=0)
        lost_by_rows = largest - place.sum_over_classes(shares, moved)
        lost_by_labels, largest_sum = place.fetch_all(
            weights @ lost_by_rows, weights @ largest
        )
        hard_cost = quotas.hard_cost(filling)
        lost_by_slacks = hard_cost + float(quotas.filled(filling / tau) @ filling)
        lost = float(lost_by_labels) + lost_by_slacks
        bound = value_of_hard + float(largest_sum) + hard_cost
        if lost <= chosen.max_lost_share * (bound - attained):
            break

        # 3. Leave out rows whose labels are hard for good, with what they get.
        is_near_largest = largest - moved < chosen.hard_lead * tau
        is_left = xp.count_nonzero(is_near_largest, axis=0) > 1
        shares_of_others = _columns(shares, ~is_left) * weights[~is_left]
        scores_of_others = _columns(scores, ~is_left)
        value_of_others, counts = place.fetch_all(
            xp.reshape(shares_of_others, (-1,)) @ xp.reshape(scores_of_others, (-1,)),
            xp.sum(shares_of_others, axis=1),
        )
        value_of_hard += float(value_of_others)
        quotas = quotas.less(counts)
        scores = _columns(scores, is_left)
        weights = weights[is_left]

        # 4. Extrapolate to the next level.
        slope = (filling - previous_shift) / (tau - previous_tau)
        previous_tau = tau
        tau *= settings.QUOTA_NEWTON.tau_factor
        shift = filling + (tau - previous_tau) * slope
    return filling


def _columns(array: Any, is_chosen: Any) -> Any:
    """Return some columns of an array (K, n)."""
    # Libraries agree on masks of the first axis only.
    return array.T[is_chosen].T


def _hard_shift_of_two(scores: Array, weights: Array, quotas: Quotas) -> Array:
    """Return the shifts (2,) by which hard labels fill the quotas of two classes.

    Rows with the largest leads fill the first class; the lead of the last one of them
    is the threshold.
    """
    shift = np.zeros(2)
    leads = scores[0] - scores[1]
    weight_of_first = float(weights[leads > 0].sum())
    smallest = quotas.low[0]
    largest = smallest + quotas.width[0]
    wanted_weight = float(np.clip(weight_of_first, smallest, largest))
    if wanted_weight == weight_of_first:
        return shift
    order = np.argsort(-leads, kind="stable")
    cumulative_weights = np.cumsum(weights[order])
    position = int(np.searchsorted(cumulative_weights, wanted_weight))
    last_of_first = order[min(position, len(order) - 1)]
    shift[0] = -leads[last_of_first]
    return shift
