"""Rows between classes: how the class sums answer to the scores that label the rows."""

from __future__ import annotations

import numpy as np

from .types import AnyArray, Array

HARD = 1e-12  # a share this near to 1 is a label
_MOST_WAITING = 2**19  # numbers in rows near a boundary, which are copied until they are many


def added(one: Array | None, other: Array | None) -> Array | None:
    """Sum of what is there."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def boundary_scatter(rows: Array, weights: Array | None, shares: Array) -> Array:
    """Sum over rows of (diag g - g g') x (1, x)(1, x)': how class sums answer to the scores.

    (K - 1, 1 + d, K - 1, 1 + d), for all classes but the last, whose share is what is left.
    """
    if len(shares) == 2:
        counts = shares[0] * shares[1]
        counts = counts if weights is None else counts * weights
        return _scatter_from_one(rows, counts)[None, :, None]
    between = BoundaryRows(1, len(shares))
    between.add(rows, weights, shares)
    return between.scatter()


class BoundaryRows:
    """Rows near a boundary, of several blocks: few a block, so their scatter is summed of many.

    Every ``n``-th row stands for n, where the scatter need not be exact: n for all, or (K, K) for
    any two classes, zero if rows between them are to be left out.
    """

    def __init__(self, n: int | AnyArray, n_classes: int) -> None:
        each = np.broadcast_to(n, (n_classes, n_classes)).tolist()
        pairs = [(k, j) for k in range(n_classes) for j in range(k)]
        self._n_classes = n_classes
        self._between = {(k, j): RowsBetween(int(each[k][j])) for k, j in pairs if each[k][j]}

    def add(self, rows: Array, weights: Array | None, shares: Array) -> None:
        index = None
        if self._n_classes > 2:  # most rows lie between no two classes: do not look for each pair
            index = near_boundary(shares)
            shares = shares[:, index]
        for (k, j), between in self._between.items():
            between.add(rows, weights, shares[k] * shares[j], index)
        self._add_up_if_many()

    def join(self, others: BoundaryRows) -> None:
        """Add rows of later blocks."""
        for pair, between in self._between.items():
            between.join(others._between[pair])
        self._add_up_if_many()

    def scatter(self) -> Array:
        """As ``boundary_scatter``."""
        first = next(iter(self._between.values())).scatter()
        pairs = np.zeros((self._n_classes, self._n_classes, *first.shape))
        for (k, j), between in self._between.items():
            pairs[k, j] = pairs[j, k] = between.scatter()
        return of_pairs(pairs)

    def _add_up_if_many(self) -> None:
        if sum(between.n_waiting for between in self._between.values()) > _MOST_WAITING:
            for between in self._between.values():
                between.scatter()


class RowsBetween:
    """Rows between two classes, every n-th of which stands for n."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._parts: list[tuple[Array, Array]] = []  # rows and what they count
        self.n_waiting = 0  # numbers in them
        self._scatter: Array | None = None

    def add(
        self, rows: Array, weights: Array | None, spread: Array, index: AnyArray | None
    ) -> None:
        """Add rows numbered ``index``, or all, by how much they lie between the two classes."""
        near = self._n * np.flatnonzero(spread[:: self._n] > HARD)
        counts = self._n * spread[near]
        near = near if index is None else index[near]
        self._append((rows[near], counts if weights is None else counts * weights[near]))

    def join(self, others: RowsBetween) -> None:
        for part in others._parts:
            self._append(part)
        self._scatter = added(self._scatter, others._scatter)

    def scatter(self) -> Array:
        """(1 + d, 1 + d): of (1, x)."""
        if self._parts:
            rows, counts = zip(*self._parts, strict=True)
            found = _scatter_from_one(np.concatenate(rows), np.concatenate(counts))
            self._scatter = added(self._scatter, found)
            self._parts, self.n_waiting = [], 0
        assert self._scatter is not None
        return self._scatter

    def _append(self, part: tuple[Array, Array]) -> None:
        self._parts.append(part)
        self.n_waiting += part[0].size


def _scatter_from_one(rows: Array, counts: Array) -> Array:
    """Weighted scatter of the rows (1, x)."""
    root = np.sqrt(counts)
    scaled = np.empty((len(rows), rows.shape[1] + 1))
    scaled[:, 0] = root
    np.multiply(rows, root[:, None], out=scaled[:, 1:])
    return np.asarray(np.dot(scaled.T, scaled))


def of_pairs(pairs: Array) -> Array:
    """The boundary scatter, from that of the rows between any two classes.

    ``pairs`` are (K, K, 1 + d, 1 + d), symmetric in the classes.
    """
    blocks = -pairs[:-1, :-1]
    each = np.arange(len(blocks))
    blocks[each, each] = 0
    blocks[each, each] = pairs[:-1, -1] - blocks.sum(axis=1)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3))


def in_pairs(scatter: Array) -> Array:
    """The way back."""
    n_free, width = scatter.shape[:2]
    blocks = scatter.transpose(0, 2, 1, 3)
    pairs = np.zeros((n_free + 1, n_free + 1, width, width))
    pairs[:-1, :-1] = -blocks
    pairs[:-1, -1] = pairs[-1, :-1] = blocks.sum(axis=1)
    each = np.arange(n_free)
    pairs[each, each] = 0
    return pairs


def between_classes(shares: Array) -> AnyArray:
    """(K, K): how many rows add more than rounding to the scatter between two classes."""
    n_classes = len(shares)
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    for k in range(n_classes):
        for j in range(k):
            counts[k, j] = counts[j, k] = np.count_nonzero(shares[k] * shares[j] > HARD)
    return counts


def near_boundary(shares: Array) -> AnyArray:
    """Numbers of the rows that add to the boundary scatter more than rounding."""
    if len(shares) == 2:
        return np.flatnonzero(shares[0] * shares[1] > HARD)
    return np.flatnonzero(shares.max(axis=0) < 1 - HARD)


def mapped_curvature(curvature: Array, offset: Array, matrix: Array) -> Array:
    """The boundary scatter of ``offset + matrix x`` instead of x."""
    mapping = np.zeros((1 + len(matrix), curvature.shape[1]))
    mapping[0, 0] = 1
    mapping[1:, 0] = offset
    mapping[1:, 1:] = matrix
    return np.asarray(np.einsum("ad,kdje,be->kajb", mapping, curvature, mapping, optimize=True))
