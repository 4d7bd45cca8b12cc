"""Whether many unlabeled rows resemble none of the classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._messages import percent_text, say

# The share is estimated from at most this many unlabeled rows.
MAX_CHECKED_ROWS = 4_096
# This share of the rows of known classes has a novelty above 0.95 ...
_SHARE_OF_KNOWN = 0.05
# ... and if more than this share of all rows has, some rows are of no class: on tables
# whose classes all have labels, that is rare (docs/novelty.md).
_MAX_SHARE = 0.25
# Where there are fewer unlabeled rows for each feature, they have shaped the covariance
# of all rows so much that they look newer than rows held out.
_MIN_ROWS_PER_FEATURE = 5
_WARNING = (
    "About {share} of the unlabeled rows resemble none of the classes: label some with "
    "`iclda ask` and {@unknown}."
)


def share_of_no_class(classifier: Any, rows: Any) -> float:
    """Return about how many of some unlabeled rows resemble no class; 0 unless clear.

    A classifier without novelty, or with too few labels or rows for it, tells nothing.
    """
    if not hasattr(classifier, "novelty"):
        return 0.0
    if len(rows) < max(1, _MIN_ROWS_PER_FEATURE * classifier.n_features_in_):
        return 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        novelty: Array = np.asarray(classifier.novelty(rows))
    share = float((novelty > 1 - _SHARE_OF_KNOWN).mean())
    if caught or share <= _MAX_SHARE:
        return 0.0
    return (share - _SHARE_OF_KNOWN) / (1 - _SHARE_OF_KNOWN)


def warnings_on_no_class(share: float) -> list[str]:
    """Warn of unlabeled rows that resemble no class, if there are any."""
    if not share:
        return []
    return [say(_WARNING, share=percent_text(share))]


def sample_of(is_unlabeled: AnyArray) -> AnyArray:
    """Return a mask of at most ``MAX_CHECKED_ROWS`` unlabeled rows."""
    rows = np.flatnonzero(is_unlabeled)
    if len(rows) > MAX_CHECKED_ROWS:
        rng = np.random.default_rng(0)
        rows = rng.choice(rows, MAX_CHECKED_ROWS, replace=False)
    is_drawn = np.zeros(len(is_unlabeled), dtype=bool)
    is_drawn[rows] = True
    return is_drawn
