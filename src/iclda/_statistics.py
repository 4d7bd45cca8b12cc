"""Statistics of errors and of repeated splits, and the rule that chooses a method by its losses.

The rule is one for ``AutoLDA``, ``iclda fit`` and ``iclda compare``. It takes arrays of shape
(candidates, rows): the mean loss of every row over the repeats of a cross-validation, the safest
candidate first. A candidate that failed has NaN.
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

_NO_ROW = 1e-9  # mean counts of rows below this are zero
NOTHING, UNCLEAR, CLEAR = "nothing", "unclear", "clear"  # whether something was learned
CONFIDENCE = 0.9  # of intervals of the error
LEAST_TESTED = 8  # labeled rows that an estimate of the error needs
_MARGIN = 0.5  # standard errors above the lowest loss within which the safer candidate is taken
# A lower score of a candidate that is no more often right may only mean that it is surer.
_SCORE_MARGIN = 0.02
_ENOUGH_A_CLASS = 4  # labels: more of one class say nothing about the others
_LEAST_A_CLASS = 3  # mean of such numbers, below which the error is not estimated
_OF_UNLABELED = (
    0.25  # power of their number by which errors may fall with unlabeled rows
)
_N_SAMPLES = 200  # of the bootstrap
_CHOSEN_SHARE = (
    0.1  # of the samples: a candidate chosen that often may be chosen by chance
)
_NOTABLE = 0.05  # of rows, by which an error should be below the base rate to be of use
_CHANCE_OF_PAIRS = (
    0.01  # expected pairs of equal rows, up to which equal rows are copies
)
_MANY_ROWS = (
    10  # distinct rows: so many do not occur equally often, or in pairs, by chance
)
_SMALLEST_SHARE = 0.001  # smaller lower ends of an interval are not mentioned


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

    @property
    def n_labels_needed(self) -> int:
        """Labels that would show an error 5 percentage points below the base rate, two digits."""
        quantile = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
        needed = quantile**2 * self.error * (1 - self.error) / _NOTABLE**2
        return int(float(f"{needed:.1e}"))

    def judge(self, error: float, high: float, brier: float) -> str:
        """Whether a method learned something, by its error, the end of its interval, and score.

        Where classes are uneven no error may be lower than the base rate. Probabilities that beat
        the shares of the classes show that something was learned all the same. Rows of one class
        show nothing.
        """
        if high < self.error:
            return CLEAR
        return NOTHING if 0 < self.error <= error and brier >= self.brier else UNCLEAR


def error_interval(
    n_wrong: float, n_rows: int, level: float = 0.9
) -> tuple[float, float]:
    """Binomial interval of an error (Clopper and Pearson); from 0 to 1 without rows.

    ``n_wrong`` may be a mean over repeats. 0 of 20 gives 0 to 0.139.
    """
    tail, n_right = (1 - level) / 2, n_rows - n_wrong
    low = (
        float(stats.beta.ppf(tail, n_wrong, n_right + 1)) if n_wrong > _NO_ROW else 0.0
    )
    high = (
        float(stats.beta.isf(tail, n_wrong + 1, n_right)) if n_right > _NO_ROW else 1.0
    )
    return low, high


def corrected_standard_error(
    values: Sequence[float] | Array, test_to_train: float = 0.0
) -> float:
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
    mean, error = (
        fsum(differences) / n,
        corrected_standard_error(differences, test_to_train),
    )
    if error == 0:
        return (0.0, 1.0) if mean == 0 else (copysign(inf, mean), 0.0)
    return mean / error, float(2 * stats.t.sf(abs(mean / error), n - 1))


def mean_interval(
    values: Sequence[float] | Array, confidence: float, test_to_train: float = 0.0
) -> tuple[float, float]:
    """Confidence interval of the mean of two values or more, by Student's t."""
    n = len(values)
    mean = fsum(values) / n
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
        with np.errstate(invalid="ignore"):  # empty bins have no means
            means = (sums[:, 1:] / sums[:, :1]).T
        return cls(edges, sums[:, 0].astype(int), *means)

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


