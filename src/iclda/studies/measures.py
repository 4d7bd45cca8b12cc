"""Table of the measures of a fit, which everything that lists measures reads; confusion matrices.

A new measure is a function and a row of the table: stored results, tables, curves, tests, figures,
the terminal and the reports of both studies follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._statistics import BaseRate, bin_sums, error_interval

LEVEL = 0.05  # of significance tests
LEVEL_OF_INTERVALS = 0.9
_UNEVEN = 2  # ratio of class sizes from which the balanced error is shown
PAPER, COMPARISON = STUDIES = ("paper", "comparison")
EDGES = np.linspace(0, 1, 11)  # of the bins of probabilities
Bins = (
    Array  # (10, 3): number of rows, sum of their probabilities, number of right ones
)
ERROR, BRIER = "error", "brier"


@dataclass(frozen=True)
class Predictions:
    """Predictions of a fitted classifier for rows whose classes are known."""

    truth: AnyArray  # codes of the classes
    is_wrong: AnyArray
    probabilities: Array
    log_likelihood: Array | None = (
        None  # log(prior x density of the class) of every row
    )
    log_likelihood_labeled: Array | None = None  # of the labeled training rows


@dataclass(frozen=True)
class Measure:
    """Computation, comparison and presentation of a measure."""

    name: str  # in stored results, CSV files and JSON
    heading: str  # of columns
    axis: str  # of figures
    explanation: str  # in reports of comparisons
    function: Callable[[Predictions], float | None] = lambda predictions: None
    paper_name: str = (
        ""  # in rows and CSV files of the paper's experiments, if it differs
    )
    studies: tuple[str, ...] = STUDIES  # that compute it
    decimals: int = 3
    lower_is_better: bool = True
    is_only_on_curves: bool = False  # of the paper's experiments

    @property
    def sign(self) -> int:
        """Factor by which lower values are better."""
        return 1 if self.lower_is_better else -1


def brier_score(probabilities: Array, codes: AnyArray) -> float:
    """Half the mean squared distance from the truth: the error if probabilities are 0 or 1."""
    truth = np.eye(probabilities.shape[1])[codes]
    return float(np.square(probabilities - truth).sum(axis=1).mean() / 2)


def bins_of(probabilities: Array, codes: AnyArray) -> Bins:
    """Sums over rows in bins of equal width of the probability of the predicted class."""
    predicted = probabilities.argmax(axis=1)
    surest = np.clip(probabilities.max(axis=1), 0, 1)
    return bin_sums(surest, predicted == codes, EDGES)


def _mean(values: AnyArray | None, sign: int = 1) -> float | None:
    return None if values is None else sign * float(np.mean(values))


_TABLE = (
    Measure(
        ERROR,
        "error",
        "Error",
        explanation="share of test rows that get the wrong class",
        function=lambda predictions: _mean(predictions.is_wrong),
    ),
    Measure(
        BRIER,
        "Brier",
        "Brier score",
        explanation=(
            "how far the probabilities are from the truth (half of the squared differences, summed "
            "over all classes)"
        ),
        function=lambda predictions: brier_score(
            predictions.probabilities, predictions.truth
        ),
        studies=(COMPARISON,),
    ),
    Measure(
        "loss",
        "loss",
        "Loss",
        explanation=(
            "mean of -log(share of the class x its density) of a test row: how well the fitted "
            "classes describe new rows"
        ),
        function=lambda predictions: _mean(predictions.log_likelihood, -1),
        paper_name="nll",
        studies=(PAPER,),
        decimals=2,
    ),
    Measure(
        "loss_labeled",
        "loss on the labeled rows",
        "Loss on the labeled rows",
        explanation="mean over the labeled rows of -log(share of their class x density)",
        function=lambda predictions: _mean(predictions.log_likelihood_labeled, -1),
        paper_name="nll_labeled",
        studies=(PAPER,),
        decimals=2,
        is_only_on_curves=True,
    ),
)
MEASURES = {measure.name: measure for measure in _TABLE}
COMPARISON_MEASURES = {
    name: m for name, m in MEASURES.items() if COMPARISON in m.studies
}


def paper_measures() -> dict[str, Measure]:
    """Measures of the paper's experiments by their names in its rows and files."""
    return {
        m.paper_name or name: m for name, m in MEASURES.items() if PAPER in m.studies
    }


