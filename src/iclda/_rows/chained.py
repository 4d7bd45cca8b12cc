"""Rows of several sources as one: labeled and unlabeled rows, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    Rule,
    StackedRules,
    no_label_sums,
    scaled,
)
from .._core.moments import Moments, no_moments
from .._core.rows import Near, Rows
from .progress import report_as
from .threads import Result


class ChainedRows:
    """The rows of several parts, in order; their weights are times ``factor``.

    Passes over all parts are counted here.
    """

    def __init__(
        self, parts: Sequence[Rows], n_features: int, factor: float = 1.0
    ) -> None:
        # A part without rows would be read, and reported, for nothing.
        self._parts = [part for part in parts if part.n_rows > 0]
        self.n_features = n_features
        self._factor = factor
        self._n_passes = 0

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def held_at(self) -> Any:
        # Parts may be on different devices: a search then holds their rows in memory.
        return self._parts[0].held_at if len(self._parts) == 1 else None

    def moments(self, frame: Frame) -> Moments:
        parts = self._pass(lambda part: part.moments(frame))
        total = sum(parts, no_moments(self.n_features))
        return total.scaled(self._factor)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        parts = self._pass(
            lambda part: part.label_sums(
                rule, frame, centers, near=near, with_overlaps=with_overlaps
            )
        )
        of_no_rows = no_label_sums(rule.n_classes, self.n_features)
        total = sum(parts, of_no_rows)
        return scaled(total, self._factor)

    def placed_label_sums(self, rules: StackedRules, frame: Frame) -> tuple[Any, Any]:
        if len(self._parts) != 1:
            sums = self.label_sums(rules, frame)
            return sums.counts, sums.sums
        [(counts, sums)] = self._pass(lambda part: part.placed_label_sums(rules, frame))
        return counts * self._factor, sums * self._factor

    def _pass(self, of_part: Callable[[Rows], Result]) -> list[Result]:
        """Return a result of every part, in their order: one pass over all rows."""
        self._n_passes += 1
        with report_as(self._n_passes):
            return [of_part(part) for part in self._parts]

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        # Each part gives the same share of its rows.
        share = min(1.0, n / max(1, self.n_rows))
        drawn_rows = []
        drawn_weights = []
        # Only the first sample is reported: it may take long.
        is_first = self._n_passes == 0
        with nullcontext() if is_first else report_as(None):
            for i, part in enumerate(self._parts):
                n_of_part = max(1, round(share * part.n_rows))
                # With one seed, parts of one length would give rows of the same
                # indices.
                rows, weights = part.sample(n_of_part, seed + i)
                drawn_rows.append(rows)
                drawn_weights.append(weights)
        if not drawn_rows:
            return np.zeros((0, self.n_features)), np.zeros(0)
        weights = self._factor * np.concatenate(drawn_weights)
        if len(drawn_rows) == 1:
            # The rows of a single part are not copied.
            return drawn_rows[0], weights
        return np.concatenate(drawn_rows), weights

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        # This pass comes after the fit, and is not one of those that it counts.
        with report_as(None):
            shares = [part.responsibilities(rule, frame) for part in self._parts]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))
