"""Rows on the workers of a Dask cluster, which form the sums and add them up.

A pass has one task for every block, then a tree of tasks that add up their results in
the order of the blocks. The result therefore does not depend on which worker did what,
or how often. Only the total comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, NamedTuple, NoReturn

import dask
import dask.base
import numpy as np
from dask.delayed import Delayed, delayed

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import GivenLabels, LabelSums, Rule, no_label_sums
from .._core.moments import Moments, no_moments
from .._core.rows import Near
from .._system import one_blas_thread
from .backends import (
    BadRowsError,
    Request,
    changed_error,
    check_finite,
    check_names,
    check_rows,
    names_of_table,
)
from .memory import MemoryRows, concatenate, sum_in_order
from .progress import report_progress
from .weighted_rows import WeightedRows

# Results that one task puts together.
_FAN_IN = 8
# Rows of all blocks together that are held here if workers do not keep the blocks:
# twice a sample. Of each block at least some rows are held.
_MAX_HELD_ROWS = 40_000
_MIN_HELD_ROWS_PER_BLOCK = 256
# Blocks may fill this share of the memory of all workers: the rest is for the work on
# them.
_SHARE_OF_MEMORY = 0.5
# The status of a future whose result no worker has.
_LOST_STATUSES = ("cancelled", "error", "lost")

# A function of an array of rows.
RowsFunction = Callable[[Any], Any]
# A function of the rows of a block that are members.
SumsFunction = Callable[[MemoryRows], Any]


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

    @property
    def is_array(self) -> bool:
        return hasattr(self.source, "rechunk")

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of a dataframe."""
        return names_of_table(self.source)

    def in_whole_rows(self, request: Request) -> Any:
        """Return the source in blocks of whole rows, with the columns of the fit."""
        source = self.source
        if source.ndim != 2:
            raise ValueError(
                f"{request.name} must be 2-d, rows x features, got shape "
                f"{source.shape}."
            )
        request.check_width(source.shape[1])
        names = self.names
        if names is not None and request.feature_names is not None:
            way_out = f"Pass {request.name}[feature_names_in_]."
            check_names(names, request.feature_names, request.name, way_out)
        return source.rechunk({1: -1}) if self.is_array else source


def open_rows(
    X: Any,
    request: Request,
    weights: Array | None = None,
    is_member: AnyArray | None = None,
) -> DaskRows:
    """Return rows of a Dask array or dataframe, whose blocks are read once at first."""
    X = X if isinstance(X, DaskSource) else DaskSource(X)
    source = X.in_whole_rows(request)
    workers = _workers_of(X)
    if X.blocks is None or not X.blocks.is_held_by(workers):
        X.blocks = _open_blocks(X, source, request.name, workers)
    rows = DaskRows(X.blocks, weights, is_member, request.n_threads)
    rows.source = X
    return rows


def apply_to_rows(X: Any, function: RowsFunction, request: Request) -> Any:
    """Return a Dask array of the results of a function of rows, not computed."""
    X = X if isinstance(X, DaskSource) else DaskSource(X)
    rows = X.in_whole_rows(request)
    info = BlockInfo(request.name, 0, rows.shape[1], names=X.names)
    if not X.is_array:
        rows = _array_of(rows, info)
    # The result of no rows has the dtype and the width of all results.
    empty = np.asarray(function(np.zeros((1, rows.shape[1]))))[:0]
    shape: dict[str, Any] = {"drop_axis": 1, "chunks": (rows.chunks[0],)}
    if empty.ndim == 2:
        shape = {"chunks": (rows.chunks[0], (empty.shape[1],))}
    task = partial(_apply_to_block, info=info, function=function, empty=empty)
    return rows.map_blocks(task, dtype=empty.dtype, meta=empty, **shape)


def _array_of(frame: Any, info: BlockInfo) -> Any:
    """Return a Dask array of the rows of a dataframe, not read."""
    import dask.array

    shape = (np.nan, info.n_features)
    meta = np.empty((0, info.n_features))
    parts = []
    for i, block in enumerate(frame.to_delayed()):
        rows = _task(_read_block, block, info=replace(info, i=i))
        parts.append(dask.array.from_delayed(rows, shape, meta=meta))
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


