"""The recommendation: one sentence that follows from the numbers by a rule anyone can check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._messages import Hint, Text, and_list
from .summary import BRIER, ERROR, LOSS, Difference, Outcome

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


def decide(outcome: Outcome, n_tested: int, n_kept: int | None = None) -> Verdict:
    """Apply the rule; ``n_kept`` labels were kept if others were hidden."""
    baseline = outcome.baseline
    rivals = list(dict.fromkeys(d.method for d in outcome.differences if d.measure == ERROR))
    if baseline is None or outcome.mean(baseline, ERROR) is None:
        return Verdict(
            UNKNOWN,
            None,
            Text(
                "No answer: supervised LDA, which the others are measured by, could not be fitted; "
                "label more rows, or pass ",
                Hint("shrinkage", "auto"),
                ".",
            ),
        )
    if not rivals:
        return Verdict(UNKNOWN, baseline, "No answer: no method but supervised LDA has numbers.")
    tested = "labeled rows" if n_kept is None else "rows"  # labels are those kept, where some are
    kind, method, sentence = _ruled(outcome, rivals, baseline, n_tested, tested)
    if n_kept is not None:
        sentence = f"With {n_kept:,} labels, {sentence[0].lower()}{sentence[1:]}"
    return Verdict(kind, method, sentence, _likelihood(outcome, rivals))


def _ruled(
    outcome: Outcome, rivals: Sequence[str], baseline: str, n_tested: int, tested: str
) -> tuple[str, str, str]:
    by_error = _best(outcome, rivals, ERROR)
    if by_error is not None:
        return HELPS, by_error, _helps(outcome, by_error)
    unharmed = [name for name in rivals if _verdict(outcome, name, ERROR) != "worse"]
    by_brier = _best(outcome, unharmed, BRIER)
    if by_brier is not None:
        return SHARPENS, by_brier, _sharpens(outcome, by_brier)
    if all(_is_worse(outcome, name) for name in rivals):
        return HURTS, baseline, _hurts(outcome, rivals)
    return UNCLEAR, baseline, _unclear(outcome, rivals, n_tested, tested)


def best_rival(outcome: Outcome, rivals: Sequence[str]) -> str:
    """The contestant of the lowest error, then of the lowest Brier score."""
    return min(rivals, key=lambda n: (_mean(outcome, n, ERROR), _mean(outcome, n, BRIER)))


def _verdict(outcome: Outcome, name: str, measure: str) -> str:
    difference = outcome.difference(name, measure)
    return difference.verdict if difference else ""


def _is_worse(outcome: Outcome, name: str) -> bool:
    return "worse" in (_verdict(outcome, name, ERROR), _verdict(outcome, name, BRIER))


def _best(outcome: Outcome, names: Sequence[str], measure: str) -> str | None:
    """Of those clearly better by a measure, the lowest mean, then the lower Brier score."""
    better = [name for name in names if _verdict(outcome, name, measure) == "better"]
    if not better:
        return None
    return min(better, key=lambda n: (_mean(outcome, n, measure), _mean(outcome, n, BRIER)))


def _mean(outcome: Outcome, name: str | None, measure: str) -> float:
    mean = outcome.mean(name, measure)
    return float("inf") if mean is None else mean


def _helps(outcome: Outcome, name: str) -> str:
    found = _difference(outcome, name)
    return (
        f"Use {name}: it gets {percent(_mean(outcome, name, ERROR))} of new rows wrong where "
        f"{supervised_name(outcome)} gets {percent(_mean(outcome, outcome.baseline, ERROR))} "
        f"({_interval(found)}), and it was worse in {repeats_worse(outcome, name)}."
    )


def _sharpens(outcome: Outcome, name: str) -> str:
    ours, theirs = (_mean(outcome, each, BRIER) for each in (name, outcome.baseline))
    errors = [percent(_mean(outcome, each, ERROR)) for each in (name, outcome.baseline)]
    return (
        f"Use {name} if you use the probabilities: its Brier score is {ours:.3f}, that of "
        f"{supervised_name(outcome)} {theirs:.3f}; in the number of rows that get a wrong class "
        f"there is no clear difference ({errors[0]} and {errors[1]})."
    )


def _hurts(outcome: Outcome, rivals: Sequence[str]) -> str:
    best = best_rival(outcome, rivals)
    return (
        f"Stay with {supervised_name(outcome)}, which gets "
        f"{percent(_mean(outcome, outcome.baseline, ERROR))} of new rows wrong: every method that "
        f"uses the unlabeled rows is clearly worse here, the best of them, {best}, with "
        f"{percent(_mean(outcome, best, ERROR))}."
    )


def _unclear(outcome: Outcome, rivals: Sequence[str], n_tested: int, tested: str) -> str:
    best = best_rival(outcome, rivals)
    found, supervised = _difference(outcome, best), supervised_name(outcome)
    ours, theirs = (_mean(outcome, each, ERROR) for each in (best, outcome.baseline))
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
    needed = n_tested * (found.detectable / found.difference) ** 2 if found.difference else 0.0
    if needed > _MOST_ROWS * n_tested or not needed:
        return f"{sentence}."
    return (
        f"{sentence}; if {best} really is {points(abs(found.difference))} better, about "
        f"{_rounded(needed)} {tested} to test on would show it."
    )


def _likelihood(outcome: Outcome, rivals: Sequence[str]) -> str:
    """Who was never worse than supervised LDA in likelihood."""
    supervised = supervised_name(outcome)
    best = [name for name in rivals if name in outcome.best.values()]
    scores = [(name, outcome.score(name, LOSS)) for name in best]
    never = [name for name, s in scores if s and s.share_worse_than_supervised == 0]
    if not never:
        return f"In likelihood (loss) every method was worse than {supervised} in some repeat."
    repeats = max(s.repeats for _, s in scores if s)
    verb = "were" if len(never) > 1 else "was"
    return (
        f"In likelihood (loss) {and_list(never)} {verb} never worse than {supervised}, in "
        f"{repeats} repeats."
    )


def _difference(outcome: Outcome, name: str) -> Difference:
    found = outcome.difference(name, ERROR)
    assert found is not None  # rivals are those that have one
    return found


def _interval(found: Difference) -> str:
    if found.high > 0:
        return f"{points(-found.difference)} fewer"
    return f"{share(-found.high)} to {points(-found.low)} fewer, with 95 % confidence"


def repeats_worse(outcome: Outcome, name: str) -> str:
    """In how many repeats the error was higher than that of supervised LDA."""
    score = outcome.score(name, ERROR)
    if score is None or score.share_worse_than_supervised is None:
        return "an unknown number of repeats"
    n_worse = round(score.share_worse_than_supervised * score.repeats)
    return f"{n_worse or 'none'} of {score.repeats} repeats"


def supervised_name(outcome: Outcome) -> str:
    """The supervised contestant, as a sentence calls it."""
    name = outcome.baseline or ""
    return f"supervised LDA{name.removeprefix('supervised')}"


def percent(value: float) -> str:
    """A share as one says it: 4.5 %."""
    return f"{share(value)} %"


def points(value: float) -> str:
    """A difference of shares: 4.5 percentage points."""
    return f"{share(value)} percentage points"


def share(value: float) -> str:
    """A share in percent, without the sign for it."""
    return f"{100 * value:.1f}".replace("-", "\N{MINUS SIGN}")


def _rounded(number: float) -> str:
    """Two digits: 23, 230, 2,300."""
    return f"{int(float(f'{number:.1e}')):,}"
