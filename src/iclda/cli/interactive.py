"""The interactive commands: ask, label and playground."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from .. import cli
from .._messages import printable
from .._progress import show_cells

if TYPE_CHECKING:
    from ..tabular.ask import Pool, Round
    from ..tabular.table_files import Answers

_AnswersFile = Annotated[Path, Option(metavar="FILE", help="CSV of rows to label; it is extended.")]
_ClassColumn = Annotated[str, Option(metavar="COLUMN", help="Column of classes.")]
_RowId = Annotated[
    str, Option(metavar="COLUMN", help="Column of ids; row numbers if there is none named row.")
]
_Number = Annotated[int, Option(min=0, metavar="N", help="Rows to choose for labeling.")]
_Test = Annotated[int, Option(min=0, metavar="N", help="Rows to draw at random, for the error.")]
_Link = Annotated[str | None, Argument(metavar="LINK", help="A link that somebody shared.")]
_Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="Port; 0 takes any free one.")]
_NoBrowser = Annotated[bool, Option("--no-browser", help="Print the address, open nothing.")]
_Images = Annotated[
    str | None, Option(metavar="COLUMN|FOLDER", help="Column of paths, or a folder of images.")
]


def ask(
    data: cli.TableFile,
    n: _Number = 20,
    target: _ClassColumn = "label",
    id: _RowId = "row",
    labels: _AnswersFile = Path("to_label.csv"),
    test: _Test = 0,
    seed: cli.Seed = 0,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Choose the rows to label next, and state the error that the labels so far show."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..tabular.ask import ask_for_labels

        asked = ask_for_labels(data, n, target=target, id=id, labels=labels, n_test=test, seed=seed)
    if json:
        cli.print_json({**asked.to_json(), "next": _next(asked)})
    elif not quiet:
        for line in (*asked.lines, f"Next: {_next(asked)}"):
            typer.echo(printable(line))


def _then_fit(pool: Pool, answers: Answers, how: str) -> str:
    """The command that fits a model, or how to get labels of two classes, which it needs."""
    if len({*pool.labels.values(), *answers.labels.values()}) < 2:
        return f"run the same command {how}, since a fit needs labels of two classes"
    known = ["--labels", str(answers.path), "--id", pool.id, "--target", pool.target]
    unusable = ["--drop-unusable"] if pool.table.dropped else []
    return shlex.join(["iclda", "fit", str(pool.file.path), *known, *unusable])


def _next(asked: Round) -> str:
    """What to do after a round."""
    answers = asked.answers
    fit = _then_fit(asked.pool, answers, "with --n 20")
    if not answers.open_ids:
        return fit
    fill = f"fill in the column {answers.target!r} of {answers.path}"
    if not asked.n_left:
        return f"{fill}, then {fit}"
    test = ", with --test 50 to know the error" if asked.needs_random_rows else ""
    return f"{fill}, then run the same command again{test}"


def playground(link: _Link = None, port: _Port = 0, no_browser: _NoBrowser = False) -> None:
    """Open a page on which fits follow the points that you move.

    It is served on this machine only, until you press Ctrl-C.
    """
    from .._system import check_installed

    check_installed(("starlette", "uvicorn"), "the playground", "playground")
    from .._local_server import serve
    from ..playground import playground_site

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
    data: cli.TableFile,
    labels: _AnswersFile = Path("to_label.csv"),
    target: _ClassColumn = "label",
    id: _RowId = "row",
    images: _Images = None,
    port: _Port = 0,
    no_browser: _NoBrowser = False,
) -> None:
    """Open a page on which you label the rows that help a model most.

    It is served on this machine only, until you press Ctrl-C. Every answer is written at once.
    """
    from .._system import check_installed

    check_installed(("starlette", "uvicorn"), "the page to label on", "playground")
    from .._local_server import serve
    from .._system import check_writable
    from ..labeling import LabelingSession, ShownRows, labeling_site
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
        typer.echo(f"{session.answers}. Next: {_then_fit(pool, session.answers, 'again')}")


def _open(address: str, no_browser: bool) -> None:
    if not no_browser:  # in a thread: some browsers only return when they are closed
        Thread(target=webbrowser.open, args=(address,), daemon=True).start()
