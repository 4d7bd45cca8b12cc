"""Maximize the likelihood of the labeled rows over all labelings of the unlabeled ones.

This is the implicitly constrained fit. The likelihood is not concave, and local maxima
are common in small problems. Many starts (``starts``) are annealed together
(``annealing``) to a few candidates; from each of them a path leads to a local maximum
(``search``).

Up to a number of unknowns, a few starts are annealed first. While several are left, all
others begin at several heights of tau, and then variations of the best ones, until
rounds bring no gain. With more unknowns two starts are annealed, on all rows that are
held.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..likelihood import LabeledLikelihood
from ..problem import Problem
from . import Limits, Outcome, settings
from .annealing import Annealing, Population, first_of_each, squared_distances
from .attainable import HeldRows, gap
from .continuation import Effort
from .newton import WorkLeft
from .sample import Sample, moved_scores
from .search import Candidates, Search, Solution
from .sets import attainable_sets
from .starts import StartMaker, supervised_scores
from .streamed import StreamedSet


def maximize_labeled_likelihood(
    problem: Problem, limits: Limits, *, n_starts: int, seed: int
) -> Solution:
    """Return the best of several local maxima, with its first-order certificate.

    ``n_starts`` is the number of random starts in a round, ``seed`` draws them and the
    sample of the rows.
    """
    effort_of = partial(_effort_of, problem, limits)
    search = Search(problem, _likelihood_of, effort_of, seed)
    search.on_sample(_candidates_on(search.sample, n_starts, seed))
    search.on_all_rows()
    solution = search.solution()
    if solution.outcome in (Outcome.CONVERGED, Outcome.UNBOUNDED):
        return solution
    return _or_supervised(problem, solution)


def _likelihood_of(problem: Problem) -> LabeledLikelihood:
    return problem.likelihood


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


def _candidates_on(sample: Sample, n_starts: int, seed: int) -> Candidates:
    """Find candidates for the rows of a sample, and the tau at which their paths begin.

    They are annealed on few of its rows or, with many unknowns, on all rows if these
    are held.
    """
    problem = sample.problem
    few_unknowns = _has_few_unknowns(problem)
    screened = sample
    if few_unknowns or not sample.is_whole:
        screened = sample.thinned(settings.STARTS.screened_rows)
    is_thinned = screened is not sample
    candidates = find_candidates(
        screened.problem, screened.held, n_starts, seed, is_sample=is_thinned
    )
    reheating = settings.STARTS.reheating
    if is_thinned:
        scores = [
            moved_scores(each, screened.problem, problem) for each in candidates.scores
        ]
        # At a higher tau scores, which are nearly gradient / tau, are smaller.
        candidates = Candidates(
            np.array(scores) / reheating, candidates.tau * reheating
        )
    if not sample.is_whole:
        # Soft enough to have a level from which the path can be continued on all rows.
        first_tau = settings.PASSES.first_tau_of_sample * problem.likelihood.weight
        return replace(candidates, reheating=max(1.0, first_tau / candidates.tau))
    if not few_unknowns:
        return replace(candidates, reheating=reheating)
    return candidates


def find_candidates(
    problem: Problem,
    held: HeldRows,
    n_starts: int,
    seed: int,
    *,
    is_sample: bool,
) -> Candidates:
    """Anneal starts on some rows to a few candidates, the best first.

    The best of candidates that a sample of the rows cannot distinguish is kept.
    """
    if not _has_few_unknowns(problem):
        return _anneal_few(problem, held, n_starts, seed)
    population, tau = _anneal_in_rounds(problem, held, n_starts, seed)
    population = population.take(np.argsort(-population.values, kind="stable"))
    if is_sample:
        distances = squared_distances(population.points)
        is_near = distances <= settings.STARTS.near_distance**2
        population = population.take(first_of_each(is_near))
    return Candidates(population.scores[: settings.STARTS.n_followed], tau)


def _anneal_few(
    problem: Problem, held: HeldRows, n_starts: int, seed: int
) -> Candidates:
    """Anneal the supervised posterior and equal shares: with many unknowns."""
    chosen = settings.STARTS
    annealing = Annealing(problem.likelihood, held, chosen.cooling_of_many_unknowns)
    n_first = min(n_starts, chosen.n_starts_of_many_unknowns)
    starts = StartMaker(problem, seed).first(n_first)
    population, tau = annealing.run(starts, chosen.heights[:1], to_the_end=True)
    return Candidates(population.scores, tau)


class _Budget(NamedTuple):
    """How many starts and steps of annealing can be afforded.

    Attributes
    ----------
    max_steps : steps of all starts together
    n_total : starts, of all rounds before there are variations
    n_first : starts of the first round
    n_varied : variations in a round
    """

    max_steps: float
    n_total: int
    n_first: int
    n_varied: int


def _budget_of(problem: Problem, held: HeldRows, n_starts: int) -> _Budget:
    chosen = settings.STARTS
    max_steps = chosen.max_numbers_read / held.n_read_by_labeling
    max_starts = max(chosen.min_starts, int(max_steps / chosen.expected_steps))
    n_base = min(n_starts, max_starts)
    n_total = min(chosen.factor_if_not_agreed * n_starts, max_starts)

    # A step of few rows takes as long with more starts: then there are more of them.
    n_shares = len(held.weights) * problem.n_classes
    n_cheap = max(n_base, chosen.cheap_shares // n_shares)
    n_varied = min(n_cheap, chosen.max_variations_per_start * n_base)
    n_cheap_first = max(n_base, chosen.cheap_shares_of_first_round // n_shares)

    # The first round has half of the starts; a single start is not compared.
    n_first = min(n_cheap_first, n_total) // 2 if n_starts > 1 else 1
    return _Budget(max_steps, n_total, n_first, n_varied)


def _anneal_in_rounds(
    problem: Problem, held: HeldRows, n_starts: int, seed: int
) -> tuple[Population, float]:
    """Anneal few starts; while they disagree all of them, then variations of the best.

    Return the members that are left, and their tau.
    """
    chosen = settings.STARTS
    annealing = Annealing(problem.likelihood, held)
    budget = _budget_of(problem, held, n_starts)
    maker = StartMaker(problem, seed)
    starts = maker.first(budget.n_total)

    # Variations begin at lower heights than the starts that they are made from.
    lower = tuple(chosen.variation_height_factor * each for each in chosen.heights)
    # Scores at the last height, scaled to each of the heights of variations.
    factors = annealing.last_tau / annealing.spread / np.array(lower)

    # 1. Anneal few starts. If they meet, no others are needed.
    population, tau = annealing.run(starts[: budget.n_first], (chosen.first_height,))
    min_gain = chosen.min_gain * problem.likelihood.weight
    n_idle = 0
    turn = 0
    while n_idle < chosen.max_idle_rounds and annealing.n_steps < budget.max_steps:
        if len(population.values) == 1:
            break

        # 2. While they disagree, anneal the others, then variations of the best.
        if turn == 0:
            new_starts = starts[budget.n_first :]
            heights = chosen.heights
        else:
            parents = population.scores[: chosen.n_parents]
            new_starts = maker.varied(parents, factors, budget.n_varied, turn)
            heights = lower
        more, tau = annealing.run(new_starts, heights, to_the_end=True)

        # 3. Keep those that are distinct, and see whether the best one is better.
        best = population.values.max()
        population = annealing.distinct(population.joined(more), tau)
        has_gained = population.values.max() > best + min_gain
        n_idle = 0 if has_gained or turn == 0 else n_idle + 1
        turn += 1
    return population, tau
