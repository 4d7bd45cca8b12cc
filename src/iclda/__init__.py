"""Semi-supervised linear discriminant analysis."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .methods import METHODS as _METHODS

if _TYPE_CHECKING:
    from . import rows as rows
    from ._estimators.expectation_maximization import ExpectationMaximizationLDA
    from ._estimators.implicitly_constrained import ImplicitlyConstrainedLDA
    from ._estimators.moment_constrained import MomentConstrainedLDA
    from ._estimators.self_learning import SelfLearningLDA
    from ._estimators.supervised import SupervisedLDA
    from ._messages import ColumnError, NoUnlabeledRowsWarning, ParameterError
    from .model_files import load_model, save_model

__version__ = "0.1.0.dev0"

_HOME = {
    **{method.class_name: f"._estimators.{method.module}" for method in _METHODS},
    "ColumnError": "._messages",
    "NoUnlabeledRowsWarning": "._messages",
    "ParameterError": "._messages",
    "load_model": ".model_files",
    "save_model": ".model_files",
}
__all__ = sorted(_HOME)


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
