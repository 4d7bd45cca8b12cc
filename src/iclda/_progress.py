"""Progress of long commands on the error stream: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from ._messages import plural
from ._system import require

SECONDS_BETWEEN_LINES = 10.0
Advance = Callable[
    [str, int, int, int], None
]  # experiment, cells done, cells in all, failed fits


@contextmanager
def show_cells(quiet: bool, unit: str = "cells", title: str = "") -> Iterator[Advance]:
    """Show progress: one bar on a terminal, a line every ten seconds elsewhere.

    ``title`` is shown until something is counted.
    """
    if quiet:
        yield show_nothing
        return
    if not sys.stderr.isatty():
        with _lines(unit, title) as advance:
            yield advance
        return
    progress = require("rich.progress", "bars of progress", "experiments")
    columns = (
        progress.SpinnerColumn(finished_text="[green]✓"),
        progress.TextColumn("{task.description:<10}", markup=False),
        progress.BarColumn(bar_width=None),
        progress.TextColumn("{task.fields[text]}"),
        progress.TextColumn("elapsed"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[left]}"),
        progress.TimeRemainingColumn(),
    )
    screen = progress.Console(stderr=True)
    with progress.Progress(*columns, console=screen, expand=True) as shown:
        task, current = shown.add_task(title, total=None, text="", left=""), title

        def advance_bar(experiment: str, done: int, total: int, failed: int) -> None:
            nonlocal current
            if experiment != current:  # times are of this experiment
                shown.tasks[0].total = total
                shown.reset(task, description=experiment)
                current = experiment
            note = (
                f" [red]{plural(failed, 'fit')} failed[/red]" if failed else f" {unit}"
            )
            text = f"{done:,} of {total:,}{note}"
            shown.update(task, total=total, completed=done, text=text, left="left")

        try:
            yield advance_bar
        finally:
            if current == title:  # nothing was counted: leave nothing on the screen
                shown.remove_task(task)


def show_nothing(experiment: str, done: int, total: int, failed: int) -> None:
    """Take the place of what ``show_cells`` yields and show nothing."""


@contextmanager
def _lines(unit: str, title: str) -> Iterator[Advance]:
    """Write a line every ten seconds: what is done, the time spent, and about the time left."""
    name, done, total, failed, first = title, 0, 0, 0, 0
    start, ended = time.monotonic(), Event()

    def advance(experiment: str, n_done: int, n_all: int, n_failed: int) -> None:
        nonlocal name, done, total, failed, first, start
        if experiment != name and name != title:
            start = time.monotonic()
        if experiment != name:
            first = n_done
        name, done, total, failed = experiment, n_done, n_all, n_failed

    def write() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            elapsed = time.monotonic() - start
            counted = f" {done:,} of {total:,} {unit}," if total else ""
            left = ""
            if first < done < total:
                left = f", about {elapsed / (done - first) * (total - done):.0f} s left"
            note = f", {plural(failed, 'fit')} failed" if failed else ""
            sys.stderr.write(
                f"{name or 'beginning'}:{counted} {elapsed:.0f} s elapsed{left}{note}\n"
            )

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        ended.set()
        thread.join()
