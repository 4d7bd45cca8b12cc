"""The commands that ask for labels: ``ask`` in a file, ``label`` on a page."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from .._messages import plural, printable
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
    from ..tabular.read_options import ReadOptions

_AnswersFile = Annotated[
    Path,
    Option(metavar="FILE", help="CSV file of the rows to label; rows are added to it."),
]
_ClassColumn = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column that holds the classes. A new name starts without any label. "
        "Default: label, if there is such a column.",
    ),
]
_RowId = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column that identifies the rows. Default: row if there is such a column, "
        "else the row of the file, as a spreadsheet counts; of an array, from 0.",
    ),
]
_Number = Annotated[int, options.number_option(0, help="Number of rows to choose.")]
_Test = Annotated[
    int,
    options.number_option(
        0, help="Number of rows to draw at random. Their labels measure the error."
    ),
]
_Unknown = Annotated[
    bool,
    Option(
        "--unknown",
        help="Choose rows that resemble none of the classes labeled so far first.",
    ),
]
_More = Annotated[
    bool,
    Option("--more", help="Add rows even if none of the last round has an answer."),
]
_Images = Annotated[
    str | None,
    Option(metavar="COLUMN|FOLDER", help="Column of image paths, or folder of images."),
]


def ask(
    data: options.TableFile,
    n: _Number = 20,
    target: _ClassColumn = None,
    id: _RowId = None,
    labels: _AnswersFile = Path("to_label.csv"),
    test: _Test = 0,
    unknown: _Unknown = False,
    more: _More = False,
    unlabeled: options.Unlabeled = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    strict: options.Strict = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Choose the rows to label next, and estimate the error."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..labeling.rounds import ask_for_labels

        asked = ask_for_labels(
            data,
            n,
            target=target,
            id=id,
            labels=labels,
            n_test=test,
            unknown=unknown,
            more=more,
            seed=seed,
            unlabeled=unlabeled,
            drop=drop or (),
            keep=keep,
            strict=strict,
        )
    remarks = [messages.in_options(text) for text in asked.remarks]
    next_step = _after_round(asked, n_test=test)
    if json:
        lines = [*asked.lines, *remarks]
        messages.print_json({**asked.to_json(), "lines": lines, "next": next_step})
    elif not quiet:
        messages.print_lines(asked.lines)
        # Not wrapped, so that a command can be copied.
        typer.echo(printable(f"Next: {next_step}"))
        if remarks:
            messages.print_lines(["", *remarks])


def label(
    data: options.TableFile,
    labels: _AnswersFile = Path("to_label.csv"),
    target: _ClassColumn = None,
    id: _RowId = None,
    images: _Images = None,
    unlabeled: options.Unlabeled = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    strict: options.Strict = False,
    port: Port = 0,
    no_browser: NoBrowser = False,
) -> None:
    """Open a page on which you label the most useful rows.

    Only this machine can open it, until you press Ctrl-C. Every answer is saved at
    once.
    """
    check_installed(("starlette", "uvicorn"), "the page to label on", "playground")
    from ..labeling.pool import Pool
    from ..labeling.server import labeling_site
    from ..labeling.session import LabelingSession
    from ..labeling.shown import ShownRows

    check_writable(labels)
    pool = Pool(
        data,
        id,
        target,
        answers=labels,
        unlabeled=unlabeled,
        drop=drop or (),
        keep=keep,
        strict=strict,
    )

    # A session writes the first rows to label. It begins when the server has its port,
    # so that no file is left behind if the port is in use.
    @cache
    def session() -> LabelingSession:
        return LabelingSession(pool, ShownRows(pool, images), labels)

    def make_site() -> Site:
        return labeling_site(session())

    def remarks() -> list[str]:
        return [messages.in_options(text) for text in session().project.remarks()]

    note = f"Answers are saved in {labels}. "
    serve_page(make_site, port, no_browser, "Labeling", note=note, remarks=remarks)
    answers = session().answers
    typer.echo(f"{answers}. Next: {_fit_step(pool, answers, 'again')}")


def _after_round(asked: Round, n_test: int) -> str:
    """Say what to do after a round of questions, ``n_test`` of them at random."""
    answers = asked.answers
    how_to_repeat = "with --n 20" if asked.n_left else "again"
    fit = _fit_step(asked.pool, answers, how_to_repeat)
    if not answers.open_ids:
        return fit
    fill = f"fill in the column {answers.target!r} of {answers.path}"
    if not asked.n_left:
        return f"{fill}, then: {fit}"
    parts = [f"{fill}, then run the same command again"]
    if asked.needs_random_rows and not n_test:
        parts.append("Add --test 50 to measure the error")
    if asked.n_not_added:
        rows = plural(asked.n_not_added, "more row")
        parts.append(f"For {rows} now, add --more")
    return ". ".join(parts)


def _fit_step(pool: Pool, answers: Answers, how_to_repeat: str) -> str:
    """Return the command that fits a model, or how to get labels of two classes."""
    # Labels may be in the data file already, besides those in the file of answers.
    classes = {*pool.labels.values(), *answers.labels.values()}
    if len(classes) < 2:
        return (
            f"run the same command {how_to_repeat}, because a fit needs labels of two "
            "classes"
        )
    command = ["iclda", "fit", str(pool.file.path)]
    # The file of answers does not exist before rows are asked for.
    if answers.ids():
        command += ["--labels", str(answers.path)]
    if answers.ids() or pool.id in pool.file.columns:
        command += ["--id", pool.id]
    command += ["--target", pool.target]
    command += _column_options(pool.options)
    return shlex.join(command)


def _column_options(reading: ReadOptions) -> list[str]:
    """Return the options for cells and columns, as they were given."""
    words = []
    if reading.unlabeled is not None:
        words += ["--unlabeled", str(reading.unlabeled)]
    for column in reading.drop or ():
        words += ["--drop", column]
    for column in reading.keep or ():
        words += ["--keep", column]
    return words
