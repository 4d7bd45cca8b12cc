"""HTTP server of the playground, for browsers on this machine that know the token."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from threadpoolctl import threadpool_limits

from .._messages import Hint, ParameterError, say
from ..methods import INK, METHODS
from . import (
    CLASS_NAMES,
    LARGEST_COORDINATE,
    MOST_POINTS,
    N_UNLABELED,
    PROBLEMS,
    SceneError,
    draw_toy_scene,
    fit_scene,
    read_scene,
)

ADDRESS = "127.0.0.1"
_MOST_BYTES = 2**20  # of a scene
_STATIC = Path(__file__).parent / "static"
# Fitted before the page is opened, because the first fit imports what all need.
_FIRST = {"labeled": [[0, 0, 0], [1, 1, 0], [2, 0, 1], [3, 1, 1]], "methods": ["supervised"]}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Guard:
    """Refuses requests to another host or without the token, and sets the headers of answers.

    A page of another site can make its own name lead to this machine (DNS rebinding) and then read
    answers: the browser sends that name as the host.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        answer = self._refusal(scope) or self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        host = Headers(scope=scope).get("host", "")
        if host not in self.hosts:
            return PlainTextResponse(
                f"The playground answers on {ADDRESS} only, not as another host.\n", 403
            )
        token = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse(
                "This address is not that of the playground that is running: open the one that "
                "`iclda playground` prints.\nA link that somebody shared is opened by "
                "`iclda playground LINK`, or pasted under Share.\n",
                403,
            )
        return None


def make_app(token: str, port: int) -> ASGIApp:
    """Make the application: the page, its toy problems and its fits, below the token."""
    one_at_a_time = asyncio.Lock()  # threads share the filters of warnings

    async def fit(request: Request) -> Response:
        try:
            scene = read_scene(await _read_json(request))
        except SceneError as error:
            return _refused(error)
        async with one_at_a_time:
            return JSONResponse(await run_in_threadpool(fit_scene, scene))

    routes = [
        Route("/about.json", _about),
        Route("/toys/{name}", _toy),
        Route("/fit", fit, methods=["POST"]),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), token, port)


def _about(request: Request) -> Response:
    """Methods, classes, toy problems and limits, for the page."""
    methods = [
        {
            "name": method.name,
            "short": method.paper_name,
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
    try:
        seed = _count(request, "seed", 0, 2**31)
        n_unlabeled = _count(request, "n", N_UNLABELED, MOST_POINTS // 2)
        return JSONResponse(draw_toy_scene(request.path_params["name"], seed, n_unlabeled))
    except ValueError as error:
        return _refused(error)


def _count(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))[:40]
    if not text.isdecimal() or int(text) > most:
        raise SceneError(f"{name} must be a whole number from 0 to {most:,}, got {text!r}.")
    return int(text)


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


def bind(port: int) -> socket.socket:
    """Open a socket that listens on this machine only; port 0 is any free one."""
    # For TCP sockets asyncio turns delays off; otherwise every answer takes 40 ms more.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # elsewhere the option takes a port from the program that uses it
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
    except OSError as error:
        listening.close()
        sentence = "{given} cannot be used ({problem}): leave it out for any free port."
        text = say(sentence, given=Hint("port", port), problem=error.strerror)
        raise ParameterError(text, parameter="port", value=port) from None
    listening.listen()
    return listening


def make_server(listening: socket.socket) -> tuple[uvicorn.Server, str]:
    """Make a server for ``run(sockets=[listening])``; return it and the address of its page."""
    token, port = secrets.token_urlsafe(16), listening.getsockname()[1]
    config = uvicorn.Config(
        make_app(token, port),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config), f"http://{ADDRESS}:{port}/{token}/"


def serve(port: int, show: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; ``show`` gets the address once it can be opened."""
    with bind(port) as listening:
        server, address = make_server(listening)
        fit_scene(read_scene(_FIRST))
        gc.freeze()  # so that collections do not traverse the imported modules
        show(address)
        with threadpool_limits(1):  # small fits take longer on many threads
            server.run(sockets=[listening])
