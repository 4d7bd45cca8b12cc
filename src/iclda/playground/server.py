"""What the server of the playground answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .._local_server import Site
from ..methods import INK, METHODS
from . import (
    CLASS_NAMES,
    LARGEST_COORDINATE,
    MOST_POINTS,
    PROBLEMS,
    SceneError,
    draw_toy_scene,
    fit_scene,
    read_scene,
)

_MOST_BYTES = 2**20  # of a scene
_STATIC = Path(__file__).parent / "static"
_OTHER_ADDRESS = (
    "This address is not that of the playground that is running: open the one that `iclda "
    "playground` prints.\nA link that somebody shared is opened by `iclda playground LINK`, or "
    "pasted under Share.\n"
)
# Fitted before the page is opened, because the first fit imports what all need.
_FIRST = {"labeled": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]], "methods": ["supervised"]}


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