def compute_measures(
    predictions: Predictions, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """Compute measures, except those that the predictions do not have."""
    values = {name: m.function(predictions) for name, m in measures.items()}
    return {name: value for name, value in values.items() if value is not None}


def verdict(difference: float, p: float, measure: Measure) -> str:
    """``better``, ``worse``, or an empty string for no significant difference."""
    if not p < LEVEL:
        return ""
    return "better" if measure.sign * difference < 0 else "worse"


@dataclass(frozen=True)
class ClassError:
    """Error of the rows of one class, with its interval."""

    name: str
    n_rows: int
    n_wrong: float  # a mean over repeats may have a fraction
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """Numbers of rows by true class (down) and predicted class, shape (K, K).

    For several repeats on the same rows they are means over the repeats.
    """

    classes: tuple[str, ...]
    counts: Array

    @property
    def n_rows(self) -> int:
        return round(float(self.counts.sum()))

    @property
    def n_wrong(self) -> float:
        return float(self.counts.sum() - np.trace(self.counts))

    @property
    def error(self) -> float:
        return self.n_wrong / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        return error_interval(round(self.n_wrong), self.n_rows, LEVEL_OF_INTERVALS)

    @property
    def by_class(self) -> list[ClassError]:
        """Errors of the classes that have rows."""
        errors = []
        for name, row, n_right in zip(
            self.classes, self.counts, np.diag(self.counts), strict=True
        ):
            n_rows, n_wrong = round(float(row.sum())), float(row.sum() - n_right)
            if n_rows:
                ends = error_interval(round(n_wrong), n_rows, LEVEL_OF_INTERVALS)
                errors.append(
                    ClassError(name, n_rows, n_wrong, n_wrong / n_rows, *ends)
                )
        return errors

    @property
    def balanced_error(self) -> float:
        """Mean of the errors of the classes."""
        return float(np.mean([each.error for each in self.by_class]))

    @property
    def is_uneven(self) -> bool:
        """Whether classes differ so much in size that the balanced error says more."""
        sizes = [each.n_rows for each in self.by_class]
        return len(sizes) > 1 and max(sizes) >= _UNEVEN * min(sizes)

    @property
    def base(self) -> BaseRate:
        """Error of the most frequent class for all rows."""
        sizes = self.counts.sum(axis=1).tolist()
        return BaseRate.of_counts(dict(zip(self.classes, sizes, strict=True)))

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "n_rows": self.n_rows,
            "n_wrong": round(self.n_wrong, 6),
            "error": self.error,
            "error_low": low,
            "error_high": high,
            "interval": LEVEL_OF_INTERVALS,
            "balanced_error": self.balanced_error,
            "base_rate": self.base.error,
            "majority": self.base.majority,
            "by_class": [vars(each) for each in self.by_class],
            "confusion": {
                name: dict(zip(self.classes, row, strict=True))
                for name, row in zip(self.classes, self.counts.tolist(), strict=True)
            },
        }


def count_confusion(truth: AnyArray, predicted: AnyArray, n_classes: int) -> AnyArray:
    """Count rows by codes of their true and predicted class, shape (K, K)."""
    flat = np.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return np.asarray(flat.reshape(n_classes, n_classes))


def write_confusion(counts: AnyArray) -> str:
    """Write counts above zero as JSON: codes of true and predicted class, number of rows."""
    return json.dumps(
        [[i, j, int(counts[i, j])] for i, j in np.argwhere(counts).tolist()]
    )


def mean_confusion(
    texts: Iterable[str], classes: Sequence[str], n_repeats: int
) -> Confusion | None:
    """Mean over repeats on the same rows; ``texts`` are by ``write_confusion``. None if empty."""
    counts = np.zeros((len(classes), len(classes)))
    for text in texts:
        for true, predicted, n_rows in json.loads(text):
            counts[true, predicted] += n_rows
    return (
        Confusion(tuple(classes), counts / max(n_repeats, 1)) if counts.any() else None
    )
