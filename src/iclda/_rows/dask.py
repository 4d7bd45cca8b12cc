"""Rows on the workers of a Dask cluster: sums are formed and added up where the rows are.

A pass is one graph: a task for every block, then a tree of sums in the order of the blocks. The
result therefore does not depend on which worker did what, or how often. Only the total comes back.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

try:
    import dask
    from dask.core import flatten
    from dask.delayed import Delayed, delayed
except ImportError as error:
    raise ImportError(
        "Dask reads these rows, and is not installed: pip install 'iclda[dask]'."
    ) from error

from .._core.boundary import Near
from .._core.frame import Frame
from .._core.labelsums import LabelSums, Rule, no_label_sums
from .._core.moments import Moments, no_moments
from .._core.types import AnyArray, Array
from . import dask_workers as worker
from .base import Request, WeightedRows, check_names, names_of_table
from .dask_workers import BlockInfo, Drawn, Graph, Look, Workers
from .memory import sum_in_order

_FAN_IN = 8  # results that one task puts together
# Rows held in memory of blocks that workers do not keep: twice a sample, of all blocks together.
_HELD_ROWS = 40_000
_LEAST_HELD = 256
_LOST = ("cancelled", "error", "lost")  # status of what a worker does not have

Inputs = Mapping[int, Sequence[Any]]  # of tasks, by index of the block


@dataclass(eq=False, repr=False)
class DaskSource:
    """A Dask collection or a list of loaders, with settings: see ``iclda.rows.from_dask``."""

    _iclda_backend: ClassVar[str] = "dask"
    source: Any
    client: Any = None
    persist: bool | None = None
    retries: int = 2
    timeout: float | None = 600.0
    blocks: DaskBlocks | None = None  # once looked at, as long as this lives

    def __post_init__(self) -> None:
        if isinstance(self.source, tuple):
            self.source = list(self.source)
        if _collection_kind(self.source, "source") == "loaders" and not self.source:
            raise ValueError("source is an empty list: pass one loader for every block of rows.")
        if self.client is not None and not hasattr(self.client, "asynchronous"):
            raise TypeError(
                f"client must be a distributed.Client, or None, got {type(self.client).__name__}: "
                "pass distributed.Client(address)."
            )


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> DaskRows:
    """Return rows of a Dask array or dataframe, or of loaders, whose blocks are read at first."""
    if not isinstance(X, DaskSource):
        _collection_kind(X, request.name)
        X = DaskSource(X)
    workers = worker.workers_of(X.client, X.retries, X.timeout)
    if X.blocks is None or not X.blocks.is_held_by(workers):
        X.blocks = _open_blocks(X.source, request, workers, X.persist)
    _check_features(X.blocks.n_features, X.blocks.feature_names, request)
    rows = DaskRows(X.blocks, weights, is_member, request.n_threads)
    rows.source = X
    return rows


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> Any:
    """A Dask array of results, not computed."""
    rows = _array_of(X.source if isinstance(X, DaskSource) else X, request)
    none = np.asarray(function(np.zeros((1, rows.shape[1]))))[:0]
    shape: dict[str, Any] = {"drop_axis": 1, "chunks": (rows.chunks[0],)}
    if none.ndim == 2:
        shape = {"chunks": (rows.chunks[0], (none.shape[1],))}
    info = BlockInfo(request.name, 0, request.n_features)
    task = partial(worker.apply_to_block, info=info, function=function, none=none)
    return rows.map_blocks(task, dtype=none.dtype, meta=none, **shape)


# What the user passes.


def _collection_kind(source: Any, name: str) -> str:
    """Array, dataframe or loaders; TypeError for anything else, with what it must be."""
    if isinstance(source, list):
        return "loaders"
    if not isinstance(source, Delayed) and hasattr(source, "to_delayed"):
        if hasattr(source, "rechunk"):
            return "array"
        if hasattr(source, "columns") and source.ndim == 2:
            return "dataframe"
    raise TypeError(
        f"{name} must be a Dask array, a Dask dataframe, or iclda.rows.from_dask of one of them or "
        f"of a list of loaders, got {type(source).__name__}. Rows in memory are passed to a "
        "classifier as they are; dask.array.from_array cuts them into blocks for a cluster."
    )


def _check_collection(source: Any, kind: str, request: Request) -> tuple[Any, list[str] | None]:
    """Return an array or dataframe in blocks of whole rows, and the names of its columns."""
    if source.ndim != 2:
        raise ValueError(f"{request.name} must be 2-d, rows x features, got shape {source.shape}.")
    names = None if kind == "array" else names_of_table(source)
    _check_features(source.shape[1], names, request)
    is_cut = kind == "array" and len(source.chunks[1]) > 1
    return source.rechunk({1: -1}) if is_cut else source, names


def _check_features(n_features: int, names: Sequence[str] | None, request: Request) -> None:
    request.check_width(n_features)
    if names is not None and request.feature_names is not None:
        way_out = f"Pass {request.name}[feature_names_in_]."
        check_names(names, request.feature_names, request.name, way_out)


def _array_of(source: Any, request: Request) -> Any:
    """Return a Dask array of the rows, not read."""
    import dask.array

    kind, n_features = _collection_kind(source, request.name), request.n_features
    assert n_features is not None
    if kind != "loaders":
        source, _ = _check_collection(source, kind, request)
    if kind == "array":
        return source
    parts = []
    names = request.feature_names if kind == "loaders" else None
    for i, block in enumerate(source if kind == "loaders" else source.to_delayed()):
        info = BlockInfo(request.name, i, n_features, names=names)
        task = partial(worker.rows_of, info=info)
        is_delayed = isinstance(block, Delayed)
        rows = delayed(task)(block) if is_delayed else delayed(partial(task, block))()
        shape = (np.nan, n_features)
        parts.append(dask.array.from_delayed(rows, shape, meta=np.empty((0, n_features))))
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


# Blocks.


def _open_blocks(
    source: Any, request: Request, workers: Workers, persist: bool | None
) -> DaskBlocks:
    """Read every block once, and have the workers keep it if there is room."""
    kind, n_bytes, names = _collection_kind(source, request.name), None, None
    n_features = request.n_features
    if kind != "loaders":
        source, names = _check_collection(source, kind, request)
        n_features = source.shape[1]
    if kind == "array" and not np.isnan(source.shape[0]):
        n_bytes = float(source.nbytes)
    inputs, graph, is_kept = _inputs_of(source, kind, workers)
    infos = [BlockInfo(request.name, i, n_features) for i in range(len(inputs))]
    blocks = DaskBlocks(workers, inputs, graph, infos, is_kept, names)
    is_open = persist is None and not is_kept
    if persist or (is_open and n_bytes is not None and workers.has_room(n_bytes)):
        blocks.keep()
    blocks.look()
    if is_open and n_bytes is None and workers.has_room(blocks.n_bytes):
        blocks.keep()
    return blocks


def _inputs_of(source: Any, kind: str, workers: Workers) -> tuple[list[Any], Graph, bool]:
    """Return what gives each block, the graph it belongs to, and whether the workers have it."""
    if kind == "loaders":
        graphs = [dict(one.__dask_graph__()) for one in source if isinstance(one, Delayed)]
        graph = {key: task for part in graphs for key, task in part.items()}
        pack = _pickled if workers.client is not None else lambda loader: loader
        return [one.key if isinstance(one, Delayed) else pack(one) for one in source], graph, False
    if kind == "array" and "distributed" in sys.modules:
        graph = source.__dask_graph__()
        blocks = [graph.get(key) for key in flatten(source.__dask_keys__())]
        if all(isinstance(one, sys.modules["distributed"].Future) for one in blocks):
            return blocks, {}, True  # the user has persisted them
    # For a dataframe with operations on it, dask.optimize returns keys of other rows.
    best = source.optimize() if hasattr(source, "optimize") else dask.optimize(source)[0]
    return list(flatten(best.__dask_keys__())), dict(best.__dask_graph__()), False


def _pickled(loader: Callable[[], Any]) -> worker.PickledLoader:
    import cloudpickle  # as Dask does

    return worker.PickledLoader(cloudpickle.dumps(loader))


@dataclass(eq=False)
class DaskBlocks:
    """Blocks of a source. The workers keep them, or some rows of each, as long as this lives.

    An input is a key of ``graph``, a loader, which is called where the task runs, a block, or the
    future of one.
    """

    workers: Workers
    inputs: list[Any]
    graph: Graph
    infos: list[BlockInfo]
    is_kept: bool  # the inputs are futures of the workers
    feature_names: Sequence[str] | None = None
    held: list[Drawn] = field(default_factory=list)  # rows of each block, if it is not kept
    n_bytes: float = 0.0

    @property
    def n_features(self) -> int:
        n_features = self.infos[0].n_features
        assert n_features is not None
        return n_features

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
        if self.is_kept:
            return
        blocks = {i: (block,) for i, block in enumerate(self.inputs)}
        tasks = self._tasks(worker.keep_block, blocks)
        self.inputs = self.workers.keep({**self.graph, **tasks}, list(tasks))
        self.graph, self.is_kept, self.held = {}, True, []

    def look(self) -> None:
        """Read all blocks once; hold some of their rows here if the workers do not keep them."""
        n_held = 0 if self.is_kept else max(_LEAST_HELD, _HELD_ROWS // len(self.inputs))
        blocks = {i: (block,) for i, block in enumerate(self.inputs)}
        looks: list[Look] = self.run(worker.look, worker.join_lists, blocks, n_held=n_held)
        self.held = [] if self.is_kept else [one.held for one in looks]
        self.n_bytes = sum(one.n_bytes for one in looks)
        self._describe(looks)

    def _describe(self, looks: Sequence[Look]) -> None:
        """Note size and columns of the blocks; ValueError for one that differs from the first."""
        filled = [i for i, one in enumerate(looks) if one.n_rows > 0]
        n_features = self.infos[0].n_features
        if not filled and n_features is None:
            info = self.infos[0]
            raise ValueError(f"{info.name} has no rows in any of its {len(looks)} blocks.")
        for i in filled:
            one, first, label = looks[i], looks[filled[0]], self.infos[i].label
            is_named = None not in (one.names, first.names)
            if one.n_features != first.n_features or (is_named and one.names != first.names):
                raise ValueError(
                    f"The columns of {label} differ from those of block {filled[0]} in number, "
                    "names or order: give all blocks the same columns in the same order."
                )
            n_features = first.n_features
        if filled and all(looks[i].names is not None for i in filled):
            self.feature_names = looks[filled[0]].names
        begins = accumulate((one.n_rows for one in looks), initial=0)
        self.infos = [
            replace(info, n_features=n_features, n_rows=one.n_rows, begin=begin)
            for info, one, begin in zip(self.infos, looks, begins, strict=False)
        ]

    def run(
        self,
        function: Callable[..., Any],
        join: Callable[[Sequence[Any]], Any],
        inputs: Inputs,
        **settings: Any,
    ) -> Any:
        """Run a pass: a task for every block, then results put together in their order."""
        tasks = self._tasks(function, inputs, **settings)
        tree, total = _tree(join, list(tasks))
        infos = dict(zip(tasks, (self.infos[i] for i in inputs), strict=True))
        return self.workers.run({**self.graph, **tasks, **tree}, infos, total)

    def _tasks(self, function: Callable[..., Any], inputs: Inputs, **settings: Any) -> Graph:
        name = f"{function.__name__}-{uuid4().hex}"
        common = pickle.dumps(settings)  # once for all blocks
        return {
            (name, i): (worker.call_unpickled, function, common, pickle.dumps(self.infos[i]), *each)
            for i, each in inputs.items()
        }


def _tree(join: Callable[[Sequence[Any]], Any], keys: Sequence[Any]) -> tuple[Graph, Any]:
    """Return tasks that put results together, and the key of the last one.

    They depend on nothing but the number of results: sums round alike every time.
    """
    name = f"{join.__name__}-{uuid4().hex}"
    graph: Graph = {}
    while True:
        level = []
        for i in range(0, len(keys), _FAN_IN):
            level.append((name, len(graph)))
            graph[level[-1]] = (join, list(keys[i : i + _FAN_IN]))
        if len(level) == 1:
            return graph, level[0]
        keys = level


# Rows.


class DaskRows(WeightedRows):
    """All rows of a source, or those that ``is_member`` marks."""

    def __init__(
        self, blocks: DaskBlocks, weights: Array | None, is_member: AnyArray | None, n_threads: int
    ) -> None:
        super().__init__(int(blocks.offsets[-1]), blocks.n_features, weights, is_member)
        self.feature_names = blocks.feature_names
        self._blocks = blocks
        self._n_threads = n_threads

    def moments(self, frame: Frame) -> Moments:
        sums: Moments | None = self._sums("moments", frame=frame)
        return no_moments(self.n_features) if sums is None else sums

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        arguments = {"rule": rule, "frame": frame, "centers": centers, "near": near}
        sums: LabelSums | None = self._sums("label_sums", **arguments)
        return no_label_sums(rule.n_classes, self.n_features) if sums is None else sums

    def _sums(self, method: str, **arguments: Any) -> Any:
        """Sum of the results of a method of the rows of all blocks; None without rows."""
        if not self._inputs:
            return None
        settings = {"method": method, "arguments": arguments, "n_threads": self._n_threads}
        return self._blocks.run(worker.sums_of, sum_in_order, self._inputs, **settings)

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        if self.n_rows == 0:
            return np.zeros((0, self.n_features)), np.zeros(0, dtype=np.int64)
        chosen = self._random_members(n, seed)
        drawn = self._take_held(chosen) if self._blocks.held and n < self.n_rows else []
        if sum(len(rows) for _, rows in drawn) < len(chosen):
            drawn = self._take(chosen)
        index, rows = zip(*drawn, strict=True)
        return np.concatenate(rows), np.concatenate(index)

    def _take(self, index: AnyArray) -> list[Drawn]:
        """Return the rows with these indices, of each block."""
        offsets, blocks = self._blocks.offsets, self._blocks.inputs
        inputs = {
            i: (blocks[i], index[begin:end] - offsets[i])
            for i, (begin, end) in enumerate(pairwise(np.searchsorted(index, offsets).tolist()))
            if begin < end
        }
        drawn: list[Drawn] = self._blocks.run(worker.take, worker.join_lists, inputs)
        return drawn

    def _take_held(self, index: AnyArray) -> list[Drawn]:
        """Return as many rows of every block as these are, or fewer, without reading it.

        Few of the rows held are members where few of all rows are.
        """
        offsets, drawn = self._blocks.offsets, []
        counts = np.diff(np.searchsorted(index, offsets)).tolist()
        for begin, n, (positions, rows) in zip(offsets, counts, self._blocks.held, strict=False):
            if n == 0:  # an empty block may have no columns
                continue
            of_block = begin + positions
            kept = np.arange(len(rows))
            if self._is_member is not None:
                kept = np.flatnonzero(self._is_member[of_block])
            kept = kept[:n][np.argsort(of_block[kept[:n]])]
            drawn.append((of_block[kept], rows[kept]))
        return drawn

    @cached_property
    def _inputs(self) -> dict[int, Sequence[Any]]:
        """Blocks that hold members, each with weights and membership of its rows."""
        return {
            i: (self._blocks.inputs[i], self._chosen[i])
            for i, (begin, end) in enumerate(pairwise(self._blocks.offsets))
            if begin < end and (self._is_member is None or self._is_member[begin:end].any())
        }

    @cached_property
    def _chosen(self) -> list[Any]:
        """Weights and membership of the rows of every block, on the workers."""
        spans = [slice(*span) for span in pairwise(self._blocks.offsets.tolist())]
        if self._weights is None and self._is_member is None:
            return [None] * len(spans)
        name, arrays = f"chosen-{uuid4().hex}", (self._weights, self._is_member)
        graph = {
            (name, i): (worker.keep_chosen, *(None if one is None else one[span] for one in arrays))
            for i, span in enumerate(spans)
        }
        chosen: list[Any] = self._blocks.workers.keep(graph, list(graph))
        return chosen
