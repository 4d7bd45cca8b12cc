"""Shrunk covariances: towards a multiple of the identity, in the user's units."""

from __future__ import annotations

import numpy as np

from .frame import Frame, mean_variance_in_frame
from .labelsums import ROUNDING
from .problem import LabeledSummary
from .types import AnyArray, Array

_ROUNDING = 1e-12  # of a distance between covariances, over the square of their size


def ledoit_wolf(rows: Array, weights: Array) -> float:
    """Ledoit and Wolf's shrinkage, in [0, 1], of rows about their mean.

    Weights count like repetitions of a row.
    """
    total = weights.sum()
    centered = rows - weights @ rows / total
    scale = np.abs(centered).max(initial=0.0)
    if scale == 0:
        return 0.0
    centered = centered / scale
    n_features = rows.shape[1]
    squared = (centered**2).sum(axis=1)
    # The squared norm of the covariance, from the smaller of the two Gram matrices.
    root = centered * np.sqrt(weights)[:, None]
    gram = root.T @ root if n_features <= len(root) else root @ root.T
    norm = float((gram**2).sum()) / total**2
    mean_variance = float(weights @ squared) / total / n_features
    distance = norm - n_features * mean_variance**2
    if distance <= _ROUNDING * norm:  # the target itself, as always with one feature
        return 0.0
    noise = min((float(weights @ squared**2) / total - norm) / total, distance)
    return float(noise / distance) if noise > 0 else 0.0


def shrink_labeled(labeled: LabeledSummary, shrinkage: float, frame: Frame) -> Array:
    """Scatter within classes shrunk towards its mean variance, as scikit-learn does.

    Where classes have no spread at all, the spread of all labeled rows sets the scale.
    """
    scatter = labeled.within if labeled.has_spread else labeled.moments.scatter
    target = np.diag(mean_variance_in_frame(scatter, frame))
    return (1 - shrinkage) * labeled.within + shrinkage * target


def shrink_each_class(rows: Array, codes: AnyArray, weights: Array) -> tuple[Array, Array]:
    """Ledoit-Wolf in every class on standardized features, as scikit-learn does with "auto".

    Returns the scatter within classes and the shrinkage of every class.
    """
    within = np.zeros((rows.shape[1], rows.shape[1]))
    shrinkages = np.zeros(int(codes.max()) + 1)
    for k in range(len(shrinkages)):
        members, w = rows[codes == k], weights[codes == k]
        centered = members - w @ members / w.sum()
        deviations = np.sqrt(w @ centered**2 / w.sum())
        # A feature that is constant in a class may deviate from its mean by rounding.
        is_constant = deviations <= ROUNDING * np.abs(members).max(axis=0)
        deviations = np.where(is_constant, 1.0, deviations)
        standardized = centered / deviations
        shrinkages[k] = s = ledoit_wolf(standardized, w)
        covariance = (standardized * w[:, None]).T @ standardized / w.sum()
        target = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        shrunk = (1 - s) * covariance + s * target
        within += w.sum() * (shrunk * deviations[:, None] * deviations)
    return within, shrinkages
