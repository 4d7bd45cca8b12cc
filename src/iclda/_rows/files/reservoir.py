"""A sample of rows, drawn while they are read for the first time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.types import AnyArray

_SLACK = 1.5  # times the rows to keep: when to throw away the others


class Reservoir:
    """The rows with the smallest of random keys, in the order they came in.

    How many rows there will be need not be known. Every row draws its key in turn, so that the
    sample is the same for any size of blocks.
    """

    def __init__(self, n_kept: int, n_features: int, dtype: Any, seed: int) -> None:
        self._n_kept = n_kept
        self._rng = np.random.default_rng(seed)
        self._limit = 1.0  # rows with larger keys are not among those kept
        self._keys = [np.zeros(0)]
        self._numbers = [np.zeros(0, dtype=np.int64)]
        self._rows = [np.zeros((0, n_features), dtype)]
        self._n_held = 0

    def add(self, rows: AnyArray, numbers: AnyArray) -> None:
        """Rows, and their numbers in the source."""
        keys = self._rng.random(len(rows))
        chosen = np.flatnonzero(keys < self._limit)
        self._keys.append(keys[chosen])
        self._numbers.append(numbers[chosen])
        self._rows.append(rows[chosen])
        self._n_held += len(chosen)
        if self._n_held > _SLACK * self._n_kept:
            self._shrink()

    def drawn(self) -> tuple[AnyArray, AnyArray]:
        """Rows and their numbers."""
        self._shrink()
        return self._rows[0], self._numbers[0]

    def _shrink(self) -> None:
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        rows = np.concatenate(self._rows)
        if len(keys) > self._n_kept:
            kept = np.sort(np.argpartition(keys, self._n_kept)[: self._n_kept])
            self._limit = float(keys[kept].max())
            keys, numbers, rows = keys[kept], numbers[kept], rows[kept]
        self._keys, self._numbers, self._rows = [keys], [numbers], [rows]
        self._n_held = len(keys)
