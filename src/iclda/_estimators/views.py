"""The view of a fit: which one a classifier takes, and how it is learned from all rows.

What a view does to rows is in ``_rows/views.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._core import Array
from .._core.frame import frame_of
from .._rows.chained import ChainedRows
from .._rows.network_features import MANY_FEATURES, are_network_features
from .._rows.views import (
    NORMALIZE,
    STANDARDIZE,
    WHITEN,
    WHITENED_KERNEL,
    Bounds,
    Summary,
    View,
    learn_bounds,
    learn_view,
)
from .rows_reader import RowSource

# The value of ``view`` that chooses by what the rows are.
AUTO_VIEW = "auto"
# A view is learned from a sample of this many rows, and the moments of all rows.
_SAMPLE_ROWS = 4096
# Views whose matrix has a column for every column of the rows.
_MATRIX_VIEWS = (WHITEN, WHITENED_KERNEL)


def have_network_features(sources: Sequence[RowSource]) -> bool:
    """Return whether rows are features of a network, judged by a sample of them."""
    if sources[0].n_features < MANY_FEATURES:
        return False
    sample, _ = _every_row(sources).sample(_SAMPLE_ROWS, 0)
    return are_network_features(sample)


def find_bounds(sources: Sequence[RowSource]) -> Bounds:
    """Return the bounds of the columns, learned from a sample of the rows."""
    sample, _ = _every_row(sources).sample(_SAMPLE_ROWS, 0)
    return learn_bounds(sample)


def find_view(
    view: str | View | None, sources: Sequence[RowSource], *, is_network: bool
) -> View | None:
    """Return the view that rows are mapped by; None if they stay as they are.

    ``view`` is the parameter of a classifier, or the view of an earlier fit.
    """
    if view is None or not isinstance(view, str):
        return view
    if view == AUTO_VIEW:
        view = NORMALIZE if is_network else STANDARDIZE
    with np.errstate(over="ignore", invalid="ignore"):
        summary = _summarize(sources, has_covariance=view in _MATRIX_VIEWS)
    if not np.isfinite(summary.spread).all():
        # NaN and infinity show in the sums. The error names the row and the column.
        for source in sources:
            source.check_finite()
    return learn_view(view, summary)


def _every_row(sources: Sequence[RowSource]) -> ChainedRows:
    """Return the labeled and the unlabeled rows."""
    parts = [replace(source, is_member=None).rows for source in sources]
    return ChainedRows(parts, sources[0].n_features)


def _summarize(sources: Sequence[RowSource], *, has_covariance: bool) -> Summary:
    """Return what a view learns from: a sample, and in one pass the moments."""
    rows = _every_row(sources)
    sample, weights = rows.sample(_SAMPLE_ROWS, 0)
    if rows.n_rows <= len(sample):
        # All rows are in the sample, which saves the pass.
        return summary_of_rows(sample, weights, has_covariance=has_covariance)
    frame = frame_of(sample)
    moments = rows.moments(frame)
    deviations = np.sqrt(np.diag(moments.covariance))
    return Summary(
        sample=sample,
        weights=weights,
        center=frame.restore(moments.mean),
        spread=deviations * frame.scale,
        unit=frame.scale,
        covariance=moments.covariance,
    )


def summary_of_rows(
    rows: Array, weights: Array, *, has_covariance: bool = False
) -> Summary:
    """Return what a view learns from all rows, which are in memory."""
    frame = frame_of(rows)
    in_frame = frame.apply(rows)
    shares = weights / weights.sum()
    mean = shares @ in_frame
    centered = in_frame - mean
    deviations = np.sqrt(shares @ centered**2)
    covariance = None
    if has_covariance:
        covariance = (shares * centered.T) @ centered
    return Summary(
        sample=rows,
        weights=weights,
        center=frame.restore(mean),
        spread=deviations * frame.scale,
        unit=frame.scale,
        covariance=covariance,
    )
