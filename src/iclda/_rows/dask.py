"""Rows on the workers of a Dask cluster: sums are formed and added up where the rows are.

A pass is one graph: a task for every block, then a tree of sums in the order of the
blocks. The result therefore does not depend on which worker did what, or how often.
Only the total comes back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, NoReturn
from uuid import uuid4

import dask
import dask.base
import dask.threaded
import numpy as np
from dask.core import flatten
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

_FAN_IN = 8  # results that one task puts together
# Rows held in memory of blocks that workers do not keep: twice a sample, of all blocks
# together.
_HELD_ROWS = 40_000
_LEAST_HELD = 256
_SHARE_OF_MEMORY = (
    0.5  # of all workers, that blocks may fill: the rest is for the work on them
)
_LOST = ("cancelled", "error", "lost")  # status of what a worker does not have

Graph = dict[Any, Any]
Inputs = Mapping[int, Sequence[Any]]  # of tasks, by index of the block
Drawn = tuple[AnyArray, AnyArray]  # indices of rows, and the rows
Function = Callable[[Any], Any]  # of an array of rows, or of results to be put together


@dataclass(eq=False, repr=False)
class DaskSource:
    """A Dask array or dataframe with settings: see ``iclda.rows.from_dask``."""

    _iclda_backend: ClassVar[str] = "dask"
    source: Any
    client: Any = None
    retries: int = 2
    timeout: float | None = 600.0
    blocks: DaskBlocks | None = None  # once looked at, as long as this lives

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
        """Return the source, an array in blocks of whole rows; its columns are those of the fit."""
        source, names = self.source, self.names
        if source.ndim != 2:
            shape = source.shape
            raise ValueError(
                f"{request.name} must be 2-d, rows x features, got shape {shape}."
            )
        request.check_width(source.shape[1])
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
    """Return rows of a Dask array or dataframe, whose blocks are read at first."""
    X = X if isinstance(X, DaskSource) else DaskSource(X)
    source, workers = X.in_whole_rows(request), _workers_of(X)
    if X.blocks is None or not X.blocks.is_held_by(workers):
        X.blocks = _open_blocks(X, source, request.name, workers)
    rows = DaskRows(X.blocks, weights, is_member, request.n_threads)
    rows.source = X
    return rows


def apply_to_rows(X: Any, function: Function, request: Request) -> Any:
    """Return a Dask array of results, not computed."""
    X = X if isinstance(X, DaskSource) else DaskSource(X)
    rows = X.in_whole_rows(request)
    info = BlockInfo(request.name, 0, rows.shape[1], names=X.names)
    if not X.is_array:
        rows = _array_of(rows, info)
    none = np.asarray(function(np.zeros((1, rows.shape[1]))))[:0]
    shape: dict[str, Any] = {"drop_axis": 1, "chunks": (rows.chunks[0],)}
    if none.ndim == 2:
        shape = {"chunks": (rows.chunks[0], (none.shape[1],))}
    task = partial(_apply_to_block, info=info, function=function, none=none)
    return rows.map_blocks(task, dtype=none.dtype, meta=none, **shape)


def _array_of(frame: Any, info: BlockInfo) -> Any:
    """Return a Dask array of the rows of a dataframe, not read."""
    import dask.array

    parts, shape = [], (np.nan, info.n_features)
    for i, block in enumerate(frame.to_delayed()):
        rows = delayed(partial(_read_block, info=replace(info, i=i)))(block)
        parts.append(
            dask.array.from_delayed(rows, shape, meta=np.empty((0, info.n_features)))
        )
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


# What a worker does with a block. Only what these functions return leaves it.


@dataclass(frozen=True)
class BlockInfo:
    """Which block it is, and what is known of it."""

    name: str  # of the argument
    i: int
    n_features: int
    names: Sequence[str] | None = None  # of its columns
    n_rows: int | None = None  # once it was read
    begin: int = 0  # index of its first row among all

    @property
    def label(self) -> str:
        return f"{self.name}, block {self.i}"


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
    """Return the rows at an index within the block; ValueError for NaN and infinity."""
    rows: AnyArray = _read_block(block, info)[index]
    positions = None if isinstance(index, slice) else index
    check_finite(rows, info.label, info.names, index=positions, where=" of the block")
    return rows


def _look(block: Any, *, info: BlockInfo, n_held: int) -> list[tuple[int, int, Drawn]]:
    """Return the number of rows of a block, its size in bytes, and ``n_held`` of its rows."""
    rows = _read_block(block, info)
    # In random order: any first few of them are a sample, too.
    n_held = min(n_held, len(rows))
    held = np.random.default_rng([0, info.i]).choice(len(rows), n_held, replace=False)
    return [(len(rows), rows.nbytes, (held, _finite_rows(rows, info, held)))]


def _take(block: Any, positions: AnyArray, *, info: BlockInfo) -> list[Drawn]:
    return [(info.begin + positions, _finite_rows(block, info, positions))]


def _join_lists(parts: Sequence[list[Any]]) -> list[Any]:
    return [result for part in parts for result in part]


def _sum_block(
    block: Any,
    chosen: Any,
    *,
    info: BlockInfo,
    method: str,
    n_threads: int,
    unit: Any,
    **arguments: Any,
) -> Any:
    """Return moments or label sums of the members of a block: ``chosen`` are weights and mask."""
    block = _read_block(block, info)
    if isinstance(rule := arguments.get("rule"), GivenLabels):
        labels = rule.labels[info.begin : info.begin + len(block)]
        arguments["rule"] = replace(rule, labels=labels)
    if arguments.get("near") is not None:
        arguments["near"] = replace(arguments["near"], begin=info.begin)
    with np.errstate(over="ignore", invalid="ignore"):
        weights, is_member = chosen or (None, None)
        members = MemoryRows(block, weights, is_member, n_threads=n_threads)
        members.unit = unit
        sums = getattr(members, method)(**arguments)
    # NaN and infinity show in the sums: rows are searched for them only then.
    if not all(
        np.isfinite(value).all() for value in vars(sums).values() if value is not None
    ):
        _finite_rows(block, info)
    return sums


def _apply_to_block(
    block: Any,
    *,
    block_id: tuple[int, ...],
    info: BlockInfo,
    function: Function,
    none: Any,
) -> Any:
    """Return the results of a function of the rows of one block; ``none``: those of no rows."""
    rows = _finite_rows(block, replace(info, i=block_id[0]))
    return concatenate(
        [none, *(function(part) for part, _, _ in MemoryRows(rows).tiles())]
    )


# Workers.


@dataclass(frozen=True)
class Workers:
    """The workers of a client, or Dask's scheduler in this process."""

    client: Any  # a ``distributed.Client``; None: this process
    retries: int
    timeout: float | None

    def keep(self, graph: Graph, keys: list[Any]) -> list[Any]:
        """Return what tasks take for these keys: computed once, and held where they were made."""
        if self.client is None:
            compute = dask.base.get_scheduler() or dask.threaded.get
            with one_blas_thread():
                # A context of its own: blocks that are summed in this thread report no
                # progress.
                return list(Context().run(compute, graph, keys))
        # Weights and masks are part of the graph: what is scattered is lost with its
        # worker.
        with dask.config.set(
            {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        ):
            return list(self.client.get(graph, keys, sync=False, retries=self.retries))

    def has_room(self, n_bytes: float) -> bool:
        """Whether to keep so much."""
        if self.client is None:
            return False
        limits = self.client.run_on_scheduler(_memory_limits)
        if not limits or 0 in limits:  # workers to come, or without a limit
            return not np.isnan(n_bytes)
        return bool(n_bytes <= _SHARE_OF_MEMORY * sum(limits))

    def run(self, graph: Graph, infos: Mapping[Any, BlockInfo], total: Any) -> Any:
        """Return the value of the key ``total``, which is made of those of the blocks."""
        n_all = sum(info.n_rows or 0 for info in infos.values())
        if self.client is None:
            (result,) = self.keep(graph, [total])
            report_progress(n_all, n_all or None)
            return result
        futures = self.client.get(
            graph, [*infos, total], sync=False, retries=self.retries
        )
        done: SimpleQueue[Any] = SimpleQueue()
        n_done = 0
        try:
            for future in futures:
                future.add_done_callback(done.put)
            with one_blas_thread():  # the workers may be threads of this process
                for _ in futures:
                    future = done.get(timeout=self.timeout)
                    info = infos.get(future.key)
                    if future.status != "finished":
                        label = (info or next(iter(infos.values()))).label
                        self._fail(future.exception(), label)
                    if info is not None:
                        n_done += info.n_rows or 0
                        report_progress(n_done, n_all or None)
            return futures[-1].result(timeout=self.timeout)
        except (Empty, TimeoutError):
            waiting = [future for future in futures if not future.done()]
            first = next(
                (infos[one.key].label for one in waiting if one.key in infos), "sums"
            )
            n_workers = len(self.client.nthreads())
            raise TimeoutError(
                f"No task was finished for {self.timeout:g} seconds (timeout). "
                f"{len(waiting)} are left for {n_workers} workers, the first reads "
                f"{first}. A worker that hangs does nothing else until its task ends: "
                "client.restart() frees all workers. If blocks take longer than that, "
                "pass iclda.rows.from_dask(..., timeout=...)."
            ) from None
        finally:
            for future in futures:  # what is waiting is not computed any more
                future.release()

    def _fail(self, error: BaseException, label: str) -> NoReturn:
        if isinstance(error, BadRowsError):
            raise error
        reason = f"{type(error).__name__}: {error}"
        message = f"{label} could not be read, after {self.retries} retries: {reason}"
        raise RuntimeError(message) from error


def _workers_of(X: DaskSource) -> Workers:
    """Return the workers of its client, or of what Dask would use."""
    client = X.client
    if client is None:
        client = getattr(
            dask.base.get_scheduler(), "__self__", None
        )  # whose method ``get`` it is
    if client is not None and getattr(client, "asynchronous", True):
        raise TypeError(
            f"client must be a distributed.Client that is not asynchronous, got "
            f"{type(client).__name__}: fit waits for the workers. Pass "
            "iclda.rows.from_dask(..., client=Client(..., asynchronous=False))."
        )
    return Workers(client, X.retries, X.timeout)


def _memory_limits(dask_scheduler: Any) -> list[float]:
    return [worker.memory_limit or 0 for worker in dask_scheduler.workers.values()]


# Blocks.


def _open_blocks(X: DaskSource, source: Any, name: str, workers: Workers) -> DaskBlocks:
    """Read every block once, and have the workers keep it if there is room."""
    inputs, graph, is_kept = _inputs_of(source)
    infos = [BlockInfo(name, i, source.shape[1], X.names) for i in range(len(inputs))]
    blocks = DaskBlocks(workers, inputs, graph, infos, is_kept)
    n_bytes = float(source.nbytes) if X.is_array else np.nan
    if not is_kept and workers.has_room(n_bytes):
        blocks.keep()
    n_bytes = blocks.look()
    if not blocks.is_kept and workers.has_room(n_bytes):
        blocks.keep()
    return blocks


def _inputs_of(source: Any) -> tuple[list[Any], Graph, bool]:
    """Return what gives each block, the graph it belongs to, and whether the workers have it."""
    if hasattr(source, "rechunk") and "distributed" in sys.modules:
        given = [
            source.__dask_graph__().get(key) for key in flatten(source.__dask_keys__())
        ]
        if all(isinstance(one, sys.modules["distributed"].Future) for one in given):
            return given, {}, True  # the user has persisted them
    blocks = list(np.ravel(source.to_delayed()))
    graphs = {id(one.dask): one.dask for one in blocks}
    graph = {key: task for each in graphs.values() for key, task in dict(each).items()}
    return [one.key for one in blocks], graph, False


@dataclass(eq=False)
class DaskBlocks:
    """Blocks of a source. The workers keep them, or some rows of each, as long as this lives.

    An input is a key of ``graph``, a block, or the future of one.
    """

    workers: Workers
    inputs: list[Any]
    graph: Graph
    infos: list[BlockInfo]
    is_kept: bool  # the inputs are futures of the workers
    held: list[Drawn] = field(
        default_factory=list
    )  # rows of each block, if it is not kept

    @cached_property
    def offsets(self) -> AnyArray:
        """Index of the first row of every block, then the number of all rows."""
        return np.array([0, *accumulate(info.n_rows or 0 for info in self.infos)])

    def is_held_by(self, workers: Workers) -> bool:
        """Whether these workers have what they were to keep."""
        is_lost = any(getattr(one, "status", None) in _LOST for one in self.inputs)
        return not is_lost and self.workers.client is workers.client

    def keep(self) -> None:
        """Have the workers keep all blocks."""
        tasks = self._tasks(_read_block, self._all)
        self.inputs = self.workers.keep({**self.graph, **tasks}, list(tasks))
        self.graph, self.is_kept, self.held = {}, True, []

    def look(self) -> float:
        """Read all blocks once and return their bytes; hold some rows of those not kept."""
        n_held = 0 if self.is_kept else max(_LEAST_HELD, _HELD_ROWS // len(self.inputs))
        looks = self.run(_look, _join_lists, self._all, n_held=n_held)
        self.held = [] if self.is_kept else [held for _, _, held in looks]
        begins = accumulate((n_rows for n_rows, _, _ in looks), initial=0)
        self.infos = [
            replace(info, n_rows=n_rows, begin=begin)
            for info, (n_rows, _, _), begin in zip(
                self.infos, looks, begins, strict=False
            )
        ]
        return float(sum(n_bytes for _, n_bytes, _ in looks))

    @property
    def _all(self) -> Inputs:
        return {i: (block,) for i, block in enumerate(self.inputs)}

    def run(
        self,
        function: Callable[..., Any],
        join: Function,
        inputs: Inputs,
        **settings: Any,
    ) -> Any:
        """Run a pass: a task for every block, then results put together in their order."""
        tasks = self._tasks(function, inputs, **settings)
        tree, total = _tree(join, list(tasks))
        infos = dict(zip(tasks, (self.infos[i] for i in inputs), strict=True))
        return self.workers.run({**self.graph, **tasks, **tree}, infos, total)

    def _tasks(
        self, function: Callable[..., Any], inputs: Inputs, **settings: Any
    ) -> Graph:
        name = f"{function.__name__.strip('_')}-{uuid4().hex}"
        return {
            (name, i): (partial(function, info=self.infos[i], **settings), *each)
            for i, each in inputs.items()
        }


def _tree(join: Function, keys: Sequence[Any]) -> tuple[Graph, Any]:
    """Return tasks that put results together, and the key of the last one.

    They depend on nothing but the number of results: sums round alike every time.
    """
    name = f"{join.__name__.strip('_')}-{uuid4().hex}"
    graph: Graph = {}
    while True:
        level = []
        for i in range(0, len(keys), _FAN_IN):
            level.append((name, len(graph)))
            graph[level[-1]] = (join, list(keys[i : i + _FAN_IN]))
        if len(level) == 1:
            return graph, level[0]
        keys = level


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
        return self._sums("moments", frame=frame) or no_moments(self.n_features)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        sums = self._sums(
            "label_sums", rule=rule, frame=frame, centers=centers, near=near
        )
        return sums or no_label_sums(rule.n_classes, self.n_features)

    def _sums(self, method: str, **arguments: Any) -> Any:
        """Return the sum of a method of the rows of all blocks; None without rows."""
        if not self._inputs:
            return None
        settings = {
            "method": method,
            "n_threads": self._n_threads,
            "unit": self.unit,
            **arguments,
        }
        return self._blocks.run(_sum_block, sum_in_order, self._inputs, **settings)

    @cached_property
    def _inputs(self) -> Inputs:
        """Blocks that hold members, each with weights and membership of its rows."""
        weights, is_member = self._weights, self._is_member
        spans = {
            i: slice(begin, end)
            for i, (begin, end) in enumerate(pairwise(self._blocks.offsets.tolist()))
            if begin < end and (is_member is None or is_member[begin:end].any())
        }
        chosen: list[Any] = [None] * len(spans)
        if weights is not None or is_member is not None:
            name = f"chosen-{uuid4().hex}"
            arrays = (weights, is_member)
            graph = {
                (name, i): [None if a is None else a[span] for a in arrays]
                for i, span in spans.items()
            }
            chosen = self._blocks.workers.keep(graph, list(graph))
        return {
            i: (self._blocks.inputs[i], one)
            for i, one in zip(spans, chosen, strict=True)
        }

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        if self.n_rows == 0:
            return np.zeros((0, self.n_features)), np.zeros(0, dtype=np.int64)
        chosen, offsets = self._random_members(n, seed), self._blocks.offsets
        cuts = pairwise(np.searchsorted(chosen, offsets).tolist())
        by_block = {
            i: chosen[low:high] for i, (low, high) in enumerate(cuts) if low < high
        }
        drawn: list[Drawn] = []
        if self._blocks.held and n < self.n_rows:
            drawn = [self._held_of(i, len(index)) for i, index in by_block.items()]
        if sum(len(rows) for _, rows in drawn) < len(chosen):
            blocks = self._blocks.inputs
            inputs = {
                i: (blocks[i], index - offsets[i]) for i, index in by_block.items()
            }
            drawn = self._blocks.run(_take, _join_lists, inputs)
        index, rows = zip(*drawn, strict=True)
        return np.concatenate(rows), np.concatenate(index)

    def _held_of(self, i: int, n: int) -> Drawn:
        """Return ``n`` members among the rows held of a block, or as many as there are."""
        positions, rows = self._blocks.held[i]
        index = self._blocks.offsets[i] + positions
        kept = np.arange(len(index))
        if self._is_member is not None:
            kept = np.flatnonzero(self._is_member[index])
        kept = kept[:n][np.argsort(index[kept[:n]])]
        return index[kept], rows[kept]
