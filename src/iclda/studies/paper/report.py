"""From stored results to tables, figures and the report: one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._messages import plural
from ...datasets import BENCHMARKS
from ..drawing import COLORS, save, to_inline_svg
from ..measures import paper_measures
from ..page import duration, fill
from ..store import STORE, FitResult, Store, other_setting
from . import curves, story, tables, toy
from .plan import KIND, StoredSettings
from .published import (
    BASELINE,
    CURVES,
    GAUSSIAN,
    METHOD_NAMES,
    TABLES,
    VIOLATED,
    check_published_underlines,
    table_measures,
)

_TOY_NAMES = [f"toy-{row}-{column}" for row in range(len(toy.ROW_TITLES)) for column in range(3)]
_CURVE_TITLES = {
    GAUSSIAN: "Two Gaussians, one for each class",
    VIOLATED: "Two Gaussians, the class boundary across both",
}
_SUBTITLES = {
    "EMLDA": "as defined",
    "EMLDA-as-published": "as published",
    "LDAoracle": "all labels",
    "LDA": "supervised",
}


def draw_everything(out: Path) -> dict[str, Any]:
    """Write everything that follows from the results of a folder; a summary for programs.

    Only the toy figure is fitted.
    """
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        settings = store.read_settings(StoredSettings)
        own = _own_sets(settings)
        table_results, curve_results = (
            [
                replace(r, dataset=own[r.dataset]) if r.dataset in own else r
                for r in store.rows(name)
            ]
            for name in (TABLES, CURVES)
        )
    results, panels = [*table_results, *curve_results], toy.toy_panels(settings.seed)
    cells, points = tables.summarize_tables(table_results), curves.summarize_curves(curve_results)
    tables.write_tables(out, table_results, _shapes(table_results, settings))
    curves.write_curves(out, points)
    write_figures(out, cells, points, panels)
    path = out / "report.html"
    path.write_text(render_report(results, settings, panels), encoding="utf-8")
    return {
        "report": str(path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": [str(gap) for gap in tables.find_gaps(table_results)],
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": settings.seconds,
    }


def draw_toy_figure(out: Path, seed: int) -> list[Path]:
    """The toy figure alone; refused where a report with another seed would be contradicted."""
    if (out / STORE).exists():
        with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
            stored = store.settings().get("seed", seed)
        if stored != seed:
            raise other_setting(out, "seed", stored, seed)
    return save(toy.draw_toy(toy.toy_panels(seed)), out / "figures" / "toy")


def _own_sets(settings: StoredSettings) -> dict[str, str]:
    """Files of the user's own under the name of a benchmark, and the names they are shown by.

    Nothing published is compared with these.
    """
    hashes = settings.data.items()
    return {name: f"{name} (own data)" for name, h in hashes if h != BENCHMARKS[name].sha256}


def _shapes(results: Sequence[FitResult], settings: StoredSettings) -> dict[str, list[int]]:
    """Shapes of the sets in the tables."""
    names = {result.dataset for result in results if result.experiment == TABLES}
    own = _own_sets(settings)
    shapes = {own.get(name, name): shape for name, shape in settings.shapes.items()}
    return {name: shape for name, shape in shapes.items() if name in names}


def _notes(results: Sequence[FitResult], settings: StoredSettings) -> list[str]:
    """Remarks above the numbers."""
    notes = []
    if own := sorted(_own_sets(settings)):
        notes.append(
            f"Not the paper's data: {', '.join(own)}. Nothing published is compared with them."
        )
    made_by = {result.versions for result in results if result.versions}
    if len(made_by) > 1:
        notes.append(f"Rows were made with different versions: {'; '.join(sorted(made_by))}.")
    on_curves = [r for r in results if r.experiment == CURVES and r.method in METHOD_NAMES]
    left_out = sum(r.failure is not None or r.number("nll") is None for r in on_curves)
    if left_out:
        notes.append(f"{left_out} fits on curves failed or gave no finite loss and are left out.")
    return notes


def write_figures(
    out: Path,
    cells: Sequence[tables.TableCell] = (),
    points: Sequence[curves.ReproducedPoint] = (),
    panels: Sequence[toy.ToyPanel] = (),
) -> list[Path]:
    """Every figure there is something to draw for, under ``out``/figures; the paths written."""
    folder, paths = out / "figures", []
    for dataset in dict.fromkeys(point.dataset for point in points):
        paths += save(curves.draw_curves(points, dataset), folder / f"curve-{file_name(dataset)}")
    if cells:
        paths += save(tables.draw_table_overview(cells), folder / "tables")
    if panels:
        paths += save(toy.draw_toy(panels), folder / "toy")
    return paths


def file_name(dataset: str) -> str:
    """A data set's name as part of a file name: no separators, no spaces."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in dataset).strip(".") or "set"


