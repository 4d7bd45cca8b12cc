"""Sums of a block of rows on a device, by functions of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._core.labelsums import (
    GivenLabels,
    LinearRule,
    Rule,
    StackedRules,
)
from .._core.rows import HARD, multiplicities, scrambled
from .places import Place, to_host

# Rows of one product where there is no double precision.
_SINGLE_PRODUCT_ROWS = 512

# Takes rows and their indices; returns their (K, n) shares, and (n,) log-sum-exp.
Labeler = Callable[[Any, "slice | AnyArray"], tuple[Any, Any]]


def labeler_of(rule: Rule, place: Place) -> Labeler:
    """Return a function that labels rows on a device by a rule for rows in the frame.

    The rule is moved to the device once. The log-sum-exp is 0 for rules without scores.
    """
    if isinstance(rule, LinearRule):
        return _linear_labeler(rule, place)
    if isinstance(rule, StackedRules):
        return _stacked_labeler(rule, place)
    assert isinstance(rule, GivenLabels)
    return _given_labeler(rule, place)


def _linear_labeler(rule: LinearRule, place: Place) -> Labeler:
    scores_of = _scorer_of(rule, place)

    def by_scores(rows: Any, index: slice | AnyArray) -> tuple[Any, Any]:
        scores = scores_of(rows)
        return place.label(scores, is_soft=rule.is_soft, tie=rule.tie)

    return by_scores


def _stacked_labeler(rules: StackedRules, place: Place) -> Labeler:
    xp = place.xp
    n_rules, n_classes = rules.intercept.shape
    # Scores of all rules are one product.
    coef = xp.reshape(xp.matrix_transpose(place.put(rules.coef)), (rules.n_classes, -1))
    intercept = xp.reshape(place.put(rules.intercept), (-1, 1))

    def by_all_scores(rows: Any, index: slice | AnyArray) -> tuple[Any, Any]:
        flat_scores = xp.matmul(coef, rows.T) + intercept
        scores = xp.reshape(flat_scores, (n_rules, n_classes, -1))
        shares, _ = place.label(scores, is_soft=True)
        return xp.reshape(shares, (rules.n_classes, -1)), _no_log_sums(rows)

    return by_all_scores


def _given_labeler(rule: GivenLabels, place: Place) -> Labeler:
    xp = place.xp
    is_matrix = rule.labels.ndim == 2
    # Labels are moved at once: moving those of each block takes longer than the sums.
    labels = place.put(rule.labels) if is_matrix else place.put_as_is(rule.labels)
    classes = xp.arange(rule.n_classes, dtype=labels.dtype, device=place.device)

    def as_given(rows: Any, index: slice | AnyArray) -> tuple[Any, Any]:
        taken = place.take(labels, index)
        if is_matrix:
            return taken.T, _no_log_sums(rows)
        shares = xp.astype(taken[None, :] == classes[:, None], place.dtype)
        return shares, _no_log_sums(rows)

    return as_given


def _no_log_sums(rows: Any) -> Any:
    """Return (n,) zeros in the dtype of the rows and on their device."""
    return 0 * rows[:, 0]


def _scorer_of(rule: LinearRule, place: Place) -> Callable[[Any], Any]:
    """Return a function that computes the (K, n) scores of rows on a device."""
    coef = place.put(rule.coef.T)
    intercept = place.put(rule.intercept[:, None])
    return lambda rows: place.xp.matmul(coef, rows.T) + intercept


@dataclass(frozen=True)
class DeviceBlock:
    """Some rows in frame coordinates, in the dtype of their device.

    Attributes
    ----------
    place : Place
        The device.
    rows : (n, d) array
    weights : (n,) array or None
        None: all weights are 1.
    index : slice or array
        Indices of the rows among all rows. An array may be on the device.
    """

    place: Place
    rows: Any
    weights: Any
    index: Any

    def moments(self) -> list[Any]:
        """Return weighted sums of u and u u': (1, d), (d, d)."""
        weights = self._weighted(self._ones.T)
        sums = self._product(weights, self.rows)
        weighted_rows = self._weighted(self.rows.T)
        squares = self._product(weighted_rows, self.rows)
        return [sums, squares]

    def label_sums(
        self, labeler: Labeler, centers: Any, *, with_overlaps: bool
    ) -> list[Any]:
        """Return class weights (K, 1), class sums (K, d) and log-sum-exp (1, 1).

        After these come the overlaps (K, K) of the classes if they are asked for, and
        the scatter (d, d) about the centers of the classes if there are centers, which
        are on the device.
        """
        shares, log_sums = labeler(self.rows, self.index)
        weighted = self._weighted(shares)
        weighted_log_sums = self._weighted(log_sums[None, :])
        # Sums of numbers are products with ones, too, which keep their digits in single
        # precision.
        counts = self._product(weighted, self._ones)
        class_sums = self._product(weighted, self.rows)
        log_sum = self._product(weighted_log_sums, self._ones)
        sums = [counts, class_sums, log_sum]
        if with_overlaps:
            overlaps = self._product(weighted, shares.T)
            sums.append(overlaps)
        if centers is not None:
            scatter = self._scatter_about(centers, weighted)
            sums.append(scatter)
        return sums

    def _scatter_about(self, centers: Any, weighted: Any) -> Any:
        """Return the scatter (d, d) about the centers, by weighted shares (K, n).

        One product is enough for all classes. A row of weight 1 with shares s_k in
        classes with centers c_k has the mean center m = sum s_k c_k. Its scatter about
        the centers is that about m, plus s_j s_k (c_j - c_k) (c_j - c_k)' summed over
        the pairs of classes, of which hard labels have none.
        """
        xp = self.place.xp
        # 1. The scatter about the mean center of each row.
        weights = xp.sum(weighted, axis=0)
        shares = weighted / xp.where(weights > 0, weights, 1.0)
        deviations = self.rows - xp.matmul(shares.T, centers)
        about_means = self._product(weights * deviations.T, deviations)

        # 2. The pairs. A class makes none with itself: that term would cancel in the
        # end, and cost digits where hardly any row is shared.
        overlaps = self._product(weighted, shares.T)
        is_own = xp.eye(
            overlaps.shape[0], dtype=self.place.dtype, device=self.place.device
        )
        pairs = overlaps * (1 - is_own)
        laplacian = is_own * xp.sum(pairs, axis=1) - pairs
        return about_means + xp.matmul(centers.T, xp.matmul(laplacian, centers))

    def near_boundary(self, labeler: Labeler, every: AnyArray) -> Array:
        """Return rows near class boundaries, after their weights; see ``Near``."""
        place = self.place
        xp = place.xp
        # 1. A row is near a boundary unless one class has all of it.
        shares, _ = labeler(self.rows, self.index)
        best, _ = place.label(shares, is_soft=False)
        shares_of_others = xp.sum(shares * (1 - best), axis=0)
        is_near = shares_of_others > HARD

        # 2. One of ``counts`` rows is returned, chosen by the scrambled index.
        counts = multiplicities(shares, place.put_as_is(every), xp)
        mixed = scrambled(self.index)
        if isinstance(mixed, np.ndarray):
            mixed = place.put_as_is(mixed.astype(every.dtype))
        is_chosen = is_near & (mixed % counts == 0)

        # 3. Rows of weight 0 are not members.
        weights = self._weighted(xp.astype(counts, place.dtype))
        is_chosen = is_chosen & (weights > 0)

        # 4. Copy the chosen rows, after their weights, into memory.
        chosen = np.flatnonzero(to_host(is_chosen))
        n_chosen = len(chosen)
        if place.is_compiled:
            # Compile one shape for all numbers of rows up to a power of two.
            chosen = np.resize(chosen, 1 << n_chosen.bit_length())
        placed_index = place.put_as_is(chosen)
        chosen_weights = xp.take(weights[:, None], placed_index, axis=0)
        chosen_rows = xp.take(self.rows, placed_index, axis=0)
        taken = to_host(xp.concat([chosen_weights, chosen_rows], axis=1))
        return taken[:n_chosen].astype(np.float64)

    @cached_property
    def _ones(self) -> Any:
        place = self.place
        shape = (self.rows.shape[0], 1)
        return place.xp.ones(shape, dtype=place.dtype, device=place.device)

    def _weighted(self, values: Any) -> Any:
        """Return (p, n) values times the weights."""
        return values if self.weights is None else values * self.weights

    def _product(self, left: Any, right: Any) -> Any:
        """Return (p, n) x (n, q).

        Single precision keeps its digits over few rows only: products of few rows each
        are formed there, and added up.
        """
        xp = self.place.xp
        n_rows, width = right.shape
        if self.place.is_double or n_rows <= _SINGLE_PRODUCT_ROWS:
            return xp.matmul(left, right)
        # 1. Divide the rows into chunks, but for a rest: the product of all chunks is
        # (chunks, p, rows) x (chunks, rows, q).
        n_chunks = n_rows // _SINGLE_PRODUCT_ROWS
        n_whole = n_chunks * _SINGLE_PRODUCT_ROWS
        left_shape = (left.shape[0], n_chunks, _SINGLE_PRODUCT_ROWS)
        left_by_row = xp.reshape(left[:, :n_whole], left_shape)
        left_chunks = xp.permute_dims(left_by_row, (1, 0, 2))
        right_shape = (n_chunks, _SINGLE_PRODUCT_ROWS, width)
        right_chunks = xp.reshape(right[:n_whole, :], right_shape)

        # 2. Add up the products of the chunks, and that of the rest.
        products = xp.matmul(left_chunks, right_chunks)
        rest = xp.matmul(left[:, n_whole:], right[n_whole:, :])
        return xp.sum(products, axis=0) + rest
