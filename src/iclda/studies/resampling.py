"""Random numbers of splits, and tests of differences between methods over overlapping splits."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from zlib import crc32

import numpy as np
from scipy import stats

LEVEL = 0.05  # of significance


def rng_of(seed: int, *names: object) -> np.random.Generator:
    """Random numbers that depend on the seed and the names alone, not on any order of work."""
    return np.random.default_rng([seed, *(crc32(str(name).encode()) for name in names)])


def corrected_t_test(differences: Sequence[float], test_to_train: float) -> tuple[float, float]:
    """t and two-sided p of the corrected resampled t-test (Nadeau and Bengio 2003).

    Splits share rows, so that their differences are not independent: the variance of the mean
    is taken as (1 / number of splits + test rows / training rows) times that of the differences.
    """
    n = len(differences)
    if n < 2:
        return 0.0, 1.0
    mean = fsum(differences) / n
    variance = fsum((d - mean) ** 2 for d in differences) / (n - 1)
    if variance == 0:
        return (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 0.0)
    t = mean / sqrt((1 / n + test_to_train) * variance)
    return t, float(2 * stats.t.sf(abs(t), n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted
