"""The labeling that a path on rows in memory ends in, as tau goes to 0.

On the path rows are labeled by softmax(scores' z~), z~ = (1, z), and the scores approach
c / tau + lambda. In the limit a row goes to the class of largest c_k' z~, and classes that tie
there share it by softmax(lambda' z~). If labels are hard only a few rows tie; at an interior
optimum c is 0 and all of them do. Scores of order 1 / tau would amplify rounding by as much; c and
lambda are of order 1, and Newton's method on the rows that tie finds them to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ..labelsums import LexicographicRule, LinearRule, tied_shares
from ..likelihood import Objective
from ..problem import Problem
from ..types import AnyArray, Array
from .attainable import AllSums, InMemorySet, Labeling, gap
from .continuation import State

_LARGEST_TIED_LEAD = 18.0  # of a score, at the end of a path, of classes that may tie
_MOST_CHANGES = 100  # of the rows that tie
_MOST_STEPS = 30
_LONGEST_STEP = 3.0  # by how many times itself a share may grow in one step
_ZERO_CHANGE = 1e-14  # change of shares that counts as zero
_ROUNDED_CHANGE = 1e-6  # change of shares below which a step that does not shrink is rounding
_EQUAL_CHANGE_RATIO = 1 - 1e-6  # of two changes: that of equal rows
_SMALL_SHARE = 0.01  # a share that leaves with others
_DEPENDENT_RATIO = 1e-9  # singular value, over the largest, below which directions are dependent
_WIDEST_MARGIN = 1e-6  # largest margin, over the root mean square of c_k' z~
_MARGIN_OVER_ROUNDING = 100.0  # margin over the leads that are rounding


@dataclass(frozen=True)
class Limit:
    """A labeling and its point: by ``first`` (c), and where classes tie by ``second`` (lambda)."""

    point: Array
    value: float
    gap: float
    first: Array  # (K, 1 + rank)
    second: Array  # (K, 1 + rank)
    margin: float  # classes this near to the first by ``first`` tie; infinite: all do

    def rule(self, problem: Problem) -> LinearRule | LexicographicRule:
        """The labeling for rows in the frame."""
        second = problem.rule_of(self.second, is_soft=True)
        if np.isinf(self.margin):
            return second
        return LexicographicRule(problem.rule_of(self.first, is_soft=False), second, self.margin)


def finish(likelihood: Objective, held: InMemorySet, end: State) -> Limit | None:
    """The limit of a path that ends in a state, or None where the rows that tie are not clear."""
    second = end.scores
    scores = second @ held.z.T
    is_tied = scores >= scores.max(axis=0) - _LARGEST_TIED_LEAD
    for _ in range(_MOST_CHANGES):
        found = _balance(likelihood, held, is_tied, second)
        if found is None:
            return None
        second = found.scores
        if found.leaving is not None:
            is_tied &= ~found.leaving
            continue
        leads = found.first @ held.z.T
        leads -= np.where(is_tied, leads, -np.inf).max(axis=0)
        rounding = -float(np.min(leads, where=is_tied, initial=0.0))
        nearest = -float(np.max(leads, where=~is_tied, initial=-np.inf))
        narrow = _WIDEST_MARGIN * float(np.sqrt(held.weights @ (leads**2).mean(axis=0)))
        margin = min(nearest / 2, narrow) if nearest < np.inf else np.inf
        if margin > _MARGIN_OVER_ROUNDING * rounding:
            left = gap(held, found.point, found.gradient)
            return Limit(found.point, found.value, left, found.first, second, margin)
        is_tied |= leads >= -_MARGIN_OVER_ROUNDING * rounding
    return None


@dataclass(frozen=True)
class _Balanced:
    """A point at which shares of tied rows are balanced, or a step towards it."""

    point: Array
    value: float
    gradient: Array
    first: Array  # the gradient, less its rounding along rows that tie
    scores: Array
    leaving: AnyArray | None = None  # (K, n): shares of which a step would take more than all


def _balance(
    likelihood: Objective, held: InMemorySet, is_tied: AnyArray, scores: Array
) -> _Balanced | None:
    """Newton's method in the directions in which shares of rows that tie can move the point."""
    basis = _directions(held.z, is_tied)
    tied_rows = np.flatnonzero(np.count_nonzero(is_tied, axis=0) > 1)
    tied, is_sharing = held.z[tied_rows], is_tied[:, tied_rows]
    whole = partial(_with_last_class, shape=scores.shape)
    free = basis.T @ (scores - scores[-1])[:-1].ravel()
    last = np.inf  # largest change of a share by the step before
    for _ in range(_MOST_STEPS):
        scores = whole(basis @ free)
        shares = tied_shares(scores @ held.z.T, is_tied)
        point = held.labeled_point + (shares * held.weights) @ held.z
        if not likelihood.is_bounded(point):
            return None
        value, gradient = likelihood.value_and_gradient(point)
        gradient = gradient - gradient[-1]
        residual = basis.T @ gradient[:-1].ravel()
        first = gradient - whole(basis @ residual)
        found = _Balanced(point, float(value), gradient, first, scores)
        if not len(free):
            return found
        bend = basis.T @ likelihood.hessian(point) @ basis
        labeling = Labeling(AllSums(point, 0.0), held.z, held.weights, shares)
        spread = basis.T @ labeling.matrix() @ basis
        step = -_solve(spread, _solve(bend, residual))
        if not np.isfinite(step).all():
            return None
        change = np.where(is_sharing, whole(basis @ step) @ tied.T, 0.0)
        change -= (shares[:, tied_rows] * change).sum(axis=0)  # of a share, over that share
        change[~is_sharing] = 0.0
        largest = float(np.abs(shares[:, tied_rows] * change).max())
        if largest <= _ZERO_CHANGE or last / 2 <= largest <= _ROUNDED_CHANGE:
            return found
        if change.min() < -1:
            leaving = np.zeros(is_tied.shape, dtype=bool)
            # The share reduced most, equal ones of equal rows, and small ones below zero.
            is_small = (change < -1) & (shares[:, tied_rows] < _SMALL_SHARE)
            leaving[:, tied_rows] = is_small | (change <= _EQUAL_CHANGE_RATIO * change.min())
            return replace(found, leaving=leaving)
        last = largest
        free = free + step * min(1.0, _LONGEST_STEP / max(float(change.max()), 1e-300))
    return None


