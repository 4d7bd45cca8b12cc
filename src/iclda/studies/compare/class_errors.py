"""Errors of a contestant by class, and its confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._messages import printable, say, wrap
from ..._statistics import CLEAR
from ..confusion import Confusion, class_error_lines, mean_confusion
from ..measures import ERROR
from ..store import FitResult
from .sentences import SENTENCES
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
    confusion = confusion_of(findings.compared, name, settings.classes)
    if name not in known or confusion is None:
        return None
    title = next(title_of(each) for each in settings.contestants if each.name == name)
    return ClassErrors(name, title, confusion)


def confusion_of(
    results: Sequence[FitResult], name: str | None, classes: Sequence[str]
) -> Confusion | None:
    """Confusion of a contestant, a mean over the repeats; None where it was not stored."""
    fitted = [r for r in results if r.method == name and r.failure is None]
    texts = [r.values["confusion"] for r in fitted if r.values.get("confusion")]
    if len(texts) < len(fitted) or not classes:
        return None
    return mean_confusion(texts, classes, len({result.repeat for result in fitted}))


def class_lines(findings: Findings, width: int) -> list[str]:
    """What the terminal shows: errors by class, and the sentences."""
    found = class_errors(findings)
    if found is None:
        return []
    table = [printable(line) for line in class_error_lines(found.confusion)]
    title = f"Errors of {found.title} by class"
    verdict = findings.verdict
    said = verdict.base if verdict.learned == CLEAR else ""  # the answer says it otherwise
    texts = [printable(text) for text in (said, found.balanced) if text]
    sentences = [line for text in texts for line in wrap(text, width - 2)]
    return ["", title, *(f"  {line}" for line in (*table, *sentences))]


def class_json(findings: Findings) -> Mapping[str, Any] | None:
    """The same for programs."""
    found = class_errors(findings)
    if found is None:
        return None
    base = {"base_rate_text": findings.verdict.base}
    return {"method": found.name, **base, **found.confusion.to_json()}
