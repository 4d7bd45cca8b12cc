"""Rows as solvers see them: sums over all of them, and those near class boundaries.

``Rows`` is what a backend supplies: three sums over its rows, and the shares of every
row. ``differing_share`` compares the labels of two rules in one pass. ``Near`` says
which rows near class boundaries a pass returns, and with what weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from . import AnyArray, Array
from .frame import Frame
from .labelsums import LabelSums, LinearRule, Rule, StackedRules, label, soften
from .moments import Moments

# A share within this distance of 1 is a hard label.
HARD = 1e-12
# Distances by which bits of an index are shifted to scramble it.
_BIT_SHIFTS = (1, 3, 7)
# With more classes than this, rows near boundaries are chosen without regard to pairs
# of classes, a matrix of which would take gigabytes.
_MANY_CLASSES = 1_000
# A boundary is large if its two classes are the two best ones of this share of the
# rows: some rows near it must be returned.
_LARGE_BOUNDARY_SHARE = 0.05
# A row is near a class that has this share of what its best class leaves to the others.
_FAINT_SHARE = 1e-3


class Memory:
    """Main memory as the place of a computation: see ``Place`` of the backends."""

    xp: ClassVar[Any] = np

    def put(self, array: Any) -> Array:
        return np.asarray(array, dtype=np.float64)

    def put_as_is(self, array: AnyArray) -> AnyArray:
        return array

    def fetch(self, array: Any) -> AnyArray:
        return np.asarray(array)

    def fetch_all(self, *arrays: Any) -> tuple[Any, ...]:
        return arrays

    def label(self, scores: Array, *, is_soft: bool) -> tuple[Array, Array]:
        return label(scores, is_soft=is_soft)

    def solve(self, matrix: Array, right: Array) -> Array:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)

    def sum_over_classes(self, shares: Array, values: Array) -> Array:
        return np.asarray(np.einsum("kn,kn->n", shares, values))

    def take_classes(self, array: Array, classes: AnyArray) -> Array:
        # np.take is slow where the classes of a row are next to each other in memory.
        return array[..., classes, :]


MEMORY = Memory()


def place_of_rows(rows: Rows) -> Any:
    """Return the ``Place`` where arrays that belong to rows are computed with."""
    return MEMORY if rows.held_at is None else rows.held_at


class Rows(Protocol):
    """Weighted rows that can be read any number of times.

    Sums are returned in frame coordinates.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows.

        If rows have to be read to be counted, it is an upper bound until the first
        pass.
        """

    @property
    def n_features(self) -> int: ...

    @property
    def held_at(self) -> Any:
        """``Place`` of a device on which a search holds rows; None for in memory."""

    def moments(self, frame: Frame) -> Moments:
        """Return weight, mean and scatter of all rows."""

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
        with_overlaps: bool = False,
    ) -> LabelSums:
        """Return class weights and class sums under a rule.

        With ``centers`` also the scatter about them; with ``near``, for a linear rule,
        also rows near class boundaries; and the overlaps of the classes on request.
        """

    def placed_label_sums(self, rules: StackedRules, frame: Frame) -> tuple[Any, Any]:
        """Return class weights and class sums under several rules, at ``held_at``."""

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        """Return at most ``n`` rows in the user's units, and their weights.

        The weights add up to those of all rows. If n is at least ``n_rows``, all rows
        are returned, in their order, with their own weights. NaN or infinity in what is
        read raises a ValueError that names row and column.
        """

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        """Return the shares of every row in each class, in the order of the rows."""


def differing_share(
    rows: Rows, frame: Frame, first: LinearRule, second: LinearRule
) -> float:
    """Return the share of the weight to which two rules give different best classes.

    One pass is enough: a rule over the pairs of classes, scored by the sum of the two
    scores, gives every row to the pair of the best class of each rule.
    """
    n_features, n_classes = first.coef.shape
    # Arrays (d, K, K) and (K, K), flattened to the pairs.
    coef = first.coef[:, :, None] + second.coef[:, None, :]
    intercept = first.intercept[:, None] + second.intercept
    flat_coef = coef.reshape(n_features, -1)
    rule = LinearRule(flat_coef, intercept.ravel(), is_soft=False)
    pair_sums = rows.label_sums(rule, frame)
    counts = pair_sums.counts.reshape(n_classes, n_classes)
    shares = counts / counts.sum()
    # Rows on the diagonal have the same best class under both rules.
    return float(shares.sum() - np.trace(shares))


def near_boundary(shares: Array) -> AnyArray:
    """Return the indices of rows whose labels are soft.

    Shares are (K, n), or (1, n) for two classes.
    """
    if len(shares) == 1:
        share = shares[0]
        is_soft = share * (1 - share) > HARD
    else:
        is_soft = shares.max(axis=0) < 1 - HARD
    return np.flatnonzero(is_soft)


def scrambled(index: Any) -> Any:
    """Scramble indices, so that rows can be chosen by divisibility but irregularly.

    Of every 2^k consecutive indices one is scrambled to a multiple of 2^k, at no fixed
    distance from the next one: in many tables every second row is of the same kind.
    Bits are changed by higher ones only. Within each group of 2^k rows, the lowest k
    bits therefore take all values.
    """
    mixed = index
    for shift in _BIT_SHIFTS:
        mixed = mixed ^ (mixed >> shift)
    return mixed


def one_of_each(
    every: int, start: int, stop: int, arange: Callable[..., Any] = np.arange
) -> Any:
    """Return the indices whose scrambled values are multiples of ``every``.

    ``every`` is a power of two and divides ``start``. ``arange`` makes the arrays.
    """
    firsts = arange(start, stop, every)
    # The lowest bits that the first index of each group is scrambled to, unscrambled
    # again, say how far from it the multiple is.
    distances = scrambled(firsts) & (every - 1)
    for bit_shift in reversed(_BIT_SHIFTS):
        # The inverse of x ^ (x >> s) is the same with s, 2 s, 4 s and so on.
        shift = bit_shift
        while shift < every.bit_length():
            distances = distances ^ (distances >> shift)
            shift *= 2
    chosen = firsts + distances
    return chosen[chosen < stop]


@dataclass(frozen=True)
class Near:
    """A choice of rows near class boundaries.

    These are the rows that scores / ``softening`` do not label hard. Of the rows
    between classes j and k one in n is returned, with n times its weight, where
    n = every[j, k] is a power of two. ``every`` (K, K) is symmetric, with its largest
    entry on the diagonal. ``begin`` is the index of the first row of a part among all
    rows.
    """

    every: AnyArray
    softening: float = 1.0
    begin: int = 0

    @property
    def smallest(self) -> int:
        """The smallest number that a row stands for."""
        return int(self.every.min())

    def softened(self, rule: LinearRule) -> LinearRule:
        """Return the rule whose soft labels say which rows are near boundaries."""
        coef = rule.coef / self.softening
        intercept = rule.intercept / self.softening
        return LinearRule(coef, intercept, is_soft=True)

    def rows(self, shares: Array, index: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the positions of the chosen rows, and how many each stands for."""
        # The choice depends on the index among all rows alone: it is the same however
        # the rows are divided into parts.
        index = index + self.begin

        # 1. Find the rows near boundaries. All that can be chosen are multiples of the
        # smallest number: only these are looked at.
        smallest = self.smallest
        if smallest > 1:
            is_multiple = scrambled(index) & (smallest - 1) == 0
            looked_at = np.flatnonzero(is_multiple)
            near = looked_at[near_boundary(shares[:, looked_at])]
        else:
            near = near_boundary(shares)
        if smallest == self.every.max():
            return near, np.full(len(near), smallest)

        # 2. Choose among them by the boundary that each is near.
        if len(near) < shares.shape[1]:
            shares = shares[:, near]
        counts = multiplicities(shares, self.every)
        is_chosen = scrambled(index[near]) & (counts - 1) == 0
        return near[is_chosen], counts[is_chosen]


