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
# Score of the class that gets all rows: shares of 3e-4 in the others.
_ONE_CLASS_SCORE = 8.0
# What the score of a class is lowered by when a variation drops it.
_DROPPED_SCORE = 3
# Logarithms of the smallest and the largest sharpness of random hyperplanes.
_LOG_SHARPNESS = (-1, 3)
# Smallest and largest size of noise in a variation, relative to the scores.
_NOISE_SIZES = (0.2, 1)
# Kinds of variations; the others take each class from one of two parents.
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

        They are the supervised posterior, equal shares, each class alone, and random
        hyperplanes.
        """
        n_classes, width = self.problem.labeled_point.shape
        # No more than are asked for: starts of many classes are large.
        n_alone = max(0, min(n_classes, n - 2))
        fixed = np.zeros((2 + n_alone, n_classes, width))
        fixed[0] = supervised_scores(self.problem)
        alone = np.arange(n_alone)
        fixed[2 + alone, alone, 0] = _ONE_CLASS_SCORE
        n_random = max(0, n - len(fixed))
        random = self._hyperplanes(np.random.default_rng([self.seed, 0]), n_random)
        return np.concatenate([fixed, random])[:n]

    def _hyperplanes(self, rng: np.random.Generator, n: int) -> Array:
        """Return scores of random directions, offsets and sharpness."""
        n_classes = self.problem.n_classes
        basis = self.problem.whitening.basis
        directions = rng.standard_normal((n, n_classes, len(basis))) @ basis
        offsets = rng.standard_normal((n, n_classes, 1))
        sharpness = np.exp(rng.uniform(*_LOG_SHARPNESS, (n, 1, 1)))
        return np.asarray(sharpness * np.concatenate([offsets, directions], axis=-1))

    def varied(self, parents: Array, factors: Array, n: int, turn: int) -> Array:
        """Return n variations of the scores of parents.

        A variation adds noise, swaps two classes, drops a class or, in two of five
        cases, takes each class from one of two parents, which finds most new maxima.
        Each factor scales an equal part of them; ``turn`` seeds what is random.
        """
        n_classes = self.problem.n_classes
        rng = np.random.default_rng([self.seed, turn])
        part_sizes = [len(part) for part in np.array_split(np.empty(n), len(factors))]
        scale = np.repeat(factors, part_sizes)[:, None, None]
        first = parents[rng.integers(len(parents), size=n)] * scale
        second = parents[rng.integers(len(parents), size=n)] * scale
        noise = self._hyperplanes(rng, n)
        squares = (first**2).sum((1, 2))
        noise_ratios = squares / (noise**2).sum((1, 2))
        noise_sizes = rng.uniform(*_NOISE_SIZES, n) * np.sqrt(noise_ratios)
        varied = first.copy()
        kinds: AnyArray = rng.permutation(n) % _N_KINDS
        for i, kind in enumerate(kinds):
            j, k = rng.choice(n_classes, 2, replace=False)
            if kind == _ADD_NOISE:
                varied[i] += noise_sizes[i] * noise[i]
            elif kind == _SWAP_CLASSES:
                varied[i, [j, k]] = first[i, [k, j]]
            elif kind == _DROP_CLASS:
                # Class j gets the scores of class k, and hardly any row.
                varied[i, j] = first[i, k]
                varied[i, j, 0] -= _DROPPED_SCORE
            else:
                is_first = rng.random(n_classes) < 0.5
                varied[i] = np.where(is_first[:, None], first[i], second[i])
        return varied


def supervised_scores(problem: Problem) -> Array:
    """Return finite scores (K, 1 + rank) of the supervised posterior."""
    return np.maximum(start_scores(problem), _LOWEST_SCORE)
