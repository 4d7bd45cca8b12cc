"""Methods that solve a problem, when their iterations stop, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Limits:
    """When an iteration stops: after ``max_iter`` rounds, or at the tolerance ``tol``."""

    max_iter: int
    tol: float = 0.0


class Outcome(Enum):
    """How an iteration ended. The value is the sentence shown to the user, with what helps."""

    CONVERGED = "converged"
    MAX_ITERATIONS = (
        "stopped at max_iter before it converged: {detail}. Raise max_iter (now {max_iter})"
        "{or_tol}."
    )
    MANY_CLASSES = (
        "stopped before it converged: {detail}. So many classes and unlabeled rows allow fewer "
        "rounds than max_iter (now {max_iter}): pass fewer unlabeled rows{or_tol}."
    )
    STALLED = (
        "could not close the gap to the tolerance: {detail}. A larger max_iter does not help: "
        "raise tol (now {tol:g})."
    )
    UNBOUNDED = "stopped where the likelihood is unbounded: {detail}."
