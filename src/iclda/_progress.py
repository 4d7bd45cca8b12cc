"""Progress of long commands on standard error: a bar on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from ._messages import plural
from ._system import require

SECONDS_BETWEEN_LINES = 10.0

# Called with the name of an experiment, its cells done, its cells in all, and its
# failed fits.
Advance = Callable[[str, int, int, int], None]


@contextmanager
def show_cells(quiet: bool, unit: str = "cells", title: str = "") -> Iterator[Advance]:
    """Show progress: one bar on a terminal, a line every ten seconds elsewhere.

    ``title`` is shown until something is counted.
    """
    if quiet:
        yield show_nothing
    elif sys.stderr.isatty():
        with _bar(unit, title) as advance:
            yield advance
    else:
        with _lines(unit, title) as advance:
            yield advance


def show_nothing(experiment: str, done: int, total: int, failed: int) -> None:
    """Ignore progress: an ``Advance`` for callers that show nothing."""


@contextmanager
def _bar(unit: str, title: str) -> Iterator[Advance]:
    """Draw one bar, which begins again with every experiment."""
    progress = require("rich.progress", "bars of progress", "experiments")
    columns = _bar_columns(progress)
    screen = progress.Console(stderr=True)
    with progress.Progress(*columns, console=screen, expand=True) as shown:
        task = shown.add_task(title, total=None, text="", left="")
        current = title

        def advance(experiment: str, done: int, total: int, failed: int) -> None:
            nonlocal current
            if experiment != current:
                # The times shown are those of one experiment.
                shown.tasks[0].total = total
                shown.reset(task, description=experiment)
                current = experiment
            note = unit
            if failed:
                note = f"[red]{plural(failed, 'fit')} failed[/red]"
            text = f"{done:,} of {total:,} {note}"
            shown.update(task, total=total, completed=done, text=text, left="left")

        try:
            yield advance
        finally:
            if current == title:
                # Nothing was counted: leave nothing on the screen.
                shown.remove_task(task)


def _bar_columns(progress: Any) -> tuple[Any, ...]:
    """Return the parts of a bar, by the module ``rich.progress``."""
    return (
        progress.SpinnerColumn(finished_text="[green]✓"),
        # Names of experiments may look like markup.
        progress.TextColumn("{task.description:<10}", markup=False),
        progress.BarColumn(bar_width=None),
        progress.TextColumn("{task.fields[text]}"),
        progress.TextColumn("elapsed"),
        progress.TimeElapsedColumn(),
        # The word is empty until something was counted.
        progress.TextColumn("{task.fields[left]}"),
        progress.TimeRemainingColumn(),
    )


@contextmanager
def _lines(unit: str, title: str) -> Iterator[Advance]:
    """Write a line every ten seconds: cells done, time elapsed and time left."""
    progress = _Progress(unit, title)
    is_over = Event()

    def write() -> None:
        while not is_over.wait(SECONDS_BETWEEN_LINES):
            sys.stderr.write(f"{progress}\n")

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield progress.advance
    finally:
        is_over.set()
        thread.join()


class _Progress:
    """How far the current experiment is; as a string, the line that says so."""

    def __init__(self, unit: str, title: str) -> None:
        self.unit = unit
        self.title = title
        self.experiment = title
        self.n_done = 0
        self.n_total = 0
        self.n_failed = 0
        # Cells that a resumed run had done before: they took no time in this one.
        self.n_done_before = 0
        self.start = time.monotonic()

    def advance(self, experiment: str, done: int, total: int, failed: int) -> None:
        if experiment != self.experiment:
            # The first experiment includes the time before it, spent under the title.
            if self.experiment != self.title:
                self.start = time.monotonic()
            self.n_done_before = done
        self.experiment = experiment
        self.n_done = done
        self.n_total = total
        self.n_failed = failed

    def __str__(self) -> str:
        elapsed = time.monotonic() - self.start
        line = f"{self.experiment or 'beginning'}:"
        if self.n_total:
            line += f" {self.n_done:,} of {self.n_total:,} {self.unit},"
        line += f" {elapsed:.0f} s elapsed"
        if self.n_done_before < self.n_done < self.n_total:
            seconds_per_cell = elapsed / (self.n_done - self.n_done_before)
            left = seconds_per_cell * (self.n_total - self.n_done)
            line += f", about {left:.0f} s left"
        if self.n_failed:
            line += f", {plural(self.n_failed, 'fit')} failed"
        return line
