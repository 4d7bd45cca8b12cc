"""Path following: Newton's method on likelihood + tau x entropy as tau falls to 0.

Rows are labeled by softmax(scores' (1, z)). At the maximum for a given tau the scores are the
gradient of the likelihood over tau, so the gap over all labelings is at most tau log K: letting
tau fall certifies the point. As tau falls the gradient converges where labels harden, the scores
where the optimum is interior; the predictor handles both, class by class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..types import Array
from .attainable import AttainableSet, gap

_SUFFICIENT = 1e-4  # share of the predicted ascent that a step must reach
_SIZES = tuple(0.3**i for i in range(12))  # of steps that are tried
_CENTERED = 1e-2  # tau falls when the predicted ascent is below this share of tau x entropy
_SMALLEST_TAU = 1e-9  # per unit of labeled weight
_MOST_FAILURES = 3
_MOST_EXTRA = 15  # steps spent beyond the tolerance
HARD_ENTROPY, _NEARLY_HARD = 1e-9, 1e-6
_MOST_BISECTIONS = 60
_MOST_INNER = 12  # Newton steps at one tau before a start is softened
_MOST_PREDICTIONS = 8
_TOO_FAR = 0.5  # share of tau x entropy that a prediction may lose
_GENTLE = 0.5  # a fall of tau by less is not undone
_FALL, _LEAP = 0.1, 0.01  # tau falls by the first, by the second where one step was enough
_APART = 2.0  # ratio of tau beyond which the last level gives a second derivative
_ROUNDING = 1e-13


@dataclass(frozen=True)
class State:
    """A labeling: its scores and point, likelihood and gradient there."""

    scores: Array
    tau: float
    point: Array
    value: float
    gradient: Array
    entropy: float
    anchor: Array | float = 0.0  # scores at which entropy is taken to be largest

    @property
    def merit(self) -> float:
        return self.value + self.tau * self.entropy

    @property
    def residual(self) -> Array:
        """Gradient of the merit with respect to the point, last class held."""
        return (self.gradient - self.tau * (self.scores - self.anchor))[:-1].ravel()


@dataclass(frozen=True)
class Path:
    """Where a path ended, and the levels of tau on it."""

    state: State
    gap: float
    n_iter: int
    is_bounded: bool
    levels: tuple[State, ...]


@dataclass(frozen=True)
class Follower:
    """The likelihood, and the attainable set of the rows that are labeled."""

    likelihood: LabeledLikelihood
    rows: AttainableSet
    labeled_point: Array

    def state(self, scores: Array, tau: float, anchor: Array | float = 0.0) -> State:
        scores = scores - scores[-1]
        point, log_sum = self.rows.soft_point(scores)
        value, gradient = self.likelihood.value_and_gradient(point)
        entropy = log_sum - float((scores * (point - self.labeled_point)).sum())
        slope = gradient - gradient[-1]
        return State(scores, tau, point, float(value), slope, entropy, anchor)

    def gap(self, state: State) -> float:
        return gap(self.rows, state.point, state.gradient, self.labeled_point)

    def certified(self, state: State, *, tol: float) -> Path | None:
        """A path of one state, if its labels are hard and within ``tol`` of optimal."""
        if state.entropy > HARD_ENTROPY or not np.isfinite(state.value):
            return None
        found = self.gap(state)
        return Path(state, found, 1, True, (state,)) if found <= tol else None

    def follow(self, state: State, *, tol: float, max_iter: int, aim: float | None = None) -> Path:
        """Lower tau until the gap is below ``tol``, or rounding prevents progress.

        Below ``tol`` a few more steps are spent on reaching ``aim``, if given.
        """
        best = _Best(state, tol, tol if aim is None else min(aim, tol))
        levels: list[State] = []
        n_iter, n_inner = 0, 0
        left: tuple[State, System, State | None] | None = None  # the level that tau fell from last
        fall = 1.0  # and by what
        while n_iter < max_iter and not best.is_final(n_iter):
            n_iter, n_inner = n_iter + 1, n_inner + 1
            if not smallest_eigenvalue(state.point) > 2 * FLOOR:
                return Path(state, self.gap(state), n_iter, False, tuple(levels))
            system = System(self, state)
            state, promised, has_moved = self._step(state, system)
            is_centered = promised <= max(_CENTERED * state.tau * state.entropy, self._noise(state))
            if has_moved and not is_centered:
                if n_inner == _MOST_INNER and not levels:
                    state, n_inner = self._reheated(state), 0
                elif n_inner == _MOST_INNER and left and fall < _GENTLE:
                    fall = float(np.sqrt(fall))  # too large a step in tau
                    state, n_inner = self._predict(*left, fall), 0
                continue
            levels.append(state)
            left = None
            again = self._look(best, state, promised, n_iter, has_moved=has_moved)
            if again is not None:
                state = again
                continue
            if best.is_final(n_iter) or state.tau <= _SMALLEST_TAU * self.likelihood.weight:
                break
            # No smaller than the tolerance needs: Newton's method converges worse at small tau.
            enough = 0.5 * best.aim / max(state.tau * state.entropy, 1e-300)
            least = _LEAP if n_inner == 1 else _FALL
            fall = max(least, min(0.5, enough))
            left = state, system, levels[-2] if len(levels) > 1 else None
            state, n_inner = self._predict(*left, fall), 0
        if not np.isfinite(best.gap):
            best.note(state, self.gap(state), n_iter, has_moved=True)
        return Path(best.state, best.gap, n_iter, True, tuple(levels))

    def _look(
        self, best: _Best, state: State, promised: float, n_iter: int, *, has_moved: bool
    ) -> State | None:
        """Measure the gap if it may be small; a state to continue from at this tau, or None."""
        # The entropy overestimates the gap two- to threefold.
        estimate = state.tau * state.entropy + promised
        if estimate > 2.5 * best.tol and has_moved:
            return None
        found = self.gap(state)
        best.note(state, found, n_iter, has_moved=has_moved)
        if best.is_final(n_iter):
            return None
        if found > best.tol + 10 * estimate and state.entropy <= _NEARLY_HARD:
            return self._between(state)
        is_off_center = found > best.tol >= estimate and promised > self._noise(state)
        return state if is_off_center else None

    def _noise(self, state: State) -> float:
        """Rounding error of the merit."""
        return _ROUNDING * (abs(state.merit) + self.likelihood.weight)

    def _reheated(self, state: State) -> State:
        """Softer labels at a larger tau, where Newton's method made too little progress."""
        tau = min(10 * state.tau, self.likelihood.weight)
        return self.state(state.gradient / tau, tau)

    def _between(self, state: State) -> State | None:
        """Labels between those of a state and those of largest gradient.

        Where both are hard the merit is flat, although the optimum lies between them: some rows
        belong to two classes. Bisection finds where the directional derivative changes sign.
        """
        asked = self.state(state.gradient / state.tau, state.tau)
        if asked.value >= state.value:
            return asked
        turn = asked.point - state.point
        near, far, middle = state.scores, asked.scores, state
        for _ in range(_MOST_BISECTIONS):
            middle = self.state((near + far) / 2, state.tau)
            slope = float((middle.gradient * turn).sum())
            if middle.entropy > HARD_ENTROPY and middle.value >= state.value:
                break
            near, far = (middle.scores, far) if slope > 0 else (near, middle.scores)
        return middle if middle.value >= state.value - self._noise(state) else None

    def _step(self, state: State, system: System) -> tuple[State, float, bool]:
        """One Newton step with backtracking: new state, predicted ascent, whether it moved."""
        direction, promised = system.ascent()
        slack = self._noise(state)
        for size in _SIZES:
            trial = self.state(state.scores + size * direction, state.tau)
            if trial.merit >= state.merit + _SUFFICIENT * size * promised - slack:
                return trial, promised, True
        return state, promised, False

    def _predict(self, state: State, system: System, before: State | None, factor: float) -> State:
        """Extrapolate the path to tau x factor, to second order if there is an earlier level.

        On the path the likelihood rises as tau falls: a prediction that lowers it went too far,
        most often past a row that stays between the classes, and is shortened.
        """
        gradient = state.tau * state.scores
        slope = system.sensitivity(gradient)
        bend: Array | float = 0.0
        if before is not None and before.tau > _APART * state.tau:
            behind = before.tau / state.tau - 1
            bend = (before.tau * before.scores - gradient - behind * slope) / behind**2
        for _ in range(_MOST_PREDICTIONS):
            tau, ahead = factor * state.tau, factor - 1
            predicted = self.state((gradient + ahead * (slope + ahead * bend)) / tau, tau)
            loss = state.value - predicted.value
            if loss <= max(_TOO_FAR * state.tau * state.entropy, self._noise(state)):
                break
            factor = np.sqrt(factor)
        return predicted


