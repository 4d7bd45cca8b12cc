"""Functions of blocks of rows that the methods of a fitted classifier apply.

Rows may be an array of NumPy or of any library that follows the array API standard, on any device:
results are of the same library, on the same device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from .._core import AnyArray
from .._core.frame import Frame
from .._core.gaussian import Gaussians
from .._core.labelsums import LexicographicRule, LinearRule, lexicographic_shares
from .._rows.places import to_host

_MOST_IN_TURN = 255  # classes, whose codes fit into a byte

OfBlock = Callable[[Any], Any]  # (n, d) rows -> n results, nothing across rows


@dataclass(frozen=True)
class Numbers:
    """(n, m) numbers of rows; where they use all features, NaN and infinity show in them."""

    of_block: OfBlock
    use_all_features: bool

    def __call__(self, rows: Any) -> Any:
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # looked at when all are there
            return self.of_block(rows)


def scores(rule: LinearRule) -> Numbers:
    """(n, K) scores of a rule for rows in the user's units."""

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return rule.scores(rows).T
        return rows @ _beside(rows, rule.coef) + _beside(rows, rule.intercept)

    return Numbers(of_block, _is_used(rule.coef))


def linear_scores(rule: LinearRule, frame: Frame) -> Numbers:
    """(n, K) scores of a rule in frame coordinates."""
    if frame.is_foldable:
        return scores(rule.folded(frame))
    of_frame = scores(rule)
    return Numbers(
        lambda rows: of_frame(_in_frame(rows, frame)), of_frame.use_all_features
    )


def imputed(
    rule: LinearRule | LexicographicRule, frame: Frame
) -> tuple[Numbers, Callable[[Any], Any]]:
    """Numbers of rows, and their shares (n, K) from these, of a rule in frame coordinates."""
    if isinstance(rule, LinearRule):
        return linear_scores(rule, frame), posteriors
    first, second = rule.first, rule.second
    both = LinearRule(
        np.hstack([first.coef, second.coef]),
        np.r_[first.intercept, second.intercept],
        is_soft=True,
    )

    def of_scores(scores: Any) -> Any:
        xp, n_classes = array_namespace(scores), rule.n_classes
        parts = scores[:, :n_classes], scores[:, n_classes:]
        return lexicographic_shares(*parts, rule.margin, xp, axis=1)

    return linear_scores(both, frame), of_scores


def _is_used(coef: AnyArray) -> bool:
    """(d, m): whether no feature is multiplied by zero only, which BLAS is free to leave out."""
    return bool(np.any(coef, axis=1).all())


