"""Logistic regression of labeled rows, computed where the rows are.

It maximizes the likelihood of the labels with a penalty of half the sum of squared
coefficients, by L-BFGS. A round takes two products with the rows. The direction is a
combination of the last steps, of the changes of the gradient along them, and of the
gradient. What its factors are follows from the products of all these with each other:
one matrix product, and one small matrix that leaves the device.

Steps depend on these products alone, and so does their end. Rows in rotated coordinates
therefore get the same fit, also before it has converged: few rows of many features are
fitted along other axes in memory than on a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import AnyArray, Array

# A direction is made of this many of the last steps.
_N_REMEMBERED_STEPS = 10
# A step must lower the loss by this share of what its slope promises.
_SUFFICIENT_DECREASE = 1e-4
# A step that does not is divided by two, at most this many times.
_MAX_HALVINGS = 30

# Takes coefficients; returns loss and gradient.
Loss = Callable[[Any], tuple[float, Any]]


def fit_logistic(
    rows: Any,
    codes: AnyArray,
    weights: Array,
    n_classes: int,
    place: Any,
    *,
    tol: float,
    max_rounds: int,
) -> tuple[Any, Any]:
    """Return coefficients (d, K) and intercepts (K,), at the place of the rows.

    Rows (n, d) are at ``place``; ``codes`` and ``weights`` (n,) are in memory. The mean
    loss has a gradient by the coefficients of each class, a mean of rows times
    residuals. Rounds end once the root mean square of the lengths of these gradients is
    at most ``tol`` times that of the rows: this means the same for any number of
    features and of classes.
    """
    xp = place.xp
    n_rows, n_features = rows.shape
    ones = place.put(np.ones((n_rows, 1)))
    with_ones = xp.concat([rows, ones], axis=1)
    # One row for each class: coefficients, then the intercept, which has no penalty.
    one_hot = place.put(codes == np.arange(n_classes)[:, None])
    shares_of_loss = place.put(weights / weights.sum())
    # Coefficients of two classes are opposite: as those of one lead, they count once.
    penalty = np.full(n_features + 1, (2 if n_classes == 2 else 1) / weights.sum())
    penalty[-1] = 0.0
    penalties = place.put(penalty)

    def loss_of(coef: Any) -> tuple[float, Any]:
        scores = xp.matmul(coef, with_ones.T)
        shares, log_sums = place.label(scores, is_soft=True)
        own_scores = xp.sum(one_hot * scores, axis=0)
        penalized = penalties * coef
        loss = xp.sum(shares_of_loss * (log_sums - own_scores))
        loss = loss + xp.sum(penalized * coef) / 2
        residuals = shares_of_loss * (shares - one_hot)
        return float(loss), xp.matmul(residuals, with_ones) + penalized

    squared_lengths = xp.sum(with_ones**2, axis=1)
    mean_squared_length = float(xp.sum(shares_of_loss * squared_lengths))
    max_norm = tol * np.sqrt(n_classes * mean_squared_length)
    start = place.put(np.zeros((n_classes, n_features + 1)))
    coef = _minimize(loss_of, start, place, max_norm, max_rounds)
    return xp.matrix_transpose(coef[:, :-1]), coef[:, -1]


def _minimize(
    loss_of: Loss, coef: Any, place: Any, max_norm: float, max_rounds: int
) -> Any:
    """Return coefficients near the minimum of a convex loss.

    The norm of the gradient there is at most ``max_norm``, unless rounds run out.
    """
    xp = place.xp
    loss, gradient = loss_of(coef)
    steps: list[Any] = []
    changes: list[Any] = []
    for _ in range(max_rounds):
        # 1. Find a direction, and the slope of the loss along it.
        vectors = xp.stack([*steps, *changes, gradient])
        flat = xp.reshape(vectors, (vectors.shape[0], -1))
        products = place.fetch(xp.matmul(flat, flat.T))
        if products[-1, -1] <= max_norm**2:
            break
        factors = -_inverse_hessian(products)
        slope = float(factors @ products[-1])
        flat_direction = xp.matmul(place.put(factors), flat)
        direction = xp.reshape(flat_direction, gradient.shape)

        # 2. Halve the step until the loss falls.
        factor = 1.0
        for _ in range(_MAX_HALVINGS):
            new_coef = coef + factor * direction
            new_loss, new_gradient = loss_of(new_coef)
            if new_loss <= loss + _SUFFICIENT_DECREASE * factor * slope:
                break
            factor /= 2
        else:
            # Rounding hides what is left to gain.
            break

        # 3. Remember the last steps.
        steps = [*steps, factor * direction][-_N_REMEMBERED_STEPS:]
        changes = [*changes, new_gradient - gradient][-_N_REMEMBERED_STEPS:]
        coef = new_coef
        loss = new_loss
        gradient = new_gradient
    return coef


def _inverse_hessian(products: Array) -> Array:
    """Return the factors of the inverse Hessian times the gradient.

    ``products`` are those of the steps, the changes of the gradient along them, and
    the gradient.
    """
    n_steps = len(products) // 2
    factors = np.zeros(len(products))
    factors[-1] = 1.0
    curvatures = products.diagonal(n_steps)[:n_steps]
    # Rounding may hide the curvature along a short step.
    used = np.flatnonzero(curvatures > 0)
    if len(used) == 0:
        # Nothing is known of the curvature: the step has the length 1.
        factors /= np.sqrt(products[-1, -1])
        return factors
    along_steps = np.zeros(n_steps)
    for i in reversed(used):
        along_steps[i] = products[i] @ factors / curvatures[i]
        factors[n_steps + i] -= along_steps[i]
    last = used[-1]
    factors *= curvatures[last] / products[n_steps + last, n_steps + last]
    for i in used:
        along_change = products[n_steps + i] @ factors / curvatures[i]
        factors[i] += along_steps[i] - along_change
    return factors
