"""Path following: from soft labels to a local maximum of the objective L, level by level.

Rows are labeled by softmax of scores_k' z~, where z~ = (1, z), and L is a function of the point
that the labels attain (``attainable``). A level maximizes L - tau KL, where KL is the
Kullback-Leibler divergence of the labels from those of the previous level; the scores of that level
are the anchor. At the first level the anchor is 0, and -KL is the entropy of the labels up to a
constant. From level to level tau falls. This is the proximal point method with entropy as distance:
at the maximum of a level the gradient of L is tau (scores - anchor). The scores therefore grow by
gradient / tau a level, and labels harden as the sum of 1 / tau over the levels. Where classes tie,
which means that the gradient between them vanishes, it falls by a factor tau / (tau + |H J|) a
level, even at constant tau.

A Newton step solves (tau - H J) step = gradient - tau (scores - anchor), with H the Hessian of L
and J the derivative of the point by the scores. The operator is self-adjoint in the inner product
x' J y, so that conjugate gradients in that product apply, which need products with J and H only.
They stop at a trust radius and at negative curvature (Steihaug). Where unknowns are few the system
is solved by an LU factorization instead. The first step of a level starts at the anchor and
predicts the end of the level: where labels harden J times the gradient is almost 0, so that the
step is gradient / tau.

As tau goes to 0 the scores of a path on rows in memory approach c / tau + lambda. In this limit
(``find_limit``) a row gets the class of the largest c_k' z~, and classes that tie there share it by
softmax(lambda_k' z~). If labels are hard only a few rows tie; at an interior optimum c is 0, and
all rows do. Scores of order 1 / tau amplify rounding errors by as much. c and lambda are of order
1, and Newton's method on the rows that tie finds them to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .. import AnyArray, Array
from ..labelsums import LexicographicRule, LinearRule, tied_shares
from ..likelihood import Objective
from ..problem import Problem
from . import settings
from .attainable import AllSums, AttainableSet, HeldSet, Labeling, gap, shifted

Product = Callable[[Array], Array]


# A level ends when the predicted ascent is below a share of tau x entropy (``Settings.centered``).
# If the gap is then not below that of the previous level, the share is reduced, down to this one.
_SMALLEST_CENTERED = 1e-8
_FIRST_CENTERED = (
    3.0  # factor of that share at the first level, whose steps are longest
)
_MOST_PRODUCTS = 100  # with J, in one run of conjugate gradients
_MOST_STEPS = 15  # at one level
_MOST_FIRST_STEPS = 40  # at the first level
_SLOWEST_TAU_FACTOR = (
    0.7  # factor of tau above which a level is not repeated with a larger one
)
_SUFFICIENT_GAIN = (
    0.05  # smallest gain of a step, over its predicted gain (Armijo's rule)
)
_GOOD_GAIN = 0.4  # the same, from which longer steps are allowed
_POOR_GAIN = 0.1  # the same, below which only shorter ones are
_READ_OF_A_PAIR = 2e4  # work, in numbers read, to form the block of J of two classes
_FIRST_RADIUS = (
    1.0  # largest length of a step, in the norm of J, at the beginning of a level
)
_SMALLEST_RADIUS = (
    1e-3  # where labels are hard J vanishes, and lengths say little about a step
)
_SHORTEST_SIZE = 1e-12  # smallest part of a step that is tried
_MERIT_ROUNDING = 1e-13  # of the merit
_NEARLY_REACHED = 1.001  # over the smallest tau allowed, at which a path ends
# Limits of paths.
_LARGEST_TIED_LEAD = (
    18.0  # classes may tie whose scores at the end of a path differ by less
)
_MOST_CHANGES = 100  # of the set of rows that tie
_MOST_LIMIT_STEPS = 30  # Newton steps for one set of rows that tie
_LONGEST_STEP = 3.0  # largest relative growth of a share in one step
_ZERO_CHANGE = 1e-14  # change of shares that counts as zero
_ROUNDED_CHANGE = (
    1e-6  # largest change of shares that counts as rounding if it does not shrink
)
_EQUAL_CHANGE_RATIO = (
    1 - 1e-6
)  # ratio of changes from which they are those of equal rows
_SMALL_SHARE = (
    0.01  # shares below this are dropped together if steps would make them negative
)
_DEPENDENT_RATIO = (
    1e-9  # singular value, over the largest, below which directions are dependent
)
_WIDEST_MARGIN = 1e-6  # largest margin, over the root mean square of the leads c_k' z~
_MARGIN_OVER_ROUNDING = 100.0  # smallest margin, over the leads of classes that tie


@dataclass(frozen=True)
class State:
    """A labeling on a path: its scores, the point it attains, objective and gradient there."""

    scores: Array  # (K, 1 + rank), zero in the last class
    anchor: Array  # scores of the previous level
    tau: float
    labeling: Labeling
    value: float  # of the objective
    gradient: Array  # of the objective by the point, zero in the last class
    entropy: float  # of the labels, over N

    @property
    def point(self) -> Array:
        return self.labeling.point

    @property
    def label_scores(self) -> Array:
        """Scores whose softmax are the labels: with quotas the shifted ones."""
        shift = self.labeling.shift
        return self.scores if shift is None else shifted(self.scores, shift.values)

    @property
    def merit(self) -> float:
        """L - tau KL, up to a constant of the level, which a level maximizes."""
        return self.value + self.tau * (
            self.entropy + float(np.vdot(self.anchor, self.point))
        )

    @property
    def residual(self) -> Array:
        """Right-hand side of the Newton step: zero at the maximum of a level."""
        return self.gradient - self.tau * (self.scores - self.anchor)

    def next_level(self, tau: float) -> State:
        """Return the same labeling as the start of the next level."""
        return replace(self, anchor=self.scores, tau=tau)


@dataclass(frozen=True)
class Path:
    """Result of following a path: its best state, and the ends of its levels."""

    state: State
    gap: float  # first-order gap of the state
    n_iter: int  # Newton steps
    is_bounded: bool  # False: it ran into a singular model, where L is unbounded
    levels: tuple[State, ...] = ()


@dataclass
class Work:
    """Work that is left to all paths, in numbers read by products: steps differ in their cost."""

    left: float = np.inf


@dataclass(frozen=True)
class Effort:
    """When to stop following a path."""

    tol: float  # gap that is required
    max_iter: int  # Newton steps, at most
    aim: float = np.inf  # gap that is aimed at, below ``tol``, as long as the gap falls
    work: Work = field(default_factory=Work)  # common to all paths


class _End(Enum):
    """Reason why Newton's method at one level ended."""

    CENTERED = auto()  # at the maximum of the level
    UNFINISHED = auto()  # too many steps, or too much work
    UNBOUNDED = auto()  # at a singular model


