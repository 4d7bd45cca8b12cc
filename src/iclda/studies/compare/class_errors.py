"""Errors of a contestant by class, its confusion matrix, and whether anything was learned."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._messages import printable
from ..confusion import Confusion, class_error_lines, mean_confusion
from ..measures import ERROR
from .sentences import SENTENCES, say
from .verdict import title_of

if TYPE_CHECKING:
    from .findings import Findings

_SENTENCES = SENTENCES["classes"]


@dataclass(frozen=True)
class ClassErrors:
    """The contestant that is recommended, else the one of lowest error, class by class."""

    name: str
    title: str  # as sentences call it
    confusion: Confusion
    lowest: float  # error of any contestant
    highest: float  # end of the interval of the error to expect, corrected for the choice

    @property
    def learned(self) -> str:
        """Whether the lowest error beats calling every row the most frequent class."""
        found = self.confusion
        kind = "clear"
        if self.lowest >= found.base_rate:
            kind = "nothing"
        elif self.highest >= found.base_rate:
            kind = "unclear"
        base = f"{100 * found.base_rate:.1f} %"
        return say(_SENTENCES[kind], majority=found.majority, base=base, name=self.title)

    @property
    def balanced(self) -> str:
        """The balanced error where classes are uneven, else an empty text."""
        if not self.confusion.is_uneven:
            return ""
        balanced = f"{100 * self.confusion.balanced_error:.1f} %"
        return say(_SENTENCES["balanced"], name=self.title, balanced=balanced)


def class_errors(findings: Findings) -> ClassErrors | None:
    """None where rows were stored by an earlier version, or nothing has numbers."""
    summary, settings = findings.summary, findings.settings
    errors = {each.name: summary.mean(each.name, ERROR) for each in settings.contestants}
    known = {name: error for name, error in errors.items() if error is not None}
    chosen = findings.chosen
    name = chosen.name if chosen else min(known, key=known.__getitem__, default=None)
    if name not in known or not settings.classes:
        return None
    results = [r for r in findings.compared if r.method == name and r.failure is None]
    texts = [r.values["confusion"] for r in results if r.values.get("confusion")]
    n_repeats = len({result.repeat for result in results})
    confusion = mean_confusion(texts, settings.classes, n_repeats)
    if confusion is None or len(texts) < len(results):
        return None
    title = next(title_of(each) for each in settings.contestants if each.name == name)
    estimate = findings.verdict.estimate
    highest = confusion.interval[1] if estimate is None else estimate.high
    return ClassErrors(name, title, confusion, min(known.values()), highest)


def class_lines(findings: Findings, width: int) -> list[str]:
    """What the terminal shows: errors by class, and the sentences."""
    found = class_errors(findings)
    if found is None:
        return []
    table = [printable(line) for line in class_error_lines(found.confusion)]
    title = f"Errors of {found.title} by class"
    texts = [printable(text) for text in (found.learned, found.balanced) if text]
    sentences = [line for text in texts for line in textwrap.wrap(text, width - 2)]
    return ["", title, *(f"  {line}" for line in (*table, *sentences))]


def class_json(findings: Findings) -> Mapping[str, Any] | None:
    """The same for programs."""
    found = class_errors(findings)
    if found is None:
        return None
    return {"method": found.name, "learned": found.learned, **found.confusion.to_json()}
