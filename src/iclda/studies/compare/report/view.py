"""From findings to what the template shows: plain texts, numbers already formatted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...._messages import plural
from ...page import NOTHING, Finding, duration, p_text
from ..findings import Findings, last_line
from ..lines import HEADINGS, decimals, ranked, worse_text
from ..results import COMPARISON
from ..summary import ERROR, LOSS, MEASURES, Outcome, Score, pooled
from ..verdict import (
    HELPS,
    HURTS,
    SHARPENS,
    UNKNOWN,
    best_rival,
    percent,
    points,
    share,
    supervised_name,
)

_ARROWS = {"better": "\N{BLACK DOWN-POINTING TRIANGLE}", "worse": "\N{BLACK UP-POINTING TRIANGLE}"}
_MOST_REMARKS, _MOST_FAILURES = 12, 20


def headline(findings: Findings) -> str:
    """The answer in a few words."""
    verdict = findings.verdict
    if verdict.kind == HELPS:
        return f"Yes, the unlabeled rows help: use {verdict.method}"
    if verdict.kind == SHARPENS:
        return f"The unlabeled rows make better probabilities: use {verdict.method} for these"
    if verdict.kind == UNKNOWN:
        return "No answer"
    stay = f"stay with {supervised_name(findings.outcome)}"
    return f"No: {stay}" if verdict.kind == HURTS else f"No clear difference: {stay} for now"


def summary_line(findings: Findings) -> str:
    """What the page is made of."""
    settings = findings.settings
    return " · ".join(
        [
            f"{settings['n_rows']:,} rows, {plural(settings['n_labels'], 'label')}",
            f"{plural(settings['repeats'], 'repeat')} of {settings['folds']} folds",
            f"{plural(len(findings.results), 'fit')} in {duration(findings.seconds)}",
        ]
    )


def rival(findings: Findings) -> str | None:
    """The contestant to tell about: the one recommended, else the best that uses all rows."""
    outcome = findings.outcome
    if findings.verdict.kind in (HELPS, SHARPENS):
        return findings.verdict.method
    names = [each.name for each in findings.contestants if not each.is_supervised]
    known = [name for name in names if outcome.mean(name, ERROR) is not None]
    return best_rival(outcome, known) if known else None


def cards(findings: Findings) -> list[Finding]:
    """Numbers to remember."""
    name, outcome = rival(findings), findings.outcome
    if name is None or outcome.baseline is None:
        return []
    made = (
        _error_card(outcome, name),
        _risk_card(outcome, name),
        _confidence_card(findings, name),
        _loss_card(outcome, name),
    )
    return [card for card in made if card is not None]


def _error_card(outcome: Outcome, name: str) -> Finding | None:
    ours, theirs = (outcome.mean(each, ERROR) for each in (name, outcome.baseline))
    found = outcome.difference(name, ERROR)
    if ours is None or theirs is None or found is None:
        return None
    clear = {"better": "clearly lower", "worse": "clearly higher"}.get(
        found.verdict, "no clear difference"
    )
    return Finding(
        f"{percent(theirs)} \N{RIGHTWARDS ARROW} {percent(ours)}",
        f"of new rows wrong: supervised LDA, and {name}",
        f"The difference is {points(found.difference)} ({share(found.low)} to "
        f"{share(found.high)} with 95 % confidence): {clear}.",
    )


def _risk_card(outcome: Outcome, name: str) -> Finding | None:
    text = worse_text(outcome, name)
    if " of " not in text:
        return None
    return Finding(
        text,
        f"repeats in which {name} was worse",
        f"A repeat deals the labeled rows into folds anew. Worse: a higher error than "
        f"{supervised_name(outcome)} over all folds.",
    )


def _confidence_card(findings: Findings, name: str) -> Finding | None:
    sure, right = _confidence(findings, name)
    if sure is None or right is None:
        return None
    others = _confidence(findings, findings.outcome.baseline or "")
    text = f"{supervised_name(findings.outcome)} is {percent(others[0] or 0)} sure on average, "
    text += f"and right in {percent(others[1] or 0)}."
    return Finding(
        f"{percent(sure)} / {percent(right)}",
        f"how sure {name} is, and how often right",
        text[0].upper() + text[1:],
    )


def _confidence(findings: Findings, name: str) -> tuple[float | None, float | None]:
    bins = pooled(r for r in findings.results if r.experiment == COMPARISON and r.method == name)
    n_rows, sure, right = bins.sum(axis=0)
    return (float(sure / n_rows), float(right / n_rows)) if n_rows else (None, None)


def _loss_card(outcome: Outcome, name: str) -> Finding | None:
    ours, theirs = (outcome.score(each, LOSS) for each in (name, outcome.baseline or ""))
    if ours is None or theirs is None or ours.share_worse_than_supervised is None:
        return None
    n_lower = round((1 - ours.share_worse_than_supervised) * ours.repeats)
    return Finding(
        f"{n_lower} of {ours.repeats}",
        f"repeats in which {name} describes new rows better",
        f"Loss {_number(ours)} where supervised LDA has {_number(theirs)}: lower means that new "
        "rows of each class lie where the fitted class says they do.",
    )


def measured(findings: Findings) -> list[str]:
    """Measures that any contestant has."""
    scores = findings.outcome.scores
    return [m for m in MEASURES if any(s.measure == m and s.mean is not None for s in scores)]


def method_views(findings: Findings) -> list[tuple[str, str]]:
    """Every method and what it does."""
    return list(dict.fromkeys((c.method.name, c.method.sentence) for c in findings.contestants))


def table_view(findings: Findings) -> dict[str, Any]:
    """One row a contestant, one column a measure."""
    outcome, measures = findings.outcome, measured(findings)
    sentences = {each.name: each.method.title for each in findings.contestants}
    return {
        "headings": [HEADINGS[measure] for measure in measures],
        "rows": [
            {
                "name": name,
                "title": sentences[name],
                "is_chosen": name == findings.verdict.method,
                "is_baseline": name == outcome.baseline,
                "cells": [_cell(outcome, name, measure) for measure in measures],
                "worse": worse_text(outcome, name),
                "failed": findings.failures.get(name, (0, ""))[0],
            }
            for name in ranked(outcome)
        ],
    }


def _cell(outcome: Outcome, name: str, measure: str) -> dict[str, str]:
    score, found = outcome.score(name, measure), outcome.difference(name, measure)
    verdict = found.verdict if found else ""
    spread = "" if score is None or score.se is None else _decimals(score.se, measure)
    return {
        "mean": _number(score),
        "spread": spread,
        "verdict": verdict,
        "arrow": _ARROWS.get(verdict, ""),
        "p": p_text(found.p_holm) if found else "",
    }


def _number(score: Score | None) -> str:
    return NOTHING if score is None or score.mean is None else _decimals(score.mean, score.measure)


def _decimals(value: float, measure: str) -> str:
    return decimals(value, measure).replace("-", "\N{MINUS SIGN}")


def remark_views(findings: Findings) -> list[str]:
    """What the methods said while they were fitted, most frequent first."""
    said: Counter[tuple[str, str]] = Counter()
    fits = Counter(result.method for result in findings.results)
    for result in findings.results:
        said.update((result.method, text) for text in result.remarks.splitlines())
    return [
        f"{method}, {count:,} of {fits[method]:,} fits: {text}"
        for (method, text), count in said.most_common(_MOST_REMARKS)
    ]


def failure_views(findings: Findings) -> list[dict[str, str]]:
    """Where fits failed, and the traceback of each; the first few."""
    failed = [result for result in findings.results if result.failure is not None]
    return [
        {
            "place": f"{r.experiment}, repeat {r.repeat}, part {r.part}, {r.method}: "
            f"{last_line(r.failure or '')}",
            "traceback": r.failure or "",
        }
        for r in failed[:_MOST_FAILURES]
    ]


def run_view(findings: Findings) -> list[tuple[str, Sequence[tuple[str, str]]]]:
    """Groups of names and values: how to run the same again."""
    settings = findings.settings
    names = ("target", "folds", "repeats", "labeled", "missing", "shrinkage", "seed", "jobs")
    run = [("Command", "; ".join(settings.get("commands", [])))]
    run += [(name, str(settings[name])) for name in names]
    run += [("machine", settings["machine"]), ("last run began", settings["began"])]
    run += [("Time", duration(findings.seconds))]
    versions = [(name, str(number)) for name, number in settings["versions"].items()]
    hashes = [(source["path"], source["sha256"]) for source in settings["sources"]]
    return [("Run", run), ("Versions", versions), ("Data (SHA-256)", hashes)]