class _Step(NamedTuple):
    """An ascent direction of the merit, near the Newton step."""

    scores: Array
    slope: float  # of the merit along it
    length: float  # in the norm of J


class _System:
    """The linear system (tau - H J) x = right of Newton steps at a state."""

    def __init__(self, objective: Objective, state: State, work: Work) -> None:
        self._tau, self._labeling, self._work = state.tau, state.labeling, work
        self._is_dense = state.scores[:-1].size <= settings.DENSE_UNKNOWNS
        self._read = state.labeling.n_near * state.scores.size
        n_pairs = len(state.scores) * (len(state.scores) - 1) / 2
        work.left -= max(self._read, _READ_OF_A_PAIR * n_pairs if self._is_dense else 0)
        if self._is_dense:
            hessian, matrix = objective.hessian(state.point), state.labeling.matrix()
            self._curvature: Product = matrix.dot
            self._bend: Product = hessian.dot
            self._matrix = -(hessian @ matrix)
            self._matrix.ravel()[:: len(matrix) + 1] += state.tau
        else:
            self._curvature = state.labeling.product
            self._bend = objective.hessian_product(state.point)

    def solve(self, right: Array, radius: float) -> _Step:
        """Return a direction of at most the length ``radius``, near the solution.

        If the operator is not positive definite or the solution is longer, it is that of conjugate
        gradients, which stop there. With few unknowns, and with few rows near boundaries where
        conjugate gradients do not end, the solution itself is computed.
        """
        right = right - right[-1]
        if not self._is_dense:
            return self._conjugate_gradients(right, radius)
        flat = right[:-1].ravel()
        step = self._by_unknowns(flat)
        if step is None or step.length > radius:
            step = self._conjugate_gradients(flat, radius)
        return step._replace(scores=_with_last_class(step.scores, right.shape))

    def _by_unknowns(self, right: Array) -> _Step | None:
        """Return the solution by LU factors, or None if the operator is not positive definite."""
        factor, pivots, failed = lapack.dgetrf(self._matrix)
        # The eigenvalues are real. Their product, the determinant, is positive if none is negative.
        n_negative = np.count_nonzero(factor.diagonal() < 0)
        n_swapped = np.count_nonzero(pivots != np.arange(len(pivots)))
        if failed or (n_negative + n_swapped) % 2:
            return None
        x = lapack.dgetrs(factor, pivots, right)[0]
        moved = self._curvature(x)
        slope, square = float(right @ moved), float(x @ moved)
        return _Step(x, slope, math.sqrt(max(0.0, square))) if slope >= 0 else None

    def _by_rows(self, right: Array) -> _Step | None:
        """Return the solution where fewer rows than features are near boundaries.

        With J = C C' (``Labeling.factor``) and w = C'x it is (right + H C w) / tau, where
        (tau - C'H C) w = C'right. None if that matrix is not positive definite, with quotas, whose
        J is not a sum over rows, and on a device.
        """
        labeling = self._labeling
        is_sum = labeling.shift is None and labeling.rows.is_in_memory
        if self._is_dense or not is_sum or labeling.n_near > right.shape[1]:
            return None
        columns = labeling.factor()
        n_columns, bent = len(columns), self._bend(columns)
        flat = columns.reshape(n_columns, -1)
        matrix = -(flat @ bent.reshape(n_columns, -1).T)
        matrix.ravel()[:: n_columns + 1] += self._tau
        seen = flat @ right.ravel()
        factor, failed = lapack.dpotrf(matrix)
        if failed:
            return None
        w = lapack.dpotrs(factor, seen)[0]
        x = (right + np.tensordot(w, bent, 1)) / self._tau
        return _Step(x - x[-1], float(seen @ w), float(np.linalg.norm(w)))

    def _conjugate_gradients(self, right: Array, radius: float) -> _Step:
        """Return the direction of Steihaug's method, which stops at negative curvature too."""
        x, square, slope = np.zeros_like(right), 0.0, 0.0
        residual, curved = right, self._curvature(right)
        rho = float(np.vdot(residual, curved))
        direction, moved, first = residual, curved, rho
        for _ in range(_MOST_PRODUCTS):
            if rho <= settings.SETTINGS.accuracy**2 * min(first, self._tau**2 * square):
                break
            image = self._tau * direction - self._bend(moved)
            bend, length = (
                float(np.vdot(moved, image)),
                float(np.vdot(direction, moved)),
            )
            if not length > 0:
                break
            along = float(np.vdot(x, moved))
            size = rho / bend if bend > 1e-14 * self._tau * length else np.inf
            is_last = not square + size * (2 * along + size * length) < radius**2
            if is_last:
                size = (
                    np.sqrt(along**2 + length * (radius**2 - square)) - along
                ) / length
            x = x + size * direction
            square += size * (2 * along + size * length)
            slope += size * float(np.vdot(right, moved))
            if is_last:
                return _Step(x, slope, radius)
            residual = residual - size * image
            curved = self._curvature(residual)
            self._work.left -= self._read
            last, rho = rho, float(np.vdot(residual, curved))
            direction, moved = (
                residual + rho / last * direction,
                curved + rho / last * moved,
            )
        else:
            exact = self._by_rows(right)
            if exact is not None and exact.length <= radius:
                return exact
        # The remaining residual lies where J is almost 0 and the operator is tau times identity.
        x, slope = (
            x + residual / self._tau,
            slope + float(np.vdot(right, curved)) / self._tau,
        )
        return _Step(x, slope, math.sqrt(max(0.0, square)))


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
        near: State | None = None,
    ) -> State:
        """Return the state at scores; the shift of quotas starts at that of ``near``."""
        scores = scores - scores[-1]
        anchor = np.zeros_like(scores) if anchor is None else anchor - anchor[-1]
        start = None if near is None else near.labeling.shift
        found = self.rows.label(scores, start)
        value, gradient = self.objective.value_and_gradient(found.point)
        entropy = found.log_sum - float(
            np.vdot(scores, found.point - self.rows.labeled_point)
        )
        return State(
            scores, anchor, tau, found, float(value), gradient - gradient[-1], entropy
        )

    def gap(self, state: State) -> float:
        """Return the first-order gap of a state over the set."""
        return gap(self.rows, state.point, state.gradient, state.labeling.shift)

    def follow(self, state: State, effort: Effort, least: float = 0.0) -> Path:
        """Lower tau until the gap is small enough, no progress is possible, or it is ``least``."""
        tol, max_iter, work = effort.tol, effort.max_iter, effort.work
        aim = min(effort.aim, tol)
        best, n_iter = Path(state, np.inf, 0, True), 0
        slowest, share = settings.SETTINGS.fall, settings.SETTINGS.centered
        levels: list[State] = []
        smallest = max(
            _NEARLY_REACHED * least, settings.SMALLEST_TAU * self.objective.weight
        )
        while True:
            most = min(max_iter - n_iter, _MOST_STEPS if levels else _MOST_FIRST_STEPS)
            wanted = share if levels else _FIRST_CENTERED * share
            state, n_steps, end = self._center(state, most, wanted, work)
            n_iter += n_steps
            found = self.gap(state)
            if end is _End.UNBOUNDED:
                return Path(state, found, n_iter, False, (*levels, state))
            has_fallen = found < best.gap
            if has_fallen:
                best = Path(state, found, n_iter, True)
            is_last = best.gap <= aim or state.tau <= smallest
            is_last = is_last or n_iter >= max_iter or work.left <= 0
            if (
                not is_last
                and end is _End.UNFINISHED
                and levels
                and slowest < _SLOWEST_TAU_FACTOR
            ):
                # Labels hardened before boundaries could move: repeat the level with a larger tau.
                slowest = float(np.sqrt(slowest))
                state = levels[-1].next_level(slowest * levels[-1].tau)
                continue
            if not is_last and not has_fallen and share > _SMALLEST_CENTERED:
                # Where classes tie the ascent left is of the order of the squared gap.
                share *= 1e-3
                continue
            if end is _End.CENTERED or not levels or found <= aim:
                levels.append(state)
            if is_last or (best.gap <= tol and not has_fallen):
                break
            # Where labels harden the gap is proportional to the square of tau.
            fall = float(np.clip(np.sqrt(0.3 * aim / found), slowest, 1))
            state = state.next_level(max(fall * state.tau, least))
        return Path(best.state, best.gap, n_iter, True, tuple(levels))

    def _center(
        self, state: State, most: int, share: float, work: Work
    ) -> tuple[State, int, _End]:
        """Maximize the merit at one level by at most ``most`` Newton steps.

        Return the state, the number of steps and how it ended. ``share`` is that of
        ``_SMALLEST_CENTERED``.
        """
        radius = _FIRST_RADIUS
        for n_steps in range(1, most + 1):
            if not self.objective.is_bounded(state.point):
                return state, n_steps, _End.UNBOUNDED
            noise = _MERIT_ROUNDING * (abs(state.merit) + self.objective.weight)
            step = _System(self.objective, state, work).solve(state.residual, radius)
            is_centered = step.slope <= max(
                share * state.tau * max(state.entropy, 0.0), noise
            )
            trial, size = self._part_of_step(state, step, noise, work)
            if size == 0 or (is_centered and size == 1):
                return trial, n_steps, _End.CENTERED if is_centered else _End.UNFINISHED
            if size < 1:
                radius = max(size * step.length, _SMALLEST_RADIUS)
            elif step.length >= radius:
                radius *= _radius_factor((trial.merit - state.merit) / step.slope)
            state = trial
            if work.left <= 0:
                return state, n_steps, _End.UNFINISHED
        return state, most, _End.UNFINISHED

    def _part_of_step(
        self, state: State, step: _Step, noise: float, work: Work
    ) -> tuple[State, float]:
        """Return the end of the largest part of a step that raises the merit enough, and its size.

        The size is 0 if there is none.
        """
        size = 1.0
        while size >= _SHORTEST_SIZE:
            moved = state.scores + size * step.scores
            trial = self.state(moved, state.tau, state.anchor, near=state)
            work.left -= trial.labeling.n_sought
            if (
                trial.merit - state.merit + noise
                >= _SUFFICIENT_GAIN * size * step.slope
            ):
                return trial, size
            size *= 0.3
        return state, 0.0


