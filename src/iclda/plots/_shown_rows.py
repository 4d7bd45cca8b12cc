"""Rows to draw: their classes, their place in a pipeline, and tables of further rows like them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from .._core.types import AnyArray, Array
from .._estimators.inputs import check_is_read
from .._estimators.labels import UNLABELED, split_marker
from ..model_selection._masking import Marker, marker_of
from ..model_selection._scorers import final_step


@dataclass(frozen=True)
class ShownRows:
    """Rows as the user passed them, X and then X_unlabeled, and the index of the class of each."""

    parts: list[Any]
    codes: AnyArray
    classes: AnyArray

    def collect(self, function: Callable[[Any], Any]) -> Array:
        """Results of a function of rows, for all of them."""
        return np.concatenate([np.asarray(function(part)) for part in self.parts])


def shown_rows(estimator: Any, X: Any, y: Any, X_unlabeled: Any, unlabeled: Any) -> ShownRows:
    """Rows of a fitted classifier; ``unlabeled`` is a marker, or "auto" for its own."""
    check_is_fitted(estimator)
    X = check_is_read(X)
    parts, codes = [X], np.full(_num_samples(X), UNLABELED)
    if y is not None:
        check_consistent_length(X, y)
        codes, _ = encode_classes(y, estimator.classes_, unlabeled, estimator)
    if X_unlabeled is not None:
        parts.append(check_is_read(X_unlabeled, "X_unlabeled"))
        _check_same_columns(*parts)
        codes = np.r_[codes, np.full(_num_samples(parts[1]), UNLABELED)]
    return ShownRows(parts, codes, np.asarray(estimator.classes_))


def _check_same_columns(X: Any, X_unlabeled: Any) -> None:
    columns, others = column_names(X), column_names(X_unlabeled)
    is_named = hasattr(X, "columns") and hasattr(X_unlabeled, "columns")
    if (columns != others) if is_named else (len(columns) != len(others)):
        raise ValueError(
            f"X_unlabeled must have the columns of X in their order, {columns}, got {others}."
        )


def encode_classes(
    y: Any, classes: Any, unlabeled: Any, estimator: Any = None
) -> tuple[AnyArray, AnyArray]:
    """Index of the class of every row, -1 if it is unlabeled, and the classes.

    None for ``classes``: those in y. With an estimator, "auto" for ``unlabeled`` is its marker.
    """
    if estimator is not None:
        is_auto = isinstance(unlabeled, str) and unlabeled == "auto"
        unlabeled = marker_of(estimator, Marker.OF_ESTIMATOR if is_auto else unlabeled)
    present, is_marker = split_marker(y, unlabeled)
    classes = np.unique(present) if classes is None else np.asarray(classes)
    index = {c: k for k, c in enumerate(classes.tolist())}
    unknown = [c for c in np.unique(present).tolist() if c not in index]
    if unknown:
        raise ValueError(f"y holds {unknown}, and the classes are {list(index)}.")
    codes = np.full(len(is_marker), UNLABELED)
    codes[~is_marker] = [index[c] for c in present.tolist()]
    return codes, classes


def as_array(X: Any) -> Array:
    """Rows as numbers, from any table."""
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X holds columns that are not numbers ({error}), and the plot places rows by them: "
            'leave them out, or pass features="discriminants" to place rows by what a pipeline '
            "makes of them."
        ) from error


def column_names(X: Any) -> list[str]:
    """Names of the columns of X, or "Feature 0" and so on."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        return [f"Feature {column}" for column in range(np.shape(X)[1])]
    return [str(name) for name in names]


def table_like(rows: Array, X: Any) -> Any:
    """Rows in a table like X, so that their names are checked as those of X are."""
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return type(X)(rows, columns=X.columns)
    if package == "polars":
        return type(X)(rows, schema=X.columns)
    if package == "pyarrow":
        return sys.modules["pyarrow"].table(list(rows.T), names=X.column_names)
    return rows


def by_name(value: Any) -> dict[str, Any]:
    """The values of a dict; a single value has the empty name."""
    if not isinstance(value, Mapping):
        return {"": value}
    if not value:
        raise ValueError("There is nothing to draw: the dict is empty.")
    return dict(value)


def estimators_by_name(value: Any) -> dict[str, Any]:
    """The same of estimators; a single one is named by its class, a pipeline by its last step's."""
    if isinstance(value, Mapping):
        return by_name(value)
    return {type(final_step(value)[0]).__name__: value}
