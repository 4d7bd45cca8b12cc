"""The commands that serve a page on this machine: playground, label."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer
from typer import Argument, Option

from . import words
from .ask import AnswersFile, ClassColumn, RowId, command_to_fit

_Link = Annotated[str | None, Argument(metavar="LINK", help="A link that somebody shared.")]
_Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="Port; 0 takes any free one.")]
_NoBrowser = Annotated[bool, Option("--no-browser", help="Print the address, open nothing.")]
_Images = Annotated[
    str | None, Option(metavar="COLUMN|FOLDER", help="Column of paths, or a folder of images.")
]


def playground(link: _Link = None, port: _Port = 0, no_browser: _NoBrowser = False) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    from .._packages import check_installed

    check_installed(("starlette", "uvicorn"), "the playground", "playground")
    from .._local_server import serve
    from ..playground.server import playground_site

    def show(address: str) -> None:
        state = "" if link is None else link.partition("#")[2] or link
        address += f"#{state}" if state else ""
        typer.echo(f"Playground: {address}\nCtrl-C ends it.")
        _open(address, no_browser)

    try:
        serve(port, playground_site, show)
    except KeyboardInterrupt:
        return  # the way to end it


def label(
    data: words.TableFile,
    labels: AnswersFile = Path("to_label.csv"),
    target: ClassColumn = "label",
    id: RowId = "row",
    images: _Images = None,
    port: _Port = 0,
    no_browser: _NoBrowser = False,
) -> None:
    """Open a page on which you label the rows that help a model most.

    It is served on this machine only, until you press Ctrl-C. Every answer is written at once.
    """
    from .._packages import check_installed

    check_installed(("starlette", "uvicorn"), "the page to label on", "playground")
    from .._local_server import serve
    from .._paths import check_writable
    from ..labeling.server import labeling_site
    from ..labeling.session import LabelingSession
    from ..labeling.shown import ShownRows
    from ..tabular.ask import Pool

    check_writable(labels)
    pool = Pool(data, id, target)
    session = LabelingSession(pool, ShownRows(pool, images), labels)

    def show(address: str) -> None:
        typer.echo(f"Labeling: {address}\nAnswers are written to {labels}. Ctrl-C ends it.")
        _open(address, no_browser)

    try:
        serve(port, lambda: labeling_site(session), show)
    except KeyboardInterrupt:
        typer.echo(f"{session.answers}. Next: {command_to_fit(pool, labels)}")


def _open(address: str, no_browser: bool) -> None:
    if not no_browser:  # in a thread: some browsers only return when they are closed
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()
