"""Statistics of errors and of repeated splits, and the rule that chooses a method.

``AutoLDA``, ``iclda fit`` and ``iclda compare`` choose by the same rule
(``safest_choice``). It takes arrays of shape (candidates, rows), the safest candidate
first: the mean loss of every row over the repeats of a cross-validation, and the share
of repeats in which the row was given a wrong class. A candidate that failed has NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, fsum, inf, nan, prod, sqrt
from typing import Any

import numpy as np
from scipy import stats

from ._core import AnyArray, Array
from ._messages import NothingLearnedWarning, warn

# Whether a method learned something: see ``BaseRate.judge``.
NOTHING_LEARNED = "nothing"
UNCLEAR = "unclear"
CLEAR = "clear"

# Coverage of the intervals of an error.
CONFIDENCE = 0.9

# Labeled rows that an estimate of the error needs.
LEAST_TESTED = 8

# Mean counts of rows below this are rounding errors of zero.
_ZERO_ROWS = 1e-9

# The safer candidate is taken if its mean loss exceeds the lowest by at most this many
# standard errors.
_MARGIN_STANDARD_ERRORS = 0.5

# The safer candidate is also taken if it is right as often and its mean Brier score
# exceeds the lowest by at most this: a lower score may only mean more confidence.
_BRIER_MARGIN = 0.02

# Differences of means below this are rounding errors.
_ROUNDING = 1e-12

# Labels of a class beyond the fourth are not counted: they say nothing about the other
# classes.
_COUNTED_LABELS_PER_CLASS = 4

# The error is not estimated if the classes have fewer counted labels than this on
# average.
_MIN_MEAN_COUNTED_LABELS = 3

# Errors fall at most with this power of the number of unlabeled rows.
_UNLABELED_POWER = 0.25

_N_BOOTSTRAP_SAMPLES = 200

# A candidate that is chosen in this share of the bootstrap samples may be the choice by
# chance.
_MIN_CHOSEN_SHARE = 0.1

# An error should be below the base rate by this share of the rows to be of use.
_USEFUL_GAIN = 0.05

# Equal rows are copies if at most this many pairs of equal rows are expected by chance.
_MAX_EXPECTED_PAIRS = 0.01

# This many distinct rows do not occur equally often by chance.
_MIN_DISTINCT_ROWS = 10

# Lower ends of an interval below this share are not mentioned.
_MIN_SHOWN_SHARE = 0.001


@dataclass(frozen=True)
class BaseRate:
    """Error and Brier score of predictions that use no column.

    ``majority`` is the most frequent class, ``error`` that of assigning it to all rows,
    and ``brier`` the score of giving all rows the shares of the classes.
    """

    majority: Any
    error: float
    brier: float

    @classmethod
    def of_counts(cls, counts: Mapping[Any, float]) -> BaseRate:
        """Return the base rate of rows counted by class."""
        shares = np.array(list(counts.values())) / sum(counts.values())
        return cls(
            majority=max(counts, key=counts.__getitem__),
            error=float(1 - shares.max()),
            brier=float(1 - (shares**2).sum()) / 2,
        )

    @property
    def n_labels_needed(self) -> int:
        """Labels that would show an error 5 percentage points below the base rate.

        The number is rounded to two digits.
        """
        quantile = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
        needed = quantile**2 * self.error * (1 - self.error) / _USEFUL_GAIN**2
        return int(float(f"{needed:.1e}"))

    def judge(self, error: float, high: float, brier: float) -> str:
        """Return whether a method learned something: CLEAR, UNCLEAR or NOTHING_LEARNED.

        ``high`` is the upper end of the interval of its error, ``brier`` its score.
        With uneven classes a useful method may have no lower error than the base rate:
        probabilities that beat the shares of the classes show that it learned
        something. Rows of a single class show nothing, and the answer is UNCLEAR.
        """
        if high < self.error:
            return CLEAR
        is_no_better = error >= self.error and brier >= self.brier
        if self.error > 0 and is_no_better:
            return NOTHING_LEARNED
        return UNCLEAR


def error_interval(
    n_wrong: float, n_rows: int, level: float = 0.9
) -> tuple[float, float]:
    """Return the binomial interval of an error (Clopper and Pearson).

    ``n_wrong`` may be a mean over repeats. 0 of 20 gives 0 to 0.139; without rows the
    interval is 0 to 1.
    """
    tail = (1 - level) / 2
    n_right = n_rows - n_wrong
    low = 0.0
    if n_wrong > _ZERO_ROWS:
        low = float(stats.beta.ppf(tail, n_wrong, n_right + 1))
    high = 1.0
    if n_right > _ZERO_ROWS:
        high = float(stats.beta.isf(tail, n_wrong + 1, n_right))
    return low, high


def corrected_standard_error(
    values: Sequence[float] | Array, test_to_train: float = 0.0
) -> float:
    """Return the standard error of a mean over splits (Nadeau and Bengio 2003).

    Splits share rows, so that their values are not independent: the variance of the
    mean is (1 / number of splits + test rows / training rows) times the variance of the
    values. 0 for ``test_to_train`` means independent values. NaN below two values.
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
    """Return t and two-sided p of the corrected t-test (Nadeau and Bengio 2003)."""
    n = len(differences)
    mean = fsum(differences) / n
    error = corrected_standard_error(differences, test_to_train)
    if error == 0:
        return (0.0, 1.0) if mean == 0 else (copysign(inf, mean), 0.0)
    t = mean / error
    return t, float(2 * stats.t.sf(abs(t), n - 1))


