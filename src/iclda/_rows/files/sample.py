"""Some rows of a source: of given numbers, a first look, or drawn while all are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.types import AnyArray
from .reader import Reader, rows_of
from .slabs import Slab

_AT_ONCE = 4096  # rows that a source is asked for
_SLACK = 1.5  # times the rows to keep: when to throw away the others


def rows_at(reader: Reader, numbers: AnyArray, *, must_exist: bool) -> AnyArray:
    """The rows of these numbers, which ascend; fewer if a source of unknown length ends before.

    ValueError if they, or rows read beside them, are not finite.
    """
    found = np.empty((len(numbers), reader.n_features), reader.dtype)
    n_found = 0
    if len(numbers) == 0:
        return found
    reader.check_unchanged()
    for chunk in reader.chunks(_AT_ONCE, numbers):
        stop = int(np.searchsorted(numbers, chunk.start + len(chunk)))
        if stop == n_found:
            continue
        rows = rows_of(chunk, reader.n_features, reader.dtype)
        slab = Slab(None, chunk.start, rows, chunk.where)
        slab.check_finite(reader.name, reader.feature_names)
        found[n_found:stop] = rows[numbers[n_found:stop] - chunk.start]
        n_found = stop
    reader.check_unchanged()
    if n_found < len(numbers) and (must_exist or reader.n_rows is not None):
        raise ValueError(
            f"{reader.name} ended before its row {numbers[n_found]}{reader.n_rows_by}: a source is "
            "read several times, and must give as many rows as were expected, the same every time."
        )
    return found[:n_found]


def first_look(reader: Reader, is_member: AnyArray | None, n: int) -> AnyArray:
    """At most ``n`` numbers of members, cheap to read and far apart if possible."""
    numbers = reader.spread(n)
    if is_member is None:
        return numbers
    numbers = numbers[is_member[numbers]]
    if 4 * len(numbers) >= n:
        return numbers
    members = np.flatnonzero(is_member)
    return members[np.unique(np.linspace(0, len(members) - 1, n).astype(np.int64))]


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
