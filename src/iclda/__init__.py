"""Semi-supervised linear discriminant analysis."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._system import lazy_names as _lazy_names
from .methods import FITTED as _FITTED
from .methods import FURTHER as _FURTHER

if _TYPE_CHECKING:
    from . import model_selection as model_selection
    from . import plots as plots
    from . import rows as rows
    from . import tabular as tabular
    from ._estimators.auto import AutoLDA
    from ._estimators.average import AverageLDA
    from ._estimators.diagnosis import NotConvergedWarning
    from ._estimators.expectation_maximization import ExpectationMaximizationLDA
    from ._estimators.graph_regularized import SemiSupervisedDiscriminantAnalysis
    from ._estimators.implicitly_constrained import ImplicitlyConstrainedLDA
    from ._estimators.least_squares import (
        ImplicitlyConstrainedLeastSquares,
        LeastSquaresClassifier,
        SelfLearningLeastSquares,
    )
    from ._estimators.moment_constrained import MomentConstrainedLDA
    from ._estimators.nearest_mean import (
        ExpectationMaximizationNearestMean,
        MomentConstrainedNearestMean,
        NearestMean,
    )
    from ._estimators.normalized import NormalizedLDA
    from ._estimators.pessimistic import PessimisticLDA
    from ._estimators.self_learning import SelfLearningLDA
    from ._estimators.self_training import SelfTrainingLDA
    from ._estimators.supervised import SupervisedLDA
    from ._messages import (
        ColumnError,
        DegenerateFitWarning,
        NothingLearnedWarning,
        NoUnlabeledRowsWarning,
        ParameterError,
    )
    from .model_files import load_model, save_model
    from .studies.compare.api import compare

__version__ = "0.2.0"

_HOME = {
    **{
        method.class_name: f"._estimators.{method.module}"
        for method in (*_FITTED, *_FURTHER)
    },
    **dict.fromkeys(
        ("ColumnError", "ParameterError", "DegenerateFitWarning"), "._messages"
    ),
    **dict.fromkeys(("NoUnlabeledRowsWarning", "NothingLearnedWarning"), "._messages"),
    **dict.fromkeys(("load_model", "save_model"), ".model_files"),
    "AutoLDA": "._estimators.auto",
    "NotConvergedWarning": "._estimators.diagnosis",
    "compare": ".studies.compare.api",
}
_MODULES = ("model_selection", "plots", "rows", "tabular")
__all__ = sorted(_HOME)
# The command line starts without scikit-learn.
__getattr__, __dir__ = _lazy_names(
    __name__, {**_HOME, **{name: f".{name}" for name in _MODULES}}
)
