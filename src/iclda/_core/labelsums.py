"""Class counts and class sums of rows under a labeling rule: additive over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from . import AnyArray, Array
from .frame import Frame
from .moments import SumsFromZero

_MANY_CLASSES = 32  # from which on the scatter of hard labels is summed at once
# Largest difference of scores: labels are hard there, and exponentials not yet denormal (slow).
_LARGEST_LEAD = 300.0
_SCORES_BY_ROWS = 6  # up to so many scores a row BLAS is faster at rows x classes
ROUNDING = 16 * float(
    np.finfo(np.float64).eps
)  # of a score, over the size of its terms


class Rule(Protocol):
    """A labeling rule: the share of every row in each class."""

    @property
    def n_classes(self) -> int: ...

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        """(K, n) shares and (n,) log-sum-exp of the scores of the rows at ``index``.

        For two classes, (1, n) shares in the second are enough where only that is summed. Classes
        come first: reducing over them is then a sum of long contiguous vectors. A part of the
        scores common to all classes, or log-sum-exp, may be left out for ``complete_sums`` to add.
        """


@dataclass(frozen=True)
class LinearRule:
    """Label rows by the scores ``rows @ coef + intercept``: the largest, or softly by softmax."""

    coef: Array  # (d, K)
    intercept: Array  # (K,)
    is_soft: bool
    tie: float = (
        0.0  # hard labels: of classes this near to the best one the first is taken
    )

    @property
    def n_classes(self) -> int:
        return len(self.intercept)

    def scores(self, rows: AnyArray) -> Array:
        """Return the scores (K, n) of rows."""
        return _linear(rows, self.coef, self.intercept)

    @property
    def _is_finite(self) -> bool:
        return bool(np.isfinite(self.intercept).all())

    @property
    def _is_lead_enough(self) -> bool:
        return self.n_classes == 2 and self._is_finite

    @property
    def ahead_of_first(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of the leads of all other classes over the first."""
        return self.coef[:, 1:] - self.coef[:, :1], self.intercept[1:] - self.intercept[
            :1
        ]

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, Array]:
        if not self._is_lead_enough:
            return label(self.scores(rows), is_soft=self.is_soft, tie=self.tie)
        lead = self.lead_of_first(rows)
        if self.is_soft:
            second, log_sums = lead, soft_second_of_two(lead[0], out=lead[0])
        else:
            log_sums = np.maximum(lead[0], 0)
            second = (lead < -self.tie).astype(np.float64)
        return np.concatenate([1 - second, second]), log_sums

    def lead_of_first(self, rows: AnyArray) -> Array:
        """(1, n): how far the first of two classes is ahead; one product a row instead of two."""
        coef, intercept = self.ahead_of_first
        return _linear(rows, -coef, -intercept)

    def completed(self, sums: LabelSums) -> LabelSums:
        if not self._is_lead_enough:
            return sums
        second = (
            self.coef[:, 1] @ sums.sums.sum(axis=0)
            + self.intercept[1] * sums.counts.sum()
        )
        return replace(sums, log_sum=sums.log_sum + float(second))

    def knowing(self, total: SumsFromZero | None) -> Rule:
        """Equivalent rule with less work a row, where the sum of all rows is known."""
        return (
            AllButFirst(self, total) if total is not None and self._is_finite else self
        )

    def folded(self, frame: Frame) -> LinearRule:
        """Equivalent rule for rows in the user's units."""
        coef = self.coef / frame.scale[:, None]
        return replace(self, coef=coef, intercept=self.intercept - frame.origin @ coef)

    def moved(self, offset: Array) -> LinearRule:
        """Equivalent rule for rows less an offset."""
        return replace(self, intercept=self.intercept + offset @ self.coef)

    def tied_at_rounding(self, offset: Array | float = 0.0) -> LinearRule:
        """The rule with a tie so wide that rounding of the scores does not change labels.

        Rows are in frame coordinates, of order 1 plus ``offset``. BLAS rounds the score of a row
        differently at another place in a block.
        """
        if self.is_soft:
            return self
        size = (np.broadcast_to(1 + offset, len(self.coef)) @ np.abs(self.coef)).max()
        common = np.abs(self.intercept[np.isfinite(self.intercept)]).max(initial=0)
        return replace(self, tie=ROUNDING * float(size + common))


