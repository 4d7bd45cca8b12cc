"""Rows cut into slabs of equal length, checked as they are read: finite, the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..._core.types import AnyArray
from ..base import check_finite
from .reader import Chunk, Reader

_REMEMBERED = 4096  # rows of one read that the first pass is compared with
_PIECES = 64  # of a slab: rows that change places between them are noticed


@dataclass(frozen=True)
class Slab:
    """Consecutive rows in memory, the first of them number ``start``."""

    number: int | None  # None: not one of those that all rows are cut into
    start: int
    rows: AnyArray
    where: str  # the file or batch where they begin

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)

    def __str__(self) -> str:
        block = "a block" if self.number is None else f"block {self.number}"
        return f"{block} (rows {self.start} to {self.stop - 1}, {self.where})"

    def check_finite(self, name: str, feature_names: Sequence[str] | None) -> None:
        """ValueError that names block, row and column of the first NaN or infinity."""
        numbers = range(self.start, self.stop)
        check_finite(self.rows, name, feature_names, numbers=numbers, where=f": {self}")


def cut(chunks: Iterable[Chunk], reader: Reader, n_rows: int) -> Iterator[Slab]:
    """Slabs of ``n_rows`` rows, the last one of what is left: the same for any size of chunks."""
    dtype, number, filled = reader.dtype, 0, 0
    for chunk in chunks:
        done = 0
        while done < len(chunk):
            if filled == 0:
                # Column by column where tables are copied so: BLAS takes either order.
                buffer = np.empty((n_rows, reader.n_features), dtype, order=reader.order)
                start, where = chunk.start + done, chunk.where
            n_taken = min(n_rows - filled, len(chunk) - done)
            chunk.fill(buffer[filled : filled + n_taken], done)
            filled, done = filled + n_taken, done + n_taken
            if filled == n_rows:
                yield Slab(number, start, buffer, where)
                del buffer  # it is the consumer's now
                number, filled = number + 1, 0
    if filled:
        yield Slab(number, start, buffer[:filled], where)


class FirstPass:
    """What the first pass read, by which later ones are known to read the same."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: list[tuple[int, int]] | None = None  # rows and checksum of every slab
        self._n_pass = 0

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None before the end of the first pass."""
        return None if self._first is None else sum(n for n, _ in self._first)

    def compared(self, slabs: Iterable[Slab]) -> Iterator[Slab]:
        """The same slabs; ValueError before the first one that differs from the first pass."""
        self._n_pass += 1
        seen: list[tuple[int, int]] = []
        for slab in slabs:
            seen.append((len(slab.rows), _checksum(slab.rows)))
            if self._first is not None:
                self._compare(slab, seen)
            yield slab
        if self._first is None:
            self._first = seen
        elif len(seen) < len(self._first):
            raise self._changed(_ended_early(seen, self._first))

    def _compare(self, slab: Slab, seen: list[tuple[int, int]]) -> None:
        assert self._first is not None
        if len(seen) > len(self._first):
            n_first = sum(n for n, _ in self._first)
            raise self._changed(f"{slab} comes after the last of {n_first} rows")
        (n_now, sum_now), (n_first, sum_first) = seen[-1], self._first[len(seen) - 1]
        if n_now != n_first:
            raise self._changed(f"{slab} has {n_now} rows, not {n_first}")
        if sum_now != sum_first:
            raise self._changed(f"{slab} holds other numbers")

    def _changed(self, what: str) -> ValueError:
        return ValueError(
            f"{self._name} changed between two passes: in pass {self._n_pass}, {what}. A source "
            "is read several times, and must give the same rows in the same order every time."
        )


class Remembered:
    """Rows that were read before the first pass, by number: it must find the same."""

    def __init__(self) -> None:
        self._read: list[tuple[AnyArray, AnyArray]] = []

    def add(self, numbers: AnyArray, rows: AnyArray) -> None:
        """Numbers, which ascend, and rows; of many, some are remembered."""
        step = max(1, -(-len(rows) // _REMEMBERED))
        self._read.append((numbers[::step], rows[::step] if step == 1 else rows[::step].copy()))

    def compare(self, slab: Slab, name: str) -> None:
        """ValueError that names the first row of a slab that was another before."""
        for numbers, rows in self._read:
            low, high = np.searchsorted(numbers, [slab.start, slab.stop])
            now = slab.rows[numbers[low:high] - slab.start]
            if not np.array_equal(now, rows[low:high]):
                other = int(np.argmax((now != rows[low:high]).any(axis=1)))
                raise ValueError(
                    f"{name} changed before the first pass: row {numbers[low + other]} holds other "
                    f"numbers in {slab} than when a few rows, or the labeled ones, were read. A "
                    "source must give the same rows in the same order every time."
                )


def _ended_early(seen: list[tuple[int, int]], first: list[tuple[int, int]]) -> str:
    n_now, n_first = sum(n for n, _ in seen), sum(n for n, _ in first)
    if n_now == 0:
        return f"block 0 and all others were missing: it gave its {n_first} rows only once"
    return f"block {len(seen)} was missing: it ended after {n_now} of {n_first} rows"


def _checksum(rows: AnyArray) -> int:
    """Sums of the bytes of some pieces, eight bytes at a time, which any order leaves the same."""
    flat = rows if rows.flags.c_contiguous or rows.flags.f_contiguous else rows.copy(order="F")
    data = flat.ravel(order="K").view(np.uint8)
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    starts = np.linspace(0, max(0, len(words) - 1), _PIECES).astype(np.int64)
    sums = np.add.reduceat(words, starts) if len(words) else words
    return hash((sums.tobytes(), data[whole:].tobytes()))
