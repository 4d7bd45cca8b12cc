"""The command line: parses and calls. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover - without the extra there is no command line to test
    sys.exit("The command line needs extra packages: pip install 'iclda[data,experiments]'.")

from . import compare, models, paper, playground, words
from .plain_help import PlainCommand, PlainGroup

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=PlainGroup,
    help="Semi-supervised linear discriminant analysis: on your own tables, and on the paper's.",
)
for command in (*compare.COMMANDS, *models.COMMANDS, *paper.COMMANDS, *playground.COMMANDS):
    app.command(cls=PlainCommand)(command)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from .. import __version__

        typer.echo(f"iclda {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None: ...


def main() -> None:
    """Run a command; ``iclda.__main__`` is what calls it."""
    try:
        app()
    except BrokenPipeError:
        raise
    except (ImportError, MemoryError, OSError) as error:  # before a command begins, or in its help
        _end_with(error)
    finally:
        _close_output()


def _close_output() -> None:
    """Write what is left of the output; a reader such as ``head`` may not want it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _end_with(error)


def _end_with(error: Exception) -> None:
    typer.echo(words.error_line(error), err=True)
    _drop_output()
    sys.exit(words.USAGE_ERROR)


def _drop_output() -> None:
    """Python flushes once more at exit, and would complain there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
