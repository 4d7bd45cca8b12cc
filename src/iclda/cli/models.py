"""The commands that make, use and show model files."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
