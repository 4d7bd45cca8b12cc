"""Methods that solve a problem, and how their iterations end."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """How an iteration ended. The value is the sentence shown to the user."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "stopped at max_iter before it converged"
    STALLED = "could not close the gap to the tolerance"
    UNBOUNDED = "the likelihood is unbounded"
