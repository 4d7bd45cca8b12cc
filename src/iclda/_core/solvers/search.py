"""The search for the maximum of an objective over the attainable set: order of events.

    search = Search(problem, objective_of, effort_of)
    search.on_sample(candidates)
    search.on_all_rows()
    solution = search.solution()

1. Hold all unlabeled rows in memory or, if they are too many, a sample (``sample``).
2. On these rows, follow a path from each candidate to a local maximum
   (``continuation``). The method that calls the search chooses the candidates: many for
   the likelihood of the labeled rows (``implicit``), one for a concave objective
   (``pessimistic``). If all rows are held, find the limit of the best path
   (``path_limit``).
3. If not all rows are held, continue the best path on all of them, which are read in
   passes (``passes``).
4. Say where the search ended and why, with the gap as a certificate.

Each module knows little of the others: a set of rows knows the points that their
labelings attain (``attainable``), a path knows the set by that protocol alone, and the
search knows neither the objective nor the kind of rows. See docs/solvers.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from .. import Array
from ..labelsums import LexicographicRule, LinearRule
from ..likelihood import Objective
from ..problem import Problem
from . import Outcome, settings
from .attainable import HeldRows
from .continuation import Effort, Follower, Path, State
from .passes import SamplePath, best_on_all_rows, follow_in_passes, leave_sample
from .path_limit import Limit, find_limit
from .sample import Sample, draw_sample
from .sets import attainable_sets

# Rounding errors of the objective and of the gap at a limit: relative to the size of
# the objective, and to the largest entry of the gradient.
_VALUE_ROUNDING = 1e-12
_GRADIENT_ROUNDING = _VALUE_ROUNDING / 100
# Paths that end equally high are told apart by their points, rounded to this many
# decimals.
_TIE_DECIMALS = 6


@dataclass(frozen=True)
class Candidates:
    """Scores near which paths begin, the best first.

    Attributes
    ----------
    scores : (S, K, 1 + rank) scores of S candidates, each near the maximum of a level
    tau : the tau of that level
    reheating : factor of tau: paths begin at a higher level than that of the candidates
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
    objective : value of the objective there, per unit of ``Objective.weight``
    gap : the first-order gap per unit of ``Objective.weight``
    n_iter : Newton steps to the point
    outcome : how the search ended
    n_passes : passes over all rows, with the one for their moments
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


@dataclass(frozen=True)
class _Reached:
    """What a search has reached by a step.

    Attributes
    ----------
    best : the best path
    n_optima : number of distinct labelings in which paths on held rows ended
    paths : the paths on held rows, as long as these rows are held
    limit : the limit of the best path, if it was found
    n_iter_on_sample : Newton steps on a sample, from which the best path was continued
    n_passes : passes over all rows, with the one for their moments
    """

    best: Path
    n_optima: int
    paths: list[Path] = field(default_factory=list)
    limit: Limit | None = None
    n_iter_on_sample: int = 0
    n_passes: int = 1


