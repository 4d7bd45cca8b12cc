"""The recommendation: one sentence that follows from the numbers by a rule anyone can check."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..._advice import LEAST_TESTED, ErrorEstimate, percent_text, safety_rank
from ..._estimators.average import AVERAGED
from ..._messages import Text, and_list, plural, say
from ..._statistics import NOTHING, UNCLEAR
from ...methods import BASELINES, FITTED
from ..confusion import Confusion
from ..measures import BRIER, ERROR, LOSS
from ..page import share
from .choice import Recommendation
from .plan import SUPERVISED, Contestant
from .sentences import SENTENCES
from .summary import ComparisonSummary

_SENTENCES = SENTENCES["verdict"]
_HEADLINES = SENTENCES["headlines"]
_BASE = SENTENCES["base"]
RULE = say(
    _SENTENCES["rule"],
    order=", ".join(
        f"{each.name} (of {and_list(AVERAGED)})" if each.name == "average" else each.name
        for each in sorted((*FITTED, *BASELINES), key=lambda method: safety_rank(method.name))
    ),
)
HELPS, SHARPENS, HURTS, UNKNOWN = "helps", "sharpens", "hurts", "unknown"  # or UNCLEAR, NOTHING
OUTSIDE = "outside"  # a method of scikit-learn is clearly better
_MOST_ROWS = 100  # times the labeled rows there are: more than that is no advice


@dataclass(frozen=True)
class Verdict:
    """What to use, what to expect of it, why, and what else is worth knowing."""

    kind: str
    method: str | None  # the contestant to use
    headline: str  # of pages
    sentence: str
    also: str = ""
    estimate: ErrorEstimate | None = None
    own: str | None = None  # the contestant to use of this package's own
    learned: str = ""  # whether anything was: clear, unclear or nothing; empty if unknown
    base: str = ""  # the same as a sentence, with what the most frequent class alone would give


def decide(
    summary: ComparisonSummary,
    advice: Recommendation | None,
    n_kept: int | None = None,
    confusion: Confusion | None = None,
) -> Verdict:
    """Apply the rule; ``n_kept`` labels were kept if others were hidden.

    ``confusion`` is that of the contestant of ``advice``.
    """
    if advice is None or summary.baseline is None:
        sentence = say(_SENTENCES["no_baseline"])
        return Verdict(UNKNOWN, None, _HEADLINES[UNKNOWN], sentence)
    chosen, own = advice.chosen, advice.own
    learned, base = _learned(summary, advice, confusion)
    kind = NOTHING if learned == NOTHING else _kind(summary, advice)
    sentence = say(
        _SENTENCES[kind] if kind == NOTHING else f"{_SENTENCES['use']} {_SENTENCES[kind]}",
        base=base,
        name=title_of(chosen),
        now=" for now" if kind == UNCLEAR else "",
        expected=_expected(advice),
        supervised=supervised_name(summary),
        fewer=_fewer(summary, chosen.name),
        brier=_mean(summary, chosen.name, BRIER),
        brier_supervised=_mean(summary, summary.baseline, BRIER),
        n_rows=advice.n_rows,
        standing=_SENTENCES["lowest" if chosen == advice.lowest else "safest"],
        change=_change(summary, advice),
    )
    if learned == UNCLEAR:
        sentence = Text(sentence, " ", base)
    if chosen.method.is_outside and own is not None and kind != NOTHING:
        sentence = Text(sentence, " ", say(_SENTENCES["own"], own=title_of(own)))
    if n_kept is not None:
        sentence = Text(f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}")
    majority = confusion.base.majority if confusion else ""
    headline = _HEADLINES[kind].format(name=title_of(chosen), majority=majority)
    also = _likelihood(summary)
    own_name = own.name if own else None
    return Verdict(
        kind, chosen.name, headline, sentence, also, advice.estimate, own_name, learned, base
    )


def _learned(
    summary: ComparisonSummary, advice: Recommendation, confusion: Confusion | None
) -> tuple[str, str]:
    """Whether the advised contestant, or any other, clearly beats the most frequent class."""
    if confusion is None:
        return "", ""
    rate, estimate, name = confusion.base, advice.estimate, advice.chosen.name
    error = confusion.error if estimate is None else estimate.error
    high = confusion.interval[1] if estimate is None else estimate.high
    found = rate.judge(error, high, _mean(summary, name, BRIER))
    highs = [s.high for s in summary.scores if s.measure == ERROR and s.high is not None]
    if found == NOTHING and min(highs, default=1.0) < rate.error:
        found = UNCLEAR
    words = {"majority": rate.majority, "base": percent_text(rate.error)}
    key = "no_better" if found == UNCLEAR and error >= rate.error else found
    return found, say(_BASE[key], name=title_of(advice.chosen), **words)


def _kind(summary: ComparisonSummary, advice: Recommendation) -> str:
    chosen = advice.chosen
    verdicts = [summary.verdict(chosen.name, measure) for measure in (ERROR, BRIER)]
    if "better" in verdicts and "worse" not in verdicts:
        if not chosen.method.uses_unlabeled:
            return OUTSIDE
        return HELPS if verdicts[0] else SHARPENS
    rivals = {d.method for d in summary.differences}
    is_worse = [
        "worse" in {summary.verdict(name, m) for m in (ERROR, BRIER)} for name in sorted(rivals)
    ]
    uses_none = not chosen.method.uses_unlabeled
    return HURTS if uses_none and is_worse and all(is_worse) else UNCLEAR


def _expected(advice: Recommendation) -> str:
    if advice.estimate is None:
        rows = plural(advice.n_rows, "labeled row")
        return f"an error that {rows} are too few to estimate ({LEAST_TESTED} are needed)"
    return str(advice.estimate)


def _fewer(summary: ComparisonSummary, name: str) -> str:
    found = summary.difference(name, ERROR)
    if found is None or found.high > 0:
        return "fewer rows wrong"
    return f"{share(-found.high)} to {points(-found.low)} fewer wrong, 95 % interval"


def _change(summary: ComparisonSummary, advice: Recommendation) -> str:
    """What would make an unclear answer clear."""
    best = advice.lowest
    found = summary.difference(best.name, BRIER)
    times = (found.detectable / found.difference) ** 2 if found and found.difference < 0 else 0.0
    if not 1 < times <= _MOST_ROWS:
        return _SENTENCES["more"]
    needed = int(float(f"{advice.n_rows * times:.1e}"))  # to two digits
    return str(say(_SENTENCES["needed"], best=title_of(best), n_rows=needed))


def _mean(summary: ComparisonSummary, name: str | None, measure: str) -> float:
    mean = summary.mean(name, measure)
    return inf if mean is None else mean


def title_of(contestant: Contestant) -> str:
    """A contestant as a sentence calls it: its title, or its name on the command line."""
    if contestant.method.is_outside:
        return contestant.method.title
    return f"{contestant.method.title}{contestant.name.removeprefix(contestant.method.name)}"


def _likelihood(summary: ComparisonSummary) -> str:
    """Which methods were never worse than supervised LDA in likelihood."""
    best = [
        name
        for name in dict.fromkeys(d.method for d in summary.differences if d.measure == LOSS)
        if name in summary.best.values()
    ]
    if not best:
        return ""
    scores = [score for name in best if (score := summary.score(name, LOSS))]
    never = [score.method for score in scores if score.share_worse_than_supervised == 0]
    return say(
        _SENTENCES["never_worse" if never else "always_worse"],
        names=and_list(never),
        supervised=supervised_name(summary),
        repeats=max((score.repeats for score in scores), default=0),
    )


def supervised_name(summary: ComparisonSummary) -> str:
    """The supervised contestant, as a sentence calls it."""
    return f"supervised LDA{(summary.baseline or '').removeprefix(SUPERVISED)}"


def points(value: float) -> str:
    """A difference of shares: 4.5 percentage points."""
    return f"{share(value)} percentage points"