def _with_last_class(flat: Array, shape: tuple[int, ...]) -> Array:
    """A vector of all classes but the last as a matrix of all classes, zero in the last."""
    whole = np.zeros(shape)
    whole[:-1].ravel()[:] = flat
    return whole


def _directions(z: Array, is_tied: AnyArray) -> Array:
    """Orthonormal columns: the directions (e_k - e_j) x z~ of classes that share a row z~."""
    n_classes, width = len(is_tied), z.shape[1]
    size = (n_classes - 1) * width
    n_sharing = np.count_nonzero(is_tied, axis=0)
    tied_rows = np.flatnonzero(n_sharing > 1)
    if not len(tied_rows):
        return np.zeros((size, 0))
    groups = _groups(z[tied_rows], is_tied[:, tied_rows])
    if (n_sharing[tied_rows] - 1).sum() <= size:
        parts = [
            np.kron(_contrasts(sharing), rows / np.linalg.norm(rows, axis=1)[:, None])
            for sharing, rows in groups
        ]
        _, lengths, directions = scipy.linalg.svd(np.vstack(parts), full_matrices=False)
        return np.asarray(directions[lengths > _DEPENDENT_RATIO * lengths[0]].T)
    # Many rows: their scatter, whose eigenvalues are squares.
    scatter = np.zeros((size, size))
    for sharing, rows in groups:
        contrasts = _contrasts(sharing)
        scatter += np.kron(contrasts.T @ contrasts, rows.T @ rows)
    squares, vectors = scipy.linalg.eigh(scatter)
    return np.asarray(vectors[:, squares > _DEPENDENT_RATIO**1.5 * squares[-1]])


def _groups(rows: Array, is_tied: AnyArray) -> list[tuple[AnyArray, Array]]:
    """Sets of classes that share rows, each with its rows."""
    kinds, kind = np.unique(is_tied, axis=1, return_inverse=True)
    return [(kinds[:, i], rows[kind.ravel() == i]) for i in range(kinds.shape[1])]


def _contrasts(is_sharing: AnyArray) -> Array:
    """(m - 1, K - 1): differences e_k - e_j of the m classes that share, without the last."""
    found = np.eye(len(is_sharing))[is_sharing]
    return np.asarray((found[1:] - found[0])[:, :-1])


def _solve(matrix: Array, right: Array) -> Array:
    """NaN where there is no solution."""
    _, _, solution, failed = lapack.dgesv(matrix, right)
    return np.full(len(right), np.nan) if failed else np.asarray(solution)
