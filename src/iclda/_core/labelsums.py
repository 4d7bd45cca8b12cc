"""Rules that label rows, and the class weights and class sums of rows under a rule.

A rule gives every row a share in each class. What a fit needs of the shares are sums
over rows, ``LabelSums``, which are additive over blocks of rows; a ``Tally`` collects
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from . import AnyArray, Array
from .frame import Frame
from .moments import SumsFromZero

# With more classes than this the scatter of hard labels is summed in one product.
_MANY_CLASSES = 32
# Differences of scores are cut here: labels are hard by then, and exponentials are not
# yet denormal, which would be slow.
_MAX_LEAD = 300.0
# Up to this many products of the rows with a vector, BLAS is faster at one after the
# other than at a product with a matrix, for which it copies the rows.
_MAX_SINGLE_PRODUCTS = 3
# Up to this many scores per row, it is faster at (rows, classes) than at its transpose.
_MAX_SCORES_BY_ROWS = 6
# Rounding of a score, relative to the size of its terms.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


class Rule(Protocol):
    """A labeling rule: the share of every row in each class."""

    @property
    def n_classes(self) -> int: ...

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        """Return shares (K, n) and log-sum-exp of the scores (n,) of rows at ``index``.

        For two classes the shares in the second, (1, n), are enough where only these
        are summed. Classes come first: reducing over them is then a sum of long
        contiguous vectors. A part of the scores that is common to all classes, or the
        log-sum-exp, may be left out for ``complete_sums`` to add.
        """


@dataclass(frozen=True)
class LinearRule:
    """Label rows by the scores ``rows @ coef + intercept``.

    A soft rule shares a row by softmax of its scores. A hard rule gives it to the class
    with the largest score; of classes within ``tie`` of the largest the first is taken.
    """

    coef: Array
    intercept: Array
    is_soft: bool
    tie: float = 0.0

    @property
    def n_classes(self) -> int:
        return len(self.intercept)

    def scores(self, rows: AnyArray) -> Array:
        """Return the scores (K, n) of rows."""
        return _linear(rows, self.coef, self.intercept)

    @property
    def _is_finite(self) -> bool:
        # A class with a prior of 0 has the intercept minus infinity.
        return bool(np.isfinite(self.intercept).all())

    @property
    def _has_one_lead(self) -> bool:
        """Whether the difference of two finite scores determines the labels."""
        return self.n_classes == 2 and self._is_finite

    @property
    def ahead_of_first(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of the leads of other classes over the first."""
        coef = self.coef[:, 1:] - self.coef[:, :1]
        intercept = self.intercept[1:] - self.intercept[:1]
        return coef, intercept

    def lead_of_first(self, rows: AnyArray) -> Array:
        """Return how far the first of two classes is ahead, (1, n).

        This takes one product per row instead of two.
        """
        coef, intercept = self.ahead_of_first
        return _linear(rows, -coef, -intercept)

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, Array]:
        if not self._has_one_lead:
            return label(self.scores(rows), is_soft=self.is_soft, tie=self.tie)
        lead = self.lead_of_first(rows)
        if self.is_soft:
            # The shares of the second class are written over the leads.
            log_sums = soft_second_of_two(lead[0], out=lead[0])
            second = lead
        else:
            log_sums = np.maximum(lead[0], 0)
            is_second = lead < -self.tie
            second = is_second.astype(np.float64)
        shares = np.concatenate([1 - second, second])
        return shares, log_sums

    def completed(self, sums: LabelSums) -> LabelSums:
        """Add the scores of the second class, which leads leave out of log-sum-exp."""
        if not self._has_one_lead:
            return sums
        # Scores are affine: their sum over rows needs the sum of the rows only.
        sum_of_rows = sums.sums.sum(axis=0)
        weight = sums.counts.sum()
        left_out = self.coef[:, 1] @ sum_of_rows + self.intercept[1] * weight
        log_sum = sums.log_sum + float(left_out)
        return replace(sums, log_sum=log_sum)

    def knowing(self, total: SumsFromZero | None) -> Rule:
        """Return an equivalent rule with less work if the sum of all rows is known."""
        if total is None or not self._is_finite:
            return self
        kind = SecondOfTwo if self.n_classes == 2 else AllButFirst
        return kind(self, total)

    def folded(self, frame: Frame) -> LinearRule:
        """Return the equivalent rule for rows in the user's units."""
        coef = self.coef / frame.scale[:, None]
        intercept = self.intercept - frame.origin @ coef
        return replace(self, coef=coef, intercept=intercept)

    def moved(self, offset: Array) -> LinearRule:
        """Return the equivalent rule for rows from which an offset was subtracted."""
        intercept = self.intercept + offset @ self.coef
        return replace(self, intercept=intercept)

    def tied_at_rounding(self, offset: Array | float = 0.0) -> LinearRule:
        """Return the rule with a tie so wide that rounding does not change labels.

        Rows are in frame coordinates, of order 1 plus ``offset``. BLAS rounds the score
        of a row differently at another position in a block.
        """
        if self.is_soft:
            return self
        row_size = np.broadcast_to(1 + offset, len(self.coef))
        largest_product = (row_size @ np.abs(self.coef)).max()
        # A class with a prior of 0 does not tie.
        finite = self.intercept[np.isfinite(self.intercept)]
        largest_intercept = np.abs(finite).max(initial=0)
        largest_score = float(largest_product + largest_intercept)
        return replace(self, tie=ROUNDING * largest_score)


