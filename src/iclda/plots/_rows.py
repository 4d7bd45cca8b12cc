"""Rows to draw: their classes, their place in a pipeline, and rows made up beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array

UNLABELED = -1  # the code of a row without a label


@dataclass(frozen=True)
class ShownRows:
    """Rows as the user passed them, X and then X_unlabeled, and the class of every one."""

    parts: tuple[Any, ...]
    codes: AnyArray
    classes: AnyArray

    def collect(self, function: Callable[[Any], Any]) -> Array:
        """Results of a function of rows, for all of them."""
        return np.concatenate([np.asarray(function(part)) for part in self.parts])


def shown_rows(estimator: Any, X: Any, y: Any, X_unlabeled: Any, unlabeled: Any) -> ShownRows:
    """What a fitted classifier knows of rows, and of labels in its own or another marker."""
    from sklearn.utils.validation import check_consistent_length, check_is_fitted

    from .._estimators.inputs import check_is_read

    check_is_fitted(estimator)
    X = check_is_read(X)
    codes = np.full(_length(X), UNLABELED)
    if y is not None:
        check_consistent_length(X, y)
        codes = encode(y, estimator.classes_, marker_of(estimator, unlabeled))
    parts: tuple[Any, ...] = (X,)
    if X_unlabeled is not None:
        X_unlabeled = check_is_read(X_unlabeled, "X_unlabeled")
        _check_same_columns(X, X_unlabeled)
        parts = (X, X_unlabeled)
        codes = np.r_[codes, np.full(_length(X_unlabeled), UNLABELED)]
    return ShownRows(parts, codes, np.asarray(estimator.classes_))


def _check_same_columns(X: Any, X_unlabeled: Any) -> None:
    columns, others = names_of(X, np.shape(X)[1]), names_of(X_unlabeled, np.shape(X_unlabeled)[1])
    is_named = all(hasattr(rows, "columns") for rows in (X, X_unlabeled))
    if (columns != others) if is_named else (len(columns) != len(others)):
        raise ValueError(
            f"X_unlabeled must have the columns of X in their order, {columns}, got {others}."
        )


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def marker_of(estimator: Any, unlabeled: Any) -> Any:
    """The marker given, or else that of the estimator, also inside a pipeline."""
    from ..model_selection import _masking

    if isinstance(unlabeled, str) and unlabeled == "auto":
        return _masking.marker_of(estimator)
    return unlabeled


def encode(y: Any, classes: AnyArray, unlabeled: Any) -> AnyArray:
    """Class numbers of y, -1 where it carries the marker."""
    from .._estimators.labels import split_marker

    present, is_marker = split_marker(y, unlabeled)
    number = {c: k for k, c in enumerate(np.asarray(classes).tolist())}
    unknown = [c for c in np.unique(present).tolist() if c not in number]
    if unknown:
        raise ValueError(f"y holds {unknown}, and the classes are {list(number)}.")
    codes = np.full(len(is_marker), UNLABELED)
    codes[~is_marker] = [number[c] for c in present.tolist()]
    return codes


def known_rows(y: Any, unlabeled: Any) -> tuple[AnyArray, AnyArray]:
    """Classes of the rows that have one, and which rows these are.

    Raises ValueError if the marker leaves fewer than two classes: it may be one of them.
    """
    from .._estimators.labels import plain, split_marker

    present, is_marker = split_marker(y, unlabeled, "y_true")
    found = np.unique(present).tolist()
    if is_marker.any() and len(found) < 2:
        raise ValueError(
            f"y_true must label rows of at least 2 classes, got {found or 'none'} besides "
            f"{is_marker.sum()} of {len(is_marker)} rows that {plain(unlabeled)!r} marks as "
            "unlabeled: pass unlabeled=None if it is one of your classes."
        )
    return present, ~is_marker


def final_step(estimator: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The classifier at the end of a pipeline or search, and what leads up to it."""
    if hasattr(estimator, "best_estimator_"):
        return final_step(estimator.best_estimator_)
    if not hasattr(estimator, "steps"):
        return estimator, lambda X: X
    final, inner = final_step(estimator.steps[-1][1])
    if len(estimator.steps) == 1:
        return final, inner
    before = estimator[:-1]
    return final, lambda X: inner(before.transform(X))


def as_array(X: Any) -> Array:
    """Rows as numbers, whatever table they are in."""
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X holds columns that are not numbers ({error}), and the plot places rows by them: "
            'leave them out, or pass features="discriminants" to place rows by what a pipeline '
            "makes of them."
        ) from error


def names_of(X: Any, n_features: int) -> list[str]:
    """Names of the columns of X, or "Feature 0" and so on."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        return [f"Feature {column}" for column in range(n_features)]
    return [str(name) for name in names]


def table_like(rows: Array, X: Any) -> Any:
    """Made-up rows in a table like X, so that names are checked as they are for X."""
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return type(X)(rows, columns=X.columns)
    if package == "polars":
        return type(X)(rows, schema=X.columns)
    if package == "pyarrow":
        return sys.modules["pyarrow"].table(list(rows.T), names=X.column_names)
    return rows


def named(value: Any) -> dict[str, Any]:
    """One for each name; a single one has the empty name."""
    if not isinstance(value, Mapping):
        return {"": value}
    if not value:
        raise ValueError("There is nothing to draw: the dict is empty.")
    return dict(value)


def named_estimators(value: Any) -> dict[str, Any]:
    """One for each name; a single one is named after its class, in a pipeline the last step's."""
    if isinstance(value, Mapping):
        return named(value)
    return {type(final_step(value)[0]).__name__: value}
