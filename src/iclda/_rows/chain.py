"""Several sources of rows as one: their sums added up in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core.frame import Frame
from .._core.labelsums import LabelSums, Rule, no_label_sums, scaled
from .._core.moments import Moments, no_moments
from .._core.rows import Rows
from .._core.types import AnyArray, Array


class ChainedRows:
    """The rows of the first part, then those of the second, and so on; all weights x ``factor``."""

    def __init__(self, parts: Sequence[Rows], n_features: int, factor: float = 1.0) -> None:
        self._parts = [part for part in parts if part.n_rows > 0]
        self._n_features = n_features
        self._factor = factor

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def n_features(self) -> int:
        return self._n_features

    def moments(self, frame: Frame) -> Moments:
        none = no_moments(self._n_features)
        return sum((part.moments(frame) for part in self._parts), none).scaled(self._factor)

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        curvature: int | AnyArray = 0,
    ) -> LabelSums:
        total = no_label_sums(rule.n_classes, self._n_features)
        for part in self._parts:
            total = total + part.label_sums(rule, frame, centers, curvature=curvature)
        return scaled(total, self._factor)

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        share = min(1.0, n / max(1, self.n_rows))
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
        shares = [part.responsibilities(rule, frame) for part in self._parts]
        return np.concatenate(shares) if shares else np.zeros((0, rule.n_classes))
