"""Rows that come as NumPy arrays, block by block.

A block is what is read at once, and summed by one thread; a tile is a part of it that fits into
the cache. ``BlockRows`` has the sums, for rows of any source; ``MemoryRows`` are those of an array,
``ChainedRows`` those of several sources.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, TypeVar

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    LinearRule,
    Rule,
    Tally,
    complete_sums,
    fold,
    no_label_sums,
    scaled,
    unfolded,
    with_weights,
)
from .._core.moments import (
    Moments,
    SumsFromZero,
    is_near_zero,
    moments_of_block,
    no_moments,
    sums_from_zero,
)
from .._core.rows import Near, Rows
from . import Result, WeightedRows, in_order, report_as, report_progress

Tile = tuple[
    AnyArray, "Array | None", "slice | AnyArray"
]  # rows, weights, indices of the rows
Sum = TypeVar("Sum", Moments, SumsFromZero, LabelSums)

_TILE_ROWS = (512, 8192)
_TILE_ENTRIES = 2**17  # float64: half the second-level cache of a core
_TILE_MULTIPLE = 64  # the number of rows of a tile is a multiple of this
TILES_PER_BLOCK = 8  # added up by one thread before their sum joins the others


@dataclass(frozen=True)
class Block:
    """Consecutive rows in memory, the first of them at index ``start``."""

    start: int
    rows: AnyArray
    where: str = ""  # the file or batch they come from, for messages

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


class BlockRows(WeightedRows):
    """Sums of rows that come as NumPy arrays, which ``_blocks`` of a backend supplies.

    Blocks of ``_block_rows`` rows, the last one of the rest, give the same sums to the last bit for
    any backend and any number of threads.
    """

    _total: SumsFromZero | None = None  # of all rows, once they were summed from zero
    _n_read: int | None = None  # rows of the last pass
    _is_one_tile = False  # not worth a change of BLAS threads, nor a report of progress

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        *,
        tile_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(n_all, n_features, weights, is_member)
        self._n_all = n_all
        self._tile_rows = tile_rows or rows_per_tile(n_features)
        self._block_rows = TILES_PER_BLOCK * self._tile_rows
        self._n_threads = n_threads

    def _blocks(self, *, is_listed: bool = False) -> Generator[Block, None, None]:
        """Yield all rows, members or not. ``is_listed``: for results of rows, not for sums."""
        raise NotImplementedError

    def _first_rows(self) -> AnyArray | None:
        """Return some rows, to see whether all are near zero; None if none were read yet."""
        return None

    def _pass(
        self, of_block: Callable[[Block], Result], *, is_listed: bool = False
    ) -> Iterator[Result]:
        """Yield the results of a function of all blocks, in order."""
        if self._is_one_tile:
            yield from map(of_block, self._blocks())
            return

        def with_stop(block: Block) -> tuple[int, Result]:
            return block.stop, of_block(block)

        n_all = self._n_read if self._n_all is None else self._n_all
        with (
            closing(self._blocks(is_listed=is_listed)) as blocks,
            closing(in_order(with_stop, blocks, self._n_threads)) as results,
        ):
            for n_done, result in results:
                report_progress(n_done, n_all)
                yield result

    def _add_up(self, of_block: Callable[[Block], Sum]) -> Sum | None:
        """Return the sum of a function of all blocks; None if there are no rows."""
        sums = iter(()) if self._n_rows == 0 else self._pass(of_block)
        first = next(sums, None)
        return None if first is None else reduce(add, sums, first)

    def _tiles(self, block: Block) -> Iterator[Tile]:
        """Yield the members of a block, tile by tile."""
        for low in range(0, len(block.rows), self._tile_rows):
            part = block.rows[low : low + self._tile_rows]
            begin = block.start + low
            inside = self._members_within(begin, begin + len(part))
            index = (
                slice(begin, begin + len(part))
                if isinstance(inside, slice)
                else begin + inside
            )
            rows = part[inside].astype(np.float64, copy=False)
            if self.unit is not None:
                rows = self.unit(rows)
            yield rows, None if self._weights is None else self._weights[index], index

    def _rows_at(self, index: AnyArray) -> AnyArray:
        parts = [np.zeros((0, self.n_features))]
        for block in self._blocks(is_listed=True):
            low, high = np.searchsorted(index, [block.start, block.stop])
            parts.append(block.rows[index[low:high] - block.start])
        return np.concatenate(parts)

    def moments(self, frame: Frame) -> Moments:
        is_long = self._n_all is None or self._n_all > self._tile_rows
        first = self._first_rows() if is_long and self._weights is None else None
        # Many rows near zero are summed without a copy.
        if first is not None and is_near_zero(
            np.asarray(first, dtype=np.float64), frame
        ):

            def from_zero(block: Block) -> SumsFromZero:
                return sum_in_order(
                    sums_from_zero(rows) for rows, *_ in self._tiles(block)
                )

            self._total = self._add_up(from_zero)
            moments = None if self._total is None else self._total.moments(frame)
            if moments is not None:
                return moments
            self._total = None

        def in_frame(block: Block) -> Moments:
            tiles = self._tiles(block)
            return sum_in_order(
                moments_of_block(frame.apply(rows), w) for rows, w, _ in tiles
            )

        return self._add_up(in_frame) or no_moments(self.n_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        # One read a pass: fold the frame into the rule rather than shift and scale every row.
        # Labels come from the folded rule whenever there is one: ties must fall the same way with
        # and without scatter.
        used_rule, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        if sums_raw and isinstance(used_rule, LinearRule):
            used_rule = used_rule.knowing(self._total)
        wider = None
        if near is not None and near.softening > 1 and isinstance(rule, LinearRule):
            wider = fold(near.softened(rule), frame)[0]

        rows_near: dict[int, Array | None] = {}  # by the start of their block

        def of_block(block: Block) -> LabelSums:
            found: list[Array] = []
            tally = Tally(used_rule, self.n_features, centers)
            for rows, weights, index in self._tiles(block):
                used = rows if sums_raw else frame.apply(rows)
                labeled = rows if is_folded else used
                shares = tally.add(labeled, used, weights, index)
                if near is None:
                    continue
                if isinstance(index, slice):
                    index = np.arange(index.start, index.stop)
                if wider is not None:
                    shares = wider.shares(labeled, index)[0]
                close, counts = near.rows(shares, index)
                each = counts if weights is None else counts * weights[close]
                found.append(with_weights(used[close], each))
            rows_near[block.start] = _joined(found)
            return tally.sums()

        total = self._add_up(of_block)
        if total is None:
            return no_label_sums(rule.n_classes, self.n_features)
        total = replace(
            total, near=_joined(rows_near.pop(start) for start in sorted(rows_near))
        )
        if sums_raw:
            return unfolded(complete_sums(used_rule, total), frame)
        return complete_sums(rule, total)

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        rule, is_folded = fold(rule, frame)

        def of_tile(tile: Tile) -> Array:
            rows, _, index = tile
            return rule.shares(rows if is_folded else frame.apply(rows), index)[0].T

        return self._of_members(of_tile)

    def apply(self, function: Callable[[AnyArray], AnyArray]) -> AnyArray:
        """Return the results of a function of rows, for all members, in their order."""
        return self._of_members(lambda tile: function(tile[0]))

    def _of_members(self, of_tile: Callable[[Tile], AnyArray]) -> AnyArray:
        none = of_tile((np.zeros((0, self.n_features)), None, slice(0, 0)))
        results = self._pass(
            lambda block: [of_tile(tile) for tile in self._tiles(block)], is_listed=True
        )
        return concatenate(chain([none], chain.from_iterable(results)), self._n_rows)


class MemoryRows(BlockRows):
    """All rows of ``X``, or those that ``is_member`` marks. Nothing is copied but tiles."""

    def __init__(
        self,
        X: AnyArray,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
        tile_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(
            len(X),
            X.shape[1],
            weights,
            is_member,
            tile_rows=tile_rows,
            n_threads=n_threads,
        )
        self._X = X
        self._is_one_tile = len(X) <= self._tile_rows

    def tiles(self) -> Iterator[Tile]:
        """Yield rows, weights and indices, tile by tile, in the same cuts every time."""
        return self._tiles(Block(0, self._X))

    def _blocks(self, *, is_listed: bool = False) -> Generator[Block, None, None]:
        for start in range(0, len(self._X), self._block_rows):
            yield Block(start, self._X[start : start + self._block_rows])

    def _first_rows(self) -> AnyArray:
        return next(self.tiles())[0]

    def _rows_at(self, index: AnyArray) -> AnyArray:
        return self._X if len(index) == len(self._X) else self._X[index]


class ChainedRows:
    """The rows of the first part, then those of the second, and so on; all weights x ``factor``.

    Passes over all parts are counted here.
    """

    def __init__(
        self, parts: Sequence[Rows], n_features: int, factor: float = 1.0
    ) -> None:
        self._parts = [part for part in parts if part.n_rows > 0]
        self.n_features = n_features
        self._factor = factor
        self._n_passes = 0

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def held_at(self) -> Any:
        return self._parts[0].held_at if len(self._parts) == 1 else None

    def moments(self, frame: Frame) -> Moments:
        parts = self._pass(lambda part: part.moments(frame))
        return sum(parts, no_moments(self.n_features)).scaled(self._factor)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        parts = self._pass(
            lambda part: part.label_sums(rule, frame, centers, near=near)
        )
        return scaled(
            sum(parts, no_label_sums(rule.n_classes, self.n_features)), self._factor
        )

    def _pass(self, of_part: Callable[[Rows], Result]) -> list[Result]:
        """Return a result of every part, in their order: one pass over all rows."""
        self._n_passes += 1
        with report_as(self._n_passes):
            return [of_part(part) for part in self._parts]

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        share = min(1.0, n / max(1, self.n_rows))
        # Between passes samples are not reported; the first one may take long.
        with report_as(None) if self._n_passes else nullcontext():
            drawn = [
                part.sample(max(1, round(share * part.n_rows)), seed + i)
                for i, part in enumerate(self._parts)
            ]
        if not drawn:
            return np.zeros((0, self.n_features)), np.zeros(0)
        if len(drawn) == 1:  # not copied
            return drawn[0][0], self._factor * drawn[0][1]
        rows, weights = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
        return rows, self._factor * weights

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        with report_as(None):
            shares = [part.responsibilities(rule, frame) for part in self._parts]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))


def _joined(parts: Iterable[Array | None]) -> Array | None:
    """Return parts after each other, None if there are none."""
    listed = [part for part in parts if part is not None]
    return np.concatenate(listed) if listed else None


def rows_per_tile(n_features: int) -> int:
    """Return the number of rows of a tile."""
    least, most = _TILE_ROWS
    fitting = _TILE_ENTRIES // max(1, n_features)
    return int(min(most, max(least, fitting))) // _TILE_MULTIPLE * _TILE_MULTIPLE


def sum_in_order(parts: Iterable[Sum]) -> Sum:
    """Return the sum of all parts, at least one, in their order."""
    return reduce(add, parts)


def concatenate(results: Iterable[Any], n_rows: int | None = None) -> AnyArray:
    """Return results, at least one, after each other, in dtype and byte order of the first.

    If the number of rows is known beforehand, none is held twice.
    """
    if n_rows is None:
        results = list(results)
        n_rows = sum(map(len, results))
    parts = iter(results)
    first = next(parts)
    joined = np.empty((n_rows, *first.shape[1:]), first.dtype)
    n_done = 0
    for part in chain([first], parts):
        joined[n_done : n_done + len(part)] = part
        n_done += len(part)
    return joined
