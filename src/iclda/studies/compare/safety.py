"""How much the fits of a comparison may lose, and whether they degenerated."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from ..._estimators.gains import GainBounds
from ..._messages import say
from ..page import share
from .sentences import SENTENCES
from .verdict import supervised_name, title_of

if TYPE_CHECKING:
    from .findings import Findings
    from .plan import Contestant

_SENTENCES = SENTENCES["safety"]


def safety_sentences(findings: Findings) -> list[str]:
    """What a comparison says of both, for the terminal, the report and programs."""
    return [*_bounds_sentences(findings), *_degenerate_sentences(findings)]


def _bounds_sentences(findings: Findings) -> list[str]:
    contestant, found = find_bounds(findings)
    if contestant is None or found is None:
        return []
    return [
        say(
            _SENTENCES["bounds" if found.disagreement > 0 else "same"],
            supervised=supervised_name(findings.summary),
            n_unlabeled=found.n_unlabeled,
            name=title_of(contestant),
            share=share(found.disagreement),
            comparison=found.comparison.replace("this fit", "it"),
        )
    ]


def find_bounds(findings: Findings) -> tuple[Contestant | None, GainBounds | None]:
    """The contestant whose losses are bounded, and its bounds over the splits that have them."""
    contestant = _judged(findings)
    if contestant is None:
        return None, None
    stored = [r.values.get("bounds") for r in findings.compared if r.method == contestant.name]
    found = [GainBounds(**json.loads(text)) for text in stored if text]
    if not found or not max(each.n_unlabeled for each in found):
        return contestant, None
    return contestant, GainBounds(
        worst=min(each.worst for each in found),
        best=max(each.best for each in found),
        expected=sum(each.expected for each in found) / len(found),
        disagreement=max(each.disagreement for each in found),
        n_unlabeled=max(each.n_unlabeled for each in found),
    )


def _judged(findings: Findings) -> Contestant | None:
    """The own contestant that is recommended; the best that uses unlabeled rows if it does not."""
    own, summary = findings.own, findings.summary
    if own is not None and own.can_lose:
        return own
    others = [each for each in findings.settings.contestants if each.can_lose]
    return min(others, key=lambda each: summary.rank(each.name), default=None)


def _degenerate_sentences(findings: Findings) -> list[str]:
    counts = Counter(r.method for r in findings.compared if r.values.get("is_degenerate"))
    if not counts:
        return []
    totals = Counter(result.method for result in findings.compared)
    shown = ", ".join(f"{name} in {n:,} of {totals[name]:,} splits" for name, n in counts.items())
    return [say(_SENTENCES["degenerate"], shown=shown, variant="iclda-proportions")]