@dataclass(frozen=True)
class LexicographicRule:
    """Label rows by the largest first score; classes that tie share a row by the second ones."""

    first: LinearRule
    second: LinearRule
    margin: float  # classes this near to the largest first score tie

    @property
    def n_classes(self) -> int:
        return self.first.n_classes

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, None]:
        first, second = self.first.scores(rows), self.second.scores(rows)
        return lexicographic_shares(first, second, self.margin), None


def lexicographic_shares(
    first: Any, second: Any, margin: float, xp: Any = np, axis: int = 0
) -> Any:
    """Shares of the classes along an axis, by the scores of a lexicographic rule."""
    is_tied = first >= xp.max(first, axis=axis, keepdims=True) - margin
    return tied_shares(second, is_tied, xp, axis)


def tied_shares(scores: Any, is_tied: Any, xp: Any = np, axis: int = 0) -> Any:
    """Softmax over those classes, along an axis, that tie; the others have no share."""
    scores = xp.where(is_tied, scores, -xp.inf)
    shares = xp.exp(scores - xp.max(scores, axis=axis, keepdims=True))
    return shares / xp.sum(shares, axis=axis, keepdims=True)


@dataclass(frozen=True)
class AllButFirst:
    """A linear rule that sums rows for all classes but the first, which gets what is left."""

    rule: LinearRule
    total: SumsFromZero  # of all rows

    @property
    def n_classes(self) -> int:
        return self.rule.n_classes

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        is_soft, tie = self.rule.is_soft, self.rule.tie
        if self.n_classes == 2:
            lead = self.rule.lead_of_first(rows)
            if not is_soft:
                return (lead < -tie).astype(np.float64), None
            return lead, soft_second_of_two(lead[0], out=lead[0])
        scores = np.zeros((self.n_classes, len(rows)))
        _linear(rows, *self.rule.ahead_of_first, out=scores[1:])
        shares, log_sums = label(scores, is_soft=is_soft, tie=tie, out=scores)
        return shares, log_sums if is_soft else None

    def completed(self, sums: LabelSums) -> LabelSums:
        rule, total = self.rule, self.total
        counts = np.concatenate([[total.weight - sums.counts.sum()], sums.counts])
        class_sums = np.vstack([total.sums - sums.sums.sum(axis=0), sums.sums])
        if rule.is_soft:
            common = (
                1 if self.n_classes == 2 else 0
            )  # the class whose scores were left out
            left_out = (
                rule.coef[:, common] @ total.sums
                + rule.intercept[common] * total.weight
            )
        else:
            left_out = (rule.coef.T * class_sums).sum() + rule.intercept @ counts
        return replace(
            sums, counts=counts, sums=class_sums, log_sum=sums.log_sum + float(left_out)
        )


def _linear(
    rows: AnyArray, coef: Array, intercept: Array, out: Array | None = None
) -> Array:
    """(K, n): scores of rows."""
    if out is None:
        out = np.empty((coef.shape[1], len(rows)))
    if len(rows) == 1:
        # A single row would go through another routine of BLAS, which rounds ties differently.
        out[...] = _linear(np.repeat(rows, 2, axis=0), coef, intercept)[:, :1]
        return out
    # Unlike ``@``, ``dot`` lets other threads run whatever the size of its result.
    if coef.shape[1] == 1:
        np.dot(rows, coef[:, 0], out=out[0])
    elif coef.shape[1] <= _SCORES_BY_ROWS:
        np.add(np.dot(rows, coef).T, intercept[:, None], out=out)
        return out
    else:
        np.dot(coef.T, rows.T, out=out)
    out += intercept[:, None]
    return out


