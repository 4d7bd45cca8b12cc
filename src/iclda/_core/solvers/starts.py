"""Many starts at once: random labelings by hyperplanes, and a rough ascent from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..likelihood import LabeledLikelihood
from ..problem import Problem
from ..types import AnyArray, Array
from .alternate import start_scores
from .attainable import InMemorySet

_CLIMB_STEPS = (8, 12)
_STOPS = 7  # points on the segment between two points
_HEADS = 8  # points that others are compared with at once
_DIP = 1e-9  # per unit of labeled weight: a dip that counts
_ONE_CLASS = 8.0  # score of an all-one-class start: shares of 3e-4 elsewhere


def starting_scores(problem: Problem, n_starts: int, seed: int, draw: int = 0) -> Array:
    """(S, K, 1 + rank): supervised posterior, equal shares, each class alone, then hyperplanes.

    Later draws consist of hyperplanes only.

    Random directions are drawn in the space of the features, so that the order of rows, weights
    in place of repeated rows, and the signs of eigenvectors change nothing but rounding.
    """
    n_classes, width = problem.labeled_point.shape
    fixed = np.zeros((2 + n_classes, n_classes, width))
    fixed[0] = np.maximum(start_scores(problem), -1e6)
    fixed[2 + np.arange(n_classes), np.arange(n_classes), 0] = _ONE_CLASS
    fixed = fixed if draw == 0 else fixed[:0]
    rng = np.random.default_rng([seed, draw])
    n_random = max(0, n_starts - len(fixed))
    basis = problem.whitening.basis
    directions = rng.standard_normal((n_random, n_classes, len(basis))) @ basis
    offsets = rng.standard_normal((n_random, n_classes, 1))
    sharpness = np.exp(rng.uniform(-1, 3, (n_random, 1, 1)))
    random = sharpness * np.concatenate([offsets, directions], axis=-1)
    return np.concatenate([fixed, random])[:n_starts]


@dataclass(frozen=True)
class Climbers:
    """A stack of labelings: scores, points, likelihoods and gradients."""

    scores: Array  # (S, K, 1 + rank)
    points: Array  # (S, K, 1 + rank)
    values: Array  # (S,)
    gradients: Array  # (S, K, 1 + rank)

    def __getitem__(self, index: AnyArray | list[int]) -> Climbers:
        return Climbers(
            self.scores[index], self.points[index], self.values[index], self.gradients[index]
        )

    def __len__(self) -> int:
        return len(self.values)

    def joined(self, other: Climbers) -> Climbers:
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Climbers(*(np.concatenate(pair) for pair in both))


def climb(likelihood: LabeledLikelihood, held: InMemorySet, scores: Array) -> Climbers:
    """Mirror ascent of a stack of starts; duplicates on one hill are dropped."""
    climbers = evaluate(likelihood, held, scores)
    for n_steps in _CLIMB_STEPS:
        climbers = _ascend(likelihood, held, climbers, n_steps)
        climbers = climbers[separate_hills(likelihood, climbers.points, climbers.values) or [0]]
    return climbers


def evaluate(likelihood: LabeledLikelihood, held: InMemorySet, scores: Array) -> Climbers:
    points = held.soft_points(scores)
    return Climbers(scores, points, *likelihood.value_and_gradient(points))


def _ascend(
    likelihood: LabeledLikelihood, held: InMemorySet, climbers: Climbers, n_steps: int
) -> Climbers:
    sizes = np.full(len(climbers), 4 / likelihood.weight)
    for _ in range(n_steps):
        step = sizes[:, None, None] * climbers.gradients
        trial = evaluate(likelihood, held, climbers.scores + step)
        is_better = trial.values >= climbers.values
        sizes = np.where(is_better, 2 * sizes, sizes / 4)
        climbers = _chosen(is_better, trial, climbers)
    return climbers


def _chosen(is_first: AnyArray, first: Climbers, second: Climbers) -> Climbers:
    if len(first) == 1:
        return first if is_first[0] else second
    stacked = is_first[:, None, None]
    return Climbers(
        np.where(stacked, first.scores, second.scores),
        np.where(stacked, first.points, second.points),
        np.where(is_first, first.values, second.values),
        np.where(stacked, first.gradients, second.gradients),
    )


def separate_hills(likelihood: LabeledLikelihood, points: Array, values: Array) -> list[int]:
    """Indices of points on distinct hills, best first.

    The attainable set is convex, so the segment between two points lies in it: if the likelihood
    along it never falls below its lower end, both are on the same hill.
    """
    waiting = np.array([i for i in np.argsort(-values, kind="stable") if np.isfinite(values[i])])
    tops: list[int] = []
    n_heads = 1
    while len(waiting):
        is_separate = _are_separate(likelihood, points[waiting], values[waiting], n_heads)
        is_left = np.ones(len(waiting), dtype=bool)
        for head, separate in enumerate(is_separate):
            if is_left[head]:
                tops.append(int(waiting[head]))
                is_left &= separate
        left = waiting[n_heads:][is_left[n_heads:]]
        # Where hills are many, several at once: calls cost more than points.
        n_heads = _HEADS if len(left) > (len(waiting) - n_heads) / 2 else 1
        waiting = left
    return tops


def _are_separate(
    likelihood: LabeledLikelihood, points: Array, values: Array, n_heads: int
) -> AnyArray:
    """(heads, points), best first: which points are on another hill than the first ones."""
    heads, others = np.triu_indices(min(n_heads, len(points)), 1, len(points))
    turns, least = points[heads] - points[others], values[others] - _DIP * likelihood.weight
    found = np.zeros(len(heads), dtype=bool)
    if n_heads > 1:  # many hills: for most pairs the midpoint decides
        found = likelihood.value(points[others] + turns / 2) < least
    unsure = np.flatnonzero(~found)
    way = np.linspace(0, 1, _STOPS + 2)[1:-1, None, None, None]
    if len(unsure):
        stops = likelihood.value(points[others[unsure]] + way * turns[unsure])
        found[unsure] = stops.min(axis=0) < least[unsure]
    is_separate = np.ones((min(n_heads, len(points)), len(points)), dtype=bool)
    is_separate[heads, others] = found
    return is_separate
