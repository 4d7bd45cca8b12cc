"""Semi-supervised linear discriminant analysis."""

from ._expectation_maximization import ExpectationMaximizationLDA
from ._implicitly_constrained import ImplicitlyConstrainedLDA
from ._moment_constrained import MomentConstrainedLDA
from ._self_learning import SelfLearningLDA
from ._supervised import SupervisedLDA

__all__ = [
    "ExpectationMaximizationLDA",
    "ImplicitlyConstrainedLDA",
    "MomentConstrainedLDA",
    "SelfLearningLDA",
    "SupervisedLDA",
]

__version__ = "0.1.0.dev0"