def fold(rule: Rule, frame: Frame) -> tuple[Rule, bool]:
    """Express a rule in the user's units if that loses no digits; also return whether it was."""
    if not isinstance(rule, LinearRule):
        return rule, False
    if not frame.is_foldable:
        return rule.tied_at_rounding(), False
    return rule.tied_at_rounding(np.abs(frame.origin / frame.scale)).folded(frame), True


def label(
    scores: Array, *, is_soft: bool, tie: float = 0.0, out: Array | None = None
) -> tuple[Array, Array]:
    """Shares (..., K, n) and log-sum-exp (hard: maximum) over the classes of scores (..., K, n).

    Soft shares may be written to ``out``, which may be ``scores``.
    """
    top = scores.max(axis=-2)
    if not is_soft:
        is_best = scores >= (top - tie)[..., None, :]
        if (
            np.count_nonzero(is_best) > top.size
        ):  # of classes that tie for a row the first
            is_best &= is_best.cumsum(axis=-2) == 1
        return is_best.astype(np.float64), top
    shares = np.subtract(scores, top[..., None, :], out=out)
    np.maximum(shares, -_LARGEST_LEAD, out=shares)
    np.exp(shares, out=shares)
    total = shares.sum(axis=-2)
    shares *= (1 / total)[..., None, :]
    return shares, top + np.log(total)


def soften(scores: Array) -> Array:
    """Softmax over the classes (..., K, n)."""
    return label(scores, is_soft=True)[0]


def second_of_two(lead: Array, out: Array | None = None) -> Array:
    """Soft share of the second of two classes, from how far the first is ahead."""
    share = _odds(lead, np.empty(lead.shape) if out is None else out)
    share += 1
    return np.reciprocal(share, out=share)


def soft_second_of_two(lead: Array, out: Array) -> Array:
    """Write the soft share of the second of two classes; return log-sum-exp less its score.

    ``out`` may be ``lead``.
    """
    is_far = np.maximum.reduce(lead, axis=None, initial=0) > _LARGEST_LEAD
    far = lead.copy() if is_far else None
    _odds(lead, out)
    out += 1
    log_sums = np.asarray(np.log(out))
    if far is not None:
        np.maximum(log_sums, far, out=log_sums)
    np.reciprocal(out, out=out)
    return log_sums


def _odds(lead: Array, out: Array) -> Array:
    np.minimum(lead, _LARGEST_LEAD, out=out)
    np.maximum(out, -_LARGEST_LEAD, out=out)
    return np.exp(out, out=out)


@dataclass(frozen=True)
class GivenLabels:
    """Rows whose labels are known: codes 0..K-1, or an (n, K) matrix."""

    labels: AnyArray
    n_classes: int

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        labels = self.labels[index]
        if labels.ndim == 2:
            return np.ascontiguousarray(labels.T, dtype=np.float64), None
        shares = np.zeros((self.n_classes, len(labels)))
        shares[labels, np.arange(len(labels))] = 1.0
        return shares, None


@dataclass(frozen=True)
class LabelSums:
    """Per class: weight and sum of rows; over all rows: sum of log-sum-exp; more on request.

    ``scatter`` (d, d) is about ``centers`` (K, d): every row counts with its distance from the
    center of each class, times its share in it. ``near`` (n, 1 + d) are rows near class
    boundaries, after their weights.
    """

    counts: Array
    sums: Array
    log_sum: float
    scatter: Array | None = None
    near: Array | None = None

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            self.counts + other.counts,
            self.sums + other.sums,
            self.log_sum + other.log_sum,
            _joined(self.scatter, other.scatter, np.add),
            _joined(self.near, other.near, lambda *parts: np.concatenate(parts)),
        )