def _radius_factor(gain: float) -> float:
    """Return the factor of the trust radius after a gain of merit, over the slope of the step."""
    if gain >= _GOOD_GAIN:
        return 2.0
    return 0.3 if gain < _POOR_GAIN else 1.0


@dataclass(frozen=True)
class Limit:
    """The limit of a path for tau to 0: a labeling, and the point that it attains."""

    point: Array
    value: float  # of the objective
    gap: float  # first-order gap
    first: Array  # c, (K, 1 + rank)
    second: Array  # lambda, (K, 1 + rank)
    margin: (
        float  # classes tie whose c_k' z~ is this near to the largest; infinite: all do
    )

    def rule(self, problem: Problem) -> LinearRule | LexicographicRule:
        """Return the labeling as a rule for rows in the frame."""
        second = problem.rule_of(self.second, is_soft=True)
        if np.isinf(self.margin):
            return second
        return LexicographicRule(
            problem.rule_of(self.first, is_soft=False), second, self.margin
        )


def find_limit(likelihood: Objective, held: HeldSet, end: State) -> Limit | None:
    """Return the limit of a path that ends in a state, or None if it cannot be determined.

    An active-set method: for a guess of the classes that tie on each row, Newton's method balances
    their shares. Shares that would become negative leave the guess; classes that tie by the
    gradient, but are not in it, join. It fails where leads and their rounding cannot be separated.
    """
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
    """A point at which no change of the shares of rows that tie raises the objective."""

    point: Array
    value: float
    gradient: Array
    first: Array  # the gradient without its part in the directions of rows that tie: rounding
    scores: Array
    leaving: AnyArray | None = (
        None  # (K, n): shares that a step would make negative; not balanced
    )


