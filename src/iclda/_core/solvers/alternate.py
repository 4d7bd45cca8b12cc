"""Label the unlabeled rows by the current model, refit, repeat: self-learning, EM, self-training.

Self-learning has hard labels, EM soft ones, and self-training labels for good the rows that the
model is sure of. The first two share a loop over the attainable set. A pass needs linear
scores and class sums only: the covariance follows from the class sums (a downdate of rank K - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .. import AnyArray, Array
from ..gaussian import LOG_2PI, Gaussians
from ..labelsums import LinearRule
from ..likelihood import PreciseMeans
from ..problem import Problem
from . import Limits, Outcome
from .attainable import AttainableSet, SoftLabels
from .sets import attainable_sets

_STEPS_REMEMBERED = 8  # steps of EM that an extrapolation is made from
_LAPACK_WORKSPACE = 1024  # entries for LAPACK's least squares
_LARGE_SYSTEM = (
    20_000  # rows of a least squares problem, solved by its normal equations
)
_GRAM_ROUNDING = 1e-12  # of the eigenvalues of these
_SADDLE_STRETCH = 2.0  # factor of a step that leads away from a saddle
_LIKELIHOOD_ROUNDING = 64 * float(np.finfo(np.float64).eps)  # per row and dimension
_SMALL_RISES = 2  # rounds in a row that must hardly raise the likelihood
_HELD_SCORES = 2**22  # 32 MB
_WHOLE_ROWS = 1e-9  # rounding of shares times rows
_EQUAL_DIGITS = 9  # of scores of equal rows


@dataclass(frozen=True)
class Alternation:
    """Result of the loop: the point, the labeling that attains it, likelihoods of all rounds."""

    point: Array
    rule: LinearRule
    n_iter: int
    outcome: Outcome
    n_passes: int = 1  # over all rows, for the moments and in the loop
    path: list[float] = field(default_factory=list)


def alternate(
    problem: Problem, limits: Limits, *, is_soft: bool, start: Array | None = None
) -> Alternation:
    """Alternate between labels and model until the labels, or the likelihood, converge.

    ``start`` are the scores of the first labels; by default those of the supervised fit.
    """
    loop = _maximize_marginal if is_soft else _repeat_labels
    rows = attainable_sets(problem).open_for_rounds()
    start = start_scores(problem) if start is None else start
    limits = replace(limits, max_iter=problem.rounds(limits.max_iter))
    found = loop(problem, rows, start, limits)
    return replace(found, n_passes=1 + rows.n_passes)


class _Round(NamedTuple):
    """One pass: rows labeled by the model at a point give the next point.

    Attributes
    ----------
    point : the point of the model
    labels : the labels by it, which attain the next point
    """

    point: Array
    labels: SoftLabels

    @property
    def refitted(self) -> Array:
        return self.labels.point


def _repeat_labels(
    problem: Problem, rows: AttainableSet, start: Array, limits: Limits
) -> Alternation:
    """Self-learning: hard labels until they repeat. Nothing is kept of them but their sums."""
    scores, point = start, rows.hard_point(start)
    outcome = Outcome.MAX_ITERATIONS
    for n_iter in range(1, limits.max_iter + 1):  # noqa: B007
        if not problem.is_admissible(point):
            outcome = Outcome.UNBOUNDED
            break
        next_scores = problem.posterior_scores(point)
        next_point = rows.hard_point(next_scores)
        # The same labels give the same sums to the bit, so that tol = 0 can be met.
        if np.abs(next_point - point).max() <= limits.tol:
            outcome = Outcome.CONVERGED
            break
        scores, point = next_scores, next_point
    return Alternation(point, problem.rule_of(scores, is_soft=False), n_iter, outcome)


@dataclass
class _State:
    """State of the iteration: the current point and what stopping depends on."""

    # Updated in every round.
    last: _Round
    history: _History
    path: list[float] = field(default_factory=list)  # likelihoods
    # Used to decide when to stop.
    n_small_rises: int = 0  # rounds in a row that hardly raised the likelihood
    is_bounded: bool = True


def _maximize_marginal(
    problem: Problem, rows: AttainableSet, start: Array, limits: Limits
) -> Alternation:
    """EM with Anderson's extrapolation wherever that does not lose likelihood."""
    first = _Round(problem.labeled_point, rows.soft_labels(start))
    state = _State(first, _History(first.point.size))
    state.is_bounded = problem.is_admissible(first.refitted)
    rounding = _LIKELIHOOD_ROUNDING * (1 + problem.whitening.rank)
    small_rise = max(limits.tol, rounding) * problem.moments.weight
    while (outcome := _why_it_stops(state, limits.max_iter)) is None:
        this, value = _next_round(problem, rows, state)
        is_small = bool(state.path) and value - state.path[-1] <= small_rise
        state.n_small_rises = state.n_small_rises + 1 if is_small else 0
        state.path.append(value)
        state.last, state.is_bounded = this, problem.is_admissible(this.refitted)
    # The labels of the last round attain the point that they lead to, not the one they come from.
    rule = problem.rule_of(state.last.labels.scores, is_soft=True)
    n_iter = max(1, len(state.path))
    return Alternation(state.last.refitted, rule, n_iter, outcome, path=state.path)


