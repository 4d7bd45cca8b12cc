"""What a backend supplies: a module with two functions, whose rows can be summed.

The functions are those of ``Backend``. ``open_rows`` returns rows, of a class that the
backend derives from one of two:

- ``memory.BlockRows``, if the rows come as NumPy arrays. It has all sums; the backend
  supplies ``_blocks``, which yields consecutive rows.
- ``WeightedRows`` (below), if the rows are summed elsewhere. It knows members, weights
  and samples; the backend supplies ``moments``, ``label_sums`` and ``_rows_at``, and
  ``responsibilities`` if it can.

``kinds.KINDS`` says which objects a backend reads, and ``dispatch.backend_of`` imports
it. ``tests/rows/test_backends.py`` compares every backend with rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from .._core import AnyArray, Array
from .._core.frame import Frame
from .._core.labelsums import Rule, StackedRules
from .._core.rows import Rows
from .checks import BadRowsError, Names
from .views import View

# Weights of rows; None: all are 1.
Weights = Array | None
# A mask of rows; None: all rows are members.
Members = AnyArray | None


class Backend(Protocol):
    """A module of this folder that opens rows of some kinds.

    Its rows keep these promises, on which the callers rely:

    - Every pass gives the same rows in the same order. A source that is seen to have
      changed is a ``checks.changed_error``.
    - Sums are in coordinates of the frame, and in float64.
    - ``sample(n, seed)`` with n >= ``n_rows`` returns all members in their order, with
      their own weights: labeled rows are taken into memory this way.
    - NaN and infinity raise a ValueError that names row or block, and column, when they
      are first read (``checks.check_finite``). Rows that a fit does not read (unlabeled
      ones, in ``SupervisedLDA``) are checked only if the rows have ``check_finite``.
    - A pass calls ``progress.report_progress`` after every few ten thousand rows, in
      the thread of the caller, who counts the passes.
    - If rows must be read to be counted, ``n_rows`` may be an upper bound until the
      first pass, but it is 0 after a sample without rows; ``count()`` is exact.
    """

    def open_rows(self, X: Any, request: Request) -> WeightedRows:
        """Return all rows of a source.

        Opening reads little or nothing. Columns that are not those of the request are
        refused (``Request.check_width``, ``Request.check_names``). The caller gives the
        rows their weights, or takes some of them (``WeightedRows.restricted``), and
        sets ``view``.
        """
        ...

    def apply_to_rows(
        self, X: Any, function: Callable[[Any], Any], request: Request
    ) -> Any:
        """Return the results of a function of rows, one entry per row, in order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


@dataclass(frozen=True)
class Request:
    """What a backend has to know in addition to the rows.

    Attributes
    ----------
    name : str
        Name of the argument, for messages.
    n_features : int or None
        Number of features of the fit. None: the source decides.
    feature_names : array of str or None
        Names of the features of the fit. None: the source decides, or there are none.
    n_threads : int
        Threads that may compute.
    view : View or None
        How rows are mapped before they are used. None: not at all.
    """

    name: str
    n_features: int | None = None
    feature_names: AnyArray | None = None
    n_threads: int = 1
    view: View | None = None

    def check_width(self, n_features: int) -> None:
        """Raise BadRowsError for another number of features than in the fit."""
        if self.n_features not in (None, n_features):
            raise BadRowsError(
                f"{self.name} has {n_features} features, but X of fit has "
                f"{self.n_features}."
            )

    def check_names(self, names: Names, way_out: str) -> None:
        """Raise BadRowsError for a column of another name than in the fit.

        The number of columns is not compared: see ``check_width``.
        """
        if names is None or self.feature_names is None:
            return
        pairs = zip(names, self.feature_names, strict=False)
        for column, (given, fitted) in enumerate(pairs):
            if given != fitted:
                raise BadRowsError(
                    "The feature names should match those that were passed during "
                    f"fit: column {column} of {self.name} is {given!r}, and was "
                    f"{str(fitted)!r}. {way_out}"
                )


class WeightedRows(Rows):
    """Rows with membership and weights, and samples of them.

    A backend supplies the sums of ``Rows``, and ``_rows_at``, which returns rows at
    given indices, or ``_draw`` if it has a cheaper way to obtain some rows.

    Attributes
    ----------
    feature_names : sequence of str or None
        Names of the columns; None if the source has none.
    view : View or None
        How rows are mapped as they are read.
    held_at : Place or None
        See ``Rows``.
    """

    # Values, not annotations: they take the place of the properties of ``Rows``.
    n_features: int = 0
    feature_names: Sequence[str] | None = None
    view: View | None = None
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
        self._n_rows = n_all if is_member is None else int(np.count_nonzero(is_member))

    def restricted(self, weights: Weights, is_member: Members) -> Self:
        """Return the same rows with weights, or some of them, without opening again.

        All rows must be members here, and none may have been read.
        """
        rows = copy(self)
        WeightedRows.__init__(rows, self._n_rows, self.n_features, weights, is_member)
        return rows

    @property
    def n_mapped_features(self) -> int:
        """Number of features that the sums have."""
        return self.n_features if self.view is None else self.view.n_features

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

    def placed_label_sums(self, rules: StackedRules, frame: Frame) -> tuple[Any, Any]:
        sums = self.label_sums(rules, frame)
        return sums.counts, sums.sums

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        rows, index = self._draw(n, seed)
        rows = np.asarray(rows, dtype=np.float64)
        if self.view is not None:
            rows = self.view(rows)
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
        # In order, since most sources are read from the first row to the last.
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(self.n_rows, n, replace=False))
        if self._is_member is None:
            return chosen
        if 2 * self.n_rows < len(self._is_member):
            return self._members[chosen]
        # Where most rows are members, their indices take many times the memory of the
        # mask: the others are listed instead. A member comes after those of them that
        # have no more members before them than it has.
        others = np.flatnonzero(~self._is_member)
        members_before = others - np.arange(len(others))
        return chosen + np.searchsorted(members_before, chosen, side="right")

    @property
    def _members(self) -> AnyArray:
        """Indices of all members."""
        if self._is_member is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self._is_member)

    def _members_within(self, begin: int, end: int) -> slice | AnyArray:
        """Return the members from ``begin`` to ``end``, counted from ``begin``."""
        # Rows at a slice are not copied.
        if self._is_member is None:
            return slice(0, end - begin)
        return np.flatnonzero(self._is_member[begin:end])

    def _total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_rows)
        if self._is_member is None:
            return float(self._weights.sum())
        return float(self._weights[self._is_member].sum())
