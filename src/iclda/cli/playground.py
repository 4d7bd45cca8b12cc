"""The command ``playground``, and how commands serve a page to the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from .._system import check_installed
from .messages import print_lines
from .options import number_option

if TYPE_CHECKING:
    from .._local_server import Site

_Link = Annotated[
    str | None, Argument(metavar="LINK", help="A link that somebody shared.")
]
Port = Annotated[
    int,
    number_option(0, 65535, help="Port to serve on; 0 takes any free one."),
]
NoBrowser = Annotated[
    bool,
    Option("--no-browser", help="Print the address without opening a browser."),
]


def playground(
    link: _Link = None, port: Port = 0, no_browser: NoBrowser = False
) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    check_installed(("starlette", "uvicorn"), "the playground", "playground")
    from ..playground import playground_site

    # A link ends with the state of the page; the state alone is a link, too.
    fragment = ""
    if link is not None:
        state = link.partition("#")[2] or link
        fragment = f"#{state}" if state else ""
    serve_page(playground_site, port, no_browser, "Playground", fragment=fragment)


def serve_page(
    make_site: Callable[[], Site],
    port: int,
    no_browser: bool,
    title: str,
    *,
    fragment: str = "",
    note: str = "",
    remarks: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Serve a page until Ctrl-C, which is the way to end it.

    ``fragment`` is added to the address, and ``note`` is printed below it. ``remarks``
    is called when the site has been made, and returns further lines to print.
    """
    from .._local_server import serve

    def show(address: str) -> None:
        address += fragment
        typer.echo(f"{title}: {address}\n{note}Press Ctrl-C to stop.")
        print_lines(remarks())
        if not no_browser:
            # In a thread, because some browsers only return when they are closed.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    with suppress(KeyboardInterrupt):
        serve(port, make_site, show)
