"""Functions of blocks of rows that the methods of a fitted classifier apply."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._core.frame import Frame
from ._core.labelsums import LinearRule
from ._core.types import AnyArray, Array

OfBlock = Callable[[AnyArray], AnyArray]  # (n, d) rows -> n results, nothing across rows


def linear_scores(rule: LinearRule, frame: Frame) -> OfBlock:
    """(n, K) scores of a rule in frame coordinates."""
    if frame.is_foldable:
        folded = rule.folded(frame)
        return lambda rows: folded.scores(rows).T
    return lambda rows: rule.scores(frame.apply(rows)).T


def class_scores(rule: LinearRule, frame: Frame) -> OfBlock:
    """(n, K): log posterior up to a constant of the row.

    The rule gives scores of all classes; of two classes, the second's advantage over the first.
    """
    scores_of = linear_scores(rule, frame)

    def of_block(rows: AnyArray) -> Array:
        scores = scores_of(rows)
        if scores.shape[1] > 1:
            return scores
        # Less the larger of the two, so that odds of infinity (a prior of 0) leave no NaN.
        return np.column_stack([np.minimum(-scores, 0), np.minimum(scores, 0)])

    return of_block


def composed(of_block: OfBlock, then: Callable[[AnyArray], AnyArray]) -> OfBlock:
    """A function of the results of a function of rows."""
    return lambda rows: then(of_block(rows))
