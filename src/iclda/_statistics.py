"""Statistics of errors, of repeated splits, and of predicted probabilities in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import copysign, fsum, inf, nan, sqrt
from typing import Any

import numpy as np
from scipy import stats

from ._core.types import AnyArray, Array

_NO_ROW = 1e-9  # mean counts of rows below this are zero
NOTHING, UNCLEAR, CLEAR = "nothing", "unclear", "clear"  # whether something was learned


@dataclass(frozen=True)
class BaseRate:
    """Error and Brier score of predictions that use no column.

    ``error`` is that of giving all rows the most frequent class, ``brier`` the score of giving all
    rows the shares of the classes.
    """

    majority: Any  # the most frequent class
    error: float
    brier: float

    @classmethod
    def of_counts(cls, counts: Mapping[Any, float]) -> BaseRate:
        """The base rate of rows counted by class."""
        shares = np.array(list(counts.values())) / sum(counts.values())
        majority = max(counts, key=counts.__getitem__)
        return cls(majority, float(1 - shares.max()), float(1 - (shares**2).sum()) / 2)

    def judge(self, error: float, high: float, brier: float) -> str:
        """Whether a method learned something, by its error, the end of its interval, and score.

        Where classes are uneven no error may be lower than the base rate. Probabilities that beat
        the shares of the classes show that something was learned all the same.
        """
        if high < self.error:
            return CLEAR
        return NOTHING if error >= self.error and brier >= self.brier else UNCLEAR


def error_interval(n_wrong: float, n_rows: int, level: float = 0.9) -> tuple[float, float]:
    """Binomial interval of an error (Clopper and Pearson); from 0 to 1 without rows.

    ``n_wrong`` may be a mean over repeats. 0 of 20 gives 0 to 0.139.
    """
    tail, n_right = (1 - level) / 2, n_rows - n_wrong
    low = float(stats.beta.ppf(tail, n_wrong, n_right + 1)) if n_wrong > _NO_ROW else 0.0
    high = float(stats.beta.isf(tail, n_wrong + 1, n_right)) if n_right > _NO_ROW else 1.0
    return low, high


def corrected_standard_error(values: Sequence[float] | Array, test_to_train: float = 0.0) -> float:
    """Standard error of the mean of values, one a split (Nadeau and Bengio 2003).

    Splits share rows, so that their values are not independent: the variance of the mean is taken
    as (1 / number of splits + test rows / training rows) times that of the values. 0 for
    ``test_to_train`` means independent values. NaN below two values.
    """
    n = len(values)
    if n < 2:
        return nan
    mean = fsum(values) / n
    variance = fsum((value - mean) ** 2 for value in values) / (n - 1)
    return sqrt((1 / n + test_to_train) * variance)


def corrected_t_test(
    differences: Sequence[float] | Array, test_to_train: float
) -> tuple[float, float]:
    """t and two-sided p of the corrected resampled t-test (Nadeau and Bengio 2003)."""
    n = len(differences)
    if n < 2:
        return 0.0, 1.0
    mean, error = fsum(differences) / n, corrected_standard_error(differences, test_to_train)
    if error == 0:
        return (0.0, 1.0) if mean == 0 else (copysign(inf, mean), 0.0)
    return mean / error, float(2 * stats.t.sf(abs(mean / error), n - 1))


def mean_interval(
    values: Sequence[float] | Array, confidence: float, test_to_train: float = 0.0
) -> tuple[float, float]:
    """Confidence interval of the mean, by Student's t; one point below two values."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    n = len(values)
    mean = fsum(values) / n
    if n < 2:
        return mean, mean
    quantile = float(stats.t.ppf((1 + confidence) / 2, n - 1))
    reach = quantile * corrected_standard_error(values, test_to_train)
    return mean - reach, mean + reach


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(scaled, 1.0))
    return adjusted.tolist()


def finite_means(scores: Array) -> tuple[Array, Array]:
    """Mean and standard error of the finite scores of every row; NaN where there are too few."""
    is_finite = np.isfinite(scores)
    n_scores, values = is_finite.sum(axis=1), np.where(is_finite, scores, np.nan)
    mean = _ratio(np.nansum(values, axis=1), n_scores)
    squares = np.nansum(np.square(values - mean[:, None]), axis=1)
    return mean, np.sqrt(_ratio(squares, n_scores * (n_scores - 1)))


def _ratio(sums: Array, counts: AnyArray) -> Array:
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)


def bin_sums(predicted: Array, is_true: AnyArray, edges: Array) -> Array:
    """(n_bins, 3): rows, sum of their predicted probabilities, and number of them that are true.

    A probability on an edge is in the bin below it, as in scikit-learn. Sums of several sets of
    rows can be added.
    """
    place = np.searchsorted(edges[1:-1], predicted)
    columns = (None, predicted, is_true)
    return np.column_stack([np.bincount(place, one, len(edges) - 1) for one in columns])


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
        """The curve of ``bin_sums``."""
        n_rows = sums[:, 0]
        means = (_ratio(sums[:, column], n_rows) for column in (1, 2))
        return cls(edges, n_rows.astype(int), *means)

    @property
    def calibration_error(self) -> float:
        """Mean distance of predicted and observed, weighted by the counts; NaN without rows."""
        is_full = self.counts > 0
        if not is_full.any():
            return nan
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
