"""Maximize a function of the point over all labelings of the unlabeled rows.

The labeled likelihood is not concave, and local maxima are common in small problems: many starts
ascend roughly and at once (``starts``), distinct ones are followed to the end (``continuation``).
Starts are compared on a few rows; only the best one is followed on all rows. Of a concave function
one path is followed (``pessimistic``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from ..labelsums import LexicographicRule, LinearRule
from ..likelihood import Objective
from ..moments import moments_of_block
from ..problem import Problem
from ..types import Array
from . import Limits, Outcome, settings
from .attainable import HeldSet, InMemorySet, StreamedSet, hold_in_memory
from .continuation import Effort, Follower, Limit, Path, State, Work, find_limit
from .quotas import hold_rows, read_rows
from .starts import Candidates, find_candidates


@dataclass(frozen=True)
class Solution:
    """The best point, the rule whose labels attain it, and the certificate."""

    point: Array
    rule: LinearRule | LexicographicRule  # for rows in the frame
    objective: float  # per unit of weight of the objective
    gap: float  # per unit of weight of the objective
    n_iter: int
    outcome: Outcome
    n_passes: int = 1  # over all rows; one is for the moments
    n_optima: int = 1


def maximize_labeled_likelihood(
    problem: Problem, limits: Limits, *, n_starts: int, seed: int
) -> Solution:
    """Best of several local maxima, with its first-order certificate."""
    weight, max_iter = problem.likelihood.weight, problem.rounds(limits.max_iter)
    is_small = problem.labeled_point[:-1].size <= settings.DENSE_UNKNOWNS
    n_numbers = problem.unlabeled.n_rows * problem.labeled_point.size
    effort = Effort(
        tol=weight * limits.tol,
        aim=weight * (settings.LIKELIHOOD_GAP if is_small else limits.tol),
        max_iter=max_iter,
        work=Work(max_iter * max(settings.LEAST_READ, n_numbers)),
    )

    def follow(sample: HeldSample, effort: Effort) -> list[Path]:
        return _follow_candidates(sample, effort, n_starts, seed)

    return search(problem, lambda problem: problem.likelihood, follow, effort, seed)


def search(
    problem: Problem,
    objective_of: Callable[[Problem], Objective],
    follow: Callable[[HeldSample, Effort], list[Path]],
    effort: Effort,
    seed: int = 0,
) -> Solution:
    """Follow paths on rows in memory, and the best one on all rows if these are more.

    ``objective_of`` gives the objective in the coordinates of a problem: a sample has its own.
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
    # A sample is followed no further than its sampling error.
    rough = max(effort.tol, settings.ROUGH_GAP * weight)
    paths = follow(sample, replace(effort, tol=rough, aim=rough))
    best, n_optima = _highest(paths), _count_maxima(sample.held, paths)
    n_iter, n_passes = 0, 1  # before the last path; one pass was for the moments
    if best.is_bounded:
        n_iter = best.n_iter
        paths = [_in_coordinates_of(problem, path, sample.problem) for path in paths]
        rows, weights = sample.rows, sample.weights
        del sample  # and its whitened copy of the rows
        reader = read_rows(problem, hold_rows(problem, rows, weights))
        del rows, weights
        best = _best_on_all_rows(
            reader, objective, paths, settings.SAMPLING_ERROR * weight / np.sqrt(n_held)
        )
        best = _follow_on_all_rows(reader, objective, best, effort)
        n_passes += reader.n_passes
    found = _solution(problem, objective, best, effort)
    return replace(found, n_iter=n_iter + found.n_iter, n_passes=n_passes, n_optima=n_optima)


