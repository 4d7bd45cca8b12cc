"""The two toy problems of the paper."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Rows and classes of a toy problem.
LabeledSample = tuple[NDArray[np.float64], NDArray[np.int64]]


def make_gaussians(
    n: int, rng: np.random.Generator, variance: float = 0.6
) -> LabeledSample:
    """Draw rows around (1, 1), class 0, or (-1, -1), class 1, equally likely.

    ``variance`` is that of both features. The text of the paper says 0.6 for its toy
    figure, the script behind that figure 0.3; the learning curve was made with 0.8.
    """
    if n < 0:
        raise ValueError(f"n must be at least 0, got {n}.")
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be a number above 0, got {variance}.")
    y = rng.integers(2, size=n, dtype=np.int64)
    # Both coordinates of the mean are 1 for class 0, and -1 for class 1.
    means = 1.0 - 2.0 * y[:, None]
    X = means + math.sqrt(variance) * rng.standard_normal((n, 2))
    return X, y


def make_violated_gaussians(
    n: int, rng: np.random.Generator, variance: float = 0.6
) -> LabeledSample:
    """Draw the rows of ``make_gaussians``, with class 1 where x2 > x1."""
    X, _ = make_gaussians(n, rng, variance)
    is_above_diagonal = X[:, 1] > X[:, 0]
    return X, is_above_diagonal.astype(np.int64)
