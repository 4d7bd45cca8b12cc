"""Bounds of what a fit gains or loses on supervised LDA, over all labels of unlabeled rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from .._messages import plural

_ROUNDING = 1e-9  # per row: smaller changes are none
_MOST_FEATURES = 1_000  # up to which a fit to a table computes bounds


@dataclass(frozen=True)
class GainBounds:
    """Changes from the supervised fit to this one, over all labelings of the unlabeled rows.

    ``worst``, ``best`` and ``expected`` are changes of the log likelihood of all rows, labeled and
    unlabeled, per unit of weight: the smallest and the largest that any labeling gives, and the one
    under the fit's own posteriors. ``disagreement`` is the share of the unlabeled rows to which
    both classifiers give different classes: the error on them differs by no more than that.
    """

    worst: float
    best: float
    expected: float
    disagreement: float
    n_unlabeled: int

    @property
    def is_safe(self) -> bool:
        """Whether no labeling of the unlabeled rows lowers the log likelihood."""
        return self.worst >= -_ROUNDING

    @property
    def sentence(self) -> str:
        """The bounds for a reader who knows neither the method nor the formulas."""
        if not self.n_unlabeled:
            return "There are no unlabeled rows, so that the fit is the supervised one."
        rows = plural(self.n_unlabeled, "unlabeled row")
        if self.disagreement <= _ROUNDING:
            first = f"Supervised LDA, which does not use the {rows}, would give them the same class"
            return f"{first}{'es' * (self.n_unlabeled > 1)}. {self.comparison()}"
        share = f"{100 * self.disagreement:.1f}"
        return (
            f"Supervised LDA, which does not use the {rows}, would give {share} % of them another "
            f"class: the errors of both on these rows differ by {share} percentage points at most. "
            f"{self.comparison()}"
        )

    def comparison(self, fit: str = "this fit") -> str:
        """Which of both fits describes the training rows better, in a sentence."""
        if max(abs(self.worst), abs(self.best)) <= _ROUNDING:
            return "Both describe the training rows equally well."
        if self.is_safe or self.best <= _ROUNDING:
            better = "better" if self.is_safe else "worse"
            return (
                f"Whatever the true classes of these rows are, {fit} describes the training rows "
                f"{better} than supervised LDA does."
            )
        return (
            f"Whether {fit} describes the training rows better than supervised LDA does depends "
            "on the true classes."
        )

    @property
    def details(self) -> str:
        """The numbers behind ``sentence``, for a reader who knows what a likelihood is."""
        if not self.n_unlabeled:
            return self.sentence
        rows = plural(self.n_unlabeled, "unlabeled row")
        classes = "class" if self.n_unlabeled == 1 else "classes"
        verb = "is" if self.n_unlabeled == 1 else "are"
        return (
            f"Whatever the true {classes} of the {rows} {verb}, the training rows are "
            f"{_likelihood(self.worst, self.best)} under supervised LDA (log likelihood per row; "
            f"{_signed(self.expected)} if the fit's own probabilities are right), and the error on "
            f"the unlabeled rows differs by at most {100 * self.disagreement:.1f} percentage "
            "points."
        )

    def __str__(self) -> str:
        return self.sentence


def _likelihood(worst: float, best: float) -> str:
    if max(abs(worst), abs(best)) <= _ROUNDING:
        return "exactly as likely as"
    if worst >= -_ROUNDING:
        return f"likelier by {max(worst, 0):.3g} to {best:.3g} than"
    if best <= _ROUNDING:
        return f"less likely by {max(-best, 0):.3g} to {-worst:.3g} than"
    return f"between {-worst:.3g} less likely and {best:.3g} likelier than"


def _signed(value: float) -> str:
    return "0" if abs(value) <= _ROUNDING else f"{value:+.3g}"


def safety_bounds(classifier: Any, X: Any, y: Any) -> GainBounds | None:
    """The bounds of a fit; None where they say nothing or cannot be had."""
    find_bounds = getattr(classifier, "gain_bounds", None)
    if find_bounds is None or not getattr(classifier, "_uses_unlabeled_rows", False):
        return None
    if classifier.n_features_in_ > _MOST_FEATURES:  # takes matrices of features x features
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has given them
            found: GainBounds = find_bounds(X, y)
    except ValueError:  # the rows were fitted: there is no supervised fit to compare with
        return None
    return found if found.n_unlabeled else None
