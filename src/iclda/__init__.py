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
    from ._estimators.ensemble import SemiSupervisedEnsemble
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
    from ._estimators.open_set import OpenSetClassifier
    from ._estimators.pessimistic import PessimisticLDA
    from ._estimators.self_learning import SelfLearningLDA
    from ._estimators.self_training import SelfTrainingLDA
    from ._estimators.supervised import SupervisedLDA
    from ._messages import (
        BrokenCellWarning,
        ColumnError,
        DegenerateFitWarning,
        FitError,
        NothingLearnedWarning,
        NoUnlabeledRowsWarning,
        ParameterError,
    )
    from .model_files import load_model, save_model
    from .studies.compare.api import compare

__version__ = "0.2.0"

# The module of every public name. Names are imported when they are first used, so that
# the command line starts without scikit-learn.
_HOME = {
    "AutoLDA": "._estimators.auto",
    "BrokenCellWarning": "._messages",
    "ColumnError": "._messages",
    "DegenerateFitWarning": "._messages",
    "FitError": "._messages",
    "NoUnlabeledRowsWarning": "._messages",
    "NotConvergedWarning": "._estimators.diagnosis",
    "NothingLearnedWarning": "._messages",
    "OpenSetClassifier": "._estimators.open_set",
    "ParameterError": "._messages",
    "compare": ".studies.compare.api",
    "load_model": ".model_files",
    "save_model": ".model_files",
}
for _method in (*_FITTED, *_FURTHER):
    _HOME[_method.class_name] = f"._estimators.{_method.module}"
__all__ = sorted(_HOME)

_MODULES = {
    "model_selection": ".model_selection",
    "plots": ".plots",
    "rows": ".rows",
    "tabular": ".tabular",
}
__getattr__, __dir__ = _lazy_names(__name__, {**_HOME, **_MODULES})
