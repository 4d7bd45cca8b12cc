"""Semi-supervised linear discriminant analysis."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from . import rows as rows
    from ._expectation_maximization import ExpectationMaximizationLDA
    from ._implicitly_constrained import ImplicitlyConstrainedLDA
    from ._messages import ColumnError, NoUnlabeledRowsWarning, ParameterError
    from ._moment_constrained import MomentConstrainedLDA
    from ._self_learning import SelfLearningLDA
    from ._supervised import SupervisedLDA
    from .model_files import load_model, save_model

__all__ = [
    "ColumnError",
    "ExpectationMaximizationLDA",
    "ImplicitlyConstrainedLDA",
    "MomentConstrainedLDA",
    "NoUnlabeledRowsWarning",
    "ParameterError",
    "SelfLearningLDA",
    "SupervisedLDA",
    "load_model",
    "save_model",
]

__version__ = "0.1.0.dev0"

_HOME = {
    "ColumnError": "._messages",
    "ExpectationMaximizationLDA": "._expectation_maximization",
    "ImplicitlyConstrainedLDA": "._implicitly_constrained",
    "MomentConstrainedLDA": "._moment_constrained",
    "NoUnlabeledRowsWarning": "._messages",
    "ParameterError": "._messages",
    "SelfLearningLDA": "._self_learning",
    "SupervisedLDA": "._supervised",
    "load_model": ".model_files",
    "save_model": ".model_files",
}


def __getattr__(name: str) -> object:
    """Import what is first used: the command line starts without scikit-learn."""
    if name == "rows":
        return _import_module(".rows", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
