"""From stored rows to tables, figures and the report. Only the toy figure is fitted here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..datasets import BENCHMARKS
from .cells import CURVES, TABLES, Row
from .curves import summarize_curves, write_curves
from .figures import draw_toy, save, write_figures
from .published import published_points
from .report import ReportContent, write_report
from .store import Store
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
    facts, panels = _facts(table_rows), toy_panels(seed)
    cells, points = summarize(table_rows), summarize_curves(curve_rows)
    write_tables(out, table_rows, facts)
    write_curves(out, curve_rows)
    write_figures(out, cells, points, list(published_points().values()), panels)
    content = ReportContent(
        rows=[*table_rows, *curve_rows],
        datasets=facts,
        toy=panels,
        seed=seed,
        command=settings.get("command", ""),
        settings=_shown(settings),
        versions=settings.get("versions", {}),
        data_hashes=settings.get("data", {}),
        seconds=_seconds(settings),
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
    """The toy figure alone."""
    return save(draw_toy(toy_panels(seed)), out / "figures" / "toy")


def _facts(rows: list[Row]) -> list[DatasetFacts]:
    names = {row.dataset for row in rows}
    known = (each for name, each in BENCHMARKS.items() if name in names)
    return [DatasetFacts(b.name, b.n_rows, b.n_features, len(b.classes)) for b in known]


def _seconds(settings: dict[str, Any]) -> float:
    return sum(float(v) for name, v in settings.items() if name.startswith("seconds_"))


def _shown(settings: dict[str, Any]) -> dict[str, object]:
    shown: dict[str, object] = {
        "processes": settings.get("jobs", "unknown"),
        "machine": settings.get("machine", "unknown"),
        "last run": settings.get("finished", "unknown"),
    }
    for name, origin in settings.get("origins", {}).items():
        shown[f"{name} from"] = origin
    return shown
