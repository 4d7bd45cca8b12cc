"""How the kernels cut rows into tiles and chunks. Chosen by trial on an NVIDIA H200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_CHUNK_ROWS = 2048  # added up in single precision


@dataclass(frozen=True)
class Cut:
    """Columns and rows of a tile, programs of a processor and their warps."""

    width: int
    tile: int
    per_processor: int
    warps: int
    stages: int  # tiles on their way from memory

    @property
    def tiles(self) -> int:
        """Tiles of a chunk."""
        return _CHUNK_ROWS // self.tile

    def n_chunks(self, n_rows: int) -> int:
        """Chunks of so many rows."""
        return -(-n_rows // _CHUNK_ROWS)


def power_of_two(n: int) -> int:
    """The smallest that is not smaller."""
    return 1 << (n - 1).bit_length()


def cut_rows(n_features: int, X: Any) -> Cut:
    """For one score a row: small tiles, and several of them on their way from memory."""
    width = max(16, power_of_two(n_features))
    # Rows that do not begin at a multiple of 16 bytes come in small pieces: too many to have ahead.
    is_aligned = X.stride(0) * X.element_size() % 16 == 0
    tile = max(2, min(32, 2048 // width))
    return Cut(width, tile, 8, warps=4 if width <= 64 else 8, stages=4 if is_aligned else 1)


def cut_squares(n_features: int, *, is_double: bool = False) -> Cut:
    """For products of a tile with itself, whose sides must be 16 at least."""
    width = max(16, power_of_two(n_features))
    if width <= 32:
        return Cut(width, 32, per_processor=8, warps=2, stages=3)
    tile = 32 if is_double else 16
    if width <= 64:
        return Cut(width, tile, per_processor=2, warps=4, stages=3)
    return Cut(width, tile, per_processor=1, warps=8, stages=3)


def cut_classes(n_features: int) -> Cut:
    """For products of a tile with the coefficients of many classes."""
    width = max(16, power_of_two(n_features))
    tile, per_processor = (128, 4) if width <= 32 else (64, 2)
    return Cut(width, tile, per_processor, warps=4, stages=1)
