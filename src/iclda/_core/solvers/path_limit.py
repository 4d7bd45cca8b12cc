"""The limit of a path for tau to 0: labels that are the same on every processor.

As tau goes to 0 the scores of a path on rows in memory approach c / tau + lambda. In
this limit a row gets the class of the largest c_k' z~, and classes that tie there share
it by softmax(lambda_k' z~). If labels are hard only a few rows tie; at an interior
optimum c is 0, and all rows do.

Scores of order 1 / tau amplify rounding errors by as much. c and lambda are of order 1,
and Newton's method on the rows that tie finds them to rounding: c is the gradient
there, lambda what balances the shares so that the gradient vanishes in all directions
in which these shares can move the point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .. import AnyArray, Array
from ..labelsums import LexicographicRule, LinearRule, tied_shares
from ..likelihood import Objective
from ..problem import Problem
from . import settings
from .attainable import Labeling, gap
from .continuation import State
from .held import HeldSet
from .newton import with_last_class

# Change of a share that counts as zero ...
_ZERO_CHANGE = 1e-14
# ... and the largest one that counts as rounding if it no longer halves.
_ROUNDED_CHANGE = 1e-6
# Changes of shares in this ratio to the largest one are those of equal rows.
_EQUAL_CHANGE_RATIO = 1 - 1e-6
# Directions are dependent if a singular value is below this, over the largest.
_DEPENDENT_RATIO = 1e-9
# The same for eigenvalues of the scatter: they are squared singular values, but have
# lost digits to the squares.
_DEPENDENT_SQUARED_RATIO = _DEPENDENT_RATIO**1.5
# The largest margin, over the root mean square of the leads c_k' z~, and the smallest
# one, over the leads of classes that tie.
_MAX_MARGIN = 1e-6
_MIN_MARGIN_OVER_ROUNDING = 100.0
# Growths are kept above this where they are divisors.
_SMALLEST_DIVISOR = 1e-300


@dataclass(frozen=True)
class Limit:
    """The limit of a path for tau to 0: a labeling, and the point that it attains.

    Attributes
    ----------
    point : (K, 1 + rank) the point
    value : the objective there
    gap : first-order gap
    first : (K, 1 + rank) c
    second : (K, 1 + rank) lambda
    margin : classes tie whose c_k' z~ is this near to the largest; infinite: all do
    """

    point: Array
    value: float
    gap: float
    first: Array
    second: Array
    margin: float

    def rule(self, problem: Problem) -> LinearRule | LexicographicRule:
        """Return the labeling as a rule for rows in the frame."""
        second = problem.rule_of(self.second, is_soft=True)
        if np.isinf(self.margin):
            return second
        first = problem.rule_of(self.first, is_soft=False)
        return LexicographicRule(first, second, self.margin)


def find_limit(objective: Objective, held: HeldSet, end: State) -> Limit | None:
    """Return the limit of a path that ends in a state, or None if there is none.

    An active-set method: for a guess of the classes that tie on each row, Newton's
    method balances their shares. Shares that would become negative leave the guess;
    classes that tie by the gradient, but are not in it, join. It fails where leads and
    their rounding cannot be separated.
    """
    chosen = settings.PATH_LIMIT
    second = end.scores
    # The first guess: classes with soft shares at the end of the path tie.
    scores = second @ held.z.T
    is_tied = scores >= scores.max(axis=0) - chosen.max_tied_lead
    for _ in range(chosen.max_changes):
        # 1. Balance the shares of the classes that tie.
        balanced = _balance(objective, held, is_tied, second)
        if balanced is None:
            return None
        second = balanced.scores
        if balanced.is_leaving is not None:
            is_tied &= ~balanced.is_leaving
            continue

        # 2. Separate the leads of all other classes from the rounding of these.
        first_scores = balanced.first @ held.z.T
        largest_of_tied = np.where(is_tied, first_scores, -np.inf).max(axis=0)
        leads = first_scores - largest_of_tied
        # The leads of classes that tie are zero but for rounding.
        rounding = -float(np.min(leads, where=is_tied, initial=0.0))
        min_margin = _MIN_MARGIN_OVER_ROUNDING * rounding
        margin = _margin_below(leads, is_tied, held.weights)
        if margin > min_margin:
            return Limit(
                point=balanced.point,
                value=balanced.value,
                gap=gap(held, balanced.point, balanced.gradient),
                first=balanced.first,
                second=second,
                margin=margin,
            )

        # 3. Classes that tie by the gradient join.
        is_tied |= leads >= -min_margin
    return None


def _margin_below(leads: Array, is_tied: AnyArray, weights: Array) -> float:
    """Return the margin that separates classes that tie from all others.

    ``leads`` (K, n) are over the largest score of a class that ties: negative in the
    others, unless these should tie, too. The margin is infinite if all classes tie on
    all rows.
    """
    nearest = -float(np.max(leads, where=~is_tied, initial=-np.inf))
    if not nearest < np.inf:
        return np.inf
    mean_squares = (leads**2).mean(axis=0)
    lead_size = float(np.sqrt(weights @ mean_squares))
    return min(nearest / 2, _MAX_MARGIN * lead_size)


@dataclass(frozen=True)
class _Balanced:
    """A point at which no change of the shares of rows that tie raises the objective.

    Attributes
    ----------
    point, value, gradient : the point, the objective and its gradient there
    first : the gradient without its part in the directions of rows that tie, which is
        rounding
    scores : (K, 1 + rank) the scores that give the shares
    shares : (K, n) the shares
    is_leaving : (K, n) shares that a step would make negative; then the point is not
        balanced yet
    """

    point: Array
    value: float
    gradient: Array
    first: Array
    scores: Array
    shares: Array
    is_leaving: AnyArray | None = None


def _balance(
    objective: Objective, held: HeldSet, is_tied: AnyArray, scores: Array
) -> _Balanced | None:
    """Find scores by which the shares of rows that tie make the gradient vanish.

    It vanishes in the directions in which these shares can move the point. Newton's
    method in these directions begins at ``scores``. ``is_tied`` (K, n) marks the
    classes that tie. None if it fails.
    """
    chosen = settings.PATH_LIMIT
    tied = _TiedRows(objective, held, is_tied)
    # Coordinates in the basis, of the scores relative to those of the last class.
    relative = scores - scores[-1]
    free = tied.basis.T @ relative[:-1].ravel()
    # Largest change of a share by the step before.
    previous_change = np.inf
    for _ in range(chosen.max_steps):
        # 1. Find a Newton step.
        balanced = tied.evaluate(free)
        if balanced is None or not len(free):
            return balanced
        step = tied.newton_step(balanced)
        if not np.isfinite(step).all():
            return None

        # 2. Stop where it changes no share; drop shares that it makes negative.
        relative_changes = tied.relative_changes(balanced, step)
        changes = tied.of_tied(balanced.shares) * relative_changes
        largest = float(np.abs(changes).max())
        is_rounding = previous_change / 2 <= largest <= _ROUNDED_CHANGE
        if largest <= _ZERO_CHANGE or is_rounding:
            return balanced
        if relative_changes.min() < -1:
            is_leaving = tied.find_leaving(balanced, relative_changes)
            return replace(balanced, is_leaving=is_leaving)

        # 3. Take the step, shortened if a share would grow too much.
        previous_change = largest
        growth = max(float(relative_changes.max()), _SMALLEST_DIVISOR)
        free = free + step * min(1.0, chosen.max_growth / growth)
    return None


class _TiedRows:
    """Rows that several classes share, and the directions that they move the point in.

    Attributes
    ----------
    basis : an orthonormal basis of these directions, in columns; free scores are
        coordinates in it
    """

    def __init__(self, objective: Objective, held: HeldSet, is_tied: AnyArray) -> None:
        self._objective = objective
        self._held = held
        self._is_tied = is_tied
        self._tied_rows = np.flatnonzero(np.count_nonzero(is_tied, axis=0) > 1)
        self._tied_z = held.z[self._tied_rows]
        self._is_sharing = is_tied[:, self._tied_rows]
        self.basis = _directions(held.z, is_tied)

    def of_tied(self, shares: Array) -> Array:
        """Return the shares of the rows that tie."""
        return np.asarray(shares[:, self._tied_rows])

    def _in_all_classes(self, free: Array) -> Array:
        return with_last_class(self.basis @ free, self._held.labeled_point.shape)

    def evaluate(self, free: Array) -> _Balanced | None:
        """Evaluate the objective at free scores; None at a singular model."""
        held = self._held
        scores = self._in_all_classes(free)
        shares = tied_shares(held.scores_of_rows(scores), self._is_tied)
        sums = (shares * held.weights) @ held.z
        point = held.labeled_point + sums
        if not self._objective.is_bounded(point):
            return None
        value, gradient = self._objective.value_and_gradient(point)
        gradient = gradient - gradient[-1]
        along_basis = self._in_all_classes(self._residual(gradient))
        first = gradient - along_basis
        return _Balanced(point, float(value), gradient, first, scores, shares)

    def _residual(self, gradient: Array) -> Array:
        """Return the gradient in the directions of the basis."""
        return np.asarray(self.basis.T @ gradient[:-1].ravel())

    def newton_step(self, balanced: _Balanced) -> Array:
        """Return the solution of -H J step = residual; NaN if a matrix is singular.

        H is the Hessian of the objective, J the derivative of the point by the scores,
        both in the directions of the basis.
        """
        hessian = self._objective.hessian(balanced.point)
        labeling = Labeling(
            scores=balanced.scores,
            point=balanced.point,
            log_sum=0.0,
            rows=self._held,
            shares=balanced.shares,
        )
        hessian = self.basis.T @ hessian @ self.basis
        derivative = self.basis.T @ labeling.matrix() @ self.basis
        residual = self._residual(balanced.gradient)
        # First the change of the point, then that of the scores.
        point_change = _solve(hessian, residual)
        return -_solve(derivative, point_change)

    def relative_changes(self, balanced: _Balanced, step: Array) -> Array:
        """Return the changes of shares by a step, over the shares, to first order."""
        scores = self._in_all_classes(step) @ self._tied_z.T
        changes = np.where(self._is_sharing, scores, 0.0)
        changes -= (self.of_tied(balanced.shares) * changes).sum(axis=0)
        changes[~self._is_sharing] = 0.0
        return changes

    def find_leaving(self, balanced: _Balanced, relative_changes: Array) -> AnyArray:
        """Return which shares (K, n) leave: the one reduced most, and all small ones.

        Shares of equal rows leave together.
        """
        shares = self.of_tied(balanced.shares)
        is_negative = relative_changes < -1
        is_small = is_negative & (shares < settings.PATH_LIMIT.small_share)
        most_reduced = relative_changes.min()
        is_equal = relative_changes <= _EQUAL_CHANGE_RATIO * most_reduced
        is_leaving = np.zeros(self._is_tied.shape, dtype=bool)
        is_leaving[:, self._tied_rows] = is_small | is_equal
        return is_leaving


def _directions(z: Array, is_tied: AnyArray) -> Array:
    """Return an orthonormal basis (in columns) of the moves of the point by tied rows.

    It spans the directions (e_k - e_j) x z~ of all pairs of classes that share a row
    z~, in the coordinates of all classes but the last.
    """
    n_classes = len(is_tied)
    size = (n_classes - 1) * z.shape[1]
    n_sharing = np.count_nonzero(is_tied, axis=0)
    tied_rows = np.flatnonzero(n_sharing > 1)
    if not len(tied_rows):
        return np.zeros((size, 0))
    groups = _groups(z[tied_rows], is_tied[:, tied_rows])
    # A row that m classes share moves the point in m - 1 directions.
    n_directions = (n_sharing[tied_rows] - 1).sum()
    if n_directions <= size:
        return _basis_of_directions(groups)
    # If there are many directions, their scatter is smaller than a matrix of them.
    return _basis_of_scatter(groups, size)


def _basis_of_directions(groups: list[tuple[AnyArray, Array]]) -> Array:
    """Return a basis of the directions of groups, by their singular vectors."""
    parts = []
    for is_sharing, rows in groups:
        lengths = np.linalg.norm(rows, axis=1)
        unit_rows = rows / lengths[:, None]
        parts.append(np.kron(_contrasts(is_sharing), unit_rows))
    _, values, directions = scipy.linalg.svd(np.vstack(parts), full_matrices=False)
    is_independent = values > _DEPENDENT_RATIO * values[0]
    return np.asarray(directions[is_independent].T)


def _basis_of_scatter(groups: list[tuple[AnyArray, Array]], size: int) -> Array:
    """Return a basis of the directions of groups, by the eigenvectors of their scatter.

    The scatter of a Kronecker product is the product of both scatters.
    """
    scatter = np.zeros((size, size))
    for is_sharing, rows in groups:
        contrasts = _contrasts(is_sharing)
        scatter += np.kron(contrasts.T @ contrasts, rows.T @ rows)
    squares, vectors = scipy.linalg.eigh(scatter)
    is_independent = squares > _DEPENDENT_SQUARED_RATIO * squares[-1]
    return np.asarray(vectors[:, is_independent])


def _groups(rows: Array, is_tied: AnyArray) -> list[tuple[AnyArray, Array]]:
    """Return the distinct sets of classes, (K,) masks, each with the rows it shares."""
    sets, set_of_row = np.unique(is_tied, axis=1, return_inverse=True)
    set_of_row = set_of_row.ravel()
    groups = []
    for i in range(sets.shape[1]):
        rows_of_set = rows[set_of_row == i]
        groups.append((sets[:, i], rows_of_set))
    return groups


def _contrasts(is_sharing: AnyArray) -> Array:
    """Return the differences e_k - e_j of the m classes that share, (m - 1, K - 1)."""
    units = np.eye(len(is_sharing))[is_sharing]
    contrasts = units[1:] - units[0]
    # Scores of the last class are zero and not among the unknowns.
    return np.asarray(contrasts[:, :-1])


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a linear system; NaN if it is singular."""
    _, _, solution, failed = lapack.dgesv(matrix, right)
    return np.full(len(right), np.nan) if failed else np.asarray(solution)
