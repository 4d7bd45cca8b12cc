"""The answer of a comparison: what to use, what to expect of it, and what may speak against it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf

import numpy as np

from ..._checks import WARNING
from ..._core import Array
from ..._messages import and_list, plural, say
from ..._statistics import (
    LEAST_TESTED,
    NOTHING,
    UNCLEAR,
    ErrorEstimate,
    estimate_error,
    percent_text,
    safest_choice,
)
from ...methods import BASELINES, FITTED, safety_rank
from ..measures import BRIER, ERROR, Confusion, mean_confusion
from ..page import share
from ..store import FitResult
from . import SENTENCES
from .plan import COMPARISON, SUPERVISED, ComparisonSettings, Contestant
from .summary import (
    ComparisonSummary,
    SplitCurvePoint,
    split_curve_points,
    summarize_comparison,
)

_SENTENCES = SENTENCES["verdict"]
RULE = say(
    _SENTENCES["rule"],
    order=", ".join(
        each.name
        for each in sorted(
            (*FITTED, *BASELINES), key=lambda method: safety_rank(method.name)
        )
    ),
)
# Kinds of verdicts, besides NOTHING and UNCLEAR; OUTSIDE: a method of scikit-learn is better.
HELPS, SHARPENS, HURTS, OUTSIDE, UNKNOWN = (
    "helps",
    "sharpens",
    "hurts",
    "outside",
    "unknown",
)
_MOST_CURVES = 6  # up to which all methods are on curves
_MOST_ROWS = 20_000  # by whose losses is chosen: more change nothing


@dataclass(frozen=True)
class Recommendation:
    """The contestant to use, and that of the lowest loss."""

    chosen: Contestant
    lowest: Contestant
    estimate: ErrorEstimate | None
    n_rows: int


def recommend(
    results: Iterable[FitResult], contestants: Sequence[Contestant]
) -> Recommendation | None:
    """Apply the rule to all eligible contestants; None if none was fitted in every split."""
    eligible = sorted(
        (each for each in contestants if each.is_eligible), key=lambda c: c.risk
    )
    means = means_of_rows(results, [each.name for each in eligible])
    complete = [each for each in eligible if each.name in means]
    if not complete:
        return None
    losses, is_wrong = np.stack([means[each.name] for each in complete], axis=1)
    return Recommendation(
        chosen=complete[safest_choice(losses, is_wrong)],
        lowest=complete[int(losses.mean(axis=1).argmin())],
        estimate=estimate_error(losses, is_wrong),
        n_rows=losses.shape[1],
    )


def means_of_rows(
    results: Iterable[FitResult], names: Sequence[str]
) -> dict[str, Array]:
    """Mean Brier score and share of wrong classes of every tested row, by contestant: (2, rows).

    Contestants that lack a split of those that any of them has are left out.
    """
    tested: dict[str, list[list[float]]] = {name: [] for name in names}
    cells: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for result in results:
        if (
            result.experiment == COMPARISON
            and result.method in cells
            and "rows" in result.values
        ):
            cells[result.method].add((result.repeat, result.part))
            tested[result.method] += json.loads(result.values["rows"])
    all_cells = set().union(*cells.values())
    means = {}
    for name, rows in tested.items():
        if all_cells and cells[name] == all_cells:
            row, losses, is_wrong = np.array(rows).T
            row = row.astype(int)
            index, counts = np.unique(row, return_counts=True)
            sums = np.stack(
                [np.bincount(row, each)[index] for each in (losses, is_wrong)]
            )
            means[name] = (sums / counts)[:, :_MOST_ROWS]
    return means


@dataclass(frozen=True)
class Verdict:
    """What to use, what to expect of it, why, and what else is worth knowing."""

    kind: str
    method: str | None  # the contestant to use
    headline: str  # of pages
    sentence: str
    why: str = ""  # the sentence without what to use and what to expect of it
    estimate: ErrorEstimate | None = None
    learned: str = (
        ""  # whether anything was: clear, unclear or nothing; empty if unknown
    )
    base: str = (
        ""  # the same as a sentence, with what the most frequent class alone would give
    )


def decide(
    summary: ComparisonSummary,
    advice: Recommendation | None,
    n_kept: int | None = None,
    confusion: Confusion | None = None,
) -> Verdict:
    """Apply the rule; ``n_kept`` labels were kept if others were hidden.

    ``confusion`` is that of the contestant of ``advice``.
    """
    headlines = SENTENCES["headlines"]
    if advice is None or summary.baseline is None:
        return Verdict(
            UNKNOWN, None, headlines[UNKNOWN], say(_SENTENCES["no_baseline"])
        )
    chosen = advice.chosen
    learned, how, base = _learned(summary, advice, confusion)
    kind = NOTHING if learned == NOTHING else _kind(summary, chosen)
    key = how if kind == NOTHING else kind
    worded = partial(
        say,
        base=base,
        name=title_of(chosen),
        now=" for now" if kind == UNCLEAR else "",
        expected=_expected(summary, advice),
        supervised=supervised_name(summary),
        fewer=_fewer(summary, chosen.name),
        brier=_mean(summary, chosen.name, BRIER),
        brier_supervised=_mean(summary, summary.baseline, BRIER),
        n_rows=advice.n_rows,
        standing=_SENTENCES["lowest" if chosen == advice.lowest else "safest"],
    )
    why: list[str] = [worded(_SENTENCES[key])]
    if learned == UNCLEAR:
        why.append(base)
    use = [] if kind == NOTHING else [worded(_SENTENCES["use"])]
    sentence = " ".join([*use, *why])
    if n_kept is not None:
        sentence = f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}"
    majority = confusion.base.majority if confusion else ""
    return Verdict(
        kind=kind,
        method=chosen.name,
        headline=headlines[key].format(
            name=title_of(chosen), majority=majority, n_rows=advice.n_rows
        ),
        sentence=sentence,
        why=" ".join(why),
        estimate=advice.estimate,
        learned=learned,
        base=base,
    )


def _learned(
    summary: ComparisonSummary, advice: Recommendation, confusion: Confusion | None
) -> tuple[str, str, str]:
    """Whether the advised contestant, or any other, clearly beats the most frequent class.

    The answer, the key of its sentence, and the sentence.
    """
    if confusion is None:
        return "", "", ""
    rate, estimate, name = confusion.base, advice.estimate, advice.chosen.name
    error = confusion.error if estimate is None else estimate.error
    high = confusion.interval[1] if estimate is None else estimate.high
    learned = rate.judge(error, high, _mean(summary, name, BRIER))
    highs = [
        s.high for s in summary.scores if s.measure == ERROR and s.high is not None
    ]
    if learned == NOTHING and min(highs, default=1.0) < rate.error:
        learned = UNCLEAR
    key = "no_better" if learned == UNCLEAR and error >= rate.error else learned
    if learned == NOTHING and advice.n_rows < rate.n_labels_needed:
        key = "few"
    rates = {"majority": rate.majority, "base": percent_text(rate.error)}
    rates |= {"n_rows": advice.n_rows, "needed": rate.n_labels_needed}
    return (
        learned,
        key,
        say(SENTENCES["base"][key], name=title_of(advice.chosen), **rates),
    )


def _kind(summary: ComparisonSummary, chosen: Contestant) -> str:
    verdicts = [summary.verdict(chosen.name, measure) for measure in (ERROR, BRIER)]
    uses_unlabeled = chosen.method.uses_unlabeled
    if "better" in verdicts and "worse" not in verdicts:
        if not uses_unlabeled:
            return OUTSIDE
        return HELPS if verdicts[0] else SHARPENS
    is_worse = [
        "worse" in {summary.verdict(name, m) for m in (ERROR, BRIER)}
        for name in {difference.method for difference in summary.differences}
    ]
    return HURTS if not uses_unlabeled and is_worse and all(is_worse) else UNCLEAR


def _expected(summary: ComparisonSummary, advice: Recommendation) -> str:
    """The error to expect, and why it is not the one in the table."""
    if advice.estimate is None:
        rows = plural(advice.n_rows, "labeled row")
        return (
            f"an error that {rows} are too few to estimate ({LEAST_TESTED} are needed)"
        )
    in_table = percent_text(_mean(summary, advice.chosen.name, ERROR))
    corrected = f"corrected for choosing the method by them; in the table {in_table}"
    return f"{str(advice.estimate).removesuffix(')')}, {corrected})"


def _fewer(summary: ComparisonSummary, name: str) -> str:
    difference = summary.difference(name, ERROR)
    if difference is None or difference.high > 0:
        return "fewer rows wrong"
    ends = f"{share(-difference.high)} to {share(-difference.low)} percentage points"
    return f"{ends} fewer wrong, 95 % interval"


def _mean(summary: ComparisonSummary, name: str | None, measure: str) -> float:
    mean = summary.mean(name, measure)
    return inf if mean is None else mean


def title_of(contestant: Contestant) -> str:
    """A contestant as a sentence calls it."""
    method = contestant.method
    if method.is_outside:
        return method.title
    return f"{method.title}{contestant.name.removeprefix(method.name)}"


def supervised_name(summary: ComparisonSummary) -> str:
    """The supervised contestant, as a sentence calls it."""
    return f"supervised LDA{(summary.baseline or '').removeprefix(SUPERVISED)}"


@dataclass(frozen=True)
class Comparison:
    """Settings and stored rows of a comparison, with all that follows from them."""

    settings: ComparisonSettings
    results: Sequence[FitResult]
    seconds: float  # of all runs

    @cached_property
    def summary(self) -> ComparisonSummary:
        """Scores and differences of all contestants."""
        return summarize_comparison(
            self.results, self.settings.contestants, self.settings.folds
        )

    @cached_property
    def advice(self) -> Recommendation | None:
        """What the rule recommends; None if there is nothing to compare with."""
        if self.summary.baseline is None:
            return None
        return recommend(self.results, self.settings.contestants)

    @property
    def chosen(self) -> Contestant | None:
        """The contestant to use."""
        return self.advice.chosen if self.advice else None

    @cached_property
    def confusion(self) -> Confusion | None:
        """Confusion of the contestant to use, a mean over the repeats."""
        if self.chosen is None:
            return None
        fitted = [
            r
            for r in self.compared
            if r.method == self.chosen.name and r.failure is None
        ]
        n_repeats = len({result.repeat for result in fitted})
        texts = [result.values["confusion"] for result in fitted]
        return mean_confusion(texts, self.settings.classes, n_repeats)

    @cached_property
    def verdict(self) -> Verdict:
        """The recommendation; where labels were hidden, for as many labels as were kept."""
        return decide(self.summary, self.advice, self.settings.n_kept, self.confusion)

    @cached_property
    def on_curves(self) -> list[str]:
        """Contestants on learning curves.

        The recommended one, the best of the other methods, the baseline, and the best method of
        scikit-learn; if there are few methods, all of them.
        """
        ranked = sorted(self.summary.best.values(), key=self.summary.rank)
        if len(ranked) <= _MOST_CURVES:
            return ranked
        others = [name for name in ranked if name != self.verdict.method]
        outside = [
            each.name for each in self.settings.contestants if each.method.is_outside
        ]
        best_outside = [name for name in ranked if name in outside]
        names = [
            self.verdict.method,
            *others[:1],
            self.summary.baseline,
            *best_outside[:1],
        ]
        return list(dict.fromkeys(name for name in names if name))

    @cached_property
    def points(self) -> list[SplitCurvePoint]:
        """Points of the learning curves."""
        return split_curve_points(self.results, self.on_curves, self.settings)

    @cached_property
    def compared(self) -> list[FitResult]:
        """Results of the comparison, without those of the learning curves."""
        return [result for result in self.results if result.experiment == COMPARISON]

    @cached_property
    def caution(self) -> str:
        """What the table has against an answer, by subject; empty if nothing."""
        subjects = [
            each.subject.lower()
            for each in self.settings.remarks
            if each.level == WARNING
        ]
        if not subjects:
            return ""
        warnings = "warning" if len(subjects) == 1 else f"{len(subjects)} warnings"
        named = and_list(list(dict.fromkeys(subjects)))
        return say(_SENTENCES["caution"], warnings=warnings, subjects=named)

    @cached_property
    def balanced(self) -> str:
        """The balanced error of what is recommended where classes are uneven, else empty."""
        if (
            self.chosen is None
            or self.confusion is None
            or not self.confusion.is_uneven
        ):
            return ""
        error = f"{100 * self.confusion.balanced_error:.1f} %"
        return say(
            SENTENCES["classes"]["balanced"], name=title_of(self.chosen), balanced=error
        )

    @cached_property
    def failures(self) -> dict[str, tuple[int, int, str]]:
        """By contestant, fits that failed, all fits, and the last line of the first traceback."""
        failed = [result for result in self.compared if result.failure is not None]
        totals = Counter(result.method for result in self.compared)
        reasons = {
            result.method: last_line(result.failure or "") for result in failed[::-1]
        }
        counts = Counter(result.method for result in failed)
        return {
            name: (count, totals[name], reasons[name]) for name, count in counts.items()
        }


def last_line(traceback: str) -> str:
    """The message at the end of a traceback."""
    return (traceback.strip().splitlines() or [""])[-1]
