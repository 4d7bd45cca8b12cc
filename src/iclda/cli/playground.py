"""The command that opens the playground."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from . import words

_Link = Annotated[str | None, Argument(metavar="LINK", help="A link that somebody shared.")]
_Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="Port; 0 takes any free one.")]
_NoBrowser = Annotated[bool, Option("--no-browser", help="Print the address, open nothing.")]


def playground(link: _Link = None, port: _Port = 0, no_browser: _NoBrowser = False) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    with words.explained_errors():
        from .._packages import check_installed

        check_installed(("starlette", "uvicorn"), "the playground", "playground")
        from ..playground.server import serve

        def show(address: str) -> None:
            state = "" if link is None else link.partition("#")[2] or link
            address += f"#{state}" if state else ""
            typer.echo(f"Playground: {address}\nCtrl-C ends it.")
            if not no_browser:
                _open_browser(address)

        try:
            serve(port, show)
        except KeyboardInterrupt:
            return  # the way to end it


def _open_browser(address: str) -> None:
    """Open the page in a thread of its own: some browsers only return when they are closed."""
    import webbrowser
    from threading import Thread

    Thread(target=webbrowser.open, args=(address,), daemon=True).start()
