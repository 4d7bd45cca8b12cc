"""The attainable set of rows that are read in every pass.

A pass labels all rows and sums them. It also returns the rows near class boundaries, on
which the derivative J and everything until the next pass are computed; a sample in
memory says in advance which rows these are (``rows.choose_near``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .. import AnyArray, Array
from ..labelsums import LabelSums, soften
from ..problem import Problem
from ..rows import Near, choose_near, near_boundary
from . import settings
from .attainable import HeldRows, Labeling, SoftLabels
from .on_device import hold_where_fast


class _Returned(NamedTuple):
    """Rows near class boundaries that a pass returned.

    Attributes
    ----------
    rows : the rows
    every : how many rows each of them stands for, as in ``Near``
    near_in_sample : indices of the rows of the sample that were near boundaries
    """

    rows: HeldRows
    every: AnyArray
    near_in_sample: AnyArray

    def serve(self, every: AnyArray, near_in_sample: AnyArray) -> bool:
        """Return whether a pass that is asked for these would return no other rows."""
        if not np.array_equal(every, self.every):
            return False
        was_near = np.isin(near_in_sample, self.near_in_sample)
        return bool(was_near.all())


@dataclass(eq=False)
class StreamedSet:
    """The attainable set of all unlabeled rows; every method reads them in one pass.

    Attributes
    ----------
    problem : the problem with the rows
    held : a sample of the rows, by which ``label`` chooses rows near boundaries; the
        other methods need none
    n_passes : passes so far
    """

    problem: Problem
    held: HeldRows | None = None
    n_passes: int = field(default=0, init=False)
    _returned: _Returned | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # Rows near boundaries that a pass returns, at least and at most.
        n_unknowns = self.labeled_point[:-1].size
        self._min_returned = settings.PASSES.rows_per_unknown * n_unknowns
        self._max_returned = 0 if self.held is None else len(self.held.weights)

    def return_more(self, max_rows: int) -> None:
        """Return more rows near boundaries from now on, at most ``max_rows``."""
        factor = settings.PASSES.more_rows_factor
        # The next pass returns rows again, even if the choice is the same.
        self._returned = None
        raised_max = min(factor * self._max_returned, max_rows)
        self._max_returned = max(self._max_returned, raised_max)
        # Only one of every two rows would come back if slightly more than the largest
        # number were near.
        raised_min = min(factor * self._min_returned, self._max_returned // 2)
        self._min_returned = max(self._min_returned, raised_min)

    @property
    def labeled_point(self) -> Array:
        return self.problem.labeled_point

    @property
    def is_exhausted(self) -> bool:
        """Whether the passes of a search are used up; without quotas they never are."""
        return False

    def label(self, scores: Array, warm_start: SoftLabels | None = None) -> Labeling:
        assert self.held is not None
        # 1. See by the sample which rows a pass should return.
        n_rows = self.problem.unlabeled.n_rows
        seen = self.held.scores_of_rows(scores)
        choice = choose_near(seen, n_rows, self._min_returned, self._max_returned)
        shares_in_sample = soften(seen / choice.softening)
        near_in_sample = near_boundary(shares_in_sample)

        # 2. Read all rows. Those that an earlier pass returned may serve again.
        returned = self._returned
        if returned is not None and returned.serve(choice.every, near_in_sample):
            sums = self._read(scores, is_soft=True)
        else:
            sums = self._read(scores, is_soft=True, near=choice)
            assert sums.near is not None
            weights = sums.near[:, 0]
            rows = self._hold(sums.near[:, 1:], weights)
            returned = _Returned(rows, choice.every, near_in_sample)
            self._returned = returned

        # 3. Form J from the rows that were returned.
        labels = self._labels_of(scores, sums)
        is_thinned = bool(choice.every.max() > 1)
        return returned.rows.label_among(labels, is_thinned=is_thinned)

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        sums = self._read(scores, is_soft=True)
        return self._labels_of(scores, sums)

    def hard_point(self, scores: Array) -> Array:
        sums = self._read(scores, is_soft=False)
        return self.problem.point_of(sums.counts, sums.sums)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        # With hard labels, log-sum-exp is the largest score.
        sums = self._read(direction, is_soft=False)
        return sums.log_sum / self.problem.moments.weight

    def _hold(self, u: AnyArray, weights: Array) -> HeldRows:
        """Hold rows in frame coordinates."""
        return hold_where_fast(self.problem, u, weights, is_framed=True)

    def _labels_of(self, scores: Array, sums: LabelSums) -> SoftLabels:
        """Return the soft labels by scores, from the sums of a pass."""
        point = self.problem.point_of(sums.counts, sums.sums)
        log_sum = sums.log_sum / self.problem.moments.weight
        return SoftLabels(scores=scores, point=point, log_sum=log_sum)

    def _read(
        self,
        scores: Array,
        *,
        is_soft: bool,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        """Label and sum all rows, in one pass."""
        self.n_passes += 1
        rule = self.problem.rule_of(scores, is_soft=is_soft)
        return self.problem.unlabeled.label_sums(
            rule, self.problem.frame, near=near, with_overlaps=with_overlaps
        )