def _why_it_stops(state: _State, max_iter: int) -> Outcome | None:
    """Return the outcome if EM stops here, else None.

    It stops where the measured likelihood hardly rose twice in a row.
    """
    if state.n_small_rises == _SMALL_RISES:
        return Outcome.CONVERGED
    if not state.is_bounded:
        return Outcome.UNBOUNDED
    return Outcome.MAX_ITERATIONS if len(state.path) == max_iter else None


def _next_round(
    problem: Problem, rows: AttainableSet, state: _State
) -> tuple[_Round, float]:
    """A round from the extrapolated point, or from the last one if that loses likelihood."""

    def label(point: Array) -> tuple[_Round, float]:
        """A round, and the likelihood of the model that labels in it."""
        precise = problem.precise_means(point)
        scores = problem.posterior_scores(point, precise)
        labels = rows.soft_labels(scores, state.last.labels)
        log_sum = labels.log_sum * problem.moments.weight
        labeled = _Round(point, labels)
        return labeled, marginal_log_likelihood(problem, point, log_sum, precise)

    guess = state.history.extrapolate(state.last) if state.path else None
    if guess is None or not problem.is_admissible(guess):
        return label(state.last.refitted)
    this, value = label(guess)
    if value < state.path[-1]:
        state.history = _History(guess.size)
        this, value = label(state.last.refitted)
    return this, value


class _History:
    """Anderson acceleration: the last few steps of EM."""

    def __init__(self, size: int) -> None:
        self._last: tuple[Array, Array] | None = None  # a step, and where it led
        self._n_known = 0
        self._ends = np.empty((_STEPS_REMEMBERED, size))  # between the ends of steps
        self._changes = np.empty((_STEPS_REMEMBERED, size))  # between steps

    def extrapolate(self, last: _Round) -> Array | None:
        """The extrapolated point, admissible or not."""
        # All classes, though the last follows from the others: distances are the same in any order.
        flat, end = last.point.ravel(), last.refitted.ravel()
        step = end - flat
        if self._last is not None:
            place = self._n_known % _STEPS_REMEMBERED  # the newest replaces the oldest
            np.subtract(end, self._last[1], out=self._ends[place])
            np.subtract(step, self._last[0], out=self._changes[place])
            self._n_known += 1
        self._last = step, end
        n_kept = min(self._n_known, _STEPS_REMEMBERED)
        if n_kept == 0:
            return None
        shares = _least_squares(self._changes[:n_kept].T, step)
        if shares is None:
            return None
        move = step - shares @ self._ends[:n_kept]
        if move @ step < step @ step:
            # Steps lead away from a saddle: extrapolation would return to it.
            move = _SADDLE_STRETCH * step
        point = (flat + move).reshape(last.point.shape)
        # Class weights sum to 1 and class sums to 0, but for rounding.
        excess = np.add.reduce(point)
        excess[0] -= 1
        return np.asarray(point - excess / len(point))


def _least_squares(matrix: Array, right: Array) -> Array | None:
    """Return the solution of smallest norm, by LAPACK: checks cost more than small problems."""
    if len(matrix) > _LARGE_SYSTEM:  # LAPACK's pivoting reads the columns many times
        gram = matrix.T @ matrix
        return np.asarray(
            np.linalg.lstsq(gram, matrix.T @ right, rcond=_GRAM_ROUNDING)[0]
        )
    padded = np.zeros(max(matrix.shape))
    padded[: len(right)] = right
    pivots = np.zeros((matrix.shape[1], 1), dtype=np.int32)
    _, solution, _, _, failed = lapack.dgelsy(
        matrix, padded, pivots, 1e-8, _LAPACK_WORKSPACE
    )
    return None if failed else np.asarray(solution[: matrix.shape[1]])


def start_scores(problem: Problem) -> Array:
    """Linear scores of the supervised fit; where it is singular, pooled moments of all rows.

    Or those of the problem's own start.
    """
    if problem.start is not None:
        return problem.scores_of(problem.start)
    labeled, keep = problem.likelihood, 1 - problem.shrinkage
    found = problem.labeled_factor
    if found is not None:
        slopes = labeled.means @ found.inverse.T @ found.inverse / keep
    elif problem.labeled_rank < problem.whitening.rank:
        slopes = labeled.means
    else:
        covariance = keep * problem.labeled_covariance
        slopes = scipy.linalg.solve(covariance, labeled.means.T, assume_a="pos").T
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(labeled.counts / labeled.weight)
    return np.column_stack(
        [log_priors - (slopes * labeled.means).sum(axis=1) / 2, slopes]
    )


