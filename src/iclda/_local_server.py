"""HTTP servers for pages that only a browser on this machine may open.

The playground and the labeling page each describe themselves as a `Site`. `serve` binds
a port of this machine, puts the site below a random token, and runs until the process
is interrupted. A request has to pass two checks, of its host and of its token (see
`Guard`).
"""

from __future__ import annotations

import gc
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from threadpoolctl import threadpool_limits

from ._messages import Hint, ParameterError, say

ADDRESS = "127.0.0.1"

# Sent with every response. The page may load nothing from elsewhere, and no other site
# may embed it or read its responses.
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
    """A page and everything that it requests.

    Attributes
    ----------
    command : str
        The subcommand of ``iclda`` that serves the page.
    routes : sequence of BaseRoute
        Addresses below the token.
    note : str
        Shown to a browser that does not know the token.
    """

    command: str
    routes: Sequence[BaseRoute]
    note: str = ""


class Guard:
    """Refuses requests to another host or without the token; sets the response headers.

    A page of another site can make its own name lead to this machine (DNS rebinding)
    and then read the responses. The browser sends that name as the host, and
    ``TrustedHostMiddleware`` refuses all names but those of this machine.
    """

    def __init__(self, site: Site, token: str) -> None:
        pages = Starlette(routes=[Mount(f"/{token}", routes=site.routes)])
        self.site = site
        self.token = token
        self.app: ASGIApp = TrustedHostMiddleware(
            self._with_token(pages),
            allowed_hosts=[ADDRESS, "localhost"],
            www_redirect=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the headers of every response added."""
        added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _with_token(self, pages: ASGIApp) -> ASGIApp:
        """Wrap the pages so that a request without the token gets a refusal instead."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            _, _, after_slash = scope["path"].partition("/")
            token = after_slash.split("/")[0]
            # A comparison in constant time: its duration does not betray the token.
            if secrets.compare_digest(token.encode(), self.token.encode()):
                await pages(scope, receive, send)
                return
            refusal = PlainTextResponse(
                "This is not the page that is running: open the address that "
                f"`iclda {self.site.command}` prints.\n{self.site.note}\n",
                status_code=403,
            )
            await refusal(scope, receive, send)

        return answer


def bind(port: int) -> socket.socket:
    """Open a socket that listens on this machine only; port 0 takes any free one."""
    # The protocol is named because asyncio turns off delays only for sockets known to
    # be TCP; otherwise every response takes 40 ms more.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # On other systems the option would take the port from the program that uses it.
    if os.name == "posix":
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
    """Make a server for ``run(sockets=[listening])``, and return its page's address."""
    token = secrets.token_urlsafe(16)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        Guard(site, token),
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
    """Serve a site until the process is interrupted.

    ``show`` gets the address of the page once it can be opened.
    """
    # Fits of the few rows of a page take longer on many threads.
    with bind(port) as listening, threadpool_limits(1):
        server, address = make_server(listening, make_site())
        # Garbage collections need not traverse the imported modules again and again.
        gc.freeze()
        show(address)
        server.run(sockets=[listening])
