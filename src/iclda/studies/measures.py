"""Table of the measures of a fit, which everything that lists measures reads.

A new measure is a function and a row of the table: stored results, tables, curves, tests, figures,
the terminal and the reports of both studies follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .._core.types import AnyArray, Array
from .._statistics import ReliabilityCurve, bin_sums

LEVEL = 0.05  # of significance tests
PAPER, COMPARISON = STUDIES = ("paper", "comparison")
EDGES = np.linspace(0, 1, 11)  # of the bins of probabilities
Bins = Array  # (10, 3): number of rows, sum of their probabilities, number of right ones
ERROR, BRIER, CALIBRATION, LOSS, HIDDEN = "error", "brier", "calibration", "loss", "error_hidden"


@dataclass(frozen=True)
class Predictions:
    """Predictions of a fitted classifier for rows whose classes are known."""

    truth: AnyArray  # codes of the classes
    is_wrong: AnyArray
    probabilities: Array
    log_likelihood: Array | None = None  # log(prior x density of the class) of every row
    log_likelihood_labeled: Array | None = None  # of the labeled training rows
    is_wrong_hidden: AnyArray | None = None  # of training rows whose labels were hidden


@dataclass(frozen=True)
class Measure:
    """Computation, comparison and presentation of a measure."""

    name: str  # in stored results, CSV files and JSON
    heading: str  # of columns
    axis: str  # of figures
    explanation: str  # in reports of comparisons
    legend: str = ""  # on the terminal; made of the explanation if not given
    function: Callable[[Predictions], float | None] | None = None
    of_bins: Callable[[Bins], float] | None = None  # for measures of the rows of all folds
    short: str = ""  # heading of narrow columns
    paper_name: str = ""  # in rows and CSV files of the paper's experiments, if it differs
    studies: tuple[str, ...] = STUDIES  # that compute it
    decimals: int = 3
    lower_is_better: bool = True
    is_tested: bool = True  # for differences to the baseline
    is_decisive: bool = False  # the recommendation and the choice of variants depend on it
    is_only_on_curves: bool = False  # of the paper's experiments

    def __post_init__(self) -> None:
        if not self.legend:
            legend = f"{self.short or self.heading}: {self.explanation}"
            object.__setattr__(self, "legend", legend)

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


def calibration_error(bins: Bins) -> float:
    """Mean over rows of the distance between probability and share of right rows of their bin."""
    return ReliabilityCurve.from_sums(EDGES, bins).calibration_error


def _mean(values: AnyArray | None, sign: int = 1) -> float | None:
    return None if values is None else sign * float(np.mean(values))


_TABLE = (
    Measure(
        ERROR,
        "error",
        "Error",
        explanation="share of test rows that get the wrong class",
        legend=(
            "error: share of test rows that get a wrong class; worse in: repeats in which it was "
            "higher than that of the baseline"
        ),
        function=lambda predictions: _mean(predictions.is_wrong),
        is_decisive=True,
    ),
    Measure(
        BRIER,
        "Brier",
        "Brier score",
        explanation=(
            "how far the probabilities are from the truth (half of the squared differences, summed "
            "over all classes)"
        ),
        function=lambda predictions: brier_score(predictions.probabilities, predictions.truth),
        studies=(COMPARISON,),
        is_decisive=True,
    ),
    Measure(
        CALIBRATION,
        "calibration",
        "Calibration error",
        explanation="mean distance between how sure a method is and how often it is right",
        of_bins=calibration_error,
        studies=(COMPARISON,),
        is_tested=False,
    ),
    Measure(
        LOSS,
        "loss",
        "Loss",
        explanation=(
            "mean over test rows of -log(share of their class x density of the row in it): how "
            "well the fitted classes describe new rows. Lower is better; comparable between "
            "methods on these columns only"
        ),
        legend="loss: minus the log likelihood of a test row with its class",
        function=lambda predictions: _mean(predictions.log_likelihood, -1),
        paper_name="nll",
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
    Measure(
        HIDDEN,
        "error, hidden rows",
        "Error on hidden rows",
        explanation="error on the training rows whose labels were hidden",
        function=lambda predictions: _mean(predictions.is_wrong_hidden),
        short="hidden",
        studies=(COMPARISON,),
        is_tested=False,
    ),
)
MEASURES = {measure.name: measure for measure in _TABLE}
COMPARISON_MEASURES = {name: m for name, m in MEASURES.items() if COMPARISON in m.studies}


def paper_measures() -> dict[str, Measure]:
    """Measures of the paper's experiments by their names in its rows and files."""
    return {m.paper_name or name: m for name, m in MEASURES.items() if PAPER in m.studies}


def compute_measures(predictions: Predictions, measures: Mapping[str, Measure]) -> dict[str, float]:
    """Compute measures, except those that the predictions do not have."""
    values = {name: m.function(predictions) for name, m in measures.items() if m.function}
    return {name: value for name, value in values.items() if value is not None}


def verdict(difference: float, p: float, measure: Measure) -> str:
    """``better``, ``worse``, or an empty string for no significant difference."""
    if not p < LEVEL:
        return ""
    return "better" if measure.sign * difference < 0 else "worse"


def arrow(verdict: str, measure: Measure) -> str:
    """Triangle that points down for lower values and up for higher ones."""
    if not verdict:
        return ""
    is_lower = (verdict == "better") == measure.lower_is_better
    return "\N{BLACK DOWN-POINTING TRIANGLE}" if is_lower else "\N{BLACK UP-POINTING TRIANGLE}"
