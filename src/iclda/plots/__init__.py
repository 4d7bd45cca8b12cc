"""Figures of fits and scores, in the style of scikit-learn's displays; needs extra ``plots``."""

from ._comparison_display import ComparisonDisplay
from ._decision_boundary import DecisionBoundaryDisplay
from ._discriminant_histogram import DiscriminantHistogramDisplay
from ._learning_curve_display import LearningCurveDisplay
from ._reliability import ReliabilityDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionBoundaryDisplay",
    "DiscriminantHistogramDisplay",
    "LearningCurveDisplay",
    "ReliabilityDisplay",
]
