"""Solvers, one method a module, and what they share: how an iteration ends.

The parts of the search are listed in docs/solvers.md; ``search`` has their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..._messages import Text, say


@dataclass(frozen=True)
class Limits:
    """An iteration stops after ``max_iter`` rounds, or at the tolerance ``tol``."""

    max_iter: int
    tol: float = 0.0


class Outcome(Enum):
    """How an iteration ended.

    ``outcome_`` of a classifier is the name, in lower case. The value of a member is
    what the user reads, and the advice. Whatever rule an iteration was to meet,
    ``CONVERGED`` says that it did; every other member leaves ``converged_`` false, and
    warns.
    """

    CONVERGED = "converged.", ""
    MAX_ITERATIONS = (
        "stopped at max_iter before it converged: {detail}.",
        "Raise max_iter (now {max_iter}){or_tol}.",
    )
    MANY_CLASSES = (
        "stopped before it converged: {detail}.",
        "So many classes and unlabeled rows allow fewer steps than max_iter "
        "(now {max_iter}): pass fewer unlabeled rows{or_tol}.",
    )
    NOT_FOUND = (
        "has not found a maximum, because with so many rows, columns and classes every "
        "step takes long or gains little, and keeps the best labeling it has seen: "
        "{detail}.",
        "Pass fewer unlabeled rows or columns, or use a method without a search, such "
        "as AverageLDA; a larger max_iter (now {max_iter}) takes longer in proportion.",
    )
    STALLED = (
        "could not close the gap to the tolerance: {detail}.",
        "A larger max_iter does not help: raise tol (now {tol:g}).",
    )
    UNFILLED = (
        "could not give the classes the proportions of the unlabeled rows: {detail}.",
        "Check whether the proportions are those of these rows, or pass intervals; "
        "a larger max_iter does not help.",
    )
    UNBOUNDED = "stopped where the likelihood is unbounded: {detail}.", ""

    def describe(self, detail: str, max_iter: int | str, tol: float | None) -> Text:
        """Say how an iteration ended, and what helps.

        ``detail`` is what was left to be done; ``tol`` is None for methods without a
        tolerance.
        """
        or_tol = "" if tol is None else f", or raise tol (now {tol:g})"
        sentence, advice = self.value
        text = f"{sentence} {advice}".rstrip()
        return say(text, detail=detail, max_iter=max_iter, tol=tol, or_tol=or_tol)
