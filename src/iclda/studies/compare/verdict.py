"""The recommendation: one sentence that follows from the numbers by a rule anyone can check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ..._messages import Hint, Text, and_list
from ..measures import BRIER, ERROR, LOSS
from ..page import with_minus
from .summary import ComparisonSummary, Difference

RULE = (
    "Each method is compared with supervised LDA split by split, on the same rows. A difference "
    "counts as clear if a t-test of these paired differences says so at the 5 % level, corrected "
    "for training sets that overlap (Nadeau and Bengio) and for the number of methods (Holm). If "
    "methods have a clearly lower error, the one with the lowest is recommended; else, if some "
    "have clearly better probabilities (Brier score) and no clearly higher error, the one with the "
    "best; else supervised LDA. Where supervised LDA took part with and without shrinkage, the one "
    "with the lower error is what the others are compared with."
)
HELPS, SHARPENS, HURTS, UNCLEAR, UNKNOWN = "helps", "sharpens", "hurts", "unclear", "unknown"
_MOST_ROWS = 100  # times the labeled rows there are: more than that is no advice


@dataclass(frozen=True)
class Verdict:
    """What to use, the sentence that says why, and what else is worth knowing."""

    kind: str
    method: str | None  # the contestant to use
    sentence: str
    also: str = ""


def decide(summary: ComparisonSummary, n_tested: int, n_kept: int | None = None) -> Verdict:
    """Apply the rule; ``n_kept`` labels were kept if others were hidden."""
    baseline = summary.baseline
    rivals = list(dict.fromkeys(d.method for d in summary.differences if d.measure == ERROR))
    if baseline is None or summary.mean(baseline, ERROR) is None:
        sentence: str = Text(
            "No answer: supervised LDA, which the others are measured by, could not be fitted; "
            "label more rows, or pass ",
            Hint("shrinkage", "auto"),
            ".",
        )
        return Verdict(UNKNOWN, None, sentence)
    if not rivals:
        return Verdict(UNKNOWN, baseline, "No answer: no method but supervised LDA has numbers.")
    tested = "labeled rows" if n_kept is None else "rows"  # the labels kept are others
    kind, method, sentence = _apply_rule(summary, rivals, baseline, n_tested, tested)
    if n_kept is not None:
        sentence = f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}"
    return Verdict(kind, method, sentence, _likelihood(summary, rivals))


def _apply_rule(
    summary: ComparisonSummary, rivals: Sequence[str], baseline: str, n_tested: int, tested: str
) -> tuple[str, str, str]:
    if best := _best(summary, rivals, ERROR):
        return HELPS, best, _helps(summary, best)
    unharmed = [name for name in rivals if summary.verdict(name, ERROR) != "worse"]
    if best := _best(summary, unharmed, BRIER):
        return SHARPENS, best, _sharpens(summary, best)
    best = min(rivals, key=summary.rank)
    if all("worse" in {summary.verdict(name, m) for m in (ERROR, BRIER)} for name in rivals):
        return HURTS, baseline, _hurts(summary, best)
    return UNCLEAR, baseline, _unclear(summary, best, n_tested, tested)


def _best(summary: ComparisonSummary, names: Sequence[str], measure: str) -> str | None:
    """The lowest mean, then the lowest Brier score, among those clearly better by a measure."""
    better = [name for name in names if summary.verdict(name, measure) == "better"]
    return min(
        better, key=lambda n: (_mean(summary, n, measure), _mean(summary, n, BRIER)), default=None
    )


def _mean(summary: ComparisonSummary, name: str | None, measure: str) -> float:
    mean = summary.mean(name, measure)
    return inf if mean is None else mean


def _means(summary: ComparisonSummary, name: str, measure: str = ERROR) -> tuple[float, float]:
    """Means of a contestant and of the baseline."""
    return _mean(summary, name, measure), _mean(summary, summary.baseline, measure)


def _helps(summary: ComparisonSummary, name: str) -> str:
    ours, theirs = map(percent, _means(summary, name))
    found = _error_difference(summary, name)
    fewer = f"{points(-found.difference)} fewer"
    if found.high <= 0:
        fewer = f"{share(-found.high)} to {points(-found.low)} fewer, with 95 % confidence"
    score = summary.score(name, ERROR)
    worse = "an unknown number of repeats"
    if score is not None and score.n_worse is not None:
        worse = f"{score.n_worse or 'none'} of {score.repeats} repeats"
    return (
        f"Use {name}: it gets {ours} of new rows wrong where {supervised_name(summary)} gets "
        f"{theirs} ({fewer}), and it was worse in {worse}."
    )


def _sharpens(summary: ComparisonSummary, name: str) -> str:
    ours, theirs = _means(summary, name, BRIER)
    errors = " and ".join(map(percent, _means(summary, name)))
    return (
        f"Use {name} if you use the probabilities: its Brier score is {ours:.3f}, that of "
        f"{supervised_name(summary)} {theirs:.3f}; in the number of rows that get a wrong class "
        f"there is no clear difference ({errors})."
    )


def _hurts(summary: ComparisonSummary, best: str) -> str:
    ours, theirs = map(percent, _means(summary, best))
    return (
        f"Stay with {supervised_name(summary)}, which gets {theirs} of new rows wrong: every "
        f"method that uses the unlabeled rows is clearly worse here, the best of them, {best}, "
        f"with {ours}."
    )


def _unclear(summary: ComparisonSummary, best: str, n_tested: int, tested: str) -> str:
    found, supervised = _error_difference(summary, best), supervised_name(summary)
    ours, theirs = _means(summary, best)
    if ours >= theirs:
        return (
            f"Stay with {supervised}: it gets {percent(theirs)} of new rows wrong, and no method "
            "that uses the unlabeled rows gets fewer wrong."
        )
    chance = f"a difference below {points(found.detectable)} can be chance"
    if found.detectable >= theirs:
        chance = "even a method without any error could not be told from chance"
    sentence = (
        f"Stay with {supervised} for now: {best} gets {percent(ours)} of new rows wrong and "
        f"{supervised} {percent(theirs)}, but with {n_tested:,} {tested} to test on {chance}"
    )
    times = (found.detectable / found.difference) ** 2 if found.difference else 0.0
    if not 0 < times <= _MOST_ROWS:
        return f"{sentence}."
    needed = int(float(f"{n_tested * times:.1e}"))  # to two digits
    return (
        f"{sentence}; if {best} really is {points(abs(found.difference))} better, about "
        f"{needed:,} {tested} to test on would show it."
    )


def _likelihood(summary: ComparisonSummary, rivals: Sequence[str]) -> str:
    """Which methods were never worse than supervised LDA in likelihood."""
    supervised = supervised_name(summary)
    best = [name for name in rivals if name in summary.best.values()]
    scores = [score for name in best if (score := summary.score(name, LOSS))]
    never = [score.method for score in scores if score.share_worse_than_supervised == 0]
    if not never:
        return f"In likelihood (loss) every method was worse than {supervised} in some repeat."
    repeats = max(score.repeats for score in scores)
    verb = "were" if len(never) > 1 else "was"
    return (
        f"In likelihood (loss) {and_list(never)} {verb} never worse than {supervised}, in "
        f"{repeats} repeats."
    )


def _error_difference(summary: ComparisonSummary, name: str) -> Difference:
    found = summary.difference(name, ERROR)
    assert found is not None  # rivals are those that have one
    return found


def supervised_name(summary: ComparisonSummary) -> str:
    """The supervised contestant, as a sentence calls it."""
    name = summary.baseline or ""
    return f"supervised LDA{name.removeprefix('supervised')}"


def percent(value: float) -> str:
    """A share as one says it: 4.5 %."""
    return f"{share(value)} %"


def points(value: float) -> str:
    """A difference of shares: 4.5 percentage points."""
    return f"{share(value)} percentage points"


def share(value: float) -> str:
    """A share in percent, without the sign for it."""
    return with_minus(f"{100 * value:.1f}")
