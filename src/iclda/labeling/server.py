"""What the server of the labeling page answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from .._local_server import Site
from . import MEDIA_TYPES, LabelingSession

_STATIC = Path(__file__).parent / "static"
_LOOK = Path(__file__).parents[1] / "playground" / "static" / "look.css"
# Methods of the session, and what a request sends as their arguments.
_ACTIONS = {"answer": ("id", "label"), "skip": ("id",), "jump": ("id",), "back": (), "again": ()}
_OTHER_ADDRESS = (
    "This address is not that of the labeling page that is running: open the one that `iclda "
    "label` prints.\n"
)


class _Fitter:
    """Computes in the background whatever the session lacks, one task at a time."""

    def __init__(self, session: LabelingSession) -> None:
        self.session = session
        self.running: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self.running is not None and not self.running.done()

    def start(self) -> None:
        if not self.is_busy and self.session.next_task() is not None:
            self.running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while (task := self.session.next_task()) is not None:
            try:
                found = await run_in_threadpool(self.session.compute, task)
                self.session.sync()
                self.session.accept(task, *found)
            except (ValueError, OSError, MemoryError) as error:
                findings = replace(self.session.findings, problem=str(error))
                self.session.accept(task, None, findings)


def labeling_site(session: LabelingSession) -> Site:
    """Make the page, its actions, and the images and sounds of the rows."""
    fitter = _Fitter(session)

    def state() -> Response:
        fitter.start()
        return JSONResponse({**session.state(), "is_fitting": fitter.is_busy})

    async def act(request: Request) -> Response:
        """Call the method of the session that the address names."""
        name = request.url.path.rpartition("/")[2]
        try:
            sent = await request.json()
            if not isinstance(sent, dict):
                raise ValueError(f"An object is needed, got {type(sent).__name__}.")
            session.sync()
            getattr(session, name)(*(str(sent.get(key, "")) for key in _ACTIONS[name]))
        except (ValueError, RecursionError, OSError) as error:
            return JSONResponse({"message": str(error)}, 400)
        session.sync()
        return state()

    async def show(request: Request) -> Response:
        return state()

    async def send_file(request: Request) -> Response:
        """Send the image or sound of a row, which the request numbers: it names no path."""
        place = request.path_params["place"]
        file = session.shown.files[place] if place < len(session.shown.files) else None
        kind = None if file is None else MEDIA_TYPES.get(file.suffix.lower())
        if file is None or kind is None or not file.is_file():
            return JSONResponse({"message": f"Row {place} has no image or sound."}, 404)
        return FileResponse(file, media_type=kind)

    async def send_look(request: Request) -> Response:
        return FileResponse(_LOOK)

    routes: list[BaseRoute] = [
        Route("/state", show),
        *(Route(f"/{name}", act, methods=["POST"]) for name in _ACTIONS),
        Route("/file/{place:int}", send_file),
        Route("/look.css", send_look),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("The labeling page", routes, _OTHER_ADDRESS)
