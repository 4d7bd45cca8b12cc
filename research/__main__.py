"""Command line of the study: ``python -m research --out answers``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from iclda._progress import show_cells
from iclda.cli import messages, options
from iclda.cli.studies import Data, Out
from iclda.studies.page import align, check_can_report

from .answers import Block, draw_answers
from .plan import EXPERIMENTS
from .questions import StudySettings, run_questions

PROGRAM = "python -m research"

_Quick = Annotated[bool, Option("--quick", help="Few sets and repeats: half a minute.")]
_Features = Annotated[
    Path | None,
    Option(metavar="FOLDER", help="Folder of .npz files with X and y to use as well."),
]


def study(
    quick: _Quick = False,
    features: _Features = None,
    jobs: options.Jobs = 0,
    seed: options.Seed = 0,
    out: Out = Path("answers"),
    data: Data = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Answer the open questions of the paper by experiments."""
    check_can_report()
    if not quiet:
        duration = "half a minute" if quick else "five minutes"
        messages.announce(
            f"Answers go to {out}: about {duration} on two cores. {messages.RESUMABLE}"
        )
    settings = StudySettings(
        out=out,
        seed=seed,
        jobs=jobs or options.n_cores(),
        data_dir=data,
        command=options.command_line(PROGRAM),
        features=features,
        is_quick=quick,
    )
    # The bar shows which of the experiments is running.
    titles = {
        name: f"{name} ({number} of {len(EXPERIMENTS)})"
        for number, name in enumerate(EXPERIMENTS, 1)
    }
    with show_cells(quiet) as advance:
        run_questions(settings, lambda name, *counts: advance(titles[name], *counts))
    with show_cells(quiet or json, title="Writing the report"):
        summary = draw_answers(out)

    if json:
        messages.print_json(summary)
    elif not quiet:
        for blocks in summary["answers"].values():
            for block in blocks:
                typer.echo("\n".join(_format_block(block)))
            typer.echo()
        typer.echo(f"Report: {summary['report']}")
    if quick and not quiet:
        messages.announce("A quick run has too few fits for its numbers to mean much.")


def _format_block(block: Block) -> list[str]:
    """Wrap a sentence, or align the columns of a table, for the terminal."""
    if isinstance(block, str):
        return messages.wrap_lines([block])
    sides = "l" + "r" * (len(block[0]) - 1)
    return ["", *(f"  {line}" for line in align(block, sides)), ""]


def make_app() -> typer.Typer:
    """Return the command as a Typer application."""
    app = typer.Typer(
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.command()(messages.explained(study, messages.RESUMABLE))
    return app


if __name__ == "__main__":
    make_app()(prog_name=PROGRAM)
