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
from ..moments import moments_of_block
from ..problem import Problem
from ..types import Array
from . import Limits, Outcome
from .attainable import AT_ONCE, ENOUGH, HeldSet, InMemorySet, StreamedSet, hold_in_memory
from .continuation import Follower, Objective, Path, State, Work
from .finish import Limit, finish
from .quotas import hold_rows, read_rows
from .settings import SETTINGS
from .starts import Candidates, find_candidates

_HELD_ROWS = 20_000  # in memory, at most
_MOST_SHARES = 2**25  # of held rows in many classes: 256 MB
# With all rows in memory and few unknowns this gap is reached whatever the tolerance: it costs next
# to nothing.
_HELD_GAP = 1e-9
_FEW, _MOST_FINISHED = 128, 256  # unknowns: few; up to which a limit is sought, by dense systems
_ROUGH = 1e-3  # gap per unit of labeled weight at which candidates are compared
_REHEATED = 10  # factor of tau where candidates of a sample go on on more rows
_SOFT_TAU = 0.02  # per unit of labeled weight: first tau on all rows
_SOFTEST = 10.0  # first tau on a sample of them, over that
_MANY_STEPS = 1_000  # of starts, for the number of rows that work allows
_NOISE = 1e-12  # of the likelihood: rounding between a limit and the path to it
_SAMPLING = 5.0  # per unit of labeled weight, over the root of the number of rows sampled
_AIM = 0.3  # share of the tolerance that the rows near boundaries are solved to
_LEAST_READ = 1.5e7  # numbers that a step may read, at least; in all steps together as many as rows
_MOST_READS = 30  # steps on all rows
_SMALL_GAIN = 1e-2  # of merit in a step, over the gap that is left
_SIZES = (1.0, 0.3, 0.1, 0.03)  # shares of a step that are tried until the merit rises


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
    problem: Problem, limits: Limits, *, n_starts: int, seed: int
) -> Solution:
    """Best of several local maxima, with its first-order certificate."""
    weight, n_rows = problem.likelihood.weight, problem.unlabeled.n_rows
    max_iter, tol = problem.rounds(limits.max_iter), limits.tol
    n_unknowns, n_held = problem.labeled_point[:-1].size, n_held_rows(problem)
    sample = hold_sample(problem, *problem.unlabeled.sample(n_held, seed))
    is_all = n_held == n_rows
    # A sample is followed no further than its sampling error.
    enough = weight * max(tol, 0 if is_all else _ROUGH)
    aim = weight * _HELD_GAP if is_all and n_unknowns <= _FEW else enough
    work = Work(max_iter * max(_LEAST_READ, n_rows * problem.labeled_point.size))
    paths = _follow_candidates(sample, _Effort(enough, aim, max_iter, work), n_starts, seed)
    n_optima, n_passes = _count_maxima(sample.held, paths), 1  # for the moments
    limit = None
    if is_all:
        best = _chosen(paths, 2 * weight * _HELD_GAP, enough)
        if best.is_bounded and best.gap <= enough and n_unknowns <= _MOST_FINISHED:
            limit = limit_of(sample, best)
    else:
        best = _better(paths)
    n_iter = best.n_iter
    if not is_all and best.is_bounded:
        paths = [in_coordinates_of(problem, path, sample.problem) for path in paths]
        rows, weights = sample.rows, sample.weights
        del sample  # and its whitened copy
        reader = read_rows(problem, hold_rows(problem, rows, weights))
        del rows, weights
        best = _best_on_all_rows(reader, paths, _SAMPLING * weight / np.sqrt(n_held))
        best = follow_on_all_rows(reader, best, weight * tol, max_iter, work=work)
        n_iter, n_passes = n_iter + best.n_iter, n_passes + reader.n_passes
    end = best.state if limit is None else limit
    gap = best.gap if limit is None else limit.gap
    return Solution(
        point=end.point,
        rule=problem.rule_of(best.state.label_scores, is_soft=True)
        if limit is None
        else limit.rule(problem),
        objective=end.value / weight,
        gap=gap / weight,
        n_iter=n_iter,
        n_passes=n_passes,
        n_optima=n_optima,
        outcome=outcome_of(best, gap, tol * weight, best.n_iter >= max_iter or work.left <= 0),
    )


