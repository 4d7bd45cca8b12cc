"""The measured part of ``docs/performance.md``: written from a run, never by hand."""

from __future__ import annotations

from pathlib import Path

from .draw import write_figure
from .rows import Run
from .tables import machine_line, render

BEGIN = (
    "<!-- measured: begin. Written by `python benchmarks/run.py --write-docs`, "
    "not by hand. -->"
)
END = "<!-- measured: end -->"
_NOT_YET = "No run is stored yet."


def measured_part(run: Run | None) -> str:
    """Return the text between the two marks."""
    if run is None:
        return f"{BEGIN}\n\n{_NOT_YET}\n\n{END}"
    figure = (
        "![Seconds against unlabeled rows, log-log](scaling.svg)\n\n"
        if _has_figure(run)
        else ""
    )
    return f"{BEGIN}\n\n{machine_line(run)}\n\n{figure}{render(run)}\n\n{END}"


def _has_figure(run: Run) -> bool:
    return any(row.case in ("small", "growth") and row.seconds for row in run.rows)


def with_measured_part(text: str, run: Run | None) -> str:
    """A document with its measured part renewed."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The document must hold the lines {BEGIN!r} and {END!r}.")
    return before + measured_part(run) + after


def write_document(path: Path, run: Run) -> list[Path]:
    """Renew the measured part of a document and its figure; return their paths."""
    path.write_text(with_measured_part(path.read_text(), run))
    return [path, *write_figure(run.rows, path.parent, ("svg",))]
