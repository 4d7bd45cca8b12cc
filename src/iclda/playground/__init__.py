"""The playground: a page in the browser, served on this machine, on which fits follow the points.

Scenes are toy problems to begin with, and points with their fits, JSON in, JSON out. The site has
the page and answers it.
"""

from __future__ import annotations

import asyncio
import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .._core import AnyArray, Array
from .._local_server import Site
from .._messages import NoUnlabeledRowsWarning, Text, message_of
from ..datasets import Sample, make_gaussians, make_violated_gaussians
from ..methods import INK, METHODS, Method, find_method

CLASS_NAMES = ("A", "B", "C", "D")
NO_CLASS = -1
MOST_POINTS = 5_000
N_UNLABELED = 1_000
LARGEST_COORDINATE = 4.5  # on the page
DECIMALS = 3  # of coordinates, so that a link holds them exactly
_LARGEST_NUMBER = 1e300
_AXES = ("x", "y")
_DRAGGED_STARTS = 8  # of a search while a point is dragged
_DECIMALS = 4  # of shares, which are only drawn
_MOST_BYTES = 2**20  # of a scene
_STATIC = Path(__file__).parent / "static"
_OTHER_ADDRESS = (
    "This address is not that of the playground that is running: open the one that `iclda "
    "playground` prints.\nA link that somebody shared is opened by `iclda playground LINK`, or "
    "pasted under Share.\n"
)
# Fitted before the page is opened, because the first fit imports what all need.
_FIRST = {"labeled": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]], "methods": ["supervised"]}


class SceneError(ValueError):
    """A scene that cannot be read; the page shows the message."""


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
        return self.X[self.y == NO_CLASS]


def read_scene(sent: Any) -> Scene:
    """Read a scene from JSON; SceneError if it is none."""
    if not isinstance(sent, dict):
        raise SceneError(f"The scene must be an object, got {type(sent).__name__}.")
    labeled = _read_points(sent, "labeled", range(len(CLASS_NAMES)))
    unlabeled = _read_points(sent, "unlabeled", range(NO_CLASS, len(CLASS_NAMES)))
    n_points = len(labeled) + len(unlabeled)
    if n_points > MOST_POINTS:
        raise SceneError(
            f"The playground draws at most {MOST_POINTS:,} points, got {n_points:,}: take fewer, "
            "or fit them in Python."
        )
    table = np.concatenate([labeled, unlabeled])
    codes = table[:, 2].astype(int)
    return Scene(
        X=table[:, :2],
        y=np.where(np.arange(n_points) < len(labeled), codes, NO_CLASS),
        truths=codes[len(labeled) :],
        methods=_read_methods(sent.get("methods", [])),
        shown=str(sent.get("shown") or ""),
        shrinkage=_read_shrinkage(sent.get("shrinkage")),
        is_dragged=bool(sent.get("dragged")),
    )


def _read_points(sent: dict[str, Any], name: str, codes: range) -> Array:
    """Coordinates and classes of points, shape (n, 3); the class of an unlabeled one may lack."""
    try:
        cells = [(*point, None)[:3] if len(point) < 4 else () for point in sent.get(name, [])]
        points = [(x, y, NO_CLASS if code is None else code) for x, y, code in cells]
        table = np.array(points, dtype=float).reshape(-1, 3)
    except (TypeError, ValueError, OverflowError):
        table = np.full((1, 3), np.nan)
    if not (np.abs(table[:, :2]) < _LARGEST_NUMBER).all() or not np.isin(table[:, 2], codes).all():
        raise SceneError(
            f"The {name} points must be lists [x, y, class] of finite coordinates and a class from "
            f"0 to {len(CLASS_NAMES) - 1}: remove those that are not."
        )
    return table


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
    if not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise SceneError(f"Shrinkage must be a number from 0 to below 1, got {str(value)[:60]!r}.")
    return float(value) or None


