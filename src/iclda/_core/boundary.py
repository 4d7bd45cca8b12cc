"""Scatter of the rows near class boundaries: the derivative of class sums by the scores."""

from __future__ import annotations

import numpy as np

from .types import AnyArray, Array

HARD = 1e-12  # a share this near to 1 is a label
FAINT = 1e-4  # rows that count no more than this are left out of a scatter that is not exact
_MOST_WAITING = 2**19  # entries of rows near a boundary that are collected before a product


def added(one: Array | None, other: Array | None) -> Array | None:
    """Sum; None counts as zero."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


class BoundaryRows:
    """Collects rows near a boundary over several blocks and sums their scatter.

    Every ``n``-th row counts n times where the scatter need not be exact: n for all, or (K, K)
    powers of two for any two classes, zero to leave out the rows between them.
    """

    def __init__(self, n: int | AnyArray, n_classes: int) -> None:
        each = np.broadcast_to(n, (n_classes, n_classes)).tolist()
        pairs = [(k, j) for k in range(n_classes) for j in range(k)]
        self._each = {(k, j): int(each[k][j]) for k, j in pairs if each[k][j]}
        self._every = min(self._each.values())
        self._least = HARD if np.ndim(n) == 0 else FAINT
        self._n_classes = n_classes
        self._waiting: list[tuple[Array, Array, Array]] = []  # rows, shares and weights
        self._n_waiting = 0  # numbers in their rows
        self._pairs: Array | None = None  # (K, K, 1 + d, 1 + d)

    def add(self, rows: Array, weights: Array | None, shares: Array) -> None:
        """Add rows with their shares (K, n), or (1, n) in the second of two classes."""
        near = self._every * self._near(shares[:, :: self._every])
        weights = np.ones(len(near)) if weights is None else weights[near]
        self._append((rows[near], shares[:, near], weights))

    def _near(self, shares: Array) -> AnyArray:
        """Indices of the rows that count, and of some more where that is faster to find."""
        if len(self._each) >= self._n_classes or len(shares) <= 2:
            return near_boundary(shares, self._least)
        return np.flatnonzero(sum(between(shares, k, j) for k, j in self._each) > self._least)

    def join(self, others: BoundaryRows) -> None:
        """Add rows of later blocks."""
        self._pairs = added(self._pairs, others._pairs)
        for part in others._waiting:
            self._append(part)

    def scatter(self) -> Array:
        """As ``of_pairs``."""
        self._add_up()
        assert self._pairs is not None
        return of_pairs(self._pairs)

    def _append(self, part: tuple[Array, Array, Array]) -> None:
        self._waiting.append(part)
        self._n_waiting += part[0].size
        if self._n_waiting > _MOST_WAITING:
            self._add_up()

    def _add_up(self) -> None:
        if not self._waiting:
            return
        rows, shares, weights = (
            np.concatenate(parts, axis=-2 if i == 0 else -1)
            for i, parts in enumerate(zip(*self._waiting, strict=True))
        )
        self._waiting, self._n_waiting = [], 0
        width = 1 + rows.shape[1]
        pairs = np.zeros((self._n_classes, self._n_classes, width, width))
        for (k, j), n in self._each.items():
            some = slice(None, None, n // self._every)
            spread = between(shares[:, some], k, j)
            counts = n * spread * weights[some]
            if self._n_classes == 2:  # all collected rows count
                found = _scatter_from_one(rows, counts)
            else:
                near = np.flatnonzero(spread > self._least)
                found = _scatter_from_one(rows[some][near], counts[near])
            pairs[k, j] = pairs[j, k] = found
        self._pairs = added(self._pairs, pairs)


def between(shares: Array, k: int, j: int) -> Array:
    """g_k g_j of every row, from shares (K, n), or (1, n) in the second of two classes."""
    return np.asarray(shares[0] * (1 - shares[0]) if len(shares) == 1 else shares[k] * shares[j])


def _scatter_from_one(rows: Array, counts: Array) -> Array:
    """Weighted scatter of the rows (1, x)."""
    root = np.sqrt(counts)
    scaled = np.empty((len(rows), rows.shape[1] + 1))
    scaled[:, 0] = root
    np.multiply(rows, root[:, None], out=scaled[:, 1:])
    return np.asarray(np.dot(scaled.T, scaled))


def of_pairs(pairs: Array) -> Array:
    """The boundary scatter, from that of the rows between any two classes.

    It is the sum over rows of (diag g - g g') x (1, x)(1, x)', the derivative of class sums by the
    scores: (K - 1, 1 + d, K - 1, 1 + d), for all classes but the last, whose scores are held.
    ``pairs`` are (K, K, 1 + d, 1 + d), symmetric in the classes: g_k g_j x (1, x)(1, x)'.
    """
    blocks = -pairs[:-1, :-1]
    each = np.arange(len(blocks))
    blocks[each, each] = 0
    blocks[each, each] = pairs[:-1, -1] - blocks.sum(axis=1)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3))


def in_pairs(scatter: Array) -> Array:
    """Inverse of ``of_pairs``."""
    n_free, width = scatter.shape[:2]
    blocks = scatter.transpose(0, 2, 1, 3)
    pairs = np.zeros((n_free + 1, n_free + 1, width, width))
    pairs[:-1, :-1] = -blocks
    pairs[:-1, -1] = pairs[-1, :-1] = blocks.sum(axis=1)
    each = np.arange(n_free)
    pairs[each, each] = 0
    return pairs


def between_classes(shares: Array) -> AnyArray:
    """(K, K): number of rows between two classes that count for an approximate scatter."""
    n_classes = max(2, len(shares))
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    for k in range(n_classes):
        for j in range(k):
            counts[k, j] = counts[j, k] = np.count_nonzero(between(shares, k, j) > FAINT)
    return counts


def near_boundary(shares: Array, least: float = HARD) -> AnyArray:
    """Indices of the rows whose share in the boundary scatter exceeds ``least``."""
    if len(shares) <= 2:
        return np.flatnonzero(between(shares, 0, -1) > least)
    return np.flatnonzero(shares.max(axis=0) < 1 - least)


def mapped_curvature(curvature: Array, offset: Array, matrix: Array) -> Array:
    """The boundary scatter of ``offset + matrix x`` instead of x."""
    mapping = np.zeros((1 + len(matrix), curvature.shape[1]))
    mapping[0, 0] = 1
    mapping[1:, 0] = offset
    mapping[1:, 1:] = matrix
    return np.asarray(np.einsum("ad,kdje,be->kajb", mapping, curvature, mapping, optimize=True))
