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
from ..likelihood import Objective
from ..problem import Problem
from ..types import Array
from . import Limits, settings
from .continuation import Effort, Follower, Path, Work
from .search import HeldSample, Solution, search
from .supervised import supervised_reference, target_of_labeled


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
    """Gain in directions in which no row varies: shrinkage alone sets both covariances there."""
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
    rounds, work = problem.rounds(limits.max_iter), Work()
    if rounds < limits.max_iter:  # steps of many classes may each take hundreds of products
        work = Work(rounds * problem.unlabeled.n_rows * problem.labeled_point.size)

    def follow(sample: HeldSample, effort: Effort) -> list[Path]:
        held = sample.held
        scores = np.zeros(held.labeled_point.shape) if start is None else start
        follower = Follower(objective_of(sample.problem), held)
        spread = held.spread(follower.state(scores, 1.0).gradient)
        begin = follower.state(scores, max(settings.FIRST_TAU * spread, effort.tol))
        return [follower.follow(begin, effort)]

    effort = Effort(tol=limits.tol, aim=settings.CONVEX_GAP, max_iter=rounds, work=work)
    found = search(problem, objective_of, follow, effort)
    return replace(found, objective=-found.objective)
