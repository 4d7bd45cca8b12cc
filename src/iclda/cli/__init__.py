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

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Semi-supervised linear discriminant analysis: on your own tables, and on the paper's.",
)
for command in (
    compare.compare,
    *(models.fit, models.predict, models.evaluate, models.show),
    *(paper.reproduce, paper.tables, paper.curves, paper.toy, paper.report, paper.datasets),
    playground.playground,
):
    app.command()(command)


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
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None: ...


def run() -> None:
    """Run a command; ``iclda.__main__`` calls it."""
    try:
        app()
    except BrokenPipeError:
        raise
    except (ImportError, MemoryError, OSError) as error:  # before a command begins, or in its help
        _end_with(error)
    finally:
        _close_output()


def _close_output() -> None:
    """Write what is left of the output, unless its reader (such as ``head``) has closed it."""
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
    """Discard the output: Python flushes once more at exit, and would fail there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
