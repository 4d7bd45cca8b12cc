"""Newton's method in a trust region, for up to a few thousand unknowns.

A step s minimizes the model g's + s'Hs/2 of the change of a loss over all steps that
are no longer than a radius. With the eigenvalues h and eigenvectors Q of H, and
c = Q'g, it is -Q (c / (h + shift)). The shift is 0 if H is positive definite and this
step is short enough. Otherwise it is the shift, of at least -min(h), at which the step
is as long as the radius.

``scipy.optimize.minimize(method="trust-exact")`` looks for the same steps, but before
SciPy 1.17 it may look for ever where curvatures are large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from .. import Array

# A step is taken if the loss falls by more than this share of what the model predicts.
_MIN_SHARE_OF_A_STEP = 0.15
# The radius shrinks below one share, and grows above another.
_SHRINKING_SHARE = 0.25
_GROWING_SHARE = 0.75
_SHRINKING_FACTOR = 0.25
_GROWING_FACTOR = 2.0
_MAX_RADIUS = 1000.0
# Steps as long as the radius, up to rounding.
_SAME_LENGTH = 1e-6
# A step of this size changes nothing.
_IDLE_STEP_SIZE = 1e-12


class Minimum(NamedTuple):
    """Where the search ended: unknowns, loss, its gradient and second derivatives."""

    unknowns: Array
    value: float
    gradient: Array
    hessian: Array


class QuadraticModel:
    """The change of a loss by a step, up to second order."""

    def __init__(self, gradient: Array, hessian: Array) -> None:
        self._gradient = gradient
        self._hessian = hessian

    def change(self, step: Array) -> float:
        return float(self._gradient @ step + step @ self._hessian @ step / 2)

    def best_step(self, radius: float) -> Array:
        """Return the step of lowest change that is no longer than the radius."""
        newton_step = self._newton_step
        if newton_step is not None and np.linalg.norm(newton_step) <= radius:
            return newton_step
        eigenvalues, eigenvectors = self._eigen
        return eigenvectors @ _step_to(
            radius, eigenvalues, eigenvectors.T @ self._gradient
        )

    @cached_property
    def _newton_step(self) -> Array | None:
        """The step to the minimum of the model, if it has one."""
        try:
            cholesky = scipy.linalg.cho_factor(self._hessian)
        except scipy.linalg.LinAlgError:
            return None
        step: Array = -scipy.linalg.cho_solve(cholesky, self._gradient)
        return step

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        eigenvalues, eigenvectors = np.linalg.eigh(self._hessian)
        return eigenvalues, eigenvectors


def _step_to(radius: float, eigenvalues: Array, slopes: Array) -> Array:
    """Return the best step as long as the radius, along the eigenvectors."""
    # Shifted eigenvalues are h + shift = (h - min(h)) + least: without cancellation.
    above_least = eigenvalues - eigenvalues[0]
    rounding = np.finfo(float).eps * max(np.abs(eigenvalues).max(), 1e-300)

    def step_at(least: float) -> Array:
        step: Array = -slopes / (above_least + least)
        return step

    def missing(least: float) -> float:
        """Nearly linear in the least shifted eigenvalue, and zero at the radius."""
        length = np.linalg.norm(step_at(least))
        return float(1 / radius - 1 / length) if length else -np.inf

    low = max(eigenvalues[0], rounding)
    # There no step is longer than the radius.
    high = 2 * max(float(np.linalg.norm(slopes)) / radius, low)
    if missing(low) > 0:
        step = step_at(scipy.optimize.brentq(missing, low, high, xtol=1e-300))
        shortened: Array = step * (radius / np.linalg.norm(step))
        return shortened
    # The slope along the first eigenvector is rounding: there the step ends at the
    # radius, on either side.
    step = step_at(low)
    rest = float(step[1:] @ step[1:])
    step[0] = np.copysign(np.sqrt(max(radius**2 - rest, 0.0)), step[0])
    return step


def minimize(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    hessian: Callable[[Array], Array],
    start: Array,
    *,
    gradient_left: float,
    max_steps: int,
    first_radius: float,
) -> Minimum:
    """Minimize a loss, which is infinite where it is not defined.

    The search ends once the gradient is no longer than ``gradient_left``, or steps
    change nothing.
    """
    unknowns = start
    value, gradient = value_and_gradient(unknowns)
    curvatures = hessian(unknowns)
    model = QuadraticModel(gradient, curvatures)
    radius = first_radius
    for _ in range(max_steps):
        if np.linalg.norm(gradient) < gradient_left:
            break
        step = model.best_step(radius)
        predicted = model.change(step)
        if not predicted < 0:
            break
        tried_value, tried_gradient = value_and_gradient(unknowns + step)
        share = (tried_value - value) / predicted
        if share > _MIN_SHARE_OF_A_STEP:
            unknowns = unknowns + step
            value = tried_value
            gradient = tried_gradient
            curvatures = hessian(unknowns)
            model = QuadraticModel(gradient, curvatures)
        if np.abs(step).max() <= _IDLE_STEP_SIZE:
            break
        is_at_radius = np.linalg.norm(step) > radius * (1 - _SAME_LENGTH)
        if share > _GROWING_SHARE and is_at_radius:
            radius = min(_GROWING_FACTOR * radius, _MAX_RADIUS)
        # Not a number, where the loss is none: the step was too long.
        if not share >= _SHRINKING_SHARE:
            radius *= _SHRINKING_FACTOR
    return Minimum(unknowns, value, gradient, curvatures)
