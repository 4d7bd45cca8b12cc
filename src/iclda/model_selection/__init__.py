"""Choose and judge semi-supervised classifiers: unlabeled rows train and are never scored."""

from ._learning_curve import LearningCurve, semi_supervised_learning_curve
from ._masking import mask_labels
from ._scorers import semi_supervised_scorer
from ._splitters import SemiSupervisedKFold, SemiSupervisedShuffleSplit

__all__ = [
    "LearningCurve",
    "SemiSupervisedKFold",
    "SemiSupervisedShuffleSplit",
    "mask_labels",
    "semi_supervised_learning_curve",
    "semi_supervised_scorer",
]