def log_joint(model: Gaussians) -> Numbers:
    """(n, K): log of prior times density of every row in every class."""

    def of_block(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            return model.log_joint(rows)
        if (
            model.complement is not None
        ):  # of few rows of many features, fitted in memory
            return _beside(rows, model.log_joint(to_host(rows)))
        u = _in_frame(rows, model.frame) - _beside(rows, model.center)
        s = u @ _beside(rows, model.projection.T)
        distance = array_namespace(rows).sum(s**2, axis=1)
        # At the center of the rows s is 0: what is left there is all but the distance.
        at_center = model.log_joint(model.frame.restore(model.center)[None])[0]
        return s @ _beside(rows, model.class_points.T) + (
            _beside(rows, at_center) - distance[:, None] / 2
        )

    return Numbers(of_block, _is_used(model.projection.T))


def posteriors(scores: Any) -> Any:
    """(n, K): softmax over the classes, from scores as in ``log_posteriors``."""
    scores = _of_every_class(scores)
    xp = array_namespace(scores)
    shares = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    shares /= xp.sum(shares, axis=1, keepdims=True)
    return shares


def clipped_shares(scores: Any) -> Any:
    """Probabilities (n, K) from least squares predictions: clipped at 0, scaled to add up to 1.

    Predictions are (n, K), or the lead (n, 1) of the second of two classes. The smallest normal
    number stands for 0, so that logarithms are finite.
    """
    xp = array_namespace(scores)
    if scores.shape[1] == 1:
        scores = xp.concat([1 - scores, 1 + scores], axis=1) / 2
    # Predictions add up to 1, so that the largest is at least 1 / K, except for rounding of
    # huge predictions.
    scores = scores + xp.clip(
        1 / scores.shape[1] - xp.max(scores, axis=1, keepdims=True), min=0.0
    )
    shares = xp.clip(
        scores, min=0.0
    )  # array-api-compat 1.9 takes integers for those of x
    shares /= xp.sum(shares, axis=1, keepdims=True)
    return xp.clip(shares, min=float(xp.finfo(shares.dtype).smallest_normal))


def log_clipped_shares(scores: Any) -> Any:
    shares = clipped_shares(scores)
    return array_namespace(shares).log(shares)


def log_posteriors(scores: Any) -> Any:
    """Log posteriors (n, K), from scores (n, K) or the lead (n, 1) of the second of two classes."""
    scores = _of_every_class(scores)
    xp = array_namespace(scores)
    ahead = scores - xp.max(scores, axis=1, keepdims=True)
    return ahead - xp.log(xp.sum(xp.exp(ahead), axis=1, keepdims=True))


def _of_every_class(scores: Any) -> Any:
    """Return scores (n, K); a lead (n, 1) becomes two scores of which the larger is 0.

    Infinite odds, of a prior of 0, then leave no NaN.
    """
    if scores.shape[1] > 1:
        return scores
    xp = array_namespace(scores)
    none = xp.zeros_like(scores)
    both = [xp.minimum(-scores, none), xp.minimum(scores, none)]
    if isinstance(scores, np.ndarray):
        return (
            np.hstack([np.ravel(a) for a in both]).reshape(2, -1).T
        )  # faster class by class
    return xp.concat(both, axis=1)


def logsumexp(scores: Any) -> Any:
    """(n,): logarithm of the sum over classes of exp; minus infinity where all of them are."""
    xp = array_namespace(scores)
    top = xp.max(scores, axis=1, keepdims=True)
    top = xp.where(xp.isinf(top), xp.zeros_like(top), top)
    with np.errstate(divide="ignore"):
        return xp.log(xp.sum(xp.exp(scores - top), axis=1)) + top[:, 0]


def one_or_all(scores: Any) -> Any:
    """Return scores (n, K) as they are, and a lead (n, 1) as a vector."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def most_probable(classes: AnyArray, scores: Any) -> Any:
    """(n,): the class with the highest score; names of classes come back as NumPy arrays.

    Scores are as in ``log_posteriors``.
    """
    if isinstance(scores, np.ndarray):
        return classes[_first_largest(scores.T)]
    xp = array_namespace(scores)
    codes = xp.argmax(_of_every_class(scores), axis=1)
    if classes.dtype.kind not in "biuf":
        return classes[to_host(codes)]
    return xp.take(xp.asarray(classes, device=device(scores)), codes, axis=0)


def _first_largest(scores: AnyArray) -> AnyArray:
    """(n,): index of the largest of (K, n) scores, the first of them if there are several."""
    if len(scores) == 1:
        return np.asarray(scores[0] > 0).astype(np.intp)
    if len(scores) > _MOST_IN_TURN:
        return np.asarray(scores.argmax(axis=0))
    # A few operations on all rows for each class: ``argmax`` goes through the classes row by row.
    best, codes = scores[0].copy(), np.zeros(scores.shape[1], dtype=np.uint8)
    for k in range(1, len(scores)):
        is_better = scores[k] > best
        np.maximum(codes, is_better.view(np.uint8) * np.uint8(k), out=codes)
        np.maximum(best, scores[k], out=best)
    return codes.astype(np.intp)


def composed(of_block: OfBlock, then: Callable[[Any], Any]) -> OfBlock:
    """A function of the results of a function of rows."""
    return lambda rows: then(of_block(rows))


def _in_frame(rows: Any, frame: Frame) -> Any:
    if isinstance(rows, np.ndarray):
        return frame.apply(rows)
    return (rows - _beside(rows, frame.origin)) / _beside(rows, frame.scale)


def _beside(rows: Any, array: AnyArray) -> Any:
    """An array from memory where the rows are, in their dtype."""
    xp = array_namespace(rows)
    return xp.asarray(
        np.ascontiguousarray(array), dtype=rows.dtype, device=device(rows)
    )
