"""Rows, as solvers see them: sums over all of them, and those near class boundaries.

``Rows`` is what a backend supplies: three sums over its rows, and the shares of every row. ``Near``
says which rows near class boundaries a pass returns, and with what weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import AnyArray, Array
from .frame import Frame
from .labelsums import LabelSums, LinearRule, Rule, soften
from .moments import Moments

HARD = 1e-12  # a share this near to 1 is a label
_BIT_SHIFTS = 1, 3, 7
_MANY_CLASSES = (
    1_000  # above which rows near boundaries are chosen without regard to pairs
)
_LARGE_BOUNDARY = (
    0.05  # share of the rows between two classes from which some must be returned
)
_FAINT_SHARE = 1e-3  # a row is near a class with this share, over that of all but the largest class


class Rows(Protocol):
    """Weighted rows that can be read again and again. Sums come back in frame coordinates."""

    @property
    def n_rows(self) -> int:
        """An upper bound until the first pass where rows have to be read to be counted."""

    @property
    def n_features(self) -> int: ...

    @property
    def held_at(self) -> Any:
        """``Place`` of a device on which a search holds rows; None: in memory."""

    def moments(self, frame: Frame) -> Moments:
        """Weight, mean and scatter of all rows."""

    def label_sums(
        self,
        rule: Rule,
        frame: Frame,
        centers: Array | None = None,
        *,
        near: Near | None = None,
    ) -> LabelSums:
        """Class weights and sums under a rule; on request scatter about centers.

        With ``near`` also rows near class boundaries, for a linear rule.
        """

    def sample(self, n: int, seed: int) -> tuple[AnyArray, Array]:
        """At most ``n`` rows in the user's units, with weights that add up to those of all.

        With n of ``n_rows`` or more: all of them, in their order, with their own weights. NaN and
        infinity in what is read are a ValueError that names row and column.
        """

    def responsibilities(self, rule: Rule, frame: Frame) -> Array:
        """Shares of every row in each class, in the order of the rows."""


def near_boundary(shares: Array) -> AnyArray:
    """Return the indices of rows whose labels are soft; shares are (K, n), or (1, n) for K = 2."""
    if len(shares) == 1:
        return np.flatnonzero(shares[0] * (1 - shares[0]) > HARD)
    return np.flatnonzero(shares.max(axis=0) < 1 - HARD)


def scrambled(index: AnyArray) -> AnyArray:
    """Mix the bits of indices: 2^k divides one of every 2^k results, at no fixed distance.

    Rows often alternate in the order of a table, and every second one is then of one kind. Bits are
    changed by higher ones only, so that within each group of 2^k rows the lowest k take all values.
    """
    mixed = np.asarray(index)
    for shift in _BIT_SHIFTS:
        mixed = mixed ^ (mixed >> shift)
    return mixed


def one_of_each(every: int, start: int, stop: int) -> AnyArray:
    """Return the indices whose scrambled values are multiples of ``every``, a power of two."""
    firsts = np.arange(start, stop, every)
    lowest = scrambled(firsts) & (every - 1)
    for shift in reversed(_BIT_SHIFTS):  # undone
        while shift < every.bit_length():
            lowest = lowest ^ (lowest >> shift)
            shift *= 2
    found = firsts + lowest
    return found[found < stop]


@dataclass(frozen=True)
class Near:
    """Choice of rows near class boundaries: those that scores / softening do not label hard.

    One of n rows between classes j and k is returned (``scrambled``), with n times its weight,
    where n = every[j, k] is a power of two, on the diagonal the largest one.
    """

    every: AnyArray  # (K, K), symmetric
    softening: float = 1.0
    begin: int = 0  # index among all rows of the first one of a part

    @property
    def smallest(self) -> int:
        return int(self.every.min())

    def softened(self, rule: LinearRule) -> LinearRule:
        coef, intercept = rule.coef / self.softening, rule.intercept / self.softening
        return LinearRule(coef, intercept, is_soft=True)

    def rows(self, shares: Array, index: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the indices of the rows to return, and how many rows each of them stands for."""
        mixed = scrambled(index + self.begin)
        if self.smallest > 1:
            some = np.flatnonzero(mixed & (self.smallest - 1) == 0)
            some = some[near_boundary(shares[:, some])]
        else:
            some = near_boundary(shares)
        if self.smallest == self.every.max():
            return some, np.full(len(some), self.smallest)
        if len(some) < shares.shape[1]:
            shares = shares[:, some]
        counts = multiplicities(shares, self.every)
        is_taken = mixed[some] & (counts - 1) == 0
        return some[is_taken], counts[is_taken]


