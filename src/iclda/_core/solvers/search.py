"""The search for the maximum of an objective over the attainable set.

``search`` reads from top to bottom like the algorithm (docs/solvers.md):

1. Hold all unlabeled rows in memory or, if they are too many, a sample (``sample``).
2. On a part of these rows, follow a path from every start to a local maximum
   (``continuation``), and follow the best ones on.
3. If not all rows are held, continue the best path on all of them, which are read in
   passes (``passes``).
4. Say where the search ended and why, with the gap as a certificate.

A method that calls the search gives it its objective and its starts: several for the
likelihood of the labeled rows (``implicit``), one for a concave objective
(``pessimistic``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import Array
from ..labelsums import LinearRule
from ..likelihood import Objective
from ..problem import Problem
from . import Outcome, settings
from .continuation import Effort, Follower, Path, State
from .passes import SamplePath, best_on_all_rows, follow_in_passes, leave_sample
from .sample import Sample, draw_sample
from .sets import attainable_sets

# Paths that end equally high are told apart by their points, rounded to this many
# decimals.
_TIE_DECIMALS = 6


@dataclass(frozen=True)
class Solution:
    """The best point that was found, the labeling that attains it, and the certificate.

    Attributes
    ----------
    point : (K, 1 + rank) the point
    rule : the labeling, for rows in the frame
    objective : value of the objective there, per unit of ``Objective.weight``
    gap : the first-order gap per unit of ``Objective.weight``
    n_iter : Newton steps to the point
    outcome : how the search ended
    n_passes : passes over all rows, with the one for their moments
    n_optima : number of distinct labelings that paths ended in
    """

    point: Array
    rule: LinearRule
    objective: float
    gap: float
    n_iter: int
    outcome: Outcome
    n_passes: int = 1
    n_optima: int = 1


class Start(NamedTuple):
    """Scores (K, 1 + rank) that a path starts from.

    Its first tau is ``height`` times the spread of the gradient at equal shares.
    """

    scores: Array
    height: float


@dataclass(frozen=True)
class Goal:
    """What the search maximizes, where it starts, and when it stops.

    Attributes
    ----------
    objective_of : returns the objective of a problem, in its whitened coordinates; a
        sample, which has coordinates of its own, needs an objective of its own
    starts_of : returns the starts of paths on a sample
    effort_of : returns when paths on a number of rows end
    """

    objective_of: Callable[[Problem], Objective]
    starts_of: Callable[[Sample], list[Start]]
    effort_of: Callable[[int], Effort]


def search(problem: Problem, goal: Goal, seed: int = 0) -> Solution:
    """Return the best of several local maxima, with its first-order certificate.

    ``seed`` draws the sample of the rows.
    """
    objective = goal.objective_of(problem)

    # 1. Hold all unlabeled rows, or a sample.
    sample = draw_sample(problem, seed)

    # 2. Follow a path from every start on a few of these rows, and the best of them on
    # all rows that are held.
    few = sample.thinned(_n_screened(problem))
    effort = _effort_on(few, goal)
    paths = _follow_starts(few, goal, effort)
    n_iter = 0
    if few is not sample:
        n_iter = _highest(paths).n_iter
        soft_tau = settings.PASSES.first_tau_of_sample * objective.weight
        ends = [
            leave_sample(path, soft_tau, few.problem, sample.problem)
            for path in _distinct_best(paths, objective.weight, len(few.rows))
        ]
        effort = _effort_after(effort, paths, _effort_on(sample, goal))
        paths = _follow_on(sample, goal, ends, effort)
    n_optima = _count_maxima(paths, float(sample.held.weights.min(initial=1)))
    if sample.is_whole:
        # Each of two paths to one maximum ends below it by no more than the gap that is
        # aimed at. Their ends then differ by no more than twice that gap.
        aimed_gap = settings.GAPS.aimed_of_likelihood * objective.weight
        best = _highest_of_ties(paths, 2 * aimed_gap, effort.tol)
        n_passes = 1
    else:
        # 3. Continue the best path on all rows.
        n_iter += _highest(paths).n_iter
        effort = _effort_after(effort, paths, goal.effort_of(problem.unlabeled.n_rows))
        min_tau = settings.PASSES.first_tau * objective.weight
        ends = [leave_sample(path, min_tau, sample.problem, problem) for path in paths]
        rows = sample.rows
        weights = sample.weights
        # The whitened copy of the rows, and all that refers to it, would otherwise stay
        # in memory while the next one, with the moments of all rows, is made.
        del sample, few, paths
        sets = attainable_sets(problem)
        reader = sets.stream(sets.hold(rows, weights))
        sampling_error = _sampling_error(objective.weight, len(rows))
        start = best_on_all_rows(reader, objective, ends, sampling_error)
        best = follow_in_passes(reader, objective, start, effort)
        n_passes = 1 + reader.n_passes

    # 4. Say where it ended, and why.
    return Solution(
        point=best.state.point,
        rule=problem.rule_of(best.state.labeling.scores, is_soft=True),
        objective=best.state.value / objective.weight,
        gap=best.gap / objective.weight,
        n_iter=n_iter + best.n_iter,
        outcome=_outcome_of(best, effort),
        n_passes=n_passes,
        n_optima=n_optima,
    )


def _n_screened(problem: Problem) -> int:
    """Return on how many rows paths are followed from all starts."""
    chosen = settings.STARTS
    by_features = chosen.screened_rows_per_feature * problem.whitening.rank
    return max(chosen.screened_rows, by_features)


def _sampling_error(weight: float, n_rows: int) -> float:
    """Return by how much a value on a sample of the rows may be wrong."""
    return float(settings.PASSES.sampling_error * weight / np.sqrt(n_rows))


def _effort_on(sample: Sample, goal: Goal) -> Effort:
    """Return when paths on the rows of a sample end."""
    effort = goal.effort_of(len(sample.rows))
    if sample.is_whole:
        return effort
    # A gap below the sampling error says nothing about the other rows.
    weight = goal.objective_of(sample.problem).weight
    tol = max(effort.tol, settings.GAPS.of_sample * weight)
    return replace(effort, tol=tol, aim=tol)


def _effort_after(effort: Effort, paths: list[Path], effort_on_more: Effort) -> Effort:
    """Return the effort on more rows: none is left if that on fewer was not enough."""
    if effort.is_exhausted and _highest(paths).gap > effort.tol:
        effort_on_more.work.n_numbers = 0
    return effort_on_more


def _follow_starts(sample: Sample, goal: Goal, effort: Effort) -> list[Path]:
    """Follow a path from every start on the rows of a sample.

    Most starts meet on the first level, and go on as one. The best there go on.
    """
    follower = Follower(goal.objective_of(sample.problem), sample.held)
    equal_shares = np.zeros(sample.problem.labeled_point.shape)
    gradient = follower.state(equal_shares, 1.0).gradient
    spread = sample.held.spread(gradient)
    met: list[State] = []
    n_met_in_a_row = 0
    for start in goal.starts_of(sample):
        tau = max(start.height * spread, effort.tol)
        state = follower.state(start.scores, tau)
        state = follower.follow(state, effort, min_tau=tau).state
        n_met_in_a_row += 1
        if _is_far(state, met, settings.STARTS.met_distance):
            met.append(state)
            n_met_in_a_row = 0
        if n_met_in_a_row == settings.STARTS.max_met_in_a_row:
            # The others would meet them, too.
            break
    met.sort(key=lambda state: state.value, reverse=True)
    paths = []
    for state in met[: settings.STARTS.n_followed]:
        paths.append(follower.follow(state, effort))
        if effort.is_exhausted:
            break
    return paths


def _follow_on(
    sample: Sample, goal: Goal, starts: list[SamplePath], effort: Effort
) -> list[Path]:
    """Continue paths on the rows of a sample, as long as there is work left."""
    follower = Follower(goal.objective_of(sample.problem), sample.held)
    paths = []
    for start in starts:
        state = follower.state(start.scores, start.tau)
        paths.append(follower.follow(state, effort))
        if effort.is_exhausted:
            break
    return paths


def _is_far(state: State, others: list[State], distance: float) -> bool:
    """Return whether a state is further than a distance from all others."""
    differences = [state.point - other.point for other in others]
    return all(np.linalg.norm(each) > distance for each in differences)


def _distinct_best(paths: list[Path], weight: float, n_rows: int) -> list[Path]:
    """Return the paths that may lead highest on all rows, the highest first.

    Those within the sampling error of the highest may, and of those that ended at about
    the same point the highest one is enough.
    """
    ordered = sorted(paths, key=_height, reverse=True)
    min_value = ordered[0].state.value - _sampling_error(weight, n_rows)
    kept: list[Path] = []
    for path in ordered:
        states = [other.state for other in kept]
        is_new = _is_far(path.state, states, settings.STARTS.near_distance)
        if is_new and path.state.value >= min_value:
            kept.append(path)
    return kept[: settings.STARTS.n_followed]


def _outcome_of(path: Path, effort: Effort) -> Outcome:
    """Return why a path ended."""
    if not path.is_bounded:
        return Outcome.UNBOUNDED
    if not path.state.labeling.are_filled:
        return Outcome.UNFILLED
    if path.gap <= effort.tol:
        return Outcome.CONVERGED
    if path.is_given_up:
        return Outcome.NOT_FOUND
    if path.n_iter >= effort.max_iter:
        return Outcome.MAX_ITERATIONS
    if effort.is_exhausted:
        return Outcome.NOT_FOUND
    return Outcome.STALLED


def _height(path: Path) -> tuple[bool, float]:
    """Return by what paths are ordered: an unbounded one is highest of all."""
    return (not path.is_bounded, path.state.value)


def _highest(paths: list[Path]) -> Path:
    """Return the path that ends highest."""
    return max(paths, key=_height)


def _highest_of_ties(paths: list[Path], tie: float, tol: float) -> Path:
    """Return the path that ends highest, with ties decided by the rounded points.

    Rounding errors of the values then do not decide. A path ties with the highest one
    if it ends within ``tie`` of it, and if its gap is no larger than that of the
    highest path, or than ``tol``.
    """
    best = _highest(paths)
    if not best.is_bounded:
        return best
    min_value = best.state.value - tie
    max_gap = max(best.gap, tol)
    tied = [
        path for path in paths if path.state.value >= min_value and path.gap <= max_gap
    ]

    def rounded_point(path: Path) -> tuple[float, ...]:
        point = path.state.point.round(_TIE_DECIMALS)
        return (*point.flat, path.state.value)

    return max(tied, key=rounded_point)


def _count_maxima(paths: list[Path], min_weight: float) -> int:
    """Return the number of distinct points in which paths end.

    Two of them are distinct if the label of some row differs, and not only how soft
    labels are: ``min_weight`` is the smallest weight of a row.
    """
    distinct: list[State] = []
    for path in paths:
        if _is_far(path.state, distinct, min_weight / 2):
            distinct.append(path.state)
    return len(distinct)
