"""The command line: parses and calls. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover - without the extra there is no command line to test
    sys.exit("The command line needs extra packages: pip install 'iclda[data,experiments]'.")

from . import ask, models, pages, studies, words


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
    *(studies.report, studies.datasets, pages.playground, pages.label),
):
    is_study = command.__module__ == studies.__name__
    app.command()(words.explained(command, words.RESUMABLE if is_study else words.NOT_WRITTEN))