def _balance(
    likelihood: Objective, held: HeldSet, is_tied: AnyArray, scores: Array
) -> _Balanced | None:
    """Find scores whose shares of the rows that tie, (K, n) mask, make the gradient vanish there.

    Newton's method in the directions in which these shares can move the point. None if it fails.
    """
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
        labeling = Labeling(AllSums(point, 0.0), held, shares)
        spread = basis.T @ labeling.matrix() @ basis
        step = -_solve(spread, _solve(bend, residual))
        if not np.isfinite(step).all():
            return None
        change = np.where(is_sharing, whole(basis @ step) @ tied.T, 0.0)
        change -= (shares[:, tied_rows] * change).sum(
            axis=0
        )  # relative changes of the shares
        change[~is_sharing] = 0.0
        largest = float(np.abs(shares[:, tied_rows] * change).max())
        if largest <= _ZERO_CHANGE or last / 2 <= largest <= _ROUNDED_CHANGE:
            return found
        if change.min() < -1:
            leaving = np.zeros(is_tied.shape, dtype=bool)
            # The share reduced most, with those of equal rows, and all small ones below zero.
            is_small = (change < -1) & (shares[:, tied_rows] < _SMALL_SHARE)
            leaving[:, tied_rows] = is_small | (
                change <= _EQUAL_CHANGE_RATIO * change.min()
            )
            return replace(found, leaving=leaving)
        last = largest
        free = free + step * min(1.0, _LONGEST_STEP / max(float(change.max()), 1e-300))
    return None