@dataclass(frozen=True)
class StackedRules:
    """Several soft linear rules, whose sums are formed in one pass.

    Its classes are those of the first rule, then those of the second, and so on: every
    row has the share 1 in the classes of each.

    Attributes
    ----------
    coef : (M, d, K) array
    intercept : (M, K) array
        Both are arrays of NumPy, or of the device of the rows.
    """

    coef: Any
    intercept: Any

    @property
    def n_classes(self) -> int:
        n_rules, n_classes = self.intercept.shape
        return int(n_rules * n_classes)

    @cached_property
    def _flat(self) -> tuple[Array, Array]:
        """Coefficients (d, M K) and intercepts (M K,) of all classes, in memory."""
        coef = np.concatenate(list(self.coef), axis=1)
        return coef, np.ravel(self.intercept)

    def shares(self, rows: AnyArray, index: slice | AnyArray) -> tuple[Array, None]:
        flat_scores = _linear(rows, *self._flat)
        scores = flat_scores.reshape(*self.intercept.shape, -1)
        shares, _ = label(scores, is_soft=True, out=scores)
        return shares.reshape(flat_scores.shape), None

    def folded(self, frame: Frame) -> StackedRules:
        """Return the equivalent rules for rows in the user's units."""
        coef = self.coef / frame.scale[:, None]
        return StackedRules(coef, self.intercept - frame.origin @ coef)

    def moved(self, offset: Array) -> StackedRules:
        """Return the equivalent rules for rows from which an offset was subtracted."""
        return replace(self, intercept=self.intercept + offset @ self.coef)


@dataclass(frozen=True)
class AllButFirst:
    """A linear rule whose rows are summed for all classes but the first.

    The first class gets what is left of ``total``, the known sums of all rows. Scores
    are relative to those of the class ``reference``: for soft labels, ``completed``
    adds what this leaves out of log-sum-exp.
    """

    reference: ClassVar[int] = 0

    rule: LinearRule
    total: SumsFromZero

    @property
    def n_classes(self) -> int:
        return self.rule.n_classes

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        """Return the shares (K, n) of all classes."""
        is_soft = self.rule.is_soft
        # Relative to itself, the first class has scores of 0.
        scores = np.zeros((self.n_classes, len(rows)))
        _linear(rows, *self.rule.ahead_of_first, out=scores[1:])
        shares, log_sums = label(scores, is_soft=is_soft, tie=self.rule.tie, out=scores)
        return shares, log_sums if is_soft else None

    def completed(self, sums: LabelSums) -> LabelSums:
        """Add the first class, and the scores that were left out of log-sum-exp."""
        rule = self.rule
        total = self.total
        # The first class gets the rest.
        first_count = total.weight - sums.counts.sum()
        first_sum = total.sums - sums.sums.sum(axis=0)
        counts = np.concatenate([[first_count], sums.counts])
        class_sums = np.vstack([first_sum, sums.sums])
        if rule.is_soft:
            # Every row has to get the scores of the reference.
            coef = rule.coef[:, self.reference]
            intercept = rule.intercept[self.reference]
            left_out = coef @ total.sums + intercept * total.weight
        else:
            # With hard labels, log-sum-exp is the score of the row's own class.
            left_out = (rule.coef.T * class_sums).sum() + rule.intercept @ counts
        log_sum = sums.log_sum + float(left_out)
        overlaps = sums.overlaps
        if overlaps is not None:
            # The shares of a row add up to 1, and overlaps with all classes to counts.
            of_first = sums.counts - overlaps.sum(axis=0)
            overlaps = np.vstack([of_first, overlaps])
            of_all = np.concatenate([[first_count - of_first.sum()], of_first])
            overlaps = np.column_stack([of_all, overlaps])
        return replace(
            sums, counts=counts, sums=class_sums, log_sum=log_sum, overlaps=overlaps
        )


