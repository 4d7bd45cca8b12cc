"""Functions of blocks of rows that the methods of a fitted classifier apply.

Rows may be an array of NumPy or of any library that follows the array API standard, on any device:
results are of the same library, on the same device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from ._core.frame import Frame
from ._core.gaussian import Gaussians
from ._core.labelsums import LinearRule
from ._core.types import AnyArray

OfBlock = Callable[[Any], Any]  # (n, d) rows -> n results, nothing across rows


def scores(rule: LinearRule) -> OfBlock:
    """(n, K) scores of a rule for rows in the user's units."""

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return rule.scores(rows).T
        return rows @ _beside(rows, rule.coef) + _beside(rows, rule.intercept)

    return of_block


def linear_scores(rule: LinearRule, frame: Frame) -> OfBlock:
    """(n, K) scores of a rule in frame coordinates."""
    if frame.is_foldable:
        return scores(rule.folded(frame))
    return composed(_in_frame(frame), scores(rule))


def class_scores(rule: LinearRule, frame: Frame) -> OfBlock:
    """(n, K): log posterior up to a constant of the row.

    The rule gives scores of all classes; of two classes, the second's advantage over the first.
    """

    def of_two(ahead: Any) -> Any:
        # Less the larger of the two, so that odds of infinity (a prior of 0) leave no NaN.
        xp = array_namespace(ahead)
        none = xp.zeros_like(ahead)
        return xp.concat([xp.minimum(-ahead, none), xp.minimum(ahead, none)], axis=1)

    by_rule = linear_scores(rule, frame)
    return by_rule if rule.n_classes > 1 else composed(by_rule, of_two)


def log_joint(model: Gaussians) -> OfBlock:
    """(n, K): log of prior times density of every row in every class."""
    to_frame = _in_frame(model.frame)

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return model.log_joint(rows)
        s = (to_frame(rows) - _beside(rows, model.center)) @ _beside(rows, model.projection.T)
        distance = array_namespace(rows).sum(s**2, axis=1)
        # At the center of the rows s is 0: what is left there is all but the distance.
        at_center = model.log_joint(model.frame.restore(model.center)[None])[0]
        return s @ _beside(rows, model.class_points.T) + (
            _beside(rows, at_center) - distance[:, None] / 2
        )

    return of_block


def softmax(scores: Any) -> Any:
    """(n, K): shares of the classes."""
    xp = array_namespace(scores)
    shares = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return shares / xp.sum(shares, axis=1, keepdims=True)


def logsumexp(scores: Any) -> Any:
    """(n,): logarithm of the sum over classes of exp."""
    xp = array_namespace(scores)
    top = xp.max(scores, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(scores - top), axis=1)) + top[:, 0]


def log_softmax(scores: Any) -> Any:
    """(n, K): logarithms of the shares of the classes."""
    xp = array_namespace(scores)
    ahead = scores - xp.max(scores, axis=1, keepdims=True)
    return ahead - xp.log(xp.sum(xp.exp(ahead), axis=1, keepdims=True))


def most_probable(classes: AnyArray) -> OfBlock:
    """(n,): the class with the highest score; names of classes come back as NumPy arrays."""

    def of_scores(scores: Any) -> Any:
        xp = array_namespace(scores)
        codes = xp.argmax(scores, axis=1)
        if isinstance(scores, np.ndarray):
            return classes[codes]
        if classes.dtype.kind not in "biuf":
            from ._rows.array_api.devices import to_host

            return classes[to_host(codes)]
        return xp.take(xp.asarray(classes, device=device(scores)), codes, axis=0)

    return of_scores


def composed(of_block: OfBlock, then: Callable[[Any], Any]) -> OfBlock:
    """A function of the results of a function of rows."""
    return lambda rows: then(of_block(rows))


def _in_frame(frame: Frame) -> OfBlock:
    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return frame.apply(rows)
        return (rows - _beside(rows, frame.origin)) / _beside(rows, frame.scale)

    return of_block


def _beside(rows: Any, array: AnyArray) -> Any:
    """An array from memory where the rows are, in their dtype."""
    xp = array_namespace(rows)
    return xp.asarray(np.ascontiguousarray(array), dtype=rows.dtype, device=device(rows))
