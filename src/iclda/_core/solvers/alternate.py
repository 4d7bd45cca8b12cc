"""Label the unlabeled rows, refit, repeat: self-learning, EM and self-training.

Self-learning gives hard labels, EM soft ones, and both relabel every row in every
round. They share a loop over the attainable set, whose passes need only linear scores
and class sums: the covariance follows from the class sums (a downdate of rank K - 1).
Self-training labels a row once, when the model is sure of it, and then keeps the label.
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
from ..likelihood import PrecisionWeightedMeans
from ..problem import Problem
from . import Limits, Outcome, settings
from .attainable import AttainableSet, SoftLabels
from .sets import attainable_sets

# Relative cutoff for singular values in least squares, by the normal equations ...
_GRAM_RCOND = 1e-12
# ... and by LAPACK.
_LEAST_SQUARES_RCOND = 1e-8
# Size of the workspace for LAPACK's least squares, in numbers.
_LAPACK_WORKSPACE_SIZE = 1024
# Rounding of the likelihood, per row and dimension.
_LIKELIHOOD_ROUNDING = 64 * float(np.finfo(np.float64).eps)
# Rounding of the product of a share and the weight of all rows.
_ROOM_ROUNDING = 1e-9
# Rows whose leads agree to this many decimals count as equal.
_LEAD_DECIMALS = 9


@dataclass(frozen=True)
class Alternation:
    """Result of the loop: the point, and the labeling that attains it.

    ``n_passes`` counts passes over all rows, for the moments and in the loop; ``path``
    has the likelihoods of all rounds of EM.
    """

    point: Array
    rule: LinearRule
    n_iter: int
    outcome: Outcome
    n_passes: int = 1
    path: list[float] = field(default_factory=list)


def alternate(
    problem: Problem, limits: Limits, *, is_soft: bool, start: Array | None = None
) -> Alternation:
    """Alternate between labels and model until labels, or the likelihood, converge.

    ``start`` are the scores of the first labels; None for those of the supervised fit.
    """
    rows = attainable_sets(problem).open_for_rounds()
    if start is None:
        start = start_scores(problem)
    limits = replace(limits, max_iter=problem.rounds(limits.max_iter))
    loop = _maximize_marginal if is_soft else _repeat_labels
    result = loop(problem, rows, start, limits)
    return replace(result, n_passes=1 + rows.n_passes)


def _repeat_labels(
    problem: Problem, rows: AttainableSet, start: Array, limits: Limits
) -> Alternation:
    """Self-learning: repeat hard labels until they no longer change.

    Only the sums of the labels are kept.
    """
    scores = start
    point = rows.hard_point(start)
    outcome = Outcome.MAX_ITERATIONS
    n_iter = 0
    while n_iter < limits.max_iter:
        n_iter += 1
        if not problem.is_admissible(point):
            outcome = Outcome.UNBOUNDED
            break
        next_scores = problem.posterior_scores(point)
        next_point = rows.hard_point(next_scores)
        # The same labels give the same sums to the bit, so that tol = 0 can be met.
        if np.abs(next_point - point).max() <= limits.tol:
            outcome = Outcome.CONVERGED
            break
        scores = next_scores
        point = next_point
    return Alternation(point, problem.rule_of(scores, is_soft=False), n_iter, outcome)


class _Round(NamedTuple):
    """One pass: the model at ``point`` gives all rows their labels."""

    point: Array
    labels: SoftLabels

    @property
    def refitted(self) -> Array:
        """The point of the next model, which is fitted to these labels."""
        return self.labels.point


@dataclass
class _State:
    """State of EM, which every round changes.

    Attributes
    ----------
    last : the last round
    history : the steps of the last rounds, which are extrapolated
    likelihoods : the log likelihood of every round
    n_small_rises : number of rounds in a row that hardly raised the likelihood
    n_unfilled : number of rounds that left quotas unfilled
    is_bounded : False at a singular model, where the likelihood is unbounded
    """

    last: _Round
    history: _History
    likelihoods: list[float] = field(default_factory=list)
    n_small_rises: int = 0
    n_unfilled: int = 0
    is_bounded: bool = True


def _maximize_marginal(
    problem: Problem, rows: AttainableSet, start: Array, limits: Limits
) -> Alternation:
    """EM, extrapolated near its end (Anderson) unless that lowers the likelihood."""
    # 1. Label the rows by the start, and refit.
    first = _Round(problem.labeled_point, rows.soft_labels(start))
    state = _State(first, _History(first.point.size))
    state.is_bounded = problem.is_admissible(first.refitted)

    rounding = _LIKELIHOOD_ROUNDING * (1 + problem.whitening.rank)
    small_rise = max(limits.tol, rounding) * problem.moments.weight
    while (outcome := _why_it_stops(state, limits.max_iter)) is None:
        # 2. Label the rows by the model, and refit.
        state.last, likelihood = _next_round(problem, rows, state)
        state.is_bounded = problem.is_admissible(state.last.refitted)

        # 3. See how far the likelihood has risen. One of unfilled quotas says nothing.
        are_filled = state.last.labels.are_filled
        state.n_unfilled += not are_filled
        can_end = bool(state.likelihoods) and are_filled
        if can_end and likelihood - state.likelihoods[-1] <= small_rise:
            state.n_small_rises += 1
        else:
            state.n_small_rises = 0
        state.likelihoods.append(likelihood)

    # The labels of the last round attain the refitted point, not the one before it.
    rule = problem.rule_of(state.last.labels.scores, is_soft=True)
    n_iter = max(1, len(state.likelihoods))
    point = state.last.refitted
    return Alternation(point, rule, n_iter, outcome, path=state.likelihoods)


def _why_it_stops(state: _State, max_iter: int) -> Outcome | None:
    """Return the outcome if EM stops here, else None."""
    if state.n_small_rises == settings.ROUNDS.small_rises_at_convergence:
        return Outcome.CONVERGED
    if not state.is_bounded:
        return Outcome.UNBOUNDED
    if state.n_unfilled == settings.QUOTA_ROUNDS.max_unfilled_rounds:
        return Outcome.UNFILLED
    if len(state.likelihoods) == max_iter:
        return Outcome.MAX_ITERATIONS
    return None


def _next_round(
    problem: Problem, rows: AttainableSet, state: _State
) -> tuple[_Round, float]:
    """Label the rows by the extrapolated model, or by the last one if that is better.

    Return the round, and the likelihood of the model that labels in it.
    """
    last = state.last
    guess = None
    if state.likelihoods:
        state.history.remember(last)
    if _is_basin_decided(state.likelihoods, problem.moments.weight):
        guess = state.history.extrapolate(last)
    if guess is None or not problem.is_admissible(guess):
        return _label_by_model(problem, rows, last.refitted, last.labels)
    # Whether the guess is good is known only after its pass.
    extrapolated, likelihood = _label_by_model(problem, rows, guess, last.labels)
    if likelihood < state.likelihoods[-1]:
        # Take a plain step, and begin a new history there.
        state.history = _History(guess.size)
        return _label_by_model(problem, rows, last.refitted, last.labels)
    return extrapolated, likelihood


def _is_basin_decided(likelihoods: list[float], weight: float) -> bool:
    """Whether the likelihood rises so little that the rounds to come mostly stay near.

    Before that, an extrapolation may cross to the basin of another maximum, and the fit
    is to end where plain rounds do. On a plateau the rise is small, too: of 1,400
    splits of the sets of the paper extrapolation ends elsewhere in 4.
    """
    if len(likelihoods) < 2:
        return False
    rise = likelihoods[-1] - likelihoods[-2]
    return rise <= settings.ROUNDS.max_rise_before_extrapolation * weight


def _label_by_model(
    problem: Problem, rows: AttainableSet, point: Array, similar: SoftLabels
) -> tuple[_Round, float]:
    """Return the round of the model at a point, and the likelihood of that model.

    ``similar`` are the labels of an earlier round, which save time.
    """
    weighted_means = problem.precision_weighted_means(point)
    scores = problem.posterior_scores(point, weighted_means)
    labels = rows.soft_labels(scores, warm_start=similar)
    log_sum = labels.log_sum * problem.moments.weight
    likelihood = marginal_log_likelihood(problem, point, log_sum, weighted_means)
    return _Round(point, labels), likelihood


class _History:
    """The last few steps of EM, for Anderson acceleration.

    A step leads from the point of a round to the refitted one, its end. Row i of the
    two arrays is the change of the ends, and of the steps, from one round to the next.
    """

    def __init__(self, size: int) -> None:
        self._last_step: Array | None = None
        self._last_end: Array | None = None
        self._n_changes = 0
        n_remembered = settings.ROUNDS.remembered_steps
        self._changes_of_end = np.empty((n_remembered, size))
        self._changes_of_step = np.empty((n_remembered, size))

    def extrapolate(self, last: _Round) -> Array | None:
        """Return the extrapolated point, admissible or not; None without a history.

        ``last`` is the round that was remembered last.
        """
        start = last.point.ravel()
        step = self._last_step
        n_kept = min(self._n_changes, len(self._changes_of_step))
        if step is None or n_kept == 0:
            return None

        # 1. Find the combination of earlier changes that best cancels the step.
        shares = _least_squares(self._changes_of_step[:n_kept].T, step)
        if shares is None:
            return None

        # 2. Move by the step less the same combination of the changes of the ends.
        move = step - shares @ self._changes_of_end[:n_kept]
        if move @ step < step @ step:
            # Steps lead away from a saddle: extrapolation would return to it.
            move = settings.ROUNDS.saddle_stretch * step
        # A longer move may leave the basin, too.
        max_length = settings.ROUNDS.max_move * np.linalg.norm(step)
        length = np.linalg.norm(move)
        if length > max_length:
            move *= max_length / length
        point = (start + move).reshape(last.point.shape)

        # 3. Make class weights add up to 1, and class sums to 0, which they do up to
        # rounding.
        excess = np.add.reduce(point)
        excess[0] -= 1
        return np.asarray(point - excess / len(point))

    def remember(self, last: _Round) -> None:
        """Store the changes since the round before."""
        # Points hold all classes, although the last one follows from the others: with
        # it, distances do not depend on the order of the classes.
        end = last.refitted.ravel()
        step = end - last.point.ravel()
        if self._last_step is not None and self._last_end is not None:
            # The newest change replaces the oldest one.
            i = self._n_changes % len(self._changes_of_step)
            np.subtract(end, self._last_end, out=self._changes_of_end[i])
            np.subtract(step, self._last_step, out=self._changes_of_step[i])
            self._n_changes += 1
        self._last_step = step
        self._last_end = end


def _least_squares(matrix: Array, right: Array) -> Array | None:
    """Return the solution of smallest norm, or None if LAPACK fails.

    LAPACK is called directly: for small problems, SciPy's checks cost more than the
    solution.
    """
    if len(matrix) > settings.ROUNDS.max_lapack_rows:
        # LAPACK's pivoting would read the columns many times.
        gram = matrix.T @ matrix
        solution = np.linalg.lstsq(gram, matrix.T @ right, rcond=_GRAM_RCOND)[0]
        return np.asarray(solution)
    n_columns = matrix.shape[1]
    # LAPACK writes the solution over the right-hand side: it needs room for either.
    padded = np.zeros(max(matrix.shape))
    padded[: len(right)] = right
    pivots = np.zeros((n_columns, 1), dtype=np.int32)
    _, solution, _, _, is_failed = lapack.dgelsy(
        matrix, padded, pivots, _LEAST_SQUARES_RCOND, _LAPACK_WORKSPACE_SIZE
    )
    return None if is_failed else np.asarray(solution[:n_columns])


def start_scores(problem: Problem) -> Array:
    """Return the linear scores with which a fit starts.

    They are those of the problem's own start, else those of the supervised fit. Where
    its covariance is singular, that of all rows takes its place.
    """
    if problem.start is not None:
        return problem.scores_of(problem.start)
    labeled = problem.likelihood
    keep = 1 - problem.shrinkage
    cholesky = problem.labeled_factor
    # Slopes are Sigma^-1 zbar_k, in one of three ways.
    if cholesky is not None:
        slopes = labeled.means @ cholesky.inverse.T @ cholesky.inverse / keep
    elif problem.labeled_rank < problem.whitening.rank:
        slopes = labeled.means
    else:
        covariance = keep * problem.labeled_covariance
        slopes = scipy.linalg.solve(covariance, labeled.means.T, assume_a="pos").T
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(labeled.counts / labeled.weight)
    intercepts = log_priors - (slopes * labeled.means).sum(axis=1) / 2
    return np.column_stack([intercepts, slopes])


def marginal_log_likelihood(
    problem: Problem,
    point: Array,
    log_sum: float,
    weighted_means: PrecisionWeightedMeans,
) -> float:
    """Return the log likelihood of labeled rows with, and unlabeled without, a class.

    With shrinkage, its penalty N0/2 (log|Sigma| + nu tr Sigma^-1) is subtracted.
    ``log_sum`` is the sum over the unlabeled rows of log-sum-exp of their posterior
    scores, ``weighted_means`` are the precision-weighted means at the point.

    log-sum-exp leaves out a term -1/2 z' M^-1 z / (1 - s) of every unlabeled row, and
    labeled rows have -1/2 (z - mu_k)' M^-1 (z - mu_k) / (1 - s). The second moment of
    all rows is N I, with shrinkage because of the penalty. Hence the sum of all these
    squared distances needs no row:

        spread = N tr M^-1 - sum_k n_k (2 zbar_k - mu_k)' M^-1 mu_k

    with the labeled class means zbar_k and tr M^-1 = rank + sum_k b_k' M^-1 mu_k.
    """
    labeled = problem.likelihood
    weight = problem.moments.weight
    rank = problem.whitening.rank
    keep = 1 - problem.shrinkage
    r = point[:, 0]
    # The formula for the spread, with zbar_k' M^-1 mu_k and mu_k' M^-1 mu_k.
    labeled_products = np.add.reduce(weighted_means.rows * labeled.means, axis=1)
    own_products = weighted_means.along / r
    gained = labeled.counts @ (2 * labeled_products - own_products)
    trace = rank + np.add.reduce(weighted_means.along)
    spread = weight * trace - gained
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(r)
    log_det = weighted_means.log_det + rank * math.log(keep) + problem.whitening.log_det
    return float(
        labeled.counts @ log_priors
        + log_sum
        - spread / (2 * keep)
        - weight / keep / 2 * log_det
        - weight / 2 * rank * LOG_2PI
    )


@dataclass(frozen=True)
class SelfTraining:
    """Result of self-training; ``n_added`` counts the unlabeled rows with a label."""

    n_iter: int
    n_added: int
    outcome: Outcome


def self_train(
    fit: Callable[[AnyArray], Gaussians],
    rows: AnyArray,
    weights: Array,
    threshold: float,
    limits: Limits,
    largest_shares: Array | None = None,
) -> SelfTraining:
    """Fit, add the unlabeled rows whose posterior reaches the threshold, and repeat.

    ``fit`` takes the codes of the unlabeled rows, -1 for those that are not added, and
    returns a model for ``rows``, which are in the user's units. A row that was added
    keeps its label. ``largest_shares`` bound the share of the rows that each class may
    get: of the rows that the model is sure of, the surest are added until the class is
    full.
    """
    codes = np.full(len(rows), -1)
    for n_iter in range(1, limits.max_iter + 1):
        # 1. Fit the labels so far, and find the rows that the model is sure of.
        model = fit(codes)
        is_added = codes >= 0
        is_open = np.flatnonzero(~is_added)
        best, leads, is_sure = _label_open(model, rows[is_open], threshold)
        new = np.flatnonzero(is_sure)

        # 2. Leave out those for which their class has no room.
        if largest_shares is not None:
            room = _room_left(codes, weights, largest_shares)
            weights_of_open = weights[is_open]
            by_class = []
            for k in range(len(room)):
                rows_of_class = new[best[new] == k]
                surest = _surest(rows_of_class, leads, weights_of_open, room[k])
                by_class.append(surest)
            new = np.concatenate(by_class)

        # 3. Label the rest.
        if not len(new):
            n_added = int(is_added.sum())
            return SelfTraining(n_iter, n_added, Outcome.CONVERGED)
        codes[is_open[new]] = best[new]
    # Rows that were labeled after the last fit do not count.
    n_added = int(is_added.sum())
    return SelfTraining(limits.max_iter, n_added, Outcome.MAX_ITERATIONS)


def _room_left(codes: AnyArray, weights: Array, largest_shares: Array) -> Array:
    """Return the weight (K,) that each class may still get."""
    is_added = codes >= 0
    # The first count is that of the code -1, rows without a label.
    n_counts = len(largest_shares) + 1
    added_weights = np.bincount(codes + 1, weights * is_added, n_counts)[1:]
    return np.asarray(largest_shares * weights.sum() - added_weights)


def _surest(rows: AnyArray, leads: Array, weights: Array, room: float) -> AnyArray:
    """Return the rows with the largest leads, until their weights fill the room.

    Equal rows are taken together, so that a weight of 2 counts like a row twice.
    """
    order = np.argsort(-leads[rows], kind="stable")
    rows = rows[order]
    cumulative_weights = np.cumsum(weights[rows])
    weights_before = np.concatenate([[0.0], cumulative_weights])
    # Every row of several equal ones gets the weight before the first of them.
    negative_leads = -np.round(leads[rows], _LEAD_DECIMALS)
    first_equal = np.searchsorted(negative_leads, negative_leads)
    has_room = weights_before[first_equal] < room - _ROOM_ROUNDING
    return rows[has_room]


def _label_open(
    model: Gaussians, rows: Array, threshold: float
) -> tuple[AnyArray, Array, AnyArray]:
    """Return the most probable class of every row, and how sure it is.

    That is the lead of its score over the next one, and whether its posterior reaches
    the threshold.
    """
    rule = model.score_rule()
    codes = np.empty(len(rows), dtype=np.intp)
    leads = np.empty(len(rows))
    is_sure = np.empty(len(rows), dtype=bool)
    n_at_once = max(1, settings.ROUNDS.max_scores_at_once // len(rule.intercept))
    for begin in range(0, len(rows), n_at_once):
        some = slice(begin, begin + n_at_once)
        u = model.frame.apply(rows[some])
        scores = u @ rule.coef + rule.intercept
        # Relative to the best class: the next one has minus the lead, and the posterior
        # of the best is 1 over the sum of all exponentials.
        scores -= scores.max(axis=1, keepdims=True)
        codes[some] = scores.argmax(axis=1)
        second_largest = np.partition(scores, -2, axis=1)[:, -2]
        leads[some] = -second_largest
        posteriors = 1 / np.exp(scores).sum(axis=1)
        is_sure[some] = posteriors >= threshold
    return codes, leads, is_sure
