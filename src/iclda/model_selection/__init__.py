"""Cross-validation, scores, learning curves, rows to label: for partly labeled data."""

from ._rows_to_label import rows_to_label
from ._scores import (
    LearningCurve,
    semi_supervised_learning_curve,
    semi_supervised_scorer,
)
from ._splitters import SemiSupervisedKFold, mask_labels

__all__ = [
    "LearningCurve",
    "SemiSupervisedKFold",
    "mask_labels",
    "rows_to_label",
    "semi_supervised_learning_curve",
    "semi_supervised_scorer",
]