# What a worker does with a block. Only what these functions return leaves it.


@dataclass(frozen=True)
class BlockInfo:
    """Which block it is, and what is known of it.

    Attributes
    ----------
    name : str
        Name of the argument.
    i : int
        Index of the block.
    names : sequence of str or None
        Names of the columns.
    n_rows : int or None
        Number of rows, once the block was read.
    begin : int
        Index of its first row among all rows.
    """

    name: str
    i: int
    n_features: int
    names: Sequence[str] | None = None
    n_rows: int | None = None
    begin: int = 0

    @property
    def label(self) -> str:
        return f"{self.name}, block {self.i}"


class _Drawn(NamedTuple):
    """Some rows, and their indices in a block or among all rows."""

    indices: AnyArray
    rows: AnyArray


class _Look(NamedTuple):
    """What is learned of a block when it is read for the first time."""

    n_rows: int
    n_bytes: int
    held: _Drawn


def _read_block(block: Any, info: BlockInfo) -> AnyArray:
    """Return the rows of a block, which must be what is known of it."""
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            rows = np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    if rows.size == 0:
        return np.zeros((0, info.n_features))
    check_rows(rows, info.label)
    if rows.shape[1] != info.n_features:
        raise BadRowsError(
            f"{info.label} has {rows.shape[1]} columns, but X of fit has "
            f"{info.n_features}."
        )
    if info.n_rows not in (None, len(rows)):
        raise changed_error(
            info.label, f"it has {len(rows)} rows, and had {info.n_rows}"
        )
    return rows


def _finite_rows(block: Any, info: BlockInfo, index: Any = slice(None)) -> AnyArray:
    """Return the rows at an index in the block; ValueError for NaN and infinity."""
    rows: AnyArray = _read_block(block, info)[index]
    positions = None if isinstance(index, slice) else index
    check_finite(rows, info.label, info.names, index=positions, where=" of the block")
    return rows


def _look(block: Any, *, info: BlockInfo, n_held: int) -> list[_Look]:
    """Return the size of a block, and ``n_held`` of its rows."""
    rows = _read_block(block, info)
    # In random order, so that any first few of them are a sample, too.
    rng = np.random.default_rng([0, info.i])
    chosen = rng.choice(len(rows), min(n_held, len(rows)), replace=False)
    held = _Drawn(chosen, _finite_rows(rows, info, chosen))
    return [_Look(len(rows), rows.nbytes, held)]


def _take(block: Any, *, info: BlockInfo, positions: AnyArray) -> list[_Drawn]:
    """Return some rows of a block, with their indices among all rows."""
    return [_Drawn(info.begin + positions, _finite_rows(block, info, positions))]


def _sum_block(
    block: Any,
    choice: Any,
    *,
    info: BlockInfo,
    sums_of: SumsFunction,
    n_threads: int,
    unit: Any,
) -> Any:
    """Return sums of the members of a block; ``choice`` is their weights and mask."""
    rows = _read_block(block, info)
    weights, is_member = choice
    members = MemoryRows(rows, weights, is_member, n_threads=n_threads)
    members.unit = unit
    with np.errstate(over="ignore", invalid="ignore"):
        sums = sums_of(members)
    # NaN and infinity show in the sums: rows are searched for them only then.
    values = [value for value in vars(sums).values() if value is not None]
    if not all(np.isfinite(value).all() for value in values):
        _finite_rows(rows, info)
    return sums


def _apply_to_block(
    block: Any,
    *,
    block_id: tuple[int, ...],
    info: BlockInfo,
    function: RowsFunction,
    empty: Any,
) -> Any:
    """Return the results of a function of the rows of one block."""
    rows = _finite_rows(block, replace(info, i=block_id[0]))
    results = [function(tile.rows) for tile in MemoryRows(rows).tiles()]
    return concatenate([empty, *results])


def _join_lists(parts: Sequence[list[Any]]) -> list[Any]:
    return [result for part in parts for result in part]


# Tasks and workers.


