"""HTTP servers of pages for browsers on this machine that know the token."""

from __future__ import annotations

import gc
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from threadpoolctl import threadpool_limits

from ._messages import Hint, ParameterError, say

ADDRESS = "127.0.0.1"
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; media-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class Site:
    """A page with all that it requests."""

    command: str  # that serves it
    routes: Sequence[BaseRoute]  # below the token
    note: str = ""  # for those who may not open it


class Guard:
    """Refuses requests to another host or without the token, and sets the headers of answers.

    A page of another site can make its own name lead to this machine (DNS rebinding) and then read
    answers: the browser sends that name as the host.
    """

    def __init__(self, site: Site, token: str, port: int) -> None:
        self.app: ASGIApp = Starlette(routes=[Mount(f"/{token}", routes=site.routes)])
        self.site, self.token = site, token
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [
                    (name.encode(), value.encode()) for name, value in _HEADERS.items()
                ]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        answer = self._refusal(scope) or self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        host = Headers(scope=scope).get("host", "")
        if host not in self.hosts:
            return PlainTextResponse(
                f"The page is on {ADDRESS} only, not on another host.\n", 403
            )
        token = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            command = f"open the address that `iclda {self.site.command}` prints"
            text = (
                f"This is not the page that is running: {command}.\n{self.site.note}\n"
            )
            return PlainTextResponse(text, 403)
        return None


def bind(port: int) -> socket.socket:
    """Open a socket that listens on this machine only; port 0 is any free one."""
    # For TCP sockets asyncio turns delays off; otherwise every answer takes 40 ms more.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if (
        os.name == "posix"
    ):  # elsewhere the option takes a port from the program that uses it
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


def make_server(listening: socket.socket, site: Site) -> tuple[uvicorn.Server, str]:
    """Make a server for ``run(sockets=[listening])``; return it and the address of its page."""
    token, port = secrets.token_urlsafe(16), listening.getsockname()[1]
    config = uvicorn.Config(
        Guard(site, token, port),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config), f"http://{ADDRESS}:{port}/{token}/"


def serve(
    port: int, make_site: Callable[[], Site], show: Callable[[str], None]
) -> None:
    """Serve until the process is interrupted; ``show`` gets the address once it can be opened."""
    with (
        bind(port) as listening,
        threadpool_limits(1),
    ):  # small fits take longer on many threads
        server, address = make_server(listening, make_site())
        gc.freeze()  # so that collections do not traverse the imported modules
        show(address)
        server.run(sockets=[listening])
