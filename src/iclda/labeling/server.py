"""The site of the labeling page: its state, its actions, and the files of the rows.

``GET state`` returns the state of the session as JSON. ``POST answer``, ``skip``,
``jump``, ``back`` and ``again`` carry out an action and return the state after it. When
a state is sent, a job in the background begins to compute what the session lacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from .._local_server import Site
from .session import LabelingSession
from .shown import media_type_of

_STATIC = Path(__file__).parent / "static"
# The playground and the labeling page look alike.
_LOOK = Path(__file__).parents[1] / "playground" / "static" / "look.css"

# What a request sends.
_Sent = Mapping[str, Any]

# What a request does to the session, by the last part of its address.
_ACTIONS: dict[str, Callable[[LabelingSession, _Sent], None]] = {
    "answer": lambda session, sent: session.answer(_id_in(sent), _text(sent, "label")),
    "skip": lambda session, sent: session.skip(_id_in(sent)),
    "jump": lambda session, sent: session.jump(_id_in(sent)),
    "back": lambda session, sent: session.back(),
    "again": lambda session, sent: session.again(),
}


def _text(sent: _Sent, key: str) -> str:
    return str(sent.get(key, ""))


def _id_in(sent: _Sent) -> str:
    return _text(sent, "id")


async def _fit(session: LabelingSession) -> None:
    """Compute whatever the session lacks, one task at a time.

    The results of a task are accepted on the thread of the server, which alone changes
    the session.
    """
    while (task := session.next_task()) is not None:
        try:
            batch, findings = await run_in_threadpool(session.compute, task)
            session.sync()
            session.accept(task, batch, findings)
        # The page shows what is wrong, and the person can go on.
        except (ValueError, OSError, MemoryError) as error:
            session.accept(task, None, replace(session.findings, problem=str(error)))


def labeling_site(session: LabelingSession) -> Site:
    """Make the page, its actions, and the images and sounds of the rows."""
    fitting: asyncio.Task[None] | None = None

    def state() -> Response:
        """Return the state, and start to compute what the session lacks."""
        nonlocal fitting
        is_fitting = fitting is not None and not fitting.done()
        if not is_fitting and session.next_task() is not None:
            fitting = asyncio.create_task(_fit(session))
            is_fitting = True
        return JSONResponse({**session.state(), "is_fitting": is_fitting})

    async def act(request: Request) -> Response:
        """Carry out the action that the address names."""
        carry_out = _ACTIONS[request.url.path.rpartition("/")[2]]
        try:
            sent = await request.json()
            session.sync()
            carry_out(session, sent)
        except (ValueError, OSError) as error:
            return JSONResponse({"message": str(error)}, 400)
        session.sync()
        return state()

    async def send_state(request: Request) -> Response:
        return state()

    async def send_file(request: Request) -> Response:
        """Send the image or sound of a row; the request gives its position, no path."""
        position = request.path_params["position"]
        files = session.shown.files
        file = files[position] if position < len(files) else None
        media_type = None if file is None else media_type_of(file)
        if file is None or media_type is None or not file.is_file():
            message = f"Row {position} has no image or sound."
            return JSONResponse({"message": message}, 404)
        return FileResponse(file, media_type=media_type)

    async def send_look(request: Request) -> Response:
        return FileResponse(_LOOK)

    routes: list[BaseRoute] = [
        Route("/state", send_state),
        *(Route(f"/{name}", act, methods=["POST"]) for name in _ACTIONS),
        Route("/file/{position:int}", send_file),
        Route("/look.css", send_look),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("label", routes)
