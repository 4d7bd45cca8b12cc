"""Rows that come as NumPy arrays, block by block.

A block is what is read at once and summed by one thread; a tile is a part of it that
fits into the cache. ``BlockRows`` has the sums, for rows of any source, and
``MemoryRows`` are those of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, NamedTuple, TypeVar

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
from .._core.rows import Near
from .progress import report_progress
from .protocol import Members, WeightedRows, Weights
from .threads import Result, in_order

Sum = TypeVar("Sum", Moments, SumsFromZero, LabelSums)

# Tiles have a multiple of this number of rows.
_TILE_ROW_MULTIPLE = 64
_MIN_TILE_ROWS = 512
_MAX_TILE_ROWS = 8192
# As float64 numbers, a tile of this size takes half the second-level cache of a core.
_MAX_TILE_ENTRIES = 2**17
# A block has this many tiles, which one thread adds up.
TILES_PER_BLOCK = 8


class Tile(NamedTuple):
    """Members among consecutive rows, with their weights and indices."""

    rows: AnyArray
    weights: Weights
    indices: slice | AnyArray


@dataclass(frozen=True)
class Block:
    """Consecutive rows in memory, the first of them at index ``start``.

    ``where`` is the file or batch that they come from, for messages.
    """

    start: int
    rows: AnyArray
    where: str = ""

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


class BlockRows(WeightedRows):
    """Sums of rows that come as NumPy arrays, which ``_blocks`` of a backend supplies.

    If all blocks have ``_block_rows`` rows, except the last, which has the rest, the
    sums are the same to the last bit for any backend and any number of threads.
    """

    # The sums of all rows, once they were summed from zero.
    _total: SumsFromZero | None = None
    # The number of rows that the last pass read.
    _n_read: int | None = None
    # A single tile is worth neither a change of BLAS threads nor a report of progress.
    _is_one_tile = False

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Weights = None,
        is_member: Members = None,
        *,
        tile_rows: int | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__(n_all, n_features, weights, is_member)
        self._n_all = n_all
        self._tile_rows = tile_rows or rows_per_tile(n_features)
        self._block_rows = TILES_PER_BLOCK * self._tile_rows
        self._n_threads = n_threads

    def _blocks(self) -> Generator[Block, None, None]:
        """Yield all rows, members or not."""
        raise NotImplementedError

    def _listed_blocks(self) -> Generator[Block, None, None]:
        """Yield all rows where results of single rows are wanted, not sums."""
        return self._blocks()

    def _first_rows(self) -> AnyArray | None:
        """Return rows that show whether all are near zero; None if none were read."""
        return None

    def _pass(
        self, of_block: Callable[[Block], Result], blocks: Generator[Block, None, None]
    ) -> Iterator[Result]:
        """Yield the results of a function of all blocks, in order."""
        if self._is_one_tile:
            yield from map(of_block, blocks)
            return

        # A result says where its block ended, because the block itself is not kept.
        def with_stop(block: Block) -> tuple[int, Result]:
            return block.stop, of_block(block)

        n_all = self._n_read if self._n_all is None else self._n_all
        # Both generators are closed at once if the consumer stops early.
        with (
            closing(blocks),
            closing(in_order(with_stop, blocks, self._n_threads)) as results,
        ):
            for n_done, result in results:
                report_progress(n_done, n_all)
                yield result

    def _add_up(self, of_block: Callable[[Block], Sum]) -> Sum | None:
        """Return the sum of a function of all blocks; None if there are no rows."""
        total: Sum | None = None
        if self._n_rows == 0:
            # Nothing is read, and no pass is reported.
            return total
        for sums in self._pass(of_block, self._blocks()):
            total = sums if total is None else total + sums
        return total

    def _tiles(self, block: Block) -> Iterator[Tile]:
        """Yield the members of a block, tile by tile."""
        for low in range(0, len(block.rows), self._tile_rows):
            part = block.rows[low : low + self._tile_rows]
            # Indices among all rows, members or not.
            begin = block.start + low
            inside = self._members_within(begin, begin + len(part))
            index: slice | AnyArray
            if isinstance(inside, slice):
                index = slice(begin, begin + len(part))
            else:
                index = begin + inside
            # A slice of rows in double precision is a view: nothing is copied.
            rows = part[inside].astype(np.float64, copy=False)
            if self.view is not None:
                rows = self.view(rows)
            weights = None if self._weights is None else self._weights[index]
            yield Tile(rows, weights, index)

    def _rows_at(self, index: AnyArray) -> AnyArray:
        # The first part has the shape and dtype of the result, even of no rows.
        parts = [np.zeros((0, self.n_features))]
        for block in self._listed_blocks():
            low, high = np.searchsorted(index, [block.start, block.stop])
            parts.append(block.rows[index[low:high] - block.start])
        return np.concatenate(parts)

    def moments(self, frame: Frame) -> Moments:
        moments = self._moments_from_zero(frame)
        if moments is not None:
            return moments

        def in_frame(block: Block) -> Moments:
            return sum_in_order(
                moments_of_block(frame.apply(tile.rows), tile.weights)
                for tile in self._tiles(block)
            )

        return self._add_up(in_frame) or no_moments(self.n_mapped_features)

    def _moments_from_zero(self, frame: Frame) -> Moments | None:
        """Return the moments from sums about zero, which need no copy of the rows.

        None if the rows are weighted, few, or so far from zero that digits would be
        lost.
        """
        is_long = self._n_all is None or self._n_all > self._tile_rows
        if not is_long or self._weights is not None:
            return None
        # The first rows tell before the pass whether it would lose digits.
        first = self._first_rows()
        if first is None:
            return None
        if not is_near_zero(np.asarray(first, dtype=np.float64), frame):
            return None

        def from_zero(block: Block) -> SumsFromZero:
            return sum_in_order(
                sums_from_zero(tile.rows) for tile in self._tiles(block)
            )

        self._total = self._add_up(from_zero)
        moments = None if self._total is None else self._total.moments(frame)
        if moments is None:
            # Later rows were far from zero, unlike the first ones.
            self._total = None
        return moments

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        # Folding the frame into the rule saves shifting and scaling every row. Labels
        # come from the folded rule whenever there is one, so that ties fall alike with
        # and without scatter.
        used_rule, is_folded = fold(rule, frame)
        sums_raw = is_folded and centers is None
        if sums_raw and isinstance(used_rule, LinearRule):
            used_rule = used_rule.knowing(self._total)
        softened_rule = _softened(near, rule, frame)

        # Rows near boundaries, by the start of their block: threads end in any order.
        near_by_start: dict[int, Array | None] = {}

        def of_block(block: Block) -> LabelSums:
            near_parts: list[Array] = []
            tally = Tally(
                used_rule,
                self.n_mapped_features,
                centers,
                with_overlaps=with_overlaps,
            )
            for tile in self._tiles(block):
                rows = tile.rows
                summed = rows if sums_raw else frame.apply(rows)
                labeled = rows if is_folded else summed
                shares = tally.add(labeled, summed, tile.weights, tile.indices)
                if near is None:
                    continue
                if softened_rule is not None:
                    shares, _ = softened_rule.shares(labeled, tile.indices)
                near_parts.append(_near_rows(near, shares, summed, tile))
            near_by_start[block.start] = _joined(near_parts)
            return tally.sums()

        total = self._add_up(of_block)
        if total is None:
            return no_label_sums(rule.n_classes, self.n_mapped_features)
        # Popped, so that the parts are freed once they are joined.
        in_row_order = (near_by_start.pop(start) for start in sorted(near_by_start))
        total = replace(total, near=_joined(in_row_order))
        # Sums of raw rows become those of rows in the frame.
        if sums_raw:
            return unfolded(complete_sums(used_rule, total), frame)
        return complete_sums(rule, total)

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        used_rule, is_folded = fold(rule, frame)

        def shares_of(tile: Tile) -> Array:
            rows = tile.rows if is_folded else frame.apply(tile.rows)
            shares, _ = used_rule.shares(rows, tile.indices)
            return shares.T

        return self._of_members(shares_of)

    def apply(self, function: Callable[[AnyArray], AnyArray]) -> AnyArray:
        """Return the results of a function of rows, for all members, in their order."""
        return self._of_members(lambda tile: function(tile.rows))

    def _of_members(self, of_tile: Callable[[Tile], AnyArray]) -> AnyArray:
        # A tile without rows gives the shape and dtype of the results, even of none.
        no_rows = np.zeros((0, self.n_mapped_features))
        empty = of_tile(Tile(no_rows, None, slice(0, 0)))

        def of_block(block: Block) -> list[AnyArray]:
            return [of_tile(tile) for tile in self._tiles(block)]

        results = chain.from_iterable(self._pass(of_block, self._listed_blocks()))
        return concatenate(chain([empty], results), self._n_rows)


class MemoryRows(BlockRows):
    """All rows of ``X``, or those that ``is_member`` marks. Only tiles are copied."""

    def __init__(
        self,
        X: AnyArray,
        weights: Weights = None,
        is_member: Members = None,
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
        """Yield rows, weights and indices, tile by tile, cut alike every time."""
        return self._tiles(Block(0, self._X))

    def _blocks(self) -> Generator[Block, None, None]:
        for start in range(0, len(self._X), self._block_rows):
            yield Block(start, self._X[start : start + self._block_rows])

    def _first_rows(self) -> AnyArray:
        return next(self.tiles()).rows

    def _rows_at(self, index: AnyArray) -> AnyArray:
        return self._X if len(index) == len(self._X) else self._X[index]


def _softened(near: Near | None, rule: Rule, frame: Frame) -> Rule | None:
    """Return the rule that says which rows are near a boundary.

    None if no rows are wanted, or if the labeling rule itself says it.
    """
    if near is None or near.softening <= 1 or not isinstance(rule, LinearRule):
        return None
    softened_rule, _ = fold(near.softened(rule), frame)
    return softened_rule


def _near_rows(near: Near, shares: Array, summed: Array, tile: Tile) -> Array:
    """Return the rows of a tile near class boundaries, after their weights.

    ``summed`` are the rows of the tile in the coordinates of the sums.
    """
    index = tile.indices
    if isinstance(index, slice):
        index = np.arange(index.start, index.stop)
    chosen, counts = near.rows(shares, index)
    if tile.weights is not None:
        counts = counts * tile.weights[chosen]
    return with_weights(summed[chosen], counts)


def rows_per_tile(n_features: int) -> int:
    """Return the number of rows of a tile."""
    n_fitting = _MAX_TILE_ENTRIES // max(1, n_features)
    n_rows = min(_MAX_TILE_ROWS, max(_MIN_TILE_ROWS, n_fitting))
    return n_rows // _TILE_ROW_MULTIPLE * _TILE_ROW_MULTIPLE


def sum_in_order(parts: Iterable[Sum]) -> Sum:
    """Return the sum of all parts, at least one, added from first to last."""
    return reduce(add, parts)


def _joined(parts: Iterable[Array | None]) -> Array | None:
    """Return all parts that are not None as one array; None if there are none."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def concatenate(results: Iterable[Any], n_rows: int | None = None) -> AnyArray:
    """Return results, at least one, as one array, in dtype and byte order of the first.

    If the number of rows is known beforehand, no result is held twice.
    """
    if n_rows is None:
        results = list(results)
        n_rows = sum(len(part) for part in results)
    parts = iter(results)
    first = next(parts)
    joined = np.empty((n_rows, *first.shape[1:]), first.dtype)
    n_done = 0
    for part in chain([first], parts):
        joined[n_done : n_done + len(part)] = part
        n_done += len(part)
    return joined
