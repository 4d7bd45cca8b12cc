"""A comparison that was run: settings and stored rows, and what follows from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..._error_estimate import UNCLEAR
from ..._messages import and_list, say
from ...tabular.checks import WARNING
from ..measures import AUC, BALANCED, BRIER, LEVEL, Confusion, mean_confusion
from ..page import percent
from ..store import IMPOSSIBLE, FitResult
from .contestants import Contestant
from .recommendation import Recommendation, recommend
from .settings import ComparisonSettings
from .splits import REPEATED_FOLDS
from .summary import (
    ComparisonSummary,
    SplitCurvePoint,
    split_curve_points,
    summarize_comparison,
)
from .verdict import Verdict, decide, title_of

# Up to this many methods are all on the learning curves.
_MAX_METHODS_ON_CURVES = 6

# The package and the modules in front of the name of an error class.
_MODULE_OF_ERROR = re.compile(r"^(\w+\.)+(?=\w+(:|$))")

_CAUTION = "Before you rely on this, read the {warnings} about the table: {subjects}."
_BALANCED_ERROR = (
    "Classes differ in size: the mean of their errors (balanced error) is {balanced} "
    "with {name}."
)
_PACE = (
    "{done} of {planned} repeats fitted into the time given; the same command without "
    "{@time} does the rest."
)


class Failures(NamedTuple):
    """How many fits of a contestant failed, and why the first of these did.

    ``is_alarm`` tells whether one failed although the rows allowed it.
    """

    n_failed: int
    n_fits: int
    reason: str
    is_alarm: bool


@dataclass(frozen=True)
class Comparison:
    """Settings and stored rows of a comparison; ``seconds`` is the time of all runs."""

    settings: ComparisonSettings
    results: Sequence[FitResult]
    seconds: float

    @cached_property
    def compared(self) -> list[FitResult]:
        """Results of the comparison, without those of the learning curves."""
        return [
            result for result in self.results if result.experiment == REPEATED_FOLDS
        ]

    @cached_property
    def summary(self) -> ComparisonSummary:
        """Scores and differences of all contestants."""
        settings = self.settings
        return summarize_comparison(
            self.results, settings.contestants, settings.folds, settings.measure
        )

    @cached_property
    def advice(self) -> Recommendation | None:
        """What the rule recommends; None if no supervised fit succeeded."""
        if self.summary.baseline is None:
            return None
        return recommend(
            self.results,
            self.settings.contestants,
            is_network=self.settings.is_network,
            measure=self.settings.measure,
        )

    @property
    def chosen(self) -> Contestant | None:
        """The contestant to use."""
        return self.advice.chosen if self.advice else None

    @cached_property
    def confusion(self) -> Confusion | None:
        """Confusion matrix of the contestant to use, a mean over the repeats."""
        if self.chosen is None:
            return None
        fitted = [
            result
            for result in self.compared
            if result.method == self.chosen.name and result.failure is None
        ]
        # Every repeat tests the same rows: counts are divided by the repeats.
        n_repeats = len({result.repeat for result in fitted})
        texts = [result.values["confusion"] for result in fitted]
        return mean_confusion(texts, self.settings.classes, n_repeats)

    @cached_property
    def verdict(self) -> Verdict:
        """The answer; where labels were hidden, for as many labels as were kept."""
        return decide(self.summary, self.advice, self.settings.n_kept, self.confusion)

    @property
    def is_nearly_clear(self) -> bool:
        """Whether a few repeats more may show that the choice beats supervised LDA.

        A test of this one difference rules chance out, and the correction for the
        number of methods does not.
        """
        if self.verdict.kind != UNCLEAR:
            return False
        measures = (self.summary.main, BRIER)
        return any(
            difference.p < LEVEL <= difference.p_holm
            for difference in self.summary.differences
            if difference.method == self.verdict.method
            and difference.measure in measures
        )

    @cached_property
    def on_curves(self) -> list[str]:
        """Contestants on the learning curves.

        If there are few methods, the best contestant of each. Otherwise the recommended
        contestant, the best of the other methods, the baseline, and the best method of
        scikit-learn.
        """
        # The best contestant of each method, the best of all first. Those that were
        # stopped lack splits that the curves have.
        best = sorted(self.summary.best.values(), key=self.summary.rank)
        best = [name for name in best if name not in self.settings.stopped]
        if len(best) <= _MAX_METHODS_ON_CURVES:
            return best
        recommended = self.verdict.method
        others = [name for name in best if name != recommended]
        best_outside = [name for name in best if name in self.outside]
        # The same contestant may be several of these, and there may be none to use.
        names = [recommended, *others[:1], self.summary.baseline, *best_outside[:1]]
        return list(dict.fromkeys(name for name in names if name))

    @cached_property
    def outside(self) -> set[str]:
        """Names of the contestants that are methods of scikit-learn."""
        return {
            contestant.name
            for contestant in self.settings.contestants
            if contestant.method.is_outside
        }

    @property
    def needs_balance(self) -> bool:
        """Whether measures that count all classes the same are shown at once."""
        is_asked_for = self.settings.measure in (BALANCED, AUC)
        is_uneven = self.confusion is not None and self.confusion.is_uneven
        return is_asked_for or is_uneven

    @property
    def pace(self) -> str:
        """A sentence if a time limit ended the run; else empty."""
        settings = self.settings
        if settings.is_settled or settings.repeats == settings.planned_repeats:
            return ""
        return say(_PACE, done=settings.repeats, planned=settings.planned_repeats)

    @cached_property
    def points(self) -> list[SplitCurvePoint]:
        """Points of the learning curves."""
        return split_curve_points(self.results, self.on_curves, self.settings)

    @cached_property
    def caution(self) -> str:
        """A sentence that names the warnings about the table; empty without any."""
        subjects = [
            remark.subject.lower()
            for remark in self.settings.remarks
            if remark.level == WARNING
        ]
        if not subjects:
            return ""
        warnings = "warning" if len(subjects) == 1 else f"{len(subjects)} warnings"
        names = and_list(list(dict.fromkeys(subjects)))
        return say(_CAUTION, warnings=warnings, subjects=names)

    @cached_property
    def balanced(self) -> str:
        """A sentence with the balanced error if classes are uneven, else empty."""
        confusion = self.confusion
        if self.chosen is None or confusion is None or not confusion.is_uneven:
            return ""
        error = percent(confusion.balanced_error)
        return say(_BALANCED_ERROR, name=title_of(self.chosen), balanced=error)

    @cached_property
    def failures(self) -> dict[str, Failures]:
        """Failures by contestant, without those that never failed."""
        n_fits = Counter(result.method for result in self.compared)
        failed = [result for result in self.compared if result.failure is not None]
        n_failed = Counter(result.method for result in failed)
        # Fits of a contestant nearly always fail for one reason: that of the first.
        reasons: dict[str, str] = {}
        for result in failed:
            reasons.setdefault(result.method, last_line(result.failure or ""))
        alarming = {result.method for result in failed if result.is_alarm}
        return {
            name: Failures(count, n_fits[name], reasons[name], name in alarming)
            for name, count in n_failed.items()
        }


def last_line(traceback: str) -> str:
    """Return the message at the end of a traceback, without the module of the error.

    Where the rows did not allow a fit, the message needs no name of an error either.
    """
    lines = traceback.strip().splitlines() or [""]
    return _MODULE_OF_ERROR.sub("", lines[-1]).removeprefix(IMPOSSIBLE)
