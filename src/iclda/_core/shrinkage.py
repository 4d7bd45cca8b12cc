"""Ledoit and Wolf's shrinkage of a covariance towards a multiple of the identity."""

from __future__ import annotations

import numpy as np

from .types import Array


def ledoit_wolf(rows: Array, weights: Array) -> float:
    """Shrinkage in [0, 1] for weighted rows, about their mean; weights count like repetitions."""
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
    noise = min((float(weights @ squared**2) / total - norm) / total, distance)
    return float(noise / distance) if noise > 0 else 0.0
