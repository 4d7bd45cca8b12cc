"""The error to expect on new rows, from predictions of rows with held-out labels.

Held-out predictions (``_held_out.py``) become losses and mistakes of rows
(``row_losses``). Their arrays have the shape (candidates, rows), the default first,
and are means over the repeats of a cross-validation. ``AutoLDA`` and ``iclda compare``
choose by the same rule (``first_choice``), and state the error of what it chooses
(``estimate_error``, ``estimate_final_error``).

Each estimate is an ``ErrorEstimate``, the error with an interval. ``BaseRate`` is what
it has to beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from ._core import AnyArray, Array
from ._messages import percent_text

# Whether a method learned something: see ``BaseRate.judge``.
NOTHING_LEARNED = "nothing"
UNCLEAR = "unclear"
CLEAR = "clear"

# Coverage of the intervals of an error.
CONFIDENCE = 0.9

# Labeled rows that an estimate of the error needs.
MIN_TESTED_ROWS = 8

# Mean counts of rows below this are rounding errors of zero.
_ZERO_ROWS = 1e-9

# The earlier candidate is taken if its mean loss exceeds the lowest by at most this
# many standard errors. The default is the best guess before any label is seen, so only
# a method that is clearly better replaces it. On the tuning tables of the benchmarks
# smaller margins cost up to a percentage point of error.
_MARGIN_STANDARD_ERRORS = 2.0

# A candidate whose mean loss exceeds the lowest by more than this many standard errors
# is out of the race: its held-out labels need not be predicted again. Further repeats
# change losses by less than other labels would, which the standard error is about.
_BEATEN_STANDARD_ERRORS = 3.0

# The earlier candidate is also taken if it is right as often and its mean Brier score
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
        # With that many labels, the interval about the base rate reaches as far to
        # either side as a useful gain.
        quantile = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
        needed = quantile**2 * self.error * (1 - self.error) / _USEFUL_GAIN**2
        return int(float(f"{needed:.1e}"))

    def judge(self, error: float, high: float, brier: float) -> str:
        """Return whether a method learned something: clear, unclear or nothing.

        ``high`` is the upper end of the interval of its error, ``brier`` its score.
        With uneven classes a useful method may have no lower error than the base rate:
        probabilities that beat the shares of the classes show that it learned
        something. Rows of a single class show nothing, and the answer is unclear.
        """
        if high < self.error:
            return CLEAR
        is_no_better = error >= self.error and brier >= self.brier
        if self.error > 0 and is_no_better:
            return NOTHING_LEARNED
        return UNCLEAR


def error_interval(
    n_wrong: float, n_rows: int, level: float = CONFIDENCE
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


@dataclass(frozen=True)
class ErrorEstimate:
    """The share of new rows that get a wrong class, and its 90 % interval.

    ``n_rows`` is the number of labeled rows that it was measured on.
    """

    error: float
    low: float
    high: float
    n_rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and the words for people."""
        return {**vars(self), "text": str(self)}

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


def row_losses(probabilities: Array, codes: AnyArray) -> tuple[Array, Array]:
    """Return the Brier score of every row, and 1 where its likeliest class is wrong.

    ``probabilities`` has the shape (..., rows, classes).
    """
    if not np.isfinite(probabilities).all():
        raise ValueError("A fit gave probabilities that are not finite numbers.")
    truth = np.eye(probabilities.shape[-1])[codes]
    losses = np.square(probabilities - truth).sum(axis=-1) / 2
    is_wrong = probabilities.argmax(axis=-1) != codes
    return losses, is_wrong.astype(np.float64)


def first_choice(losses: Array, is_wrong: Array) -> int:
    """Return the index of the first candidate that no other one clearly beats.

    Its loss is within two standard errors of the lowest, computed from the differences
    row by row, or within a Brier score of 0.02 of it if no more rows are wrong.
    """
    every_row_once = np.ones((1, losses.shape[1]))
    return int(_are_close(losses, is_wrong, every_row_once)[0].argmax())


def find_beaten(losses: Array, is_wrong: Array) -> AnyArray:
    """Return which candidates are so far behind the best that they cannot be chosen.

    The losses are those of the first repeats, and the margin is wider than that of
    ``first_choice``. A few rows show nothing: no candidate is beaten by them.
    """
    if losses.shape[1] < MIN_TESTED_ROWS:
        return np.zeros(len(losses), dtype=bool)
    every_row_once = np.ones((1, losses.shape[1]))
    are_close = _are_close(losses, is_wrong, every_row_once, _BEATEN_STANDARD_ERRORS)
    return ~are_close[0]


