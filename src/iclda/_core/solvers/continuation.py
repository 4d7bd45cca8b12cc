"""Path following: maximize likelihood + tau x entropy of the labels as tau falls to 0.

Rows are labeled by softmax(scores' (1, z)). At the maximum for a given tau the scores are the
gradient of the likelihood over tau, so the gap over all labelings is at most tau log K: letting
tau fall certifies the point. A Newton step solves (tau - H J) step = gradient - tau scores, H the
Hessian of the likelihood and J the derivative of the point by the scores. The operator is
self-adjoint in the inner product of J: conjugate gradients in that product, stopped at the
boundary of a trust region or where curvature is negative (Steihaug), need products with J and H
only. Where unknowns are few the same system is solved by a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..types import Array
from .attainable import AttainableSet, Labeling, gap

Product = Callable[[Array], Array]

_DENSE = 64  # unknowns up to which systems are solved by a factor
_FALL = 0.1  # factor of tau from level to level
_CENTERED = 1e-2  # a level ends when the predicted ascent is below this share of tau x entropy
_ACCURACY = 0.1  # of conjugate gradients, over the first residual
_MOST_PRODUCTS = 200  # in one solve
_MOST_STEPS = 40  # at one level
_SUFFICIENT = 0.05  # share of the slope that a step must gain
_SHORTEST = 1e-6  # step that is tried, in the norm of J
_TOO_FAR = 0.5  # share of tau x entropy that a prediction may lose
_ROUNDING = 1e-13  # of the merit
_SMALLEST_TAU = 1e-9  # per unit of labeled weight


@dataclass(frozen=True)
class State:
    """A labeling: its scores and point, likelihood and gradient there."""

    scores: Array
    tau: float
    labeling: Labeling
    value: float
    gradient: Array
    entropy: float

    @property
    def point(self) -> Array:
        return self.labeling.point

    @property
    def merit(self) -> float:
        return self.value + self.tau * self.entropy

    @property
    def residual(self) -> Array:
        return self.gradient - self.tau * self.scores


@dataclass(frozen=True)
class Path:
    """Where a path ended, and the levels of tau on it."""

    state: State
    gap: float
    n_iter: int
    is_bounded: bool
    levels: tuple[State, ...] = ()


class _System:
    """(tau - H J) x = right at a state."""

    def __init__(self, likelihood: LabeledLikelihood, state: State) -> None:
        self._tau, self._shape = state.tau, state.scores.shape
        self._is_dense = state.scores[:-1].size <= _DENSE
        if self._is_dense:
            hessian, self._matrix = likelihood.hessian(state.point), state.labeling.matrix()
            self._curvature: Product = self._matrix.dot
            self._bend: Product = hessian.dot
            system = -(hessian @ self._matrix)
            system.ravel()[:: len(system) + 1] += state.tau
            self._factor = lapack.dgetrf(system)
        else:
            self._curvature = state.labeling.product
            self._bend = likelihood.hessian_product(state.point)

    def solve(self, right: Array, radius: float = np.inf) -> tuple[Array, float]:
        """An approximate solution x within a radius, in the norm of J, and right' J x."""
        right = right - right[-1]
        if not self._is_dense:
            return self._steihaug(right, radius)
        flat = right[:-1].ravel()
        lower, pivots, failed = self._factor
        x = lapack.dgetrs(lower, pivots, flat)[0] if not failed else flat
        slope = float(flat @ (self._matrix @ x))
        if failed or not slope >= 0:
            x, slope = self._steihaug(flat, 1.0)
        size = min(1.0, radius)
        x = np.append(size * x, np.zeros(self._shape[1])).reshape(self._shape)
        return x, size * slope

    def _steihaug(self, right: Array, radius: float) -> tuple[Array, float]:
        x, square, slope = np.zeros_like(right), 0.0, 0.0
        residual, curved = right, self._curvature(right)
        rho = float((residual * curved).sum())
        direction, moved, least = residual, curved, _ACCURACY**2 * rho
        for _ in range(_MOST_PRODUCTS):
            if not rho > max(least, 0.0):
                break
            image = self._tau * direction - self._bend(moved)
            bend, length = float((moved * image).sum()), float((direction * moved).sum())
            along = float((x * moved).sum())
            size = rho / bend if bend > 1e-14 * self._tau * length else np.inf
            is_last = not square + size * (2 * along + size * length) < radius**2
            if is_last:
                if np.isinf(radius):
                    break
                size = (np.sqrt(along**2 + length * (radius**2 - square)) - along) / length
            x = x + size * direction
            square += size * (2 * along + size * length)
            slope += size * float((right * moved).sum())
            residual = residual - size * image
            if is_last:
                break
            curved = self._curvature(residual)
            last, rho = rho, float((residual * curved).sum())
            direction, moved = residual + rho / last * direction, curved + rho / last * moved
        return x, slope


