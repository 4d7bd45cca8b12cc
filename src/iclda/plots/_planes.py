"""Planes to draw decisions in: two features, or the two best discriminants."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._core.types import AnyArray, Array
from ._rows import as_array, final_step, names_of, table_like


class Plane(Protocol):
    """Where rows lie in the plane, and how probable classes are at its points."""

    @property
    def names(self) -> tuple[str, str]:
        """Labels of the axes."""
        ...

    @property
    def held(self) -> str:
        """What is held fixed in the plane, if anything."""
        ...

    def coordinates(self, X: Any) -> Array:
        """(n, 2) of rows."""
        ...

    def log_probabilities(self, points: Array) -> Array:
        """(m, K) of points of the plane (m, 2)."""
        ...


@dataclass(frozen=True)
class FeaturePlane:
    """Two features; the others, if any, are held at their means."""

    estimator: Any
    X: Any
    columns: tuple[int, int]
    center: Array
    names: tuple[str, str]

    @property
    def held(self) -> str:
        return "other features at their means" if len(self.center) > 2 else ""

    def coordinates(self, X: Any) -> Array:
        return as_array(X)[:, self.columns]

    def log_probabilities(self, points: Array) -> Array:
        rows = np.tile(self.center, (len(points), 1))
        rows[:, self.columns] = points
        return log_probabilities_of(self.estimator, table_like(rows, self.X))


@dataclass(frozen=True)
class DiscriminantPlane:
    """The two discriminants that separate the classes best, the others at the overall mean.

    Two classes have one discriminant: the second axis is then what varies most besides it.
    """

    lda: Any
    before: Callable[[Any], Any]
    class_points: Array  # (K, n_discriminants)
    besides: Callable[[Array, Array], Array]
    names: tuple[str, str]

    @property
    def held(self) -> str:
        n_discriminants = self.class_points.shape[1]
        return "other discriminants at their means" if n_discriminants > 2 else ""

    def coordinates(self, X: Any) -> Array:
        rows = self.before(X)
        projected = as_array(self.lda.transform(rows))
        if projected.shape[1] > 1:
            return projected[:, :2]
        return np.column_stack([projected, self.besides(as_array(rows), projected)])

    def log_probabilities(self, points: Array) -> Array:
        return log_probabilities_at(self.lda, self.class_points, points)


def log_probabilities_at(lda: Any, class_points: Array, points: Array) -> Array:
    """(m, K) at points given by their first discriminants, the others at the overall mean."""
    # In discriminant coordinates classes are spheres of variance 1.
    full = np.tile(lda.priors_ @ class_points, (len(points), 1))
    n_given = min(points.shape[1], full.shape[1])
    full[:, :n_given] = points[:, :n_given]
    distances = ((full[:, None, :] - class_points) ** 2).sum(axis=2)
    with np.errstate(divide="ignore"):
        scores = np.log(lda.priors_) - distances / 2
    top = scores.max(axis=1, keepdims=True)
    return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))


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


def plane_of(estimator: Any, X: Any, features: Any) -> Plane:
    """The plane asked for: a pair of features, "discriminants", or None for what there is."""
    if features is None:
        features = (0, 1) if _width(X) == 2 else "discriminants"
    if isinstance(features, str) and features == "discriminants":
        return _discriminant_plane(estimator, X)
    array = as_array(X)
    names = names_of(X, array.shape[1])
    columns = _resolve(features, names)
    chosen = names[columns[0]], names[columns[1]]
    return FeaturePlane(estimator, X, columns, np.nanmean(array, axis=0), chosen)


def _width(X: Any) -> int:
    return int(np.shape(X)[1])


def _resolve(features: Any, names: list[str]) -> tuple[int, int]:
    """Numbers of two columns, given by number or name."""
    if isinstance(features, str) or np.shape(features) != (2,):
        raise ValueError(
            f'features must be two columns, by number or name, or "discriminants", got '
            f"{features!r}."
        )
    columns = [_column(feature, names) for feature in features]
    if columns[0] == columns[1]:
        raise ValueError(f"features must be two different columns, got {features!r}.")
    return columns[0], columns[1]


def _column(feature: Any, names: list[str]) -> int:
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    if feature in names:
        return names.index(feature)
    raise ValueError(
        f"features names {feature!r}, which is no column of X: these are {names}, or 0 to "
        f"{len(names) - 1}."
    )


def _discriminant_plane(estimator: Any, X: Any) -> DiscriminantPlane:
    lda, before = final_step(estimator)
    class_points = class_points_of(lda, ": choose two columns, for example features=(0, 1)")
    rows = as_array(before(X))
    if rows.shape[1] < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {rows.shape[1]}: draw a "
            "DiscriminantHistogramDisplay instead."
        )
    names = ("First discriminant", "Second discriminant")
    if class_points.shape[1] == 1:
        names = ("Discriminant", "Largest remaining variation")
    return DiscriminantPlane(lda, before, class_points, _besides(lda, rows), names)


def class_points_of(lda: Any, way_out: str = "") -> Array:
    """(K, n_discriminants): class means in discriminant coordinates.

    ``way_out`` is what the caller can do about a classifier that has none.
    """
    lacking = [name for name in ("transform", "means_", "priors_") if not hasattr(lda, name)]
    if lacking:
        raise ValueError(
            f"{type(lda).__name__} has no {lacking[0]}, and discriminants are those of a linear "
            f"discriminant analysis{way_out}."
        )
    return transform_quietly(lda, lda.means_)


def transform_quietly(lda: Any, rows: AnyArray) -> Array:
    """Discriminant coordinates of rows in the order of the features, names or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return as_array(lda.transform(rows))


def _besides(lda: Any, rows: Array) -> Callable[[Array, Array], Array]:
    """What varies most in the standardized rows once the discriminant is taken out."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    projected = transform_quietly(lda, rows)
    middle = projected.mean(axis=0)
    slope = np.linalg.lstsq(projected - middle, (rows - mean) / spread, rcond=None)[0]

    def rest(rows: Array, projected: Array) -> Array:
        return np.asarray((rows - mean) / spread - (projected - middle) @ slope)

    axis = np.linalg.svd(rest(rows, projected), full_matrices=False)[2][0]
    axis = axis * (1 if axis[np.abs(axis).argmax()] > 0 else -1)
    return lambda rows, projected: rest(rows, projected) @ axis
