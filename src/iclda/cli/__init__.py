"""The command line: parses, calls, draws the bar. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import sys

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
for part in (compare, models, paper):
    part.register(app)


def main() -> None:
    """Entry point of the command ``iclda``."""
    app()
