"""Rows on the workers: a source whose blocks were looked at, and passes as graphs of tasks."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, Rule, no_label_sums
from ..._core.moments import Moments, no_moments
from ..._core.types import AnyArray, Array
from ..base import BadRowsError, WeightedRows, added
from ..progress import report
from .blocks import (
    Chosen,
    Drawn,
    Known,
    Look,
    array_of,
    drawn_together,
    listed,
    loaded,
    look,
    looks_of,
    looks_together,
    rows_of,
    shared,
    sums_of,
    taken,
    taken_from_held,
    unpacked,
)
from .source import Blocks, DaskSource
from .workers import Graph, Workers

_FAN_IN = 8  # results that one task puts together
# Rows kept of blocks that are not kept themselves: several times a sample, of all blocks together.
_HELD_ROWS = 100_000
_LEAST_HELD = 256
_MANY_BLOCKS, _SMALL_BLOCK = 256, 4_000_000  # more, and smaller ones on average, are slow
_LOST = ("cancelled", "error", "lost")  # status of what a worker does not have


@dataclass(frozen=True)
class Step:
    """What every block of a pass is put through, and how results are put together, in order."""

    function: Callable[..., Any]
    together: Callable[[Sequence[Any]], Any] = listed
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Opened:
    """The workers keep blocks, or some rows of each, as long as this lives."""

    found: Blocks
    workers: Workers
    known: list[Known]
    looked: list[Any]
    n_held: int  # rows of every block that ``looked`` holds; 0: the blocks are kept

    @property
    def n_features(self) -> int:
        assert self.found.n_features is not None
        return self.found.n_features

    @cached_property
    def offsets(self) -> AnyArray:
        """Number of the first row of every block, then the number of all rows."""
        return np.array([*(one.begin for one in self.known), sum(_counts(self.known))])

    def run(
        self,
        step: Step,
        inputs: Mapping[int, Sequence[Any]],
        own: Mapping[int, dict[str, Any]] | None = None,
    ) -> Any:
        """One pass: inputs, and settings beside those of the step, by number of the block."""
        return _run(self.workers, self.found, step, inputs, own, self.known)

    def is_alive(self, workers: Workers) -> bool:
        """Whether these workers still have what they were to keep."""
        kept = [*self.found.inputs, *self.looked]
        is_lost = any(getattr(one, "status", None) in _LOST for one in kept)
        return self.workers.client is workers.client and not is_lost


def open_blocks(found: Blocks, workers: Workers, name: str, persist: bool | None) -> Opened:
    """Read every block once, and have the workers keep it if there is room."""
    n_blocks = len(found.inputs)
    known = [Known(name, i, found.n_features, names=found.expected) for i in range(n_blocks)]
    is_kept = found.is_kept or bool(persist)
    if persist is None and found.n_bytes is not None and not is_kept:
        is_kept = workers.has_room(found.n_bytes)
    n_held = 0 if is_kept else max(_LEAST_HELD, _HELD_ROWS // n_blocks)
    with _naming_columns(found):
        found, looked = _first_read(found, workers, known, n_held)
    seen = {i: (one,) for i, one in enumerate(looked)}
    looks, names = _run(workers, found, Step(looks_of, looks_together), seen, None, known)
    _warn_of_small_blocks(looks, name)
    found = replace(found, n_features=_check_alike(looks, known, name))
    if all(one.names is not None or one.n_rows == 0 for one in looks):
        found = replace(found, feature_names=names or found.feature_names or found.expected)
    begins = [0, *accumulate(one.n_rows for one in looks[:-1])]
    known = [
        Known(name, i, found.n_features, one.n_rows, begin)
        for i, (one, begin) in enumerate(zip(looks, begins, strict=True))
    ]
    is_open = persist is None and found.n_bytes is None and not found.is_kept
    if is_open and workers.has_room(sum(one.n_bytes for one in looks)):
        found, n_held = _kept(found, workers, known), 0
    return Opened(found, workers, known, looked, n_held)


def _first_read(
    found: Blocks, workers: Workers, known: Sequence[Known], n_held: int
) -> tuple[Blocks, list[Any]]:
    """The same blocks, kept unless rows of each are to be held; and what was seen in each."""
    read: Graph = {}
    inputs = _whole(found)
    if n_held == 0 and not found.is_array:
        # A table is made once, to be looked at for its names, and an array of it to be kept.
        read = _tasks(Step(loaded), inputs, None, known)
        inputs = {i: (key,) for i, key in enumerate(read)}
    looks = _tasks(Step(look, settings={"n_held": n_held}), inputs, None, known)
    if n_held > 0 or found.is_kept:
        return found, workers.keep({**found.graph, **looks}, list(looks))
    arrays = _tasks(Step(array_of), inputs, None, known) if read else {}
    graph = {**found.graph, **read, **arrays, **looks}
    kept = workers.keep(graph, [*(arrays or found.inputs), *looks])
    n_blocks = len(found.inputs)
    return replace(found, inputs=kept[:n_blocks], graph={}, is_kept=True), kept[n_blocks:]


def _kept(found: Blocks, workers: Workers, known: Sequence[Known]) -> Blocks:
    """The same blocks, as arrays that are made once."""
    keys, graph = found.inputs, found.graph
    if not found.is_array:
        tasks = _tasks(Step(rows_of), _whole(found), None, known)
        keys, graph = list(tasks), {**graph, **tasks}
    return replace(found, inputs=workers.keep(graph, keys), graph={}, is_kept=True)


def _whole(found: Blocks) -> dict[int, Sequence[Any]]:
    return {i: (block,) for i, block in enumerate(found.inputs)}


def _warn_of_small_blocks(looks: Sequence[Look], name: str) -> None:
    n_bytes = sum(one.n_bytes for one in looks) / len(looks)
    if len(looks) > _MANY_BLOCKS and n_bytes < _SMALL_BLOCK:
        warnings.warn(
            f"{name} comes in {len(looks)} blocks of {n_bytes / 1e6:.2g} MB on average, and every "
            "block costs about a millisecond a pass, whatever its size: larger ones, of 100 MB or "
            f"more, are faster ({name}.rechunk of an array, {name}.repartition of a dataframe).",
            UserWarning,
            stacklevel=2,
        )


def _check_alike(looks: Sequence[Look], known: Sequence[Known], name: str) -> int:
    """Number of features, the same in all blocks; ValueError that names the one that differs."""
    filled = [i for i, one in enumerate(looks) if one.n_rows > 0]
    if not filled:
        if known[0].n_features is None:
            raise ValueError(f"{name} has no rows in any of its {len(looks)} blocks.")
        return known[0].n_features
    first = looks[filled[0]]
    for i in filled:
        one = looks[i]
        if (one.n_features, one.dtype) != (first.n_features, first.dtype):
            raise ValueError(
                f"{known[i].label} has {one.n_features} columns of {np.dtype(one.dtype)}, and "
                f"block {filled[0]} has {first.n_features} of {np.dtype(first.dtype)}: give all "
                "blocks the same columns and dtype."
            )
        if one.names != first.names and None not in (one.names, first.names):
            raise ValueError(
                f"The columns of {known[i].label} have other names, or another order, than those "
                f"of block {filled[0]}: give all blocks the same columns in the same order."
            )
    return first.n_features


def _run(
    workers: Workers,
    found: Blocks,
    step: Step,
    inputs: Mapping[int, Sequence[Any]],
    own: Mapping[int, dict[str, Any]] | None,
    known: Sequence[Known],
) -> Any:
    tasks = _tasks(step, inputs, own, known)
    keys, numbers = list(tasks), list(inputs)
    tree, total = _tree(step, keys)
    counts = _counts([known[i] for i in numbers])
    n_done = 0

    def on_done(k: int) -> None:
        nonlocal n_done
        n_done += counts[k]
        report(n_done, sum(counts) or None)

    graph = {**found.graph, **tasks, **tree}
    with _naming_columns(found):
        return workers.run(graph, keys, total, lambda k: known[numbers[k]].label, on_done)


@contextmanager
def _naming_columns(found: Blocks) -> Iterator[None]:
    try:
        yield
    except BadRowsError as error:
        raise error.with_names(found.feature_names) from None


def _tasks(
    step: Step,
    inputs: Mapping[int, Sequence[Any]],
    own: Mapping[int, dict[str, Any]] | None,
    known: Sequence[Known],
) -> Graph:
    """A task for every block. Settings are packed: those of all blocks only once."""
    name = f"{step.function.__name__}-{uuid4().hex}"
    common = pickle.dumps(step.settings)
    graph = {}
    for i, values in inputs.items():
        settings = {"known": known[i], **(own[i] if own is not None else {})}
        graph[name, i] = (unpacked, step.function, common, pickle.dumps(settings), *values)
    return graph


def _tree(step: Step, keys: Sequence[Any]) -> tuple[Graph, Any]:
    """Tasks that put results together, and the key of the last one.

    They depend on nothing but the number of results: sums round alike every time.
    """
    name = f"{step.together.__name__}-{uuid4().hex}"
    graph: Graph = {}
    while True:
        level = []
        for i in range(0, len(keys), _FAN_IN):
            level.append((name, len(graph)))
            graph[level[-1]] = (step.together, list(keys[i : i + _FAN_IN]))
        if len(level) == 1:
            return graph, level[0]
        keys = level


def _counts(known: Sequence[Known]) -> list[int]:
    return [one.n_rows or 0 for one in known]


class DaskRows(WeightedRows):
    """All rows of a source, or those that ``is_member`` marks."""

    source: DaskSource  # what to open to find the blocks as they are now

    def __init__(
        self, opened: Opened, weights: Array | None, is_member: AnyArray | None, n_threads: int
    ) -> None:
        super().__init__(int(opened.offsets[-1]), weights, is_member)
        self._opened = opened
        self._n_threads = n_threads

    @property
    def n_features(self) -> int:
        return self._opened.n_features

    @property
    def feature_names(self) -> Sequence[str] | None:
        return self._opened.found.feature_names

    def moments(self, frame: Frame) -> Moments:
        if not self._inputs:
            return no_moments(self.n_features)
        found: Moments = self._sums({"frame": frame})
        return found

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        if not self._inputs:
            return no_label_sums(rule.n_classes, self.n_features)
        found: LabelSums = self._sums(
            {"rule": rule, "frame": frame, "centers": centers, "curvature": curvature}
        )
        return found

    def _sums(self, arguments: dict[str, Any]) -> Any:
        step = Step(sums_of, added, {"n_threads": self._n_threads, "arguments": arguments})
        return self._opened.run(step, self._inputs)

    def _drawn(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        if self.n_rows == 0:
            return np.zeros((0, self.n_features)), np.zeros(0, dtype=np.int64)
        index = self._random_members(n, seed)
        is_held = self._opened.n_held > 0 and n < self.n_rows
        numbers, rows = self._taken_from_held(index) if is_held else self._taken(index)
        return rows, numbers

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        if self.n_rows == 0:
            return np.zeros((0, rule.n_classes))
        step = Step(shared, listed, {"arguments": {"rule": rule, "frame": frame}})
        return np.concatenate(self._opened.run(step, self._inputs))

    def _taken(self, index: AnyArray) -> Drawn:
        """The rows with these numbers."""
        cuts = np.searchsorted(index, self._opened.offsets).tolist()
        own = {
            i: {"positions": index[begin:end] - self._opened.offsets[i]}
            for i, (begin, end) in enumerate(pairwise(cuts))
            if begin < end
        }
        blocks = {i: (self._opened.found.inputs[i],) for i in own}
        drawn: Drawn = self._opened.run(Step(taken, drawn_together), blocks, own)
        return drawn

    def _taken_from_held(self, index: AnyArray) -> Drawn:
        """As many rows of every block as these are, without a read of the blocks."""
        counts = np.diff(np.searchsorted(index, self._opened.offsets))
        if counts.max() > self._opened.n_held:
            return self._taken(index)
        own = {i: {"n": counts[i]} for i in np.flatnonzero(counts).tolist()}
        held = {i: (self._opened.looked[i], self._chosen[i]) for i in own}
        numbers, rows = self._opened.run(Step(taken_from_held, drawn_together), held, own)
        # Few of the rows held are members where few of all rows are.
        return (numbers, rows) if len(rows) == len(index) else self._taken(index)

    @cached_property
    def _inputs(self) -> dict[int, Sequence[Any]]:
        """Blocks with rows that count, each with weights and membership of its rows."""
        blocks, offsets = self._opened.found.inputs, self._opened.offsets
        return {
            i: (blocks[i], self._chosen[i])
            for i, (begin, end) in enumerate(pairwise(offsets))
            if begin < end and (self._is_member is None or self._is_member[begin:end].any())
        }

    @cached_property
    def _chosen(self) -> list[Any]:
        """Weights and membership of the rows of every block, on the workers."""
        spans = list(pairwise(self._opened.offsets.tolist()))
        if self._weights is None and self._is_member is None:
            return [None] * len(spans)
        name = f"chosen-{uuid4().hex}"
        graph = {}
        for i, (begin, end) in enumerate(spans):
            weights = None if self._weights is None else self._weights[begin:end]
            is_member = None if self._is_member is None else self._is_member[begin:end]
            bits = None if is_member is None else np.packbits(is_member)
            graph[name, i] = (Chosen, weights, bits, end - begin)
        return self._opened.workers.keep(graph, list(graph))
