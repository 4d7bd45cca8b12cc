"""Compiled loops that label rows of two classes and add them up while they are in the cache.

Needs numba. Nothing of Python is held while they run, so that threads do not wait for one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from .._core.types import Array

# Rows whose leads and shares stay in the first-level cache. Sums are the same to the bit for any
# cut of the rows into multiples of this.
AT_ONCE = 64
_LARGEST = 300.0  # lead beyond which a share is next to nothing
_LN_2 = math.log(2)
_SERIES = tuple(1 / math.factorial(i) for i in range(13, -1, -1))

Function = TypeVar("Function", bound=Callable[..., Any])
# Sums in any order, products and sums as one; NaN and infinity are what they are.
_compiled: Callable[[Function], Function] = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)


def is_compiled() -> bool:
    """Whether numba compiles, which can be switched off (NUMBA_DISABLE_JIT)."""
    return not numba.config.DISABLE_JIT


@_compiled
def add_labeled(
    rows: Array, coef: Array, least: float, shares: Array, sums: Array, totals: Array
) -> None:
    """Label rows, and add those of the second class to ``sums``, their number to ``totals[0]``.

    Of the second class are rows whose ``rows @ coef`` is below ``least``.
    """
    for start in range(0, len(rows), AT_ONCE):
        some, part = rows[start : start + AT_ONCE], shares[start : start + AT_ONCE]
        _project(some, coef, part)
        count = 0.0
        for i in range(len(some)):
            part[i] = 1.0 if part[i] < least else 0.0
            count += part[i]
        totals[0] += count
        _add(some, part, sums)


@_compiled
def add_softly(
    rows: Array, coef: Array, intercept: float, shares: Array, sums: Array, totals: Array
) -> None:
    """Label rows softly, and add to ``sums``; to ``totals`` add shares and log-sum-exp.

    ``rows @ coef + intercept`` is how far the first class is ahead; shares are in the second, and
    log-sum-exp is over its score.
    """
    leads, mantissas = np.empty(AT_ONCE), np.empty(AT_ONCE)
    bits = np.empty(AT_ONCE, dtype=np.int64)
    powers = bits.view(np.float64)
    for start in range(0, len(rows), AT_ONCE):
        some, part = rows[start : start + AT_ONCE], shares[start : start + AT_ONCE]
        _project(some, coef, leads)
        count, log_sum, product = 0.0, 0.0, 1.0
        for i in range(len(some)):
            leads[i] += intercept
            log_sum += max(leads[i], 0.0)
            x = max(-abs(leads[i]), -_LARGEST)
            n = math.floor(x / _LN_2 + 0.5)
            mantissas[i] = _reduced_exponential(x, n)
            bits[i] = (np.int64(n) + 1023) << 52  # 2^n
        for i in range(len(some)):
            odds = mantissas[i] * powers[i]  # of the class behind
            product *= 1 + odds  # at most 2^64: one logarithm for all of them
            ahead = 1 / (1 + odds)
            part[i] = odds * ahead if leads[i] > 0 else ahead
            count += part[i]
        totals[0] += count
        totals[1] += log_sum + math.log(product)
        _add(some, part, sums)


@_compiled
def _reduced_exponential(x: float, n: int) -> float:
    """exp(x) / 2^n, by its series about 0: NumPy's has no place in a loop that is compiled."""
    r, found = x - n * _LN_2, _SERIES[0]
    for i in range(1, len(_SERIES)):
        found = found * r + _SERIES[i]
    return found


@_compiled
def _project(rows: Array, coef: Array, out: Array) -> None:
    """Write ``rows @ coef``; by fours, so that coefficients are read less often."""
    n_fours = len(rows) // 4 * 4
    for i in range(0, n_fours, 4):
        a = b = c = d = 0.0
        for j in range(len(coef)):
            a += rows[i, j] * coef[j]
            b += rows[i + 1, j] * coef[j]
            c += rows[i + 2, j] * coef[j]
            d += rows[i + 3, j] * coef[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(n_fours, len(rows)):
        a = 0.0
        for j in range(len(coef)):
            a += rows[i, j] * coef[j]
        out[i] = a


@_compiled
def _add(rows: Array, shares: Array, sums: Array) -> None:
    """Add rows times their shares; by fours, so that sums are written less often."""
    n_fours = len(rows) // 4 * 4
    for i in range(0, n_fours, 4):
        a, b, c, d = shares[i], shares[i + 1], shares[i + 2], shares[i + 3]
        for j in range(len(sums)):
            sums[j] += (a * rows[i, j] + b * rows[i + 1, j]) + (
                c * rows[i + 2, j] + d * rows[i + 3, j]
            )
    for i in range(n_fours, len(rows)):
        for j in range(len(sums)):
            sums[j] += shares[i] * rows[i, j]
