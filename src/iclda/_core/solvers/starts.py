"""Scores to start from, (S, K, 1 + rank), and variations of good ones.

Random directions are drawn in the space of the features, not in whitened coordinates,
so that the order of rows, weights in place of repeated rows and the signs of
eigenvectors change them by rounding only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import AnyArray, Array
from ..problem import Problem
from .alternate import start_scores

# A class with a prior of 0 has this score instead of minus infinity.
_LOWEST_SCORE = -1e6
# Score of the class that gets all rows. The others get shares of 3e-4, exp(-8).
_ONE_CLASS_SCORE = 8.0
# Reduction of the score of a class that a variation drops.
_SCORE_REDUCTION_OF_DROPPED = 3
# Logarithms of the smallest and of the largest sharpness of random hyperplanes.
_LOG_SHARPNESS_RANGE = (-1, 3)
# Smallest and largest length of the noise in a variation, relative to its parent.
_NOISE_LENGTH_RANGE = (0.2, 1)
# Kinds of variations: one in five adds noise, one swaps two classes and one drops a
# class. The other two take each class from one of two parents.
_ADD_NOISE = 0
_SWAP_CLASSES = 1
_DROP_CLASS = 2
_N_KINDS = 5


@dataclass(frozen=True)
class StartMaker:
    """Makes starts for the search of a problem."""

    problem: Problem
    seed: int

    def first(self, n: int) -> Array:
        """Return n starts.

        They are, in this order, the supervised posterior, equal shares, each class
        alone, and random hyperplanes.
        """
        n_classes, width = self.problem.labeled_point.shape
        # Starts of many classes are large: make no more than are asked for.
        n_alone = max(0, min(n_classes, n - 2))
        n_fixed = 2 + n_alone
        n_random = max(0, n - n_fixed)

        fixed = np.zeros((n_fixed, n_classes, width))
        fixed[0] = supervised_scores(self.problem)

        # Scores of 0, in fixed[1], give all classes equal shares.
        # The starts after it give all rows to one class each.
        alone = fixed[2:]
        classes = np.arange(n_alone)
        alone[classes, classes, 0] = _ONE_CLASS_SCORE

        rng = np.random.default_rng([self.seed, 0])
        random = self._hyperplanes(rng, n_random)

        # The two fixed starts are made even if n is 1.
        starts = np.concatenate([fixed, random])
        return starts[:n]

    def _hyperplanes(self, rng: np.random.Generator, n: int) -> Array:
        """Return n random scores.

        Every class has a direction and an offset, and all classes share a sharpness.
        """
        n_classes = self.problem.n_classes
        basis = self.problem.whitening.basis
        n_features = len(basis)

        # Drawn in the space of the features, whitened to (n, K, rank) at once: the
        # features can be many more than the rank.
        shape = (n, n_classes, n_features)
        directions = rng.standard_normal(shape) @ basis
        offsets = rng.standard_normal((n, n_classes, 1))
        hyperplanes = np.concatenate([offsets, directions], axis=-1)

        lowest, highest = _LOG_SHARPNESS_RANGE
        log_sharpness = rng.uniform(lowest, highest, size=(n, 1, 1))
        sharpness = np.exp(log_sharpness)
        return np.asarray(sharpness * hyperplanes)

    def varied(self, parents: Array, factors: Array, n: int, turn: int) -> Array:
        """Return n variations of the scores of parents.

        A variation adds noise, swaps two classes, drops a class or, in two of five
        cases, takes each class from one of two parents, which finds most new maxima.

        Parameters
        ----------
        parents : (S, K, 1 + rank) scores
        factors : factors of the scores, each for an equal part of the variations
        n : number of variations
        turn : seed of what is random, together with that of the starts
        """
        rng = np.random.default_rng([self.seed, turn])
        n_parents = len(parents)

        # Every variation has two parents, (n, K, 1 + rank), at its own scale.
        factor_of_variation = _repeated(factors, n)[:, None, None]
        first_indices = rng.integers(n_parents, size=n)
        first_parents = parents[first_indices] * factor_of_variation
        second_indices = rng.integers(n_parents, size=n)
        second_parents = parents[second_indices] * factor_of_variation

        noise = self._noise_for(first_parents, rng)
        # Kinds are equally frequent. Their order is random, because that of the scales
        # is not.
        kinds: AnyArray = rng.permutation(n) % _N_KINDS

        variations = np.empty(first_parents.shape)
        for i, kind in enumerate(kinds):
            variations[i] = _variation(
                kind, first_parents[i], second_parents[i], noise[i], rng
            )
        return variations

    def _noise_for(self, scores: Array, rng: np.random.Generator) -> Array:
        """Return random scores, whose lengths are random parts of those of scores."""
        n = len(scores)
        noise = self._hyperplanes(rng, n)

        # Factors (n,) that would make the noise as long as the scores.
        squared_lengths = (scores**2).sum((1, 2))
        squared_noise_lengths = (noise**2).sum((1, 2))
        length_ratios = np.sqrt(squared_lengths / squared_noise_lengths)

        shortest, longest = _NOISE_LENGTH_RANGE
        parts = rng.uniform(shortest, longest, size=n)
        factors = parts * length_ratios
        return np.asarray(factors[:, None, None] * noise)


def _variation(
    kind: int, first: Array, second: Array, noise: Array, rng: np.random.Generator
) -> Array:
    """Return a variation of the scores (K, 1 + rank) of one parent, or of two."""
    n_classes = len(first)
    scores = first.copy()
    one, other = rng.choice(n_classes, 2, replace=False)
    if kind == _ADD_NOISE:
        scores += noise
    elif kind == _SWAP_CLASSES:
        scores[one] = first[other]
        scores[other] = first[one]
    elif kind == _DROP_CLASS:
        # With the scores of the other class, less a number, it never gets the largest
        # share of a row.
        scores[one] = first[other]
        scores[one, 0] -= _SCORE_REDUCTION_OF_DROPPED
    else:
        is_from_first = rng.random(n_classes) < 0.5
        scores[:] = np.where(is_from_first[:, None], first, second)
    return scores


def _repeated(values: Array, n: int) -> Array:
    """Return n numbers: the values in their order, each repeated equally often.

    If n is not a multiple of their number, the first ones are repeated once more.
    """
    counts = np.full(len(values), n // len(values))
    counts[: n % len(values)] += 1
    return np.repeat(values, counts)


def supervised_scores(problem: Problem) -> Array:
    """Return finite scores (K, 1 + rank) of the supervised posterior."""
    return np.maximum(start_scores(problem), _LOWEST_SCORE)
