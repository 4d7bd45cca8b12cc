"""Tests and intervals of repeated splits, and how reliable probabilities are.

The splits of a study share rows, so that the values of a measure on them are not
independent. ``corrected_t_test`` and ``mean_interval`` allow for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, fsum, inf, nan, sqrt

import numpy as np
from scipy import stats

from ._core import AnyArray, Array


def corrected_standard_error(
    values: Sequence[float] | Array, test_to_train: float = 0.0
) -> float:
    """Return the standard error of a mean over splits (Nadeau and Bengio 2003).

    Splits share rows, so that their values are not independent: the variance of the
    mean is (1 / number of splits + test rows / training rows) times the variance of the
    values. 0 for ``test_to_train`` means independent values. NaN below two values.
    """
    n_splits = len(values)
    if n_splits < 2:
        return nan
    mean = fsum(values) / n_splits
    squares = fsum((value - mean) ** 2 for value in values)
    variance = squares / (n_splits - 1)
    return sqrt((1 / n_splits + test_to_train) * variance)


def corrected_t_test(
    differences: Sequence[float] | Array, test_to_train: float
) -> tuple[float, float]:
    """Return t and two-sided p of the corrected t-test (Nadeau and Bengio 2003)."""
    n_splits = len(differences)
    mean = fsum(differences) / n_splits
    error = corrected_standard_error(differences, test_to_train)
    # Differences that are all equal have no error: any but zero is then beyond doubt.
    if error == 0:
        return (0.0, 1.0) if mean == 0 else (copysign(inf, mean), 0.0)
    t = mean / error
    upper_tail = stats.t.sf(abs(t), n_splits - 1)
    return t, float(2 * upper_tail)


def mean_interval(
    values: Sequence[float] | Array, confidence: float, test_to_train: float = 0.0
) -> tuple[float, float]:
    """Return a confidence interval of the mean of at least two values (Student's t)."""
    n_splits = len(values)
    mean = fsum(values) / n_splits
    upper_level = (1 + confidence) / 2
    quantile = float(stats.t.ppf(upper_level, n_splits - 1))
    reach = quantile * corrected_standard_error(values, test_to_train)
    return mean - reach, mean + reach


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order given."""
    order = np.argsort(p_values, kind="stable")
    # The smallest p-value is multiplied by the number of tests, the next one by one
    # less; none may be smaller than those before it.
    n_tests_left = np.arange(len(order), 0, -1)
    scaled = n_tests_left * np.asarray(p_values)[order]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(scaled, 1.0))
    return adjusted.tolist()


def bin_sums(predicted: Array, is_true: AnyArray, edges: Array) -> Array:
    """Return the rows of every bin, the sum of their probabilities, and the true ones.

    The shape is (n_bins, 3). A probability on an edge is in the bin below it, as in
    scikit-learn. Sums of several sets of rows can be added.
    """
    n_bins = len(edges) - 1
    # The outer edges are left out: whatever lies beyond them is in the outer bins.
    bins = np.searchsorted(edges[1:-1], predicted)
    n_rows = np.bincount(bins, minlength=n_bins)
    probabilities = np.bincount(bins, predicted, n_bins)
    n_true = np.bincount(bins, is_true, n_bins)
    return np.column_stack([n_rows, probabilities, n_true])


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
        Observed share in every bin; NaN in an empty one.
    """

    edges: Array
    counts: AnyArray
    predicted: Array
    observed: Array

    @classmethod
    def from_sums(cls, edges: Array, sums: Array) -> ReliabilityCurve:
        """Return the curve of ``bin_sums``."""
        counts = sums[:, 0]
        # Empty bins have no means.
        with np.errstate(invalid="ignore"):
            predicted = sums[:, 1] / counts
            observed = sums[:, 2] / counts
        return cls(edges, counts.astype(int), predicted, observed)

    @property
    def calibration_error(self) -> float:
        """Mean distance of predicted and observed over the rows; NaN without rows."""
        has_rows = self.counts > 0
        if not has_rows.any():
            return nan
        counts = self.counts[has_rows]
        gaps = np.abs(self.predicted - self.observed)[has_rows]
        return float(counts @ gaps / counts.sum())

    @property
    def interval(self) -> tuple[Array, Array]:
        """One standard error about the observed share, as lower and upper ends.

        It is Wilson's, which has a width even where all rows of a bin agree.
        """
        n_rows = np.maximum(self.counts, 1)
        divisor = 1 + 1 / n_rows
        middle = (self.observed + 0.5 / n_rows) / divisor
        variance = self.observed * (1 - self.observed) / n_rows
        reach = np.sqrt(variance + 0.25 / n_rows**2) / divisor
        return middle - reach, middle + reach
