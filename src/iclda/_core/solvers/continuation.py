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

As tau goes to 0 the scores of a path on rows in memory approach c / tau + lambda. In this limit
(``find_limit``) a row goes to the class of largest c_k' z~, z~ = (1, z), and classes that tie there
share it by softmax(lambda' z~). If labels are hard only a few rows tie; at an interior optimum c is
0 and all of them do. Scores of order 1 / tau would amplify rounding by as much; c and lambda are of
order 1, and Newton's method on the rows that tie finds them to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..labelsums import LexicographicRule, LinearRule, tied_shares
from ..likelihood import Objective
from ..problem import Problem
from ..types import AnyArray, Array
from . import settings
from .attainable import AllSums, AttainableSet, InMemorySet, Labeling, gap, shifted

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
# Limits of paths.
_LARGEST_TIED_LEAD = 18.0  # of a score, at the end of a path, of classes that may tie
_MOST_CHANGES = 100  # of the rows that tie
_MOST_LIMIT_STEPS = 30
_LONGEST_STEP = 3.0  # by how many times itself a share may grow in one step
_ZERO_CHANGE = 1e-14  # change of shares that counts as zero
_ROUNDED_CHANGE = 1e-6  # change of shares below which a step that does not shrink is rounding
_EQUAL_CHANGE_RATIO = 1 - 1e-6  # of two changes: that of equal rows
_SMALL_SHARE = 0.01  # a share that leaves with others
_DEPENDENT_RATIO = 1e-9  # singular value, over the largest, below which directions are dependent
_WIDEST_MARGIN = 1e-6  # largest margin, over the root mean square of c_k' z~
_MARGIN_OVER_ROUNDING = 100.0  # margin over the leads that are rounding


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
        return self.scores if shift is None else shifted(self.scores, shift.values)

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

    def state(
        self, scores: Array, tau: float, anchor: Array | None = None, near: State | None = None
    ) -> State:
        """The state at scores; ``near`` is one at similar scores on the same rows."""
        scores = scores - scores[-1]
        anchor = np.zeros_like(scores) if anchor is None else anchor - anchor[-1]
        start = None if near is None else near.labeling.shift
        found = self.rows.label(scores, start)
        value, gradient = self.objective.value_and_gradient(found.point)
        entropy = found.log_sum - float(np.vdot(scores, found.point - self.rows.labeled_point))
        return State(scores, anchor, tau, found, float(value), gradient - gradient[-1], entropy)

    def gap(self, state: State) -> float:
        return gap(self.rows, state.point, state.gradient, state.labeling.shift)

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
                moved = state.scores + size * direction
                trial = self.state(moved, state.tau, state.anchor, near=state)
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


@dataclass(frozen=True)
class Limit:
    """A labeling and its point: by ``first`` (c), and where classes tie by ``second`` (lambda)."""

    point: Array
    value: float
    gap: float
    first: Array  # (K, 1 + rank)
    second: Array  # (K, 1 + rank)
    margin: float  # classes this near to the first by ``first`` tie; infinite: all do

    def rule(self, problem: Problem) -> LinearRule | LexicographicRule:
        """The labeling for rows in the frame."""
        second = problem.rule_of(self.second, is_soft=True)
        if np.isinf(self.margin):
            return second
        return LexicographicRule(problem.rule_of(self.first, is_soft=False), second, self.margin)


def find_limit(likelihood: Objective, held: InMemorySet, end: State) -> Limit | None:
    """The limit of a path that ends in a state, or None where the rows that tie are not clear."""
    second = end.scores
    scores = second @ held.z.T
    is_tied = scores >= scores.max(axis=0) - _LARGEST_TIED_LEAD
    for _ in range(_MOST_CHANGES):
        found = _balance(likelihood, held, is_tied, second)
        if found is None:
            return None
        second = found.scores
        if found.leaving is not None:
            is_tied &= ~found.leaving
            continue
        leads = found.first @ held.z.T
        leads -= np.where(is_tied, leads, -np.inf).max(axis=0)
        rounding = -float(np.min(leads, where=is_tied, initial=0.0))
        nearest = -float(np.max(leads, where=~is_tied, initial=-np.inf))
        narrow = _WIDEST_MARGIN * float(np.sqrt(held.weights @ (leads**2).mean(axis=0)))
        margin = min(nearest / 2, narrow) if nearest < np.inf else np.inf
        if margin > _MARGIN_OVER_ROUNDING * rounding:
            left = gap(held, found.point, found.gradient)
            return Limit(found.point, found.value, left, found.first, second, margin)
        is_tied |= leads >= -_MARGIN_OVER_ROUNDING * rounding
    return None


@dataclass(frozen=True)
class _Balanced:
    """A point at which shares of tied rows are balanced, or a step towards it."""

    point: Array
    value: float
    gradient: Array
    first: Array  # the gradient, less its rounding along rows that tie
    scores: Array
    leaving: AnyArray | None = None  # (K, n): shares of which a step would take more than all


def _balance(
    likelihood: Objective, held: InMemorySet, is_tied: AnyArray, scores: Array
) -> _Balanced | None:
    """Newton's method in the directions in which shares of rows that tie can move the point."""
    basis = _directions(held.z, is_tied)
    tied_rows = np.flatnonzero(np.count_nonzero(is_tied, axis=0) > 1)
    tied, is_sharing = held.z[tied_rows], is_tied[:, tied_rows]
    whole = partial(_with_last_class, shape=scores.shape)
    free = basis.T @ (scores - scores[-1])[:-1].ravel()
    last = np.inf  # largest change of a share by the step before
    for _ in range(_MOST_LIMIT_STEPS):
        scores = whole(basis @ free)
        shares = tied_shares(scores @ held.z.T, is_tied)
        point = held.labeled_point + (shares * held.weights) @ held.z
        if not likelihood.is_bounded(point):
            return None
        value, gradient = likelihood.value_and_gradient(point)
        gradient = gradient - gradient[-1]
        residual = basis.T @ gradient[:-1].ravel()
        first = gradient - whole(basis @ residual)
        found = _Balanced(point, float(value), gradient, first, scores)
        if not len(free):
            return found
        bend = basis.T @ likelihood.hessian(point) @ basis
        labeling = Labeling(AllSums(point, 0.0), held.z, held.weights, shares)
        spread = basis.T @ labeling.matrix() @ basis
        step = -_solve(spread, _solve(bend, residual))
        if not np.isfinite(step).all():
            return None
        change = np.where(is_sharing, whole(basis @ step) @ tied.T, 0.0)
        change -= (shares[:, tied_rows] * change).sum(axis=0)  # of a share, over that share
        change[~is_sharing] = 0.0
        largest = float(np.abs(shares[:, tied_rows] * change).max())
        if largest <= _ZERO_CHANGE or last / 2 <= largest <= _ROUNDED_CHANGE:
            return found
        if change.min() < -1:
            leaving = np.zeros(is_tied.shape, dtype=bool)
            # The share reduced most, equal ones of equal rows, and small ones below zero.
            is_small = (change < -1) & (shares[:, tied_rows] < _SMALL_SHARE)
            leaving[:, tied_rows] = is_small | (change <= _EQUAL_CHANGE_RATIO * change.min())
            return replace(found, leaving=leaving)
        last = largest
        free = free + step * min(1.0, _LONGEST_STEP / max(float(change.max()), 1e-300))
    return None


def _with_last_class(flat: Array, shape: tuple[int, ...]) -> Array:
    """A vector of all classes but the last as a matrix of all classes, zero in the last."""
    whole = np.zeros(shape)
    whole[:-1].ravel()[:] = flat
    return whole


def _directions(z: Array, is_tied: AnyArray) -> Array:
    """Orthonormal columns: the directions (e_k - e_j) x z~ of classes that share a row z~."""
    n_classes, width = len(is_tied), z.shape[1]
    size = (n_classes - 1) * width
    n_sharing = np.count_nonzero(is_tied, axis=0)
    tied_rows = np.flatnonzero(n_sharing > 1)
    if not len(tied_rows):
        return np.zeros((size, 0))
    groups = _groups(z[tied_rows], is_tied[:, tied_rows])
    if (n_sharing[tied_rows] - 1).sum() <= size:
        parts = [
            np.kron(_contrasts(sharing), rows / np.linalg.norm(rows, axis=1)[:, None])
            for sharing, rows in groups
        ]
        _, lengths, directions = scipy.linalg.svd(np.vstack(parts), full_matrices=False)
        return np.asarray(directions[lengths > _DEPENDENT_RATIO * lengths[0]].T)
    # Many rows: their scatter, whose eigenvalues are squares.
    scatter = np.zeros((size, size))
    for sharing, rows in groups:
        contrasts = _contrasts(sharing)
        scatter += np.kron(contrasts.T @ contrasts, rows.T @ rows)
    squares, vectors = scipy.linalg.eigh(scatter)
    return np.asarray(vectors[:, squares > _DEPENDENT_RATIO**1.5 * squares[-1]])


def _groups(rows: Array, is_tied: AnyArray) -> list[tuple[AnyArray, Array]]:
    """Sets of classes that share rows, each with its rows."""
    kinds, kind = np.unique(is_tied, axis=1, return_inverse=True)
    return [(kinds[:, i], rows[kind.ravel() == i]) for i in range(kinds.shape[1])]


def _contrasts(is_sharing: AnyArray) -> Array:
    """(m - 1, K - 1): differences e_k - e_j of the m classes that share, without the last."""
    found = np.eye(len(is_sharing))[is_sharing]
    return np.asarray((found[1:] - found[0])[:, :-1])


def _solve(matrix: Array, right: Array) -> Array:
    """NaN where there is no solution."""
    _, _, solution, failed = lapack.dgesv(matrix, right)
    return np.full(len(right), np.nan) if failed else np.asarray(solution)