def n_held_rows(problem: Problem) -> int:
    """Number of unlabeled rows that are held in memory: all, or a sample."""
    width = 1 + problem.whitening.rank
    least = max(SETTINGS.screened_rows, SETTINGS.held_entries // width)
    most = max(SETTINGS.screened_rows, _MOST_SHARES // problem.n_classes)
    return min(_HELD_ROWS, least, most, problem.unlabeled.n_rows)


def limit_of(sample: HeldSample, path: Path, objective: Objective | None = None) -> Limit | None:
    """The limit of a path on all rows, unless it is worse than where the path ends."""
    if sample.problem.proportions is not None:  # quotas end in hard labels by another rule
        return None
    likelihood = objective or sample.problem.likelihood
    limit = finish(likelihood, sample.in_memory, path.state)
    noise = _NOISE * (abs(path.state.value) + likelihood.weight)
    noise += _NOISE / 100 * float(np.abs(path.state.gradient).max())
    if limit is None or limit.value < path.state.value - noise or limit.gap > path.gap + noise:
        return None
    return limit


@dataclass(frozen=True)
class HeldSample:
    """Rows in memory, and the problem with these as all unlabeled rows.

    Sigma = I - B D^-1 B' supposes that labeled and unlabeled rows together have unit covariance:
    a sample gets a whitening of its own.
    """

    problem: Problem
    rows: Array
    weights: Array

    @cached_property
    def held(self) -> HeldSet:
        return hold_rows(self.problem, self.rows, self.weights)

    @property
    def in_memory(self) -> InMemorySet:
        if isinstance(self.held, InMemorySet):
            return self.held
        return hold_in_memory(self.problem, self.rows, self.weights)

    @property
    def follower(self) -> Follower:
        return Follower(self.problem.likelihood, self.held)

    def thinned(self, n: int) -> HeldSample:
        """At most n of the rows, with the weight of all."""
        if n >= len(self.rows):
            return self
        cut = np.linspace(0, len(self.rows) - 1, n).astype(int)
        weights = self.weights[cut] * (self.weights.sum() / self.weights[cut].sum())
        return hold_sample(self.problem, self.rows[cut], weights)


def hold_sample(problem: Problem, rows: Array, weights: Array) -> HeldSample:
    if len(rows) < problem.unlabeled.n_rows:
        parts = [slice(start, start + AT_ONCE) for start in range(0, len(rows), AT_ONCE)]
        moments = (moments_of_block(problem.frame.apply(rows[a]), weights[a]) for a in parts)
        problem = replace(problem, unlabeled_moments=reduce(add, moments))
    return HeldSample(problem, rows, weights)


def _moved_scores(scores: Array, source: Problem, target: Problem) -> Array:
    return target.scores_of(source.rule_of(scores, is_soft=True))


def in_coordinates_of(target: Problem, path: Path, source: Problem) -> Path:
    """A path with its scores in the coordinates of another problem; points are not changed."""

    def moved(state: State) -> State:
        scores, anchor = (_moved_scores(a, source, target) for a in (state.scores, state.anchor))
        return replace(state, scores=scores, anchor=anchor)

    return replace(path, state=moved(path.state), levels=tuple(map(moved, path.levels)))


@dataclass(frozen=True)
class _Effort:
    """When to stop following a path: gap required, gap to aim at, most steps, work in all."""

    tol: float
    aim: float
    max_iter: int
    work: Work


def _follow_candidates(sample: HeldSample, effort: _Effort, n_starts: int, seed: int) -> list[Path]:
    """Local maxima on the rows of a sample, from candidates found on fewer of its rows."""
    follower, weight = sample.follower, sample.problem.likelihood.weight
    found = _candidates(sample, n_starts, seed)
    if len(sample.rows) < sample.problem.unlabeled.n_rows:  # a level to go on from on all rows
        found = found.reheated(max(1.0, _SOFTEST * _SOFT_TAU * weight / found.tau))
    begins = [follower.state(scores, found.tau) for scores in found.scores]
    if len(begins) == 1:
        return [follower.follow(begins[0], **vars(effort))]
    rough = max(_ROUGH * weight, effort.tol)
    to_rough = replace(effort, tol=rough, aim=rough)
    paths = [follower.follow(begin, **vars(to_rough)) for begin in begins]
    return _finished(follower, paths, effort)


def _candidates(sample: HeldSample, n_starts: int, seed: int) -> Candidates:
    """Where to start on a sample: found on a few of its rows, or on more if these are cheap."""
    size = sample.problem.labeled_point.size
    few = sample.thinned(SETTINGS.screened_rows)
    found = find_candidates(few.problem, few.held, n_starts, seed, is_sample=few is not sample)
    affordable = int(SETTINGS.most_work / (_MANY_STEPS * size))
    if len(found.scores) > 1 and affordable > 2 * len(few.rows) and few is not sample:
        more = sample.thinned(affordable)
        known = _moved(found, few, more).reheated(_REHEATED).scores
        found = find_candidates(
            more.problem, more.held, n_starts, seed, known, is_sample=more is not sample
        )
        few = more
    if few is sample:
        return found
    return _moved(found, few, sample).reheated(_REHEATED)


def _moved(found: Candidates, source: HeldSample, target: HeldSample) -> Candidates:
    """Candidates of one sample in the coordinates of another."""
    scores = [_moved_scores(a, source.problem, target.problem) for a in found.scores]
    return replace(found, scores=np.array(scores))


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


def _best_on_all_rows(reader: StreamedSet, paths: list[Path], noise: float) -> Path:
    """Of paths that end nearly as high on a sample, the one whose labels are best on all rows."""
    best = max(path.state.value for path in paths)
    near = [path for path in paths if path.state.value >= best - noise]
    if len(near) == 1:
        return near[0]
    value = reader.problem.likelihood.value
    return max(near, key=lambda path: float(value(reader.soft_point(path.state.scores)[0])))


def follow_on_all_rows(
    reader: StreamedSet,
    sampled: Path,
    tol: float,
    max_iter: int,
    objective: Objective | None = None,
    work: Work | None = None,
) -> Path:
    """Continue the path of a sample on all rows; the likelihood is followed unless told otherwise.

    A pass gives the point, the gradient and the rows near boundaries. On these the path is followed
    to a smaller tau, with all other rows labeled as they are; the next pass corrects it.
    """
    likelihood, work = objective or reader.problem.likelihood, work or Work()
    follower = Follower(likelihood, reader)
    scores, tau = _softened(sampled, _SOFT_TAU * likelihood.weight)
    state, best, n_iter = follower.state(scores, tau), None, 0
    most, was_right = SETTINGS.held_entries // scores.shape[1], True
    for _ in range(_MOST_READS):
        if n_iter >= 5 * max_iter or work.left <= 0:
            break
        is_rough = state.labeling.is_thinned and not was_right  # then tau is kept
        deepest = 1.0 if is_rough else SETTINGS.deepest
        path = _follow_near_boundaries(likelihood, state, deepest, _AIM * tol, max_iter, work)
        n_iter += path.n_iter
        was_right, state = _step(follower, state, path)
        if not likelihood.is_bounded(state.point):
            return Path(state, follower.gap(state), n_iter, False, (state,))
        left = _local_gap(likelihood, state)
        if left <= tol:
            found = follower.gap(state)
            if best is None or found < best.gap:
                best = Path(state, found, n_iter, True, (state,))
            if found <= tol:
                return best
        is_far = left <= tol or not state.labeling.n_near  # the rows to change their labels
        if is_far or not was_right:
            reader.return_more(most)
        if is_far:
            state = follower.state(state.scores, state.tau, state.anchor)
    return best or Path(state, follower.gap(state), n_iter, True, (state,))


def _follow_near_boundaries(
    likelihood: Objective, state: State, deepest: float, tol: float, max_iter: int, work: Work
) -> Path:
    """Follow the path on the rows that the last pass returned, to no less than deepest x tau."""
    labeling = state.labeling
    if labeling.is_thinned:  # no further than enough rows for each unknown are soft
        enough = ENOUGH * state.scores[:-1].size
        deepest = max(deepest, min(0.5, enough / max(1, labeling.n_near)))
    local, least = Follower(likelihood, labeling.local_set), deepest * state.tau
    begin = local.state(state.scores, state.tau, state.anchor)
    return local.follow(begin, tol=tol, max_iter=max_iter, least=least, work=work)


def _local_gap(likelihood: Objective, state: State) -> float:
    """The gap if no row beyond those that the last pass returned changes its label."""
    return Follower(likelihood, state.labeling.local_set).gap(state)


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
    if np.array_equal(first.scores, state.scores):
        return False, state
    for size in _SIZES[end is first :]:
        scores = state.scores + size * (first.scores - state.scores)
        trial = follower.state(scores, first.tau, first.anchor)
        if trial.merit >= state.merit:
            break
    if trial.merit - state.merit <= _SMALL_GAIN * left:  # the level has been reached
        trial = trial.next_level(trial.tau)
    return False, trial


def _softened(path: Path, least: float) -> tuple[Array, float]:
    """Scores of the last level of a path at ``least`` or above, and tau for the anchor 0.

    Without an anchor the errors of a sample at earlier levels are forgotten.
    """
    levels = [level for level in path.levels if level.tau >= least] or [path.levels[0]]
    return levels[-1].scores, 1 / sum(1 / level.tau for level in levels)


def _count_maxima(held: HeldSet, paths: list[Path]) -> int:
    """Distinct labelings among the ends of paths."""
    shares = [held.shares(path.state.scores) for path in paths]
    n_distinct = 0
    least = float(held.weights.min(initial=1)) / 2
    for i, one in enumerate(shares):
        far = [float((np.abs(one - two) * held.weights).sum()) for two in shares[:i]]
        n_distinct += min(far, default=np.inf) > least
    return n_distinct


def outcome_of(path: Path, gap: float, tol: float, is_exhausted: bool) -> Outcome:
    if not path.is_bounded:
        return Outcome.UNBOUNDED
    if gap <= tol:
        return Outcome.CONVERGED
    return Outcome.MAX_ITERATIONS if is_exhausted else Outcome.STALLED
