"""Symmetric matrices that are safely positive, by Cholesky's factor: the common case, and cheap.

LAPACK is called directly: of matrices this small, checks around it cost more than the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from .types import Array


@dataclass(frozen=True)
class Factor:
    """A = lower lower', and the inverse of lower."""

    lower: Array
    inverse: Array

    @property
    def log_det(self) -> float:
        return 2 * float(np.log(self.lower.diagonal()).sum())


def factor(matrix: Array, floor: float) -> Factor | None:
    """Cholesky's factor, if it shows that all eigenvalues lie above the floor."""
    if len(matrix) == 0:
        return Factor(matrix, matrix)
    lower, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        return None
    inverse, failed = lapack.dtrtri(lower, lower=1)
    flat = inverse.ravel("K")
    # The inverse of the matrix has trace |inverse|^2, which no eigenvalue of it exceeds.
    if failed or not 1 / float(flat @ flat) > floor:
        return None
    return Factor(lower, inverse)