@dataclass(frozen=True)
class SecondOfTwo(AllButFirst):
    """A linear rule of two classes whose rows are summed for the second one only.

    It takes the lead of the first class, and one exponential a row.
    """

    reference: ClassVar[int] = 1

    def shares(
        self, rows: AnyArray, index: slice | AnyArray
    ) -> tuple[Array, Array | None]:
        """Return the shares (1, n) in the second class."""
        lead = self.rule.lead_of_first(rows)
        if not self.rule.is_soft:
            is_second = lead < -self.rule.tie
            return is_second.astype(np.float64), None
        # The shares are written over the leads.
        log_sums = soft_second_of_two(lead[0], out=lead[0])
        return lead, log_sums


def _linear(
    rows: AnyArray, coef: Array, intercept: Array, out: Array | None = None
) -> Array:
    """Return the scores (K, n) of rows."""
    n_scores = coef.shape[1]
    if out is None:
        out = np.empty((n_scores, len(rows)))
    if len(rows) == 1:
        # A single row would go through another routine of BLAS, which rounds ties
        # differently.
        twice = np.repeat(rows, 2, axis=0)
        out[...] = _linear(twice, coef, intercept)[:, :1]
        return out
    # Unlike ``@``, ``dot`` lets other threads run whatever the size of its result.
    if n_scores <= _MAX_SINGLE_PRODUCTS:
        for coef_of_class, scores_of_class in zip(coef.T, out, strict=True):
            np.dot(rows, coef_of_class, out=scores_of_class)
    elif n_scores <= _MAX_SCORES_BY_ROWS:
        by_row = np.dot(rows, coef)
        np.add(by_row.T, intercept[:, None], out=out)
        return out
    else:
        np.dot(coef.T, rows.T, out=out)
    out += intercept[:, None]
    return out


def fold(rule: Rule, frame: Frame) -> tuple[Rule, bool]:
    """Express a rule in the user's units if that loses no digits.

    Return the rule, and whether it is in the user's units now. Ties are as wide as
    rounding.
    """
    if isinstance(rule, StackedRules) and frame.is_foldable:
        return rule.folded(frame), True
    if not isinstance(rule, LinearRule):
        return rule, False
    if not frame.is_foldable:
        return rule.tied_at_rounding(), False
    # The rule will be applied to rows that still have their origin, which is of this
    # size in the frame.
    offset = np.abs(frame.origin / frame.scale)
    tied = rule.tied_at_rounding(offset)
    return tied.folded(frame), True


def label(
    scores: Array, *, is_soft: bool, tie: float = 0.0, out: Array | None = None
) -> tuple[Array, Array]:
    """Return shares (..., K, n) and log-sum-exp over the classes of scores (..., K, n).

    Hard labels have the maximum in place of log-sum-exp. Soft shares may be written to
    ``out``, which may be ``scores``.
    """
    largest = scores.max(axis=-2)
    if not is_soft:
        smallest_best = largest - tie
        is_best = scores >= smallest_best[..., None, :]
        has_ties = np.count_nonzero(is_best) > largest.size
        if has_ties:
            # Of classes that tie for a row, the first gets it.
            is_best &= is_best.cumsum(axis=-2) == 1
        return is_best.astype(np.float64), largest
    # Relative to the largest, no score overflows, and the largest share is not 0.
    shares = np.subtract(scores, largest[..., None, :], out=out)
    np.maximum(shares, -_MAX_LEAD, out=shares)
    np.exp(shares, out=shares)
    total = shares.sum(axis=-2)
    inverse_total = 1 / total
    shares *= inverse_total[..., None, :]
    log_sums = largest + np.log(total)
    return shares, log_sums


