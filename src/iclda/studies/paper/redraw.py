"""From stored rows to tables, figures and the report. Only the toy figure is fitted here."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...datasets import BENCHMARKS
from ..cells import CURVES, METHODS, TABLES, Row
from ..store import Store, differs
from .curves import summarize_curves, write_curves
from .figures import draw_toy, save, write_figures
from .published import published_points
from .report import ReportContent, write_report
from .study import STORE
from .tables import DatasetFacts, find_gaps, summarize, write_tables
from .toy import toy_panels


def draw_everything(out: Path) -> dict[str, Any]:
    """Write everything that follows from the rows of a folder; a summary for programs."""
    store = Store(out / STORE, read_only=True)
    try:
        table_rows, curve_rows = store.rows(TABLES), store.rows(CURVES)
        settings = store.settings()
    finally:
        store.close()
    seed = settings.get("seed", 0)
    table_rows, curve_rows = (_renamed(rows, settings) for rows in (table_rows, curve_rows))
    facts, panels = _facts(table_rows, settings), toy_panels(seed)
    cells, points = summarize(table_rows), summarize_curves(curve_rows)
    write_tables(out, table_rows, facts)
    write_curves(out, curve_rows)
    write_figures(out, cells, points, list(published_points().values()), panels)
    content = ReportContent(
        rows=[*table_rows, *curve_rows],
        datasets=facts,
        toy=panels,
        seed=seed,
        command="; ".join(settings.get("commands", [])),
        settings=_shown(settings),
        versions=settings.get("versions", {}),
        data_hashes=settings.get("data", {}),
        seconds=_seconds(settings),
        notes=_notes([*table_rows, *curve_rows], settings),
    )
    path = write_report(out, content)
    return {
        "report": str(path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": [str(gap) for gap in find_gaps(table_rows)],
        "failed_fits": sum(row.failure is not None for row in [*table_rows, *curve_rows]),
        "seconds": _seconds(settings),
    }


def draw_toy_figure(out: Path, seed: int) -> list[Path]:
    """The toy figure alone; refused where a report with another seed would be contradicted."""
    if (out / STORE).exists():
        store = Store(out / STORE, read_only=True)
        stored = store.settings().get("seed", seed)
        store.close()
        if stored != seed:
            raise differs(out, "seed", stored, seed)
    return save(draw_toy(toy_panels(seed)), out / "figures" / "toy")


def _own(name: str, settings: dict[str, Any]) -> bool:
    """Whether a set is a file of the user's own under the name of a benchmark."""
    found = settings.get("data", {}).get(name)
    return found is not None and found != BENCHMARKS[name].sha256


def _renamed(rows: list[Row], settings: dict[str, Any]) -> list[Row]:
    """Rows in which the user's own sets are told from the paper's: they have no published value."""
    own = {name for name in {row.dataset for row in rows} if _own(name, settings)}
    return [
        replace(row, dataset=f"{row.dataset} (own data)") if row.dataset in own else row
        for row in rows
    ]


def _facts(rows: list[Row], settings: dict[str, Any]) -> list[DatasetFacts]:
    names = {row.dataset for row in rows}
    shapes = settings.get("shapes", {})
    called = {name: f"{name} (own data)" if _own(name, settings) else name for name in shapes}
    return [DatasetFacts(called[n], *shape) for n, shape in shapes.items() if called[n] in names]


def _notes(rows: list[Row], settings: dict[str, Any]) -> list[str]:
    """What a reader should know before the numbers."""
    own = sorted(name for name in settings.get("data", {}) if _own(name, settings))
    notes = []
    if own:
        notes.append(
            f"Not the paper's data: {', '.join(own)}. Nothing published is compared with them."
        )
    made_by = {row.versions for row in rows if row.versions}
    if len(made_by) > 1:
        notes.append(f"Rows were made with different versions: {'; '.join(sorted(made_by))}.")
    left_out = sum(
        row.experiment == CURVES and (row.failure is not None or not _is_finite(row.nll))
        for row in rows
        if row.method in METHODS
    )
    if left_out:
        notes.append(f"{left_out} fits on curves failed or gave no finite loss and are left out.")
    return notes


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _seconds(settings: dict[str, Any]) -> float:
    return sum(float(v) for name, v in settings.items() if name.startswith("seconds_"))


def _shown(settings: dict[str, Any]) -> dict[str, object]:
    shown: dict[str, object] = {
        "processes": settings.get("jobs", "unknown"),
        "machine": settings.get("machine", "unknown"),
        "last run began": settings.get("began", "unknown"),
    }
    for name, origin in settings.get("origins", {}).items():
        shown[f"{name} from"] = origin
    return shown
