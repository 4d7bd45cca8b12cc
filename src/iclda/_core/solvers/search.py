"""Maximize an objective over the attainable set: the order of the steps, and the certificate.

Paths (``continuation``) lead from the starts that a method chooses to a local maximum each. If not
all rows can be held in memory, this is done on a sample of them, and the best path is continued on
all rows, which are read in passes. The likelihood of the labeled rows has many starts
(``implicit``); a concave objective has one maximum, and one path (``pessimistic``). See
docs/solvers.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from .. import Array
from ..labelsums import LexicographicRule, LinearRule
from ..likelihood import Objective
from ..moments import moments_of_block
from ..problem import Problem
from . import Outcome, settings
from .attainable import HeldSet, StreamedSet, hold_in_memory
from .continuation import Effort, Follower, Limit, Path, State, find_limit
from .quotas import hold_rows, read_rows


@dataclass(frozen=True)
class Solution:
    """The best point that was found, the labeling that attains it, and the certificate."""

    point: Array
    rule: LinearRule | LexicographicRule  # the labeling, for rows in the frame
    objective: float  # per unit of ``Objective.weight``
    gap: float  # per unit of ``Objective.weight``; see ``attainable.gap``
    n_iter: int
    outcome: Outcome
    n_passes: int = 1  # over all rows; one is for the moments
    n_optima: int = 1  # number of distinct labelings that paths ended in


def search(
    problem: Problem,
    objective_of: Callable[[Problem], Objective],
    follow: Callable[[HeldSample, Effort], list[Path]],
    effort: Effort,
    seed: int = 0,
) -> Solution:
    """Follow paths on the rows in memory and, if these are a sample, the best one on all rows.

    ``objective_of`` returns the objective in the whitened coordinates of a problem: a sample has
    coordinates of its own. ``follow`` returns the paths on a sample.
    """
    n_rows, n_held = problem.unlabeled.n_rows, n_held_rows(problem)
    sample = hold_sample(problem, *problem.unlabeled.sample(n_held, seed))
    objective = objective_of(problem)
    weight = objective.weight
    if n_held == n_rows:
        paths = follow(sample, effort)
        best = _highest_of_ties(paths, 2 * weight * settings.LIKELIHOOD_GAP, effort.tol)
        limit = _limit(sample, objective, best, effort.tol)
        found = _solution(problem, objective, best, effort, limit)
        return replace(found, n_optima=_count_maxima(sample.held, paths))
    # Beyond its sampling error a path on a sample says nothing about all rows.
    rough = max(effort.tol, settings.ROUGH_GAP * weight)
    paths = follow(sample, replace(effort, tol=rough, aim=rough))
    best, n_optima = _highest(paths), _count_maxima(sample.held, paths)
    n_iter, n_passes = 0, 1  # before the last path; one pass was for the moments
    if best.is_bounded:
        n_iter = best.n_iter
        least = settings.SOFT_TAU * weight
        starts = [_start_of(path, least, sample.problem, problem) for path in paths]
        rows, weights = sample.rows, sample.weights
        del best, paths, sample  # and their whitened copy of the rows
        reader = read_rows(problem, hold_rows(problem, rows, weights))
        del rows, weights
        noise = settings.SAMPLING_ERROR * weight / np.sqrt(n_held)
        start = _best_on_all_rows(reader, objective, starts, noise)
        best = _follow_on_all_rows(reader, objective, start, effort)
        n_passes += reader.n_passes
    found = _solution(problem, objective, best, effort)
    return replace(
        found, n_iter=n_iter + found.n_iter, n_passes=n_passes, n_optima=n_optima
    )


def _solution(
    problem: Problem,
    objective: Objective,
    path: Path,
    effort: Effort,
    limit: Limit | None = None,
) -> Solution:
    """Return the end of a path, or its limit if there is one, and why the path ended."""
    end, gap = (path.state, path.gap) if limit is None else (limit, limit.gap)
    if not path.is_bounded:
        outcome = Outcome.UNBOUNDED
    elif gap <= effort.tol:
        outcome = Outcome.CONVERGED
    elif path.n_iter >= effort.max_iter:
        outcome = Outcome.MAX_ITERATIONS
    elif effort.work.left <= 0:
        outcome = Outcome.NOT_FOUND
    else:
        outcome = Outcome.STALLED
    labels = problem.rule_of(path.state.label_scores, is_soft=True)
    return Solution(
        point=end.point,
        rule=labels if limit is None else limit.rule(problem),
        objective=end.value / objective.weight,
        gap=gap / objective.weight,
        n_iter=path.n_iter,
        outcome=outcome,
    )


def n_held_rows(problem: Problem) -> int:
    """Return the number of unlabeled rows that are held in memory: all, or a sample."""
    width = 1 + problem.whitening.rank
    n_rows, chosen = problem.unlabeled.n_rows, settings.SETTINGS
    by_shares = max(settings.LEAST_HELD_ROWS, settings.HELD_SHARES // problem.n_classes)
    most = min(settings.HELD_ROWS, by_shares)
    if n_rows <= most and n_rows * width <= settings.HELD_ENTRIES_OF_ALL:
        return n_rows
    return min(
        most, max(settings.LEAST_HELD_ROWS, chosen.held_entries // width), n_rows
    )


@dataclass(frozen=True)
class HeldSample:
    """Rows in memory, and the problem in which they are all unlabeled rows.

    The covariance within classes is I - B D^-1 B' only if labeled and unlabeled rows together have
    the covariance I: a sample needs a whitening of its own.
    """

    problem: Problem
    rows: Array
    weights: Array
    held: HeldSet

    def thinned(self, n: int) -> HeldSample:
        """Return at most n of the rows, evenly spaced, with the total weight of all."""
        if n >= len(self.rows):
            return self
        cut = np.linspace(0, len(self.rows) - 1, n).astype(int)
        weights = self.weights[cut] * (self.weights.sum() / self.weights[cut].sum())
        return hold_sample(self.problem, self.rows[cut], weights)


def hold_sample(problem: Problem, rows: Array, weights: Array) -> HeldSample:
    """Hold rows given in the user's units, whitened by their own moments if they are a sample."""
    if len(rows) < problem.unlabeled.n_rows:
        step = settings.ROWS_WHITENED_AT_ONCE
        parts = [slice(start, start + step) for start in range(0, len(rows), step)]
        moments = (
            moments_of_block(problem.frame.apply(rows[a]), weights[a]) for a in parts
        )
        problem = replace(problem, unlabeled_moments=reduce(add, moments))
    return HeldSample(problem, rows, weights, hold_rows(problem, rows, weights))


