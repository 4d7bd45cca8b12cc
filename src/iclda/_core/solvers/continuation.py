"""Path following: from soft labels to a local maximum of the objective, level by level.

Rows are labeled by softmax of scores_k' z~, where z~ = (1, z), and the objective L is a
function of the point that the labels attain (``attainable``). A level maximizes
L - tau KL, where KL is the Kullback-Leibler divergence of the labels from those of the
previous level; the scores of that level are the anchor. At the first level the anchor
is 0, and -KL is the entropy of the labels up to a constant. From level to level tau
falls. This is the proximal point method with entropy as distance: at the maximum of a
level the gradient of L is tau (scores - anchor). The scores therefore grow by
gradient / tau on each level, and labels harden as the sum of 1 / tau over the levels.
Where classes tie, their gradients become equal: on each level the difference falls by a
factor tau / (tau + |H J|), even if tau is constant.

A Newton step (``newton``) solves (tau - H J) step = gradient - tau (scores - anchor),
with H the Hessian of L and J the derivative of the point by the scores. The first step
of a level starts at the anchor and predicts the end of the level: where labels harden,
J times the gradient is almost 0, so that the step is gradient / tau.

A path ends when the gap is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto

import numpy as np

from .. import Array
from ..likelihood import Objective
from . import settings
from .attainable import AttainableSet, Labeling, gap
from .newton import Direction, NewtonSystem, WorkLeft

# Rounding errors of the merit, relative to its size.
_MERIT_ROUNDING = 1e-13
# A tau that exceeds the smallest one by less than this factor has reached it.
_REACHED_FACTOR = 1.001


@dataclass(frozen=True)
class State:
    """A labeling on a path, with the objective at the point that it attains.

    Attributes
    ----------
    scores : (K, 1 + rank) scores, zero in the last class
    anchor : (K, 1 + rank) scores of the previous level, zero in the last class
    tau : weight of the divergence
    labeling : labels by the scores
    value : the objective
    gradient : (K, 1 + rank) its gradient by the point, zero in the last class
    entropy : entropy of the labels, over N
    """

    scores: Array
    anchor: Array
    tau: float
    labeling: Labeling
    value: float
    gradient: Array
    entropy: float

    @property
    def point(self) -> Array:
        """The point that the labels attain."""
        return self.labeling.point

    @property
    def merit(self) -> float:
        """L - tau KL, which a level maximizes, up to a constant of the level."""
        along_anchor = float(np.vdot(self.anchor, self.point))
        return self.value + self.tau * (self.entropy + along_anchor)

    @property
    def residual(self) -> Array:
        """Right-hand side of the Newton step: zero at the maximum of a level."""
        return self.gradient - self.tau * (self.scores - self.anchor)

    def next_level(self, tau: float) -> State:
        """Return the same labeling as the start of the next level."""
        return replace(self, anchor=self.scores, tau=tau)


@dataclass(frozen=True)
class Path:
    """Result of following a path.

    Attributes
    ----------
    state : its best state
    gap : first-order gap of that state
    n_iter : Newton steps
    is_bounded : False if it ran into a singular model, where L is unbounded
    is_given_up : True if it ended because many steps had gained little
    levels : the ends of its levels
    """

    state: State
    gap: float
    n_iter: int
    is_bounded: bool = True
    is_given_up: bool = False
    levels: tuple[State, ...] = ()


@dataclass(frozen=True)
class Effort:
    """When to stop following a path.

    Attributes
    ----------
    tol : gap that is required
    max_iter : largest number of Newton steps
    aim : smaller gap that is aimed at as long as the gap falls
    work : work that is left to all paths together
    """

    tol: float
    max_iter: int
    aim: float = np.inf
    work: WorkLeft = field(default_factory=WorkLeft)

    @property
    def is_exhausted(self) -> bool:
        """Whether the work of all paths has been done."""
        return self.work.n_numbers <= 0


class _End(Enum):
    """Reason why Newton's method at one level ended."""

    # At the maximum of the level.
    CENTERED = auto()
    # After too many steps or too much work, or where no step gains.
    UNFINISHED = auto()
    # At a singular model.
    UNBOUNDED = auto()