def mean_interval(
    values: Sequence[float] | Array, confidence: float, test_to_train: float = 0.0
) -> tuple[float, float]:
    """Return a confidence interval of the mean of at least two values (Student's t)."""
    n = len(values)
    mean = fsum(values) / n
    quantile = float(stats.t.ppf((1 + confidence) / 2, n - 1))
    reach = quantile * corrected_standard_error(values, test_to_train)
    return mean - reach, mean + reach


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order given."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(scaled, 1.0))
    return adjusted.tolist()


def bin_sums(predicted: Array, is_true: AnyArray, edges: Array) -> Array:
    """Return the rows of every bin, the sum of their probabilities, and the true ones.

    The shape is (n_bins, 3). A probability on an edge is in the bin below it, as in
    scikit-learn. Sums of several sets of rows can be added.
    """
    n_bins = len(edges) - 1
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
        is_full = self.counts > 0
        if not is_full.any():
            return nan
        gaps = np.abs(self.predicted - self.observed)[is_full]
        return float(self.counts[is_full] @ gaps / self.counts.sum())

    @property
    def interval(self) -> tuple[Array, Array]:
        """One standard error about the observed share, as lower and upper ends.

        It is Wilson's, which has a width even where all rows of a bin agree.
        """
        n_rows = np.maximum(self.counts, 1)
        middle = (self.observed + 0.5 / n_rows) / (1 + 1 / n_rows)
        spread = self.observed * (1 - self.observed) / n_rows + 0.25 / n_rows**2
        reach = np.sqrt(spread) / (1 + 1 / n_rows)
        return middle - reach, middle + reach


@dataclass(frozen=True)
class ErrorEstimate:
    """Share of new rows that get a wrong class, its interval and its labeled rows."""

    error: float
    low: float
    high: float
    n_rows: int

    def __str__(self) -> str:
        level = percent_text(CONFIDENCE)
        basis = f"({level} interval from {self.n_rows:,} labeled rows)"
        if self.low < _MIN_SHOWN_SHARE:
            return f"{self.range} of new rows wrong {basis}"
        error = percent_text(self.error)
        return f"about {error} of new rows wrong, {self.range} {basis}"

    @property
    def range(self) -> str:
        """The interval in words: up to 14 %, 4.2 % to 21 %."""
        if self.low < _MIN_SHOWN_SHARE:
            return f"up to {percent_text(self.high)}"
        return f"{percent_text(self.low)} to {percent_text(self.high)}"


def percent_text(share: float) -> str:
    """Write a share in percent with the digits that few rows support: 4.2 %, 14 %."""
    # 9.95 % and more would be rounded to 10.0 %, which is one digit too many.
    is_whole = share == 0 or share >= 0.0995
    return f"{100 * share:.{0 if is_whole else 1}f} %"


