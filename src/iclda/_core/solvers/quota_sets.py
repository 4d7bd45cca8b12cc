"""Attainable sets of labelings that fill quotas: of held rows, and of all rows.

A labeling finds the shift of its scores that fills the quotas (``quotas``); after that
it is the labeling of the shifted scores by the set whose labels are free, which knows
where its rows are. The shift of similar scores, which the labels of the state before
have, is where the search for it starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import AnyArray, Array
from ..problem import Problem
from . import settings
from .attainable import HeldRows, Labeling, Shift, SoftLabels, shifted
from .held import hold_in_memory
from .on_device import hold_where_fast
from .quotas import Quotas, balance, bounding_shift, hard_shift, largest_range
from .streamed import StreamedSet

# Relative cutoff for the singular values of the derivative of class weights by shifts.
_SINGULAR_RCOND = 1e-13


@dataclass(eq=False, kw_only=True)
class QuotaLabeling(Labeling):
    """Rows labeled by scores that are shifted to fill quotas.

    J is that of the shifted scores at fixed shifts, less the change that the shifts
    undo: with E the derivative of the point by the shifts, E_kk the part of it that
    moves class weights, and the curvatures of the cost of intervals,

        J - E (E_kk + curvatures)^-1 E'

    The second term has the rank K at most.

    Attributes
    ----------
    shift : the shift
    free : the labeling by the shifted scores of the same rows, with labels that are
        free
    """

    rows: QuotaSet
    shift: Shift
    free: Labeling

    @property
    def near(self) -> tuple[Any, Any, Any]:
        return self.free.near

    @property
    def n_near(self) -> int:
        return self.free.n_near

    @property
    def n_read_for_shift(self) -> float:
        n_classes = len(self.point)
        if n_classes == 2:
            # The single shift of two classes takes few reads, which are not counted.
            return 0.0
        return self.rows.n_read_for_shift(n_classes * len(self.rows.weights))

    @property
    def _is_shifted(self) -> AnyArray:
        return self.rows.quotas.is_shifted

    @cached_property
    def _near_of_all_classes(self) -> tuple[Any, Any, Any]:
        """Rows near a boundary, their weights and their shares in all classes."""
        z, weights, shares = self.near
        if shares.shape[0] == 1:
            # Two classes are in memory.
            shares = np.vstack([1 - shares, shares])
        return z, weights, shares

    @cached_property
    def _inverse_of_shares(self) -> Any:
        """The inverse in J, (m, m), at the place of the rows."""
        place = self.rows.place
        _, weights, shares = self._near_of_all_classes
        shares = place.take_classes(shares, self.rows.shifted_classes)
        weighted_shares = shares * weights
        counts, products = place.fetch_all(
            place.xp.sum(weighted_shares, axis=1), weighted_shares @ shares.T
        )
        return place.put(self._inverse(np.diag(counts) - products))

    def _inverse(self, inner: Array) -> Array:
        """Invert E_kk + curvatures, which is singular where labels are hard."""
        curvatures = self.rows.quotas.curvatures(self.shift.values)[self._is_shifted]
        matrix = inner + np.diag(curvatures)
        inverse = np.linalg.pinv(matrix, rcond=_SINGULAR_RCOND, hermitian=True)
        return np.asarray(inverse)

    def product(self, direction: Array) -> Array:
        place = self.rows.place
        z, weights, shares = self._near_of_all_classes
        # The change of the scores of every row becomes that of its shares.
        change = place.put(direction) @ z.T
        change -= place.sum_over_classes(shares, change)
        change *= shares
        # The shifts move back by what restores the weights of the classes: no second
        # product with the rows is needed.
        moved_weights = place.take_classes(change, self.rows.shifted_classes) @ weights
        back = self.rows.from_shifted @ (self._inverse_of_shares @ moved_weights)
        change -= shares * (back[:, None] - back @ shares)
        change *= weights
        return np.asarray(place.fetch(change @ z))

    def matrix(self) -> Array:
        fixed = self.free.matrix()
        n_classes, width = self.point.shape
        # Shifts as changes of the free scores, in columns.
        moves = np.zeros((len(fixed), n_classes))
        free = np.arange(n_classes - 1)
        moves[free * width, free] = 1
        # Scores of the last class are fixed: all others move instead.
        moves[::width, -1] = -1
        moves = moves[:, self._is_shifted]
        across = fixed @ moves
        inverse = self._inverse(moves.T @ across)
        return np.asarray(fixed - across @ inverse @ across.T)

    def factor(self) -> None:
        # J is not a sum over rows: the shifts undo a part of it.
        return None

    @property
    def local_set(self) -> QuotaSet:
        return self.rows


@dataclass(eq=False)
class QuotaSet:
    """The attainable set, with quotas, of rows that are held.

    Attributes
    ----------
    free : the set of the rows with labels that are free
    quotas : the quotas
    """

    # Rows that are held are never read again.
    n_passes: ClassVar[int] = 0

    free: HeldRows
    quotas: Quotas

    @property
    def place(self) -> Any:
        return self.free.place

    @property
    def weights(self) -> Array:
        return self.free.weights

    @property
    def placed_weights(self) -> Any:
        return self.free.placed_weights

    @property
    def labeled_point(self) -> Array:
        return self.free.labeled_point

    @property
    def n_read_by_labeling(self) -> int:
        n_numbers = self.free.n_read_by_labeling
        if len(self.labeled_point) == 2:
            return n_numbers
        chosen = settings.QUOTA_NEWTON
        n_numbers = max(n_numbers, chosen.min_numbers_of_stack)
        return chosen.reads_per_shift * n_numbers

    def n_read_for_shift(self, n_shares: int) -> float:
        """Numbers that are read to find a shift on a path, of three or more classes."""
        chosen = settings.QUOTA_NEWTON
        n_numbers = max(chosen.min_numbers_on_paths, n_shares)
        return float(chosen.reads_per_shift * n_numbers)

    def find_shift(self, scores: Array, start: Shift | None = None) -> Shift:
        """Find the shift that fills the quotas, from that of similar scores.

        Scores of a smaller tau are nearly multiples of the earlier ones: the start is
        scaled with the range of the scores.
        """
        # A stack of one.
        stack = self.placed_scores(scores[None])
        # A range of 0, where all scores of a row are equal, cannot be a divisor.
        score_range = largest_range(stack, self.place) or 1.0
        begin = None
        if start is not None:
            begin = start.values[None] * score_range / start.score_range
        shifts = self._balance(stack, begin)
        return Shift(shifts[0], score_range, self)

    def label_from(self, scores: Array, start: Shift | None) -> QuotaLabeling:
        """Label the rows; ``start`` is the shift of similar scores."""
        shift = self.find_shift(scores, start)
        free = self.free.label(shifted(scores, shift.values))
        return QuotaLabeling(
            scores=free.scores,
            point=free.point,
            log_sum=free.log_sum + float(self.quotas.cost(shift.values)),
            shift=shift,
            rows=self,
            shares=free.shares,
            free=free,
        )

    @cached_property
    def shifted_classes(self) -> Any:
        """Indices (m,) of the classes that are shifted, at the place."""
        return self.place.put_as_is(np.flatnonzero(self.quotas.is_shifted))

    @cached_property
    def from_shifted(self) -> Any:
        """Matrix (K, m) of zeros and ones from these classes to all, at the place."""
        identity = np.eye(len(self.labeled_point))
        return self.place.put(identity[:, self.quotas.is_shifted])

    # The protocol of attainable sets.

    def label(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> QuotaLabeling:
        start = None if warm_start is None else warm_start.shift
        return self.label_from(scores, start)

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        return self.label(scores, warm_start)

    def hard_point(self, scores: Array) -> Array:
        # Of labels that are free.
        return self.free.hard_point(scores)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        scores = self.placed_scores(direction)
        shift = hard_shift(scores, self.placed_weights, self.quotas, self.place)
        return self._bound_by(scores, shift)

    # What the protocol of held rows adds.

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        return self._points_at(scores, self._balance(self.placed_scores(scores)))

    def scores_of_rows(self, scores: Array) -> Array:
        return self.free.scores_of_rows(scores)

    def placed_scores(self, scores: Array) -> Any:
        return self.free.placed_scores(scores)

    def shares(self, scores: Array) -> Array:
        shift = self.find_shift(scores)
        return self.free.shares(shifted(scores, shift.values))

    def spread(self, gradient: Array) -> float:
        return self.free.spread(gradient)

    def label_among(self, labels: SoftLabels, *, is_thinned: bool) -> Labeling:
        # The labels have been shifted.
        return self.free.label_among(labels, is_thinned=is_thinned)

    def _balance(self, stack: Any, start: Array | None = None) -> Array:
        """Return the shifts that fill the quotas, of placed scores (S, K, n)."""
        return balance(stack, self.placed_weights, self.quotas, start, self.place)

    def _points_at(self, scores: Array, shifts: Array) -> tuple[Array, Array]:
        """Return the points and the duals of a stack of scores at shifts (S, K)."""
        points, log_sums = self.free.soft_points(shifted(scores, shifts))
        return points, log_sums + self.quotas.cost(shifts)

    def _bound_by(self, scores: Any, shift: Array) -> float:
        """Return the dual of hard labels by placed scores (K, n) at a shift."""
        place = self.place
        largest = place.xp.max(scores + place.put(shift)[:, None], axis=0)
        of_rows = place.fetch(self.placed_weights @ largest)
        return float(of_rows + self.quotas.hard_cost(shift))


@dataclass(eq=False)
class QuotaPart(QuotaSet):
    """The attainable set, with quotas, of some of the rows: the others are streamed.

    A close upper bound is enough as its support.
    """

    # The shifts of the last stack of scores, where those of the next one begin.
    _last_shifts: Array | None = field(default=None, init=False)

    def n_read_for_shift(self, n_shares: int) -> float:
        # Every read forms products of all pairs of classes.
        reads_per_class = settings.QUOTA_BOUNDS.reads_per_class_and_shift
        return reads_per_class * len(self.labeled_point) * n_shares

    def soft_points(self, scores: Array) -> tuple[Array, Array]:
        start = self._last_shifts
        if start is not None and len(start) != len(scores):
            start = None
        shifts = self._balance(self.placed_scores(scores), start)
        self._last_shifts = shifts
        return self._points_at(scores, shifts)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        if labels is None or labels.shift is None:
            return super().support(direction)
        scores = self.placed_scores(direction)
        shift = self.bounding_shift(direction, labels)
        return self._bound_by(scores, shift)

    def bounding_shift(self, direction: Array, labels: SoftLabels) -> Array:
        """Return the shift that bounds a linear function which labels nearly attain."""
        assert labels.shift is not None
        scores = self.placed_scores(direction)
        attained = float(np.vdot(direction, labels.point - self.labeled_point))
        return bounding_shift(
            scores,
            self.placed_weights,
            self.quotas,
            attained,
            labels.shift,
            self.place,
        )


def hold_free(
    problem: Problem, rows: AnyArray, weights: Array, *, is_framed: bool = False
) -> HeldRows:
    """Hold rows whose labels are to fill quotas, as a set with labels that are free."""
    hold = hold_where_fast
    if problem.n_classes == 2:
        # Their single shift takes a median and a bracket, which are cheap in memory.
        hold = hold_in_memory
    return hold(problem, rows, weights, is_framed=is_framed)


@dataclass(eq=False, kw_only=True)
class QuotaStreamedSet(StreamedSet):
    """The attainable set of all unlabeled rows with quotas: each method some passes.

    The shift is found on the rows of an earlier shift, or else of the sample. The rows
    near boundaries that a pass returns then correct it, with all other rows labeled as
    they are.

    Attributes
    ----------
    rounds : the set that fills quotas by sums over all rows
    """

    rounds: StreamedSet

    def __post_init__(self) -> None:
        super().__post_init__()
        returned = int(settings.QUOTA_PASSES.returned_share * self._max_returned)
        # Only one of every two rows would come back if slightly more than the largest
        # number were near.
        most = self._max_returned // 2
        self._min_returned = min(max(self._min_returned, returned), most)

    def return_more(self, max_rows: int) -> None:
        # No more than a sample is held.
        width = self.labeled_point.shape[1]
        max_held = settings.HOLDING.max_entries_of_sample // width
        super().return_more(min(max_rows, max_held))

    @property
    def is_exhausted(self) -> bool:
        return self.n_passes >= settings.QUOTA_PASSES.max_passes_of_search

    @property
    def _sample(self) -> QuotaPart:
        assert isinstance(self.held, QuotaPart)
        return self.held

    def label(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> QuotaLabeling:
        quotas = self._sample.quotas
        sample = self._sample
        start = None if warm_start is None else warm_start.shift
        guide = sample if start is None else start.rows
        for _ in range(settings.QUOTA_PASSES.max_passes):
            # 1. Label all rows with the shift that fills the quotas of the guide.
            shift = guide.find_shift(scores, start)
            start = shift
            free = super().label(shifted(scores, shift.values))
            # 2. The rows near boundaries fill what the others leave of the quotas.
            returned, taken = self._with_quotas_left(free, quotas)
            weight = float(returned.weights.sum())
            if not returned.quotas.can_be_filled(weight):
                # They cannot: the sample makes up for the excess in the next pass.
                excess = free.point[:, 0] - self.labeled_point[:, 0]
                excess = excess - quotas.filled(shift.values)
                sample = replace(sample, quotas=sample.quotas.less(excess))
                guide = sample
                labeling = _unfilled(free, shift, returned, quotas, sample)
                continue
            labeling = self._corrected(scores, free, shift, returned, taken)
            guide = returned
            # 3. The correction must be small enough for the other rows to keep theirs.
            if _is_close(labeling, free, shift, quotas):
                return labeling
        # 4. Where it is not, sums over all rows lead to the shift, in further passes.
        return self._filled_by_sums(scores, labeling)

    def _filled_by_sums(self, scores: Array, unfilled: QuotaLabeling) -> QuotaLabeling:
        """Return a labeling that fills the quotas, or the unfilled one."""
        quotas = self._sample.quotas
        n_passes = self.rounds.n_passes
        filled = self.rounds.soft_labels(scores, unfilled)
        self.n_passes += self.rounds.n_passes - n_passes
        unfilled.are_filled = False
        if not filled.are_filled or filled.shift is None:
            return unfilled
        free = super().label(filled.scores)
        # With this shift the rows near boundaries fill what the others leave.
        returned, taken = self._with_quotas_left(free, quotas)
        weight = float(returned.weights.sum())
        if not returned.quotas.can_be_filled(weight):
            return unfilled
        shift = unfilled.shift._replace(values=filled.shift.values)
        labeling = self._corrected(scores, free, shift, returned, taken)
        labeling.are_filled = _is_close(labeling, free, shift, quotas)
        return labeling

    def _with_quotas_left(
        self, free: Labeling, quotas: Quotas
    ) -> tuple[QuotaPart, Array]:
        """Return the rows near boundaries with the quotas left, and what is taken."""
        local: HeldRows = free.local_set
        taken = local.labeled_point[:, 0] - self.labeled_point[:, 0]
        return QuotaPart(local, quotas.less(taken)), taken

    def _corrected(
        self,
        scores: Array,
        free: Labeling,
        shift: Shift,
        returned: QuotaPart,
        taken: Array,
    ) -> QuotaLabeling:
        """Return the labeling whose rows near boundaries fill the quotas left."""
        labeling = returned.label_from(scores, shift)
        # Its dual is that of the rows near boundaries alone: add what the others have
        # at the shift of the pass.
        local: HeldRows = free.local_set
        local_log_sum = local.label(shifted(scores, shift.values)).log_sum
        log_sum_of_others = free.log_sum - local_log_sum
        labeling.log_sum += log_sum_of_others - float(shift.values @ taken)
        labeling.is_thinned = free.is_thinned
        return labeling

    def soft_labels(
        self, scores: Array, warm_start: SoftLabels | None = None
    ) -> SoftLabels:
        return self.label(scores, warm_start)

    def support(self, direction: Array, labels: SoftLabels | None = None) -> float:
        """Return an upper bound: the best shift of some rows gives a close one.

        Infinity, and so no certificate, if the rows of the shift do not fill the
        quotas.
        """
        if labels is None or labels.shift is None:
            return np.inf
        rows = labels.shift.rows
        if rows.free is self._sample.free:
            # The shift is one of the sample: it need not fill the quotas of all rows.
            return np.inf
        shift = rows.bounding_shift(direction, labels)
        # The dual at any shift is an upper bound.
        free_support = super().support(shifted(direction, shift))
        return free_support + self._sample.quotas.hard_cost(shift)

    def _hold(self, u: AnyArray, weights: Array) -> HeldRows:
        return hold_free(self.problem, u, weights, is_framed=True)


def _unfilled(
    free: Labeling, shift: Shift, returned: QuotaPart, quotas: Quotas, sample: QuotaPart
) -> QuotaLabeling:
    """Return a labeling that misses the quotas; the sample finds the next shift."""
    return QuotaLabeling(
        scores=free.scores,
        point=free.point,
        log_sum=free.log_sum + float(quotas.cost(shift.values)),
        shift=shift._replace(rows=sample),
        rows=returned,
        shares=free.shares,
        free=free,
        is_thinned=free.is_thinned,
        are_filled=False,
    )


def _is_close(
    labeling: QuotaLabeling, free: Labeling, shift: Shift, quotas: Quotas
) -> bool:
    """Return whether the corrected shift is close enough to the one of the pass."""
    chosen = settings.QUOTA_PASSES
    shift_change = float(np.ptp(labeling.shift.values - shift.values))
    if not shift_change <= chosen.max_shift_change:
        return False
    if not free.is_thinned:
        return True
    # Few of the rows near boundaries were returned: they stand for the others only if
    # little weight changes its class.
    moved_weights = labeling.point[:, 0] - free.point[:, 0]
    moved = float(np.abs(moved_weights).max())
    return moved <= chosen.max_corrected_share * quotas.weight