def soften(scores: Array) -> Array:
    """Return the softmax over the classes of scores (..., K, n)."""
    shares, _ = label(scores, is_soft=True)
    return shares


def second_of_two(lead: Array, out: Array | None = None) -> Array:
    """Return the soft share of the second of two classes, by the lead of the first."""
    if out is None:
        out = np.empty(lead.shape)
    share = _odds(lead, out)
    share += 1
    return np.reciprocal(share, out=share)


def soft_second_of_two(lead: Array, out: Array) -> Array:
    """Write the soft share of the second of two classes to ``out``, maybe ``lead``.

    Return log-sum-exp of both scores less the second one.
    """
    # Where leads are cut, log-sum-exp is the lead itself.
    largest = np.maximum.reduce(lead, axis=None, initial=0)
    uncut_lead = lead.copy() if largest > _MAX_LEAD else None
    _odds(lead, out)
    out += 1
    log_sums = np.asarray(np.log(out))
    if uncut_lead is not None:
        np.maximum(log_sums, uncut_lead, out=log_sums)
    np.reciprocal(out, out=out)
    return log_sums


def _odds(lead: Array, out: Array) -> Array:
    """Write exp(lead) to ``out``, with the lead cut on both sides."""
    np.minimum(lead, _MAX_LEAD, out=out)
    np.maximum(out, -_MAX_LEAD, out=out)
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
    """Per class the weight and the sum of rows; over all rows the sum of log-sum-exp.

    On request also ``scatter`` (d, d) about ``centers`` (K, d): every row counts with
    its distance from the center of each class, times its share in that class;
    ``near`` (n, 1 + d): rows near class boundaries, after their weights; and
    ``overlaps`` (K, K): the products of the shares of every row in two classes.
    """

    counts: Array
    sums: Array
    log_sum: float
    scatter: Array | None = None
    near: Array | None = None
    overlaps: Array | None = None

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            self.counts + other.counts,
            self.sums + other.sums,
            self.log_sum + other.log_sum,
            _joined(self.scatter, other.scatter, np.add),
            _joined(self.near, other.near, _concatenated),
            _joined(self.overlaps, other.overlaps, np.add),
        )


def _joined(
    first: Array | None, second: Array | None, join: Callable[[Array, Array], Array]
) -> Array | None:
    """Join two arrays, either of which may be None."""
    if first is None:
        return second
    if second is None:
        return first
    return np.asarray(join(first, second))


def _concatenated(first: Array, second: Array) -> Array:
    return np.concatenate([first, second])


def with_weights(rows: AnyArray, weights: Array) -> Array:
    """Return rows after their weights, (n, 1 + d)."""
    return np.column_stack([weights, rows])


def scaled(sums: LabelSums, factor: float) -> LabelSums:
    """Return label sums with all weights multiplied by a factor."""
    scatter = sums.scatter
    if scatter is not None:
        scatter = scatter * factor
    near = sums.near
    if near is not None:
        weights = near[:, 0] * factor
        near = with_weights(near[:, 1:], weights)
    overlaps = sums.overlaps
    if overlaps is not None:
        overlaps = overlaps * factor
    return LabelSums(
        sums.counts * factor,
        sums.sums * factor,
        sums.log_sum * factor,
        scatter,
        near,
        overlaps,
    )


def no_label_sums(n_classes: int, n_features: int) -> LabelSums:
    """Return the label sums of no rows."""
    counts = np.zeros(n_classes)
    sums = np.zeros((n_classes, n_features))
    return LabelSums(counts, sums, log_sum=0.0)


def complete_sums(rule: Rule, sums: LabelSums) -> LabelSums:
    """Add the terms that a linear rule leaves out of each row to the sums of all."""
    if isinstance(rule, LinearRule | AllButFirst):
        return rule.completed(sums)
    return sums


