"""Rows to draw: their classes, and the plane in which they lie."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._core.types import AnyArray, Array
from .._estimators.inputs import check_is_read
from .._estimators.labels import UNLABELED, check_lengths, split_marker
from ..model_selection._masking import marker_of
from ..model_selection._scorers import final_step


@dataclass(frozen=True)
class ShownRows:
    """X and, if it was passed, X_unlabeled, with the index of the class of every row."""

    parts: list[Any]
    codes: AnyArray
    classes: AnyArray

    def collect(self, function: Callable[[Any], Any]) -> Array:
        """Apply a function of rows to all rows."""
        return np.concatenate([np.asarray(function(part)) for part in self.parts])


def shown_rows(estimator: Any, X: Any, y: Any, X_unlabeled: Any, unlabeled: Any) -> ShownRows:
    """Encode rows by the classes of a fitted classifier; "auto" for ``unlabeled``: its marker."""
    check_is_fitted(estimator)
    parts = [check_is_read(X)]
    codes = np.full(_num_samples(X), UNLABELED)
    if y is not None:
        check_lengths(X=X, y=y)
        codes, _ = encode_classes(y, estimator.classes_, unlabeled, estimator)
    if X_unlabeled is not None:
        parts.append(check_is_read(X_unlabeled, "X_unlabeled"))
        columns, others = map(column_names, parts)
        are_named = all(hasattr(part, "columns") for part in parts)
        if (columns != others) if are_named else (len(columns) != len(others)):
            raise ValueError(
                f"X_unlabeled must have the columns of X in their order, {columns}, got {others}."
            )
        codes = np.r_[codes, np.full(_num_samples(X_unlabeled), UNLABELED)]
    return ShownRows(parts, codes, np.asarray(estimator.classes_))


def encode_classes(
    y: Any, classes: Any, unlabeled: Any, estimator: Any = None
) -> tuple[AnyArray, AnyArray]:
    """Return the index of the class of every row, -1 if it is unlabeled, and the classes.

    None for ``classes``: those in y. With an estimator, "auto" for ``unlabeled`` is its marker.
    """
    if estimator is not None:
        unlabeled = marker_of(estimator, unlabeled)
    present, is_marker = split_marker(y, unlabeled)
    classes = np.unique(present) if classes is None else np.asarray(classes)
    index = {c: k for k, c in enumerate(classes.tolist())}
    unknown = [c for c in np.unique(present).tolist() if c not in index]
    if unknown:
        raise ValueError(f"y holds {unknown}, and the classes are {list(index)}.")
    codes = np.full(len(is_marker), UNLABELED)
    codes[~is_marker] = [index[c] for c in present.tolist()]
    return codes, classes


def by_name(value: Any) -> dict[str, Any]:
    """Return the values of a dict; a single value has the empty name."""
    if not isinstance(value, Mapping):
        return {"": value}
    if not value:
        raise ValueError("There is nothing to draw: the dict is empty.")
    return dict(value)


def estimators_by_name(value: Any) -> dict[str, Any]:
    """Return estimators by name; a single one has that of its class, or of its last step's."""
    if isinstance(value, Mapping):
        return by_name(value)
    return {type(final_step(value)[0]).__name__: value}


