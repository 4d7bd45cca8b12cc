"""The command line: parses and calls. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import signal
import sys
from typing import Any

try:
    import typer
except ImportError:  # pragma: no cover - without the extra there is no command line to test
    sys.exit("The command line needs extra packages: pip install 'iclda[data,experiments]'.")

from . import compare, models, paper

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Semi-supervised linear discriminant analysis: on your own tables, and on the paper's.",
)
for command in (*compare.COMMANDS, *models.COMMANDS, *paper.COMMANDS):
    app.command()(command)


def main() -> None:
    """Entry point of the command ``iclda``."""
    signal.signal(signal.SIGTERM, _leave)
    app()


def _leave(number: int, frame: Any) -> None:
    """Exit as a shell reports a signal, but by way of every ``finally``: no unfinished file stays.

    A second signal does not wait for that.
    """
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)
