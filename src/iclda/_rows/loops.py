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

_AT_ONCE = 64  # rows, whose leads and shares stay in the first-level cache
_LARGEST = 300.0  # lead beyond which a share is next to nothing
_LN_2 = math.log(2)
_SERIES = tuple(1 / math.factorial(i) for i in range(13, -1, -1))

Function = TypeVar("Function", bound=Callable[..., Any])
# Sums in any order, products and sums as one; NaN and infinity are what they are.
_compiled: Callable[[Function], Function] = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)


@_compiled
def add_labeled(rows: Array, coef: Array, least: float, shares: Array, sums: Array) -> float:
    """Add up rows of the second class, whose ``rows @ coef`` is below ``least``; their number."""
    count = 0.0
    for start in range(0, len(rows), _AT_ONCE):
        some, part = rows[start : start + _AT_ONCE], shares[start : start + _AT_ONCE]
        _project(some, coef, part)
        for i in range(len(some)):
            part[i] = 1.0 if part[i] < least else 0.0
            count += part[i]
        _add(some, part, sums)
    return count


@_compiled
def add_softly(
    rows: Array, coef: Array, intercept: float, shares: Array, sums: Array
) -> tuple[float, float]:
    """Write the shares of the second class and add up the rows; sum of shares and of log-sum-exp.

    ``rows @ coef + intercept`` is how far the first class is ahead; log-sum-exp is over the score
    of the second.
    """
    leads, mantissas = np.empty(_AT_ONCE), np.empty(_AT_ONCE)
    bits = np.empty(_AT_ONCE, dtype=np.int64)
    powers = bits.view(np.float64)
    count, log_sum = 0.0, 0.0
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        _project(some, coef, leads)
        for i in range(len(some)):
            leads[i] += intercept
            log_sum += max(leads[i], 0.0)
            x = max(-abs(leads[i]), -_LARGEST)
            n = math.floor(x / _LN_2 + 0.5)
            mantissas[i] = _reduced_exponential(x, n)
            bits[i] = (np.int64(n) + 1023) << 52  # 2^n
        product = 1.0
        for i in range(len(some)):
            odds = mantissas[i] * powers[i]  # of the class behind
            product *= 1 + odds  # at most 2^64: one logarithm for all of them
            ahead = 1 / (1 + odds)
            shares[start + i] = odds * ahead if leads[i] > 0 else ahead
            count += shares[start + i]
        log_sum += math.log(product)
        _add(some, shares[start : start + _AT_ONCE], sums)
    return count, log_sum


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
