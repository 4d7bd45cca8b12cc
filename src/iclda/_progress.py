"""Progress of long commands on the error stream: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._messages import plural
from ._packages import require

SECONDS_BETWEEN_LINES = 10.0
Advance = Callable[[str, int, int, int], None]  # experiment, cells done, cells in all, failed fits


@contextmanager
def bars() -> Iterator[Any]:
    """Show a rich ``Progress``: title, bar, ``text``, time spent and time left of every task."""
    console = require("rich.console", "bars of progress", "experiments")
    progress = require("rich.progress", "bars of progress", "experiments")
    columns = (
        progress.SpinnerColumn(finished_text="[green]✓"),
        progress.TextColumn("{task.description:<10}", markup=False),
        progress.BarColumn(bar_width=None),
        progress.TextColumn("{task.fields[text]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    screen = console.Console(stderr=True)
    with progress.Progress(*columns, console=screen, expand=True) as shown:
        yield shown


@contextmanager
def spinner(title: str, quiet: bool) -> Iterator[None]:
    """Show an animation on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{title} ..."):
        yield


@contextmanager
def show_cells(quiet: bool, unit: str = "cells") -> Iterator[Advance]:
    """Show progress: a bar for each experiment on a terminal, a line now and then elsewhere."""
    if quiet:
        yield show_nothing
        return
    if not sys.stderr.isatty():
        yield cell_lines(unit)
        return
    with bars() as shown:
        tasks: dict[str, Any] = {}

        def advance(experiment: str, done: int, total: int, failed: int) -> None:
            if experiment not in tasks:
                tasks[experiment] = shown.add_task(experiment, total=total, text="")
            note = f" [red]{plural(failed, 'fit')} failed[/red]" if failed else f" {unit}"
            shown.update(tasks[experiment], completed=done, text=f"{done:,}/{total:,}{note}")

        yield advance


def show_nothing(experiment: str, done: int, total: int, failed: int) -> None:
    """Show no progress."""


def cell_lines(unit: str = "cells") -> Advance:
    """Return a function that writes a line of progress every few seconds."""
    started: dict[str, tuple[float, int]] = {}  # time, and cells done then
    last_line = time.monotonic()

    def advance(experiment: str, done: int, total: int, failed: int) -> None:
        nonlocal last_line
        now = time.monotonic()
        start, first = started.setdefault(experiment, (now, done))
        if now - last_line < SECONDS_BETWEEN_LINES:
            return
        last_line = now
        rate = (done - first) / (now - start) if now > start else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
        note = f", {plural(failed, 'fit')} failed" if failed else ""
        sys.stderr.write(f"{experiment}: {done:,} of {total:,} {unit}{left}{note}\n")

    return advance
