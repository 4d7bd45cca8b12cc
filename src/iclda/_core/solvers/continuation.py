"""Path following: maximize likelihood - tau x divergence of the labels, level by level.

Rows are labeled by softmax(scores' (1, z)). A level maximizes L - tau KL, with KL the
Kullback-Leibler divergence of the labels from those of the level before, whose scores are the
anchor; at first it is 0, and -KL is the entropy up to a constant. This is the proximal point
method: at the maximum tau (scores - anchor) is the gradient of L. Boundaries harden as the sum of
1 / tau over the levels, and where classes tie the gradient falls by a factor tau / (tau + |H J|) a
level, even if tau is kept.

A Newton step solves (tau - H J) step = gradient - tau (scores - anchor), with H the Hessian of L
and J the derivative of the point by the scores. The operator is self-adjoint in the inner product
of J: conjugate gradients in that product, stopped at a radius or where curvature is negative
(Steihaug), need products with J and H only. Where unknowns are few the same system is solved by a
factor. The first step of a level starts at the anchor, and predicts the end of the level: along
boundaries that harden J times the gradient is almost 0, so that it adds gradient / tau.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import numpy as np
from scipy.linalg import lapack

from ..likelihood import Objective
from ..types import Array
from . import settings
from .attainable import AttainableSet, Labeling, gap, shifted

Product = Callable[[Array], Array]


# A level ends when the predicted ascent is below a share of tau x entropy; if the gap is not below
# that of the level before, the share is reduced.
_SMALLEST_CENTERED = 1e-8
_MOST_PRODUCTS = 200  # in one solve
_MOST_STEPS = 15  # at one level
_MOST_FIRST_STEPS = 40  # at the first level
_SLOWEST_TAU_FACTOR = 0.7  # factor of tau above which a level is not repeated with a larger one
_SUFFICIENT_GAIN = 0.05  # share of the slope that a step must gain
_READ_OF_A_PAIR = 2e4  # numbers that might be read while the block of two classes is formed
_SUSPICIOUS_SIZE = 0.2  # share of a step below which a saddle is suspected
_SHORTEST_SIZE = 1e-6  # share of a step below which none is tried
_MERIT_ROUNDING = 1e-13  # of the merit
_NEARLY_REACHED = 1.001  # over the smallest tau of a path, at which it ends


@dataclass(frozen=True)
class State:
    """A labeling: its scores and point, likelihood and gradient there."""

    scores: Array
    anchor: Array  # scores of the level before
    tau: float
    labeling: Labeling
    value: float
    gradient: Array
    entropy: float

    @property
    def point(self) -> Array:
        return self.labeling.point

    @property
    def label_scores(self) -> Array:
        """Scores whose softmax are the labels."""
        shift = self.labeling.shift
        return self.scores if shift is None else shifted(self.scores, shift)

    @property
    def merit(self) -> float:
        """L - tau KL, up to a constant of the level."""
        return self.value + self.tau * (self.entropy + float(np.vdot(self.anchor, self.point)))

    @property
    def residual(self) -> Array:
        return self.gradient - self.tau * (self.scores - self.anchor)

    def next_level(self, tau: float) -> State:
        return replace(self, anchor=self.scores, tau=tau)


@dataclass(frozen=True)
class Path:
    """End of a path, and the levels of tau on it."""

    state: State
    gap: float
    n_iter: int
    is_bounded: bool
    levels: tuple[State, ...] = ()


@dataclass
class Work:
    """Numbers of rows that products may still read: what a step costs is not known beforehand."""

    left: float = np.inf


@dataclass(frozen=True)
class Effort:
    """When to stop following a path."""

    tol: float  # gap that is required
    max_iter: int  # Newton steps, at most
    aim: float = np.inf  # gap below ``tol`` to go on to as long as the gap falls
    work: Work = field(default_factory=Work)  # of all paths together


class _End(Enum):
    """Reason why Newton's method at one level ended."""

    CENTERED = auto()
    UNFINISHED = auto()
    UNBOUNDED = auto()