def _are_close(
    losses: Array,
    is_wrong: Array,
    counts: Array,
    n_standard_errors: float = _MARGIN_STANDARD_ERRORS,
) -> AnyArray:
    """Return which candidates no other one clearly beats, in every sample.

    The shape is (samples, candidates); ``counts`` (samples, rows) is how often each row
    is in each sample. A candidate is clearly beaten if its mean loss exceeds the lowest
    by more than ``n_standard_errors``.
    """
    totals = counts.sum(axis=1, keepdims=True)
    means = counts @ losses.T / totals
    best = means.argmin(axis=1)
    excess = means - means.min(axis=1, keepdims=True)

    # The mean squared difference of the losses of every candidate and the best one, in
    # every sample. All pairs of candidates are few, and need a single product.
    squares = np.square(losses[:, None] - losses[None])
    square_sums = np.einsum("sr,cbr->scb", counts, squares, optimize=True)
    mean_squares = square_sums / totals[:, :, None]
    to_best = np.take_along_axis(mean_squares, best[:, None, None], axis=2)[:, :, 0]

    # The excess is the mean of these differences: its standard error is the margin.
    variances = np.maximum(to_best - excess**2, 0.0) / np.maximum(totals - 1, 1)
    margins = n_standard_errors * np.sqrt(variances) + _ROUNDING

    # A candidate that is right as often may have probabilities that are less sure.
    errors = counts @ is_wrong.T / totals
    errors_of_best = np.take_along_axis(errors, best[:, None], axis=1)
    is_right_as_often = errors <= errors_of_best + _ROUNDING
    is_only_less_sure = is_right_as_often & (excess <= _BRIER_MARGIN)
    return np.asarray((excess <= margins) | is_only_less_sure)


def estimate_error(
    losses: Array, is_wrong: Array, seed: int = 0, *, n_weights: int = 0
) -> ErrorEstimate | None:
    """Estimate the error of the candidate that ``first_choice`` takes.

    Bootstrap bias corrected cross-validation (Tsamardinos, Greasidou and Borboudakis
    2018) avoids the optimism of choosing and judging by the same rows: the choice is
    made on a sample of the rows and judged on the others, many times. The interval
    spans Clopper and Pearson's for that error and for the error of every candidate that
    was chosen in a tenth of the samples, because chance decided between them.
    ``n_weights`` numbers of a candidate were fitted to predictions of these rows: the
    interval is as wide as one of that many rows fewer.

    Returns None for fewer than ``MIN_TESTED_ROWS`` rows.
    """
    n_rows = losses.shape[1]
    if n_rows < MIN_TESTED_ROWS:
        return None
    counts = _bootstrap_counts(n_rows, seed)
    # The first candidate that is close to the best is chosen.
    chosen = _are_close(losses, is_wrong, counts).argmax(axis=1)
    # Each choice is judged by the rows that its sample has left out.
    is_left_out = counts == 0
    n_wrong = (is_wrong[chosen] * is_left_out).sum(axis=1)
    error = float(n_wrong.sum() / is_left_out.sum())

    times_chosen = np.bincount(chosen, minlength=len(losses))
    is_often_chosen = times_chosen >= _MIN_CHOSEN_SHARE * len(chosen)
    errors = [error, *is_wrong[is_often_chosen].mean(axis=1).tolist()]
    n_free = n_rows - n_weights
    intervals = [error_interval(each * n_free, n_free) for each in errors]
    return ErrorEstimate(
        error=error,
        low=min(low for low, _ in intervals),
        high=max(high for _, high in intervals),
        n_rows=n_rows,
    )


def _bootstrap_counts(n_rows: int, seed: int) -> Array:
    """Draw samples of rows, and return how often each has every row: (samples, rows).

    A sample that happens to hold every row is dropped, because it leaves none to judge
    a choice by.
    """
    rng = np.random.default_rng(seed)
    equal_shares = np.full(n_rows, 1 / n_rows)
    counts = rng.multinomial(n_rows, equal_shares, size=_N_BOOTSTRAP_SAMPLES)
    leaves_some_out = (counts == 0).any(axis=1)
    return counts[leaves_some_out].astype(np.float64)


def estimate_final_error(
    losses: Array,
    is_wrong: Array,
    n_labels: AnyArray,
    n_folds: int,
    share_of_unlabeled: float,
    seed: int = 0,
    *,
    n_weights: int = 0,
) -> ErrorEstimate | None:
    """Estimate the error of the fit to all rows from the fits of a cross-validation.

    The fits had fewer rows than the final one: the lower end of the interval allows for
    what more rows may gain. ``share_of_unlabeled`` is the share of the unlabeled rows
    that the fits had. ``n_labels`` is the number of labels of every class; if they are
    few, the fits had far less to learn from than the final one, and the result is None.
    ``n_weights`` is that of ``estimate_error``.
    """
    counted_labels = np.minimum(n_labels, _COUNTED_LABELS_PER_CLASS)
    if counted_labels.mean() < _MIN_MEAN_COUNTED_LABELS:
        return None
    estimate = estimate_error(losses, is_wrong, seed, n_weights=n_weights)
    if estimate is None:
        return None
    # Each fit lacked one fold of the labels: errors fall at most like the root of their
    # number.
    gain_by_labels = sqrt(1 - 1 / n_folds)
    gain_by_unlabeled = share_of_unlabeled**_UNLABELED_POWER
    gain = gain_by_labels * gain_by_unlabeled
    return replace(estimate, low=estimate.low * gain)


def estimate_error_of_all_labels(
    is_wrong: AnyArray, n_labels: int, n_folds: int
) -> ErrorEstimate:
    """Estimate the error of the fit to all labels from rows that were drawn at random.

    ``is_wrong`` tells which of these rows, in folds, were predicted wrongly by fits to
    all other labels; no method was chosen by them. The lower end of the interval allows
    for the labels that the fits lacked: errors fall at most like the root of their
    number.
    """
    n_rows = len(is_wrong)
    low, high = error_interval(int(is_wrong.sum()), n_rows)
    # Each fit lacked one fold of the drawn rows.
    gain = sqrt(1 - n_rows / n_folds / n_labels)
    return ErrorEstimate(float(is_wrong.mean()), low * gain, high, n_rows)