@dataclass(frozen=True)
class ErrorEstimate:
    """Share of new rows that get a wrong class, its interval, and the rows behind it."""

    error: float
    low: float
    high: float
    n_rows: int

    def __str__(self) -> str:
        rows = f"{100 * CONFIDENCE:.0f} % interval from {self.n_rows:,} labeled rows"
        if self.low < _SMALLEST_SHARE:
            return f"{self.range} of new rows wrong ({rows})"
        return (
            f"about {percent_text(self.error)} of new rows wrong, {self.range} ({rows})"
        )

    @property
    def range(self) -> str:
        """The interval in words: up to 14 %, 4.2 % to 21 %."""
        if self.low < _SMALLEST_SHARE:
            return f"up to {percent_text(self.high)}"
        return f"{percent_text(self.low)} to {percent_text(self.high)}"


def percent_text(share: float) -> str:
    """A share in percent with no more digits than few rows support: 4.2 %, 14 %."""
    return f"{100 * share:.{0 if share >= 0.0995 or share == 0 else 1}f} %"


def warn_if_nothing_learned(
    base: BaseRate, estimate: ErrorEstimate, brier: float
) -> None:
    """Warn if error and Brier score of a method are no better than those of the base rate."""
    if base.judge(estimate.error, estimate.high, brier) != NOTHING:
        return
    first, advice = (
        "Nothing was learned from these columns",
        "Look for columns that say more",
    )
    if estimate.n_rows < base.n_labels_needed:
        first = f"{estimate.n_rows:,} labels cannot show that anything was learned"
        advice = f"About {base.n_labels_needed:,} would show an error 5 percentage points lower"
    message = (
        f"{first}: to call every row {base.majority!r} gets {percent_text(base.error)} wrong, and "
        f"this fit looks no better than that. {advice}."
    )
    warn(NothingLearnedWarning(message, majority=base.majority, base_rate=base.error))


def find_copies(keys: AnyArray, columns: Iterable[AnyArray]) -> AnyArray:
    """Index of the first copy of every row.

    ``keys`` are equal where rows and their labels are, and ``columns`` holds for every column how
    often each of its values occurs. Equal rows are copies if columns that were independent would
    hardly make any two rows equal, or if all rows occur equally often, as in a table written twice.
    Of other rows the index is their own.
    """
    numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)[1:]
    n_rows, n_times = (
        len(keys),
        int(np.gcd.reduce(counts)) if len(counts) >= _MANY_ROWS else 1,
    )
    own = np.arange(n_rows)
    if len(counts) == n_rows:
        return own
    if n_times == 1:
        chance = prod(float(np.square(each / n_rows).sum()) for each in columns)
        if chance * n_rows * (n_rows - 1) / 2 > _CHANCE_OF_PAIRS:
            return own
    # Of rows that occur twice in a table written three times, each three are copies.
    size = n_times if n_times > 1 else n_rows
    order = np.argsort(numbers, kind="stable")
    nth = own - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.empty(n_rows, dtype=int)
    first[order] = order[own - nth % size]
    return first


def merge_copies(
    rows: Array, codes: AnyArray, weights: Array
) -> tuple[Array, AnyArray, Array]:
    """Labeled rows without further copies of them, their codes, and the weights of all copies."""
    cells = np.column_stack([codes, rows]) + 0.0  # without -0.0
    keys = cells.view(np.dtype((np.void, cells.strides[0]))).ravel()
    first = find_copies(
        keys, (np.unique(each, return_counts=True)[1] for each in rows.T)
    )
    kept, sums = np.unique(first), np.bincount(first, weights)
    return rows[kept], codes[kept], sums[kept]


def row_losses(probabilities: Array, codes: AnyArray) -> tuple[Array, Array]:
    """Brier score of every row, and whether the most probable class is wrong (0 or 1)."""
    truth = np.eye(probabilities.shape[-1])[codes]
    losses = np.square(probabilities - truth).sum(axis=-1) / 2
    is_wrong = (probabilities.argmax(axis=-1) != codes).astype(np.float64)
    return losses, np.where(np.isfinite(losses), is_wrong, np.nan)


def safest_choice(losses: Array, is_wrong: Array) -> int:
    """Index of the safest candidate whose mean loss is hardly above the lowest.

    That is within ``_MARGIN`` standard errors of the difference to the lowest, row by row, or
    within ``_SCORE_MARGIN`` if no more rows are wrong.
    """
    is_known = np.isfinite(losses).all(axis=1)
    if not is_known.any():
        raise ValueError(f"All {len(losses)} candidates lack losses: no fit succeeded.")
    known = losses[is_known]
    is_close = _are_close(known, is_wrong[is_known], np.ones((1, known.shape[1])))[0]
    return int(np.flatnonzero(is_known)[is_close.argmax()])


