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
    from ..tabular.ask import Round

_Number = Annotated[int, Option(min=0, metavar="N", help="Rows to choose for labeling.")]
_Test = Annotated[int, Option(min=0, metavar="N", help="Rows to draw at random, for the error.")]
_Answers = Annotated[Path, Option(metavar="FILE", help="CSV of the rows to label; it is extended.")]
_Class = Annotated[str | None, Option(metavar="COLUMN", help="Column of classes. Default: label.")]
_RowId = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of ids. Default: row numbers.")
]


def ask(
    data: words.TableFile,
    n: _Number = 20,
    target: _Class = None,
    id: _RowId = None,
    labels: _Answers = Path("to_label.csv"),
    test: _Test = 0,
    seed: words.Seed = 0,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Choose the rows to label next, and state the error that the labels so far show."""
    with show_cells(quiet or json, title="Choosing rows"):
        from ..tabular.ask import ask_for_labels

        asked = ask_for_labels(data, n, target=target, id=id, labels=labels, n_test=test, seed=seed)
    joined = ["--labels", str(labels), "--id", asked.answers.id]
    fit = shlex.join(["iclda", "fit", str(data), *joined])
    again = shlex.join(["iclda", "ask", str(data), "--n", str(n), *_given(target, id, labels)])
    next_one = f"Next: {_next(asked, again, fit)}"
    if json:
        words.print_json({**asked.to_json(), "next": next_one})
    elif not quiet:
        for line in (*asked.lines, next_one):
            typer.echo(printable(line))


def _given(target: str | None, id: str | None, labels: Path) -> list[str]:
    named = {"--target": target, "--id": id, "--labels": str(labels)}
    return [text for name, value in named.items() if value is not None for text in (name, value)]


def _next(asked: Round, again: str, fit: str) -> str:
    """What to do after a round."""
    n_open = len(asked.answers.open_ids)
    if not n_open:
        return fit
    test = " --test 50" if asked.needs_random_rows else ""
    fill = f"fill in the column {asked.answers.target!r} of {asked.answers.path}"
    return f"{fill}, then {again}{test}" if asked.n_left else f"{fill}, then {fit}"
