"""The rule that chooses a method by its losses on test rows, and the error to expect of it.

One rule for ``AutoLDA``, ``iclda fit`` and ``iclda compare``. It takes arrays of shape
(candidates, rows): the mean loss of every row over the repeats of a cross-validation, the safest
candidate first. A candidate that failed has NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core.types import AnyArray, Array
from ._statistics import error_interval
from .methods import Method

# Methods from the safest, by their errors on many tables; others come last.
FROM_THE_SAFEST = (
    *("average", "self-training", "pessimistic", "supervised", "sklearn-logistic"),
    *("em", "iclda", "self-learning", "moment"),
)
_SLOW_IF_WIDE = (
    *("average", "self-training", "pessimistic"),
    *("sklearn-self-training", "sklearn-lda"),
)
_WIDE = 400  # columns, from which these take minutes
CONFIDENCE = 0.9  # of intervals of the error
LEAST_TESTED = 8  # labeled rows that an estimate of the error needs
_MARGIN = 0.5  # standard errors above the lowest loss within which the safer candidate is taken
# A lower score of a candidate that is no more often right may only mean that it is surer.
_SCORE_MARGIN = 0.02
_N_SAMPLES = 200  # of the bootstrap
_CHOSEN_SHARE = 0.1  # of the samples: a candidate chosen that often may be chosen by chance
_SMALLEST_SHARE = 0.001  # smaller lower ends of an interval are not mentioned


def safety_rank(name: str) -> int:
    """Rank of a method from the safest, 0; those without a rank are last."""
    return FROM_THE_SAFEST.index(name) if name in FROM_THE_SAFEST else len(FROM_THE_SAFEST)


def affordable(methods: Sequence[Method], n_features: int) -> tuple[Method, ...]:
    """Methods without those that take minutes with so many columns, if others are left."""
    quick = tuple(m for m in methods if n_features <= _WIDE or m.name not in _SLOW_IF_WIDE)
    return quick or tuple(methods)


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
        return f"about {percent_text(self.error)} of new rows wrong, {self.range} ({rows})"

    @property
    def range(self) -> str:
        """The interval in words: up to 14 %, 4.2 % to 21 %."""
        if self.low < _SMALLEST_SHARE:
            return f"up to {percent_text(self.high)}"
        return f"{percent_text(self.low)} to {percent_text(self.high)}"


def percent_text(share: float) -> str:
    """A share in percent with no more digits than few rows support: 4.2 %, 14 %."""
    return f"{100 * share:.{0 if share >= 0.0995 or share == 0 else 1}f} %"


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
    squares = np.einsum("sr,cbr->scb", counts, pairs, optimize=True) / totals[:, :, None]
    squares = np.take_along_axis(squares, best[:, None, None], axis=2)[:, :, 0]
    variances = np.maximum(squares - excess**2, 0.0) / np.maximum(totals - 1, 1)
    errors = counts @ is_wrong.T / totals
    is_as_right = errors <= np.take_along_axis(errors, best[:, None], axis=1) + 1e-12
    is_surer = is_as_right & (excess <= _SCORE_MARGIN)
    return np.asarray((excess <= _MARGIN * np.sqrt(variances) + 1e-12) | is_surer)


def estimate_error(losses: Array, is_wrong: Array, seed: int = 0) -> ErrorEstimate | None:
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
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size=_N_SAMPLES).astype(
        np.float64
    )
    left_out = counts == 0
    counts, left_out = counts[left_out.any(axis=1)], left_out[left_out.any(axis=1)]
    chosen = _are_close(losses, is_wrong, counts).argmax(axis=1)
    sums = (is_wrong[chosen] * left_out).sum(axis=1)
    error = float(sums.sum() / left_out.sum())
    is_often = np.bincount(chosen, minlength=len(losses)) >= _CHOSEN_SHARE * len(chosen)
    shares = [error, *is_wrong[is_often].mean(axis=1).tolist()]
    ends = np.array([error_interval(share * n_rows, n_rows, CONFIDENCE) for share in shares])
    return ErrorEstimate(error, float(ends.min()), float(ends.max()), n_rows)


def estimate_as_json(estimate: ErrorEstimate | None) -> dict[str, Any] | None:
    """Fields of an estimate, and the sentence part that people read."""
    return None if estimate is None else {**vars(estimate), "text": str(estimate)}
