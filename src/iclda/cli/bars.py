"""How commands that run for a while show how far they are: on the error stream, never quietly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

RESUMABLE = "What was computed is kept: run the same command to go on."
_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def shown_progress(quiet: bool, unit: str = "cells") -> Iterator[Any]:
    """Bars on a terminal, lines elsewhere, or nothing."""
    from ..studies.engine import bars, lines, nothing

    if quiet:
        yield nothing
    elif sys.stderr.isatty():
        with bars(unit) as advance:
            yield advance
    else:
        yield lines(unit)


@contextmanager
def spinner(what: str, quiet: bool) -> Iterator[None]:
    """Something that turns, on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


@contextmanager
def shown_passes(what: str, quiet: bool) -> Iterator[None]:
    """A bar of the current pass over many rows on a terminal; lines elsewhere, or nothing."""
    if quiet:
        yield
        return
    from .. import rows

    with rows.bar(what) if sys.stderr.isatty() else rows.progress(_pass_lines(what)):
        yield


@contextmanager
def shown_share(what: str, quiet: bool) -> Iterator[Callable[[float, int], None]]:
    """A bar of the share of a file that is done on a terminal; lines elsewhere, or nothing."""
    if quiet:
        yield lambda share, n_rows: None
    elif not sys.stderr.isatty():
        say = _now_and_then()
        yield lambda share, n_rows: say(f"{what}: {n_rows:,} rows, {share:.0%} of the file")
    else:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn(what),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]:,} rows"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), expand=True) as progress:
            task = progress.add_task("", total=1.0, rows=0)
            yield lambda share, rows: progress.update(task, completed=share, rows=rows)


def _pass_lines(what: str) -> Callable[[int, int, int | None], None]:
    say = _now_and_then()

    def tell(n_pass: int, n_done: int, n_all: int | None) -> None:
        of_all = "" if n_all is None else f" of {n_all:,}"
        say(f"{what}: pass {n_pass}, {n_done:,}{of_all} rows")

    return tell


def _now_and_then() -> Callable[[str], None]:
    """What says a line, but not soon after the last one or the start."""
    last = time.monotonic()

    def say(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            typer.echo(line, err=True)

    return say
