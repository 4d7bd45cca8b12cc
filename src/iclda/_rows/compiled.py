"""Label sums by compiled loops, where numba is installed (extra ``fast``) and they are worth it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import ModuleType

import numpy as np

from .._core.labelsums import AllButFirst, LabelSums, Rule, Tally
from .._core.types import AnyArray, Array

# Numbers in all rows from which on it pays to load numba, which takes about half a second.
MANY = 2**24


def can_compile(rule: Rule, n_numbers: int) -> bool:
    """Whether rows of so many numbers in all are labeled by compiled loops."""
    is_known = isinstance(rule, AllButFirst) and rule.n_classes == 2
    return is_known and n_numbers >= MANY and loops() is not None


@cache
def loops() -> ModuleType | None:
    """The compiled loops; None without numba."""
    try:
        from . import loops as found
    except (ImportError, RuntimeError):  # RuntimeError: numba finds no place for what it compiles
        return None
    return found if found.is_compiled() else None


class CompiledTally(Tally):
    """Label sums of two classes, each row of which is read once."""

    def __init__(self, rule: Rule, n_features: int, centers: Array | None = None) -> None:
        assert isinstance(rule, AllButFirst)
        super().__init__(rule, n_features, centers)
        coef, intercept = rule.rule.lead
        self._coef, self._intercept = np.ascontiguousarray(coef[:, 0]), float(intercept[0])
        self._least = -rule.rule.tie - self._intercept
        self._is_soft = rule.rule.is_soft
        self._totals = np.zeros(2)  # shares in the second class, log-sum-exp

    def add(
        self, rows: AnyArray, used: Array, weights: Array | None, index: slice | AnyArray
    ) -> Array:
        compiled = loops()
        if compiled is None or weights is not None or not rows.flags.c_contiguous:
            return super().add(rows, used, weights, index)
        shares = np.empty((1, len(rows)))
        add, offset = compiled.add_labeled, self._least
        if self._is_soft:
            add, offset = compiled.add_softly, self._intercept
        add(rows, self._coef, offset, shares[0], self._sums[0], self._totals)
        return shares

    def sums(self) -> LabelSums:
        # What was left to NumPy was counted there.
        count, log_sum = self._totals.tolist()
        found = super().sums()
        return replace(found, counts=found.counts + count, log_sum=found.log_sum + log_sum)
