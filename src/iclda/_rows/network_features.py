"""Whether rows are features of a network or a table: decided by what the columns are.

Features of a network are many columns of measurements in one unit. Their lengths carry
meaning, and rows are scaled to length 1. Columns of a table have units of their own.
"""

from __future__ import annotations

import numpy as np

from .._core import AnyArray

# Rows with at least this many columns that measure something may be features of a
# network ...
MANY_FEATURES = 64
# ... if these columns have about one unit: the standard deviations of nearly all of
# them, those between two quantiles, lie within this factor.
_MAX_SPREAD_RATIO = 30.0
_SPREAD_QUANTILES = (0.05, 0.95)
# A column whose standard deviation exceeds the median by more than this factor would
# decide the length of a row alone.
_MAX_RATIO_TO_MEDIAN = 50.0
# A column measures something if a sample of it has more distinct values than this: 0
# and 1 of categories are no measurements.
_MIN_DISTINCT_VALUES = 10


def are_network_features(sample: AnyArray) -> bool:
    """Return whether rows are features of a network, and not a table."""
    if sample.shape[1] < MANY_FEATURES:
        return False
    # In few rows, a column of measurements has as many distinct values as rows.
    n_category_values = min(_MIN_DISTINCT_VALUES, len(sample) - 1)
    ordered = np.sort(sample.T, axis=1)
    is_new_value = ordered[:, 1:] != ordered[:, :-1]
    n_values = 1 + np.count_nonzero(is_new_value, axis=1)
    is_measured = n_values > n_category_values
    if np.count_nonzero(is_measured) < MANY_FEATURES:
        return False
    spread = sample[:, is_measured].std(axis=0)
    low, high = np.quantile(spread, _SPREAD_QUANTILES)
    if high > _MAX_SPREAD_RATIO * low:
        return False
    return bool(spread.max() <= _MAX_RATIO_TO_MEDIAN * np.median(spread))
