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
        classes = np.arange(n_alone)
        fixed[2 + classes, classes, 0] = _ONE_CLASS_SCORE
        rng = np.random.default_rng([self.seed, 0])
        random = self._hyperplanes(rng, n_random)
        return np.concatenate([fixed, random])[:n]

    def _hyperplanes(self, rng: np.random.Generator, n: int) -> Array:
        """Return n random scores.

        Every class has a direction and an offset, and all classes share a sharpness.
        """
        n_classes = self.problem.n_classes
        basis = self.problem.whitening.basis
        n_features = len(basis)
        directions = rng.standard_normal((n, n_classes, n_features)) @ basis
        offsets = rng.standard_normal((n, n_classes, 1))
        log_sharpness = rng.uniform(*_LOG_SHARPNESS_RANGE, (n, 1, 1))
        hyperplanes = np.concatenate([offsets, directions], axis=-1)
        return np.asarray(np.exp(log_sharpness) * hyperplanes)

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
        factor_of_variation = _repeated(factors, n)[:, None, None]
        first_indices = rng.integers(len(parents), size=n)
        first_parents = parents[first_indices] * factor_of_variation
        second_indices = rng.integers(len(parents), size=n)
        second_parents = parents[second_indices] * factor_of_variation
        noise = self._noise_for(first_parents, rng)

        n_classes = self.problem.n_classes
        kinds: AnyArray = rng.permutation(n) % _N_KINDS
        varied = first_parents.copy()
        for i, kind in enumerate(kinds):
            one, other = rng.choice(n_classes, 2, replace=False)
            if kind == _ADD_NOISE:
                varied[i] += noise[i]
            elif kind == _SWAP_CLASSES:
                varied[i, [one, other]] = first_parents[i, [other, one]]
            elif kind == _DROP_CLASS:
                # With lower scores than those of the other class, it gets hardly any
                # row.
                varied[i, one] = first_parents[i, other]
                varied[i, one, 0] -= _SCORE_REDUCTION_OF_DROPPED
            else:
                is_from_first = rng.random(n_classes)[:, None] < 0.5
                varied[i] = np.where(is_from_first, first_parents[i], second_parents[i])
        return varied

    def _noise_for(self, scores: Array, rng: np.random.Generator) -> Array:
        """Return random scores, whose lengths are random parts of those of scores."""
        n = len(scores)
        noise = self._hyperplanes(rng, n)
        squared_lengths = (scores**2).sum((1, 2))
        squared_ratios = squared_lengths / (noise**2).sum((1, 2))
        parts = rng.uniform(*_NOISE_LENGTH_RANGE, n)
        factors = parts * np.sqrt(squared_ratios)
        return np.asarray(factors[:, None, None] * noise)


def _repeated(values: Array, n: int) -> Array:
    """Return n numbers: every value, repeated as equally often as n allows."""
    parts = np.array_split(np.empty(n), len(values))
    return np.repeat(values, [len(part) for part in parts])


def supervised_scores(problem: Problem) -> Array:
    """Return finite scores (K, 1 + rank) of the supervised posterior."""
    return np.maximum(start_scores(problem), _LOWEST_SCORE)
