"""What the methods of a fitted classifier compute of a block of rows.

Rows may be an array of NumPy or of any library that follows the array API standard, on
any device: results are of the same library, on the same device. Scores of two classes
are often given as the lead (n, 1) of the second class over the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from .._core import AnyArray
from .._core.frame import Frame
from .._core.gaussian import Gaussians
from .._core.labelsums import LinearRule
from .._rows.places import to_host
from .._rows.views import View, as_floating, placed_like

# With more classes than this, their codes do not fit into a byte.
_MAX_BYTE_CLASSES = 255

OfBlock = Callable[[Any], Any]


@dataclass(frozen=True)
class RowFunction:
    """A function of rows in two steps: rows to numbers, and numbers to results.

    Both steps take and return one entry per row, and look at no other row. Callers look
    at the numbers in between: where one is NaN or infinite, so is a cell of its row.

    Attributes
    ----------
    of_block : callable
        (n, d) rows -> (n, m) numbers.
    uses_all_features : bool
        Whether NaN and infinity in any feature show in the numbers.
    of_numbers : callable or None
        (n, m) numbers -> n results; None: the numbers are the results.
    """

    of_block: OfBlock
    uses_all_features: bool
    of_numbers: OfBlock | None = None

    def numbers(self, rows: Any) -> Any:
        """Return the numbers of a block of rows."""
        # The caller looks for NaN and infinity: NumPy need not warn of them.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.of_block(rows)

    def result(self, numbers: Any) -> Any:
        """Return the results of some numbers."""
        if self.of_numbers is None:
            return numbers
        return self.of_numbers(numbers)

    def __call__(self, rows: Any) -> Any:
        return self.result(self.numbers(rows))

    def then(self, of_numbers: OfBlock) -> RowFunction:
        """Return the function whose results are made of these numbers."""
        return replace(self, of_numbers=of_numbers)

    def of_viewed(self, view: View | None) -> RowFunction:
        """Return the function of rows that a view maps first."""
        if view is None:
            return self
        of_block = self.of_block

        def of_mapped(rows: Any) -> Any:
            mapped = view(as_floating(rows))
            return of_block(mapped)

        # NaN and infinity in any column show in all features of a view that mixes them.
        mixes_columns = not view.keeps_columns
        uses_all = self.uses_all_features or mixes_columns
        return replace(self, of_block=of_mapped, uses_all_features=uses_all)


def scores(rule: LinearRule) -> RowFunction:
    """Return the scores (n, K) of a rule for rows in the user's units."""

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            by_class = rule.scores(rows)
            return by_class.T
        coef = placed_like(rows, rule.coef)
        intercept = placed_like(rows, rule.intercept)
        return rows @ coef + intercept

    return RowFunction(of_block, _uses_all(rule.coef))


def linear_scores(rule: LinearRule, frame: Frame) -> RowFunction:
    """Return the scores (n, K) of a rule in frame coordinates."""
    # A folded rule takes rows in the user's units, which saves a copy of them.
    if frame.is_foldable:
        return scores(rule.folded(frame))
    of_frame = scores(rule)

    def of_block(rows: Any) -> Any:
        u = _in_frame(rows, frame)
        return of_frame.of_block(u)

    return replace(of_frame, of_block=of_block)


def imputed_shares(rule: LinearRule, frame: Frame) -> RowFunction:
    """Return the shares (n, K) that a labeling rule in frame coordinates gives rows."""
    return linear_scores(rule, frame).then(posteriors)


def _uses_all(coef: AnyArray) -> bool:
    """Return whether no feature has only zeros in (d, m) coefficients.

    BLAS is free to leave out features that are multiplied by zero only.
    """
    is_used = np.any(coef, axis=1)
    return bool(is_used.all())


def log_joint(model: Gaussians) -> RowFunction:
    """Return the log of prior times density of rows in every class, (n, K)."""

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return model.log_joint(rows)
        if model.complement is not None:
            # A model of few rows of many features, which were fitted in memory.
            in_memory = model.log_joint(to_host(rows))
            return placed_like(rows, in_memory)
        xp = array_namespace(rows)
        u = _in_frame(rows, model.frame) - placed_like(rows, model.center)
        # Coordinates s with unit covariance within classes, about the center.
        s = u @ placed_like(rows, model.projection.T)
        squared_distance = xp.sum(s**2, axis=1, keepdims=True)
        along_means = s @ placed_like(rows, model.class_points.T)
        # At the center s is 0: the constant of each class is left.
        center = model.frame.restore(model.center)[None]
        constants = placed_like(rows, model.log_joint(center)[0])
        return along_means + (constants - squared_distance / 2)

    return RowFunction(of_block, _uses_all(model.projection.T))


def posteriors(class_scores: Any) -> Any:
    """Return the softmax over classes (n, K) of scores or of a lead."""
    class_scores = _of_every_class(class_scores)
    xp = array_namespace(class_scores)
    # The largest exponent is 0: nothing overflows.
    top = xp.max(class_scores, axis=1, keepdims=True)
    shares = xp.exp(class_scores - top)
    shares /= xp.sum(shares, axis=1, keepdims=True)
    return shares