def warn_if_nothing_learned(
    base: BaseRate, estimate: ErrorEstimate, brier: float
) -> None:
    """Warn if neither the error nor the Brier score is better than the base rate's."""
    if base.judge(estimate.error, estimate.high, brier) != NOTHING_LEARNED:
        return
    if estimate.n_rows < base.n_labels_needed:
        finding = f"{estimate.n_rows:,} labels cannot show that anything was learned"
        advice = (
            f"About {base.n_labels_needed:,} would show an error 5 percentage points "
            "lower"
        )
    else:
        finding = "Nothing was learned from these columns"
        advice = "Look for columns that say more"
    message = (
        f"{finding}: to call every row {base.majority!r} gets "
        f"{percent_text(base.error)} wrong, and this fit looks no better than that. "
        f"{advice}."
    )
    warn(NothingLearnedWarning(message, majority=base.majority, base_rate=base.error))


def find_copies(keys: AnyArray, columns: Iterable[AnyArray]) -> AnyArray:
    """Return the index of the first copy of every row; its own if it has no copies.

    ``keys`` are equal where rows and their labels are; ``columns`` has, for every
    column, how often each of its values occurs. Equal rows are copies if independent
    columns would hardly make any two rows equal, or if all rows occur equally often, as
    in a table that was written twice.
    """
    numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)[1:]
    n_rows = len(keys)
    own = np.arange(n_rows)
    if len(counts) == n_rows:
        return own
    # How often the table was written, if all rows occur a multiple of that.
    n_tables = 1
    if len(counts) >= _MIN_DISTINCT_ROWS:
        n_tables = int(np.gcd.reduce(counts))
    if n_tables == 1:
        chance = prod(float(np.square(each / n_rows).sum()) for each in columns)
        if chance * n_rows * (n_rows - 1) / 2 > _MAX_EXPECTED_PAIRS:
            return own
    # Six equal rows of a table that was written three times are two rows with three
    # copies each: only groups of ``n_copies`` equal rows are copies.
    n_copies = n_tables if n_tables > 1 else n_rows
    order = np.argsort(numbers, kind="stable")
    rank_among_equal = own - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.empty(n_rows, dtype=int)
    first[order] = order[own - rank_among_equal % n_copies]
    return first


def merge_copies(
    rows: Array, codes: AnyArray, weights: Array
) -> tuple[Array, AnyArray, Array]:
    """Return distinct labeled rows, their codes, and the weights of all copies."""
    # Adding 0.0 turns -0.0 into 0.0, so that equal numbers have equal bytes.
    cells = np.column_stack([codes, rows]) + 0.0
    keys = cells.view(np.dtype((np.void, cells.strides[0]))).ravel()
    value_counts = (np.unique(column, return_counts=True)[1] for column in rows.T)
    first = find_copies(keys, value_counts)
    kept = np.unique(first)
    summed_weights = np.bincount(first, weights)
    return rows[kept], codes[kept], summed_weights[kept]


def row_losses(probabilities: Array, codes: AnyArray) -> tuple[Array, Array]:
    """Return every row's Brier score, and 1 where its most probable class is wrong.

    Both are NaN for a row whose probabilities are.
    """
    truth = np.eye(probabilities.shape[-1])[codes]
    losses = np.square(probabilities - truth).sum(axis=-1) / 2
    is_wrong = (probabilities.argmax(axis=-1) != codes).astype(np.float64)
    return losses, np.where(np.isfinite(losses), is_wrong, np.nan)


def safest_choice(losses: Array, is_wrong: Array) -> int:
    """Return the index of the safest candidate with a loss hardly above the lowest.

    That is within half a standard error of the difference to the lowest, row by row, or
    within a Brier score of 0.02 if no more rows are wrong.
    """
    has_losses = np.isfinite(losses).all(axis=1)
    if not has_losses.any():
        raise ValueError(f"All {len(losses)} candidates lack losses: no fit succeeded.")
    losses = losses[has_losses]
    every_row_once = np.ones((1, losses.shape[1]))
    is_close = _are_close(losses, is_wrong[has_losses], every_row_once)[0]
    return int(np.flatnonzero(has_losses)[is_close.argmax()])