def _with_last_class(flat: Array, shape: tuple[int, ...]) -> Array:
    """Return a vector of all classes but the last as a matrix (K, 1 + rank), zero in the last."""
    whole = np.zeros(shape)
    whole[:-1].ravel()[:] = flat
    return whole


def _directions(z: Array, is_tied: AnyArray) -> Array:
    """Return an orthonormal basis, in columns, of the moves of the point by rows that tie.

    It spans the directions (e_k - e_j) x z~ of all pairs of classes that share a row z~, in the
    coordinates of all classes but the last.
    """
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
    # With many rows the scatter of the directions is smaller; its eigenvalues are squares.
    scatter = np.zeros((size, size))
    for sharing, rows in groups:
        contrasts = _contrasts(sharing)
        scatter += np.kron(contrasts.T @ contrasts, rows.T @ rows)
    squares, vectors = scipy.linalg.eigh(scatter)
    return np.asarray(vectors[:, squares > _DEPENDENT_RATIO**1.5 * squares[-1]])


def _groups(rows: Array, is_tied: AnyArray) -> list[tuple[AnyArray, Array]]:
    """Return the distinct sets of classes that share rows, (K,) masks, each with its rows."""
    kinds, kind = np.unique(is_tied, axis=1, return_inverse=True)
    return [(kinds[:, i], rows[kind.ravel() == i]) for i in range(kinds.shape[1])]


def _contrasts(is_sharing: AnyArray) -> Array:
    """Return the differences e_k - e_j of the m classes that share, (m - 1, K - 1)."""
    found = np.eye(len(is_sharing))[is_sharing]
    return np.asarray((found[1:] - found[0])[:, :-1])


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a linear system; NaN if it is singular."""
    _, _, solution, failed = lapack.dgesv(matrix, right)
    return np.full(len(right), np.nan) if failed else np.asarray(solution)
