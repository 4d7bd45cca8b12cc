"""One Newton step at a level of a path: the linear system A x = b, A = tau - H J.

H is the Hessian of the objective by the point, J the derivative of the point by the
scores (``attainable.Labeling``), x the change of the scores and b the residual of the
level. A is self-adjoint in the inner product x' J y, and lengths are those of this
product. The system is solved in one of three ways:

- with few unknowns by an LU factorization;
- otherwise by conjugate gradients in the inner product of J, which need products with
  J and H only. They stop at a trust radius and at negative curvature (Steihaug);
- where conjugate gradients do not end and fewer rows than features are near
  boundaries, by a Cholesky factorization of a system with one unknown for each of
  these rows and each class.

With few unknowns, too, conjugate gradients take over where A is not positive definite
or the solution is longer than the trust radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from .. import Array
from ..likelihood import Objective
from . import settings
from .attainable import Labeling

Product = Callable[[Array], Array]

# Curvature along a direction, over tau times its squared length, up to which it may be
# negative or zero except for rounding.
_CURVATURE_ROUNDING = 1e-14


@dataclass
class WorkLeft:
    """Work left to all paths together, in numbers read.

    Steps are not counted instead because they differ in cost.
    """

    n_numbers: float = np.inf


class Direction(NamedTuple):
    """A direction in which the merit rises: the Newton step or an approximation.

    Attributes
    ----------
    scores : the change of the scores, x
    slope : slope of the merit along the direction, x'J b
    length : its length, the square root of x'J x
    """

    scores: Array
    slope: float
    length: float


@dataclass
class _CgState:
    """State of conjugate gradients, which every iteration changes.

    Attributes
    ----------
    solution : x
    squared_length : x'J x
    slope : x'J b
    residual : r = b - A x
    j_residual : J r
    squared_residual : r'J r
    direction : d, along which x moves next
    j_direction : J d
    """

    solution: Array
    squared_length: float
    slope: float
    residual: Array
    j_residual: Array
    squared_residual: float
    direction: Array
    j_direction: Array

    @classmethod
    def at_zero(cls, b: Array, j_b: Array) -> _CgState:
        """Return the state at x = 0, where residual and direction are b."""
        return cls(
            solution=np.zeros_like(b),
            squared_length=0.0,
            slope=0.0,
            residual=b,
            j_residual=j_b,
            squared_residual=float(np.vdot(b, j_b)),
            direction=b,
            j_direction=j_b,
        )


class NewtonSystem:
    """The linear system of Newton steps where labels and objective are given."""

    def __init__(
        self,
        objective: Objective,
        labeling: Labeling,
        tau: float,
        work: WorkLeft,
    ) -> None:
        chosen = settings.NEWTON
        n_unknowns = labeling.point[:-1].size
        self._tau = tau
        self._labeling = labeling
        self._work = work
        self._is_factored = n_unknowns <= chosen.max_factored_unknowns
        # Numbers that are read for a product with J, and to form J.
        self._n_read = labeling.n_near * labeling.point.size
        if self._is_factored:
            n_classes = len(labeling.point)
            n_blocks = n_classes * (n_classes - 1) / 2
            work.n_numbers -= max(self._n_read, chosen.reads_per_block * n_blocks)
            hessian = objective.hessian(labeling.point)
            j_matrix = labeling.matrix()
            self._times_j: Product = j_matrix.dot
            self._times_h: Product = hessian.dot
            self._a_matrix = -(hessian @ j_matrix)
            _diagonal_of(self._a_matrix)[...] += tau
        else:
            work.n_numbers -= self._n_read
            self._times_j = labeling.product
            self._times_h = objective.hessian_product(labeling.point)

    def solve(self, residual: Array, radius: float) -> Direction:
        """Return the Newton step for a residual (K, 1 + rank), if it is short enough.

        If it is longer than ``radius``, or A is not positive definite, return the
        direction at which conjugate gradients stop instead.
        """
        # A change of all classes by the same scores changes no label.
        b = residual - residual[-1]
        if not self._is_factored:
            return self._by_conjugate_gradients(b, radius)
        free_b = b[:-1].ravel()
        step = self._by_factors(free_b)
        if step is None or step.length > radius:
            step = self._by_conjugate_gradients(free_b, radius)
        return step._replace(scores=with_last_class(step.scores, b.shape))

    def _by_factors(self, b: Array) -> Direction | None:
        """Return the solution by LU factors; None if A is not positive definite."""
        # 1. Factor A. Its eigenvalues are real. If none is negative, their product is
        # positive, which is the determinant: the product of the diagonal, with its
        # sign changed by every row that was swapped.
        factor, pivots, failed = lapack.dgetrf(self._a_matrix)
        n_negative = np.count_nonzero(factor.diagonal() < 0)
        n_swapped = np.count_nonzero(pivots != np.arange(len(pivots)))
        has_negative_determinant = (n_negative + n_swapped) % 2
        if failed or has_negative_determinant:
            return None

        # 2. Solve.
        x = lapack.dgetrs(factor, pivots, b)[0]
        j_x = self._times_j(x)
        slope = float(b @ j_x)
        squared_length = float(x @ j_x)
        if not slope >= 0:
            # An even number of negative eigenvalues is not found by the determinant.
            return None
        return Direction(x, slope, math.sqrt(max(0.0, squared_length)))

    def _by_rows(self, b: Array) -> Direction | None:
        """Return the solution where fewer rows than features are near boundaries.

        With J = C C' (``Labeling.factor``) and w = C'x the solution is

            x = (b + H C w) / tau, where (tau - C'H C) w = C'b

        None if that matrix is not positive definite, or J has no such factor.
        """
        labeling = self._labeling
        if self._is_factored or labeling.n_near > b.shape[1]:
            return None
        columns = labeling.factor()
        if columns is None:
            return None

        # 1. Form the system for w. Columns of C are arrays (K, 1 + rank), like scores.
        n_columns = len(columns)
        h_columns = self._times_h(columns)
        flat_columns = columns.reshape(n_columns, -1)
        matrix = -(flat_columns @ h_columns.reshape(n_columns, -1).T)
        _diagonal_of(matrix)[...] += self._tau
        right_side = flat_columns @ b.ravel()

        # 2. Solve it.
        factor, failed = lapack.dpotrf(matrix)
        if failed:
            return None
        w = lapack.dpotrs(factor, right_side)[0]

        # 3. Compute x. Its length is that of w, and its slope b'J x = (C'b)'w.
        x = (b + np.tensordot(w, h_columns, 1)) / self._tau
        slope = float(right_side @ w)
        length = float(np.linalg.norm(w))
        return Direction(x - x[-1], slope, length)

    def _by_conjugate_gradients(self, b: Array, radius: float) -> Direction:
        """Return the direction of Steihaug's method.

        In every iteration x moves along a direction d to the minimum of the quadratic
        model. It ends at the radius if that is nearer, or if the curvature of the model
        along d is not positive.
        """
        chosen = settings.NEWTON
        state = _CgState.at_zero(b, self._times_j(b))
        squared_b = state.squared_residual
        for _ in range(chosen.max_products):
            # 1. Stop where the residual is small, in the norm of J, against both b and
            # tau x.
            scale = min(squared_b, self._tau**2 * state.squared_length)
            if state.squared_residual <= chosen.residual_left**2 * scale:
                break
            squared_length = float(np.vdot(state.direction, state.j_direction))
            if not squared_length > 0:
                # The direction moves no label.
                break

            # 2. Move along the direction, at most to the radius.
            is_at_radius = self._move(state, b, squared_length, radius)
            if is_at_radius:
                return Direction(state.solution, state.slope, radius)

            # 3. Take the next direction.
            self._choose_next_direction(state)
        else:
            # All products are used up before the residual is small.
            exact = self._by_rows(b)
            if exact is not None and exact.length <= radius:
                return exact
        # The remaining residual lies where J is almost 0, so that A is tau times the
        # identity there.
        solution = state.solution + state.residual / self._tau
        slope = state.slope + float(np.vdot(b, state.j_residual)) / self._tau
        return Direction(solution, slope, math.sqrt(max(0.0, state.squared_length)))

    def _move(
        self, state: _CgState, b: Array, squared_length: float, radius: float
    ) -> bool:
        """Move the solution along the direction; return whether it reached the radius.

        ``squared_length`` is d'J d. A step of size t adds to the squared length of x

            t (2 x'J d + t d'J d)
        """
        # 1. Choose the size of the step to the minimum along the direction.
        a_direction = self._tau * state.direction - self._times_h(state.j_direction)
        curvature = float(np.vdot(state.j_direction, a_direction))
        min_curvature = _CURVATURE_ROUNDING * self._tau * squared_length
        size = np.inf
        if curvature > min_curvature:
            # r'J r / d'J A d, in the inner product in which A is self-adjoint.
            size = state.squared_residual / curvature

        # 2. Shorten it to the radius, where the squared length of x is radius**2.
        x_along_d = float(np.vdot(state.solution, state.j_direction))
        growth = size * (2 * x_along_d + size * squared_length)
        is_at_radius = not state.squared_length + growth < radius**2
        if is_at_radius:
            room = radius**2 - state.squared_length
            root = np.sqrt(x_along_d**2 + squared_length * room)
            size = (root - x_along_d) / squared_length

        # 3. Take it.
        state.solution = state.solution + size * state.direction
        state.squared_length += size * (2 * x_along_d + size * squared_length)
        state.slope += size * float(np.vdot(b, state.j_direction))
        if not is_at_radius:
            state.residual = state.residual - size * a_direction
        return is_at_radius

    def _choose_next_direction(self, state: _CgState) -> None:
        """Take the direction of the residual, made conjugate to those before."""
        state.j_residual = self._times_j(state.residual)
        self._work.n_numbers -= self._n_read
        previous = state.squared_residual
        state.squared_residual = float(np.vdot(state.residual, state.j_residual))
        ratio = state.squared_residual / previous
        state.direction = state.residual + ratio * state.direction
        state.j_direction = state.j_residual + ratio * state.j_direction


def _diagonal_of(matrix: Array) -> Array:
    """Return a view of the diagonal of a square matrix, which may be written to."""
    return matrix.ravel()[:: len(matrix) + 1]


def with_last_class(flat: Array, shape: tuple[int, ...]) -> Array:
    """Return free scores, a vector, as scores of all classes (K, 1 + rank).

    Those of the last class are zero.
    """
    scores = np.zeros(shape)
    scores[:-1].ravel()[:] = flat
    return scores