def _near_classes(shares: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return the largest class of every row, and a mask (K, n) of the classes it is near to."""
    rest = 1 - xp.max(shares, axis=0, keepdims=True)
    return xp.argmax(shares, axis=0), shares >= _FAINT_SHARE * rest


def multiplicities(shares: Any, every: Any, xp: Any = np) -> Any:
    """Return how many rows each row near a boundary stands for; ``every`` as in ``Near``."""
    best, is_near = _near_classes(shares, xp)
    return xp.min(
        xp.where(is_near, xp.take(every, best, axis=1), xp.max(every)), axis=0
    )


def _softening(scores: Array, least: int) -> float:
    """Return the softening with which ``least`` rows are near boundaries, by their scores (K, n).

    A tenth of them are near each boundary between two classes that has a large share of all rows.
    Rows whose labels are free because two classes tie do not make up for it: while these move,
    rows change sides at the other boundaries.
    """
    two = np.argpartition(scores, -2, axis=0)[-2:]
    leads = np.ptp(np.take_along_axis(scores, two, axis=0), axis=0)
    pairs = len(scores) * two.max(axis=0) + two.min(axis=0)
    kinds, counts = np.unique_counts(pairs)
    widest = np.sort(leads)[min(least, len(leads) - 1)]
    for kind in kinds[counts >= _LARGE_BOUNDARY * len(leads)]:
        between = np.sort(leads[pairs == kind])
        widest = max(widest, between[min(least // 10, len(between) - 1)])
    return max(1.0, float(widest) / -math.log(HARD))


def choose_near(scores: Array, n_all: int, least: int, most: int) -> Near:
    """Choose about ``least`` to ``most`` of all rows, by the scores (K, n) of a sample of them.

    Boundaries with few rows keep all of them.
    """
    n_classes, n_held = scores.shape
    share = n_all / n_held
    softening = _softening(scores, int(least / share))
    shares = soften(scores / softening)
    near = near_boundary(shares)
    if n_classes > _MANY_CLASSES:  # as many pairs of classes would take gigabytes
        every = 2 ** math.ceil(math.log2(max(1.0, share * len(near) / max(1, most))))
        return Near(np.broadcast_to(every, (n_classes, n_classes)), softening)
    best, is_near = _near_classes(shares[:, near])
    is_near[best, np.arange(len(best))] = False
    n_pairs = np.maximum(np.count_nonzero(is_near, axis=0), 1)
    between = is_near / n_pairs  # one row is divided among its pairs
    counts = share * np.array(
        [between[:, best == k].sum(axis=1) for k in range(n_classes)]
    )
    counts = counts + counts.T
    level, left = (
        np.inf,
        float(most),
    )  # rows between any two classes; rows to be divided
    ascending = np.sort(counts[np.triu_indices(n_classes, 1)])
    for i, count in enumerate(ascending):
        level = left / (len(ascending) - i)
        if count > level:
            break
        left -= count
    every = 2 ** np.ceil(np.log2(np.maximum(counts / level, 1))).astype(int)
    np.fill_diagonal(every, 1)
    np.fill_diagonal(every, every.max())
    return Near(every, softening)
