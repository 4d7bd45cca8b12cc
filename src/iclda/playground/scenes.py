"""Scenes of the playground, points and choices, and their fits: JSON in, JSON out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._cost import DRAG_BUDGET, limit_starts
from .._messages import NoUnlabeledRowsWarning, Text, message_of
from ..methods import METHODS, Method, find_method
from .toys import LARGEST_COORDINATE

CLASS_NAMES = ("A", "B", "C", "D")
NO_CLASS = -1
_AXES = ("x", "y")
# Shares are only drawn, with these decimals.
_SHARE_DECIMALS = 4
# AutoLDA, which fits the ensemble to points, comes before the methods of the paper. A
# fit takes too long to follow a point that is dragged.
AUTO = replace(
    find_method("ensemble"),
    name="auto",
    title="AutoLDA",
    sentence=(
        "The default: it weights averages in three views, logistic regression and a "
        "forest by held-out labels."
    ),
    module="auto",
    class_name="AutoLDA",
)
SHOWN_METHODS = (AUTO, *METHODS)
_WAITS = "It is fitted when the points are at rest."
_NO_DENSITY = "It has no density, so its likelihood cannot be compared."
# Its boundary is not a line: the page draws it from posteriors at the centers of the
# cells of a square grid with this many cells along a side.
GRID_CELLS = 72
_BOUND_NAMES = ("worst", "best", "expected", "disagreement")


@dataclass(frozen=True, eq=False)
class Scene:
    """Points and choices of a page: the labeled points come first.

    ``truths`` has the class of every unlabeled point, -1 where it is unknown.
    ``shown`` is the name of the method whose labels of the unlabeled points are wanted,
    or empty.
    """

    X: Array
    y: AnyArray
    truths: AnyArray
    methods: tuple[Method, ...]
    shown: str
    shrinkage: float | None
    is_dragged: bool

    @property
    def unlabeled(self) -> Array:
        return self.X[self.y == NO_CLASS]


def read_scene(sent: Any) -> Scene:
    """Read a scene as the page sends it; fits check its coordinates and shrinkage."""
    labeled = _read_points(sent["labeled"])
    unlabeled = _read_points(sent["unlabeled"])
    codes = labeled[:, 2].astype(int)
    names = set(sent["methods"])
    return Scene(
        X=np.concatenate([labeled, unlabeled])[:, :2],
        y=np.concatenate([codes, np.full(len(unlabeled), NO_CLASS)]),
        truths=unlabeled[:, 2].astype(int),
        methods=tuple(method for method in SHOWN_METHODS if method.name in names),
        shown=sent["shown"],
        shrinkage=float(sent["shrinkage"]) or None,
        is_dragged=sent["dragged"],
    )


def _read_points(sent: Any) -> Array:
    """Return coordinates and classes of points, (n, 3).

    An unlabeled point may have no class.
    """
    points = []
    for x, y, code in sent:
        points.append((x, y, NO_CLASS if code is None else code))
    # An empty list gives an array of the right shape, too.
    return np.array(points, dtype=float).reshape(-1, 3)


def fit_scene(scene: Scene) -> dict[str, Any]:
    """Fit the methods of a scene; a message says why if none can be fitted."""
    codes = np.unique(scene.y[scene.y != NO_CLASS])
    message = ""
    if not len(codes):
        message = (
            "There are no labeled points. Choose a class and add points of two classes."
        )
    elif len(codes) == 1:
        name = CLASS_NAMES[codes[0]]
        message = (
            f"All labeled points are of class {name}. Add points of another class."
        )
    fits = {}
    if not message:
        fits = {method.name: _fit(method, scene) for method in scene.methods}
    return {"classes": codes.tolist(), "message": message, "fits": fits}


def _fit(method: Method, scene: Scene) -> dict[str, Any]:
    """Fit a method; the result has only ``error`` if it cannot be fitted.

    It has only ``waits`` if the fit takes too long while a point is dragged.
    """
    if method is AUTO and scene.is_dragged:
        return {"waits": _WAITS}
    # The ensemble chooses shrinkage by itself.
    shrinkage = None if method is AUTO else scene.shrinkage
    classifier = method.classifier(shrinkage=shrinkage)
    # While a point is dragged, a fit must be done before the next one is asked for.
    if scene.is_dragged:
        limit_starts(classifier, len(CLASS_NAMES), len(_AXES), DRAG_BUDGET)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(scene.X, scene.y)
        except ValueError as error:
            return {"error": _sentence(error)}
        describe = _describe_mixture if method is AUTO else _describe
        fit = describe(method, classifier, scene)
    fit["notes"] = _notes(each.message for each in caught)
    return fit


def _notes(warned: Iterable[Warning | str]) -> list[str]:
    """Return the sentences of warnings that a person on the page should read."""
    sentences = []
    for warning in warned:
        # The page shows that there are no unlabeled points.
        is_obvious = isinstance(warning, NoUnlabeledRowsWarning)
        if isinstance(warning, UserWarning) and not is_obvious:
            sentences.append(_sentence(warning))
    return list(dict.fromkeys(sentences))


def _describe(method: Method, classifier: Any, scene: Scene) -> dict[str, Any]:
    """Return what the page shows of a fitted classifier."""
    is_labeled = scene.y != NO_CLASS
    likelihoods = classifier.log_likelihood(scene.X[is_labeled], scene.y[is_labeled])
    fit = {
        "scores": _scores(classifier),
        "likelihood": _finite(np.mean(likelihoods)),
        **_bounds(classifier, scene),
        "wrong": _share_wrong(classifier, scene),
    }
    if method.name == scene.shown:
        fit["shares"] = _shares(method, classifier, scene.unlabeled)
    return fit


def _describe_mixture(method: Method, classifier: Any, scene: Scene) -> dict[str, Any]:
    """Return what the page shows of AutoLDA, which has posteriors but no density."""
    fit: dict[str, Any] = {
        "grid": _posteriors_on_grid(classifier),
        "likelihood": None,
        "bounds": None,
        "no_bounds": _NO_DENSITY,
        "wrong": _share_wrong(classifier, scene),
    }
    if method.name == scene.shown:
        fit["shares"] = _shares(method, classifier, scene.unlabeled)
    return fit


def _posteriors_on_grid(classifier: Any) -> list[list[float]]:
    """Return the posteriors at the cells of the grid, from left to right, top first."""
    step = 2 * LARGEST_COORDINATE / GRID_CELLS
    centers = -LARGEST_COORDINATE + step * (np.arange(GRID_CELLS) + 0.5)
    x, y = np.meshgrid(centers, centers[::-1])
    cells = np.column_stack([x.ravel(), y.ravel()])
    rounded = np.round(classifier.predict_proba(cells), _SHARE_DECIMALS)
    return rounded.tolist()  # type: ignore[no-any-return]


def _scores(classifier: Any) -> list[list[float]]:
    """Return slopes and intercept of the score of every class."""
    coef = np.asarray(classifier.coef_)
    intercept = np.asarray(classifier.intercept_)
    if len(classifier.classes_) == 2:
        # The classifier has the log odds of the second class: the score of the first
        # one is 0.
        coef = np.vstack([0 * coef, coef])
        intercept = np.append(0.0, intercept)
    return np.column_stack([coef, intercept]).tolist()  # type: ignore[no-any-return]


def _bounds(classifier: Any, scene: Scene) -> dict[str, Any]:
    """Return bounds of the gain, or why there is no supervised fit to compare with."""
    try:
        bounds = classifier.gain_bounds(scene.X, scene.y)
    except ValueError as error:
        return {"bounds": None, "no_bounds": _sentence(error)}
    numbers = {name: _finite(getattr(bounds, name)) for name in _BOUND_NAMES}
    return {"bounds": {**numbers, "is_safe": bounds.is_safe}}


def _share_wrong(classifier: Any, scene: Scene) -> float | None:
    """Return the share of the unlabeled points of known class that get another one."""
    is_known = scene.truths != NO_CLASS
    if not is_known.any():
        return None
    predicted = classifier.predict(scene.unlabeled[is_known])
    return float(np.mean(predicted != scene.truths[is_known]))


def _shares(
    method: Method, classifier: Any, unlabeled: Array
) -> Sequence[Sequence[float]]:
    """Return the labels of the unlabeled points by a method: shares in the classes."""
    if not len(unlabeled):
        return []
    if hasattr(classifier, "impute"):
        shares = classifier.impute(unlabeled)
    elif method.name == "self-learning":
        # Its labels are hard.
        shares = classifier.predict(unlabeled)[:, None] == classifier.classes_
    else:
        shares = classifier.predict_proba(unlabeled)
    rounded = np.round(np.asarray(shares, dtype=float), _SHARE_DECIMALS)
    return rounded.tolist()  # type: ignore[no-any-return]


def _finite(value: Any) -> float | None:
    """Return a number for JSON, None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def _sentence(raised: BaseException) -> str:
    """Return the message of an error or a warning, which names the coordinates."""
    message = message_of(raised)
    if isinstance(message, Text):
        message = message.with_names(_AXES)
    return " ".join(message.split())
