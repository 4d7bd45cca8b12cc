"""The site of the playground: the page, its toy problems and its fits."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .._local_server import Site
from ..methods import INK
from .scenes import CLASS_NAMES, SHOWN_METHODS, fit_scene, read_scene
from .toys import LARGEST_COORDINATE, PROBLEMS, Toy, draw_toy_scene

MAX_POINTS = 5_000
_STATIC = Path(__file__).parent / "static"
_SHARED_LINK_HINT = (
    "A link that somebody shared is opened by `iclda playground LINK`, or pasted under "
    "Share."
)
# Fitted before the page is opened, because the first fit imports what all fits need.
_FIRST_SCENE: dict[str, Any] = {
    "labeled": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]],
    "unlabeled": [],
    "methods": ["supervised"],
    "shown": "",
    "shrinkage": 0,
    "dragged": False,
}


def playground_site() -> Site:
    """Make the page, its toy problems and its fits."""
    # Threads share the filters of warnings: fits run one at a time.
    one_at_a_time = asyncio.Lock()

    async def fit(request: Request) -> Response:
        try:
            scene = read_scene(await request.json())
        except Exception as error:
            # The page does not send such a scene.
            message = f"This is no scene of the playground: {error!r}."
            return JSONResponse({"message": message}, 400)
        async with one_at_a_time:
            return JSONResponse(await run_in_threadpool(fit_scene, scene))

    async def draw(request: Request, toy: Toy) -> Response:
        return JSONResponse(draw_toy_scene(toy, request.path_params["seed"]))

    fit_scene(read_scene(_FIRST_SCENE))
    toy_routes = [
        Route(f"/toys/{toy.name}/{{seed:int}}", partial(draw, toy=toy))
        for toy in PROBLEMS
    ]
    routes = [
        Route("/about.json", _about),
        *toy_routes,
        Route("/fit", fit, methods=["POST"]),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("playground", routes, _SHARED_LINK_HINT)


def _about(request: Request) -> Response:
    """Tell the page about methods, classes, toy problems and limits."""
    methods = [
        {
            "name": method.name,
            "title": method.title,
            "sentence": method.sentence,
            # An empty color is that of the text.
            "color": "" if method.color == INK else method.color,
            "uses_unlabeled": method.uses_unlabeled,
        }
        for method in SHOWN_METHODS
    ]
    toys = [
        {"name": toy.name, "title": toy.title, "sentence": toy.sentence}
        for toy in PROBLEMS
    ]
    about = {
        "methods": methods,
        "classes": CLASS_NAMES,
        "toys": toys,
        "limits": {"points": MAX_POINTS, "coordinate": LARGEST_COORDINATE},
    }
    return JSONResponse(about)