def marginal_log_likelihood(
    problem: Problem, point: Array, log_sum: float, precise: PreciseMeans
) -> float:
    """Labeled log joint plus unlabeled log marginal, with shrinkage less its penalty.

    ``log_sum`` is the sum over unlabeled rows of log-sum-exp of the posterior scores, ``precise``
    are the precise means at the point. All rows have second moment N I, so that the spread about
    the means needs no row: N tr M^-1 less what the labeled rows gain by their means. The penalty
    N0/2 (log|Sigma| + nu tr Sigma^-1) of shrinkage is what makes the second moment N I there too.
    """
    labeled, weight, rank = (
        problem.likelihood,
        problem.moments.weight,
        problem.whitening.rank,
    )
    keep = 1 - problem.shrinkage
    r, along = point[:, 0], precise.along
    pulled = np.add.reduce(precise.rows * labeled.means, axis=1)
    gained = labeled.counts @ (2 * pulled - along / r)
    spread = weight * (rank + np.add.reduce(along)) - gained
    log_priors = np.log(r) if problem.log_priors is None else problem.log_priors
    return float(
        labeled.counts @ log_priors
        + log_sum
        - spread / (2 * keep)
        - weight
        / keep
        / 2
        * (precise.log_det + rank * math.log(keep) + problem.whitening.log_det)
        - weight / 2 * rank * LOG_2PI
    )


@dataclass(frozen=True)
class SelfTraining:
    """Result of self-training."""

    n_iter: int
    n_added: int
    outcome: Outcome


def self_train(
    fit: Callable[[AnyArray], Gaussians],
    rows: AnyArray,
    weights: Array,
    threshold: float,
    limits: Limits,
    most_shares: Array | None = None,
) -> SelfTraining:
    """Fit, add the unlabeled rows whose posterior reaches the threshold, and repeat.

    ``fit`` takes the codes of the unlabeled rows, -1 for those that are not added, and returns a
    model for ``rows``, which are in the user's units. A row that was added keeps its label.
    ``most_shares`` are the largest shares of the rows that the classes may get, if given: of the
    rows that the model is sure of, the surest are added until a class is full.
    """
    codes = np.full(len(rows), -1)
    for n_iter in range(1, limits.max_iter + 1):
        model = fit(codes)
        n_added, is_open = int((codes >= 0).sum()), np.flatnonzero(codes < 0)
        best, leads, is_sure = _label_open(model, rows[is_open], threshold)
        new = np.flatnonzero(is_sure)
        if most_shares is not None:
            added = np.bincount(
                codes + 1, weights * (codes >= 0), len(most_shares) + 1
            )[1:]
            room = most_shares * weights.sum() - added
            of_open = weights[is_open]
            by_class = (
                _first(new[best[new] == k], leads, of_open, room[k])
                for k in range(len(room))
            )
            new = np.concatenate([*by_class])
        if not len(new):
            return SelfTraining(n_iter, n_added, Outcome.CONVERGED)
        codes[is_open[new]] = best[new]
    return SelfTraining(limits.max_iter, n_added, Outcome.MAX_ITERATIONS)


def _first(rows: AnyArray, leads: Array, weights: Array, room: float) -> AnyArray:
    """The rows of the largest leads until the room for their weights is filled.

    Equal rows are taken together, so that a weight of 2 counts like a row twice.
    """
    rows = rows[np.argsort(-leads[rows], kind="stable")]
    falling = -np.round(leads[rows], _EQUAL_DIGITS)
    before = np.concatenate([[0.0], np.cumsum(weights[rows])])[
        np.searchsorted(falling, falling)
    ]
    return rows[before < room - _WHOLE_ROWS]


def _label_open(
    model: Gaussians, rows: Array, threshold: float
) -> tuple[AnyArray, Array, AnyArray]:
    """Most probable class, lead of its score on the next, whether its posterior is large enough."""
    rule = model.score_rule()
    codes, leads = np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
    is_sure = np.empty(len(rows), dtype=bool)
    step = max(1, _HELD_SCORES // len(rule.intercept))
    for begin in range(0, len(rows), step):
        some = slice(begin, begin + step)
        scores = model.frame.apply(rows[some]) @ rule.coef + rule.intercept
        scores -= scores.max(axis=1, keepdims=True)
        codes[some] = scores.argmax(axis=1)
        leads[some] = -np.partition(scores, -2, axis=1)[:, -2]
        is_sure[some] = 1 / np.exp(scores).sum(axis=1) >= threshold
    return codes, leads, is_sure