class _System:
    """(tau - H J) x = right at a state."""

    def __init__(self, objective: Objective, state: State, work: Work) -> None:
        self._tau, self._shape = state.tau, state.scores.shape
        self._is_dense = state.scores[:-1].size <= settings.DENSE_UNKNOWNS
        self._work, self._read = work, state.labeling.n_near * state.scores.size
        n_pairs = len(state.scores) * (len(state.scores) - 1) / 2
        work.left -= max(self._read, _READ_OF_A_PAIR * n_pairs if self._is_dense else 0)
        if self._is_dense:
            hessian, self._matrix = objective.hessian(state.point), state.labeling.matrix()
            self._curvature: Product = self._matrix.dot
            self._bend: Product = hessian.dot
            system = -(hessian @ self._matrix)
            system.ravel()[:: len(system) + 1] += state.tau
            self._factor = lapack.dgetrf(system)
        else:
            self._curvature = state.labeling.product
            self._bend = objective.hessian_product(state.point)

    def solve(
        self, right: Array, *, radius: float = 1.0, may_be_saddle: bool = False
    ) -> tuple[Array, float]:
        """An ascent direction x near the solution, and right' J x.

        Conjugate gradients stop at a radius, in the norm of J. They replace a factor where the
        operator is seen not to be positive definite, or may not be.
        """
        right = right - right[-1]
        if not self._is_dense:
            return self._steihaug(right, radius)[:2]
        flat = right[:-1].ravel()
        factor, pivots, failed = self._factor
        # All eigenvalues are real, and tau where J is 0: the sign of their product.
        n_negative = np.count_nonzero(factor.diagonal() < 0)
        n_swapped = np.count_nonzero(pivots != np.arange(len(pivots)))
        is_definite = not failed and (n_negative + n_swapped) % 2 == 0
        if may_be_saddle or not is_definite:
            x, slope, is_definite = self._steihaug(flat, radius)
        if is_definite and not failed:
            x = lapack.dgetrs(factor, pivots, flat)[0]
            slope = float(flat @ (self._matrix @ x))
            if not slope >= 0:
                x, slope, _ = self._steihaug(flat, radius)
        return np.append(x, np.zeros(self._shape[1])).reshape(self._shape), slope

    def _steihaug(self, right: Array, radius: float) -> tuple[Array, float, bool]:
        """The direction, right' J x, and whether no negative curvature was met."""
        x, square, slope = np.zeros_like(right), 0.0, 0.0
        residual, curved = right, self._curvature(right)
        rho = float(np.vdot(residual, curved))
        direction, moved, first = residual, curved, rho
        for _ in range(_MOST_PRODUCTS):
            if rho <= settings.SETTINGS.accuracy**2 * min(first, self._tau**2 * square):
                break
            image = self._tau * direction - self._bend(moved)
            bend, length = float(np.vdot(moved, image)), float(np.vdot(direction, moved))
            if not length > 0:
                break
            along = float(np.vdot(x, moved))
            size = rho / bend if bend > 1e-14 * self._tau * length else np.inf
            is_last = not square + size * (2 * along + size * length) < radius**2
            if is_last:
                size = (np.sqrt(along**2 + length * (radius**2 - square)) - along) / length
            x = x + size * direction
            square += size * (2 * along + size * length)
            slope += size * float(np.vdot(right, moved))
            if is_last:
                return x, slope, bend > 0
            residual = residual - size * image
            curved = self._curvature(residual)
            self._work.left -= self._read
            last, rho = rho, float(np.vdot(residual, curved))
            direction, moved = residual + rho / last * direction, curved + rho / last * moved
        # What is left lies where J is almost 0, and the operator is tau.
        x, slope = x + residual / self._tau, slope + float(np.vdot(right, curved)) / self._tau
        return x, slope, True


