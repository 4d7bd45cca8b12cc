"""The rows that the search holds: all unlabeled rows, or a sample of them.

The covariance within classes is I - B D^-1 B' only if labeled and unlabeled rows
together have the covariance I: a sample is a problem of its own, with its own
whitening. Scores move from one problem to another by way of the rows in the frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from .. import Array
from ..moments import Moments, moments_of_block
from ..problem import Problem
from . import settings
from .attainable import HeldRows
from .held import n_held_rows
from .sets import attainable_sets


@dataclass(frozen=True)
class Sample:
    """Rows in memory, and the problem in which they are all unlabeled rows.

    Attributes
    ----------
    problem : that problem
    rows : (n, d) the rows, in the user's units
    weights : (n,) their weights, which add up to those of all rows
    held : the attainable set of the rows
    is_whole : whether these are all unlabeled rows
    """

    problem: Problem
    rows: Array
    weights: Array
    held: HeldRows
    is_whole: bool

    def thinned(self, max_rows: int) -> Sample:
        """Return some of the rows, evenly spaced, with the total weight of all."""
        if max_rows >= len(self.rows) / 2:
            # Half of the rows would not save enough.
            return self
        chosen = np.linspace(0, len(self.rows) - 1, max_rows).astype(int)
        weights = self.weights[chosen]
        weights = weights * (self.weights.sum() / weights.sum())
        return hold_sample(self.problem, self.rows[chosen], weights)


def draw_sample(problem: Problem, seed: int) -> Sample:
    """Hold all unlabeled rows, or as many as the settings allow."""
    n_held = n_held_rows(problem)
    rows, weights = problem.unlabeled.sample(n_held, seed)
    return hold_sample(problem, rows, weights)


def hold_sample(problem: Problem, rows: Array, weights: Array) -> Sample:
    """Hold rows given in the user's units, whitened by their own moments if not all."""
    is_whole = len(rows) == problem.unlabeled.n_rows
    if not is_whole:
        # With moments of its own, the problem of the sample has its own whitening.
        moments = _moments_of(problem, rows, weights)
        problem = replace(problem, unlabeled_moments=moments)
    held = attainable_sets(problem).hold(rows, weights)
    return Sample(problem, rows, weights, held, is_whole)


def _moments_of(problem: Problem, rows: Array, weights: Array) -> Moments:
    """Return the moments of rows given in the user's units, summed block by block."""
    rows_per_block = settings.HOLDING.rows_per_block
    starts = range(0, len(rows), rows_per_block)
    blocks = (slice(start, start + rows_per_block) for start in starts)
    # One block after the other, as each of them has a matrix of features x features.
    moments_of_blocks = (
        moments_of_block(problem.frame.apply(rows[block]), weights[block])
        for block in blocks
    )
    return reduce(add, moments_of_blocks)


def moved_scores(scores: Array, source: Problem, target: Problem) -> Array:
    """Return scores in the whitened coordinates of another problem."""
    return target.scores_of(source.rule_of(scores, is_soft=True))
