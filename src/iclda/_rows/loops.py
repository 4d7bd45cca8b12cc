"""Loops compiled by numba that label rows and add them up while they are in the cache.

They release the interpreter lock, so that threads do not wait for one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numba
import numpy as np

from .._core.labelsums import AllButFirst, LabelSums, Rule, Tally
from .._core.types import AnyArray, Array

# Rows whose leads and shares stay in the first-level cache. Sums are the same to the bit for any
# cut of the rows into multiples of this.
AT_ONCE = 64
_FEW = 4  # scores a row up to which loops are faster than BLAS
_LARGEST = 300.0  # lead beyond which shares are next to nothing
_LN_2, _LOG2_E = math.log(2), math.log2(math.e)
_SERIES = tuple(1 / math.factorial(i) for i in range(13, -1, -1))

Function = TypeVar("Function", bound=Callable[..., Any])
# Sums in any order, products and sums as one; NaN and infinity are what they are.
_compiled: Callable[[Function], Function] = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)


def is_compiled() -> bool:
    """Whether numba compiles, which can be switched off (NUMBA_DISABLE_JIT)."""
    return not numba.config.DISABLE_JIT


def run_once() -> None:
    """Compile or load all loops, so that errors of numba are raised here."""
    for add in (add_labeled, add_softly):
        into = np.zeros((2, 1)), np.zeros((1, 1)), np.zeros(3)
        add(np.ones((1, 1)), np.ones((1, 1)), np.ones(1), 0.0, *into)


class CompiledTally(Tally):
    """Label sums whose rows are read once."""

    def __init__(self, rule: Rule, n_features: int, centers: Array | None = None) -> None:
        assert isinstance(rule, AllButFirst)
        assert not rule.is_by_lead
        super().__init__(rule, n_features, centers)
        coef, self._intercept = rule.rule.ahead_of_first
        self._coef = np.ascontiguousarray(coef.T)
        self._tie = rule.rule.tie
        self._add_rows = add_softly if rule.rule.is_soft else add_labeled
        self._totals = np.zeros(1 + rule.n_classes)  # log-sum-exp, and weights of the classes

    def add(
        self, rows: AnyArray, used: Array, weights: Array | None, index: slice | AnyArray
    ) -> Array:
        if weights is not None or not rows.flags.c_contiguous:
            return super().add(rows, used, weights, index)
        shares = np.empty((len(self._totals) - 1, len(rows)))
        totals = self._sums, self._totals
        self._add_rows(rows, self._coef, self._intercept, self._tie, shares, *totals)
        return shares

    def sums(self) -> LabelSums:
        found = super().sums()  # of the blocks that NumPy added
        counts, log_sum = found.counts + self._totals[2:], found.log_sum + float(self._totals[0])
        return replace(found, counts=counts, log_sum=log_sum)


@_compiled
def add_labeled(
    rows: Array,
    coef: Array,
    intercept: Array,
    tie: float,
    shares: Array,
    sums: Array,
    totals: Array,
) -> None:
    """Label rows by the largest score, and add them to the ``sums`` of their classes.

    ``coef`` (K - 1, d) and ``intercept`` give how far the other classes are ahead of the first. Of
    classes within ``tie`` of the best the first is taken. ``shares`` are (K, n), ``sums`` those of
    the other classes, ``totals`` (1 + K) log-sum-exp, which is left out here, and class weights.
    """
    part, top, is_free = np.empty((len(shares), AT_ONCE)), np.empty(AT_ONCE), np.empty(AT_ONCE)
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        _score(some, coef, intercept, part, top)
        is_free[:] = 1.0
        for k in range(len(part)):
            for i in range(len(some)):
                part[k, i] = is_free[i] if part[k, i] >= top[i] - tie else 0.0
                is_free[i] -= part[k, i]
                shares[k, start + i] = part[k, i]
            totals[1 + k] += _sum(part[k], len(some))
        _add_others(some, part, sums)


@_compiled
def add_softly(
    rows: Array,
    coef: Array,
    intercept: Array,
    tie: float,
    shares: Array,
    sums: Array,
    totals: Array,
) -> None:
    """The same by softmax; log-sum-exp is over the score of the first class."""
    part, top, total = np.empty((len(shares), AT_ONCE)), np.empty(AT_ONCE), np.empty(AT_ONCE)
    bits = np.empty(AT_ONCE, dtype=np.int64)
    powers = bits.view(np.float64)
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        _score(some, coef, intercept, part, top)
        total[:] = 0.0
        for k in range(len(part)):
            for i in range(len(some)):
                x = max(part[k, i] - top[i], -_LARGEST)
                n = math.floor(x * _LOG2_E + 0.5)
                part[k, i] = _reduced_exponential(x, n)
                bits[i] = (np.int64(n) + 1023) << 52  # 2^n
            for i in range(len(some)):
                part[k, i] *= powers[i]
                total[i] += part[k, i]
        # One logarithm for all factors, whose product is at most K^64.
        totals[0] += _sum(top, len(some)) + math.log(_product(total, len(some)))
        for i in range(len(some)):
            total[i] = 1 / total[i]
        for k in range(len(part)):
            for i in range(len(some)):
                part[k, i] *= total[i]
                shares[k, start + i] = part[k, i]
            totals[1 + k] += _sum(part[k], len(some))
        _add_others(some, part, sums)


@_compiled
def _reduced_exponential(x: float, n: int) -> float:
    """exp(x) / 2^n, by its series about 0: a function of the library would be called row by row."""
    r, found = x - n * _LN_2, _SERIES[0]
    for i in range(1, len(_SERIES)):
        found = found * r + _SERIES[i]
    return found


@_compiled
def _score(rows: Array, coef: Array, intercept: Array, scores: Array, top: Array) -> None:
    """Write how far classes are ahead of the first, and ``top``, how far the best one is."""
    n_rows, n_others = len(rows), len(coef)
    if n_others > _FEW:
        scores[1:, :n_rows] = np.dot(coef, rows.T)
    else:
        for k in range(n_others):
            for i in range(n_rows):
                found = 0.0
                for j in range(coef.shape[1]):
                    found += rows[i, j] * coef[k, j]
                scores[k + 1, i] = found
    scores[0, :n_rows] = top[:n_rows] = 0.0
    for k in range(n_others):
        for i in range(n_rows):
            scores[k + 1, i] += intercept[k]
            top[i] = max(top[i], scores[k + 1, i])


@_compiled
def _add_others(rows: Array, shares: Array, sums: Array) -> None:
    """Add rows times their shares in all classes but the first."""
    if len(sums) > _FEW:
        sums += np.dot(np.ascontiguousarray(shares[1:, : len(rows)]), rows)
        return
    n_fours = len(rows) // 4 * 4  # four rows at once, so that sums are written less often
    for k in range(len(sums)):
        share = shares[k + 1]
        for i in range(0, n_fours, 4):
            a, b, c, d = share[i], share[i + 1], share[i + 2], share[i + 3]
            for j in range(sums.shape[1]):
                sums[k, j] += (a * rows[i, j] + b * rows[i + 1, j]) + (
                    c * rows[i + 2, j] + d * rows[i + 3, j]
                )
        for i in range(n_fours, len(rows)):
            for j in range(sums.shape[1]):
                sums[k, j] += share[i] * rows[i, j]


# Loops of their own: one that writes as well adds in an order that depends on where arrays lie.


@_compiled
def _sum(values: Array, n: int) -> float:
    found = 0.0
    for i in range(n):
        found += values[i]
    return found


@_compiled
def _product(values: Array, n: int) -> float:
    found = 1.0
    for i in range(n):
        found *= values[i]
    return found