class _Best:
    """The state with the smallest gap so far, and when to stop."""

    def __init__(self, state: State, tol: float, aim: float) -> None:
        self.state, self.gap = state, np.inf
        self.tol, self.aim = tol, aim
        self._n_failures = 0
        self._certified_at: int | None = None

    def note(self, state: State, gap: float, n_iter: int, *, has_moved: bool) -> None:
        self._n_failures = 0 if gap < self.gap and has_moved else self._n_failures + 1
        if gap < self.gap:
            self.state, self.gap = state, gap
        if gap <= self.tol and self._certified_at is None:
            self._certified_at = n_iter

    def is_final(self, n_iter: int) -> bool:
        spent = 0 if self._certified_at is None else n_iter - self._certified_at
        return self.gap <= self.aim or self._n_failures >= _MOST_FAILURES or spent >= _MOST_EXTRA


class System:
    """The Newton system at a state: (tau I - H C) step = residual.

    H is the second derivative of the likelihood, C that of the point with respect to the scores.
    """

    def __init__(self, follower: Follower, state: State) -> None:
        self.state = state
        self.hessian = follower.likelihood.hessian(state.point)
        self.curvature = follower.rows.curvature(state.scores)
        self.product = self.hessian @ self.curvature
        matrix = -self.product
        matrix.ravel()[:: len(matrix) + 1] += state.tau
        # LAPACK directly: checks around it cost more than a small system.
        self._lower, self._pivots, self._failed = lapack.dgetrf(matrix)

    def ascent(self) -> tuple[Array, float]:
        """A direction in which the merit rises, and the ascent predicted."""
        residual = self.state.residual
        step = self._solved(residual)
        promised = float(residual @ self.curvature @ step)
        if not promised >= 0:
            step = self._safeguarded(residual)
            promised = max(0.0, float(residual @ self.curvature @ step))
        return self.with_last_class(step), promised

    def sensitivity(self, gradient: Array) -> Array:
        """tau d(gradient)/d(tau) along the path."""
        return self.with_last_class(self._solved(-self.product @ gradient[:-1].ravel()))

    def _solved(self, right: Array) -> Array:
        """NaN where there is no solution."""
        if self._failed:
            return np.full(len(right), np.nan)
        return np.asarray(lapack.dgetrs(self._lower, self._pivots, right)[0])

    def _safeguarded(self, residual: Array) -> Array:
        """Newton step with negative eigenvalues replaced by their absolute values."""
        spectrum, vectors = scipy.linalg.eigh(self.curvature)
        is_seen = spectrum > 1e-14 * max(spectrum[-1], 1e-300)
        root = vectors[:, is_seen] * np.sqrt(spectrum[is_seen])
        bends, axes = scipy.linalg.eigh(root.T @ self.hessian @ root)
        tau = self.state.tau
        size = axes @ ((axes.T @ (root.T @ residual)) / np.maximum(np.abs(tau - bends), 1e-3 * tau))
        unseen = vectors[:, ~is_seen]
        step: Array = vectors[:, is_seen] @ (size / np.sqrt(spectrum[is_seen]))
        return np.asarray(step + unseen @ (unseen.T @ residual) / tau)

    def with_last_class(self, flat: Array) -> Array:
        width = self.state.scores.shape[1]
        whole = np.zeros(self.state.scores.shape)
        whole[:-1] = flat.reshape(-1, width)
        return whole


def solve(matrix: Array, right: Array) -> Array:
    """NaN where there is no solution."""
    _, _, solution, failed = lapack.dgesv(matrix, right)
    return np.full(len(right), np.nan) if failed else np.asarray(solution)
