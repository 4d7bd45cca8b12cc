"""Class counts and class sums of rows under a labeling rule: additive over blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .frame import Frame
from .types import AnyArray, Array

_HARD = 1e-9  # a share this near to 1 is a label


class Rule(Protocol):
    """Gives every row its share in each class."""

    @property
    def n_classes(self) -> int: ...

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, Array]:
        """(K, n) shares and (n,) log-sum-exp of the scores of the rows numbered ``index``.

        Classes come first: reducing over them is then a sum of long contiguous vectors.
        """
        ...


@dataclass(frozen=True)
class LinearRule:
    """Label rows by the scores ``rows @ coef + intercept``: the largest, or softly by softmax."""

    coef: Array  # (d, K)
    intercept: Array  # (K,)
    is_soft: bool

    @property
    def n_classes(self) -> int:
        return len(self.intercept)

    def scores(self, rows: AnyArray) -> Array:
        """(K, n)."""
        # A single row would go through another routine of BLAS, which rounds ties differently.
        is_single = len(rows) == 1
        scores: Array = self.coef.T @ (np.repeat(rows, 2, axis=0) if is_single else rows).T
        scores = scores[:, :1] if is_single else scores
        scores += self.intercept[:, None]
        return scores

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, Array]:
        return label(self.scores(rows), is_soft=self.is_soft)

    def folded(self, frame: Frame) -> LinearRule:
        """The same rule for rows in the user's units."""
        coef = self.coef / frame.scale[:, None]
        return replace(self, coef=coef, intercept=self.intercept - frame.origin @ coef)


def fold(rule: Rule, frame: Frame) -> tuple[Rule, bool]:
    """The rule for rows in the user's units, and whether it is one: if that costs no digits."""
    if isinstance(rule, LinearRule) and frame.is_foldable:
        return rule.folded(frame), True
    return rule, False


def label(scores: Array, *, is_soft: bool) -> tuple[Array, Array]:
    """Shares and log-sum-exp (hard: maximum) of scores (..., K, n), over the classes."""
    top = scores.max(axis=-2)
    if is_soft:
        shares = soften(scores)
        return shares, top - np.log(shares.max(axis=-2))
    shares = np.zeros_like(scores)
    np.put_along_axis(shares, scores.argmax(axis=-2)[..., None, :], 1.0, axis=-2)
    return shares, top


def soften(scores: Array) -> Array:
    """Softmax of scores (..., K, n) over the classes."""
    if scores.shape[-2] == 2:  # one exponential a row instead of two, and no maximum
        shares = np.empty_like(scores)
        odds = scores[..., 0, :] - scores[..., 1, :]
        np.exp(np.clip(odds, -700, 700, out=odds), out=odds)
        odds += 1
        np.reciprocal(odds, out=shares[..., 1, :])
        np.subtract(1, shares[..., 1, :], out=shares[..., 0, :])
        return shares
    shares = np.asarray(scores - scores.max(axis=-2, keepdims=True))
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=-2, keepdims=True)
    return shares


@dataclass(frozen=True)
class GivenLabels:
    """Rows whose labels are known: codes 0..K-1 (negative: leave out), or an (n, K) matrix."""

    labels: AnyArray
    n_classes: int

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, Array]:
        labels = self.labels[index]
        if labels.ndim == 2:
            return np.ascontiguousarray(labels.T, dtype=np.float64), np.zeros(len(labels))
        shares = np.zeros((self.n_classes, len(labels)))
        shares[labels, np.arange(len(labels))] = 1.0
        return shares, np.zeros(len(labels))


@dataclass(frozen=True)
class LabelSums:
    """Per class: weight and sum of rows; over all rows: sum of log-sum-exp; more on request.

    ``scatter`` (d, d) is about ``centers`` (K, d): every row counts with its distance from the
    center of each class, times its share in it. ``curvature`` is the scatter of the rows near the
    boundaries, see ``boundary_scatter``.
    """

    counts: Array
    sums: Array
    log_sum: float
    scatter: Array | None = None
    curvature: Array | None = None

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            self.counts + other.counts,
            self.sums + other.sums,
            self.log_sum + other.log_sum,
            _added(self.scatter, other.scatter),
            _added(self.curvature, other.curvature),
        )


def _added(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def scaled(sums: LabelSums, factor: float) -> LabelSums:
    """Label sums with all weights multiplied."""
    return LabelSums(
        sums.counts * factor,
        sums.sums * factor,
        sums.log_sum * factor,
        None if sums.scatter is None else sums.scatter * factor,
        None if sums.curvature is None else sums.curvature * factor,
    )


def no_label_sums(n_classes: int, n_features: int) -> LabelSums:
    return LabelSums(np.zeros(n_classes), np.zeros((n_classes, n_features)), 0.0)


def label_sums_of_block(
    rows: AnyArray,
    weights: Array | None,
    shares: Array,
    log_sums: Array,
    centers: Array | None = None,
) -> LabelSums:
    """Label sums of one block, in the coordinates of ``rows``."""
    if weights is not None:
        shares = shares * weights
    log_sum = float(log_sums.sum() if weights is None else weights @ log_sums)
    sums = np.asarray(shares @ rows, dtype=np.float64)
    scatter = None if centers is None else _scatter_about(rows, shares, centers)
    return LabelSums(shares.sum(axis=1), sums, log_sum, scatter)


def _scatter_about(rows: AnyArray, shares: Array, centers: Array) -> Array:
    scatter = np.zeros((rows.shape[1], rows.shape[1]))
    for share, center in zip(shares, centers, strict=True):
        is_member = share > 0
        deviations = (rows[is_member] - center) * np.sqrt(share[is_member])[:, None]
        scatter += deviations.T @ deviations
    return scatter


def boundary_scatter(u: Array, weights: Array | None, shares: Array) -> Array:
    """Sum over rows of (diag g - g g') x (1, u)(1, u)': how class sums answer to the scores.

    (K - 1, 1 + d, K - 1, 1 + d), for all classes but the last, whose share is what is left.
    """
    n_free, width = len(shares) - 1, u.shape[1] + 1
    ones = np.column_stack([np.ones(len(u)), u])
    scatter = np.empty((n_free, width, n_free, width))
    for k in range(n_free):
        for j in range(k + 1):
            spread = shares[k] * (float(j == k) - shares[j])
            spread = spread if weights is None else spread * weights
            block = (ones * spread[:, None]).T @ ones
            scatter[k, :, j] = block
            scatter[j, :, k] = block.T
    return scatter


def is_near_boundary(shares: Array) -> AnyArray:
    """Rows that add to the boundary scatter more than rounding."""
    return np.asarray(shares.max(axis=0) < 1 - _HARD)


def unfolded(sums: LabelSums, frame: Frame) -> LabelSums:
    """Label sums of rows in the user's units, turned into frame coordinates."""
    in_frame = (sums.sums - sums.counts[:, None] * frame.origin) / frame.scale
    return replace(sums, sums=in_frame)


def within_scatter(about_centers: LabelSums, centers: Array) -> tuple[Array, Array]:
    """Class means and scatter about them, from label sums with scatter about nearby centers."""
    assert about_centers.scatter is not None
    counts = about_centers.counts
    divisor = np.where(counts > 0, counts, 1.0)[:, None]
    means = np.where(counts[:, None] > 0, about_centers.sums / divisor, centers)
    shift = (means - centers) * np.sqrt(counts)[:, None]
    return means, about_centers.scatter - shift.T @ shift
