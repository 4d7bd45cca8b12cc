"""How much the fits of a comparison may lose, and whether they degenerated."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..._core.types import AnyArray, Array
from ..._estimators.gains import GainBounds
from ..._messages import DegenerateFitWarning
from ...methods import VARIANTS
from .sentences import SENTENCES, say

if TYPE_CHECKING:
    from .findings import Findings
    from .plan import Contestant

_MOST_FEATURES = 200  # for which bounds are computed
_SENTENCES = SENTENCES["safety"]


def write_bounds(model: Any, rows: Array, y: AnyArray) -> str:
    """Bounds of the gain of a fit as JSON; empty where there is no supervised fit to compare with.

    ``rows`` and ``y`` are those that it was fitted to.
    """
    if rows.shape[1] > _MOST_FEATURES:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows, which the fit has given
            return json.dumps(asdict(model.gain_bounds(rows, y)))
    except ValueError:
        return ""


def is_degenerate(caught: list[warnings.WarningMessage]) -> bool:
    return any(isinstance(one.message, DegenerateFitWarning) for one in caught)


def safety_sentences(findings: Findings) -> list[str]:
    """What a comparison says of both, for the terminal, the report and programs."""
    return [*_bounds_sentences(findings), *_degenerate_sentences(findings)]


def _bounds_sentences(findings: Findings) -> list[str]:
    contestant = _judged(findings)
    if contestant is None:
        return []
    stored = [r.values.get("bounds") for r in findings.compared if r.method == contestant.name]
    found = [GainBounds(**json.loads(text)) for text in stored if text]
    if not found or not max(each.n_unlabeled for each in found):
        return []
    over_all = GainBounds(
        worst=min(each.worst for each in found),
        best=max(each.best for each in found),
        expected=sum(each.expected for each in found) / len(found),
        disagreement=max(each.disagreement for each in found),
        n_unlabeled=max(each.n_unlabeled for each in found),
    )
    sentence = over_all.sentence
    values = {"name": contestant.name, "n_splits": len(found), "rest": sentence[1:]}
    return [say(_SENTENCES["bounds"], first=sentence[0].lower(), **values)]


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
    return [say(_SENTENCES["degenerate"], shown=shown, variant=VARIANTS[0].name)]
