"""The commands that ask for labels: ``ask`` in a file, ``label`` on a page."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from .._messages import printable
from .._progress import show_cells
from .._system import check_installed, check_writable
from . import messages, options
from .playground import NoBrowser, Port, serve_page

if TYPE_CHECKING:
    from .._local_server import Site
    from ..labeling.answers import Answers
    from ..labeling.pool import Pool
    from ..labeling.rounds import Round
    from ..labeling.session import LabelingSession

_AnswersFile = Annotated[
    Path,
    Option(metavar="FILE", help="CSV file of rows to label, which is extended."),
]
_ClassColumn = Annotated[
    str, Option(metavar="COLUMN", help="Column that holds the classes.")
]
_RowId = Annotated[
    str,
    Option(
        metavar="COLUMN", help="Column of ids; row numbers if there is no column row."
    ),
]
_Number = Annotated[int, options.number_option(0, help="Rows to choose for labeling.")]
_Test = Annotated[
    int,
    options.number_option(0, help="Rows to draw at random, to estimate the error."),
]
_Images = Annotated[
    str | None,
    Option(
        metavar="COLUMN|FOLDER",
        help="Column of the paths of images, or a folder of images.",
    ),
]


def ask(
    data: options.TableFile,
    n: _Number = 20,
    target: _ClassColumn = "label",
    id: _RowId = "row",
    labels: _AnswersFile = Path("to_label.csv"),
    test: _Test = 0,
    strict: options.Strict = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Choose rows to label next, and estimate the error."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..labeling.rounds import ask_for_labels

        asked = ask_for_labels(
            data,
            n,
            target=target,
            id=id,
            labels=labels,
            n_test=test,
            seed=seed,
            strict=strict,
        )
    next_step = _after_round(asked)
    lines = [messages.in_options(line) for line in asked.lines]
    if json:
        messages.print_json({**asked.to_json(), "lines": lines, "next": next_step})
    elif not quiet:
        for line in (*lines, f"Next: {next_step}"):
            typer.echo(printable(line))


def label(
    data: options.TableFile,
    labels: _AnswersFile = Path("to_label.csv"),
    target: _ClassColumn = "label",
    id: _RowId = "row",
    images: _Images = None,
    strict: options.Strict = False,
    port: Port = 0,
    no_browser: NoBrowser = False,
) -> None:
    """Open a page to label the rows that help a model most.

    It is served on this machine only, until you press Ctrl-C. Every answer is written
    at once.
    """
    check_installed(("starlette", "uvicorn"), "the page to label on", "playground")
    from ..labeling.pool import Pool
    from ..labeling.server import labeling_site
    from ..labeling.session import LabelingSession
    from ..labeling.shown import ShownRows

    check_writable(labels)
    pool = Pool(data, id, target, strict=strict)

    # A session writes the first rows to label. It begins when the server has its port,
    # so that no file is left behind if the port is in use.
    @cache
    def session() -> LabelingSession:
        return LabelingSession(pool, ShownRows(pool, images), labels)

    def make_site() -> Site:
        return labeling_site(session())

    note = f"Answers are written to {labels}. "
    serve_page(make_site, port, no_browser, "Labeling", note=note)
    answers = session().answers
    typer.echo(f"{answers}. Next: {_fit_step(pool, answers, 'again')}")


def _after_round(asked: Round) -> str:
    """Say what to do after a round of questions."""
    answers = asked.answers
    fit = _fit_step(asked.pool, answers, "with --n 20")
    if not answers.open_ids:
        return fit
    fill = f"fill in the column {answers.target!r} of {answers.path}"
    if not asked.n_left:
        return f"{fill}, then {fit}"
    test = ", with --test 50 to know the error" if asked.needs_random_rows else ""
    return f"{fill}, then run the same command again{test}"


def _fit_step(pool: Pool, answers: Answers, how_to_repeat: str) -> str:
    """Return the command that fits a model, or how to get labels of two classes."""
    # Labels may be in the data file already, besides those in the file of answers.
    classes = {*pool.labels.values(), *answers.labels.values()}
    if len(classes) < 2:
        return (
            f"run the same command {how_to_repeat}, since a fit needs labels of two "
            "classes"
        )
    command = ["iclda", "fit", str(pool.file.path)]
    command += ["--labels", str(answers.path), "--id", pool.id, "--target", pool.target]
    return shlex.join(command)
