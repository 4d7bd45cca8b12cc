"""Rows in bins of their predicted probability, and how often it came true there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import AnyArray, Array


@dataclass(frozen=True)
class ReliabilityCurve:
    """Rows in bins of their predicted probability.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins.
    counts : ndarray of shape (n_bins,)
        Number of rows in every bin.
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability in every bin; NaN in an empty one.
    observed : ndarray of shape (n_bins,)
        Share of rows for which it came true; NaN in an empty one.
    """

    edges: Array
    counts: AnyArray
    predicted: Array
    observed: Array

    @property
    def calibration_error(self) -> float:
        """Mean distance of predicted and observed, weighted by the counts."""
        is_full = self.counts > 0
        gaps = np.abs(self.predicted - self.observed)[is_full]
        return float(self.counts[is_full] @ gaps / self.counts.sum())

    @property
    def interval(self) -> tuple[Array, Array]:
        """Ends of one standard error about the observed share, after Wilson: never empty."""
        n_rows = np.maximum(self.counts, 1)
        middle = (self.observed + 0.5 / n_rows) / (1 + 1 / n_rows)
        spread = self.observed * (1 - self.observed) / n_rows + 0.25 / n_rows**2
        reach = np.sqrt(spread) / (1 + 1 / n_rows)
        return middle - reach, middle + reach


def reliability_curve(
    predicted: Array, is_true: AnyArray, *, n_bins: int = 10, strategy: str = "uniform"
) -> ReliabilityCurve:
    """Rows in bins of their predicted probability.

    Parameters
    ----------
    predicted : ndarray of shape (n_samples,)
        Predicted probabilities.
    is_true : ndarray of shape (n_samples,)
        Whether they came true.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of about equally many rows.

    Returns
    -------
    curve : ReliabilityCurve
        Counts, mean predicted and observed shares.
    """
    edges = _edges(predicted, n_bins, strategy)
    place = np.searchsorted(edges[1:-1], predicted)  # on an edge: below it, as in scikit-learn
    counts = np.bincount(place, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        means = np.bincount(place, predicted, len(counts)) / counts
        shares = np.bincount(place, is_true, len(counts)) / counts
    return ReliabilityCurve(edges, counts, means, shares)


def _edges(predicted: Array, n_bins: int, strategy: str) -> Array:
    if not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}.")
    if strategy == "uniform":
        return np.linspace(0, 1, n_bins + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(predicted, np.linspace(0, 1, n_bins + 1)))
        return edges if len(edges) > 1 else np.array([edges[0], edges[0] + 1e-9])
    raise ValueError(f'strategy must be "uniform" or "quantile", got {strategy!r}.')
