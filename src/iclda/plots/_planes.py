"""Planes to draw decisions in: two features, or the two best discriminants."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from .._core.types import AnyArray, Array
from ..model_selection._scorers import final_step
from ._shown_rows import as_array, column_names, table_like


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
