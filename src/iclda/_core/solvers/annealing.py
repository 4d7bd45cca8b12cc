"""Annealing: many labelings ascend together while tau falls, and merge where they meet.

All starts ascend the merit L + tau x entropy of the labels at one tau. With soft labels
there are no small local maxima, at which hard labels would stop. A step moves the
scores towards the fixed point gradient / tau, where a level ends, with the step length
of Barzilai and Borwein, and is undone if the merit falls.

Two starts continue as one when they have met, or when one is near a better one and the
merit on the straight line between them is nowhere below its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..likelihood import LabeledLikelihood
from . import settings
from .attainable import HeldRows

# Rounding of the merit, relative to its size.
_MERIT_ROUNDING = 1e-12
# Smaller spreads of the gradient, per unit of labeled weight, are raised to this one.
_MIN_SPREAD = 1e-3
# Divisors are raised to this number.
_SMALLEST_DIVISOR = 1e-300


class Population(NamedTuple):
    """A stack of S labelings, with the objective and its gradient at their points.

    Attributes
    ----------
    scores, points, gradients : (S, K, 1 + rank)
    entropies, values : (S,)
    step_sizes : (S,) sizes of the next steps, at most 1
    """

    scores: Array
    points: Array
    gradients: Array
    entropies: Array
    values: Array
    step_sizes: Array

    def take(self, index: AnyArray) -> Population:
        """Return the labelings at some indices."""
        return Population(*(array[index] for array in self))

    def joined(self, other: Population) -> Population:
        """Return these labelings and then those of another stack."""
        pairs = zip(self, other, strict=True)
        return Population(*(np.concatenate(pair) for pair in pairs))

    def replace_where(self, is_replaced: AnyArray, other: Population) -> None:
        """Overwrite some labelings by those of another stack of the same size."""
        for array, other_array in zip(self, other, strict=True):
            array[is_replaced] = other_array[is_replaced]

    def merits(self, tau: float) -> Array:
        """Return the merit of every labeling, (S,)."""
        return np.asarray(self.values + tau * self.entropies)


class Annealing:
    """Ascent of the merit L + tau x entropy on some rows, at falling tau.

    Attributes
    ----------
    spread : spread of the gradient at equal shares, the unit of heights
    last_tau : the tau at which annealing ends
    n_steps : steps taken, of all starts together
    """

    def __init__(
        self,
        likelihood: LabeledLikelihood,
        held: HeldRows,
        cooling: float | None = None,
    ) -> None:
        chosen = settings.STARTS
        self._likelihood = likelihood
        self._held = held
        self._cooling = chosen.cooling if cooling is None else cooling
        # Heights are relative to the spread where nothing is known of the labels yet.
        zero_scores = np.zeros((1, *held.labeled_point.shape))
        equal_shares = self.evaluate(zero_scores)
        spread = held.spread(equal_shares.gradients[0])
        self.spread = max(spread, _MIN_SPREAD * likelihood.weight)
        self.last_tau = chosen.last_height * self.spread
        self.n_steps = 0

    def run(
        self, starts: Array, heights: tuple[float, ...], *, to_the_end: bool = False
    ) -> tuple[Population, float]:
        """Anneal starts, equal parts of which begin at each of the heights of tau.

        Return those that are left, and their tau. That is the smallest one or, unless
        ``to_the_end``, the one at which a single start is left.
        """
        # The starts of each height wait until tau has fallen to it.
        waiting = np.array_split(starts, min(len(starts), len(heights)))
        joining_taus = [height * self.spread for height in heights[: len(waiting)]]
        tau = joining_taus[0]
        population: Population | None = None
        n_steps = 0
        while True:
            # 1. Let the starts of this height join.
            while waiting and tau <= joining_taus[0]:
                new = self.evaluate(waiting.pop(0))
                joining_taus.pop(0)
                population = new if population is None else population.joined(new)
            assert population is not None

            # 2. Move every start by a step.
            population = self.step(population, tau)
            n_steps += 1
            self.n_steps += len(population.values)

            # 3. Merge starts that have met.
            is_end = tau <= self.last_tau
            if is_end or n_steps % settings.STARTS.steps_between_merges == 0:
                population = self.distinct(population, tau)
            # A start that is left alone has nothing to be compared with: unless others
            # wait, a path takes over.
            is_alone = len(population.values) == 1
            if is_end or (is_alone and not waiting and not to_the_end):
                return population, tau

            # 4. Lower tau. It stops at the height of the next starts, and is lowered to
            # it at once if a single start is left.
            tau = max(self._cooling * tau, self.last_tau)
            if joining_taus and (is_alone or tau < joining_taus[0]):
                tau = joining_taus[0]

    def evaluate(self, scores: Array) -> Population:
        """Label the rows by a stack of scores (S, K, 1 + rank)."""
        # Labels do not depend on what all classes share. Without it, scores and
        # gradients are comparable.
        scores = scores - scores[:, -1:]
        points, log_sums = self._held.soft_points(scores)
        values, gradients = self._likelihood.value_and_gradient(points)
        unlabeled_parts = points - self._held.labeled_point
        # Entropy is log-sum-exp less the mean score under the labels.
        mean_scores = np.einsum("skd,skd->s", scores, unlabeled_parts)
        return Population(
            scores=scores,
            points=points,
            gradients=gradients - gradients[:, -1:],
            entropies=log_sums - mean_scores,
            values=values,
            step_sizes=np.full(len(values), settings.STARTS.first_step_size),
        )

    def step(self, population: Population, tau: float) -> Population:
        """Move each start towards the fixed point scores = gradient / tau.

        Starts whose merit would fall are not moved, and get a smaller step.
        """
        # 1. Evaluate the ends of the steps.
        way_to_fixed_point = population.gradients / tau - population.scores
        sizes = population.step_sizes[:, None, None]
        trial = self.evaluate(population.scores + sizes * way_to_fixed_point)
        trial.step_sizes[:] = _next_step_sizes(population, trial, tau)

        # 2. Undo those that lower the merit by more than rounding, or to NaN.
        merits = population.merits(tau)
        lowest_merits = merits - _MERIT_ROUNDING * np.abs(merits)
        is_undone = ~(trial.merits(tau) >= lowest_merits)
        if is_undone.any():
            # The smaller steps are stored first, and taken back with the rest.
            population.step_sizes[is_undone] *= settings.STARTS.refused_step_factor
            trial.replace_where(is_undone, population)
        return trial

    def distinct(self, population: Population, tau: float) -> Population:
        """Sort members by merit, and drop those that have met a better one or will.

        A member will meet a better one near to it if the merit on the straight line
        between them is nowhere below its own. The entropy of a mixture of two labelings
        is at least the mixture of their entropies, which is computed: the merit is not
        overestimated.
        """
        chosen = settings.STARTS
        # 1. Sort by merit. NaN comes last, and is dropped.
        merits = population.merits(tau)
        n_finite = np.count_nonzero(np.isfinite(merits))
        order = np.argsort(-merits, kind="stable")
        order = order[: max(1, n_finite)]
        population = population.take(order)
        merits = merits[order]

        # 2. Find pairs of members that are near each other, the better one first.
        distances = squared_distances(population.points)
        is_pair = np.triu(distances <= chosen.near_distance**2, 1)
        better, worse = np.nonzero(is_pair)

        # 3. Keep the pairs that have met, or will meet.
        if len(better):
            have_met = distances[better, worse] <= chosen.met_distance**2
            lowest_merits = self._lowest_merits(
                population.take(worse), population.take(better), tau
            )
            will_meet = lowest_merits >= merits[worse]
            is_pair[better, worse] = have_met | will_meet
        return population.take(first_of_each(is_pair))

    def _lowest_merits(self, begins: Population, ends: Population, tau: float) -> Array:
        """Return the lowest merits at some points between pairs of members."""
        # Points (F, S, K, 1 + rank) and entropies (F, S), for F fractions of the way.
        fractions = np.array(settings.STARTS.compared_fractions)[:, None]
        way = ends.points - begins.points
        points = begins.points + fractions[..., None, None] * way
        entropy_rises = ends.entropies - begins.entropies
        entropies = begins.entropies + fractions * entropy_rises
        merits = self._likelihood.value(points) + tau * entropies
        return np.asarray(merits.min(axis=0))


def _next_step_sizes(population: Population, trial: Population, tau: float) -> Array:
    """Return the step sizes of Barzilai and Borwein, (S,).

    With the change of the scores s, of the point p and of the residual y, which is
    scores - gradient / tau, the size is s'p / y'p.
    """
    score_changes = trial.scores - population.scores
    point_changes = trial.points - population.points
    gradient_changes = trial.gradients - population.gradients
    residual_changes = score_changes - gradient_changes / tau
    numerators = np.einsum("skd,skd->s", score_changes, point_changes)
    denominators = np.einsum("skd,skd->s", residual_changes, point_changes)
    # Where the objective is not concave the size would be above 1, or negative: it is 1
    # instead. A quotient that overflows to minus infinity becomes the smallest size.
    with np.errstate(over="ignore"):
        quotients = numerators / np.maximum(denominators, _SMALLEST_DIVISOR)
        sizes = np.where(denominators > numerators, quotients, 1.0)
    return np.maximum(sizes, settings.STARTS.min_step_size)


def squared_distances(points: Array) -> Array:
    """Return the squared distances between points, (S, S)."""
    flat = points.reshape(len(points), -1)
    squares = np.einsum("si,si->s", flat, flat)
    return np.asarray(squares + squares[:, None] - 2 * flat @ flat.T)


def first_of_each(is_same: AnyArray) -> AnyArray:
    """Return the indices that are not the same as an earlier one that is kept."""
    n_members = len(is_same)
    is_kept = np.ones(n_members, dtype=bool)
    for i in range(n_members):
        if is_kept[i]:
            is_kept[i + 1 :] &= ~is_same[i, i + 1 :]
    return np.flatnonzero(is_kept)