def _near_classes(shares: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return the best class of every row, and which classes (K, n) it is near."""
    best = xp.argmax(shares, axis=0)
    left_to_others = 1 - xp.max(shares, axis=0, keepdims=True)
    is_near = shares >= _FAINT_SHARE * left_to_others
    return best, is_near


def multiplicities(shares: Any, every: Any, xp: Any = np) -> Any:
    """Return how many rows each row near a boundary stands for.

    ``every`` is that of ``Near``. A row near several classes stands for as few as at
    any of these boundaries.
    """
    best, is_near = _near_classes(shares, xp)
    every_at_best = xp.take(every, best, axis=1)
    of_pairs = xp.where(is_near, every_at_best, xp.max(every))
    return xp.min(of_pairs, axis=0)


def choose_near(scores: Array, n_all: int, min_rows: int, max_rows: int) -> Near:
    """Choose about ``min_rows`` to ``max_rows`` of all rows, those near boundaries.

    ``scores`` (K, n) are those of a sample. Boundaries with few rows keep all of them.
    """
    n_classes, n_held = scores.shape
    # 1. See which rows of the sample are near: they predict those among all rows.
    rows_per_held = n_all / n_held
    min_held = int(min_rows / rows_per_held)
    softening = _softening(scores, min_held)
    shares = soften(scores / softening)
    near = near_boundary(shares)

    # 2. With very many classes, choose one of every n rows near any boundary.
    if n_classes > _MANY_CLASSES:
        n_near = rows_per_held * len(near)
        surplus = max(1.0, n_near / max(1, max_rows))
        one_of = 2 ** math.ceil(math.log2(surplus))
        every = np.broadcast_to(one_of, (n_classes, n_classes))
        return Near(every, softening)

    # 3. Otherwise, divide the rows to return among the boundaries. A boundary has rows
    # on both of its sides.
    counts = rows_per_held * _counts_between(shares[:, near])
    counts = counts + counts.T
    counts_of_pairs = counts[np.triu_indices(n_classes, 1)]
    max_per_pair = _cut(counts_of_pairs, max_rows)
    surpluses = np.maximum(counts / max_per_pair, 1)
    exponents = np.ceil(np.log2(surpluses)).astype(int)
    every = 2**exponents
    # A row is near its own class, too, which must not decide what it stands for.
    np.fill_diagonal(every, 1)
    np.fill_diagonal(every, every.max())
    return Near(every, softening)


def _softening(scores: Array, min_rows: int) -> float:
    """Return the softening with which ``min_rows`` rows are near boundaries.

    A tenth of them are near each boundary between two classes that has a large share of
    all rows. Rows whose labels are free because two classes tie do not make up for it:
    while these move, rows change sides at the other boundaries.
    """
    n_classes, n_rows = scores.shape
    # The lead of the best class of each row over the next one.
    top_two = np.argpartition(scores, -2, axis=0)[-2:]
    top_scores = np.take_along_axis(scores, top_two, axis=0)
    leads = np.ptp(top_scores, axis=0)
    widest = np.sort(leads)[min(min_rows, n_rows - 1)]

    # Pairs of the two best classes, as one number each.
    pairs = n_classes * top_two.max(axis=0) + top_two.min(axis=0)
    distinct, counts = np.unique_counts(pairs)
    is_large = counts >= _LARGE_BOUNDARY_SHARE * n_rows
    min_rows_of_pair = min_rows // 10
    for pair in distinct[is_large]:
        leads_of_pair = np.sort(leads[pairs == pair])
        last = min(min_rows_of_pair, len(leads_of_pair) - 1)
        widest = max(widest, leads_of_pair[last])
    # A lead of -log(HARD) leaves the share HARD to the second class.
    hard_lead = -math.log(HARD)
    return max(1.0, float(widest) / hard_lead)


def _counts_between(shares: Array) -> Array:
    """Count, in row k of (K, K), the rows of the best class k that are near others.

    A row between several pairs of classes is divided among them.
    """
    best, is_near = _near_classes(shares)
    # A row makes a pair with every class that it is near, but its own.
    is_near[best, np.arange(len(best))] = False
    n_pairs = np.count_nonzero(is_near, axis=0)
    parts = is_near / np.maximum(n_pairs, 1)
    by_best = []
    for k in range(len(shares)):
        parts_of_class = parts[:, best == k]
        by_best.append(parts_of_class.sum(axis=1))
    return np.array(by_best)


def _cut(counts: Array, total: float) -> float:
    """Return the number at which counts must be cut to add up to a total at most."""
    equal_share = np.inf
    left = float(total)
    # From the smallest count on, each that is below an equal share of what is left
    # leaves the rest of it to the larger ones.
    for i, count in enumerate(np.sort(counts)):
        n_others = len(counts) - i
        equal_share = left / n_others
        if count > equal_share:
            break
        left -= count
    return equal_share
