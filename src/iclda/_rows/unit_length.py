"""Features of networks, whose lengths say little: rows are scaled to length 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace, device

from .._core import Array

# Rows of this many features or more are taken for features of a network.
MANY_FEATURES = 64


@dataclass(frozen=True)
class UnitLength:
    """Scale rows to length 1 about a center; for rows of any array API library."""

    center: Array

    def __call__(self, rows: Any) -> Any:
        xp = array_namespace(rows)
        center = xp.asarray(self.center, dtype=rows.dtype, device=device(rows))
        centered = rows - center
        # Divide by the largest entry first: its square might overflow or vanish.
        largest = xp.max(xp.abs(centered), axis=1, keepdims=True)
        centered = centered / xp.where(largest > 0, largest, xp.ones_like(largest))
        length = xp.sqrt(xp.sum(centered * centered, axis=1, keepdims=True))
        return centered / xp.where(length > 0, length, xp.ones_like(length))
