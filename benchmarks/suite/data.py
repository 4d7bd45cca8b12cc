"""Gaussian problems of any size, made in place and outside the clock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Size:
    """Sizes of a problem; ``spread`` is one number, or one for each class.

    Class means are ``spread`` times standard normal numbers.
    """

    n_unlabeled: int
    n_features: int
    n_classes: int = 2
    n_labeled: int = 100
    dtype: str = "float64"
    spread: float | tuple[float, ...] = 0.6


@dataclass(frozen=True)
class Data:
    """Labeled rows, then unlabeled ones, with the true classes of all."""

    size: Size
    X: Matrix
    codes: Matrix

    @property
    def labeled(self) -> Matrix:
        return self.X[: self.size.n_labeled]

    @property
    def labels(self) -> Matrix:
        return self.codes[: self.size.n_labeled]

    @property
    def unlabeled(self) -> Matrix:
        """A view: no copy is made."""
        return self.X[self.size.n_labeled :]

    @property
    def truth(self) -> Matrix:
        """True classes of the unlabeled rows."""
        return self.codes[self.size.n_labeled :]

    def marked(self) -> Matrix:
        """Labels of all rows, -1 for the unlabeled ones."""
        y = self.codes.copy()
        y[self.size.n_labeled :] = -1
        return y

    def first(self, n_unlabeled: int) -> Data:
        """The same labeled rows and the first unlabeled ones, as views."""
        n_rows = self.size.n_labeled + n_unlabeled
        size = replace(self.size, n_unlabeled=n_unlabeled)
        return Data(size, self.X[:n_rows], self.codes[:n_rows])


def make_data(size: Size, seed: int) -> Data:
    """Classes with unit covariance; labels are dealt out in turn.

    Every block of rows has random numbers of its own: the number of threads changes
    nothing. Nothing of the size of the rows is made beside them, so that memory can be
    measured after it.
    """
    rng = np.random.default_rng([seed, 0])
    shape = (size.n_classes, size.n_features)
    means = np.reshape(size.spread, (-1, 1)) * rng.standard_normal(shape)
    n_rows = size.n_labeled + size.n_unlabeled
    X = np.empty((n_rows, size.n_features), dtype=size.dtype)
    codes = np.empty(n_rows, dtype=np.int64)

    def fill(start: int) -> None:
        rng = np.random.default_rng([seed, 1 + start // _BLOCK])
        rows = X[start : start + _BLOCK]
        classes = codes[start : start + _BLOCK]
        classes[:] = rng.integers(0, size.n_classes, len(rows))
        n_labeled = max(0, size.n_labeled - start)
        classes[:n_labeled] = (
            np.arange(start, start + len(rows))[:n_labeled] % size.n_classes
        )
        rng.standard_normal(dtype=X.dtype.type, out=rows)
        rows += means[classes]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(0, n_rows, _BLOCK)))
    return Data(size, X, codes)
