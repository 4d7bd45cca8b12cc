"""The attainable set with quotas: labelings that give every class a given share of the rows.

Labels are softmax of the scores s_ik = c_k' z~_i of row i in class k plus a shift lambda_k. The
shifts minimize a convex function of K numbers, the dual,

    D(lambda) = sum_i w_i log sum_k exp(s_ik + lambda_k) - sum_k quota_k lambda_k

At its minimum the derivative by each lambda_k vanishes: class k has the weight quota_k. As a
function of the scores, the minimum takes the place of the sum of log-sum-exp: its gradient is the
point of the labeling, and its second derivative is J.

A quota may be an interval from low to low + width. The class then has the weight
low + width / (1 + exp(sharpness lambda_k)), which lies in the interval for every shift, and the
term quota_k lambda_k of the dual is replaced by the integral of this weight (``Quotas.cost``).

The maximum of a linear function over the set minimizes the same dual with max in place of
log-sum-exp. Any shift gives an upper bound of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .. import AnyArray, Array
from ..labelsums import label, second_of_two
from ..problem import Problem
from .attainable import (
    AllSums,
    HeldSet,
    Labeling,
    Shift,
    StreamedSet,
    hold,
    hold_in_memory,
    shifted,
)

# Errors of filled quotas, over the weight of the rows.
_FILLED_ERROR = 1e-13  # at which Newton's method stops
_ROUNDED_ERROR = 1e-10  # accepted where rounding prevents further progress
_ROUGH_ERROR = 1e-6  # at the levels of tau above 1
_CORRECTABLE_SHARE = 1e-3  # that a sample of the rows near boundaries can correct
# Newton's method for the shifts.
_HARD_SCORE = (
    40.0  # difference of scores beyond which labels are hard; longest step of a shift
)
_MOST_STEPS = 200
_WARM_STEPS = (
    60  # from the shift of similar scores; if these fail, tau is lowered from above
)
_IDLE_STEPS = 6  # steps in a row that lower the dual by no more than rounding, after which it stops
_DUAL_ROUNDING = 1e-15  # of the value of the dual
# Levels of tau: scores are divided by it, and it falls to 1.
_SOFT_RANGE = 10.0  # largest range of the scores of a row at the first level
_TAU_FACTOR = 0.3  # factor of tau from level to level
_SHARPNESS_FACTOR = 10.0  # factor of the sharpness of intervals from level to level
_HARD_TAU = 1e-11  # tau of the linear oracle, over the range of the scores
# Work.
READS_PER_SHIFT = (
    30  # approximate number of times that the scores are read, with three classes up
)
_NUMBERS_READ_AT_ONCE = 4e5  # smallest number of scores that is counted as work
# Passes over all rows.
_MOST_PASSES = 5  # to fill the quotas of one labeling
_CLOSE_SHIFT = (
    5.0  # change of a shift up to which rows far from boundaries keep their labels
)


@dataclass(frozen=True)
class Quotas:
    """Weights, over N, that the classes get of some rows: from ``low`` to ``low + width``."""

    low: Array  # (K,)
    width: Array  # (K,)
    is_held: AnyArray  # (K,): classes that are shifted; others have no quota, or get the rest
    weight: float  # of all rows
    sharpness: float = (
        1.0  # of intervals: how fast the weight of a class changes with its shift
    )

    @property
    def has_slack(self) -> bool:
        """Whether any quota is an interval."""
        return bool(self.width.any())

    def less(self, taken: Array) -> Quotas:
        """Return what is left of the quotas where other rows take the weights ``taken`` (K,)."""
        return replace(self, low=self.low - taken)

    def can_be_filled(self, weight: float) -> bool:
        """Whether rows of this weight can fill the quotas in more than one way."""
        return bool((self.low < weight).all() and (self.low + self.width > 0).all())

    def cost(self, shifts: Array) -> Array:
        """Return the terms of the dual beside log-sum-exp, at shifts (..., K)."""
        cost = -(shifts @ self.low)
        if self.has_slack:
            slack = np.logaddexp(0, -self.sharpness * shifts) / self.sharpness
            cost = cost + slack @ (self.is_held * self.width)
        return np.asarray(cost)

    def hard_cost(self, shift: Array) -> float:
        """Return the same for hard labels: the limit of infinite sharpness."""
        return float(np.maximum(-shift, 0) @ self.width - shift @ self.low)

    def filled(self, shifts: Array) -> Array:
        """Return the weights that the classes must have at these shifts, (..., K) or (K,)."""
        if not self.has_slack:
            return self.low
        return np.asarray(
            self.low + self.width * second_of_two(self.sharpness * shifts)
        )

    def bends(self, shifts: Array) -> Array:
        """Return the second derivatives of ``cost`` by each shift, (..., K)."""
        if not self.has_slack:
            return np.zeros_like(shifts)
        filled = second_of_two(self.sharpness * shifts)
        return np.asarray(self.sharpness * self.width * filled * (1 - filled))


class QuotaLabeling(Labeling):
    """Rows labeled by scores that are shifted to fill quotas.

    J is that of the shifted scores at fixed shifts, less the change that the shifts undo: with E
    the derivative of the point by the shifts, J - E (E_kk + bends)^-1 E', of rank K at most.
    """

    shift: Shift

    def __init__(
        self, free: Labeling, rows: QuotaSet, shift: Shift, log_sum: float
    ) -> None:
        super().__init__(
            AllSums(free.point, log_sum, free.is_thinned), free.rows, free.shares
        )
        self.shift, self._local = shift, rows
        if len(self.point) > 2:
            self.n_sought = READS_PER_SHIFT * max(
                _NUMBERS_READ_AT_ONCE, self.shares.size
            )

    @cached_property
    def _offsets(self) -> tuple[Array, Array]:
        """Return the derivatives E of the point by the shifts, and the inverse in J."""
        held = np.flatnonzero(self._local.quotas.is_held)
        units = np.zeros((len(held), *self.point.shape))
        units[np.arange(len(held)), held, 0] = 1
        across = np.array([super(QuotaLabeling, self).product(unit) for unit in units])
        return across, self._inverse(across[:, held, 0])

    def _inverse(self, inner: Array) -> Array:
        """Invert the derivative of class weights by shifts, singular where labels are hard."""
        quotas = self._local.quotas
        bends = quotas.bends(self.shift.values)[quotas.is_held]
        return np.asarray(
            np.linalg.pinv(inner + np.diag(bends), rcond=1e-13, hermitian=True)
        )

    def product(self, direction: Array) -> Array:
        moved = super().product(direction)
        across, inverse = self._offsets
        back = inverse @ moved[self._local.quotas.is_held, 0]
        return np.asarray(moved - np.tensordot(back, across, axes=1))

    def matrix(self) -> Array:
        whole = super().matrix()
        held, (n_classes, width) = self._local.quotas.is_held, self.point.shape
        chosen = np.zeros((len(whole), n_classes))
        chosen[np.arange(n_classes - 1) * width, np.arange(n_classes - 1)] = 1
        chosen[
            ::width, -1
        ] = -1  # scores of the last class are held: all others move instead
        across = whole @ chosen[:, held]
        return np.asarray(
            whole - across @ self._inverse(chosen[:, held].T @ across) @ across.T
        )

    @property
    def local_set(self) -> QuotaSet:
        return self._local


@dataclass(eq=False)
class QuotaSet(HeldSet):
    """The attainable set, with quotas, of rows held in memory."""

    quotas: Quotas

    def find_shift(self, scores: Array, start: Shift | None = None) -> Shift:
        """Find the shift that fills the quotas.

        Scores of a smaller tau are nearly multiples of the earlier ones: the start is scaled with
        the range of the scores.
        """
        stack = self.scores_of_rows(scores[None])
        score_range = float(np.ptp(stack, axis=1).max(initial=0)) or 1.0
        begin = None
        if start is not None:
            begin = start.values[None] * score_range / start.score_range
        return Shift(
            balance(stack, self.weights, self.quotas, begin)[0], score_range, self
        )

    def label(self, scores: Array, start: Shift | None = None) -> QuotaLabeling:
        shift = self.find_shift(scores, start)
        free = super().label(shifted(scores, shift.values))
        log_sum = free.log_sum + float(self.quotas.cost(shift.values))
        return QuotaLabeling(free, self, shift, log_sum)

    def shares(self, scores: Array) -> Array:
        return super().shares(shifted(scores, self.find_shift(scores).values))

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        shifts = balance(self.scores_of_rows(scores), self.weights, self.quotas)
        points, log_sums = super().soft_points(shifted(scores, shifts))
        return points, log_sums + self.quotas.cost(shifts)

    def support(self, direction: Array, start: Shift | None = None) -> float:
        scores = self.scores_of_rows(direction)
        shift = hard_shift(scores, self.weights, self.quotas)
        return float(
            self.weights @ (scores.T + shift).max(axis=1) + self.quotas.hard_cost(shift)
        )


def balance(
    scores: Array, weights: Array, quotas: Quotas, start: Array | None = None
) -> Array:
    """Return the shifts (S, K) by which softmax of a stack of scores (S, K, n) fills the quotas.

    ``start`` (S, K) are shifts of similar scores.
    """
    begin = np.zeros(scores.shape[:2]) if start is None else start.copy()
    if scores.shape[1] == 2:
        leads = scores[:, 0] - scores[:, 1]
        if start is None:
            begin[:, 0] = -np.median(leads, axis=-1)
        begin[:, 0] = _balance_two(leads, weights, quotas, begin[:, 0])
        return begin
    if start is not None:
        found, is_filled = _newton(scores, weights, quotas, begin, _WARM_STEPS)
        if is_filled.all():
            return found
    # Newton's method converges from zero if labels are soft: scores are divided by a tau that falls
    # to 1, and the shifts of the next level are extrapolated linearly from the last two.
    tau = max(1.0, float(np.ptp(scores, axis=1).max(initial=0)) / _SOFT_RANGE)
    soft, shifts = replace(quotas, sharpness=1.0), np.zeros(scores.shape[:2])
    last_tau, last = np.inf, shifts
    while tau > 1:
        found = (
            tau
            * _newton(scores / tau, weights, soft, shifts / tau, exact=_ROUGH_ERROR)[0]
        )
        slope = (found - last) / (tau - last_tau)
        last_tau, last, tau = tau, found, max(1.0, _TAU_FACTOR * tau)
        shifts = found + (tau - last_tau) * slope
    while True:
        shifts = _newton(scores, weights, soft, shifts)[0]
        if soft.sharpness >= quotas.sharpness:
            return shifts
        soft = replace(
            soft, sharpness=min(quotas.sharpness, soft.sharpness * _SHARPNESS_FACTOR)
        )


def _balance_two(leads: Array, weights: Array, quotas: Quotas, shift: Array) -> Array:
    """Return the shifts (S,) of the first of two classes, by Newton's method within a bracket.

    ``leads`` (S, n) are the scores of the first class less those of the second.
    """
    total, shifts = float(weights.sum()), np.zeros((len(leads), 2))
    low, high = -leads.max(axis=-1) - _HARD_SCORE, -leads.min(axis=-1) + _HARD_SCORE
    low, high = np.minimum(low, -_HARD_SCORE), np.maximum(high, _HARD_SCORE)
    shift, second = np.clip(shift, low, high), np.empty(leads.shape)
    for _ in range(_MOST_STEPS):
        np.add(leads, shift[:, None], out=second)
        second_of_two(second, out=second)
        shifts[:, 0] = shift
        # Weight of the second class beyond what it must have.
        excess = second @ weights - (total - quotas.filled(shifts)[..., 0])
        if np.abs(excess).max() <= _FILLED_ERROR * total:
            break
        slope = (second * (1 - second)) @ weights + quotas.bends(shifts)[:, 0]
        low, high = np.where(excess > 0, shift, low), np.where(excess > 0, high, shift)
        newton = shift + excess / np.maximum(slope, 1e-300)
        is_inside = (newton > low) & (newton < high)
        moved = np.where(is_inside, newton, (low + high) / 2)
        if np.array_equal(moved, shift):
            break
        shift = moved
    return shift


def _newton(
    scores: Array,
    weights: Array,
    quotas: Quotas,
    shifts: Array,
    n_steps: int = _MOST_STEPS,
    exact: float = _FILLED_ERROR,
) -> tuple[Array, AnyArray]:
    """Minimize the dual for a stack of scores (S, K, n), by damped Newton steps.

    Return the shifts (S, K), and which of them fill the quotas to the error ``exact``.
    """
    held = np.flatnonzero(quotas.is_held)
    shifts, damping, n_idle = (
        shifts.copy(),
        np.zeros(len(scores)),
        np.zeros(len(scores), dtype=int),
    )
    values, excess, bends = _dual(scores, weights, quotas, shifts)
    is_open, enough = np.ones(len(scores), dtype=bool), exact * quotas.weight

    def move(some: AnyArray, steps: Array, slack: float) -> AnyArray:
        """Take the steps that do not raise the dual by more than ``slack`` times its rounding.

        ``some`` are indices of the stack, ``steps`` their steps. Return which were taken.
        """
        moved = shifts[some]
        moved[:, held] += np.clip(steps, -_HARD_SCORE, _HARD_SCORE)
        trial = _dual(scores[some], weights, quotas, moved)
        fall, noise = values[some] - trial[0], _DUAL_ROUNDING * np.abs(values[some])
        is_lower = fall >= -slack * noise
        n_idle[some] = np.where(fall > 8 * noise, 0, n_idle[some] + is_lower)
        taken = some[is_lower]
        shifts[taken] = moved[is_lower]
        for mine, found in zip((values, excess, bends), trial, strict=True):
            mine[taken] = found[is_lower]
        return is_lower

    for _ in range(n_steps):
        is_open &= (np.abs(excess).max(axis=1) > enough) & (n_idle < _IDLE_STEPS)
        some = np.flatnonzero(is_open)
        if not len(some):
            break
        traces = np.trace(bends[some], axis1=1, axis2=2)
        ridge = damping[some] + 1e-12 * traces + 1e-300
        damped = bends[some] + ridge[:, None, None] * np.eye(len(held))
        steps = -np.linalg.solve(damped, excess[some][..., None])[..., 0]
        longest = np.maximum(np.abs(steps).max(axis=1), _HARD_SCORE)
        steps *= (_HARD_SCORE / longest)[:, None]
        is_lower = move(some, steps, 1.0)
        raised = np.maximum(10 * damping[some], np.maximum(1e-3 * traces, 1e-12))
        damping[some] = np.where(is_lower, 0.1 * damping[some], raised)
        is_open[some[~is_lower & (damping[some] > 1e6)]] = False
        some = some[~is_lower]
        if len(some):
            # Newton's step is far too long where a class is far below its quota. Scaling the odds
            # of a class by the ratio of its quota to its weight is tried instead.
            wanted = quotas.filled(shifts[some])[..., held]
            counts = np.maximum(excess[some] + wanted, 1e-300)
            move(some, np.log(np.maximum(wanted, 1e-300) / counts), 0.0)
    allowed = np.where(n_idle < _IDLE_STEPS, enough, _ROUNDED_ERROR * quotas.weight)
    return shifts, np.abs(excess).max(axis=1) <= allowed


def _dual(
    scores: Array, weights: Array, quotas: Quotas, shifts: Array
) -> tuple[Array, Array, Array]:
    """Return the dual (S,), its gradient (S, m) and its Hessian (S, m, m) by the m held shifts."""
    held, n_held = quotas.is_held, np.count_nonzero(quotas.is_held)
    shares, log_sums = label(scores + shifts[..., None], is_soft=True)
    shares = shares[:, held]
    weighted = shares * weights
    counts = weighted.sum(axis=-1)
    bends = -(weighted @ np.swapaxes(shares, -1, -2))
    each = np.arange(n_held)
    bends[:, each, each] += counts + quotas.bends(shifts)[:, held]
    values = log_sums @ weights + quotas.cost(shifts)
    return values, counts - quotas.filled(shifts)[..., held], bends


def hard_shift(scores: Array, weights: Array, quotas: Quotas) -> Array:
    """Return the shifts (K,) by which labels by the largest score (K, n) fill the quotas."""
    shift = np.zeros(len(scores))
    if len(scores) == 2:
        leads = scores[0] - scores[1]
        first = float(weights[leads > 0].sum())
        wanted = float(np.clip(first, quotas.low[0], quotas.low[0] + quotas.width[0]))
        if wanted != first:
            order = np.argsort(-leads, kind="stable")
            place = int(np.searchsorted(np.cumsum(weights[order]), wanted))
            shift[0] = -leads[order[min(place, len(order) - 1)]]
        return shift
    tau = _HARD_TAU * float(np.ptp(scores, axis=0).max(initial=0))
    return shift if tau == 0 else tau * balance(scores[None] / tau, weights, quotas)[0]


class QuotaStreamedSet(StreamedSet):
    """The attainable set of all unlabeled rows with quotas, each method some passes over them.

    The shift is found on the rows of the start, or else of the sample, and corrected on the rows
    near boundaries that the pass returns, with all other rows labeled as they are.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._least = max(self._least, self._most // 4)  # rows to fill quotas with

    @property
    def _sample(self) -> QuotaSet:
        assert isinstance(self.held, QuotaSet)
        return self.held

    def label(self, scores: Array, start: Shift | None = None) -> QuotaLabeling:
        sample, quotas = self._sample, self._sample.quotas
        guide = sample if start is None else start.rows
        for _ in range(_MOST_PASSES):
            start = shift = guide.find_shift(scores, start)
            free = super().label(shifted(scores, shift.values))
            local = free.local_set
            taken = local.labeled_point[:, 0] - self.labeled_point[:, 0]
            near = QuotaSet(
                local.z, local.weights, local.labeled_point, quotas.less(taken)
            )
            if not near.quotas.can_be_filled(float(near.weights.sum())):
                cost, filled = quotas.cost(shift.values), quotas.filled(shift.values)
                excess = free.point[:, 0] - self.labeled_point[:, 0] - filled
                guide = sample = replace(sample, quotas=sample.quotas.less(excess))
                missed = shift._replace(rows=sample)
                found = QuotaLabeling(free, near, missed, free.log_sum + float(cost))
                continue
            guide, found = near, near.label(scores, shift)
            others = free.log_sum - local.soft_point(shifted(scores, shift.values))[1]
            found.log_sum += others - float(shift.values @ taken)
            found.is_thinned = free.is_thinned
            moved = float(np.abs(found.point - free.point)[:, 0].max())
            is_little = (
                not free.is_thinned or moved <= _CORRECTABLE_SHARE * quotas.weight
            )
            if (
                is_little
                and float(np.ptp(found.shift.values - shift.values)) <= _CLOSE_SHIFT
            ):
                break
        return found

    def soft_point(self, scores: Array) -> tuple[Array, float]:
        found = self.label(scores)
        return found.point, found.log_sum

    def support(self, direction: Array, start: Shift | None = None) -> float:
        """Return an upper bound: any shift gives one, the best shift of some rows a close one.

        Infinity, and so no certificate, if the rows of the start do not fill the quotas.
        """
        if start is None or start.rows.z is self._sample.z:
            return np.inf
        rows = start.rows
        shift = hard_shift(direction @ rows.z.T, rows.weights, rows.quotas)
        return super().support(
            shifted(direction, shift)
        ) + self._sample.quotas.hard_cost(shift)


def quotas_of(problem: Problem) -> Quotas:
    """Return the quotas of the unlabeled rows, from the proportions of a problem."""
    assert problem.proportions is not None
    weight = 1 - problem.labeled.weight / problem.moments.weight
    low, high = problem.proportions.T
    is_held = (low > 0) | (high < 1)
    if len(low) == 2 or (low == high).all():
        is_held[-1] = False  # it gets the rest
    return Quotas(weight * low, weight * (high - low), is_held, weight)


def hold_rows(
    problem: Problem, rows: AnyArray, weights: Array, sharpness: float = 1.0
) -> HeldSet:
    """Hold rows given in the user's units; with quotas always in memory."""
    if problem.proportions is None:
        return hold(problem, rows, weights)
    free = hold_in_memory(problem, rows, weights)
    quotas = replace(quotas_of(problem), sharpness=sharpness)
    return QuotaSet(free.z, free.weights, free.labeled_point, quotas)


def read_rows(problem: Problem, held: HeldSet | None) -> StreamedSet:
    """Return the attainable set of all rows; ``held`` is that of a sample of them."""
    kind = StreamedSet if problem.proportions is None else QuotaStreamedSet
    return kind(problem, held)
