"""Maximize the likelihood of the labeled rows over all labelings of the unlabeled ones.

This is the implicitly constrained fit. The likelihood is not concave, and local maxima
are common in small problems: paths (``search``) start from equal shares, from the
supervised posterior and, where a path is cheap, from random labelings.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from .. import Array
from ..likelihood import LabeledLikelihood
from ..problem import Problem
from . import Limits, Outcome, settings
from .alternate import start_scores
from .attainable import gap
from .continuation import Effort
from .newton import WorkLeft
from .sample import Sample
from .search import Goal, Solution, Start, search
from .sets import attainable_sets
from .streamed import StreamedSet

# A class with a prior of 0 has this score instead of minus infinity.
_LOWEST_SCORE = -1e6
# Logarithms of the smallest and of the largest sharpness of random labelings.
_LOG_SHARPNESS_RANGE = (-1, 3)


def maximize_labeled_likelihood(
    problem: Problem, limits: Limits, *, n_starts: int, seed: int
) -> Solution:
    """Return the best of several local maxima, with its first-order certificate.

    ``n_starts`` is the number of random labelings, which ``seed`` draws, as well as the
    sample of the rows.
    """
    goal = Goal(
        objective_of=_likelihood_of,
        starts_of=partial(starts_of, n_random=n_starts, seed=seed),
        effort_of=partial(_effort_of, problem, limits),
    )
    solution = search(problem, goal, seed)
    if solution.outcome in (Outcome.CONVERGED, Outcome.UNBOUNDED):
        return solution
    return _or_supervised(problem, solution)


def _likelihood_of(problem: Problem) -> LabeledLikelihood:
    return problem.likelihood


def starts_of(sample: Sample, n_random: int, seed: int) -> list[Start]:
    """Return equal shares and the supervised posterior, and then random labelings.

    These are the likeliest of many. With many unknowns, where a path takes as long as
    EM, there are none.
    """
    problem = sample.problem
    high, low = settings.STARTS.heights
    equal_shares = np.zeros(problem.labeled_point.shape)
    supervised = supervised_scores(problem)
    if not _has_few_unknowns(problem):
        return [Start(equal_shares, high), Start(supervised, low)]
    # A labeling has shares of all rows, and is drawn in the space of all features.
    n_numbers = problem.n_classes * max(len(sample.rows), len(problem.whitening.basis))
    n_drawn = n_random * settings.STARTS.drawn_for_each_start
    n_drawn = max(n_random, min(n_drawn, settings.STARTS.max_numbers // n_numbers))
    if problem.proportions is not None:
        # To fill the quotas of a labeling takes as long as a step of a path.
        n_drawn = n_random
    drawn = _random_scores(problem, n_drawn, np.random.default_rng(seed))
    points, _ = sample.held.soft_points(drawn)
    order = np.argsort(-problem.likelihood.value(points), kind="stable")
    return [
        Start(equal_shares, high),
        Start(supervised, low),
        Start(equal_shares, low),
        *(Start(drawn[i], low) for i in order[:n_random]),
    ]


def supervised_scores(problem: Problem) -> Array:
    """Return finite scores (K, 1 + rank) of the supervised posterior."""
    return np.maximum(start_scores(problem), _LOWEST_SCORE)


def _random_scores(problem: Problem, n: int, rng: np.random.Generator) -> Array:
    """Return n random scores (n, K, 1 + rank).

    Every class has a direction and an offset, and all classes share a sharpness.
    Directions are drawn in the space of the features, not in whitened coordinates, so
    that the order of rows, weights in place of repeated rows and the signs of
    eigenvectors change them by rounding only.
    """
    basis = problem.whitening.basis
    directions = rng.standard_normal((n, problem.n_classes, len(basis))) @ basis
    offsets = rng.standard_normal((n, problem.n_classes, 1))
    sharpness = np.exp(rng.uniform(*_LOG_SHARPNESS_RANGE, size=(n, 1, 1)))
    return np.asarray(sharpness * np.concatenate([offsets, directions], axis=-1))


def _effort_of(problem: Problem, limits: Limits, n_rows: int) -> Effort:
    """Return when paths on a number of rows end.

    They do at a gap, after steps, or when the work is used up.
    """
    weight = problem.likelihood.weight
    max_iter = problem.rounds(limits.max_iter)
    aim = limits.tol
    if _has_few_unknowns(problem):
        # With dense systems, a smaller gap is reached at hardly any cost.
        aim = settings.GAPS.aimed_of_likelihood
    n_numbers = n_rows * problem.labeled_point.size
    numbers_per_iteration = max(
        settings.WORK.min_numbers_per_iteration,
        settings.WORK.share_of_numbers_per_iteration * n_numbers,
    )
    return Effort(
        tol=weight * limits.tol,
        aim=weight * aim,
        max_iter=max_iter,
        work=WorkLeft(max_iter * numbers_per_iteration),
    )


def _has_few_unknowns(problem: Problem) -> bool:
    """Return whether Newton systems are factored: then many starts are cheap."""
    n_unknowns = problem.labeled_point[:-1].size
    return n_unknowns <= settings.NEWTON.max_factored_unknowns


def _or_supervised(problem: Problem, solution: Solution) -> Solution:
    """Return the labeling by the supervised fit if that has a higher likelihood."""
    if not attainable_sets(problem).are_free:
        # The labels of the supervised fit do not have the proportions.
        return solution
    rows = StreamedSet(problem)
    likelihood = problem.likelihood
    labels = rows.soft_labels(supervised_scores(problem))
    value, gradient = likelihood.value_and_gradient(labels.point)
    objective = float(value) / likelihood.weight
    if not objective > solution.objective:
        return replace(solution, n_passes=solution.n_passes + rows.n_passes)
    gap_left = gap(rows, labels.point, gradient)
    return replace(
        solution,
        point=labels.point,
        rule=problem.rule_of(labels.scores, is_soft=True),
        objective=objective,
        gap=gap_left / likelihood.weight,
        n_passes=solution.n_passes + rows.n_passes,
    )
