"""The command that chooses the rows to label next, and says what the labels so far show."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from .._messages import printable
from .._progress import spinner
from . import words

if TYPE_CHECKING:
    from ..tabular.ask import Round

Answers = Annotated[Path, Option(metavar="FILE", help="CSV of the rows to label; it is extended.")]
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
    labels: Answers = Path("to_label.csv"),
    test: _Test = 0,
    seed: words.Seed = 0,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Choose the rows to label next, and state the error that the labels so far show."""
    with spinner("Choosing rows", quiet or json):
        from ..tabular.ask import ask_for_labels

        asked = ask_for_labels(data, n, target=target, id=id, labels=labels, n_test=test, seed=seed)
    named = ["--labels", str(labels), *_unless("--id", id, "row")]
    fit = shlex.join(["iclda", "fit", str(data), "--labels", str(labels), "--id", id])
    given = [*_unless("--target", target, "label"), *named]
    again = shlex.join(["iclda", "ask", str(data), "--n", str(n), *given])
    next_one = f"Next: {_next(asked, again, fit)}"
    if json:
        words.print_json({**asked.to_json(), "next": next_one})
    elif not quiet:
        for line in (*asked.lines, next_one):
            typer.echo(printable(line))


def _unless(option: str, value: str, default: str) -> list[str]:
    return [] if value == default else [option, value]


def _next(asked: Round, again: str, fit: str) -> str:
    """What to do after a round."""
    n_open = len(asked.answers.open_ids)
    if not n_open:
        return fit
    test = " --test 50" if asked.needs_random_rows else ""
    fill = f"fill in the column {asked.answers.target!r} of {asked.answers.path}"
    return f"{fill}, then {again}{test}" if asked.n_left else f"{fill}, then {fit}"
