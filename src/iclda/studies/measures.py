"""The measures of a fit, in one table; confusion matrices.

A new measure is a function and a row of ``_TABLE``. Everything that lists measures
reads this table: stored rows, tables, curves, tests, figures, the terminal and the
reports of both studies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._error_estimate import CONFIDENCE, BaseRate, error_interval
from .._statistics import bin_sums

# Significance level of tests.
LEVEL = 0.05
# The balanced error is shown if one class is this many times as large as another.
_UNEVEN_SIZE_RATIO = 2
# The studies that a measure may belong to.
PAPER = "paper"
COMPARISON = "comparison"
STUDIES = (PAPER, COMPARISON)
# Names of the measures that both studies refer to.
ERROR = "error"
BRIER = "brier"
# Names of the measures that count every class the same.
BALANCED = "balanced"
AUC = "auc"
# Measures that may decide which method is recommended.
DECIDING = (BRIER, ERROR, BALANCED, AUC)
# Edges of the bins of the probability of the predicted class.
EDGES = np.linspace(0, 1, 11)
# Array of shape (10, 3): the rows of every bin, the sum of their probabilities, and how
# many of them were predicted correctly.
Bins = Array


@dataclass(frozen=True)
class Predictions:
    """Predictions of a fitted classifier for test rows, whose classes are known.

    Attributes
    ----------
    truth : ndarray of int
        Code of the class of every row.
    is_wrong : ndarray of bool
        Whether the predicted class is wrong.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities of the classes.
    log_likelihood : ndarray or None
        log(prior x density) of every row and its class; None for a classifier without
        a density.
    log_likelihood_labeled : ndarray or None
        The same for the labeled training rows.
    class_weights : ndarray or None
        Weight of a row of every class that makes the classes count the same; None if it
        is not known.
    """

    truth: AnyArray
    is_wrong: AnyArray
    probabilities: Array
    log_likelihood: Array | None = None
    log_likelihood_labeled: Array | None = None
    class_weights: Array | None = None


@dataclass(frozen=True)
class Measure:
    """How a measure is computed, compared and shown.

    Attributes
    ----------
    name : str
        Name in stored rows, CSV files and JSON.
    heading : str
        Heading of columns.
    axis : str
        Label of the axis of a figure.
    explanation : str
        Explanation in the reports of comparisons.
    function : function
        Computes the measure from ``Predictions``; returns None if they lack it.
    studies : tuple of str
        The studies that compute it.
    is_only_on_curves : bool
        Whether the tables of the paper's experiments leave it out.
    """

    name: str
    heading: str
    axis: str
    explanation: str
    function: Callable[[Predictions], float | None] = lambda predictions: None
    studies: tuple[str, ...] = STUDIES
    decimals: int = 3
    lower_is_better: bool = True
    is_only_on_curves: bool = False

    @property
    def noun(self) -> str:
        """The measure in a sentence: only the names of people have capitals."""
        return self.axis if self.name == BRIER else self.axis[0].lower() + self.axis[1:]

    @property
    def sign(self) -> int:
        """1 if lower values are better, -1 otherwise."""
        return 1 if self.lower_is_better else -1


def brier_score(probabilities: Array, codes: AnyArray) -> float:
    """Return half the mean squared distance of probabilities from the truth.

    It is the error if all probabilities are 0 or 1.
    """
    truth = np.eye(probabilities.shape[1])[codes]
    return float(np.square(probabilities - truth).sum(axis=1).mean() / 2)


def bins_of(probabilities: Array, codes: AnyArray) -> Bins:
    """Sum over rows in bins of the probability of their predicted class."""
    is_right = probabilities.argmax(axis=1) == codes
    # Rounding may take a probability slightly above 1.
    confidence = np.clip(probabilities.max(axis=1), 0, 1)
    return bin_sums(confidence, is_right, EDGES)


def _error(predictions: Predictions) -> float:
    return float(np.mean(predictions.is_wrong))


def _brier(predictions: Predictions) -> float:
    return brier_score(predictions.probabilities, predictions.truth)


def _balanced(predictions: Predictions) -> float | None:
    weights = predictions.class_weights
    if weights is None:
        return None
    return float(np.mean(weights[predictions.truth] * predictions.is_wrong))


def _auc(predictions: Predictions) -> float | None:
    losses = ranking_losses(predictions.probabilities, predictions.truth)
    if losses is None:
        return None
    # The mean of a class, either of the two, is the area above the curve.
    return 1 - float(np.mean(losses[predictions.truth == 0]))


def weights_of_classes(counts: AnyArray) -> Array:
    """Return the weight of a row of every class, by the number of its rows.

    The weighted mean over all rows is the mean of the means of the classes. A class
    without rows has weight 0.
    """
    has_rows = counts > 0
    n_classes = int(has_rows.sum())
    return np.where(has_rows, counts.sum() / (n_classes * np.maximum(counts, 1)), 0.0)


def ranking_losses(probabilities: Array, codes: AnyArray) -> Array | None:
    """Return for every row the share of rows of the other class on its wrong side.

    A row of the second class should have a higher probability of that class than every
    row of the first; equal probabilities count one half. The mean over the rows of
    either class is the area above the ROC curve. None unless there are two classes, and
    both have rows.
    """
    is_second = codes == 1
    if probabilities.shape[1] != 2 or is_second.all() or not is_second.any():
        return None
    scores = probabilities[:, 1]
    losses = np.empty(len(codes))
    for is_own, sign in ((is_second, 1), (~is_second, -1)):
        others = np.sort(sign * scores[~is_own])
        own = sign * scores[is_own]
        # Rows of the other class with a higher score, and with the same one.
        n_below = np.searchsorted(others, own, side="left")
        n_up_to = np.searchsorted(others, own, side="right")
        n_above = len(others) - n_up_to
        losses[is_own] = (n_above + (n_up_to - n_below) / 2) / len(others)
    return losses


def _loss(predictions: Predictions) -> float | None:
    return _negative_mean(predictions.log_likelihood)


def _loss_labeled(predictions: Predictions) -> float | None:
    return _negative_mean(predictions.log_likelihood_labeled)


def _negative_mean(values: Array | None) -> float | None:
    return None if values is None else -float(np.mean(values))


_TABLE = (
    Measure(
        ERROR,
        "error",
        "Error",
        explanation="share of test rows that get the wrong class",
        function=_error,
    ),
    Measure(
        BALANCED,
        "balanced",
        "Balanced error",
        explanation="mean of the errors of the classes, so that all count the same",
        function=_balanced,
        studies=(COMPARISON,),
    ),
    Measure(
        AUC,
        "AUC",
        "Area under the ROC curve",
        explanation=(
            "how often a row of the second class gets a higher probability of it than "
            "a row of the first: 0.5 is chance, and higher is better"
        ),
        function=_auc,
        studies=(COMPARISON,),
        lower_is_better=False,
    ),
    Measure(
        BRIER,
        "Brier",
        "Brier score",
        explanation=(
            "distance of the probabilities from the truth (half the sum of the "
            "squared differences over the classes)"
        ),
        function=_brier,
        studies=(COMPARISON,),
    ),
    Measure(
        "nll",
        "loss",
        "Loss",
        explanation=(
            "mean of -log(share of the class x its density) of a test row: how well "
            "the fitted classes describe new rows"
        ),
        function=_loss,
        studies=(PAPER,),
        decimals=2,
    ),
    Measure(
        "nll_labeled",
        "loss on the labeled rows",
        "Loss on the labeled rows",
        explanation=(
            "mean over the labeled rows of -log(share of their class x density)"
        ),
        function=_loss_labeled,
        studies=(PAPER,),
        decimals=2,
        is_only_on_curves=True,
    ),
)
MEASURES = {measure.name: measure for measure in _TABLE}
COMPARISON_MEASURES = {
    name: measure for name, measure in MEASURES.items() if COMPARISON in measure.studies
}
PAPER_MEASURES = {
    name: measure for name, measure in MEASURES.items() if PAPER in measure.studies
}


def compute_measures(
    predictions: Predictions, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """Compute measures, except those that the predictions do not have."""
    values = {}
    for name, measure in measures.items():
        value = measure.function(predictions)
        if value is not None:
            values[name] = value
    return values


def verdict(difference: float, p: float, measure: Measure) -> str:
    """Return ``better``, ``worse``, or "" for a difference that is not significant."""
    # Negated, so that NaN is not significant either.
    if not p < LEVEL:
        return ""
    return "better" if measure.sign * difference < 0 else "worse"


@dataclass(frozen=True)
class ClassError:
    """Error of the rows of one class, and its interval from ``low`` to ``high``.

    ``n_wrong`` may have a fraction, since it can be a mean over repeats.
    """

    name: str
    n_rows: int
    n_wrong: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: counts of rows by true class (down) and predicted class.

    With several repeats on the same rows, counts are means over the repeats.
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
        return error_interval(round(self.n_wrong), self.n_rows)

    @property
    def by_class(self) -> list[ClassError]:
        """Errors of the classes that have rows."""
        errors = []
        for k, name in enumerate(self.classes):
            row = self.counts[k]
            n_rows = round(float(row.sum()))
            if n_rows == 0:
                continue
            n_wrong = float(row.sum() - row[k])
            error = n_wrong / n_rows
            low, high = error_interval(round(n_wrong), n_rows)
            errors.append(ClassError(name, n_rows, n_wrong, error, low, high))
        return errors

    @property
    def balanced_error(self) -> float:
        """Mean of the errors of the classes."""
        return float(np.mean([of_class.error for of_class in self.by_class]))

    @property
    def is_uneven(self) -> bool:
        """Whether sizes of classes differ so much that the balanced error says more."""
        sizes = [of_class.n_rows for of_class in self.by_class]
        return len(sizes) > 1 and max(sizes) >= _UNEVEN_SIZE_RATIO * min(sizes)

    @property
    def base(self) -> BaseRate:
        """Error of giving the most frequent class to all rows."""
        sizes = self.counts.sum(axis=1).tolist()
        return BaseRate.of_counts(dict(zip(self.classes, sizes, strict=True)))

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        # Predicted counts by name, by name of the true class.
        matrix = {
            name: dict(zip(self.classes, row, strict=True))
            for name, row in zip(self.classes, self.counts.tolist(), strict=True)
        }
        return {
            "n_rows": self.n_rows,
            "n_wrong": round(self.n_wrong, 6),
            "error": self.error,
            "error_low": low,
            "error_high": high,
            "interval": CONFIDENCE,
            "balanced_error": self.balanced_error,
            "base_rate": self.base.error,
            "majority": self.base.majority,
            "by_class": [vars(of_class) for of_class in self.by_class],
            "confusion": matrix,
        }


def count_confusion(truth: AnyArray, predicted: AnyArray, n_classes: int) -> AnyArray:
    """Count rows by codes of their true and predicted class, shape (K, K)."""
    # Every pair of codes has a number, by which rows are counted.
    flat = np.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return np.asarray(flat.reshape(n_classes, n_classes))


def write_confusion(counts: AnyArray) -> str:
    """Write counts as JSON, without those that are zero, which most are.

    Each is a list: code of the true class, of the predicted class, number of rows.
    """
    entries = [
        [true, predicted, int(counts[true, predicted])]
        for true, predicted in np.argwhere(counts).tolist()
    ]
    return json.dumps(entries)


def mean_confusion(
    texts: Iterable[str], classes: Sequence[str], n_repeats: int
) -> Confusion | None:
    """Return the mean over repeats on the same rows; None if there are no rows.

    ``texts`` were written by ``write_confusion``.
    """
    counts = np.zeros((len(classes), len(classes)))
    for text in texts:
        for true, predicted, n_rows in json.loads(text):
            counts[true, predicted] += n_rows
    if not counts.any():
        return None
    return Confusion(tuple(classes), counts / max(n_repeats, 1))
