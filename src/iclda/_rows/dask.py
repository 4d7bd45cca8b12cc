"""Rows on the workers of a Dask cluster, which form the sums and add them up.

Only a total per pass and some rows come back. ``dask_tasks`` has what a worker does
with a block, ``dask_workers`` how tasks are run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from dask.delayed import Delayed

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import GivenLabels, LabelSums, Rule, no_label_sums
from .._core.moments import Moments, no_moments
from .._core.rows import Near
from .checks import check_shape, names_of_table
from .dask_tasks import (
    BlockInfo,
    DrawnRows,
    Look,
    RowsFunction,
    SumsFunction,
    apply_to_block,
    given,
    join_lists,
    look_at_block,
    read_block,
    sum_block,
    take_rows,
    task_of,
)
from .dask_workers import Workers, workers_of
from .memory import MemoryRows, sum_in_order
from .protocol import Request, WeightedRows

# Rows of all blocks together that are held here if workers do not keep the blocks:
# twice a sample, so that none of them needs a pass.
_MAX_HELD_ROWS = 40_000
# Of each block at least these rows are held: members may be few among them.
_MIN_HELD_ROWS_PER_BLOCK = 256


@dataclass(eq=False, repr=False)
class DaskSource:
    """A Dask array or dataframe with settings: see ``iclda.rows.from_dask``.

    ``blocks`` is set when the source is first opened; workers keep what they hold of
    them as long as this object lives.
    """

    _iclda_backend: ClassVar[str] = "dask"
    source: Any
    client: Any = None
    retries: int = 2
    timeout: float | None = 600.0
    blocks: DaskBlocks | None = None

    def __post_init__(self) -> None:
        source = self.source
        if not hasattr(source, "to_delayed") or isinstance(source, Delayed):
            raise TypeError(
                "Rows on a cluster must be a Dask array or dataframe, got "
                f"{type(source).__name__}. dask.dataframe.from_map makes one of a "
                "function that reads a block, and dask.array.from_delayed of delayed "
                "objects. Rows in memory are passed to a classifier as they are."
            )

    @classmethod
    def of(cls, X: Any) -> DaskSource:
        """Return X, or an array or dataframe with the default settings."""
        return X if isinstance(X, cls) else cls(X)

    @property
    def is_array(self) -> bool:
        return hasattr(self.source, "rechunk")

    def in_whole_rows(self, request: Request) -> Any:
        """Return the source in blocks of whole rows, with the columns of the fit."""
        source = self.source
        check_shape(source, request.name)
        request.check_width(source.shape[1])
        way_out = f"Pass {request.name}[feature_names_in_]."
        request.check_names(names_of_table(source), way_out)
        # Dataframes have no blocks of some columns only.
        return source.rechunk({1: -1}) if self.is_array else source


def open_rows(X: Any, request: Request) -> DaskRows:
    """Return rows of a Dask array or dataframe, whose blocks are read once at first."""
    X = DaskSource.of(X)
    source = X.in_whole_rows(request)
    workers = workers_of(X.client, X.retries, X.timeout)
    if X.blocks is None or not X.blocks.is_held_by(workers):
        X.blocks = _open_blocks(source, X.is_array, request.name, workers)
    return DaskRows(X.blocks, request.n_threads)


def apply_to_rows(X: Any, function: RowsFunction, request: Request) -> Any:
    """Return a Dask array of the results of a function of rows, not computed."""
    X = DaskSource.of(X)
    source = X.in_whole_rows(request)
    n_features = source.shape[1]
    info = BlockInfo(request.name, 0, n_features, names_of_table(source))
    rows = source if X.is_array else _array_of(source, info)
    # The result of no rows has the dtype and the width of all results.
    empty = np.asarray(function(np.zeros((1, n_features))))[:0]
    lengths = rows.chunks[0]
    # Labels (n,) have one axis less than rows (n, d), scores (n, K) another width.
    shape: dict[str, Any] = {"drop_axis": 1, "chunks": (lengths,)}
    if empty.ndim == 2:
        shape = {"chunks": (lengths, (empty.shape[1],))}
    # Dask makes one layer of the graph for all blocks: delayed objects take 2 ms each.
    apply = partial(apply_to_block, info=info, function=function, empty=empty)
    return rows.map_blocks(apply, dtype=empty.dtype, meta=empty, **shape)


def _array_of(frame: Any, info: BlockInfo) -> Any:
    """Return a Dask array of the rows of a dataframe, not read."""
    import dask.array

    shape = (np.nan, info.n_features)
    meta = np.empty((0, info.n_features))
    parts = []
    for i, block in enumerate(frame.to_delayed()):
        rows = task_of(read_block, block, info=replace(info, i=i))
        parts.append(dask.array.from_delayed(rows, shape, meta=meta))
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


# Blocks.


def _open_blocks(
    source: Any, is_array: bool, name: str, workers: Workers
) -> DaskBlocks:
    """Read every block once, and have the workers keep it if there is room."""
    tasks = list(np.ravel(source.to_delayed()))
    names = names_of_table(source)
    infos = [BlockInfo(name, i, source.shape[1], names) for i in range(len(tasks))]
    # Blocks of an array that the user has persisted are not kept twice.
    is_kept = is_array and workers.holds(source, tasks)
    blocks = DaskBlocks(workers, tasks, infos, is_kept)
    # Blocks of known size are kept before they are read, others are read twice.
    if not is_kept and workers.has_room(source.nbytes if is_array else np.nan):
        blocks.keep()
    n_bytes = blocks.look()
    if not blocks.is_kept and workers.has_room(n_bytes):
        blocks.keep()
    return blocks


@dataclass(eq=False)
class DaskBlocks:
    """Blocks of a source, one task for each.

    Attributes
    ----------
    is_kept : bool
        Whether the workers hold the blocks, as long as this object lives.
    held : list
        Some rows of each block, if the blocks are not kept.
    """

    workers: Workers
    tasks: list[Delayed]
    infos: list[BlockInfo]
    is_kept: bool
    held: list[DrawnRows] = field(default_factory=list)

    @cached_property
    def offsets(self) -> AnyArray:
        """Index of the first row of every block, then the number of all rows."""
        return np.array([0, *accumulate(info.n_rows or 0 for info in self.infos)])

    def is_held_by(self, workers: Workers) -> bool:
        """Return whether these workers have what they were to keep."""
        if self.workers.client is not workers.client:
            return False
        return not self.is_kept or workers.has_kept(self.tasks)

    def keep(self) -> None:
        """Have the workers keep all blocks."""
        pairs = zip(self.tasks, self.infos, strict=True)
        tasks = [task_of(read_block, task, info=info) for task, info in pairs]
        self.tasks = self.workers.keep(tasks)
        self.is_kept = True
        self.held = []

    def look(self) -> float:
        """Read all blocks once and return their bytes; hold rows of blocks not kept."""
        n_held = 0
        if not self.is_kept:
            n_held = max(_MIN_HELD_ROWS_PER_BLOCK, _MAX_HELD_ROWS // len(self.tasks))
        pairs = zip(self.tasks, self.infos, strict=True)
        tasks = [
            task_of(look_at_block, task, info=info, n_held=n_held)
            for task, info in pairs
        ]
        looks: list[Look] = self.workers.run(self.infos, tasks, join_lists)
        # With the numbers of rows, every block knows where it begins.
        begin = 0
        infos = []
        for info, look in zip(self.infos, looks, strict=True):
            infos.append(replace(info, n_rows=look.n_rows, begin=begin))
            begin += look.n_rows
        self.infos = infos
        self.held = [] if self.is_kept else [look.held for look in looks]
        return float(sum(look.n_bytes for look in looks))


# Rows.


class DaskRows(WeightedRows):
    """The rows of all blocks of a source."""

    def __init__(self, blocks: DaskBlocks, n_threads: int) -> None:
        first = blocks.infos[0]
        super().__init__(int(blocks.offsets[-1]), first.n_features)
        self.feature_names = first.names
        self._blocks = blocks
        self._n_threads = n_threads

    def moments(self, frame: Frame) -> Moments:
        # A worker has the rows of a block in memory, and sums them as any others.
        sums_of = partial(MemoryRows.moments, frame=frame)
        return self._sums(lambda info: sums_of) or no_moments(self.n_mapped_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        def sums_of(info: BlockInfo) -> SumsFunction:
            # A worker counts the rows of a block from 0.
            block_rule = rule
            if isinstance(rule, GivenLabels):
                block_rule = replace(rule, labels=rule.labels[info.rows])
            return partial(
                MemoryRows.label_sums,
                rule=block_rule,
                frame=frame,
                centers=centers,
                near=None if near is None else replace(near, begin=info.begin),
                with_overlaps=with_overlaps,
            )

        total: LabelSums | None = self._sums(sums_of)
        return total or no_label_sums(rule.n_classes, self.n_mapped_features)

    def _sums(self, sums_of: Callable[[BlockInfo], SumsFunction]) -> Any:
        """Return the sum of a function of the members of blocks; None without rows.

        ``sums_of`` returns the function for a block.
        """
        if not self._choices:
            return None
        infos = [self._blocks.infos[i] for i in self._choices]
        tasks = [
            task_of(
                sum_block,
                self._blocks.tasks[info.i],
                self._choices[info.i],
                info=info,
                sums_of=sums_of(info),
                n_threads=self._n_threads,
                view=self.view,
            )
            for info in infos
        ]
        return self._blocks.workers.run(infos, tasks, sum_in_order)

    @cached_property
    def _choices(self) -> dict[int, Any]:
        """Weights and membership of the rows of each block that holds members."""
        weights = self._weights
        is_member = self._is_member
        choices: dict[int, Any] = {}
        for info in self._blocks.infos:
            is_chosen = None if is_member is None else is_member[info.rows]
            if info.n_rows and (is_chosen is None or is_chosen.any()):
                block_weights = None if weights is None else weights[info.rows]
                choices[info.i] = (block_weights, is_chosen)
        if weights is None and is_member is None:
            return choices
        # They are sent to the workers once, not in every pass.
        tasks = [task_of(given, choice) for choice in choices.values()]
        return dict(zip(choices, self._blocks.workers.keep(tasks), strict=True))

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        if self.n_rows == 0:
            return np.zeros((0, self.n_features)), np.zeros(0, dtype=np.int64)
        chosen = self._random_members(n, seed)
        by_block = self._by_block(chosen)
        # Of each block as many rows as a random choice among all, but those held here.
        drawn: list[DrawnRows] = []
        if self._blocks.held and n < self.n_rows:
            drawn = [self._held_of(i, len(index)) for i, index in by_block.items()]
        # Rows that are held may have too few members.
        n_drawn = sum(len(part.rows) for part in drawn)
        if n_drawn < len(chosen):
            drawn = self._read(by_block)
        rows = np.concatenate([part.rows for part in drawn])
        return rows, np.concatenate([part.indices for part in drawn])

    def _by_block(self, index: AnyArray) -> dict[int, AnyArray]:
        """Return ascending indices of rows by the blocks that hold them."""
        cuts = np.searchsorted(index, self._blocks.offsets).tolist()
        by_block = {}
        for i, (low, high) in enumerate(pairwise(cuts)):
            if low < high:
                by_block[i] = index[low:high]
        return by_block

    def _read(self, by_block: dict[int, AnyArray]) -> list[DrawnRows]:
        """Return rows at indices, given for each block, from the workers."""
        infos = [self._blocks.infos[i] for i in by_block]
        tasks = [
            task_of(
                take_rows,
                self._blocks.tasks[info.i],
                info=info,
                positions=by_block[info.i] - info.begin,
            )
            for info in infos
        ]
        drawn: list[DrawnRows] = self._blocks.workers.run(infos, tasks, join_lists)
        return drawn

    def _held_of(self, i: int, n: int) -> DrawnRows:
        """Return up to ``n`` members among the rows held of a block, in their order."""
        # Held rows are listed by their positions in the block.
        positions, rows = self._blocks.held[i]
        index = self._blocks.offsets[i] + positions
        kept = np.arange(len(index))
        if self._is_member is not None:
            kept = np.flatnonzero(self._is_member[index])
        # Held rows are in random order, and the first of them a sample.
        kept = kept[:n]
        kept = kept[np.argsort(index[kept])]
        return DrawnRows(index[kept], rows[kept])
