"""Maximize the labeled likelihood over all labelings of the unlabeled rows.

The likelihood is not concave, and local maxima are common in small problems: many starts ascend
roughly and at once (``starts``), distinct ones are followed to the end (``continuation``). Starts
are compared on a few rows; only the best one is followed on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np

from ..labelsums import LexicographicRule, LinearRule
from ..likelihood import FLOOR, LabeledLikelihood, smallest_eigenvalue
from ..moments import moments_of_block
from ..problem import Problem
from ..types import Array
from . import Outcome
from .attainable import AT_ONCE, ENOUGH, InMemorySet, StreamedSet, hold
from .continuation import Follower, Path, State
from .finish import Limit, finish
from .starts import Climbers, climb, evaluate, separate_hills, starting_scores

_SCREENED_ROWS = 2_000  # on which starts are compared
_HELD_ROWS = 20_000  # in memory
_HELD_ENTRIES = 2_000_000  # numbers of these rows: 16 MB
# With all rows in memory this gap is reached whatever the tolerance: it costs next to nothing.
_HELD_GAP = 1e-9
_MOST_CANDIDATES, _MOST_FINALISTS = 12, 3  # hills followed on few rows, on the rows held
_ROUGH = 1e-3  # gap per unit of labeled weight at which starts are compared
_MOST_DRAWS = 4  # of starts
_RARE_HILLS = 1 / 8  # hills per start below which no more starts are drawn
_FIRST_TAU = (0.01, 0.3)  # shares of the spread of the gradient over rows
_SOFT_TAU = 0.02  # per unit of labeled weight: first tau on all rows
_NOISE = 1e-12  # of the likelihood: rounding between a limit and the path to it
_DEEPEST = 0.03  # smallest factor of tau between two passes
_AIM = 0.3  # share of the tolerance that the rows near boundaries are solved to
_MOST_READS = 20  # steps on all rows
_SIZES = (1.0, 0.3, 0.1, 0.03)  # shares of a step that are tried until the merit rises
_MOST_FINISHED = 512  # unknowns up to which a limit is sought: its systems are dense


@dataclass(frozen=True)
class Solution:
    """The best point found, the rule whose labels attain it, and the certificate."""

    point: Array
    rule: LinearRule | LexicographicRule  # for rows in the frame
    objective: float  # labeled log likelihood per unit of labeled weight
    gap: float  # per unit of labeled weight
    n_iter: int
    n_passes: int
    n_optima: int
    outcome: Outcome


def maximize_labeled_likelihood(
    problem: Problem, *, tol: float, max_iter: int, n_starts: int, seed: int
) -> Solution:
    """Best of several local maxima, with its first-order certificate."""
    weight, n_rows = problem.likelihood.weight, problem.unlabeled.n_rows
    width = 1 + problem.whitening.rank
    n_held = min(_HELD_ROWS, max(_SCREENED_ROWS, _HELD_ENTRIES // width), n_rows)
    sample = _hold(problem, *problem.unlabeled.sample(n_held, seed))
    is_all = n_held == n_rows
    # A sample is followed no further than its sampling error.
    enough = weight * max(tol, 0 if is_all else _ROUGH)
    effort = _Effort(enough, weight * _HELD_GAP if is_all else enough, max_iter)
    paths = _screen(sample, effort, n_starts, seed)
    best = _chosen(paths, 2 * weight * _HELD_GAP, enough) if is_all else _better(paths)
    n_iter, n_optima = best.n_iter, _count_maxima(sample.problem, paths)
    n_passes = 1  # for the moments
    rule: LinearRule | LexicographicRule
    is_certified = best.is_bounded and best.gap <= enough
    is_small = best.state.scores[:-1].size <= _MOST_FINISHED
    limit = _limit(sample, best) if is_all and is_certified and is_small else None
    if not is_all and best.is_bounded:
        moved = _in_coordinates_of(problem, best, sample.problem)
        rows, weights = sample.rows, sample.weights
        del sample  # and its whitened copy
        reader = StreamedSet(problem, hold(problem, rows, weights))
        del rows, weights
        best = _follow_on_all_rows(reader, moved, weight * tol, max_iter)
        n_iter, n_passes = n_iter + best.n_iter, n_passes + reader.n_passes
    if limit is None:
        rule = problem.rule_of(best.state.scores, is_soft=True)
        point, value, gap = best.state.point, best.state.value, best.gap
    else:
        rule = limit.rule(problem)
        point, value, gap = limit.point, limit.value, limit.gap
    return Solution(
        point=point,
        rule=rule,
        objective=value / weight,
        gap=gap / weight,
        n_iter=n_iter,
        n_passes=n_passes,
        n_optima=n_optima,
        outcome=_outcome(best, gap, tol * weight, best.n_iter >= max_iter),
    )


def _limit(sample: _Sample, path: Path) -> Limit | None:
    """The limit of a path on all rows, unless it is worse than where the path ends."""
    likelihood = sample.problem.likelihood
    limit = finish(likelihood, sample.held, path.state)
    noise = _NOISE * (abs(path.state.value) + likelihood.weight)
    noise += _NOISE / 100 * float(np.abs(path.state.gradient).max())
    if limit is None or limit.value < path.state.value - noise or limit.gap > path.gap + noise:
        return None
    return limit


@dataclass(frozen=True)
class _Sample:
    """Rows in memory, and the problem with these as all unlabeled rows.

    Sigma = I - B D^-1 B' supposes that labeled and unlabeled rows together have unit covariance:
    a sample gets a whitening of its own.
    """

    problem: Problem
    rows: Array
    weights: Array

    @cached_property
    def held(self) -> InMemorySet:
        return hold(self.problem, self.rows, self.weights)

    @property
    def follower(self) -> Follower:
        return Follower(self.problem.likelihood, self.held)

    def thinned(self, n: int) -> _Sample:
        """At most n of the rows, with the weight of all."""
        if n >= len(self.rows):
            return self
        cut = np.linspace(0, len(self.rows) - 1, n).astype(int)
        weights = self.weights[cut] * (self.weights.sum() / self.weights[cut].sum())
        return _hold(self.problem, self.rows[cut], weights)


def _hold(problem: Problem, rows: Array, weights: Array) -> _Sample:
    if len(rows) < problem.unlabeled.n_rows:
        parts = [slice(start, start + AT_ONCE) for start in range(0, len(rows), AT_ONCE)]
        moments = (moments_of_block(problem.frame.apply(rows[a]), weights[a]) for a in parts)
        problem = replace(problem, unlabeled_moments=reduce(add, moments))
    return _Sample(problem, rows, weights)


def _moved_scores(scores: Array, source: Problem, target: Problem) -> Array:
    return target.scores_of(source.rule_of(scores, is_soft=True))


def _in_coordinates_of(target: Problem, path: Path, source: Problem) -> Path:
    """A path with its scores in the coordinates of another problem; points are not changed."""

    def moved(state: State) -> State:
        scores, anchor = (_moved_scores(a, source, target) for a in (state.scores, state.anchor))
        return replace(state, scores=scores, anchor=anchor)

    return replace(path, state=moved(path.state), levels=tuple(map(moved, path.levels)))


@dataclass(frozen=True)
class _Effort:
    """When to stop following a path: gap required, gap to aim at, most steps."""

    tol: float
    aim: float
    max_iter: int


def _screen(sample: _Sample, effort: _Effort, n_starts: int, seed: int) -> list[Path]:
    """Local maxima on the rows of a sample, from starts on distinct hills of a smaller one."""
    screened = sample.thinned(_SCREENED_ROWS)
    hills = _find_hills(screened.problem, screened.held, n_starts, seed)
    if screened is sample and len(hills) == 1:
        return [_follow_start(sample, hills, effort)]
    if len(hills) == 1:
        return [_follow_start(sample, _restarted(sample, screened, hills.scores), effort)]
    rough = _ROUGH * sample.problem.likelihood.weight
    easy = replace(effort, tol=max(rough, effort.tol), aim=max(rough, effort.tol))
    found = [_follow_start(screened, hills[[i]], easy) for i in range(len(hills))]
    if screened is sample:
        return _finished(sample.follower, found, effort)
    best = max(path.state.value for path in found)
    noise = 5 * sample.problem.likelihood.weight / np.sqrt(len(screened.rows))
    finalists = [path for path in found if path.state.value >= best - noise][:_MOST_FINALISTS]
    softest = np.array([path.levels[0].scores for path in finalists])
    again = _restarted(sample, screened, softest)
    return [_follow_start(sample, again[[i]], effort) for i in range(len(again))]


def _restarted(sample: _Sample, screened: _Sample, scores: Array) -> Climbers:
    """Climbers of a small sample, evaluated on a larger one."""
    moved = [_moved_scores(a, screened.problem, sample.problem) for a in scores]
    return evaluate(sample.problem.likelihood, sample.held, np.array(moved))


def _find_hills(problem: Problem, held: InMemorySet, n_starts: int, seed: int) -> Climbers:
    """One climbed start on every hill, best first; drawn again while new hills are frequent."""
    likelihood = problem.likelihood
    hills = climb(likelihood, held, starting_scores(problem, n_starts, seed))
    for draw in range(1, _MOST_DRAWS):
        if len(hills) <= max(1, n_starts * draw * _RARE_HILLS):
            break
        more = climb(likelihood, held, starting_scores(problem, n_starts, seed, draw))
        hills = hills.joined(more)
        hills = hills[separate_hills(likelihood, hills.points, hills.values) or [0]]
    return hills[np.arange(min(len(hills), _MOST_CANDIDATES))]


def _follow_start(sample: _Sample, climber: Climbers, effort: _Effort) -> Path:
    follower = sample.follower
    scores = climber.scores[0] - climber.scores[0, -1]
    gradient = climber.gradients[0] - climber.gradients[0, -1]
    spread = max(_spread(sample.held, gradient), 1e-3 * sample.problem.likelihood.weight)
    tau = _first_tau(scores, gradient, spread)
    begins = [follower.state(a, tau) for a in (scores, gradient / tau)]
    return follower.follow(max(begins, key=lambda state: state.merit), **vars(effort))


def _finished(follower: Follower, found: list[Path], effort: _Effort) -> list[Path]:
    """Follow to the end those that may be best: the gap bounds what they can gain."""
    best = max(path.state.value for path in found)
    done = []
    for path in found:
        if path.is_bounded and path.state.value + path.gap >= best:
            end = follower.follow(path.state, **vars(effort))
            path = replace(end, n_iter=path.n_iter + end.n_iter)
        done.append(path)
    return done


def _better(paths: list[Path]) -> Path:
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _chosen(paths: list[Path], tie: float, tol: float) -> Path:
    """The path that ends highest; among ties, which symmetric rows have, independent of rounding.

    None replaces one with a better certificate.
    """
    best = _better(paths)
    if not best.is_bounded:
        return best
    least, most = best.state.value - tie, max(best.gap, tol)
    near = [path for path in paths if path.state.value >= least and path.gap <= most]
    return max(near, key=lambda path: (*path.state.point.round(6).flat, path.state.value))


def _spread(held: InMemorySet, gradient: Array) -> float:
    """Root mean square over rows of the range of the gradient over classes."""
    differences = np.ptp(gradient @ held.z.T, axis=0)
    return float(np.sqrt(held.weights @ differences**2 / held.weights.sum()))


def _first_tau(scores: Array, gradient: Array, spread: float) -> float:
    """The tau at which scores are nearest to gradient / tau, within bounds."""
    norm = float((scores**2).sum())
    nearest = float((scores * gradient).sum()) / norm if norm > 0 else np.inf
    return float(np.clip(nearest, _FIRST_TAU[0] * spread, _FIRST_TAU[1] * spread))


def _follow_on_all_rows(reader: StreamedSet, sampled: Path, tol: float, max_iter: int) -> Path:
    """Continue the path of a sample on all rows.

    A pass gives the point, the gradient and the rows near boundaries. On these the path is followed
    to a smaller tau, with all other rows labeled as they are; the next pass corrects it.
    """
    likelihood = reader.problem.likelihood
    follower = Follower(likelihood, reader)
    scores, tau = _softened(sampled, _SOFT_TAU * likelihood.weight)
    state, best, n_iter = follower.state(scores, tau), None, 0
    most = _HELD_ENTRIES // scores.shape[1]
    for _ in range(_MOST_READS):
        path = _follow_near_boundaries(likelihood, state, _AIM * tol, max_iter)
        n_iter += path.n_iter
        was_right, state = _step(follower, state, path)
        if not smallest_eigenvalue(state.point) > 2 * FLOOR:
            return Path(state, follower.gap(state), n_iter, False, (state,))
        if _local_gap(likelihood, state) <= tol:
            found = follower.gap(state)
            if best is None or found < best.gap:
                best = Path(state, found, n_iter, True, (state,))
            if found <= tol:
                return best
            was_right = False  # rows further away have to change their labels
        if not was_right:
            reader.return_more(most)
            if not len(state.labeling.near[0]):
                state = follower.state(state.scores, state.tau, state.anchor)
    return best or Path(state, follower.gap(state), n_iter, True, (state,))


def _follow_near_boundaries(
    likelihood: LabeledLikelihood, state: State, tol: float, max_iter: int
) -> Path:
    """Follow the path on the rows that the last pass returned."""
    labeling, deepest = state.labeling, _DEEPEST
    if labeling.is_thinned:  # no further than enough rows for each unknown are soft
        enough = ENOUGH * state.scores[:-1].size
        deepest = max(deepest, min(0.5, enough / max(1, len(labeling.near[0]))))
    local, least = Follower(likelihood, labeling.local_set()), deepest * state.tau
    begin = local.state(state.scores, state.tau, state.anchor)
    return local.follow(begin, tol=tol, max_iter=max_iter, least=least)


def _local_gap(likelihood: LabeledLikelihood, state: State) -> float:
    """The gap if no row beyond those that the last pass returned changes its label."""
    return Follower(likelihood, state.labeling.local_set()).gap(state)


def _step(follower: Follower, state: State, path: Path) -> tuple[bool, State]:
    """Where the path on the rows near boundaries leads on all rows, and whether it was right.

    Along a path the likelihood rises and the gap falls. If on all rows the likelihood falls, by
    more than the gap that is left or without a smaller gap, tau is kept, and the step to the first
    level is shortened until the merit rises.
    """
    likelihood, end, first = follower.likelihood, path.levels[-1], path.levels[0]
    trial = follower.state(end.scores, end.tau, end.anchor)
    loss, left = state.value - trial.value, _local_gap(likelihood, trial)
    if loss <= 0 or loss < left < _local_gap(likelihood, state):
        return True, trial
    for size in _SIZES[end is first :]:
        scores = state.scores + size * (first.scores - state.scores)
        trial = follower.state(scores, first.tau, first.anchor)
        if trial.merit >= state.merit:
            break
    return False, trial


def _softened(path: Path, least: float) -> tuple[Array, float]:
    """Scores of the last level of a path at ``least`` or above, and tau for the anchor 0.

    Without an anchor the errors of a sample at earlier levels are forgotten.
    """
    levels = [level for level in path.levels if level.tau >= least] or [path.levels[0]]
    return levels[-1].scores, 1 / sum(1 / level.tau for level in levels)


def _count_maxima(problem: Problem, paths: list[Path]) -> int:
    points = np.array([path.state.point for path in paths])
    values = np.array([path.state.value for path in paths])
    return max(1, len(separate_hills(problem.likelihood, points, values)))


def _outcome(path: Path, gap: float, tol: float, is_exhausted: bool) -> Outcome:
    if not path.is_bounded:
        return Outcome.UNBOUNDED
    if gap <= tol:
        return Outcome.CONVERGED
    return Outcome.MAX_ITERATIONS if is_exhausted else Outcome.STALLED