@dataclass(frozen=True)
class Follower:
    """Follows paths of an objective over the attainable set of some rows."""

    objective: Objective
    rows: AttainableSet

    def state(
        self,
        scores: Array,
        tau: float,
        anchor: Array | None = None,
        warm_start: State | None = None,
    ) -> State:
        """Return the state at given scores; to start from a similar one saves time."""
        scores = scores - scores[-1]
        anchor = np.zeros_like(scores) if anchor is None else anchor - anchor[-1]
        known_labels = None if warm_start is None else warm_start.labeling
        labeling = self.rows.label(scores, known_labels)
        value, gradient = self.objective.value_and_gradient(labeling.point)
        unlabeled_part = labeling.point - self.rows.labeled_point
        return State(
            scores=scores,
            anchor=anchor,
            tau=tau,
            labeling=labeling,
            value=float(value),
            gradient=gradient - gradient[-1],
            entropy=labeling.log_sum - float(np.vdot(scores, unlabeled_part)),
        )

    def gap(self, state: State) -> float:
        """Return the first-order gap of a state over the set."""
        return gap(self.rows, state.point, state.gradient, state.labeling)

    def follow(self, state: State, effort: Effort, min_tau: float = 0.0) -> Path:
        """Lower tau until the gap is small or falls no more, or tau is ``min_tau``."""
        chosen = settings.LEVELS
        aim = min(effort.aim, effort.tol)
        smallest_tau = chosen.min_tau * self.objective.weight
        reached_tau = max(_REACHED_FACTOR * min_tau, smallest_tau)
        min_factor = chosen.min_tau_factor
        ascent_left = chosen.ascent_left
        best = Path(state, np.inf, n_iter=0)
        n_iter = 0
        levels: list[State] = []
        while True:
            # 1. Maximize the merit of the level.
            max_steps, ascent_factor = _limits_of_level(is_first=not levels)
            state, n_steps, end = self._center(
                state,
                min(effort.max_iter - n_iter, max_steps),
                ascent_factor * ascent_left,
                effort,
            )
            n_iter += n_steps
            gap = self.gap(state)
            if end is _End.UNBOUNDED:
                levels.append(state)
                ends = tuple(levels)
                return Path(state, gap, n_iter, is_bounded=False, levels=ends)

            # 2. Keep the state with the smallest gap.
            has_fallen = gap < best.gap
            if has_fallen:
                best = Path(state, gap, n_iter)
            is_last = best.gap <= aim or state.tau <= reached_tau
            is_last = is_last or n_iter >= effort.max_iter or effort.is_exhausted

            # 3. Repeat a level that did not reach its maximum or left too much ascent.
            if not is_last:
                can_fall_less = min_factor < chosen.max_repeated_tau_factor
                if end is _End.UNFINISHED and levels and can_fall_less:
                    # Labels hardened before boundaries could move: go back to the end
                    # of the level before, and lower tau less.
                    min_factor = float(np.sqrt(min_factor))
                    state = levels[-1].next_level(min_factor * levels[-1].tau)
                    continue
                if not has_fallen and ascent_left > chosen.min_ascent_left:
                    # Where classes tie, the ascent that is left is of the order of the
                    # squared gap: go on with the same level.
                    ascent_left *= chosen.reduced_ascent_factor
                    continue

            # 4. Go on to the next level, unless this is the last one. A level that did
            # not reach its maximum is not one of the path, unless it would have none.
            if end is _End.CENTERED or not levels or gap <= aim:
                levels.append(state)
            if is_last or (best.gap <= effort.tol and not has_fallen):
                return replace(best, n_iter=n_iter, levels=tuple(levels))
            # Where labels harden, the gap is proportional to the square of tau.
            wanted = np.sqrt(chosen.aimed_share_of_gap * aim / gap)
            factor = float(np.clip(wanted, min_factor, 1))
            state = state.next_level(max(factor * state.tau, min_tau))

    def _center(
        self, state: State, max_steps: int, ascent_left: float, effort: Effort
    ) -> tuple[State, int, _End]:
        """Maximize the merit at one level by at most ``max_steps`` Newton steps.

        The maximum is reached when the predicted ascent is below ``ascent_left`` times
        tau times the entropy. Return the last state, the number of steps, and how the
        level ended.
        """
        chosen = settings.NEWTON
        radius = chosen.first_radius
        for n_steps in range(1, max_steps + 1):
            if not self.objective.is_bounded(state.point):
                return state, n_steps, _End.UNBOUNDED

            # 1. Find a direction.
            rounding = _MERIT_ROUNDING * (abs(state.merit) + self.objective.weight)
            labeling = state.labeling
            system = NewtonSystem(self.objective, labeling, state.tau, effort.work)
            step = system.solve(state.residual, radius)
            small_ascent = ascent_left * state.tau * max(state.entropy, 0.0)
            is_centered = step.slope <= max(small_ascent, rounding)

            # 2. Move along it.
            trial, part = self._part_of_step(state, step, rounding, effort.work)
            if part == 0 or (is_centered and part == 1):
                return trial, n_steps, _End.CENTERED if is_centered else _End.UNFINISHED

            # 3. Adapt the radius: a shortened step says how far the model is right, a
            # step to the radius how much of the predicted gain there was.
            if part < 1:
                radius = max(part * step.length, chosen.min_radius)
            elif step.length >= radius:
                radius *= _radius_factor((trial.merit - state.merit) / step.slope)
            state = trial
            if effort.is_exhausted:
                return state, n_steps, _End.UNFINISHED
        return state, max_steps, _End.UNFINISHED

    def _part_of_step(
        self, state: State, step: Direction, rounding: float, work: WorkLeft
    ) -> tuple[State, float]:
        """Shorten a step until it gains enough; return its end, and the part of it.

        If no part gains enough, the state does not change and the part is 0.
        """
        chosen = settings.NEWTON
        part = 1.0
        while part >= chosen.min_step_part:
            moved = state.scores + part * step.scores
            trial = self.state(moved, state.tau, state.anchor, warm_start=state)
            work.n_numbers -= trial.labeling.n_read_for_shift
            gain = trial.merit - state.merit + rounding
            if gain >= chosen.sufficient_gain * part * step.slope:
                return trial, part
            part *= chosen.shortening
        return state, 0.0


def _limits_of_level(*, is_first: bool) -> tuple[int, float]:
    """Return the most steps of a level, and the factor of the ascent that it may leave.

    The steps of the first level are the longest.
    """
    chosen = settings.LEVELS
    if is_first:
        return chosen.max_first_steps, chosen.first_ascent_factor
    return chosen.max_steps, 1.0


def _radius_factor(gain: float) -> float:
    """Return the factor of the trust radius after a step along its whole length.

    ``gain`` is the gain of merit, over the slope that predicted it.
    """
    chosen = settings.NEWTON
    if gain >= chosen.good_gain:
        return chosen.good_radius_factor
    if gain < chosen.poor_gain:
        return chosen.poor_radius_factor
    return 1.0
