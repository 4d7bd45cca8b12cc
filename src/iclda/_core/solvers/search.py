"""The search for the maximum of an objective over the attainable set: order of events.

    search = Search(problem, objective_of, effort)
    search.on_sample(candidates)
    search.on_all_rows()
    solution = search.solution()

1. Hold all unlabeled rows in memory or, if they are too many, a sample (``sample``).
2. On these rows, follow a path from each candidate to a local maximum
   (``continuation``). Candidates are chosen by the method that calls the search: the
   likelihood of the labeled rows has many (``implicit``), a concave objective one
   (``pessimistic``). If these are all rows, find the limit of the best path
   (``path_limit``).
3. If not all rows are held, continue the best path on all of them, which are read in
   passes (``passes``).
4. Say where the search ended and why, with the gap as a certificate.

What the modules promise each other: a set of rows knows the points that their labelings
attain (``attainable``), a path knows the set by that protocol alone, and the search
knows neither the objective nor what kind of rows it has. See docs/solvers.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .. import Array
from ..labelsums import LexicographicRule, LinearRule
from ..likelihood import Objective
from ..problem import Problem
from . import Outcome, settings
from .attainable import HeldRows
from .continuation import Effort, Follower, Path, State
from .passes import best_on_all_rows, follow_in_passes, leave_sample
from .path_limit import Limit, find_limit
from .sample import Sample, draw_sample
from .sets import attainable_sets

# Rounding error of the objective at a limit, relative to the size of the objective.
_VALUE_ROUNDING = 1e-12
# Rounding error of the gap at a limit, relative to the largest entry of the gradient.
_GRADIENT_ROUNDING = _VALUE_ROUNDING / 100
# Of paths that end equally high, one is chosen by its point, rounded to these digits.
_DIGITS_OF_TIES = 6


@dataclass(frozen=True)
class Candidates:
    """Scores at which, or near which, paths begin.

    Attributes
    ----------
    scores : (S, K, 1 + rank) scores near the maximum of a level, the best first
    tau : the tau of that level
    reheating : factor by which the tau of the first level of a path is larger
    """

    scores: Array
    tau: float
    reheating: float = 1.0


@dataclass(frozen=True)
class Solution:
    """The best point that was found, the labeling that attains it, and the certificate.

    Attributes
    ----------
    point : (K, 1 + rank) the point
    rule : the labeling, for rows in the frame
    objective : its value per unit of ``Objective.weight``
    gap : the first-order gap per unit of ``Objective.weight``
    n_iter : Newton steps to the point
    outcome : how the search ended
    n_passes : passes over all rows; one is for the moments
    n_optima : number of distinct labelings that paths ended in
    """

    point: Array
    rule: LinearRule | LexicographicRule
    objective: float
    gap: float
    n_iter: int
    outcome: Outcome
    n_passes: int = 1
    n_optima: int = 1


class Search:
    """The search of one problem; its methods are called in the order given above.

    Making a search is step 1: the sample is drawn.

    Parameters
    ----------
    problem : the problem
    objective_of : returns the objective of a problem. A sample is a problem of its own,
        with its own whitened coordinates
    effort : when paths end
    seed : seed of the sample

    Attributes
    ----------
    sample : the rows that are held, until ``on_all_rows``
    follower : follows paths on these rows, until ``on_all_rows``
    effort_on_sample : when paths on these rows end
    """

    # Results of ``on_sample``: all paths, the best one, the number of distinct ends,
    # and the limit of the best path, if it has one.
    _paths: list[Path]
    _best: Path
    _n_optima: int
    _limit: Limit | None

    def __init__(
        self,
        problem: Problem,
        objective_of: Callable[[Problem], Objective],
        effort: Effort,
        seed: int = 0,
    ) -> None:
        self._problem = problem
        self._objective = objective_of(problem)
        self._effort = effort
        self.sample = draw_sample(problem, seed)
        if self.sample.is_whole:
            objective_on_sample = self._objective
            self.effort_on_sample = effort
        else:
            objective_on_sample = objective_of(self.sample.problem)
            # Beyond its sampling error a path on a sample says nothing about all rows.
            tol = max(effort.tol, settings.GAPS.of_sample * self._objective.weight)
            self.effort_on_sample = replace(effort, tol=tol, aim=tol)
        self.follower = Follower(objective_on_sample, self.sample.held)
        # Newton steps of the path on a sample that is continued on all rows.
        self._n_iter_on_sample = 0
        # One pass was for the moments.
        self._n_passes = 1

    def on_sample(self, candidates: Candidates) -> None:
        """Follow paths from the candidates that may be best, on held rows: step 2."""
        sample = self.sample
        effort = self.effort_on_sample
        self._paths = _follow_candidates(
            self.follower, candidates, effort, is_whole=sample.is_whole
        )
        self._n_optima = _count_maxima(sample.held, self._paths)
        if not sample.is_whole:
            self._best = _highest(self._paths)
            self._limit = None
            return
        tie = 2 * self._objective.weight * settings.GAPS.aimed_of_likelihood
        self._best = _highest_of_ties(self._paths, tie, effort.tol)
        self._limit = _limit_of(sample, self._objective, self._best, effort)

    def on_all_rows(self) -> None:
        """Continue the best path on all rows: step 3.

        Nothing is done if all rows are held, or if the path is unbounded.
        """
        if self.sample.is_whole or not self._best.is_bounded:
            return
        problem = self._problem
        objective = self._objective
        sample = self.sample

        # 1. Express the ends of the paths in the coordinates of all rows.
        min_tau = settings.PASSES.first_tau * objective.weight
        starts = [
            leave_sample(path, min_tau, sample.problem, problem) for path in self._paths
        ]
        self._n_iter_on_sample = self._best.n_iter

        # 2. Whiten the sample in these coordinates, after freeing the copy of it in its
        # own, and all that refers to that.
        rows = sample.rows
        weights = sample.weights
        del sample, self.sample, self.follower, self._paths, self._best
        sets = attainable_sets(problem)
        reader = sets.stream(sets.hold(rows, weights))
        n_sampled = len(rows)
        del rows, weights

        # 3. Choose a path by its value on all rows, and follow it there.
        noise_of_row = settings.PASSES.sampling_error * objective.weight
        noise = noise_of_row / np.sqrt(n_sampled)
        start = best_on_all_rows(reader, objective, starts, noise)
        self._best = follow_in_passes(reader, objective, start, self._effort)
        self._n_passes += reader.n_passes

    def solution(self) -> Solution:
        """Return the end of the best path, or its limit, and why it ended: step 4."""
        path = self._best
        limit = self._limit
        weight = self._objective.weight
        rule: LinearRule | LexicographicRule
        if limit is None:
            point = path.state.point
            value = path.state.value
            gap = path.gap
            rule = self._problem.rule_of(path.state.labeling.scores, is_soft=True)
        else:
            point = limit.point
            value = limit.value
            gap = limit.gap
            rule = limit.rule(self._problem)
        return Solution(
            point=point,
            rule=rule,
            objective=value / weight,
            gap=gap / weight,
            n_iter=self._n_iter_on_sample + path.n_iter,
            outcome=self._outcome_of(path, gap),
            n_passes=self._n_passes,
            n_optima=self._n_optima,
        )

    def _outcome_of(self, path: Path, gap: float) -> Outcome:
        """Return how a path ended, with the gap of its limit if it has one."""
        effort = self._effort
        if not path.is_bounded:
            return Outcome.UNBOUNDED
        if gap <= effort.tol:
            return Outcome.CONVERGED
        if path.n_iter >= effort.max_iter:
            return Outcome.MAX_ITERATIONS
        if effort.is_exhausted:
            return Outcome.NOT_FOUND
        return Outcome.STALLED


def _follow_candidates(
    follower: Follower, candidates: Candidates, effort: Effort, *, is_whole: bool
) -> list[Path]:
    """Return a path from each candidate; only those that may be best are followed."""
    paths: list[Path] = []
    reheating = candidates.reheating
    for scores in candidates.scores:
        start = follower.state(scores, candidates.tau)
        if effort.is_exhausted or not _may_be_best(follower, start, paths):
            paths.append(_unfollowed(follower, start))
            continue
        heated_start = start
        if reheating != 1:
            # Scores are nearly gradient / tau: at a higher tau they are smaller.
            heated_start = follower.state(
                scores / reheating, reheating * candidates.tau
            )
        path = follower.follow(heated_start, effort)

        # A path that did not converge and ended lower than it started is replaced by
        # its start.
        has_lost = path.gap > effort.tol and path.state.value < start.value
        if is_whole and path.is_bounded and has_lost:
            path = replace(_unfollowed(follower, start), n_iter=path.n_iter)
        paths.append(path)
    return paths


def _may_be_best(follower: Follower, start: State, paths: list[Path]) -> bool:
    """Return whether a path from a state may end higher than those before.

    To first order, it gains at most the gap of its start.
    """
    if not paths:
        return True
    highest_value = max(path.state.value for path in paths)
    return start.value + follower.gap(start) >= highest_value


def _unfollowed(follower: Follower, start: State) -> Path:
    """Return a path that ends at its start."""
    return Path(start, follower.gap(start), n_iter=0, levels=(start,))


def _highest(paths: list[Path]) -> Path:
    """Return the path that ends highest; an unbounded one is highest of all."""
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


def _highest_of_ties(paths: list[Path], tie: float, tol: float) -> Path:
    """Return the highest path; the rounded point decides ties.

    Rounding of the value therefore cannot decide which one is returned. Paths within
    ``tie`` of the highest value tie, unless their gap is above that of the highest one
    and above ``tol``.
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
        point = path.state.point.round(_DIGITS_OF_TIES)
        return (*point.flat, path.state.value)

    return max(tied, key=rounded_point)