def _task(function: Callable[..., Any], *inputs: Any, **settings: Any) -> Delayed:
    """Return a task that calls a function of other tasks, or of plain values.

    Dask does not look into the settings.
    """
    called = partial(function, **settings)
    return delayed(called, pure=False, traverse=False)(*inputs)


def _joined(tasks: Sequence[Delayed], join: Callable[[Any], Any]) -> Delayed:
    """Return a tree of tasks that puts results together in their order.

    It depends on nothing but the number of results: sums round alike every time.
    """
    while True:
        groups = [tasks[i : i + _FAN_IN] for i in range(0, len(tasks), _FAN_IN)]
        tasks = [_task(join, list(group)) for group in groups]
        if len(tasks) == 1:
            return tasks[0]


@dataclass(frozen=True)
class Workers:
    """The workers of a client, or Dask's scheduler in this process.

    ``client`` is a ``distributed.Client``; None: this process.
    """

    client: Any
    retries: int
    timeout: float | None

    def keep(self, tasks: list[Delayed]) -> list[Delayed]:
        """Have the workers compute tasks now, and hold the results for later tasks."""
        if self.client is None:
            return tasks
        # Weights and masks are part of the graph, which may therefore be large.
        # Scattered data would be lost with its worker.
        no_warning = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        with dask.config.set(no_warning):
            return list(self.client.persist(tasks, retries=self.retries))

    def has_room(self, n_bytes: float) -> bool:
        """Return whether the workers should keep this much; NaN: it is not known."""
        if self.client is None:
            return False
        limits = self.client.run_on_scheduler(_memory_limits)
        # Workers may still be on their way, or have no limit.
        if not limits or 0 in limits:
            return not np.isnan(n_bytes)
        return bool(n_bytes <= _SHARE_OF_MEMORY * sum(limits))

    def run(
        self,
        infos: Sequence[BlockInfo],
        tasks: Sequence[Delayed],
        join: Callable[[Any], Any],
    ) -> Any:
        """Return the results of one task for each block, put together in order."""
        total = _joined(tasks, join)
        if self.client is None:
            with one_blas_thread():
                # In a context of its own, a block that is summed in this thread reports
                # no progress.
                (result,) = Context().run(dask.compute, total)
            n_all = sum(info.n_rows or 0 for info in infos)
            report_progress(n_all, n_all or None)
            return result
        futures = self.client.compute([*tasks, total], retries=self.retries)
        try:
            self._wait(futures, infos)
            return futures[-1].result(timeout=self.timeout)
        except (Empty, TimeoutError):
            raise self._timeout_error(futures, infos) from None
        finally:
            # Tasks that are still waiting are cancelled by this.
            for future in futures:
                future.release()

    def _wait(self, futures: list[Any], infos: Sequence[BlockInfo]) -> None:
        """Wait for all futures, those of the blocks first; report their rows.

        Empty is raised if no task finishes within the time-out.
        """
        info_by_key = dict(zip([future.key for future in futures], infos, strict=False))
        n_all = sum(info.n_rows or 0 for info in infos)
        n_done = 0
        # The time-out of ``distributed.as_completed`` is one for all futures together.
        finished: SimpleQueue[Any] = SimpleQueue()
        for future in futures:
            future.add_done_callback(finished.put)
        # The workers may be threads of this process.
        with one_blas_thread():
            for _ in futures:
                future = finished.get(timeout=self.timeout)
                info = info_by_key.get(future.key)
                if future.status != "finished":
                    self._fail(future.exception(), (info or infos[0]).label)
                if info is not None:
                    n_done += info.n_rows or 0
                    report_progress(n_done, n_all or None)

    def _fail(self, error: BaseException, label: str) -> NoReturn:
        """Raise the error of a task; ours already name the block."""
        if isinstance(error, BadRowsError):
            raise error
        reason = f"{type(error).__name__}: {error}"
        message = f"{label} could not be read, after {self.retries} retries: {reason}"
        raise RuntimeError(message) from error

    def _timeout_error(
        self, futures: list[Any], infos: Sequence[BlockInfo]
    ) -> TimeoutError:
        labels = [*(info.label for info in infos), "sums"]
        waiting = [
            label
            for future, label in zip(futures, labels, strict=True)
            if not future.done()
        ]
        first = waiting[0] if waiting else "sums"
        return TimeoutError(
            f"No task was finished for {self.timeout:g} seconds (timeout). "
            f"{len(waiting)} are left for {len(self.client.nthreads())} workers, the "
            f"first reads {first}. A worker that hangs does nothing else until its "
            "task ends: client.restart() frees all workers. If blocks take longer "
            "than that, pass iclda.rows.from_dask(..., timeout=...)."
        )


