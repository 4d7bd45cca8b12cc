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
from ..measures import AUC, BALANCED, BRIER, COMPARISON_MEASURES, ERROR, Confusion
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

_RULE = (
    "Every labeled row is predicted by fits that do not know its label, and is scored "
    "by {score}. A method qualifies if its mean score is within two standard errors "
    "of the best one (of the differences, row by row), or within 0.02 of it with no "
    "more errors. Of the methods that qualify, the first in the default order is "
    "recommended, so only a clearly better method replaces the default, which "
    "`iclda fit` fits without a comparison. The order is: {order}. Variants without "
    "shrinkage come last, and are not recommended with fewer than 5 labels per "
    "feature. On features of a network {on_networks} comes first. The order was "
    "chosen by errors on other tables. The error to expect is corrected for choosing"
    " the method on the same rows: the choice is repeated on bootstrap samples and "
    "judged on the rows left out (Tsamardinos, Greasidou and Borboudakis 2018). "
    "Intervals of errors are those of Clopper and Pearson. A difference from "
    "supervised LDA is clear if a paired t-test finds it at the 5 % level, corrected"
    " for overlapping training sets (Nadeau and Bengio) and for the number of "
    "methods (Holm)."
)
# How a row is scored, by the measure that decides.
_SCORES = {
    BRIER: "the Brier score, the squared distance of the probabilities from the truth",
    ERROR: "whether the predicted class is wrong",
    BALANCED: (
        "whether the predicted class is wrong, weighted so that all classes count the "
        "same"
    ),
    AUC: (
        "the share of rows of the other class that are ranked on its wrong side, which "
        "on average is the area above the ROC curve"
    ),
}

_HEADLINES = {
    HELPS: "The unlabeled rows help: use {name}",
    SHARPENS: "The unlabeled rows improve the probabilities: use {name}",
    OUTSIDE: "Use {name}",
    HURTS: "The unlabeled rows do not help: use {name}",
    UNCLEAR: "No method is clearly better: use {name} for now",
    NOTHING_LEARNED: "Nothing was learned: no method beats {rival}",
    _FEW_LABELS: "{n_rows:,} labels cannot show that anything was learned",
    UNKNOWN: "No answer",
}

_USE = "Use {name}{now}: {expected}."
# The reason for a recommendation, by the key of its headline.
_REASONS = {
    HELPS: "{gain}: the unlabeled rows help.",
    SHARPENS: (
        "Its probabilities are clearly better than those of {supervised} (Brier score "
        "{brier:.3f} instead of {brier_supervised:.3f}), but its {main} is not clearly "
        "{better}."
    ),
    OUTSIDE: "{gain}.",
    HURTS: (
        "The unlabeled rows do not help: every other method is clearly worse than "
        "{supervised}."
    ),
    UNCLEAR: "{standing}",
    NOTHING_LEARNED: (
        "{base} Do not rely on a model of these columns: with {name}, {expected}. "
        "Look for columns that say more about the class, or label more rows."
    ),
    _FEW_LABELS: "{base} Do not rely on a model yet: with {name}, {expected}.",
    UNKNOWN: (
        "No answer: supervised LDA, the baseline of the comparison, could not be "
        "fitted. Label more rows, or pass {@shrinkage=auto}."
    ),
}
# Why a method is recommended that is not clearly better than others.
_DEFAULT = (
    "{n_rows:,} labels cannot tell the {n_methods} methods apart, so this is the "
    "default."
)
_NOT_CLEAR = "On {n_rows:,} labels no method is clearly better than {supervised}"
_WAY_OUT = "More labels or more repeats may show a difference."
_LOWEST_LOSS = f"{_NOT_CLEAR}; this one has the best {{score}}. {_WAY_OUT}"
_FIRST = (
    f"{_NOT_CLEAR}. The labels cannot tell several methods from the best, and this one "
    f"comes first in the default order. {_WAY_OUT}"
)

# Whether the recommended method beats the most frequent class.
_BASE_RATES = {
    NOTHING_LEARNED: (
        "Nothing was learned from these columns: always predicting {majority!r} is "
        "wrong {base} of the time, and no method is clearly better."
    ),
    _FEW_LABELS: (
        "{n_rows:,} labels cannot show that anything was learned: always predicting "
        "{majority!r} is wrong {base} of the time, and no method is clearly better. "
        "About {needed:,} labels would show an error 5 percentage points lower."
    ),
    UNCLEAR: (
        "Always predicting {majority!r} is wrong {base} of the time; on so few labels "
        "this method is not clearly better."
    ),
    _NO_BETTER: (
        "Always predicting {majority!r} is wrong {base} of the time, and this method "
        "looks no better."
    ),
    CLEAR: (
        "Always predicting {majority!r} is wrong {base} of the time; this method is "
        "clearly better."
    ),
}
# The same where all classes count the same.
_CHANCES = {
    NOTHING_LEARNED: (
        "Nothing was learned from these columns: the {noun} of guessing is {chance}, "
        "and that of {name} is {mean}."
    ),
    UNCLEAR: (
        "The {noun} of guessing is {chance}; that of {name} is {mean}, which is not "
        "clearly better."
    ),
    CLEAR: (
        "The {noun} of guessing is {chance}; that of {name} is {mean}, which is "
        "clearly better."
    ),
}
# A mean that is this many standard errors better than guessing is clearly better.
_CLEAR_ERRORS = 2


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
        **_facts(summary, advice, kind),
        "now": " for now" if kind == UNCLEAR else "",
        "base": learned.sentence,
        "rival": _rival(summary, confusion),
    }
    why: str = say(_REASONS[key], **values)
    if learned.level == UNCLEAR or (learned.level == CLEAR and summary.main != ERROR):
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