class Search:
    """The search of one problem; its methods are called in the order given above.

    The constructor is step 1: it draws the sample.

    Parameters
    ----------
    problem : the problem
    objective_of : returns the objective of a problem, in its whitened coordinates; a
        sample, which has coordinates of its own, needs an objective of its own
    effort_of : returns when paths on a number of rows end
    seed : seed of the sample

    Attributes
    ----------
    sample : the rows that are held, until ``on_all_rows``
    follower : follows paths on these rows, until ``on_all_rows``
    effort_on_sample : when paths on these rows end
    """

    def __init__(
        self,
        problem: Problem,
        objective_of: Callable[[Problem], Objective],
        effort_of: Callable[[int], Effort],
        seed: int = 0,
    ) -> None:
        effort = effort_of(problem.unlabeled.n_rows)
        self._problem = problem
        self._effort = effort
        self.sample = draw_sample(problem, seed)
        self._objective = objective_of(problem)
        # A sample has coordinates, and so an objective, of its own.
        objective_on_sample = self._objective
        self.effort_on_sample = effort
        if not self.sample.is_whole:
            objective_on_sample = objective_of(self.sample.problem)
            # A gap below the sampling error says nothing about all rows.
            sampling_error = settings.GAPS.of_sample * self._objective.weight
            tol = max(effort.tol, sampling_error)
            # It takes as much work as if these were all rows.
            effort_on_sample = effort_of(len(self.sample.rows))
            self.effort_on_sample = replace(effort_on_sample, tol=tol, aim=tol)
        self.follower = Follower(objective_on_sample, self.sample.held)
        self._reached: _Reached

    def on_sample(self, candidates: Candidates) -> None:
        """Follow paths on the held rows, from candidates that may be best: step 2."""
        effort = self.effort_on_sample
        is_whole = self.sample.is_whole
        paths = _follow_candidates(self.follower, candidates, effort, is_whole=is_whole)
        n_optima = _count_maxima(self.sample.held, paths)
        if not is_whole:
            self._reached = _Reached(_highest(paths), n_optima, paths)
            return
        # Each of two paths to one maximum ends below it by no more than the gap that is
        # aimed at. Their ends then differ by no more than twice that gap.
        aimed_gap = settings.GAPS.aimed_of_likelihood * self._objective.weight
        best = _highest_of_ties(paths, 2 * aimed_gap, effort.tol)
        limit = _limit_of(self.sample, self._objective, best, effort)
        self._reached = _Reached(best, n_optima, paths, limit)

    def on_all_rows(self) -> None:
        """Continue the best path on all rows: step 3.

        There is nothing to do if all rows are held, or if the path is unbounded.
        """
        if self.sample.is_whole or not self._reached.best.is_bounded:
            return
        problem = self._problem
        objective = self._objective
        n_optima = self._reached.n_optima
        n_iter_on_sample = self._reached.best.n_iter
        on_sample = self.effort_on_sample
        if on_sample.is_exhausted and self._reached.best.gap > on_sample.tol:
            # Where the work on a sample is not enough, that on all rows is not either.
            self._effort.work.n_numbers = 0
        starts, rows, weights = self._leave_sample()

        # 1. Whiten the sample again, with all rows: it guides the passes.
        sets = attainable_sets(problem)
        sampling_error_of_row = settings.PASSES.sampling_error * objective.weight
        sampling_error = sampling_error_of_row / np.sqrt(len(rows))
        reader = sets.stream(sets.hold(rows, weights))
        del rows, weights

        # 2. Compare paths on all rows if the sample cannot tell which is the best, and
        # continue that one.
        start = best_on_all_rows(reader, objective, starts, sampling_error)
        best = follow_in_passes(reader, objective, start, self._effort)
        self._reached = _Reached(
            best,
            n_optima,
            n_iter_on_sample=n_iter_on_sample,
            n_passes=1 + reader.n_passes,
        )

    def _leave_sample(self) -> tuple[list[SamplePath], Array, Array]:
        """Free the sample; return where paths go on, its rows and their weights.

        The whitened copy of the rows, and all that refers to it, would otherwise stay
        in memory while the next one is made.
        """
        sample = self.sample
        min_tau = settings.PASSES.first_tau * self._objective.weight
        starts = [
            leave_sample(path, min_tau, sample.problem, self._problem)
            for path in self._reached.paths
        ]
        del self.sample, self.follower, self._reached
        return starts, sample.rows, sample.weights

    def solution(self) -> Solution:
        """Return the end of the best path, or its limit, and why it ended: step 4."""
        reached = self._reached
        path = reached.best
        limit = reached.limit
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
            n_iter=reached.n_iter_on_sample + path.n_iter,
            outcome=self._outcome_of(path, gap),
            n_passes=reached.n_passes,
            n_optima=reached.n_optima,
        )

    def _outcome_of(self, path: Path, gap: float) -> Outcome:
        """Return why a path ended with a gap."""
        effort = self._effort
        if not path.is_bounded:
            return Outcome.UNBOUNDED
        if not path.state.labeling.are_filled:
            return Outcome.UNFILLED
        if gap <= effort.tol:
            return Outcome.CONVERGED
        if path.is_given_up:
            return Outcome.NOT_FOUND
        if path.n_iter >= effort.max_iter:
            return Outcome.MAX_ITERATIONS
        if effort.is_exhausted:
            return Outcome.NOT_FOUND
        return Outcome.STALLED


def _follow_candidates(
    follower: Follower, candidates: Candidates, effort: Effort, *, is_whole: bool
) -> list[Path]:
    """Return a path from each candidate, of length zero for those not followed.

    A candidate is followed if it may lead to the highest maximum so far, as long as
    there is work left.
    """
    paths: list[Path] = []
    reheating = candidates.reheating
    for scores in candidates.scores:
        candidate = follower.state(scores, candidates.tau)
        if effort.is_exhausted or not _may_be_best(follower, candidate, paths):
            paths.append(_unfollowed(follower, candidate))
            continue
        start = candidate
        if reheating != 1:
            # Scores are nearly gradient / tau: at a higher tau they are smaller.
            start = follower.state(scores / reheating, reheating * candidates.tau)
        path = follower.follow(start, effort)
        has_lost = path.gap > effort.tol and path.state.value < candidate.value
        if is_whole and path.is_bounded and has_lost:
            # The path ended early, below the candidate: keep the candidate. A path on a
            # sample stays, because its levels are where the path on all rows begins.
            path = replace(_unfollowed(follower, candidate), n_iter=path.n_iter)
        paths.append(path)
    return paths


def _may_be_best(follower: Follower, start: State, paths: list[Path]) -> bool:
    """Return whether a path from a state may end higher than all ``paths``.

    To first order, a path rises by no more than the gap at its start.
    """
    if not paths:
        return True
    highest_value = max(path.state.value for path in paths)
    return start.value + follower.gap(start) >= highest_value


def _unfollowed(follower: Follower, start: State) -> Path:
    """Return the path that ends where it starts."""
    return Path(start, follower.gap(start), n_iter=0, levels=(start,))


def _highest(paths: list[Path]) -> Path:
    """Return the path that ends highest; an unbounded one is highest of all."""
    return max(paths, key=lambda path: (not path.is_bounded, path.state.value))


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


def _limit_of(
    sample: Sample, objective: Objective, path: Path, effort: Effort
) -> Limit | None:
    """Return the limit of a path as tau goes to 0, or None.

    None is returned if the path did not converge, if there are quotas (their shifts
    have no counterpart at a limit) or too many unknowns, and if the limit has a lower
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
    """Return the number of labelings in which paths end.

    Two of them are distinct if they differ by more than half of the smallest weight,
    which means in the label of some row, and not only in how soft the labels are.
    """
    # Shares are compared, not points: different labels may attain the same point.
    labelings = [held.shares(path.state.scores) for path in paths]
    min_distance = float(held.weights.min(initial=1)) / 2
    n_distinct = 0
    for i, labeling in enumerate(labelings):
        distances = []
        for earlier in labelings[:i]:
            changes = np.abs(labeling - earlier)
            distances.append(float((changes * held.weights).sum()))
        if min(distances, default=np.inf) > min_distance:
            n_distinct += 1
    return n_distinct