def _solution(
    problem: Problem,
    objective: Objective,
    path: Path,
    effort: Effort,
    limit: Limit | None = None,
) -> Solution:
    end, gap = (path.state, path.gap) if limit is None else (limit, limit.gap)
    if not path.is_bounded:
        outcome = Outcome.UNBOUNDED
    elif gap <= effort.tol:
        outcome = Outcome.CONVERGED
    elif path.n_iter >= effort.max_iter or effort.work.left <= 0:
        outcome = Outcome.MAX_ITERATIONS
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
    """Number of unlabeled rows that are held in memory: all, or a sample."""
    width = 1 + problem.whitening.rank
    by_entries = max(settings.SETTINGS.screened_rows, settings.SETTINGS.held_entries // width)
    by_shares = max(settings.SETTINGS.screened_rows, settings.HELD_SHARES // problem.n_classes)
    return min(settings.HELD_ROWS, by_entries, by_shares, problem.unlabeled.n_rows)


@dataclass(frozen=True)
class HeldSample:
    """Rows in memory, and the problem with these as all unlabeled rows.

    Sigma = I - B D^-1 B' supposes that labeled and unlabeled rows together have unit covariance:
    a sample gets a whitening of its own.
    """

    problem: Problem
    rows: Array
    weights: Array
    held: HeldSet

    def thinned(self, n: int) -> HeldSample:
        """At most n of the rows, with the weight of all."""
        if n >= len(self.rows):
            return self
        cut = np.linspace(0, len(self.rows) - 1, n).astype(int)
        weights = self.weights[cut] * (self.weights.sum() / self.weights[cut].sum())
        return hold_sample(self.problem, self.rows[cut], weights)


def hold_sample(problem: Problem, rows: Array, weights: Array) -> HeldSample:
    if len(rows) < problem.unlabeled.n_rows:
        step = settings.ROWS_WHITENED_AT_ONCE
        parts = [slice(start, start + step) for start in range(0, len(rows), step)]
        moments = (moments_of_block(problem.frame.apply(rows[a]), weights[a]) for a in parts)
        problem = replace(problem, unlabeled_moments=reduce(add, moments))
    return HeldSample(problem, rows, weights, hold_rows(problem, rows, weights))


def _limit(sample: HeldSample, objective: Objective, path: Path, tol: float) -> Limit | None:
    """The limit of a path on all rows, unless it is worse than where the path ends."""
    problem, held, end = sample.problem, sample.held, path.state
    if not path.is_bounded or path.gap > tol or problem.proportions is not None:
        return None  # quotas end in hard labels by another rule
    if problem.labeled_point[:-1].size > settings.FINISHED_UNKNOWNS:
        return None
    if not isinstance(held, InMemorySet):
        held = hold_in_memory(problem, sample.rows, sample.weights)
    limit = find_limit(objective, held, end)
    noise = settings.ROUNDING_OF_LIMIT * (abs(end.value) + objective.weight)
    noise += settings.ROUNDING_OF_LIMIT / 100 * float(np.abs(end.gradient).max())
    if limit is None or limit.value < end.value - noise or limit.gap > path.gap + noise:
        return None
    return limit


def _in_coordinates_of(target: Problem, path: Path, source: Problem) -> Path:
    """A path with its scores in the coordinates of another problem; points are not changed."""

    def moved(state: State) -> State:
        scores = _moved_scores(state.scores, source, target)
        return replace(state, scores=scores, anchor=_moved_scores(state.anchor, source, target))

    return replace(path, state=moved(path.state), levels=tuple(map(moved, path.levels)))


def _moved_scores(scores: Array, source: Problem, target: Problem) -> Array:
    return target.scores_of(source.rule_of(scores, is_soft=True))


def _follow_candidates(sample: HeldSample, effort: Effort, n_starts: int, seed: int) -> list[Path]:
    """Local maxima on the rows of a sample, from candidates found on fewer of its rows."""
    likelihood = sample.problem.likelihood
    follower, found = Follower(likelihood, sample.held), _candidates(sample, n_starts, seed)
    if len(sample.rows) < sample.problem.unlabeled.n_rows:  # a level to go on from on all rows
        found = found.reheated(max(1.0, settings.SOFTEST_TAU * likelihood.weight / found.tau))
    begins = [follower.state(scores, found.tau) for scores in found.scores]
    if len(begins) == 1:
        return [follower.follow(begins[0], effort)]
    rough = max(settings.ROUGH_GAP * likelihood.weight, effort.tol)
    paths = [follower.follow(begin, replace(effort, tol=rough, aim=rough)) for begin in begins]
    # Those that may be best are followed to the end: the gap bounds what they can gain.
    best = max(path.state.value for path in paths)
    for i, path in enumerate(paths):
        if path.is_bounded and path.state.value + path.gap >= best:
            end = follower.follow(path.state, effort)
            paths[i] = replace(end, n_iter=path.n_iter + end.n_iter)
    return paths


def _candidates(sample: HeldSample, n_starts: int, seed: int) -> Candidates:
    """Candidates for a sample, found on a few of its rows, or on more if these are cheap."""
    few = sample.thinned(settings.SETTINGS.screened_rows)
    found = find_candidates(few.problem, few.held, n_starts, seed, is_sample=few is not sample)
    affordable = int(
        settings.SETTINGS.most_work / (settings.STEPS_OF_STARTS * sample.problem.labeled_point.size)
    )
    if len(found.scores) > 1 and affordable > 2 * len(few.rows) and few is not sample:
        more = sample.thinned(affordable)
        known = _reheated_in(more, found, few).scores
        found = find_candidates(
            more.problem, more.held, n_starts, seed, known, is_sample=more is not sample
        )
        few = more
    return found if few is sample else _reheated_in(sample, found, few)


def _reheated_in(target: HeldSample, found: Candidates, source: HeldSample) -> Candidates:
    """Candidates of one sample in the coordinates of another, at a higher tau."""
    scores = [_moved_scores(each, source.problem, target.problem) for each in found.scores]
    return Candidates(np.array(scores), found.tau).reheated(settings.REHEATING)


def _highest(paths: list[Path]) -> Path:
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _highest_of_ties(paths: list[Path], tie: float, tol: float) -> Path:
    """The highest path; ties are broken by the rounded point, so that rounding cannot change it.

    None replaces one with a better certificate.
    """
    best = _highest(paths)
    if not best.is_bounded:
        return best
    lowest, largest_gap = best.state.value - tie, max(best.gap, tol)
    near = [path for path in paths if path.state.value >= lowest and path.gap <= largest_gap]
    return max(near, key=lambda path: (*path.state.point.round(6).flat, path.state.value))


def _best_on_all_rows(
    reader: StreamedSet, objective: Objective, paths: list[Path], noise: float
) -> Path:
    """Compare the labels of paths that end nearly as high on a sample on all rows."""
    best = max(path.state.value for path in paths)
    near = [path for path in paths if path.state.value >= best - noise]
    if len(near) == 1:
        return near[0]

    def value(path: Path) -> float:
        return float(objective.value_and_gradient(reader.soft_point(path.state.scores)[0])[0])

    return max(near, key=value)


def _follow_on_all_rows(
    reader: StreamedSet, objective: Objective, sampled: Path, effort: Effort
) -> Path:
    """Continue the path of a sample on all rows.

    A pass gives the point, the gradient and the rows near boundaries. On these the path is followed
    to a smaller tau, with all other rows labeled as they are; the next pass corrects it.
    """
    follower, tol = Follower(objective, reader), effort.tol
    scores, tau = _softened(sampled, settings.SOFT_TAU * objective.weight)
    state, best, n_iter, was_right = follower.state(scores, tau), None, 0, True
    most_rows = settings.SETTINGS.held_entries // scores.shape[1]
    for _ in range(settings.PASSES):
        if n_iter >= settings.STEPS_BETWEEN_PASSES * effort.max_iter or effort.work.left <= 0:
            break
        path = _follow_near_boundaries(objective, state, effort, was_right=was_right)
        n_iter += path.n_iter
        was_right, state = _step(follower, state, path)
        if not objective.is_bounded(state.point):
            return Path(state, follower.gap(state), n_iter, False, (state,))
        left = _local_gap(objective, state)
        if left <= tol:
            gap = follower.gap(state)
            if best is None or gap < best.gap:
                best = Path(state, gap, n_iter, True, (state,))
            if gap <= tol:
                return best
        is_far = left <= tol or not state.labeling.n_near  # the rows to change their labels
        if is_far or not was_right:
            reader.return_more(most_rows)
        if is_far:
            state = follower.state(state.scores, state.tau, state.anchor, near=state)
    return best or Path(state, follower.gap(state), n_iter, True, (state,))


def _follow_near_boundaries(
    objective: Objective, state: State, effort: Effort, *, was_right: bool
) -> Path:
    """Follow the path on the rows that the last pass returned, not too far below its tau."""
    labeling, deepest = state.labeling, settings.SETTINGS.deepest
    if labeling.is_thinned:  # no further than enough rows for each unknown are soft
        enough = settings.ROWS_PER_UNKNOWN * state.scores[:-1].size
        deepest = max(deepest, min(0.5, enough / max(1, labeling.n_near)))
        if not was_right:
            deepest = 1.0
    local, tol = Follower(objective, labeling.local_set), settings.AIMED_SHARE * effort.tol
    begin = local.state(state.scores, state.tau, state.anchor, near=state)
    return local.follow(begin, replace(effort, tol=tol, aim=tol), least=deepest * state.tau)


def _local_gap(objective: Objective, state: State) -> float:
    """The gap if no row beyond those that the last pass returned changes its label."""
    return Follower(objective, state.labeling.local_set).gap(state)


def _step(follower: Follower, state: State, path: Path) -> tuple[bool, State]:
    """Apply the end of the path on the rows near boundaries to all rows; say whether it was right.

    Along a path the value rises and the gap falls. If on all rows the value falls, by more than
    the gap that is left or without a smaller gap, tau is kept, and the step to the first level is
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
    if trial.merit - state.merit <= settings.SMALL_GAIN * left:  # the level has been reached
        trial = trial.next_level(trial.tau)
    return False, trial


def _softened(path: Path, least: float) -> tuple[Array, float]:
    """Scores of the last level of a path at ``least`` or above, and tau for the anchor 0.

    Without an anchor the errors of a sample at earlier levels are forgotten.
    """
    levels = [level for level in path.levels if level.tau >= least] or [path.levels[0]]
    return levels[-1].scores, 1 / sum(1 / level.tau for level in levels)


def _count_maxima(held: HeldSet, paths: list[Path]) -> int:
    """Number of distinct labelings among the ends of paths."""
    shares = [held.shares(path.state.scores) for path in paths]
    least = float(held.weights.min(initial=1)) / 2
    n_distinct = 0
    for i, one in enumerate(shares):
        distances = [float((np.abs(one - two) * held.weights).sum()) for two in shares[:i]]
        n_distinct += min(distances, default=np.inf) > least
    return n_distinct
