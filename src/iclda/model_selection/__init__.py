"""Splits, scores, learning curves and rows to label, for data with unlabeled rows."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._system import lazy_names as _lazy_names

if _TYPE_CHECKING:
    from ._rows_to_label import rows_to_label
    from ._scores import (
        LearningCurve,
        semi_supervised_learning_curve,
        semi_supervised_scorer,
    )
    from ._splitters import SemiSupervisedKFold, mask_labels

_HOMES = {
    "LearningCurve": "._scores",
    "SemiSupervisedKFold": "._splitters",
    "mask_labels": "._splitters",
    "rows_to_label": "._rows_to_label",
    "semi_supervised_learning_curve": "._scores",
    "semi_supervised_scorer": "._scores",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