def _limit(
    sample: HeldSample, objective: Objective, path: Path, tol: float
) -> Limit | None:
    """Return the limit of a path for tau to 0 (``find_limit``), or None if there is none.

    There is none where the path did not converge, with quotas or too many unknowns, and where the
    limit would have a lower objective or a larger gap than the end of the path.
    """
    problem, held, end = sample.problem, sample.held, path.state
    if not path.is_bounded or path.gap > tol or problem.proportions is not None:
        return None  # ``find_limit`` does not know of the shifts of quotas
    if problem.labeled_point[:-1].size > settings.FINISHED_UNKNOWNS:
        return None
    if not held.is_in_memory:
        held = hold_in_memory(problem, sample.rows, sample.weights)
    limit = find_limit(objective, held, end)
    noise = settings.ROUNDING_OF_LIMIT * (abs(end.value) + objective.weight)
    noise += settings.ROUNDING_OF_LIMIT / 100 * float(np.abs(end.gradient).max())
    if limit is None or limit.value < end.value - noise or limit.gap > path.gap + noise:
        return None
    return limit


class _Start(NamedTuple):
    """Where the path of a sample is continued on all rows."""

    value: float  # of the objective on the sample
    end: Array  # scores at the end of the path
    scores: Array  # of its last level with a large tau
    tau: float  # with which these are, from the anchor 0, near the maximum of a level


def _start_of(path: Path, least: float, source: Problem, target: Problem) -> _Start:
    """Return the last level of a path with a tau of at least ``least``, in other coordinates.

    Each level added nearly gradient / tau to the scores. With the anchor 0 and the tau that is
    returned they are again near the maximum of a level, and the anchor of the sample, which has
    the sampling errors of all earlier levels, is not needed any more.
    """
    levels = [level for level in path.levels if level.tau >= least] or [path.levels[0]]
    end, scores = (
        moved_scores(each.scores, source, target) for each in (path.state, levels[-1])
    )
    return _Start(
        path.state.value, end, scores, 1 / sum(1 / level.tau for level in levels)
    )


def moved_scores(scores: Array, source: Problem, target: Problem) -> Array:
    """Return scores in the whitened coordinates of another problem."""
    return target.scores_of(source.rule_of(scores, is_soft=True))


def _highest(paths: list[Path]) -> Path:
    """Return the path that ends highest; an unbounded one is highest of all."""
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _highest_of_ties(paths: list[Path], tie: float, tol: float) -> Path:
    """Return the highest path; ties are broken by the rounded point, so that rounding cannot.

    Paths within ``tie`` of the highest value tie, unless their gap is above that of the highest
    one and above ``tol``.
    """
    best = _highest(paths)
    if not best.is_bounded:
        return best
    lowest, largest_gap = best.state.value - tie, max(best.gap, tol)
    near = [
        path for path in paths if path.state.value >= lowest and path.gap <= largest_gap
    ]
    return max(
        near, key=lambda path: (*path.state.point.round(6).flat, path.state.value)
    )


