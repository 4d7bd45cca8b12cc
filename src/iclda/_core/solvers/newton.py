"""One Newton step at a level of a path: the linear system (tau - H J) x = right.

H is the Hessian of the objective by the point, J the derivative of the point by the
scores (``attainable.Labeling``). The operator is self-adjoint in the inner product
x' J y, and lengths are those of this product. It is solved in one of three ways:

- with few unknowns by an LU factorization;
- otherwise by conjugate gradients in the inner product of J, which need products with
  J and H only. They stop at a trust radius and at negative curvature (Steihaug);
- where conjugate gradients do not end and fewer rows than features are near
  boundaries, by a Cholesky factorization of a system for each of these rows.
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

# A direction whose curvature, over tau times its squared length, is not above this has
# a negative one, or none.
_CURVATURE_ROUNDING = 1e-14


@dataclass
class WorkLeft:
    """Work left to all paths together, in numbers read: steps differ in cost."""

    n_numbers: float = np.inf


class Direction(NamedTuple):
    """An ascent direction of the merit, near the Newton step.

    Attributes
    ----------
    scores : the change of the scores
    slope : slope of the merit along it
    length : its length in the norm of J
    """

    scores: Array
    slope: float
    length: float


@dataclass
class _CgState:
    """State of conjugate gradients: the solution x, its residual r, the direction d.

    Attributes
    ----------
    solution, squared_length, slope : x, x'J x and x'J right
    residual, curved, rho : r, J r and r'J r
    direction, moved : d and J d
    """

    solution: Array
    squared_length: float
    slope: float
    residual: Array
    curved: Array
    rho: float
    direction: Array
    moved: Array


class NewtonSystem:
    """The linear system of Newton steps where labels and objective are given."""

    def __init__(
        self,
        objective: Objective,
        labeling: Labeling,
        tau: float,
        work: WorkLeft,
    ) -> None:
        n_classes = len(labeling.point)
        n_unknowns = labeling.point[:-1].size
        self._tau = tau
        self._labeling = labeling
        self._work = work
        self._is_factored = n_unknowns <= settings.NEWTON.max_factored_unknowns
        self._n_read = labeling.n_near * labeling.point.size
        if self._is_factored:
            n_blocks = n_classes * (n_classes - 1) / 2
            work.n_numbers -= max(
                self._n_read, settings.NEWTON.reads_per_block * n_blocks
            )
            hessian = objective.hessian(labeling.point)
            matrix = labeling.matrix()
            self._times_j: Product = matrix.dot
            self._times_h: Product = hessian.dot
            self._matrix = -(hessian @ matrix)
            self._matrix.ravel()[:: len(matrix) + 1] += tau
        else:
            work.n_numbers -= self._n_read
            self._times_j = labeling.product
            self._times_h = objective.hessian_product(labeling.point)

    def solve(self, right: Array, radius: float) -> Direction:
        """Return the solution, or a direction near to it, no longer than ``radius``.

        If the operator is not positive definite or the solution is longer, it is that
        of conjugate gradients, which stop there.
        """
        right = right - right[-1]
        if not self._is_factored:
            return self._by_conjugate_gradients(right, radius)
        flat = right[:-1].ravel()
        step = self._by_factors(flat)
        if step is None or step.length > radius:
            step = self._by_conjugate_gradients(flat, radius)
        return step._replace(scores=with_last_class(step.scores, right.shape))

    def _by_factors(self, right: Array) -> Direction | None:
        """Return the solution by LU factors; None if the operator is not definite."""
        factor, pivots, failed = lapack.dgetrf(self._matrix)
        # The eigenvalues are real. Their product, the determinant, is positive if none
        # is negative.
        n_negative = np.count_nonzero(factor.diagonal() < 0)
        n_swapped = np.count_nonzero(pivots != np.arange(len(pivots)))
        if failed or (n_negative + n_swapped) % 2:
            return None
        x = lapack.dgetrs(factor, pivots, right)[0]
        moved = self._times_j(x)
        slope = float(right @ moved)
        squared_length = float(x @ moved)
        if not slope >= 0:
            return None
        return Direction(x, slope, math.sqrt(max(0.0, squared_length)))

    def _by_rows(self, right: Array) -> Direction | None:
        """Return the solution where fewer rows than features are near boundaries.

        With J = C C' (``Labeling.factor``) and w = C'x it is (right + H C w) / tau,
        where (tau - C'H C) w = C'right. None if that matrix is not positive definite,
        or J has no such factor.
        """
        labeling = self._labeling
        if self._is_factored or labeling.n_near > right.shape[1]:
            return None
        columns = labeling.factor()
        if columns is None:
            return None
        n_columns = len(columns)
        bent = self._times_h(columns)
        flat = columns.reshape(n_columns, -1)
        matrix = -(flat @ bent.reshape(n_columns, -1).T)
        matrix.ravel()[:: n_columns + 1] += self._tau
        right_of_rows = flat @ right.ravel()
        factor, failed = lapack.dpotrf(matrix)
        if failed:
            return None
        w = lapack.dpotrs(factor, right_of_rows)[0]
        x = (right + np.tensordot(w, bent, 1)) / self._tau
        slope = float(right_of_rows @ w)
        return Direction(x - x[-1], slope, float(np.linalg.norm(w)))

    def _by_conjugate_gradients(self, right: Array, radius: float) -> Direction:
        """Return the direction of Steihaug's method.

        In every iteration x moves along a direction d to the minimum of the quadratic
        model. It ends at the radius if that is nearer, or if the curvature of the model
        along d is not positive.
        """
        curved = self._times_j(right)
        rho = float(np.vdot(right, curved))
        state = _CgState(
            solution=np.zeros_like(right),
            squared_length=0.0,
            slope=0.0,
            residual=right,
            curved=curved,
            rho=rho,
            direction=right,
            moved=curved,
        )
        first_rho = rho
        relative = settings.NEWTON.residual_left**2
        for _ in range(settings.NEWTON.max_products):
            scale = min(first_rho, self._tau**2 * state.squared_length)
            if state.rho <= relative * scale:
                break
            image = self._tau * state.direction - self._times_h(state.moved)
            squared_length = float(np.vdot(state.direction, state.moved))
            if not squared_length > 0:
                break
            is_at_radius = self._move(state, right, image, squared_length, radius)
            if is_at_radius:
                return Direction(state.solution, state.slope, radius)
            self._turn(state)
        else:
            exact = self._by_rows(right)
            if exact is not None and exact.length <= radius:
                return exact
        # The remaining residual lies where J is almost 0 and the operator is tau times
        # the identity.
        solution = state.solution + state.residual / self._tau
        slope = state.slope + float(np.vdot(right, state.curved)) / self._tau
        return Direction(solution, slope, math.sqrt(max(0.0, state.squared_length)))

    def _move(
        self,
        state: _CgState,
        right: Array,
        image: Array,
        squared_length: float,
        radius: float,
    ) -> bool:
        """Move the solution along the direction; return whether it reached the radius.

        ``image`` is the operator times d, ``squared_length`` is d'J d. After a step of
        size t the squared length of the solution is

            x'J x + t (2 x'J d + t d'J d)
        """
        curvature = float(np.vdot(state.moved, image))
        along = float(np.vdot(state.solution, state.moved))
        size = np.inf
        if curvature > _CURVATURE_ROUNDING * self._tau * squared_length:
            size = state.rho / curvature
        growth = size * (2 * along + size * squared_length)
        is_at_radius = not state.squared_length + growth < radius**2
        if is_at_radius:
            room = radius**2 - state.squared_length
            size = (np.sqrt(along**2 + squared_length * room) - along) / squared_length
        state.solution = state.solution + size * state.direction
        state.squared_length += size * (2 * along + size * squared_length)
        state.slope += size * float(np.vdot(right, state.moved))
        if not is_at_radius:
            state.residual = state.residual - size * image
        return is_at_radius

    def _turn(self, state: _CgState) -> None:
        """Take the next direction, which is conjugate to those before."""
        state.curved = self._times_j(state.residual)
        self._work.n_numbers -= self._n_read
        previous_rho = state.rho
        state.rho = float(np.vdot(state.residual, state.curved))
        ratio = state.rho / previous_rho
        state.direction = state.residual + ratio * state.direction
        state.moved = state.curved + ratio * state.moved


def with_last_class(flat: Array, shape: tuple[int, ...]) -> Array:
    """Return a vector of free scores as a matrix (K, 1 + rank), last class zero."""
    whole = np.zeros(shape)
    whole[:-1].ravel()[:] = flat
    return whole