def _limit_of(
    sample: Sample, objective: Objective, path: Path, effort: Effort
) -> Limit | None:
    """Return the limit of a path for tau to 0, or None if there is none.

    There is none where the path did not converge, with quotas, whose shifts a limit
    does not have, or with too many unknowns, and where the limit would have a lower
    objective or a larger gap than the end of the path.
    """
    problem = sample.problem
    end = path.state
    if not path.is_bounded or path.gap > effort.tol:
        return None
    if not attainable_sets(problem).are_free:
        return None
    if problem.labeled_point[:-1].size > settings.PATH_LIMIT.max_unknowns:
        return None
    limit = find_limit(objective, sample.in_memory(), end)
    if limit is None:
        return None
    rounding = _VALUE_ROUNDING * (abs(end.value) + objective.weight)
    rounding += _GRADIENT_ROUNDING * float(np.abs(end.gradient).max())
    is_lower = limit.value < end.value - rounding
    if is_lower or limit.gap > path.gap + rounding:
        return None
    return limit


def _count_maxima(held: HeldRows, paths: list[Path]) -> int:
    """Return the number of ends of paths that differ in the label of some row."""
    shares = [held.shares(path.state.scores) for path in paths]
    min_distance = float(held.weights.min(initial=1)) / 2
    n_distinct = 0
    for i, one in enumerate(shares):
        distances = [
            float((np.abs(one - other) * held.weights).sum()) for other in shares[:i]
        ]
        n_distinct += min(distances, default=np.inf) > min_distance
    return n_distinct
