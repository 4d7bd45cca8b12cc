"""What a block adds up to, by which later passes know it again: they add it up anyway."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.frame import Frame
from ..._core.labelsums import LabelSums, LinearRule, Rule
from ..._core.moments import Moments
from ..._core.types import Array
from ..memory import rows_per_block
from .blocks import Known, changed

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Totals:
    """Of the rows of a block that count, in frame coordinates; column by column."""

    sums: Array
    size: Array  # no less than the sum of absolute values, which rounding is relative to


def totals_of(moments: Moments, frame: Frame) -> Totals:
    """What label sums must add up to where every row is shared out whole."""
    squares = np.maximum(np.diag(moments.scatter), 0) + moments.weight * moments.mean**2
    size = np.sqrt(moments.weight) * np.sqrt(squares)  # by the inequality of Cauchy and Schwarz
    if frame.is_foldable:  # rows are added up in the user's units, the origin taken off at the end
        size = size + 2 * moments.weight * np.abs(frame.origin / frame.scale)
    return Totals(moments.weight * moments.mean, size)


def are_whole(rule: Rule) -> bool:
    """Whether the shares of every row add up to 1, so that class sums add up to all rows."""
    return isinstance(rule, LinearRule)


def check_totals(now: LabelSums, then: Totals, known: Known) -> None:
    """ValueError that names the column that differs most, by more than rounding can do."""
    n_classes, n_features = now.sums.shape
    n_rows = 0 if known.look is None else known.look.n_rows
    length = rows_per_block(n_features)
    # Additions that any number goes through: within a block of the arithmetic, of such blocks and
    # of classes. Each rounds once or a few times; eight covers both passes, however BLAS adds.
    n_additions = length + n_rows / length + n_classes
    difference = np.abs(now.sums.sum(axis=0) - then.sums)
    excess = difference - 8 * _EPS * n_additions * then.size
    if not (excess > 0).any():
        return
    column = int(np.nanargmax(excess))
    raise changed(known, f"column {column} adds up to another sum", column)