class Tally:
    """Label sums accumulated over blocks of rows."""

    def __init__(
        self,
        rule: Rule,
        n_features: int,
        centers: Array | None = None,
        *,
        with_overlaps: bool = False,
    ) -> None:
        n_summed = rule.n_classes
        if isinstance(rule, AllButFirst):
            n_summed -= 1
        self._rule = rule
        self._counts = np.zeros(n_summed)
        self._sums = np.zeros((n_summed, n_features))
        self._log_sum = 0.0
        self._centers = centers
        self._scatter: Array | None = None
        if centers is not None:
            self._scatter = np.zeros((n_features, n_features))
        self._overlaps: Array | None = None
        if with_overlaps:
            self._overlaps = np.zeros((n_summed, n_summed))

    def add(
        self,
        rows: AnyArray,
        used: Array,
        weights: Array | None,
        index: slice | AnyArray,
    ) -> Array:
        """Label ``rows`` and add them to the sums; return their shares.

        The sums are of ``used``, which are these rows in other coordinates.
        """
        shares, log_sums = self._rule.shares(rows, index)
        # All classes, or all but the first.
        n_summed = len(self._counts)
        summed = shares[-n_summed:]
        if weights is not None:
            summed = summed * weights
        if log_sums is not None:
            self._log_sum += _weighted_sum(log_sums, weights)
        self._counts += np.add.reduce(summed, axis=1)
        _add_class_sums(self._sums, summed, used)
        if self._scatter is not None and self._centers is not None:
            self._scatter += _scatter_about(used, summed, self._centers)
        if self._overlaps is not None:
            self._overlaps += np.dot(summed, shares[-n_summed:].T)
        return shares

    def sums(self) -> LabelSums:
        return LabelSums(
            self._counts,
            self._sums,
            self._log_sum,
            self._scatter,
            overlaps=self._overlaps,
        )


def _add_class_sums(sums: Array, shares: Array, rows: Array) -> None:
    """Add the sums of rows over their shares (K, n) in each class to ``sums``."""
    if len(shares) > _MAX_SINGLE_PRODUCTS:
        sums += np.dot(shares, rows)
        return
    for sum_of_class, shares_of_class in zip(sums, shares, strict=True):
        sum_of_class += np.dot(shares_of_class, rows)


def _weighted_sum(values: Array, weights: Array | None) -> float:
    """Return the weighted sum over rows; without weights each row counts once."""
    if weights is None:
        return float(np.add.reduce(values))
    return float(np.dot(weights, values))


def _scatter_about(rows: AnyArray, shares: Array, centers: Array) -> Array:
    """Return the scatter (d, d) of rows about the centers of their classes.

    ``shares`` (K, n) are those of the rows, times their weights.
    """
    has_many_classes = len(centers) > _MANY_CLASSES
    if has_many_classes and (np.count_nonzero(shares, axis=0) <= 1).all():
        # Hard labels take one product for all classes. With a thousand classes, one
        # product for each would take seconds.
        codes = shares.argmax(axis=0)
        weights = shares.sum(axis=0)
        return _scatter_of(rows - centers[codes], weights)
    n_features = rows.shape[1]
    scatter = np.zeros((n_features, n_features))
    for shares_of_class, center in zip(shares, centers, strict=True):
        is_member = shares_of_class > 0
        deviations = rows[is_member] - center
        scatter += _scatter_of(deviations, shares_of_class[is_member])
    return scatter


def _scatter_of(deviations: Array, weights: Array) -> Array:
    """Return the weighted sum (d, d) of the outer squares of deviations."""
    # Each weight enters the product twice, by its root.
    scaled = deviations * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def unfolded(sums: LabelSums, frame: Frame) -> LabelSums:
    """Turn label sums of rows in the user's units into frame coordinates."""
    # Every row of a class has the origin subtracted.
    in_frame = (sums.sums - sums.counts[:, None] * frame.origin) / frame.scale
    near = sums.near
    if near is not None:
        weights = near[:, 0]
        u = frame.apply(near[:, 1:])
        near = with_weights(u, weights)
    return replace(sums, sums=in_frame, near=near)


def within_scatter(about_centers: LabelSums, centers: Array) -> tuple[Array, Array]:
    """Return class means and scatter about them, from scatter about nearby centers."""
    assert about_centers.scatter is not None
    counts = about_centers.counts[:, None]
    # A class without rows keeps its center as its mean.
    has_rows = counts > 0
    divisors = np.where(has_rows, counts, 1.0)
    means = np.where(has_rows, about_centers.sums / divisors, centers)
    # The scatter about a mean is that about any other center less the square of the
    # shift between them.
    shift = (means - centers) * np.sqrt(counts)
    scatter = about_centers.scatter - shift.T @ shift
    return means, scatter