def _rival(summary: ComparisonSummary, confusion: Confusion | None) -> str:
    """Name the predictions that use no column."""
    if summary.main != ERROR or confusion is None:
        return "guessing"
    return f"always predicting {confusion.base.majority!r}"


def rule_text(measure: str) -> str:
    """Explain the rule, by the measure that decides."""
    methods = sorted(
        (method.name for method in (*FITTED, *BASELINES)), key=default_rank
    )
    return _RULE.format(
        score=_SCORES[measure],
        order=", ".join(methods),
        on_networks=DEFAULT_ON_NETWORKS,
    )


def _facts(
    summary: ComparisonSummary, advice: Recommendation, kind: str
) -> dict[str, Any]:
    """Return what the sentences say about the recommended contestant, by field."""
    chosen = advice.chosen
    main = COMPARISON_MEASURES[summary.main]
    return {
        "name": title_of(chosen),
        "expected": _expected_error(advice),
        "supervised": supervised_name(summary),
        "gain": _gain(summary, chosen, kind),
        "main": main.noun,
        "better": "lower" if main.lower_is_better else "higher",
        "brier": _mean(summary, chosen.name, BRIER),
        "brier_supervised": _mean(summary, summary.baseline, BRIER),
        "n_rows": advice.n_rows,
        "standing": _standing(summary, advice),
    }


def _standing(summary: ComparisonSummary, advice: Recommendation) -> str:
    """Say why a contestant is recommended that is not clearly better than others."""
    if advice.chosen == advice.lowest:
        sentence = _LOWEST_LOSS
    elif advice.is_default:
        sentence = _DEFAULT
    else:
        sentence = _FIRST
    return sentence.format(
        n_rows=advice.n_rows,
        n_methods=advice.n_methods,
        supervised=supervised_name(summary),
        score=COMPARISON_MEASURES[summary.measure].noun,
    )


def _judge_learning(
    summary: ComparisonSummary, advice: Recommendation, confusion: Confusion | None
) -> _Learned:
    """Judge whether the recommended contestant beats the most frequent class."""
    if confusion is None:
        return _Learned()
    if summary.main != ERROR:
        return _judge_against_chance(summary, advice, len(confusion.by_class))
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


def _judge_against_chance(
    summary: ComparisonSummary, advice: Recommendation, n_classes: int
) -> _Learned:
    """Judge whether the recommended contestant is better than guessing.

    The most frequent class is of no use where all classes count the same.
    """
    measure = COMPARISON_MEASURES[summary.main]
    chance = 0.5 if summary.main == AUC else 1 - 1 / n_classes
    score = summary.score(advice.chosen.name, summary.main)
    if score is None or score.mean is None:
        return _Learned()
    gain = measure.sign * (chance - score.mean)
    level = UNCLEAR
    if gain <= 0:
        level = NOTHING_LEARNED
    elif score.se is not None and gain > _CLEAR_ERRORS * score.se:
        level = CLEAR
    sentence = _CHANCES[level].format(
        noun=measure.noun,
        name=title_of(advice.chosen),
        chance=f"{chance:.{measure.decimals}f}",
        mean=f"{score.mean:.{measure.decimals}f}",
    )
    return _Learned(level, level, sentence)


def _kind(summary: ComparisonSummary, chosen: Contestant) -> str:
    """Return the kind of the verdict, by clear differences from the baseline."""
    uses_unlabeled = chosen.method.uses_unlabeled
    error_verdict = summary.verdict(chosen.name, summary.main)
    brier_verdict = summary.verdict(chosen.name, BRIER)
    verdicts = (error_verdict, brier_verdict)
    # A better error with clearly worse probabilities, or the reverse, is unclear.
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
        if difference.measure == summary.main
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
    verdicts = (summary.verdict(name, summary.main), summary.verdict(name, BRIER))
    return "worse" in verdicts


def _expected_error(advice: Recommendation) -> str:
    """State the error to expect."""
    if advice.estimate is None:
        rows = plural(advice.n_rows, "labeled row")
        needed = f"{MIN_TESTED_ROWS} are needed"
        return f"its error cannot be estimated from {rows} ({needed})"
    # The estimate ends with its interval in brackets, to which the correction is added.
    opened = str(advice.estimate).removesuffix(")")
    return f"expect {opened}, corrected for choosing the method on them)"


def _gain(summary: ComparisonSummary, chosen: Contestant, kind: str) -> str:
    """State how much better a contestant is than supervised LDA."""
    supervised = supervised_name(summary)
    measure = COMPARISON_MEASURES[summary.main]
    if summary.verdict(chosen.name, summary.main) != "better":
        return (
            f"Its probabilities are clearly better than those of {supervised}, but its "
            f"{measure.noun} does not differ clearly"
        )
    difference = summary.difference(chosen.name, summary.main)
    assert difference is not None
    # Lower values are negative differences, and gains where these are better.
    ends = [-measure.sign * end for end in (difference.low, difference.high)]
    direction = "lower" if measure.lower_is_better else "higher"
    other = _helped_too(summary, chosen) if kind == HELPS else ""
    return (
        f"Its {measure.noun} is clearly {direction} than that of {supervised}, by "
        f"{_span(min(ends), max(ends), summary.main)}{other}"
    )


def _span(least: float, most: float, measure: str) -> str:
    """Write the ends of a gain: errors in percentage points."""
    if measure == AUC:
        return f"{least:.3f} to {most:.3f}"
    return f"{100 * least:.1f} to {100 * most:.1f} percentage points"


def _helped_too(summary: ComparisonSummary, chosen: Contestant) -> str:
    """Name the contestant that shows what unlabeled rows add, if another one does."""
    if chosen.method.name != DEFAULT_ON_TABLES:
        return ""
    return f", and so is that of {_best_helped(summary)}"


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
