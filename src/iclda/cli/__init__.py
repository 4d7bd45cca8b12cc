"""The command line: parses and calls. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import sys
import webbrowser
from threading import Thread
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover - without the extra there is no command line to test
    sys.exit("The command line needs extra packages: pip install 'iclda[data,experiments]'.")

from . import ask, models, studies, words

_Link = Annotated[str | None, typer.Argument(metavar="LINK", help="A link that somebody shared.")]
_Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes any free one.")
]
_NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")]


def playground(link: _Link = None, port: _Port = 0, no_browser: _NoBrowser = False) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    from .._packages import check_installed

    check_installed(("starlette", "uvicorn"), "the playground", "playground")
    from ..playground.server import serve

    def show(address: str) -> None:
        state = "" if link is None else link.partition("#")[2] or link
        address += f"#{state}" if state else ""
        typer.echo(f"Playground: {address}\nCtrl-C ends it.")
        if not no_browser:  # in a thread: some browsers only return when they are closed
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        serve(port, show)
    except KeyboardInterrupt:
        return  # the way to end it


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from .. import __version__

        typer.echo(f"iclda {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Show it and exit."),
]


def _options(version: _Version = False) -> None: ...


app = typer.Typer(
    callback=_options,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Semi-supervised linear discriminant analysis: on your own tables, and on the paper's.",
)
for command in (
    studies.compare,
    ask.ask,
    *(models.fit, models.predict, models.evaluate, models.show),
    *(studies.reproduce, studies.tables, studies.curves, studies.toy),
    *(studies.report, studies.datasets, playground),
):
    is_study = command.__module__ == studies.__name__
    app.command()(words.explained(command, words.RESUMABLE if is_study else words.NOT_WRITTEN))
