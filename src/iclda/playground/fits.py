"""Fits of the methods to the points of a page: JSON in, JSON out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .._messages import NoUnlabeledRowsWarning, Text, and_list, message_of
from ..methods import METHODS, Method, find_method

CLASS_NAMES = ("A", "B", "C", "D")
MOST_POINTS = 5_000
UNLABELED = -1
_AXES = ("x", "y")
_DRAGGED_STARTS = 8  # of a search while a point is dragged; at rest it is the default
_DECIMALS = 4  # of shares, which are only drawn


class SceneError(ValueError):
    """A scene that the page cannot have meant; its message is for the reader of the page."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Points and choices of a page: the labeled points come first.

    ``truths`` has the class of every unlabeled point, -1 where it is unknown.
    """

    X: Array
    y: AnyArray
    truths: AnyArray
    methods: tuple[Method, ...]
    shown: str  # name of the method whose labels of the unlabeled points are wanted, or empty
    shrinkage: float | None
    is_dragged: bool

    @property
    def unlabeled(self) -> Array:
        return self.X[self.y == UNLABELED]

    @property
    def class_names(self) -> list[str]:
        """Names of the classes that have labeled points."""
        return [CLASS_NAMES[code] for code in np.unique(self.y[self.y != UNLABELED])]


def read_scene(sent: Any) -> Scene:
    """A scene from JSON; SceneError says what is wrong with it."""
    if not isinstance(sent, dict):
        raise SceneError(f"The scene must be an object, got {type(sent).__name__}.")
    labeled = _read_points(sent, "labeled", needs_class=True)
    unlabeled = _read_points(sent, "unlabeled", needs_class=False)
    n_points = len(labeled) + len(unlabeled)
    if n_points > MOST_POINTS:
        raise SceneError(
            f"The playground draws at most {MOST_POINTS:,} points, got {n_points:,}: take fewer, "
            "or fit them in Python."
        )
    points = np.concatenate([labeled, unlabeled])
    y = np.concatenate([labeled[:, 2], np.full(len(unlabeled), UNLABELED)])
    return Scene(
        X=points[:, :2],
        y=y.astype(int),
        truths=unlabeled[:, 2].astype(int),
        methods=_read_methods(sent.get("methods", [])),
        shown=str(sent.get("shown") or ""),
        shrinkage=_read_shrinkage(sent.get("shrinkage")),
        is_dragged=bool(sent.get("dragged")),
    )


def _read_points(sent: dict[str, Any], kind: str, *, needs_class: bool) -> Array:
    """(n, 3): coordinates and class of points, -1 for no class."""
    listed = sent.get(kind, [])
    if not isinstance(listed, list):
        raise SceneError(f"{kind} must be a list of points, got {type(listed).__name__}.")
    if len(listed) > MOST_POINTS:  # before they are looked at one by one
        raise SceneError(
            f"The playground draws at most {MOST_POINTS:,} points, got {len(listed):,} of them "
            f"{kind}: take fewer, or fit them in Python."
        )
    return np.array(
        [_read_point(point, f"{kind} point {i + 1}", needs_class) for i, point in enumerate(listed)]
    ).reshape(-1, 3)


def _read_point(point: Any, name: str, needs_class: bool) -> tuple[float, float, int]:
    if not isinstance(point, list) or len(point) not in ((3,) if needs_class else (2, 3)):
        raise SceneError(f"The {name} must be [x, y, class], got {_short(point)}.")
    if not all(_is_number(value) and math.isfinite(value) for value in point[:2]):
        raise SceneError(
            f"The {name} must have two finite coordinates, got {_short(point[:2])}: "
            "move or remove it."
        )
    code = point[2] if len(point) == 3 else None
    if code is None and not needs_class:
        return float(point[0]), float(point[1]), UNLABELED
    if code is None or isinstance(code, bool) or code not in range(len(CLASS_NAMES)):
        most = len(CLASS_NAMES) - 1
        raise SceneError(f"The class of the {name} must be 0 to {most}, got {_short(code)}.")
    return float(point[0]), float(point[1]), int(code)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_methods(names: Any) -> tuple[Method, ...]:
    """The methods named, in the order of the table, the supervised one last."""
    if not isinstance(names, list):
        raise SceneError(f"methods must be a list of names, got {type(names).__name__}.")
    try:
        chosen = {find_method(str(name)) for name in names[: 2 * len(METHODS)]}
    except ValueError as error:
        raise SceneError(str(error)) from None
    return tuple(method for method in METHODS if method in chosen)


def _read_shrinkage(value: Any) -> float | None:
    if value is None:
        return None
    if not _is_number(value) or not 0 <= value < 1:
        raise SceneError(f"Shrinkage must be a number from 0 to below 1, got {_short(value)}.")
    return float(value) or None


def fit_scene(scene: Scene) -> dict[str, Any]:
    """What the page shows: fits by method, or a message where there is nothing to fit."""
    codes = np.unique(scene.y[scene.y != UNLABELED])
    found: dict[str, Any] = {"classes": codes.tolist(), "message": _what_lacks(scene), "fits": {}}
    if not found["message"]:
        found["fits"] = {method.name: _fit(method, scene) for method in scene.methods}
    return found


def _what_lacks(scene: Scene) -> str:
    """Why no method can be fitted, and what to do; empty if one can."""
    names = scene.class_names
    if len(names) >= 2:
        return ""
    if not names:
        return "There are no labeled points. Choose a class and add points of two classes."
    others = and_list([name for name in CLASS_NAMES if name not in names])
    return (
        f"All labeled points are of class {names[0]}. Add points of another class, "
        f"{others.replace(' and ', ' or ')}."
    )


def _fit(method: Method, scene: Scene) -> dict[str, Any]:
    """A fit as the page draws it; ``error`` alone where the method cannot be fitted."""
    classifier = method.classifier(shrinkage=scene.shrinkage)
    if scene.is_dragged and "n_starts" in method.parameters:
        classifier.set_params(n_starts=_DRAGGED_STARTS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(scene.X, scene.y)
        except ValueError as error:
            return {"error": _sentence(error)}
        is_labeled = scene.y != UNLABELED
        likelihoods = classifier.log_likelihood(scene.X[is_labeled], scene.y[is_labeled])
        found = {
            "scores": _scores(classifier),
            "likelihood": _finite(np.mean(likelihoods)),
            **_bounds(classifier, scene),
            "wrong": _share_wrong(classifier, scene),
        }
        if method.name == scene.shown:
            found["shares"] = _shares(method, classifier, scene.unlabeled)
    told = (w.message for w in caught if not isinstance(w.message, NoUnlabeledRowsWarning))
    notes = {_sentence(each): None for each in told if isinstance(each, UserWarning)}
    return {**found, "notes": list(notes)}


def _scores(classifier: Any) -> list[list[float]]:
    """Slopes and intercept of the score of every class; the classes of a point follow from them."""
    coef, intercept = np.asarray(classifier.coef_), np.asarray(classifier.intercept_)
    if len(classifier.classes_) == 2:  # log odds of the second
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    rows: list[list[float]] = np.column_stack([coef, intercept]).tolist()
    return rows


def _bounds(classifier: Any, scene: Scene) -> dict[str, Any]:
    try:
        bounds = classifier.gain_bounds(scene.X, scene.y)
    except ValueError as error:  # there is no supervised fit to compare with
        return {"bounds": None, "no_bounds": _sentence(error)}
    numbers = {
        name: _finite(getattr(bounds, name))
        for name in ("worst", "best", "expected", "disagreement")
    }
    return {"bounds": {**numbers, "is_safe": bounds.is_safe, "sentence": bounds.sentence}}


def _share_wrong(classifier: Any, scene: Scene) -> float | None:
    """Share of the unlabeled points of known class that get another one."""
    is_known = scene.truths != UNLABELED
    if not is_known.any():
        return None
    predicted = classifier.predict(scene.unlabeled[is_known])
    return float(np.mean(predicted != scene.truths[is_known]))


def _shares(method: Method, classifier: Any, unlabeled: Array) -> Sequence[Sequence[float]]:
    """Labels that the method gives to the unlabeled points: shares in classes."""
    if not len(unlabeled):
        return []
    if hasattr(classifier, "impute"):
        shares = classifier.impute(unlabeled)
    elif method.name == "self-learning":
        shares = classifier.predict(unlabeled)[:, None] == classifier.classes_
    else:
        shares = classifier.predict_proba(unlabeled)
    rows: list[list[float]] = np.round(np.asarray(shares, dtype=float), _DECIMALS).tolist()
    return rows


def _finite(value: Any) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    return float(value) if math.isfinite(value) else None


def _sentence(raised: BaseException) -> str:
    """The message of an error or a warning, with the names of the coordinates."""
    message = message_of(raised)
    if isinstance(message, Text):
        message = message.with_names(_AXES)
    return " ".join(message.split())