def log_probabilities_of(estimator: Any, X: Any) -> Array:
    """Return the log probabilities of the classes, shape (n, K)."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(X))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba, and the plot shows probabilities: "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    with np.errstate(divide="ignore"):
        return np.log(estimator.predict_proba(X))


def class_points_of(lda: Any, way_out: str = "") -> Array:
    """Return the class means in discriminant coordinates, shape (K, n_discriminants).

    ``way_out`` completes the error for a classifier that has none.
    """
    lacking = [name for name in ("transform", "means_", "priors_") if not hasattr(lda, name)]
    if lacking:
        raise ValueError(
            f"{type(lda).__name__} has no {lacking[0]}, and discriminants are those of a linear "
            f"discriminant analysis{way_out}."
        )
    return _transform_array(lda, lda.means_)


@dataclass(frozen=True)
class Plane:
    """Coordinates of rows in a plane, and probabilities of the classes at its points."""

    names: tuple[str, str]  # labels of the axes
    held: str  # what is held fixed in the plane, if anything
    coordinates: Callable[[Any], Array]  # rows -> (n, 2)
    log_probabilities: Callable[[Array], Array]  # points (m, 2) -> (m, K)


def plane_of(estimator: Any, X: Any, features: Any) -> Plane:
    """Return the plane of two features or of "discriminants"; None: of two features if X has two.

    Other features, or discriminants, are held at their means.
    """
    if features is None:
        features = (0, 1) if np.shape(X)[1] == 2 else "discriminants"
    if isinstance(features, str) and features == "discriminants":
        return _discriminant_plane(estimator, X)
    return _feature_plane(estimator, X, features)


def _feature_plane(estimator: Any, X: Any, features: Any) -> Plane:
    names = column_names(X)
    index: dict[Any, int] = {name: column for column, name in enumerate(names)}
    index |= {column: column % len(names) for column in range(-len(names), len(names))}
    is_pair = not isinstance(features, str) and np.shape(features) == (2,)
    columns = [index.get(feature, -1) for feature in features] if is_pair else []
    if len(set(columns)) < 2 or -1 in columns:
        raise ValueError(
            "features must be two different columns of X, by index (0 to "
            f'{len(names) - 1}) or name ({names}), or "discriminants", got {features!r}.'
        )
    center = np.nanmean(_as_array(X), axis=0)

    def log_probabilities(points: Array) -> Array:
        rows = np.tile(center, (len(points), 1))
        rows[:, columns] = points
        return log_probabilities_of(estimator, _table_like(rows, X))

    return Plane(
        names=(names[columns[0]], names[columns[1]]),
        held="other features at their means" if len(center) > 2 else "",
        coordinates=lambda X: _as_array(X)[:, columns],
        log_probabilities=log_probabilities,
    )


def _discriminant_plane(estimator: Any, X: Any) -> Plane:
    """Return the plane of the two discriminants that separate the classes best.

    Two classes have one discriminant: the second axis is then what varies most besides it.
    """
    lda, before = final_step(estimator)
    class_points = class_points_of(lda, ": choose two columns, for example features=(0, 1)")
    rows = _as_array(before(X))
    if rows.shape[1] < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {rows.shape[1]}: draw a "
            "DiscriminantHistogramDisplay instead."
        )
    n_discriminants = class_points.shape[1]
    names = "First discriminant", "Second discriminant"
    if n_discriminants == 1:
        names = "Discriminant", "Largest remaining variation"
        second = _second_axis(lda, rows)

    def coordinates(X: Any) -> Array:
        rows = before(X)
        projected = _as_array(lda.transform(rows))
        if n_discriminants > 1:
            return projected[:, :2]
        return np.column_stack([projected, second(_as_array(rows), projected)])

    def log_probabilities(points: Array) -> Array:
        # In discriminant coordinates classes are spheres of variance 1.
        full = np.tile(lda.priors_ @ class_points, (len(points), 1))
        full[:, :2] = points[:, :n_discriminants]
        distances = ((full[:, None, :] - class_points) ** 2).sum(axis=2)
        with np.errstate(divide="ignore"):
            return np.asarray(log_softmax(np.log(lda.priors_) - distances / 2, axis=1))

    held = "other discriminants at their means" if n_discriminants > 2 else ""
    return Plane(names, held, coordinates, log_probabilities)


def _second_axis(lda: Any, rows: Array) -> Callable[[Array, Array], Array]:
    """Return the first principal axis of the standardized rows without their discriminant."""
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    projected = _transform_array(lda, rows)
    middle = projected.mean(axis=0)
    slope = np.linalg.lstsq(projected - middle, (rows - mean) / scale, rcond=None)[0]

    def residuals(rows: Array, projected: Array) -> Array:
        return np.asarray((rows - mean) / scale - (projected - middle) @ slope)

    axis = np.linalg.svd(residuals(rows, projected), full_matrices=False)[2][0]
    axis = axis * (1 if axis[np.abs(axis).argmax()] > 0 else -1)
    return lambda rows, projected: residuals(rows, projected) @ axis


def _transform_array(lda: Any, rows: AnyArray) -> Array:
    """Return discriminant coordinates of an array, also where ``lda`` expects a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # The array has no feature names.
        return _as_array(lda.transform(rows))


def _as_array(X: Any) -> Array:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X holds columns that are not numbers ({error}), and the plot places rows by them: "
            'leave them out, or pass features="discriminants" to place rows by what a pipeline '
            "makes of them."
        ) from error


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of X, or "Feature 0" and so on."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        return [f"Feature {column}" for column in range(np.shape(X)[1])]
    return [str(name) for name in names]


def _table_like(rows: Array, X: Any) -> Any:
    """Return rows in a table like X, so that their names are checked as those of X are."""
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return type(X)(rows, columns=X.columns)
    if package == "polars":
        return type(X)(rows, schema=X.columns)
    if package == "pyarrow":
        return sys.modules["pyarrow"].table(list(rows.T), names=X.column_names)
    return rows
