"""The recommendation: one sentence that follows from the numbers by a rule anyone can check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ..._messages import and_list
from ..measures import BRIER, ERROR, LOSS
from ..page import with_minus
from .sentences import SENTENCES, say
from .summary import ComparisonSummary

_SENTENCES = SENTENCES["verdict"]
RULE = _SENTENCES["rule"]
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
        return Verdict(UNKNOWN, None, say(_SENTENCES["no_baseline"]))
    if not rivals:
        return Verdict(UNKNOWN, baseline, _SENTENCES["no_rival"])
    kind, best = _apply_rule(summary, rivals)
    tested = "labeled rows" if n_kept is None else "rows"  # the labels kept are others
    sentence = _sentence(kind, summary, best, n_tested, tested)
    if n_kept is not None:
        sentence = f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}"
    method = best if kind in (HELPS, SHARPENS) else baseline
    return Verdict(kind, method, sentence, _likelihood(summary, rivals))


def _apply_rule(summary: ComparisonSummary, rivals: Sequence[str]) -> tuple[str, str]:
    """The kind of the answer, and the rival that it is about."""
    if best := _best(summary, rivals, ERROR):
        return HELPS, best
    unharmed = [name for name in rivals if summary.verdict(name, ERROR) != "worse"]
    if best := _best(summary, unharmed, BRIER):
        return SHARPENS, best
    is_worse = ["worse" in {summary.verdict(name, m) for m in (ERROR, BRIER)} for name in rivals]
    return HURTS if all(is_worse) else UNCLEAR, min(rivals, key=summary.rank)


def _best(summary: ComparisonSummary, names: Sequence[str], measure: str) -> str | None:
    """The lowest mean, then the lowest Brier score, among those clearly better by a measure."""
    better = [name for name in names if summary.verdict(name, measure) == "better"]
    return min(
        better, key=lambda n: (_mean(summary, n, measure), _mean(summary, n, BRIER)), default=None
    )


def _mean(summary: ComparisonSummary, name: str | None, measure: str) -> float:
    mean = summary.mean(name, measure)
    return inf if mean is None else mean


def _sentence(kind: str, summary: ComparisonSummary, name: str, n_tested: int, tested: str) -> str:
    found, score = summary.difference(name, ERROR), summary.score(name, ERROR)
    assert found is not None  # rivals are those that have one
    ours, theirs = (_mean(summary, each, ERROR) for each in (name, summary.baseline))
    fewer, confidence, worse = points(-found.difference), "", "an unknown number of repeats"
    if found.high <= 0:
        fewer = f"{share(-found.high)} to {points(-found.low)}"
        confidence = ", with 95 % confidence"
    if score is not None and score.n_worse is not None:
        worse = f"{score.n_worse or 'none'} of {score.repeats} repeats"
    is_detectable = found.detectable < theirs
    chance = _SENTENCES["detectable" if is_detectable else "undetectable"]
    times, ending = (found.detectable / found.difference) ** 2 if found.difference else 0.0, ""
    if 0 < times <= _MOST_ROWS:
        needed = int(float(f"{n_tested * times:.1e}"))  # to two digits
        gain = points(abs(found.difference))
        ending = say(_SENTENCES["needed"], name=name, points=gain, n_rows=needed, rows=tested)
    return say(
        _SENTENCES["not_better" if kind == UNCLEAR and ours >= theirs else kind],
        name=name,
        supervised=supervised_name(summary),
        ours=percent(ours),
        theirs=percent(theirs),
        brier=_mean(summary, name, BRIER),
        brier_supervised=_mean(summary, summary.baseline, BRIER),
        fewer=fewer,
        confidence=confidence,
        worse=worse,
        n_tested=n_tested,
        rows=tested,
        chance=say(chance, points=points(found.detectable)),
        ending=ending,
    )


def _likelihood(summary: ComparisonSummary, rivals: Sequence[str]) -> str:
    """Which methods were never worse than supervised LDA in likelihood."""
    best = [name for name in rivals if name in summary.best.values()]
    scores = [score for name in best if (score := summary.score(name, LOSS))]
    never = [score.method for score in scores if score.share_worse_than_supervised == 0]
    return say(
        _SENTENCES["never_worse" if never else "always_worse"],
        names=and_list(never),
        were="were" if len(never) > 1 else "was",
        supervised=supervised_name(summary),
        repeats=max((score.repeats for score in scores), default=0),
    )


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
