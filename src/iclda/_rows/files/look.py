"""Some rows of a source, by their numbers, without reading all of it."""

from __future__ import annotations

import numpy as np

from ..._core.types import AnyArray
from .chunks import rows_of
from .reader import Reader
from .slabs import Slab, check_slab

_AT_ONCE = 4096  # rows that a source is asked for


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
        check_slab(Slab(None, chunk.start, rows, chunk.where), reader.name, reader.feature_names)
        found[n_found:stop] = rows[numbers[n_found:stop] - chunk.start]
        n_found = stop
    if n_found < len(numbers) and (must_exist or reader.n_rows is not None):
        raise ValueError(
            f"{reader.name} ended before its row {numbers[n_found]}: a source is read several "
            "times, and must give the same rows every time."
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