def _are_close(losses: Array, is_wrong: Array, counts: Array) -> AnyArray:
    """Candidates whose loss is hardly above the lowest, for every sample of the rows.

    (samples, candidates); ``counts`` is how often each row is in each sample.
    """
    totals = counts.sum(axis=1, keepdims=True)
    means = counts @ losses.T / totals
    best = means.argmin(axis=1)
    excess = means - means.min(axis=1, keepdims=True)
    # Variance of the differences to the best, by the second moments of all pairs.
    pairs = np.square(losses[:, None] - losses[None])
    squares = (
        np.einsum("sr,cbr->scb", counts, pairs, optimize=True) / totals[:, :, None]
    )
    squares = np.take_along_axis(squares, best[:, None, None], axis=2)[:, :, 0]
    variances = np.maximum(squares - excess**2, 0.0) / np.maximum(totals - 1, 1)
    errors = counts @ is_wrong.T / totals
    is_as_right = errors <= np.take_along_axis(errors, best[:, None], axis=1) + 1e-12
    is_surer = is_as_right & (excess <= _SCORE_MARGIN)
    return np.asarray((excess <= _MARGIN * np.sqrt(variances) + 1e-12) | is_surer)


def estimate_error(
    losses: Array, is_wrong: Array, seed: int = 0
) -> ErrorEstimate | None:
    """Error of what ``safest_choice`` takes, without the optimism of choosing by the same rows.

    Bootstrap bias corrected cross-validation (Tsamardinos, Greasidou and Borboudakis 2018): the
    choice is made on a sample of the rows and judged on the others, many times. The interval spans
    Clopper and Pearson's for that share of the rows and for the error of every candidate that was
    chosen in a tenth of the samples: chance decided between them. None for fewer than
    ``LEAST_TESTED`` rows.
    """
    n_rows = losses.shape[1]
    if n_rows < LEAST_TESTED:
        return None
    is_known = np.isfinite(losses).all(axis=1)
    losses, is_wrong = losses[is_known], is_wrong[is_known]
    rng, shares = np.random.default_rng(seed), np.full(n_rows, 1 / n_rows)
    counts = rng.multinomial(n_rows, shares, size=_N_SAMPLES).astype(np.float64)
    left_out = counts == 0
    counts, left_out = counts[left_out.any(axis=1)], left_out[left_out.any(axis=1)]
    chosen = _are_close(losses, is_wrong, counts).argmax(axis=1)
    sums = (is_wrong[chosen] * left_out).sum(axis=1)
    error = float(sums.sum() / left_out.sum())
    is_often = np.bincount(chosen, minlength=len(losses)) >= _CHOSEN_SHARE * len(chosen)
    errors = [error, *is_wrong[is_often].mean(axis=1).tolist()]
    ends = np.array(
        [error_interval(each * n_rows, n_rows, CONFIDENCE) for each in errors]
    )
    return ErrorEstimate(error, float(ends.min()), float(ends.max()), n_rows)


def estimate_final_error(
    losses: Array,
    is_wrong: Array,
    labels: AnyArray,
    n_folds: int,
    of_unlabeled: float,
    seed: int = 0,
) -> ErrorEstimate | None:
    """``estimate_error`` for the fit to all rows: the lower end allows for what folds lacked.

    ``labels`` is the number of labels of every class; with few of them fits of a cross-validation
    have much less to learn from than the last, and the result is None. ``of_unlabeled`` is the
    share of the unlabeled rows that the fits had.
    """
    if np.minimum(labels, _ENOUGH_A_CLASS).mean() < _LEAST_A_CLASS:
        return None
    estimate = estimate_error(losses, is_wrong, seed)
    if estimate is None:
        return None
    gain = sqrt(1 - 1 / n_folds) * of_unlabeled**_OF_UNLABELED
    return replace(estimate, low=estimate.low * gain)


def estimate_as_json(estimate: ErrorEstimate | None) -> dict[str, Any] | None:
    """Fields of an estimate, and the sentence part that people read."""
    return None if estimate is None else {**vars(estimate), "text": str(estimate)}
