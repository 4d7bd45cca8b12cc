"""Corrections of sums that a device forms in single precision.

Rounding errors of single scores average out over many rows. Those of the origin and of
the rule are common to all rows and would not: here they are computed, and added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._core import Array
from .._core.frame import Frame
from .._core.labelsums import (
    LabelSums,
    LinearRule,
    Rule,
    StackedRules,
)
from .places import Real


def round_origin(frame: Frame, dtype: Real) -> tuple[Frame, Array]:
    """Return the frame with an origin that the dtype can hold, and its change.

    The change of the origin is in coordinates of the given frame.
    """
    rounded = frame.origin.astype(dtype).astype(np.float64)
    change = (rounded - frame.origin) / frame.scale
    return replace(frame, origin=rounded), change


def label_sums_in(
    dtype: Real,
    label_sums: Callable[..., LabelSums],
    rule: Rule,
    frame: Frame,
    centers: Array | None = None,
) -> LabelSums:
    """Return label sums by a function that computes in a dtype.

    The function takes a rule, a frame whose origin the dtype can hold, and centers. It
    corrects the rounding of the rule itself: see ``lost_to_rounding``.
    """
    used_frame, offset = round_origin(frame, dtype)
    # 1. Express the rule and the centers about the rounded origin.
    if isinstance(rule, LinearRule):
        # The tie is as wide as rounding in double precision: widen it.
        widening = np.finfo(dtype).eps / np.finfo(np.float64).eps
        tie = rule.tie * float(widening)
        rule = replace(rule.moved(offset), tie=tie)
    if isinstance(rule, StackedRules):
        rule = rule.moved(offset)
    if centers is not None:
        centers = centers - offset

    # 2. Sums about the rounded origin become those about the origin of the frame.
    sums = label_sums(rule, used_frame, centers)
    class_sums = sums.sums + sums.counts[:, None] * offset
    return replace(sums, sums=class_sums)


def lost_to_rounding(
    rule: LinearRule, sums: LabelSums, dtype: Real = np.float32
) -> float:
    """Return what the sum of log-sum-exp lost when the rule was rounded to a dtype.

    The derivatives of that sum with respect to the rule are the class sums and weights.
    """
    lost_coef = rule.coef - rule.coef.astype(dtype)
    # Classes with a prior of 0 have no rows, and add nothing.
    is_finite = np.isfinite(rule.intercept)
    intercept = np.where(is_finite, rule.intercept, 0.0)
    lost_intercept = intercept - intercept.astype(dtype)

    lost_by_coef = (lost_coef.T * sums.sums).sum()
    lost_by_intercept = lost_intercept @ sums.counts
    return float(lost_by_coef + lost_by_intercept)
