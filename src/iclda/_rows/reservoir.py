"""A random sample of rows that are seen once, one block after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import AnyArray

# A reservoir holds up to this many times the rows to keep before it drops the others.
_SLACK = 1.5


class _Keyed(NamedTuple):
    """Rows with their random keys and their indices."""

    keys: AnyArray
    indices: AnyArray
    rows: AnyArray


class Reservoir:
    """A random sample of rows that come block by block: those of smallest keys.

    Every row draws a random key in turn, so that the sample is the same for any size of
    blocks. The number of rows need not be known. The sample is in the order of the
    rows.
    """

    def __init__(self, n_kept: int, n_features: int, dtype: Any, seed: int) -> None:
        self.n_seen = 0
        self._n_kept = n_kept
        self._rng = np.random.default_rng(seed)
        # Rows with larger keys are not among those kept.
        self._max_key = 1.0
        no_rows = np.zeros((0, n_features), dtype)
        self._parts = [_Keyed(np.zeros(0), np.zeros(0, dtype=np.int64), no_rows)]
        self._n_held = 0

    def add(self, rows: AnyArray, index: AnyArray) -> None:
        # Rows that are not kept draw a key, too: the next block finds the same state.
        keys = self._rng.random(len(rows))
        chosen = np.flatnonzero(keys < self._max_key)
        self._parts.append(_Keyed(keys[chosen], index[chosen], rows[chosen]))
        self._n_held += len(chosen)
        self.n_seen += len(rows)
        # Sorting keys at every block would cost more than the spare rows.
        if self._n_held > _SLACK * self._n_kept:
            self._shrink()

    def sample(self) -> tuple[AnyArray, AnyArray]:
        """Return the rows and their indices."""
        self._shrink()
        rows = np.concatenate([part.rows for part in self._parts])
        indices = np.concatenate([part.indices for part in self._parts])
        return rows, indices

    def _shrink(self) -> None:
        """Drop all rows but those of the smallest keys."""
        keys = np.concatenate([part.keys for part in self._parts])
        if len(keys) <= self._n_kept:
            return
        self._max_key = float(np.partition(keys, self._n_kept - 1)[self._n_kept - 1])
        # Take one part after the other, so that only one of them is held twice.
        for i, part in enumerate(self._parts):
            is_kept = part.keys <= self._max_key
            self._parts[i] = _Keyed(
                keys=part.keys[is_kept],
                indices=part.indices[is_kept],
                rows=part.rows[is_kept],
            )
        self._n_held = self._n_kept
