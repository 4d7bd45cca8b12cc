"""The verdict of a comparison in words: what to use, what to expect of it, and why."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ..._error_estimate import (
    CLEAR,
    MIN_TESTED_ROWS,
    NOTHING_LEARNED,
    UNCLEAR,
    ErrorEstimate,
)
from ..._messages import percent_text, plural, say
from ...methods import (
    BASELINES,
    COMPARED,
    DEFAULT_ON_NETWORKS,
    DEFAULT_ON_TABLES,
    FITTED,
    default_rank,
    find_method,
)
from ..measures import BRIER, ERROR, Confusion
from .contestants import SUPERVISED, Contestant
from .recommendation import Recommendation
from .summary import ComparisonSummary

# Kinds of verdicts; two more are NOTHING_LEARNED and UNCLEAR.
# With the unlabeled rows clearly fewer rows are wrong.
HELPS = "helps"
# With the unlabeled rows probabilities are clearly better, but no fewer rows are wrong.
SHARPENS = "sharpens"
# Every method that uses the unlabeled rows is clearly worse than supervised LDA.
HURTS = "hurts"
# A supervised method of scikit-learn, or the ensemble, which has such members, is
# clearly better than supervised LDA. It is not known whether unlabeled rows help.
OUTSIDE = "outside"
# Supervised LDA could not be fitted.
UNKNOWN = "unknown"

# Further keys of sentences: labels are too few to show that anything was learned, ...
_FEW_LABELS = "few labels"
# ... or the error is not below that of the most frequent class.
_NO_BETTER = "no better"

RULE = say(
    "Every labeled row is predicted by fits that were not given its label, and scored "
    "by the Brier score, the squared distance between probabilities and truth. Of the "
    "methods whose mean score is within half a standard error of the lowest, row by "
    "row, or within 0.02 of it with no more wrong rows, the first is recommended. The "
    "order begins with the default, and comes from errors on other tables: {order}, "
    "and then those without shrinkage (with fewer than 5 labels per feature these are "
    "not recommended). On features of a network {on_networks} comes first. "
    "The error to expect is corrected for choosing by the same rows: the choice is "
    "made on bootstrap samples and judged on the rows left out (Tsamardinos, Greasidou "
    "and Borboudakis 2018), with the interval of Clopper and Pearson. A difference "
    "from supervised LDA counts as clear if a t-test of paired differences says so at "
    "the 5 % level, corrected for training sets that overlap (Nadeau and Bengio) and "
    "for the number of methods (Holm).",
    order=", ".join(
        sorted((method.name for method in (*FITTED, *BASELINES)), key=default_rank)
    ),
    on_networks=DEFAULT_ON_NETWORKS,
)

_HEADLINES = {
    HELPS: "The unlabeled rows help: use {name}",
    SHARPENS: "The unlabeled rows make better probabilities: use {name}",
    OUTSIDE: "Use {name}",
    HURTS: "The unlabeled rows do not help: use {name}",
    UNCLEAR: "No method is clearly better: use {name} for now",
    NOTHING_LEARNED: (
        "Nothing was learned: no method beats calling every row {majority!r}"
    ),
    _FEW_LABELS: "{n_rows:,} labels cannot show that anything was learned",
    UNKNOWN: "No answer",
}

_USE = "Use {name}{now}: expect {expected}."
# The reason for a recommendation, by the key of its headline.
_REASONS = {
    HELPS: (
        "It is clearly better than {supervised} on the same rows ({fewer}){too}: the "
        "unlabeled rows help."
    ),
    SHARPENS: (
        "Its probabilities are clearly better than those of {supervised} (Brier score "
        "{brier:.3f} instead of {brier_supervised:.3f}); the numbers of wrong rows do "
        "not differ clearly."
    ),
    OUTSIDE: "It is clearly better than {supervised} on the same rows ({fewer}).",
    HURTS: (
        "The unlabeled rows do not help here: every other method is clearly worse than "
        "{supervised}."
    ),
    UNCLEAR: (
        "On {n_rows:,} labeled rows no method is clearly better than {supervised}; "
        "{standing}. More labeled rows would tell methods apart."
    ),
    NOTHING_LEARNED: (
        "{base} Do not rely on a model fitted to them: expect {expected} with {name}. "
        "Look for columns that say more about the class, or label more rows."
    ),
    _FEW_LABELS: ("{base} Do not rely on a model yet: expect {expected} with {name}."),
    UNKNOWN: (
        "No answer: supervised LDA, which the others are compared with, could not be "
        "fitted; label more rows, or pass {@shrinkage=auto}."
    ),
}
_LOWEST_LOSS = "this one has the best Brier score"
_DEFAULT = "they cannot tell the {n_methods} methods apart, so this is the default"
_FIRST = (
    "of those that do about as well as the best, this one comes first in the order "
    "from the default on"
)

# Whether the recommended method beats the most frequent class.
_BASE_RATES = {
    NOTHING_LEARNED: (
        "Nothing was learned from these columns: calling every row {majority!r} gets "
        "{base} wrong, and no method is clearly better than that."
    ),
    _FEW_LABELS: (
        "{n_rows:,} labels cannot show that anything was learned: calling every row "
        "{majority!r} gets {base} wrong, and no method is clearly better than that. "
        "About {needed:,} labels would show an error 5 percentage points lower."
    ),
    UNCLEAR: (
        "Calling every row {majority!r} gets {base} wrong: with so few labels {name} "
        "is not clearly better than that."
    ),
    _NO_BETTER: (
        "Calling every row {majority!r} gets {base} wrong: {name} looks no better than "
        "that."
    ),
    CLEAR: (
        "Calling every row {majority!r} gets {base} wrong: {name} is clearly better "
        "than that."
    ),
}


@dataclass(frozen=True)
class Verdict:
    """What to use, which error to expect of it, and why.

    Attributes
    ----------
    kind : str
        HELPS, SHARPENS, HURTS, OUTSIDE or UNKNOWN, or "nothing" or "unclear".
    method : str or None
        The contestant to use.
    headline : str
        Headline of pages.
    sentence : str
        The whole answer.
    why : str
        The reason: the answer without what to use and what to expect.
    estimate : ErrorEstimate or None
        The error to expect.
    learned : str
        Whether anything was learned: "clear", "unclear" or "nothing"; empty if unknown.
    base : str
        A sentence that compares with the error of the most frequent class.
    """

    kind: str
    method: str | None
    headline: str
    sentence: str
    why: str = ""
    estimate: ErrorEstimate | None = None
    learned: str = ""
    base: str = ""


@dataclass(frozen=True)
class _Learned:
    """Whether anything was learned, as in ``Verdict``, with a sentence and its key."""

    level: str = ""
    key: str = ""
    sentence: str = ""


def decide(
    summary: ComparisonSummary,
    advice: Recommendation | None,
    n_kept: int | None = None,
    confusion: Confusion | None = None,
) -> Verdict:
    """Put the recommendation into words.

    ``n_kept`` is the number of labels kept if others were hidden. ``confusion`` is the
    matrix of the recommended contestant.
    """
    if advice is None or summary.baseline is None:
        return Verdict(UNKNOWN, None, _HEADLINES[UNKNOWN], say(_REASONS[UNKNOWN]))
    chosen = advice.chosen
    learned = _judge_learning(summary, advice, confusion)
    if learned.level == NOTHING_LEARNED:
        kind = NOTHING_LEARNED
        # If labels are few, the sentence says that they cannot show more.
        key = learned.key
    else:
        kind = _kind(summary, chosen)
        key = kind

    values = {
        **_facts(summary, advice),
        "now": " for now" if kind == UNCLEAR else "",
        "base": learned.sentence,
        "majority": confusion.base.majority if confusion else "",
    }
    why: str = say(_REASONS[key], **values)
    if learned.level == UNCLEAR:
        why = f"{why} {learned.sentence}"
    sentence = why
    # If nothing was learned, the reason says what to expect.
    if kind != NOTHING_LEARNED:
        sentence = f"{say(_USE, **values)} {why}"
    if n_kept is not None:
        sentence = f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}"
    return Verdict(
        kind=kind,
        method=chosen.name,
        headline=_HEADLINES[key].format(**values),
        sentence=sentence,
        why=why,
        estimate=advice.estimate,
        learned=learned.level,
        base=learned.sentence,
    )


def _facts(summary: ComparisonSummary, advice: Recommendation) -> dict[str, Any]:
    """Return what the sentences say about the recommended contestant, by field."""
    chosen = advice.chosen
    return {
        "name": title_of(chosen),
        "expected": _expected_error(summary, advice),
        "supervised": supervised_name(summary),
        "fewer": _fewer_wrong(summary, chosen.name),
        "too": _helped_too(summary, chosen),
        "brier": _mean(summary, chosen.name, BRIER),
        "brier_supervised": _mean(summary, summary.baseline, BRIER),
        "n_rows": advice.n_rows,
        "standing": _standing(advice),
    }


def _helped_too(summary: ComparisonSummary, chosen: Contestant) -> str:
    """Name the contestant that shows what unlabeled rows add, if another one does."""
    if chosen.method.name != DEFAULT_ON_TABLES:
        return ""
    return f", and so is {_best_helped(summary)}"


def _standing(advice: Recommendation) -> str:
    """Say why a contestant is recommended that is not clearly better than others."""
    if advice.chosen == advice.lowest:
        return _LOWEST_LOSS
    if advice.is_default:
        return _DEFAULT.format(n_methods=advice.n_methods)
    return _FIRST


def _judge_learning(
    summary: ComparisonSummary, advice: Recommendation, confusion: Confusion | None
) -> _Learned:
    """Judge whether the recommended contestant beats the most frequent class."""
    if confusion is None:
        return _Learned()
    base_rate = confusion.base
    estimate = advice.estimate
    if estimate is None:
        error = confusion.error
        high = confusion.interval[1]
    else:
        # Corrected for choosing among methods, which the confusion matrix is not.
        error = estimate.error
        high = estimate.high
    brier = _mean(summary, advice.chosen.name, BRIER)
    level = base_rate.judge(error, high, brier)

    # Something was learned if any other contestant clearly beats it.
    highs = [
        score.high
        for score in summary.scores
        if score.measure == ERROR and score.high is not None
    ]
    if level == NOTHING_LEARNED and min(highs, default=1.0) < base_rate.error:
        level = UNCLEAR

    # Two levels have a second sentence, for special cases.
    key = level
    if level == UNCLEAR and error >= base_rate.error:
        key = _NO_BETTER
    if level == NOTHING_LEARNED and advice.n_rows < base_rate.n_labels_needed:
        key = _FEW_LABELS
    sentence = say(
        _BASE_RATES[key],
        name=title_of(advice.chosen),
        majority=base_rate.majority,
        base=percent_text(base_rate.error),
        n_rows=advice.n_rows,
        needed=base_rate.n_labels_needed,
    )
    return _Learned(level, key, sentence)


def _kind(summary: ComparisonSummary, chosen: Contestant) -> str:
    """Return the kind of the verdict, by clear differences from the baseline."""
    uses_unlabeled = chosen.method.uses_unlabeled
    error_verdict = summary.verdict(chosen.name, ERROR)
    brier_verdict = summary.verdict(chosen.name, BRIER)
    verdicts = (error_verdict, brier_verdict)
    # Fewer wrong rows with clearly worse probabilities, or the reverse, are unclear.
    if "better" in verdicts and "worse" not in verdicts:
        if _does_unlabeled_help(summary, chosen):
            return HELPS if error_verdict == "better" else SHARPENS
        return OUTSIDE

    rivals = {difference.method for difference in summary.differences}
    are_all_worse = all(_is_worse(summary, name) for name in rivals)
    if rivals and are_all_worse and not uses_unlabeled:
        return HURTS
    return UNCLEAR


def _does_unlabeled_help(summary: ComparisonSummary, chosen: Contestant) -> bool:
    """Whether a contestant that is clearly better is so by the unlabeled rows."""
    if chosen.method.name != DEFAULT_ON_TABLES:
        return chosen.method.uses_unlabeled
    # It may be its members that see the labeled rows alone: another method has to show
    # that it is not.
    return bool(_best_helped(summary))


def _best_helped(summary: ComparisonSummary) -> str:
    """Return the best contestant with a clear gain by unlabeled rows alone, or ""."""
    helped = [
        difference.method
        for difference in summary.differences
        if difference.measure == ERROR
        and difference.verdict == "better"
        and _differs_by_unlabeled_rows(difference.method)
    ]
    return min(helped, key=summary.rank, default="")


def _differs_by_unlabeled_rows(name: str) -> bool:
    """Whether a contestant is LDA, as the baseline is, that uses unlabeled rows."""
    # What follows the name of the method is its shrinkage.
    method = find_method(name.split()[0], COMPARED)
    is_mixed = method.is_outside or method.name == DEFAULT_ON_TABLES
    return method.uses_unlabeled and not is_mixed


def _is_worse(summary: ComparisonSummary, name: str) -> bool:
    """Whether a contestant is clearly worse than the baseline by any measure."""
    return "worse" in (summary.verdict(name, ERROR), summary.verdict(name, BRIER))


def _expected_error(summary: ComparisonSummary, advice: Recommendation) -> str:
    """State the error to expect, and why it is not the one in the table."""
    if advice.estimate is None:
        rows = plural(advice.n_rows, "labeled row")
        needed = f"{MIN_TESTED_ROWS} are needed"
        return f"an error that {rows} are too few to estimate ({needed})"
    in_table = percent_text(_mean(summary, advice.chosen.name, ERROR))
    correction = f"corrected for choosing the method by them; in the table {in_table}"
    # The estimate ends with its interval in brackets, to which the correction is added.
    return f"{str(advice.estimate).removesuffix(')')}, {correction})"


def _fewer_wrong(summary: ComparisonSummary, name: str) -> str:
    """State by how much the error is lower than that of supervised LDA."""
    difference = summary.difference(name, ERROR)
    only_sharper = summary.verdict(name, BRIER) == "better"
    if only_sharper and summary.verdict(name, ERROR) != "better":
        return "its probabilities are, and the numbers of wrong rows do not differ"
    if difference is None or difference.high > 0:
        return "fewer rows wrong"
    # The difference is negative: its upper end is the smallest gain.
    least = -100 * difference.high
    most = -100 * difference.low
    return f"{least:.1f} to {most:.1f} percentage points fewer wrong, 95 % interval"


def _mean(summary: ComparisonSummary, name: str | None, measure: str) -> float:
    """Return the mean of a measure, infinite if it has no value."""
    mean = summary.mean(name, measure)
    return inf if mean is None else mean


def title_of(contestant: Contestant) -> str:
    """Return the name of a contestant in a sentence."""
    method = contestant.method
    if method.is_outside:
        return method.title
    # What follows the name of the method is its shrinkage.
    shrinkage = contestant.name.removeprefix(method.name)
    return f"{method.title}{shrinkage}"


def supervised_name(summary: ComparisonSummary) -> str:
    """Return the name of the supervised contestant in a sentence."""
    baseline = summary.baseline or ""
    shrinkage = baseline.removeprefix(SUPERVISED)
    return f"supervised LDA{shrinkage}"