@dataclass(frozen=True)
class Follower:
    """Follows paths of an objective over the attainable set of some rows."""

    objective: Objective
    rows: AttainableSet

    def state(self, scores: Array, tau: float, anchor: Array | None = None) -> State:
        scores = scores - scores[-1]
        anchor = np.zeros_like(scores) if anchor is None else anchor - anchor[-1]
        found = self.rows.label(scores)
        value, gradient = self.objective.value_and_gradient(found.point)
        entropy = found.log_sum - float(np.vdot(scores, found.point - self.rows.labeled_point))
        return State(scores, anchor, tau, found, float(value), gradient - gradient[-1], entropy)

    def gap(self, state: State) -> float:
        return gap(self.rows, state.point, state.gradient)

    def follow(self, state: State, effort: Effort, least: float = 0.0) -> Path:
        """Lower tau until the gap is small enough, or no progress is possible.

        The path ends where tau reaches ``least``, too.
        """
        tol, max_iter, work = effort.tol, effort.max_iter, effort.work
        aim = min(effort.aim, tol)
        best, n_iter = Path(state, np.inf, 0, True), 0
        slowest, share = settings.SETTINGS.fall, settings.SETTINGS.centered
        levels: list[State] = []
        smallest = max(_NEARLY_REACHED * least, settings.SMALLEST_TAU * self.objective.weight)
        while True:
            most = min(max_iter - n_iter, _MOST_STEPS if levels else _MOST_FIRST_STEPS)
            state, n_steps, end = self._center(state, most, share, work)
            n_iter += n_steps
            found = self.gap(state)
            if end is _End.UNBOUNDED:
                return Path(state, found, n_iter, False, (*levels, state))
            has_fallen = found < best.gap
            if has_fallen:
                best = Path(state, found, n_iter, True)
            is_last = best.gap <= aim or state.tau <= smallest
            is_last = is_last or n_iter >= max_iter or work.left <= 0
            if not is_last and end is _End.UNFINISHED and levels and slowest < _SLOWEST_TAU_FACTOR:
                # Labels hardened faster than boundaries moved: the level is repeated.
                slowest = float(np.sqrt(slowest))
                state = levels[-1].next_level(slowest * levels[-1].tau)
                continue
            if not is_last and not has_fallen and share > _SMALLEST_CENTERED:
                share *= 1e-3  # where classes tie the ascent is of the order of the squared gap
                continue
            if end is _End.CENTERED or not levels or found <= aim:
                levels.append(state)
            if is_last or (best.gap <= tol and not has_fallen):
                break
            # Where labels harden the gap falls with the square of tau.
            fall = float(np.clip(np.sqrt(0.3 * aim / found), slowest, 1))
            state = state.next_level(max(fall * state.tau, least))
        return Path(best.state, best.gap, n_iter, True, tuple(levels))

    def _noise(self, state: State) -> float:
        return _MERIT_ROUNDING * (abs(state.merit) + self.objective.weight)

    def _center(self, state: State, most: int, share: float, work: Work) -> tuple[State, int, _End]:
        """Newton's method at one level: the state, the number of steps, and how it ended."""
        size = 1.0
        for n_steps in range(1, most + 1):
            if not self.objective.is_bounded(state.point):
                return state, n_steps, _End.UNBOUNDED
            noise = self._noise(state)
            system = _System(self.objective, state, work)
            direction, slope = system.solve(state.residual, may_be_saddle=size < _SUSPICIOUS_SIZE)
            is_centered = slope <= max(share * state.tau * max(state.entropy, 0.0), noise)
            size = 1.0
            while True:
                trial = self.state(state.scores + size * direction, state.tau, state.anchor)
                work.left -= trial.labeling.n_sought
                gained = trial.merit - state.merit + noise
                if gained >= _SUFFICIENT_GAIN * size * slope:
                    break
                size *= 0.3
                if size < _SHORTEST_SIZE:
                    return state, n_steps, _End.CENTERED
            state = trial
            if is_centered and size == 1:
                return state, n_steps, _End.CENTERED
            if work.left <= 0:
                return state, n_steps, _End.UNFINISHED
        return state, most, _End.UNFINISHED