def _workers_of(X: DaskSource) -> Workers:
    """Return the workers of the client of a source, or of what Dask would use."""
    client = X.client
    if client is None:
        # The current scheduler is a method of the current client, if there is one.
        client = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is not None and getattr(client, "asynchronous", True):
        raise TypeError(
            "client must be a distributed.Client that is not asynchronous, got "
            f"{type(client).__name__}: fit waits for the workers. Pass "
            "iclda.rows.from_dask(..., client=Client(..., asynchronous=False))."
        )
    return Workers(client, X.retries, X.timeout)


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]


# Blocks.


def _open_blocks(X: DaskSource, source: Any, name: str, workers: Workers) -> DaskBlocks:
    """Read every block once, and have the workers keep it if there is room."""
    tasks = list(np.ravel(source.to_delayed()))
    infos = [BlockInfo(name, i, source.shape[1], X.names) for i in range(len(tasks))]
    # Blocks of an array that the user has persisted are not kept twice.
    is_kept = X.is_array and workers.client is not None and _are_kept(source, tasks)
    blocks = DaskBlocks(workers, tasks, infos, is_kept)
    n_bytes = float(source.nbytes) if X.is_array else np.nan
    if not is_kept and workers.has_room(n_bytes):
        blocks.keep()
    n_bytes = blocks.look()
    if not blocks.is_kept and workers.has_room(n_bytes):
        blocks.keep()
    return blocks


