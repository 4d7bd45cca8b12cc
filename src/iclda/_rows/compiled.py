"""Label sums by compiled loops, where numba is installed (extra ``fast``) and they are worth it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from .._core.labelsums import AllButFirst, LabelSums, Rule, Tally
from .._core.types import AnyArray, Array

# Numbers in all rows from which on it pays to load numba, which takes about half a second.
MANY = 2**24
_MOST_CLASSES = 1024  # whose number to the power of 64 is a number


def rule_for_loops(rule: Rule, n_numbers: int) -> AllButFirst | None:
    """The rule as compiled loops take it; None where NumPy labels rows of so many numbers."""
    if not isinstance(rule, AllButFirst) or rule.n_classes > _MOST_CLASSES:
        return None
    if n_numbers < MANY or compiled_loops() is None:
        return None
    return replace(rule, may_be_by_lead=False)


@cache
def compiled_loops() -> ModuleType | None:
    """The loops, ready to run; None without numba, or where that cannot compile."""
    if find_spec("numba") is None:
        return None
    try:
        from . import loops

        if not loops.is_compiled():
            return None
        loops.run_once()
    except Exception as error:  # of what numba is given to load or to write
        warnings.warn(
            f"numba is installed and cannot be used ({error!r}): NumPy does the work, more slowly. "
            "Deleting what numba keeps may help: files *.nbi and *.nbc in NUMBA_CACHE_DIR, where "
            f"that is set, else in __pycache__ beside {__file__}.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return loops


class CompiledTally(Tally):
    """Label sums whose rows are read once."""

    def __init__(self, rule: Rule, n_features: int, centers: Array | None = None) -> None:
        assert isinstance(rule, AllButFirst)
        assert not rule.is_by_lead
        super().__init__(rule, n_features, centers)
        coef, self._intercept = rule.rule.ahead_of_first
        self._coef = np.ascontiguousarray(coef.T)
        self._is_soft, self._tie = rule.rule.is_soft, rule.rule.tie
        self._totals = np.zeros(1 + rule.n_classes)  # log-sum-exp, and weights of the classes

    def add(
        self, rows: AnyArray, used: Array, weights: Array | None, index: slice | AnyArray
    ) -> Array:
        loops = compiled_loops()
        if loops is None or weights is not None or not rows.flags.c_contiguous:
            return super().add(rows, used, weights, index)
        shares = np.empty((len(self._totals) - 1, len(rows)))
        add = loops.add_softly if self._is_soft else loops.add_labeled
        add(rows, self._coef, self._intercept, self._tie, shares, self._sums, self._totals)
        return shares

    def sums(self) -> LabelSums:
        found = super().sums()  # of what was left to NumPy
        counts, log_sum = found.counts + self._totals[2:], found.log_sum + float(self._totals[0])
        return replace(found, counts=counts, log_sum=log_sum)
