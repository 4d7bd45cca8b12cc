"""How an iteration ended. The value is the sentence shown to the user."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    CONVERGED = "converged"
    MAX_ITERATIONS = "stopped at max_iter before it converged"
    STALLED = "could not close the gap to the tolerance"
    UNBOUNDED = "the likelihood is unbounded"