@dataclass(frozen=True)
class Follower:
    """Follows paths of a likelihood over the attainable set of some rows."""

    likelihood: LabeledLikelihood
    rows: AttainableSet

    def state(self, scores: Array, tau: float) -> State:
        scores = scores - scores[-1]
        found = self.rows.label(scores)
        value, gradient = self.likelihood.value_and_gradient(found.point)
        entropy = found.log_sum - float((scores * (found.point - self.rows.labeled_point)).sum())
        return State(scores, tau, found, float(value), gradient - gradient[-1], entropy)

    def gap(self, state: State) -> float:
        return gap(self.rows, state.point, state.gradient)

    def follow(
        self,
        state: State,
        *,
        tol: float,
        max_iter: int,
        aim: float | None = None,
        least: float = 0.0,
    ) -> Path:
        """Lower tau until the gap is below ``tol``, or no progress is possible.

        Below ``tol`` the path goes on to ``aim``, if given, as long as the gap falls. It ends where
        tau reaches ``least``.
        """
        aim = tol if aim is None else min(aim, tol)
        best, levels, n_iter, fall, share = Path(state, np.inf, 0, True), [], 0, _FALL, _CENTERED
        while True:
            state, n_steps, is_bounded = self._center(state, max_iter - n_iter, share)
            n_iter += n_steps
            if not is_bounded:
                return Path(state, self.gap(state), n_iter, False, tuple(levels))
            cost = state.tau * max(state.entropy, 0.0)
            smallest = max(1.001 * least, _SMALLEST_TAU * self.likelihood.weight)
            is_last = n_iter >= max_iter or state.tau <= smallest
            if cost <= 2.5 * tol or is_last:  # the entropy overestimates the gap two- to threefold
                found = self.gap(state)
                has_fallen = found < best.gap
                if has_fallen:
                    best = Path(state, found, n_iter, True)
                if best.gap <= aim or n_iter >= max_iter:
                    break
                if found > max(aim, 2 * cost) and share > _ROUNDING:
                    share *= 1e-3  # labels are few and soft: the ascent says little of the gap
                    continue
                if is_last or (best.gap <= tol and not has_fallen):
                    break
                if found > tol + 10 * cost:
                    # Labels hardened before they were right: again from the level before.
                    if fall > 0.9 or not levels:
                        break
                    fall, share = float(np.sqrt(fall)), _CENTERED
                    state = self._predict(levels[-1], fall)
                    continue
            levels.append(state)
            share = _CENTERED
            fall = max(_FALL, min(0.5, 0.5 * aim / max(cost, 1e-300))) if fall <= 0.5 else fall
            state = self._predict(state, max(fall, least / state.tau))
        return Path(best.state, best.gap, n_iter, True, (*levels, state))

    def _noise(self, state: State) -> float:
        return _ROUNDING * (abs(state.merit) + self.likelihood.weight)

    def _center(self, state: State, most: int, share: float) -> tuple[State, int, bool]:
        """Newton's method at one tau: the state, steps, and whether the likelihood is bounded."""
        radius = 1.0
        for n_steps in range(1, min(most, _MOST_STEPS) + 1):
            if not smallest_eigenvalue(state.point) > 2 * FLOOR:
                return state, n_steps, False
            system, noise = _System(self.likelihood, state), self._noise(state)
            while True:
                direction, slope = system.solve(state.residual, radius)
                is_centered = slope <= max(share * state.tau * max(state.entropy, 0.0), noise)
                trial = self.state(state.scores + direction, state.tau)
                gained = trial.merit - state.merit + noise
                if gained >= _SUFFICIENT * slope:
                    break
                radius *= 0.3
                if radius < _SHORTEST:
                    return state, n_steps, True
            state = trial
            radius = 3 * radius if gained >= 0.3 * slope else radius
            if is_centered:
                return state, n_steps, True
        return state, min(most, _MOST_STEPS), True

    def _predict(self, state: State, fall: float) -> State:
        """Extrapolate the gradient, tau x scores, to a smaller tau.

        On the path the likelihood rises as tau falls: a prediction that lowers it is shortened.
        """
        scores = state.scores - state.scores[-1]
        ahead = _System(self.likelihood, state).solve(scores)[0]
        slope = scores - state.tau * (ahead - ahead[-1])  # of the gradient by tau
        for _ in range(8):
            tau = fall * state.tau
            predicted = self.state((state.tau * scores + (tau - state.tau) * slope) / tau, tau)
            loss = state.value - predicted.value
            if loss <= max(_TOO_FAR * state.tau * state.entropy, self._noise(state)):
                break
            fall = float(np.sqrt(fall))
        return predicted
