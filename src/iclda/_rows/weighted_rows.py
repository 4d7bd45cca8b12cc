"""The base class of the rows of every backend: members, weights and samples."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import Rule
from .._core.rows import Rows
from .backends import Members, UnitLength, Weights


class WeightedRows(Rows):
    """Rows with membership and weights, and samples of them.

    A backend supplies the sums of ``Rows``, and ``_rows_at``, which returns rows at
    given indices, or ``_draw`` if it has a cheaper way to obtain some rows.

    Attributes
    ----------
    feature_names : sequence of str or None
        Names of the columns; None if the source has none.
    source : object
        What to open instead of X from now on; None: X itself.
    unit : UnitLength or None
        How rows are scaled as they are read.
    held_at : Place or None
        See ``Rows``.
    """

    n_features: int = 0
    feature_names: Sequence[str] | None = None
    source: Any = None
    unit: UnitLength | None = None
    held_at: Any = None

    def __init__(
        self,
        n_all: int | None,
        n_features: int,
        weights: Weights = None,
        is_member: Members = None,
    ) -> None:
        """``n_all`` is the number of rows, or None if it is unknown before a pass."""
        self.n_features = n_features
        self._weights = weights
        # If all rows are members, no mask has to be applied.
        is_partial = is_member is not None and not is_member.all()
        self._is_member = is_member if is_partial else None
        self._n_rows = n_all if is_member is None else int(is_member.sum())

    def restricted(self, weights: Weights, is_member: Members) -> Self:
        """Return the same rows with weights, or some of them, without opening them again.

        All rows must be members here, and none may have been read.
        """
        rows = copy(self)
        WeightedRows.__init__(rows, self._n_rows, self.n_features, weights, is_member)
        return rows

    @property
    def n_rows(self) -> int:
        assert self._n_rows is not None
        return self._n_rows

    def count(self) -> int:
        """Return the exact number of rows, reading them if necessary."""
        return self.n_rows

    def check_finite(self) -> None:
        """Raise ValueError for NaN or infinity, if that takes no further reading."""

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        """Raise NotImplementedError where rows have to be read."""
        raise NotImplementedError

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        rows, index = self._draw(n, seed)
        rows = np.asarray(rows, dtype=np.float64)
        if self.unit is not None:
            rows = self.unit(rows)
        if self._weights is None:
            weights = np.ones(len(rows))
            total = float(len(rows) if self._n_rows is None else self._n_rows)
        else:
            weights = self._weights[index]
            total = self._total_weight()
        # The rows drawn stand for all members.
        drawn = float(weights.sum())
        if drawn > 0:
            weights = weights * (total / drawn)
        return rows, weights

    def _draw(self, n: int, seed: int) -> tuple[AnyArray, AnyArray]:
        """Return at most ``n`` rows and their indices, in ascending order."""
        index = self._random_members(n, seed)
        return self._rows_at(index), index

    def _rows_at(self, index: AnyArray) -> AnyArray:
        raise NotImplementedError

    def _random_members(self, n: int, seed: int) -> AnyArray:
        """Return the indices of ``n`` random members, or of all if there are fewer."""
        if n >= self.n_rows:
            return self._members
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(self.n_rows, n, replace=False))
        return chosen if self._is_member is None else self._members[chosen]

    @property
    def _members(self) -> AnyArray:
        """Indices of all members."""
        if self._is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self._is_member)

    def _members_within(self, begin: int, end: int) -> slice | AnyArray:
        """Return the members from ``begin`` to ``end``, counted from ``begin``."""
        if self._is_member is None:
            return slice(0, end - begin)
        return np.flatnonzero(self._is_member[begin:end])

    def _total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_rows)
        if self._is_member is None:
            return float(self._weights.sum())
        return float(self._weights[self._is_member].sum())
