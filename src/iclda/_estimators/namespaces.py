"""scikit-learn's rules for arrays of other libraries, and for containers of results."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils._set_output import _get_output_config

from .._rows.backends import backend_of, is_device_array, is_lazy


def move_fitted(estimator: Any, X: Any) -> None:
    """Under dispatch fitted arrays are of the library of X, and where X is: all but ``classes_``.

    Without it they are NumPy's, whatever X is. Predictions need neither.
    """
    if not get_config()["array_api_dispatch"] or not is_device_array(X):
        return
    from .._rows.device_sums import place_of

    place = place_of(X)
    for name, value in vars(estimator).items():
        is_number = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if is_number and name.endswith("_") and name != "classes_":
            move = place.put if value.dtype.kind == "f" else place.put_as_is
            setattr(estimator, name, move(value))


def check_namespace(estimator: Any, X: Any, method: str) -> None:
    """Under dispatch scikit-learn wants rows to be of the library that the fit was given."""
    if not get_config()["array_api_dispatch"]:
        return
    if not (is_device_array(X) or backend_of(X) is None):
        return
    try:
        from sklearn.utils._array_api import check_same_namespace
    except ImportError:  # before scikit-learn 1.9 there was no such rule
        return
    check_same_namespace(X, estimator, attribute="means_", method=method)


def check_container(estimator: Any, X: Any) -> None:
    """Tables that ``set_output`` asks for are in memory, where lazy results may not fit."""
    container = _get_output_config("transform", estimator)["dense"]
    if is_lazy(X) and container != "default":
        raise ValueError(
            f"transform was told by set_output to give {container} tables, which are in memory, "
            "and rows of Dask are transformed where they are: call set_output(transform='default') "
            "for a lazy Dask array, or pass X.compute()."
        )
