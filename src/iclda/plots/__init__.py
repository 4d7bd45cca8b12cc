"""Figures of fits and scores, in the style of scikit-learn's displays.

They need the extra ``plots``.
"""

from ._decision_boundary import DecisionBoundaryDisplay
from ._scores import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay

__all__ = [
    "ComparisonDisplay",
    "DecisionBoundaryDisplay",
    "LearningCurveDisplay",
    "ReliabilityDisplay",
]
