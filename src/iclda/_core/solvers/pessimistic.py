"""Minimize a convex function over all labelings of the unlabeled rows: the pessimistic fit.

One path leads to the only minimum of a convex function, and the gap bounds how far any point is
above it. The gain h over the supervised fit is convex (``contrast``); the model at its minimum is
the one whose least gain is largest. Squared losses are convex too (``squared_loss``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..contrast import contrast_with
from ..problem import Problem
from ..types import Array
from . import Limits
from .attainable import HeldSet
from .continuation import Follower, Objective, Path, Work
from .finish import Limit
from .quotas import hold_rows, read_rows
from .search import (
    Solution,
    follow_on_all_rows,
    hold_sample,
    in_coordinates_of,
    limit_of,
    n_held_rows,
    outcome_of,
)
from .supervised import supervised_reference, target_of_labeled

_HELD_GAP = 1e-10  # per row: aimed at where all rows are in memory
_ROUGH = 1e-3  # gap per row to which a sample is followed
_MOST_FINISHED = 256  # unknowns up to which a limit is sought, by dense systems
_FIRST_TAU = 0.3  # over the spread of the gradient at the start


def maximize_worst_gain(
    problem: Problem, limits: Limits, *, start: Array | None = None
) -> Solution:
    """The model of the highest least gain over the supervised one, with its certificate.

    ``objective`` and ``gap`` are per row: no model has a least gain above the objective, and this
    one has the objective less the gap. ``start`` are scores to start from; by default 0.
    """
    reference = supervised_reference(problem)

    def contrast(problem: Problem) -> Objective:
        found = contrast_with(problem, reference)
        return replace(found, constant=found.constant - _gain_left_out(problem))

    return minimize_over_labelings(problem, contrast, limits, start=start)


def _gain_left_out(problem: Problem) -> float:
    """Of directions in which no row varies: the shrinkage alone sets both covariances there."""
    if problem.n_left_out == 0 or problem.ridge is None:
        return 0.0
    n_left_out, keep = problem.n_left_out, 1 - problem.shrinkage
    supervised = target_of_labeled(problem.labeled, problem.frame, n_left_out)
    ratio = keep / problem.shrinkage * problem.ridge[0] * problem.labeled.weight / supervised[0]
    return float(n_left_out * (ratio - 1 - np.log(ratio)) / (2 * keep))


def minimize_over_labelings(
    problem: Problem,
    objective_of: Callable[[Problem], Objective],
    limits: Limits,
    *,
    start: Array | None = None,
) -> Solution:
    """The smallest value of a convex function of the point, with its certificate.

    ``objective_of`` gives minus the function, in coordinates of a problem: a sample of the rows has
    its own.
    """
    n_rows, n_held = problem.unlabeled.n_rows, n_held_rows(problem)
    tol, work = limits.tol, Work()
    max_iter = problem.rounds(limits.max_iter)
    if max_iter < limits.max_iter:  # steps of many classes may each take hundreds of products
        work = Work(max_iter * n_rows * problem.labeled_point.size)
    sample, is_all = hold_sample(problem, *problem.unlabeled.sample(n_held, 0)), n_held == n_rows
    objective = objective_of(sample.problem)
    # A sample is followed no further than its sampling error.
    aims = (tol, min(tol, _HELD_GAP)) if is_all else (max(tol, _ROUGH), max(tol, _ROUGH))
    best = _follow(objective, sample.held, aims, max_iter, start, work)
    n_iter, n_passes, limit = best.n_iter, 1, None  # a pass for the moments
    if not is_all:
        best = in_coordinates_of(problem, best, sample.problem)
        reader = read_rows(problem, hold_rows(problem, sample.rows, sample.weights))
        best = follow_on_all_rows(reader, best, tol, max_iter, objective_of(problem), work)
        n_iter, n_passes = n_iter + best.n_iter, n_passes + reader.n_passes
    elif best.gap <= tol and problem.labeled_point[:-1].size <= _MOST_FINISHED:
        limit = limit_of(sample, best, objective)
    is_exhausted = best.n_iter >= max_iter or work.left <= 0
    return _solution(problem, best, limit, tol, is_exhausted, (n_iter, n_passes))


def _follow(
    objective: Objective,
    held: HeldSet,
    aims: tuple[float, float],
    max_iter: int,
    start: Array | None,
    work: Work,
) -> Path:
    """The path on rows in memory, from soft labels to the minimum."""
    tol, aim = aims
    scores = np.zeros(held.labeled_point.shape) if start is None else start
    follower = Follower(objective, held)
    begin = follower.state(scores, 1.0)
    begin = follower.state(scores, max(_FIRST_TAU * held.spread(begin.gradient), tol))
    return follower.follow(begin, tol=tol, max_iter=max_iter, aim=aim, work=work)


def _solution(
    problem: Problem,
    path: Path,
    limit: Limit | None,
    tol: float,
    is_exhausted: bool,
    counts: tuple[int, int],
) -> Solution:
    end, gap = (path.state, path.gap) if limit is None else (limit, limit.gap)
    rule = problem.rule_of(path.state.label_scores, is_soft=True)
    return Solution(
        point=end.point,
        rule=rule if limit is None else limit.rule(problem),
        objective=-end.value,
        gap=gap,
        n_iter=counts[0],
        n_passes=counts[1],
        n_optima=1,
        outcome=outcome_of(path, gap, tol, is_exhausted),
    )
