"""Rows to draw: their classes, tables of further rows like them, and the planes they lie in."""

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
        codes = np.r_[codes, np.full(_num_samples(parts[1]), UNLABELED)]
    return ShownRows(parts, codes, np.asarray(estimator.classes_))


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


@dataclass(frozen=True)
class Plane:
    """Where rows lie in a plane, and how probable classes are at its points."""

    names: tuple[str, str]  # labels of the axes
    held: str  # what is held fixed in the plane, if anything
    coordinates: Callable[[Any], Array]  # (n, 2) of rows
    log_probabilities: Callable[[Array], Array]  # (m, K) of points (m, 2)


def plane_of(estimator: Any, X: Any, features: Any) -> Plane:
    """The plane of two features, of "discriminants", or for None of what there is."""
    if features is None:
        features = (0, 1) if np.shape(X)[1] == 2 else "discriminants"
    if isinstance(features, str) and features == "discriminants":
        return _discriminant_plane(estimator, X)
    return _feature_plane(estimator, X, features)


def _feature_plane(estimator: Any, X: Any, features: Any) -> Plane:
    """Two features, by index or name; the others are held at their means."""
    names = column_names(X)
    if isinstance(features, str) or np.shape(features) != (2,):
        raise ValueError(
            f'features must be two columns, by index or name, or "discriminants", got {features!r}.'
        )
    columns = [_column(feature, names) for feature in features]
    if columns[0] == columns[1]:
        raise ValueError(f"features must be two different columns, got {features!r}.")
    center = np.nanmean(as_array(X), axis=0)

    def log_probabilities(points: Array) -> Array:
        rows = np.tile(center, (len(points), 1))
        rows[:, columns] = points
        return log_probabilities_of(estimator, table_like(rows, X))

    return Plane(
        names=(names[columns[0]], names[columns[1]]),
        held="other features at their means" if len(center) > 2 else "",
        coordinates=lambda X: as_array(X)[:, columns],
        log_probabilities=log_probabilities,
    )


def _column(feature: Any, names: list[str]) -> int:
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    if feature in names:
        return names.index(feature)
    raise ValueError(
        f"features names {feature!r}, which is no column of X: these are {names}, or 0 to "
        f"{len(names) - 1}."
    )


def log_probabilities_of(estimator: Any, X: Any) -> Array:
    """(n, K) of rows."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(X))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba, and the plot shows probabilities: "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    with np.errstate(divide="ignore"):
        return np.log(estimator.predict_proba(X))


def _discriminant_plane(estimator: Any, X: Any) -> Plane:
    """The two discriminants that separate the classes best, the others at the overall mean.

    Two classes have one discriminant: the second axis is then what varies most besides it.
    """
    lda, before = final_step(estimator)
    class_points = class_points_of(lda, ": choose two columns, for example features=(0, 1)")
    rows = as_array(before(X))
    if rows.shape[1] < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {rows.shape[1]}: draw a "
            "DiscriminantHistogramDisplay instead."
        )
    n_discriminants = class_points.shape[1]
    if n_discriminants == 1:
        second = _second_axis(lda, rows)

    def coordinates(X: Any) -> Array:
        rows = before(X)
        projected = as_array(lda.transform(rows))
        if n_discriminants > 1:
            return projected[:, :2]
        return np.column_stack([projected, second(as_array(rows), projected)])

    def log_probabilities(points: Array) -> Array:
        # In discriminant coordinates classes are spheres of variance 1.
        full = np.tile(lda.priors_ @ class_points, (len(points), 1))
        full[:, :2] = points[:, :n_discriminants]
        distances = ((full[:, None, :] - class_points) ** 2).sum(axis=2)
        with np.errstate(divide="ignore"):
            return np.asarray(log_softmax(np.log(lda.priors_) - distances / 2, axis=1))

    return Plane(
        names=("Discriminant", "Largest remaining variation")
        if n_discriminants == 1
        else ("First discriminant", "Second discriminant"),
        held="other discriminants at their means" if n_discriminants > 2 else "",
        coordinates=coordinates,
        log_probabilities=log_probabilities,
    )


def class_points_of(lda: Any, way_out: str = "") -> Array:
    """(K, n_discriminants): class means in discriminant coordinates.

    ``way_out`` completes the error for a classifier that has none.
    """
    lacking = [name for name in ("transform", "means_", "priors_") if not hasattr(lda, name)]
    if lacking:
        raise ValueError(
            f"{type(lda).__name__} has no {lacking[0]}, and discriminants are those of a linear "
            f"discriminant analysis{way_out}."
        )
    return _transform_array(lda, lda.means_)


def _transform_array(lda: Any, rows: AnyArray) -> Array:
    """Discriminant coordinates of an array, also where ``lda`` expects a table with names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the array has no names
        return as_array(lda.transform(rows))


def _second_axis(lda: Any, rows: Array) -> Callable[[Array, Array], Array]:
    """What varies most in the standardized rows once the discriminant is taken out."""
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