def log_posteriors(class_scores: Any) -> Any:
    """Return the logarithms of ``posteriors``."""
    class_scores = _of_every_class(class_scores)
    xp = array_namespace(class_scores)
    # Relative to the largest score nothing overflows.
    relative = class_scores - xp.max(class_scores, axis=1, keepdims=True)
    total = xp.sum(xp.exp(relative), axis=1, keepdims=True)
    return relative - xp.log(total)


def clipped_shares(predicted: Any) -> Any:
    """Return probabilities (n, K) from least squares predictions or from their lead.

    Predictions are clipped at 0 and scaled to add up to 1. The smallest normal number
    stands for 0, so that logarithms are finite.
    """
    xp = array_namespace(predicted)
    # Predictions of two classes add up to 1, and the lead is their difference.
    if predicted.shape[1] == 1:
        lead = predicted
        predicted = xp.concat([1 - lead, 1 + lead], axis=1) / 2
    # Predictions add up to 1, so that the largest is at least 1 / K, except for
    # rounding of huge predictions: raise these.
    largest = xp.max(predicted, axis=1, keepdims=True)
    missing = 1 / predicted.shape[1] - largest
    # array-api-compat 1.9 takes the integer 0 for an array of integers.
    missing = xp.clip(missing, min=0.0)
    shares = xp.clip(predicted + missing, min=0.0)
    shares /= xp.sum(shares, axis=1, keepdims=True)
    smallest_normal = float(xp.finfo(shares.dtype).smallest_normal)
    return xp.clip(shares, min=smallest_normal)


def log_clipped_shares(predicted: Any) -> Any:
    """Return the logarithms of ``clipped_shares``."""
    shares = clipped_shares(predicted)
    return array_namespace(shares).log(shares)


def _of_every_class(class_scores: Any) -> Any:
    """Return scores (n, K); a lead becomes two scores of which the larger is 0.

    Infinite odds, of a prior of 0, then leave no NaN.
    """
    if class_scores.shape[1] > 1:
        return class_scores
    xp = array_namespace(class_scores)
    lead = class_scores
    zero = xp.zeros_like(lead)
    first = xp.minimum(-lead, zero)
    second = xp.minimum(lead, zero)
    if isinstance(lead, np.ndarray):
        # In this layout each class is contiguous: later steps go class by class.
        by_class = np.vstack([first.ravel(), second.ravel()])
        return by_class.T
    return xp.concat([first, second], axis=1)


def logsumexp(class_scores: Any) -> Any:
    """Return the log of the sum of exp over classes, (n,), which may be -inf."""
    xp = array_namespace(class_scores)
    top = xp.max(class_scores, axis=1, keepdims=True)
    # If all scores are -inf, their difference to the largest would be NaN.
    top = xp.where(xp.isinf(top), xp.zeros_like(top), top)
    exponentials = xp.exp(class_scores - top)
    total = xp.sum(exponentials, axis=1)
    with np.errstate(divide="ignore"):
        return xp.log(total) + top[:, 0]


def one_or_all(class_scores: Any) -> Any:
    """Return scores (n, K) as they are, and a lead as a vector (n,)."""
    is_lead = class_scores.shape[1] == 1
    return class_scores[:, 0] if is_lead else class_scores


def most_probable(classes: AnyArray, class_scores: Any) -> Any:
    """Return the class of the highest score, (n,).

    Classes that are not numbers come back as a NumPy array.
    """
    if isinstance(class_scores, np.ndarray):
        best = _first_largest(class_scores.T)
        return classes[best]
    xp = array_namespace(class_scores)
    codes = xp.argmax(_of_every_class(class_scores), axis=1)
    # No device can hold text.
    if classes.dtype.kind not in "biuf":
        return classes[to_host(codes)]
    on_device = xp.asarray(classes, device=device(class_scores))
    return xp.take(on_device, codes, axis=0)


def _first_largest(class_scores: AnyArray) -> AnyArray:
    """Return the index of the first of the largest of (K, n) scores."""
    n_classes, n_rows = class_scores.shape
    if n_classes == 1:
        is_second = np.asarray(class_scores[0] > 0)
        return is_second.astype(np.intp)
    if n_classes > _MAX_BYTE_CLASSES:
        return np.asarray(class_scores.argmax(axis=0))
    # ``argmax`` would go through the classes row by row; this takes a few operations on
    # all rows for each class.
    best = class_scores[0].copy()
    codes = np.zeros(n_rows, dtype=np.uint8)
    for k in range(1, n_classes):
        is_better = class_scores[k] > best
        # Later classes have larger codes: the maximum is the code of the last one that
        # was better than all before it.
        code_if_better = is_better.view(np.uint8) * np.uint8(k)
        np.maximum(codes, code_if_better, out=codes)
        np.maximum(best, class_scores[k], out=best)
    return codes.astype(np.intp)


def _in_frame(rows: Any, frame: Frame) -> Any:
    """Return rows in frame coordinates, in their library."""
    if isinstance(rows, np.ndarray):
        return frame.apply(rows)
    centered = rows - placed_like(rows, frame.origin)
    return centered / placed_like(rows, frame.scale)