def _are_kept(source: Any, tasks: Sequence[Delayed]) -> bool:
    """Return whether workers hold the results of all blocks of a source."""
    from distributed import futures_of

    kept_keys = {future.key for future in futures_of(source)}
    return all(task.key in kept_keys for task in tasks)


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
    held: list[_Drawn] = field(default_factory=list)

    @cached_property
    def offsets(self) -> AnyArray:
        """Index of the first row of every block, then the number of all rows."""
        return np.array([0, *accumulate(info.n_rows or 0 for info in self.infos)])

    def is_held_by(self, workers: Workers) -> bool:
        """Return whether these workers have what they were to keep."""
        if self.workers.client is not workers.client:
            return False
        if not self.is_kept:
            return True
        from distributed import futures_of

        futures = futures_of(self.tasks)
        return not any(future.status in _LOST_STATUSES for future in futures)

    def keep(self) -> None:
        """Have the workers keep all blocks."""
        self.tasks = self.workers.keep(
            [
                _task(_read_block, task, info=info)
                for task, info in zip(self.tasks, self.infos, strict=True)
            ]
        )
        self.is_kept = True
        self.held = []

    def look(self) -> float:
        """Read all blocks once and return their bytes; hold rows of blocks not kept."""
        n_held = 0
        if not self.is_kept:
            n_held = max(_MIN_HELD_ROWS_PER_BLOCK, _MAX_HELD_ROWS // len(self.tasks))
        tasks = [
            _task(_look, task, info=info, n_held=n_held)
            for task, info in zip(self.tasks, self.infos, strict=True)
        ]
        looks: list[_Look] = self.workers.run(self.infos, tasks, _join_lists)
        begin = 0
        infos = []
        for info, look in zip(self.infos, looks, strict=True):
            infos.append(replace(info, n_rows=look.n_rows, begin=begin))
            begin += look.n_rows
        self.infos = infos
        self.held = [] if self.is_kept else [look.held for look in looks]
        return float(sum(look.n_bytes for look in looks))


class DaskRows(WeightedRows):
    """All rows of a source, or those that ``is_member`` marks."""

    def __init__(
        self,
        blocks: DaskBlocks,
        weights: Array | None,
        is_member: AnyArray | None,
        n_threads: int,
    ) -> None:
        first = blocks.infos[0]
        super().__init__(int(blocks.offsets[-1]), first.n_features, weights, is_member)
        self.feature_names = first.names
        self._blocks = blocks
        self._n_threads = n_threads

    def moments(self, frame: Frame) -> Moments:
        def moments_of(info: BlockInfo) -> SumsFunction:
            return partial(MemoryRows.moments, frame=frame)

        return self._sums(moments_of) or no_moments(self.n_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        def label_sums_of(info: BlockInfo) -> SumsFunction:
            block_rule = rule
            if isinstance(rule, GivenLabels):
                end = info.begin + (info.n_rows or 0)
                block_rule = replace(rule, labels=rule.labels[info.begin : end])
            return partial(
                MemoryRows.label_sums,
                rule=block_rule,
                frame=frame,
                centers=centers,
                near=None if near is None else replace(near, begin=info.begin),
            )

        return self._sums(label_sums_of) or no_label_sums(
            rule.n_classes, self.n_features
        )

    def _sums(self, sums_of: Callable[[BlockInfo], SumsFunction]) -> Any:
        """Return the sum of a function of the members of blocks; None without rows."""
        if not self._choices:
            return None
        infos = [self._blocks.infos[i] for i in self._choices]
        tasks = [
            _task(
                _sum_block,
                self._blocks.tasks[info.i],
                self._choices[info.i],
                info=info,
                sums_of=sums_of(info),
                n_threads=self._n_threads,
                unit=self.unit,
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
        for i, (begin, end) in enumerate(pairwise(self._blocks.offsets.tolist())):
            if begin == end or not (is_member is None or is_member[begin:end].any()):
                continue
            choices[i] = (
                None if weights is None else weights[begin:end],
                None if is_member is None else is_member[begin:end],
            )
        if weights is None and is_member is None:
            return choices
        # They are sent to the workers once, not in every pass.
        tasks = [_task(_as_given, choice) for choice in choices.values()]
        return dict(zip(choices, self._blocks.workers.keep(tasks), strict=True))

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        if self.n_rows == 0:
            return np.zeros((0, self.n_features)), np.zeros(0, dtype=np.int64)
        chosen = self._random_members(n, seed)
        cuts = pairwise(np.searchsorted(chosen, self._blocks.offsets).tolist())
        by_block = {
            i: chosen[low:high] for i, (low, high) in enumerate(cuts) if low < high
        }
        drawn: list[_Drawn] = []
        if self._blocks.held and n < self.n_rows:
            drawn = [self._held_of(i, len(index)) for i, index in by_block.items()]
        # Rows that are held may have too few members.
        if sum(len(part.rows) for part in drawn) < len(chosen):
            drawn = self._read(by_block)
        rows = np.concatenate([part.rows for part in drawn])
        return rows, np.concatenate([part.indices for part in drawn])

    def _read(self, by_block: dict[int, AnyArray]) -> list[_Drawn]:
        """Return rows at indices, given for each block, from the workers."""
        infos = [self._blocks.infos[i] for i in by_block]
        tasks = [
            _task(
                _take,
                self._blocks.tasks[info.i],
                info=info,
                positions=by_block[info.i] - info.begin,
            )
            for info in infos
        ]
        drawn: list[_Drawn] = self._blocks.workers.run(infos, tasks, _join_lists)
        return drawn

    def _held_of(self, i: int, n: int) -> _Drawn:
        """Return up to ``n`` members among the rows held of a block, in their order."""
        positions, rows = self._blocks.held[i]
        index = self._blocks.offsets[i] + positions
        kept = np.arange(len(index))
        if self._is_member is not None:
            kept = np.flatnonzero(self._is_member[index])
        kept = kept[:n]
        kept = kept[np.argsort(index[kept])]
        return _Drawn(index[kept], rows[kept])


def _as_given(choice: Any) -> Any:
    return choice
