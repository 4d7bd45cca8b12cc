"""The attainable set with quotas for EM, which labels all rows in every round.

EM needs sums over all rows only, and these are enough to fill the quotas, too. The
class weights are the gradient of the sum of log-sum-exp in the dual (``quotas``), and
the overlaps of the classes, sums over rows of the products of two shares, give its
second derivative H. Each pass is a step of Newton's method for the K shifts: it takes a
linear system of K unknowns at most, and no row leaves its source.

Passes are few, because the first round begins with the shift of a sample, and every
other one with that of the round before. The overlaps are summed in the first pass, and
again only after a step that gained little. Where a class is far from its quota,
Newton's step is far too long. The odds of all classes are then scaled by the ratios of
quotas and weights, which never raises the dual.

Where labels are hard, the dual is nearly piecewise linear: H is that of the few rows at
boundaries, and other rows take their place as soon as shifts move. A step may therefore
not move shifts, relative to each other, further than a radius. It grows after steps by
which the dual falls as H says, and shrinks after others.

Quotas that are intervals are sharp here: a class has the shift 0 and any weight in its
interval, a positive shift and the smallest weight, or a negative shift and the largest
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..labelsums import LabelSums
from . import settings
from .attainable import Shift, SoftLabels, shifted
from .quota_sets import QuotaSet
from .quotas import ROUNDING_RIDGE, SMALLEST_DIVISOR, Quotas
from .streamed import StreamedSet


class _Pass(NamedTuple):
    """What a pass found at some shifts.

    Attributes
    ----------
    shift : (K,) the shifts
    sums : the label sums of all rows
    counts : (K,) weights of the classes, over N
    dual : the dual
    errors : (K,) how far the weights are from the quotas; a class that gets the rest
        has the errors of all others
    hessian : (K, K) the second derivative of the sum of log-sum-exp by the shifts, over
        N; that of an earlier pass where this one did not sum the overlaps
    """

    shift: Array
    sums: LabelSums
    counts: Array
    dual: float
    errors: Array
    hessian: Array

    @property
    def error(self) -> float:
        """The largest error."""
        return float(self.errors.max())

    def improves_on(self, other: _Pass) -> bool:
        """Return whether it is nearer to the minimum of the dual."""
        return self.error < other.error or self.dual < other.dual


@dataclass(eq=False, kw_only=True)
class QuotaRounds(StreamedSet):
    """All unlabeled rows with quotas; each method but ``soft_labels`` ignores these.

    Attributes
    ----------
    quotas : the quotas
    sample : a sample of the rows, on which the first shift is found
    """

    quotas: Quotas
    sample: QuotaSet
    # The second derivative in the last pass that summed it, and whether the next pass
    # does.
    _hessian: Array = field(init=False)
    _sums_overlaps: bool = field(default=True, init=False)
    # The number of the last pass that the present labeling may take.
    _last_pass: int = field(default=0, init=False)

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        chosen = settings.QUOTA_ROUNDS
        weight = self.quotas.weight
        is_first = warm_start is None or warm_start.shift is None
        max_passes = chosen.max_first_passes if is_first else chosen.max_passes
        self._last_pass = self.n_passes + max_passes

        # 1. Fill the quotas by steps from shifts that nearly do.
        begun = self._begin(scores, warm_start)
        # From round to round the scores change less, and so does the first error.
        share_of_first = chosen.max_error_left * begun.error / weight
        max_error = np.clip(share_of_first, chosen.min_error, chosen.max_error)
        filled = self._fill(scores, begun, max_error, chosen.max_slow_steps)

        # 2. Where labels are too hard for that, soften them first.
        is_unfilled = filled.error > chosen.max_error * weight
        if is_unfilled and self._are_hard and self._has_passes:
            hardened = self._harden(scores, filled, max_error)
            filled = min(filled, hardened, key=lambda each: each.error)

        labels = self._labels_of(shifted(scores, filled.shift), filled.sums)
        labels.log_sum = filled.dual
        labels.shift = Shift(filled.shift, 1.0, self.sample)
        labels.are_filled = filled.error <= chosen.max_error * weight
        return labels

    @property
    def _has_passes(self) -> bool:
        """Whether the labeling may take another pass."""
        return self.n_passes < self._last_pass

    @property
    def _last_gets_rest(self) -> bool:
        """Whether the quotas of the other classes determine that of the last one."""
        return len(self.quotas.low) == 2 or not self.quotas.has_slack

    @property
    def _are_hard(self) -> bool:
        """Whether few rows have soft labels: Newton's steps see no others."""
        softness = float(np.trace(self._hessian)) / self.quotas.weight
        return softness <= settings.QUOTA_ROUNDS.max_softness

    def _begin(self, scores: Array, warm_start: SoftLabels | None) -> _Pass:
        """Return a pass at shifts that nearly fill the quotas."""
        begun: _Pass | None = None
        if warm_start is not None and warm_start.shift is not None:
            begun = self._pass(scores, warm_start.shift.values)
            if self._is_near(begun):
                return begun
        # Scores that have learned from the quotas hardly have to be shifted, and soft
        # labels follow scaled odds: a few passes take less time than a large sample.
        reached = self._pass(scores, np.zeros(len(scores)))
        if begun is not None and begun.dual <= reached.dual:
            return begun
        for _ in range(settings.QUOTA_ROUNDS.max_scaling_passes):
            if self._is_near(reached):
                return reached
            reached = self._moved(scores, reached, self._scaled_shift(reached))

        # Hard labels hardly follow.
        found = self.sample.find_shift(scores).values
        # A class within its interval has a shift of 0 but for its softness.
        softness = settings.QUOTA_NEWTON.hard_score / self.quotas.sharpness
        is_within = (self.quotas.width > 0) & (np.abs(found) <= softness)
        self._sums_overlaps = True
        by_sample = self._pass(scores, np.where(is_within, 0.0, found))
        return min(by_sample, reached, key=lambda each: each.dual)

    def _fill(
        self, scores: Array, best: _Pass, max_error: float, max_slow_steps: float
    ) -> _Pass:
        """Move the shifts until little is left of the errors, or rounding only.

        It also ends after several steps in a row that do not halve the error, if labels
        are hard.
        """
        chosen = settings.QUOTA_ROUNDS
        weight = self.quotas.weight
        radius = chosen.first_radius
        n_slow = 0
        while self._has_passes and n_slow < max_slow_steps:
            if best.error <= max_error * weight:
                break
            # 1. Move the shifts.
            is_near = self._is_near(best)
            if is_near:
                shift = self._newton_shift_within(best, radius)
            else:
                shift = self._scaled_shift(best)
            trial = self._moved(scores, best, shift)

            is_slow = self._are_hard and trial.error > best.error / 2
            n_slow = n_slow + 1 if is_slow else 0

            # 2. See how far the second derivative describes the dual.
            if is_near:
                ratio = self._fall_over_expected(best, trial)
                if ratio > chosen.good_ratio:
                    radius *= chosen.raised_radius_factor
                elif ratio < chosen.bad_ratio:
                    length = float(np.ptp(trial.shift - best.shift))
                    radius = chosen.lowered_radius_factor * length

            # 3. Take the step if it is an improvement.
            if trial.improves_on(best):
                best = trial
            elif best.error <= chosen.max_rounding * weight:
                break
        return best

    def _fall_over_expected(self, before: _Pass, after: _Pass) -> float:
        """Return the fall of the dual over that of its second order expansion."""
        step = after.shift - before.shift
        slope = float(before.counts @ step)
        curvature = float(step @ before.hessian @ step)
        # The cost of the quotas, which is piecewise linear, is exact.
        cost_before = self.quotas.hard_cost(before.shift)
        change_of_cost = self.quotas.hard_cost(after.shift) - cost_before
        expected = -(slope + curvature / 2 + change_of_cost)
        return (before.dual - after.dual) / max(expected, SMALLEST_DIVISOR)

    def _harden(self, scores: Array, reached: _Pass, max_error: float) -> _Pass:
        """Fill the quotas of softened labels, which harden step by step.

        Scores and shifts are divided by a tau that falls to 1. Newton's steps for hard
        labels see the few rows near boundaries only, and these may be the wrong ones.
        """
        chosen = settings.QUOTA_ROUNDS
        of_rows = self.sample.scores_of_rows(scores)
        score_range = float(np.ptp(of_rows, axis=0).max(initial=0.0))
        tau = chosen.first_tau_over_range * score_range
        shift = reached.shift
        while self._has_passes:
            tau = max(1.0, tau)
            self._sums_overlaps = True
            softened = scores / tau
            begun = self._pass(softened, shift / tau)
            if tau == 1:
                return self._fill(scores, begun, max_error, np.inf)
            reached = self._fill(
                softened, begun, chosen.max_error_of_level, chosen.max_slow_steps
            )
            shift = tau * reached.shift
            tau *= chosen.tau_factor
        return self._pass(scores, shift)

    def _moved(self, scores: Array, reached: _Pass, shift: Array) -> _Pass:
        """Return the pass at other shifts, none of them much further than of use."""
        longest_step = settings.QUOTA_NEWTON.hard_score
        step = np.clip(shift - reached.shift, -longest_step, longest_step)
        moved = self._pass(scores, reached.shift + step)
        left = moved.error / max(reached.error, SMALLEST_DIVISOR)
        # Overlaps that have misled are summed again in the next pass.
        self._sums_overlaps |= left > settings.QUOTA_ROUNDS.max_error_factor
        return moved

    def _pass(self, scores: Array, shift: Array) -> _Pass:
        """Label and sum all rows, in one pass."""
        quotas = self.quotas
        moved = shifted(scores, shift)
        with_overlaps = self._sums_overlaps
        sums = self._read(moved, is_soft=True, with_overlaps=with_overlaps)
        weight = self.problem.moments.weight
        counts = sums.counts / weight
        if sums.overlaps is not None:
            # That of log-sum-exp is diag g - g g', for the shares g of a row.
            self._hessian = np.diag(counts) - sums.overlaps / weight
            self._sums_overlaps = False
        errors = np.abs(counts - self._wanted(counts, shift))
        return _Pass(
            shift=shift,
            sums=sums,
            counts=counts,
            dual=sums.log_sum / weight + quotas.hard_cost(shift),
            errors=errors,
            hessian=self._hessian,
        )

    def _wanted(self, counts: Array, shift: Array) -> Array:
        """Return the weights that classes with these shifts must have."""
        low = self.quotas.low
        high = low + self.quotas.width
        of_unshifted = np.clip(counts, low, high)
        of_shifted = np.where(shift > 0, low, high)
        return np.where(shift == 0, of_unshifted, of_shifted)

    def _is_near(self, reached: _Pass) -> bool:
        """Return whether all weights are within a factor of what they must be."""
        chosen = settings.QUOTA_ROUNDS
        wanted = self._wanted(reached.counts, reached.shift)
        larger = np.maximum(reached.counts, wanted)
        smaller = np.minimum(reached.counts, wanted)
        is_far = larger > chosen.max_ratio * smaller
        is_unfilled = reached.errors > chosen.min_error * self.quotas.weight
        return not (is_far & is_unfilled).any()

    def _scaled_shift(self, reached: _Pass) -> Array:
        """Scale the odds of each class by the ratio of its quota to its weight."""
        quotas = self.quotas
        counts = np.maximum(reached.counts, SMALLEST_DIVISOR)
        low = np.maximum(quotas.low, SMALLEST_DIVISOR)
        high = np.maximum(quotas.low + quotas.width, SMALLEST_DIVISOR)
        # The shifts with which a class would have its smallest and its largest weight.
        for_low = reached.shift + np.log(low / counts)
        for_high = reached.shift + np.log(high / counts)
        if self._last_gets_rest:
            # The last class must have a shift of 0. Instead of scaling its odds, scale
            # those of all others by the inverse.
            last_low = for_low[-1]
            for_low = for_low - for_high[-1]
            for_high = for_high - last_low
        nearest_to_zero = np.clip(0.0, for_low, for_high)
        return np.where(quotas.is_shifted, nearest_to_zero, 0.0)

    def _newton_shift_within(self, reached: _Pass, radius: float) -> Array:
        """Return the shifts of Newton's step, damped until it is short enough.

        The second derivative changes along with the odds of the classes: it holds up to
        a change of the shifts, relative to each other, of about ``radius``.
        """
        chosen = settings.QUOTA_ROUNDS
        shift = self._newton_shift(reached, 0.0)
        damping = chosen.first_damping
        while np.ptp(shift - reached.shift) > radius and damping < chosen.max_damping:
            shift = self._newton_shift(reached, damping)
            damping *= chosen.damping_factor
        return shift

    def _newton_shift(self, reached: _Pass, damping: float) -> Array:
        """Return the shifts that fill the quotas to second order.

        The weights of the classes are then linear in the shifts. Which classes are at
        which end of their intervals is found by an active set: a class leaves it where
        its shift has the wrong sign, and joins it where its weight is out of bounds.
        Damping adds a share of the weights to the diagonal of the second derivative,
        which would be that of scaled odds with the share 1.
        """
        quotas = self.quotas
        low = quotas.low
        high = low + quotas.width
        added = np.diag(reached.counts)
        if self._last_gets_rest:
            # A shift of all classes by the same number changes nothing.
            added -= np.outer(reached.counts, reached.counts) / quotas.weight
        hessian = reached.hessian + damping * added
        has_interval = quotas.width > 0
        shift = reached.shift
        counts = reached.counts
        for _ in range(settings.QUOTA_ROUNDS.max_changes_of_active_set):
            # 1. Choose the end of its interval at which each class is, if any.
            scale = np.maximum(np.diag(hessian), SMALLEST_DIVISOR)
            is_at_low = scale * shift + low - counts > 0
            is_at_high = scale * shift + high - counts < 0
            is_active = quotas.is_shifted & (is_at_low | is_at_high | ~has_interval)
            targets = np.where(is_at_high, high, low)

            # 2. Solve for the shifts of these classes; the others have none.
            next_shift = _solved(hessian, reached, targets, is_active)
            is_unchanged = np.array_equal(next_shift, shift)
            shift = next_shift
            counts = reached.counts + hessian @ (shift - reached.shift)
            if is_unchanged or not has_interval.any():
                break
        return shift


def _solved(
    hessian: Array, reached: _Pass, targets: Array, is_active: AnyArray
) -> Array:
    """Return shifts with which the active classes have their targets, to first order.

    The shifts of all other classes are 0.
    """
    shift = np.zeros(len(targets))
    if not is_active.any():
        return shift
    change = np.where(is_active, 0.0, -reached.shift)
    lacking = (targets - reached.counts - hessian @ change)[is_active]
    # The ridge keeps the system solvable where all labels are hard.
    system = hessian[np.ix_(is_active, is_active)].copy()
    ridge = ROUNDING_RIDGE * np.trace(system) + SMALLEST_DIVISOR
    system[np.diag_indices_from(system)] += ridge
    shift[is_active] = reached.shift[is_active] + np.linalg.solve(system, lacking)
    return shift