def _joined(
    one: Array | None, other: Array | None, join: Callable[..., Any]
) -> Array | None:
    """Join two arrays, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return np.asarray(join(one, other))


def with_weights(rows: AnyArray, weights: Array) -> Array:
    """(n, 1 + d): rows after their weights."""
    return np.column_stack([weights, rows])


def scaled(sums: LabelSums, factor: float) -> LabelSums:
    """Label sums with all weights multiplied."""
    return LabelSums(
        sums.counts * factor,
        sums.sums * factor,
        sums.log_sum * factor,
        None if sums.scatter is None else sums.scatter * factor,
        None
        if sums.near is None
        else with_weights(sums.near[:, 1:], sums.near[:, 0] * factor),
    )


def no_label_sums(n_classes: int, n_features: int) -> LabelSums:
    return LabelSums(np.zeros(n_classes), np.zeros((n_classes, n_features)), 0.0)


def complete_sums(rule: Rule, sums: LabelSums) -> LabelSums:
    """Complete the sums of all rows by the terms that a linear rule leaves out of each row."""
    return rule.completed(sums) if isinstance(rule, LinearRule | AllButFirst) else sums


class Tally:
    """Label sums accumulated over blocks of rows."""

    def __init__(
        self, rule: Rule, n_features: int, centers: Array | None = None
    ) -> None:
        self._rule = rule
        n_summed = (
            rule.n_classes - 1 if isinstance(rule, AllButFirst) else rule.n_classes
        )
        self._counts = np.zeros(n_summed)
        self._sums = np.zeros((n_summed, n_features))
        self._log_sum = 0.0
        self._centers = centers
        self._scatter = None if centers is None else np.zeros((n_features, n_features))

    def add(
        self,
        rows: AnyArray,
        used: Array,
        weights: Array | None,
        index: slice | AnyArray,
    ) -> Array:
        """Label ``rows``, add ``used`` (the same rows in other coordinates), return the shares."""
        shares, log_sums = self._rule.shares(rows, index)
        summed = shares[-len(self._counts) :]
        if weights is not None:
            summed = summed * weights
        if log_sums is not None:
            total = (
                np.add.reduce(log_sums)
                if weights is None
                else np.dot(weights, log_sums)
            )
            self._log_sum += float(total)
        self._counts += np.add.reduce(summed, axis=1)
        self._sums += np.dot(summed, used)
        if self._scatter is not None and self._centers is not None:
            self._scatter += _scatter_about(used, summed, self._centers)
        return shares

    def sums(self) -> LabelSums:
        return LabelSums(self._counts, self._sums, self._log_sum, self._scatter)


def _scatter_about(rows: AnyArray, shares: Array, centers: Array) -> Array:
    if len(centers) > _MANY_CLASSES and (np.count_nonzero(shares, axis=0) <= 1).all():
        # One product for all classes: with a thousand of them, one for each takes seconds.
        deviations = (rows - centers[shares.argmax(axis=0)]) * np.sqrt(
            shares.sum(axis=0)
        )[:, None]
        return np.asarray(deviations.T @ deviations)
    scatter = np.zeros((rows.shape[1], rows.shape[1]))
    for share, center in zip(shares, centers, strict=True):
        is_member = share > 0
        deviations = (rows[is_member] - center) * np.sqrt(share[is_member])[:, None]
        scatter += deviations.T @ deviations
    return scatter


def unfolded(sums: LabelSums, frame: Frame) -> LabelSums:
    """Label sums of rows in the user's units, turned into frame coordinates."""
    in_frame = (sums.sums - sums.counts[:, None] * frame.origin) / frame.scale
    near = sums.near
    if near is not None:
        near = with_weights(frame.apply(near[:, 1:]), near[:, 0])
    return replace(sums, sums=in_frame, near=near)


def within_scatter(about_centers: LabelSums, centers: Array) -> tuple[Array, Array]:
    """Class means and scatter about them, from label sums with scatter about nearby centers."""
    assert about_centers.scatter is not None
    counts = about_centers.counts
    divisor = np.where(counts > 0, counts, 1.0)[:, None]
    means = np.where(counts[:, None] > 0, about_centers.sums / divisor, centers)
    shift = (means - centers) * np.sqrt(counts)[:, None]
    return means, about_centers.scatter - shift.T @ shift
