"""Goals of the project, shown beside the measured numbers."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import COMPARE_ANSWER, COMPARE_FIRST, FIT_COMMAND

MEMORY_MIB = 64.0
EXPONENT = 1.05
# Unlabeled rows over which the exponent is judged.
SPAN = (10_000, 10_000_000)
# Times faster than scikit-learn's supervised fit of as many rows.
FASTER = 3.0
SETS = 10
SPEED_UP = {"ICLDA": 1.6, "MCLDA": 1.6, "EMLDA": 1.3}
MILLISECONDS = {"LDA": 0.1, "MCLDA": 0.4, "SLLDA": 0.6, "EMLDA": 3.0, "ICLDA": 10.0}


@dataclass(frozen=True)
class Goal:
    """Most units, fixed and for each iteration."""

    units: float
    per_iteration: float = 0.0

    def limit(self, n_iter: float | None) -> float:
        return self.units + self.per_iteration * (n_iter or 0)

    def text(self, n_iter: float | None) -> str:
        if not self.per_iteration:
            return f"{self.units:g}"
        iterations = f"{self.per_iteration:g} x {n_iter or 0:g}"
        return f"{self.units:g} + {iterations} = {self.limit(n_iter):.1f}"


# In units of X'X, median over seeds, for this many unlabeled rows.
ROWS = 1_000_000
GOALS = {
    ("large", "ICLDA"): Goal(4.5),
    ("large", "MCLDA"): Goal(1.8),
    ("large", "SLLDA"): Goal(1.8, 0.45),
    ("large", "EMLDA"): Goal(1.8, 0.65),
    ("interior", "ICLDA"): Goal(8),
    ("tied", "ICLDA"): Goal(8),
    ("classes", "ICLDA"): Goal(12),
}
# Of the case default: ICLDA in units of EM and, by the number of classes, of X'X.
BESIDE_EM = 8.0
DEFAULT_UNITS = {2: 3.0, 10: 10.0, 3: 8.0}
# Seconds on the clock, and of the processors.
SECONDS = {"AutoLDA": 60.0, COMPARE_FIRST: 5.0, COMPARE_ANSWER: 20.0}
PROCESSOR_SECONDS = {FIT_COMMAND: 2.0}
HUGE_ROWS = 10_000_000
HUGE = Goal(7)
SWIFT_ROWS = 100_000
SWIFT_MILLISECONDS = 60.0


def verdict(value: float, goal: float, *, is_least: bool = False) -> str:
    """Whether a number meets its goal."""
    return "met" if (value >= goal if is_least else value <= goal) else "missed"
