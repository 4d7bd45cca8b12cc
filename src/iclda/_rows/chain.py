"""Several sources of rows as one: their sums added up in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeVar

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import LabelSums, Rule, no_label_sums, scaled
from .._core.moments import Moments, no_moments
from .._core.problem import Rows
from .._core.types import AnyArray, Array
from .progress import Part, reading

Result = TypeVar("Result")


class ChainedRows:
    """The rows of the first part, then those of the second, and so on; all weights x ``factor``.

    Passes are counted here, and reported as passes over all parts.
    """

    def __init__(self, parts: Sequence[Rows], n_features: int, factor: float = 1.0) -> None:
        self._parts = [part for part in parts if part.n_rows > 0]
        self._n_features = n_features
        self._factor = factor
        self._n_passes = 0
        self._n_read: list[int | None] = [None] * len(self._parts)  # rows of each, once read

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def n_features(self) -> int:
        return self._n_features

    def moments(self, frame: Frame) -> Moments:
        found = self._pass(lambda part: part.moments(frame))
        return sum(found, no_moments(self._n_features)).scaled(self._factor)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        total = no_label_sums(rule.n_classes, self._n_features)
        for sums in self._pass(
            lambda part: part.label_sums(rule, frame, centers, curvature=curvature)
        ):
            total = total + sums
        return scaled(total, self._factor)

    def _pass(self, of_part: Callable[[Rows], Result]) -> list[Result]:
        """One pass over all rows: a result of every part, in their order."""
        self._n_passes += 1
        found = []
        for i, part in enumerate(self._parts):
            before, after = self._n_read[:i], self._n_read[i + 1 :]
            n_after = None if None in after else sum(n or 0 for n in after)
            part_of_pass = Part(self._n_passes, sum(n or 0 for n in before), n_after)
            with reading(part_of_pass):
                found.append(of_part(part))
            self._n_read[i] = part_of_pass.n_done
        return found

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        share = min(1.0, n / max(1, self.n_rows))
        # Between passes samples are not reported; the first one may take long.
        with reading(Part(None)) if self._n_passes else nullcontext():
            drawn = [
                part.sample(max(1, round(share * part.n_rows)), seed + i)
                for i, part in enumerate(self._parts)
            ]
        if not drawn:
            return np.zeros((0, self._n_features)), np.zeros(0)
        if len(drawn) == 1:
            return drawn[0][0], self._factor * drawn[0][1]
        rows = np.concatenate([rows for rows, _ in drawn])
        return rows, self._factor * np.concatenate([weights for _, weights in drawn])

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        with reading(Part(None)):
            shares = [part.responsibilities(rule, frame) for part in self._parts]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))
