"""The command that chooses the rows to label next, and says what the labels so far show."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from .._messages import printable
from .._progress import show_cells
from . import words

if TYPE_CHECKING:
    from ..tabular.ask import Pool, Round

AnswersFile = Annotated[Path, Option(metavar="FILE", help="CSV of rows to label; it is extended.")]
ClassColumn = Annotated[str, Option(metavar="COLUMN", help="Column of classes.")]
RowId = Annotated[
    str, Option(metavar="COLUMN", help="Column of ids; row numbers if there is none named row.")
]
_Number = Annotated[int, Option(min=0, metavar="N", help="Rows to choose for labeling.")]
_Test = Annotated[int, Option(min=0, metavar="N", help="Rows to draw at random, for the error.")]


def ask(
    data: words.TableFile,
    n: _Number = 20,
    target: ClassColumn = "label",
    id: RowId = "row",
    labels: AnswersFile = Path("to_label.csv"),
    test: _Test = 0,
    seed: words.Seed = 0,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Choose the rows to label next, and state the error that the labels so far show."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..tabular.ask import ask_for_labels

        asked = ask_for_labels(data, n, target=target, id=id, labels=labels, n_test=test, seed=seed)
    if json:
        words.print_json({**asked.to_json(), "next": _next(asked)})
    elif not quiet:
        for line in (*asked.lines, f"Next: {_next(asked)}"):
            typer.echo(printable(line))


def command_to_fit(pool: Pool, answers: Path) -> str:
    """The command that fits a model to the rows of a pool and the answers in a file."""
    known = ["--labels", str(answers), "--id", pool.id, "--target", pool.target]
    unusable = ["--drop-unusable"] if pool.table.dropped else []
    return shlex.join(["iclda", "fit", str(pool.file.path), *known, *unusable])


def _next(asked: Round) -> str:
    """What to do after a round."""
    answers = asked.answers
    fit = command_to_fit(asked.pool, answers.path)
    if not answers.open_ids:
        return fit
    fill = f"fill in the column {answers.target!r} of {answers.path}"
    if not asked.n_left:
        return f"{fill}, then {fit}"
    test = ", with --test 50 to know the error" if asked.needs_random_rows else ""
    return f"{fill}, then run the same command again{test}"
