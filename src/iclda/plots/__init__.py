"""Figures of fits and scores, in the style of scikit-learn's displays; needs extra ``plots``."""

from ._classifier import DecisionBoundaryDisplay, DiscriminantHistogramDisplay
from ._reliability import ReliabilityDisplay
from ._scores import ComparisonDisplay, LearningCurveDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionBoundaryDisplay",
    "DiscriminantHistogramDisplay",
    "LearningCurveDisplay",
    "ReliabilityDisplay",
]
