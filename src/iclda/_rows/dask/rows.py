"""Rows on the workers: what the core asks for, as passes over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, Rule, no_label_sums
from ..._core.moments import Moments, no_moments
from ..._core.types import AnyArray, Array
from ..base import WeightedRows, added
from .opened import Opened, Step
from .source import DaskSource
from .tasks import (
    Chosen,
    Drawn,
    drawn_together,
    listed,
    shared,
    sums_of,
    taken,
    taken_from_held,
)


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
