"""Ways to show how far a run is: bars on a terminal, lines in a file, nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .._messages import plural
from .engine import Advance

_SECONDS_BETWEEN_LINES = 10.0


def nothing(experiment: str, done: int, total: int, failed: int) -> None:
    """Say nothing."""


@contextmanager
def bars(unit: str = "cells") -> Iterator[Advance]:
    """A live bar for every experiment, with rate and time to go."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),  # rate or failed fits: 80 columns do not hold both
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), expand=True) as progress:
        tasks: dict[str, tuple[TaskID, int, float]] = {}

        def advance(experiment: str, done: int, total: int, failed: int) -> None:
            if experiment not in tasks:
                task = progress.add_task(experiment, total=total, completed=done, note="")
                tasks[experiment] = (task, done, time.monotonic())
            task, first, start = tasks[experiment]
            seconds = time.monotonic() - start
            rate = f"{(done - first) / seconds:.1f} {unit}/s" if seconds > 1 else ""
            note = f"[red]{plural(failed, 'fit')} failed[/red]" if failed else rate
            progress.update(task, completed=done, note=note)

        yield advance


def lines(unit: str = "cells") -> Advance:
    """A line now and then, for logs and pipes."""
    last: dict[str, float] = {}
    starts: dict[str, tuple[float, int]] = {}

    def advance(experiment: str, done: int, total: int, failed: int) -> None:
        now = time.monotonic()
        start, first = starts.setdefault(experiment, (now, done))
        is_due = now - last.get(experiment, -_SECONDS_BETWEEN_LINES) >= _SECONDS_BETWEEN_LINES
        if not is_due and done < total:
            return
        last[experiment] = now
        rate = (done - first) / (now - start) if now > start else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate > 0 and done < total else ""
        note = f", {plural(failed, 'fit')} failed" if failed else ""
        sys.stderr.write(f"{experiment}: {done} of {total} {unit}{left}{note}\n")

    return advance
