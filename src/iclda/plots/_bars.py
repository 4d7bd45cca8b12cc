"""Bins, scales and thresholds of histograms of labeled and unlabeled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from .._packages import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 20, 50  # the fewest and the most by themselves


def edges_of(values: Array, bins: Any) -> Array:
    """Edges of the bins that all groups share."""
    if isinstance(bins, str) and bins == "auto":
        # The rule of Freedman and Diaconis makes thousands of bins of a few far rows.
        bins = int(np.clip(len(np.histogram_bin_edges(values, "auto")) - 1, *_BINS))
    if np.ndim(bins) == 0 and not isinstance(bins, str) and (bins != int(bins) or bins < 1):
        raise ValueError(
            f'bins must be a whole number of at least 1, edges in order, or "auto", got {bins!r}.'
        )
    return np.histogram_bin_edges(values, bins)


def count_both_ways(ax: Axes, scale: float) -> None:
    """Ticks in numbers of rows, above the line and, on another scale, below it."""
    ticker = require("matplotlib.ticker", "plots", "plots")
    low, high = ax.get_ylim()
    locator = ticker.MaxNLocator(nbins=4, integer=True, steps=[1, 2, 5, 10])
    above = [count for count in locator.tick_values(0, high) if 0 <= count <= high]
    locator = ticker.MaxNLocator(nbins=2, integer=True, steps=[1, 2, 5, 10])
    below = [count for count in locator.tick_values(0, low / scale) if 0 < count <= low / scale]
    ax.set_yticks(
        [*above, *(count * scale for count in below)],
        [f"{count:,.0f}" for count in (*above, *below)],
    )


def threshold_of(centers: Array, priors: Array) -> float:
    """Where prior times density of two classes of variance 1 are equal."""
    gap = centers[1] - centers[0]
    if gap == 0:
        return float("nan")
    with np.errstate(divide="ignore"):
        return float(centers.mean() + (np.log(priors[0]) - np.log(priors[1])) / gap)