def fit_scene(scene: Scene) -> dict[str, Any]:
    """Fit the methods of a scene; a message says why where none can be fitted."""
    codes, message = np.unique(scene.y[scene.y != NO_CLASS]), ""
    if not len(codes):
        message = "There are no labeled points. Choose a class and add points of two classes."
    elif len(codes) == 1:
        name = CLASS_NAMES[codes[0]]
        message = f"All labeled points are of class {name}. Add points of another class."
    methods = () if message else scene.methods
    fits = {method.name: _fit(method, scene) for method in methods}
    return {"classes": codes.tolist(), "message": message, "fits": fits}


def _fit(method: Method, scene: Scene) -> dict[str, Any]:
    """Fit a method; the result has only ``error`` if it cannot be fitted."""
    classifier = method.classifier(shrinkage=scene.shrinkage)
    if scene.is_dragged and "n_starts" in method.parameters:
        classifier.set_params(n_starts=_DRAGGED_STARTS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(scene.X, scene.y)
        except ValueError as error:
            return {"error": _sentence(error)}
        is_labeled = scene.y != NO_CLASS
        likelihoods = classifier.log_likelihood(scene.X[is_labeled], scene.y[is_labeled])
        shown = {
            "scores": _scores(classifier),
            "likelihood": _finite(np.mean(likelihoods)),
            **_bounds(classifier, scene),
            "wrong": _share_wrong(classifier, scene),
        }
        if method.name == scene.shown:
            shown["shares"] = _shares(method, classifier, scene.unlabeled)
    notes = [w.message for w in caught if isinstance(w.message, UserWarning)]
    notes = [each for each in notes if not isinstance(each, NoUnlabeledRowsWarning)]
    return {**shown, "notes": list(dict.fromkeys(map(_sentence, notes)))}


def _scores(classifier: Any) -> list[list[float]]:
    """Slopes and intercept of the score of every class."""
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
    names = ("worst", "best", "expected", "disagreement")
    numbers = {name: _finite(getattr(bounds, name)) for name in names}
    return {"bounds": {**numbers, "is_safe": bounds.is_safe}}


def _share_wrong(classifier: Any, scene: Scene) -> float | None:
    """Share of the unlabeled points of known class that get another one."""
    is_known = scene.truths != NO_CLASS
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
    """A number for JSON, which has neither NaN nor infinity: None for these."""
    return float(value) if math.isfinite(value) else None


def _sentence(raised: BaseException) -> str:
    """The message of an error or a warning, with the names of the coordinates."""
    message = message_of(raised)
    if isinstance(message, Text):
        message = message.with_names(_AXES)
    return " ".join(message.split())


@dataclass(frozen=True)
class Toy:
    """A problem in the plane, with its name, title and sentence on the page."""

    name: str
    title: str
    sentence: str
    draw: Callable[[int, np.random.Generator], Sample]
    n_classes: int = 2
    n_labeled: int = 5  # of each class


def _ring(n_classes: int) -> Callable[[int, np.random.Generator], Sample]:
    """Return a function that draws Gaussians of equal spread around a circle."""
    angles = math.pi / 2 + 2 * math.pi * np.arange(n_classes) / n_classes
    centers = 2.0 * np.column_stack([np.cos(angles), np.sin(angles)])

    def draw(n: int, rng: np.random.Generator) -> Sample:
        y = rng.integers(n_classes, size=n, dtype=np.int64)
        return centers[y] + 0.75 * rng.standard_normal((n, 2)), y

    return draw


def _moons(n: int, rng: np.random.Generator) -> Sample:
    from sklearn.datasets import make_moons

    X, y = make_moons(n, noise=0.12, random_state=int(rng.integers(2**31)))
    return 2.0 * (X - [0.5, 0.25]), y.astype(np.int64)


def _rare(n: int, rng: np.random.Generator) -> Sample:
    """Draw two Gaussians; one row in eight is of the second class."""
    y = (rng.random(n) < 1 / 8).astype(np.int64)
    return np.array([[-0.7, -0.4], [1.5, 1.2]])[y] + 0.8 * rng.standard_normal((n, 2)), y


PROBLEMS = (
    Toy(
        "between",
        "Clusters that help",
        "The paper's toy problem: the boundary runs between two clusters.",
        make_gaussians,
    ),
    Toy(
        "across",
        "Clusters that mislead",
        "The paper's other toy problem: the same clusters, and a boundary across both.",
        make_violated_gaussians,
    ),
    Toy("three", "Three classes", "Three clusters around a circle.", _ring(3), 3),
    Toy("four", "Four classes", "Four clusters, three labeled points of each.", _ring(4), 4, 3),
    Toy("moons", "Two moons", "Classes that no straight line separates.", _moons),
    Toy(
        "rare",
        "A rare class",
        "One unlabeled point in eight is of class B, half of the labeled ones are.",
        _rare,
    ),
)


def draw_toy_scene(name: str, seed: int, n_unlabeled: int = N_UNLABELED) -> dict[str, Any]:
    """Draw labeled and unlabeled points of a toy problem, as the page holds them."""
    toy = next((toy for toy in PROBLEMS if toy.name == name), None)
    if toy is None:
        raise ValueError(
            f"Unknown toy problem {name!r}. There are: {', '.join(t.name for t in PROBLEMS)}."
        )
    rng = np.random.default_rng([seed, *name.encode()])
    X, y = toy.draw(n_unlabeled + 20 * toy.n_classes * toy.n_labeled, rng)
    placed = np.round(np.clip(X, -LARGEST_COORDINATE, LARGEST_COORDINATE), DECIMALS)
    points = [[*row, code] for row, code in zip(placed.tolist(), y.tolist(), strict=True)]
    firsts = [np.flatnonzero(y == code)[: toy.n_labeled] for code in range(toy.n_classes)]
    labeled = np.concatenate(firsts)
    others = np.setdiff1d(np.arange(len(y)), labeled)[:n_unlabeled]
    return {"labeled": [points[i] for i in labeled], "unlabeled": [points[i] for i in others]}


def playground_site() -> Site:
    """Make the page, its toy problems and its fits."""
    one_at_a_time = asyncio.Lock()  # threads share the filters of warnings

    async def fit(request: Request) -> Response:
        try:
            scene = read_scene(await _read_json(request))
        except SceneError as error:
            return _refused(error)
        async with one_at_a_time:
            return JSONResponse(await run_in_threadpool(fit_scene, scene))

    fit_scene(read_scene(_FIRST))
    routes = [
        Route("/about.json", _about),
        Route("/toys/{name}", _toy),
        Route("/fit", fit, methods=["POST"]),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("The playground", routes, _OTHER_ADDRESS)


def _about(request: Request) -> Response:
    """Methods, classes, toy problems and limits, for the page."""
    methods = [
        {
            "name": method.name,
            "title": method.title,
            "sentence": method.sentence,
            "color": "" if method.color == INK else method.color,  # that of the text
            "uses_unlabeled": method.uses_unlabeled,
        }
        for method in METHODS
    ]
    toys = [{"name": toy.name, "title": toy.title, "sentence": toy.sentence} for toy in PROBLEMS]
    limits = {"points": MOST_POINTS, "coordinate": LARGEST_COORDINATE}
    return JSONResponse(
        {"methods": methods, "classes": CLASS_NAMES, "toys": toys, "limits": limits}
    )


def _toy(request: Request) -> Response:
    seed = request.query_params.get("seed", "0")[:40]
    try:
        if not seed.isdecimal():
            raise SceneError(f"seed must be a whole number, 0 or more, got {seed!r}.")
        return JSONResponse(draw_toy_scene(request.path_params["name"], int(seed)))
    except ValueError as error:
        return _refused(error)


async def _read_json(request: Request) -> Any:
    """The body as JSON; SceneError if it is too large or no JSON."""
    body = await request.body()  # browsers listen only after they have sent all
    if len(body) > _MOST_BYTES:
        raise SceneError(
            f"The scene takes more than {_MOST_BYTES // 2**20} MB: the playground draws at "
            f"most {MOST_POINTS:,} points. Take fewer, or fit them in Python."
        )
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise SceneError("The scene is not valid JSON.") from None


def _refused(error: ValueError) -> Response:
    return JSONResponse({"message": str(error)}, 400)
