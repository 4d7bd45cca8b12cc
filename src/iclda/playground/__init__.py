"""The playground: a page in the browser, served on this machine, on which fits follow the points.

Scenes are toy problems to begin with, and points with their fits, JSON in, JSON out. The site has
the page and answers it.
"""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .._core import AnyArray, Array
from .._cost import DRAG_BUDGET, limit_starts
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
_AXES = ("x", "y")
_DECIMALS = 4  # of shares, which are only drawn
_STATIC = Path(__file__).parent / "static"
_SHARED = "A link that somebody shared is opened by `iclda playground LINK`, or pasted under Share."
# Fitted before the page is opened, because the first fit imports what all need.
_FIRST: dict[str, Any] = {
    **{"labeled": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]], "unlabeled": []},
    **{"methods": ["supervised"], "shown": "", "shrinkage": 0, "dragged": False},
}


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
    """Read a scene as the page sends it; fits check its coordinates and its shrinkage."""
    labeled, unlabeled = (_read_points(sent[name]) for name in ("labeled", "unlabeled"))
    methods = {find_method(name) for name in sent["methods"]}
    X, codes = np.concatenate([labeled, unlabeled])[:, :2], labeled[:, 2].astype(int)
    return Scene(
        X=X,
        y=np.concatenate([codes, np.full(len(unlabeled), NO_CLASS)]),
        truths=unlabeled[:, 2].astype(int),
        methods=tuple(method for method in METHODS if method in methods),
        shown=sent["shown"],
        shrinkage=float(sent["shrinkage"]) or None,
        is_dragged=sent["dragged"],
    )


def _read_points(sent: Any) -> Array:
    """Coordinates and classes of points, shape (n, 3); an unlabeled one may have no class."""
    points = [(x, y, NO_CLASS if code is None else code) for x, y, code in sent]
    return np.array(points, dtype=float).reshape(-1, 3)


def fit_scene(scene: Scene) -> dict[str, Any]:
    """Fit the methods of a scene; a message says why where none can be fitted."""
    codes, message = np.unique(scene.y[scene.y != NO_CLASS]), ""
    if not len(codes):
        message = (
            "There are no labeled points. Choose a class and add points of two classes."
        )
    elif len(codes) == 1:
        name = CLASS_NAMES[codes[0]]
        message = (
            f"All labeled points are of class {name}. Add points of another class."
        )
    methods = () if message else scene.methods
    fits = {method.name: _fit(method, scene) for method in methods}
    return {"classes": codes.tolist(), "message": message, "fits": fits}


def _fit(method: Method, scene: Scene) -> dict[str, Any]:
    """Fit a method; the result has only ``error`` if it cannot be fitted."""
    classifier = method.classifier(shrinkage=scene.shrinkage)
    if scene.is_dragged:
        limit_starts(classifier, len(CLASS_NAMES), len(_AXES), DRAG_BUDGET)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(scene.X, scene.y)
        except ValueError as error:
            return {"error": _sentence(error)}
        is_labeled = scene.y != NO_CLASS
        likelihoods = classifier.log_likelihood(
            scene.X[is_labeled], scene.y[is_labeled]
        )
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
    return np.column_stack([coef, intercept]).tolist()  # type: ignore[no-any-return]


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


def _shares(
    method: Method, classifier: Any, unlabeled: Array
) -> Sequence[Sequence[float]]:
    """Labels that the method gives to the unlabeled points: shares in classes."""
    if not len(unlabeled):
        return []
    if hasattr(classifier, "impute"):
        shares = classifier.impute(unlabeled)
    elif method.name == "self-learning":
        shares = classifier.predict(unlabeled)[:, None] == classifier.classes_
    else:
        shares = classifier.predict_proba(unlabeled)
    rows: list[list[float]] = np.round(
        np.asarray(shares, dtype=float), _DECIMALS
    ).tolist()
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
    return np.array([[-0.7, -0.4], [1.5, 1.2]])[y] + 0.8 * rng.standard_normal(
        (n, 2)
    ), y


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
    Toy(
        "four",
        "Four classes",
        "Four clusters, three labeled points of each.",
        _ring(4),
        4,
        3,
    ),
    Toy("moons", "Two moons", "Classes that no straight line separates.", _moons),
    Toy(
        "rare",
        "A rare class",
        "One unlabeled point in eight is of class B, half of the labeled ones are.",
        _rare,
    ),
)


def draw_toy_scene(
    toy: Toy, seed: int, n_unlabeled: int = N_UNLABELED
) -> dict[str, Any]:
    """Draw labeled and unlabeled points of a toy problem, as the page holds them."""
    rng = np.random.default_rng([seed, *toy.name.encode()])
    X, y = toy.draw(n_unlabeled + 20 * toy.n_classes * toy.n_labeled, rng)
    placed = np.round(np.clip(X, -LARGEST_COORDINATE, LARGEST_COORDINATE), DECIMALS)
    points = [
        [*row, code] for row, code in zip(placed.tolist(), y.tolist(), strict=True)
    ]
    firsts = [
        np.flatnonzero(y == code)[: toy.n_labeled] for code in range(toy.n_classes)
    ]
    labeled = np.concatenate(firsts)
    others = np.setdiff1d(np.arange(len(y)), labeled)[:n_unlabeled]
    return {
        "labeled": [points[i] for i in labeled],
        "unlabeled": [points[i] for i in others],
    }


def playground_site() -> Site:
    """Make the page, its toy problems and its fits."""
    one_at_a_time = asyncio.Lock()  # threads share the filters of warnings

    async def fit(request: Request) -> Response:
        try:
            scene = read_scene(await request.json())
        except Exception as error:  # the page does not send such a scene
            return JSONResponse(
                {"message": f"This is no scene of the playground: {error!r}."}, 400
            )
        async with one_at_a_time:
            return JSONResponse(await run_in_threadpool(fit_scene, scene))

    async def draw(request: Request, toy: Toy) -> Response:
        return JSONResponse(draw_toy_scene(toy, request.path_params["seed"]))

    fit_scene(read_scene(_FIRST))
    routes = [
        Route("/about.json", _about),
        *(
            Route(f"/toys/{toy.name}/{{seed:int}}", partial(draw, toy=toy))
            for toy in PROBLEMS
        ),
        Route("/fit", fit, methods=["POST"]),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("playground", routes, _SHARED)


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
    toys = [
        {"name": toy.name, "title": toy.title, "sentence": toy.sentence}
        for toy in PROBLEMS
    ]
    limits = {"points": MOST_POINTS, "coordinate": LARGEST_COORDINATE}
    return JSONResponse(
        {"methods": methods, "classes": CLASS_NAMES, "toys": toys, "limits": limits}
    )
