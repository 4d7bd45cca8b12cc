"""Figures of fits and scores, in the style of scikit-learn's displays; needs extra ``plots``."""

from ._decision_boundary import DecisionBoundaryDisplay
from ._discriminant_histogram import DiscriminantHistogramDisplay
from ._reliability import ReliabilityDisplay
from ._scores import ComparisonDisplay, LearningCurveDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionBoundaryDisplay",
    "DiscriminantHistogramDisplay",
    "LearningCurveDisplay",
    "ReliabilityDisplay",
]