def render_report(
    results: Sequence[FitResult],
    settings: StoredSettings | None = None,
    panels: Sequence[toy.ToyPanel] = (),
) -> str:
    """The page as text. Every name and message in it is escaped."""
    settings = settings or StoredSettings()
    cells, points, gaps = (
        tables.summarize_tables(results),
        curves.summarize_curves(results),
        tables.find_gaps(results),
    )
    differences = curves.compare_with_published(points)
    comparisons = {m: tables.compare_with_baseline(results, m) for m in table_measures()}
    methods = {cell.method for cell in cells}
    is_published = any(cell.published_mean is not None for cell in cells)
    overview = None
    if BASELINE in methods and methods & (set(COLORS) - {BASELINE}):
        description = "Error of each method minus that of LDA, by set"
        overview = to_inline_svg(tables.draw_table_overview(cells), "overview", description)
    view = {
        "headline": story.headline(cells),
        "findings": story.findings(
            cells, [c for some in comparisons.values() for c in some], differences
        ),
        "summary": _summary(results, cells, points, panels, settings),
        "notes": _notes(results, settings),
        "toy": [
            (panel.title, to_inline_svg(toy.draw_toy_panel(panel), name, panel.title))
            for name, panel in zip(_TOY_NAMES, panels, strict=False)
        ],
        "toy_titles": toy.ROW_TITLES,
        "n_toy_labels": int((panels[0].y != toy.UNLABELED).sum()) if panels else 0,
        "curves": [
            {
                "title": _CURVE_TITLES.get(name, name),
                "figures": _curve_figures(name, points),
                "sentence": story.curve_sentence(
                    [d for d in differences if d.point.dataset == name]
                ),
            }
            for name in dict.fromkeys(point.dataset for point in points)
        ],
        "overview": overview,
        "tables": [
            _table_view(cells, measure, comparisons[measure])
            for measure in table_measures()
            if any(cell.measure == measure for cell in cells)
        ],
        "lacking": {(gap.dataset, gap.method): str(gap) for gap in gaps},
        "gaps": [str(gap) for gap in gaps],
        "subtitles": _SUBTITLES,
        "agrees": story.AGREES,
        "underlines": [
            {
                "name": paper_measures()[measure].heading,
                "checks": checks,
                "contests": tables.mark(cells, measure).contests,
                "sentence": story.underline_sentence(checks),
            }
            for measure in table_measures()
            if is_published and (checks := check_published_underlines(measure))
        ],
        "datasets": tables.dataset_table(_shapes(results, settings)),
        "run": _run_view(settings),
    }
    return fill("report.html.j2", view, __package__, results, number=story.number)


def _summary(
    results: Sequence[FitResult],
    cells: Sequence[tables.TableCell],
    points: Sequence[curves.ReproducedPoint],
    panels: Sequence[toy.ToyPanel],
    settings: StoredSettings,
) -> str:
    """One line under the headline: what this page is made of."""
    parts = []
    for shown, noun, ending in (
        (cells, "data set", " of 10 folds"),
        (points, "learning curve", ""),
    ):
        if shown:
            sets, repeats = {each.dataset for each in shown}, max(each.repeats for each in shown)
            parts.append(f"{plural(len(sets), noun)} with {plural(repeats, 'repeat')}{ending}")
    if panels:
        parts.append("the toy figure")
    fits = f"{plural(len(results), 'fit')} " if results else ""
    return " · ".join([*parts, f"{fits}in {duration(settings.seconds)}"])


def _curve_figures(dataset: str, points: Sequence[curves.ReproducedPoint]) -> list[Any]:
    measures = {p.measure for p in points if p.dataset == dataset}.intersection(table_measures())
    return [
        to_inline_svg(
            curves.draw_curves(points, dataset, [measure]),
            f"curve-{dataset}-{measure}",
            f"{paper_measures()[measure].axis} on {dataset} against the number of unlabeled rows",
        )
        for measure in sorted(measures)
    ]


def _table_view(
    cells: Sequence[tables.TableCell], measure: str, comparisons: Sequence[tables.PairedComparison]
) -> dict[str, Any]:
    datasets, methods, found = tables.arrange(cells, measure)
    return {
        "name": measure,
        "measure": paper_measures()[measure],
        "datasets": datasets,
        "methods": methods,
        "cells": found,
        "marks": tables.mark(cells, measure),
        "verdicts": {(c.dataset, c.method): c.verdict for c in comparisons},
        "comparisons": comparisons,
        "sentence": story.comparison_sentence(comparisons),
    }


def _run_view(settings: StoredSettings) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Groups of names and values: how to run the same again."""
    run = [
        ("Command", "; ".join(settings.commands)),
        ("Seed", settings.seed),
        ("Time", duration(settings.seconds)),
        ("processes", settings.jobs),
        ("machine", settings.machine),
        ("last run began", settings.began),
        *((f"{name} from", origin) for name, origin in settings.origins.items()),
    ]
    return [
        ("Run", run if settings.commands else run[1:]),
        ("Versions", list(settings.versions.items())),
        ("Data (SHA-256)", list(settings.data.items())),
    ]