def _best_on_all_rows(
    reader: StreamedSet, objective: Objective, starts: list[_Start], noise: float
) -> _Start:
    """Return the best of the paths on a sample, those within ``noise`` compared on all rows."""
    best = max(start.value for start in starts)
    near = [start for start in starts if start.value >= best - noise]

    def value(start: _Start) -> float:
        return float(objective.value_and_gradient(reader.soft_point(start.end)[0])[0])

    return near[0] if len(near) == 1 else max(near, key=value)


def _follow_on_all_rows(
    reader: StreamedSet, objective: Objective, start: _Start, effort: Effort
) -> Path:
    """Continue the path of a sample on all rows, and return its end.

    A pass gives the point, the gradient and the rows near class boundaries. On these rows the path
    is followed to a smaller tau, with the labels of all others fixed. The next pass evaluates the
    result on all rows.
    """
    follower, tol = Follower(objective, reader), effort.tol
    state, best, n_iter, was_right = (
        follower.state(start.scores, start.tau),
        None,
        0,
        True,
    )
    most_rows = settings.HELD_ENTRIES_OF_ALL // start.scores.shape[1]
    for _ in range(settings.PASSES):
        if (
            n_iter >= settings.STEPS_BETWEEN_PASSES * effort.max_iter
            or effort.work.left <= 0
        ):
            break
        path = _follow_near_boundaries(objective, state, effort, was_right=was_right)
        n_iter += path.n_iter
        was_right, state = _step(follower, state, path)
        if not objective.is_bounded(state.point):
            return Path(state, follower.gap(state), n_iter, False, (state,))
        left = _local_gap(objective, state)
        is_small = left <= settings.CERTIFIED_SHARE * tol
        if is_small:
            gap = follower.gap(state)
            if best is None or gap < best.gap:
                best = Path(state, gap, n_iter, True, (state,))
            if gap <= tol:
                return best
        # The gap that is left is due to rows that the pass did not return.
        is_far = is_small or not state.labeling.n_near
        if is_far or not was_right:
            reader.return_more(most_rows)
        if is_far:
            state = follower.state(state.scores, state.tau, state.anchor, near=state)
    return best or Path(state, follower.gap(state), n_iter, True, (state,))


def _follow_near_boundaries(
    objective: Objective, state: State, effort: Effort, *, was_right: bool
) -> Path:
    """Follow the path on the rows that the last pass returned, to a limited fall of tau."""
    labeling, deepest = state.labeling, settings.SETTINGS.deepest
    if labeling.is_thinned:
        # As tau falls fewer rows have soft labels: enough of them must be left for each unknown.
        enough = settings.ROWS_PER_UNKNOWN * state.scores[:-1].size
        deepest = max(deepest, min(0.5, enough / max(1, labeling.n_near)))
        if not was_right:
            deepest = 1.0
    local = Follower(objective, labeling.local_set)
    begin = local.state(state.scores, state.tau, state.anchor, near=state)
    # Beyond this the gap on these rows would say nothing about the gap on all rows.
    tol = max(settings.AIMED_SHARE * effort.tol, settings.AIMED_FALL * local.gap(begin))
    return local.follow(
        begin, replace(effort, tol=tol, aim=tol), least=deepest * state.tau
    )


def _local_gap(objective: Objective, state: State) -> float:
    """Return the gap over the rows that the last pass returned, the labels of all others fixed."""
    return Follower(objective, state.labeling.local_set).gap(state)


def _step(follower: Follower, state: State, path: Path) -> tuple[bool, State]:
    """Evaluate the end of a path on the rows near boundaries on all rows.

    Return whether it was accepted, and the next state. Along a path the value rises and the gap
    falls. If on all rows the value falls, by more than the gap that is left or without a smaller
    gap, the end is rejected: tau stays that of the first level, and the step to that level is
    shortened until the merit rises.
    """
    objective, end, first = follower.objective, path.levels[-1], path.levels[0]
    trial = follower.state(end.scores, end.tau, end.anchor, near=end)
    loss, left = state.value - trial.value, _local_gap(objective, trial)
    if loss <= 0 or loss < left < _local_gap(objective, state):
        return True, trial
    if np.array_equal(first.scores, state.scores):
        return False, state
    for size in settings.SHORTER_STEPS[end is first :]:
        scores = state.scores + size * (first.scores - state.scores)
        trial = follower.state(scores, first.tau, first.anchor, near=trial)
        if trial.merit >= state.merit:
            break
    if (
        trial.merit - state.merit <= settings.SMALL_GAIN * left
    ):  # The level has been reached.
        trial = trial.next_level(trial.tau)
    return False, trial


def _count_maxima(held: HeldSet, paths: list[Path]) -> int:
    """Return the number of ends of paths that differ in the label of at least one row."""
    shares = [held.shares(path.state.scores) for path in paths]
    least = float(held.weights.min(initial=1)) / 2
    n_distinct = 0
    for i, one in enumerate(shares):
        distances = [
            float((np.abs(one - two) * held.weights).sum()) for two in shares[:i]
        ]
        n_distinct += min(distances, default=np.inf) > least
    return n_distinct