def _are_close(losses: Array, is_wrong: Array, counts: Array) -> AnyArray:
    """Return which candidates have a loss hardly above the lowest, in every sample.

    The shape is (samples, candidates); ``counts`` (samples, rows) is how often each row
    is in each sample.
    """
    totals = counts.sum(axis=1, keepdims=True)
    means = counts @ losses.T / totals
    best = means.argmin(axis=1)
    excess = means - means.min(axis=1, keepdims=True)

    # Variance of the differences to the best, by the second moments of all pairs.
    pairs = np.square(losses[:, None] - losses[None])
    moments = np.einsum("sr,cbr->scb", counts, pairs, optimize=True)
    moments = moments / totals[:, :, None]
    moments = np.take_along_axis(moments, best[:, None, None], axis=2)[:, :, 0]
    variances = np.maximum(moments - excess**2, 0.0) / np.maximum(totals - 1, 1)
    margins = _MARGIN_STANDARD_ERRORS * np.sqrt(variances) + _ROUNDING

    errors = counts @ is_wrong.T / totals
    errors_of_best = np.take_along_axis(errors, best[:, None], axis=1)
    is_right_as_often = errors <= errors_of_best + _ROUNDING
    is_only_less_sure = is_right_as_often & (excess <= _BRIER_MARGIN)
    return np.asarray((excess <= margins) | is_only_less_sure)


def estimate_error(
    losses: Array, is_wrong: Array, seed: int = 0
) -> ErrorEstimate | None:
    """Estimate the error of the candidate that ``safest_choice`` takes.

    Bootstrap bias corrected cross-validation (Tsamardinos, Greasidou and Borboudakis
    2018) avoids the optimism of choosing and judging by the same rows: the choice is
    made on a sample of the rows and judged on the others, many times. The interval
    spans Clopper and Pearson's for that error and for the error of every candidate that
    was chosen in a tenth of the samples, because chance decided between them.

    Returns None for fewer than ``LEAST_TESTED`` rows.
    """
    n_rows = losses.shape[1]
    if n_rows < LEAST_TESTED:
        return None
    has_losses = np.isfinite(losses).all(axis=1)
    losses = losses[has_losses]
    is_wrong = is_wrong[has_losses]

    rng = np.random.default_rng(seed)
    equal_shares = np.full(n_rows, 1 / n_rows)
    drawn = rng.multinomial(n_rows, equal_shares, size=_N_BOOTSTRAP_SAMPLES)
    counts = drawn.astype(np.float64)
    # A sample that happens to hold every row leaves none to judge the choice by.
    counts = counts[(counts == 0).any(axis=1)]
    is_left_out = counts == 0
    chosen = _are_close(losses, is_wrong, counts).argmax(axis=1)
    n_wrong = (is_wrong[chosen] * is_left_out).sum(axis=1)
    error = float(n_wrong.sum() / is_left_out.sum())

    times_chosen = np.bincount(chosen, minlength=len(losses))
    is_often_chosen = times_chosen >= _MIN_CHOSEN_SHARE * len(chosen)
    errors = [error, *is_wrong[is_often_chosen].mean(axis=1).tolist()]
    intervals = [error_interval(each * n_rows, n_rows, CONFIDENCE) for each in errors]
    return ErrorEstimate(
        error=error,
        low=min(low for low, _ in intervals),
        high=max(high for _, high in intervals),
        n_rows=n_rows,
    )


def estimate_final_error(
    losses: Array,
    is_wrong: Array,
    labels: AnyArray,
    n_folds: int,
    of_unlabeled: float,
    seed: int = 0,
) -> ErrorEstimate | None:
    """Estimate the error of the fit to all rows from the fits of a cross-validation.

    The fits had fewer rows than the final one: the lower end of the interval allows for
    what more rows may gain. ``of_unlabeled`` is the share of the unlabeled rows that
    the fits had. ``labels`` is the number of labels of every class; if they are few,
    the fits had far less to learn from than the final one, and the result is None.
    """
    counted_labels = np.minimum(labels, _COUNTED_LABELS_PER_CLASS)
    if counted_labels.mean() < _MIN_MEAN_COUNTED_LABELS:
        return None
    estimate = estimate_error(losses, is_wrong, seed)
    if estimate is None:
        return None
    gain = sqrt(1 - 1 / n_folds) * of_unlabeled**_UNLABELED_POWER
    return replace(estimate, low=estimate.low * gain)


def estimate_as_json(estimate: ErrorEstimate | None) -> dict[str, Any] | None:
    """Return the fields of an estimate, and its words for people."""
    if estimate is None:
        return None
    return {**vars(estimate), "text": str(estimate)}
