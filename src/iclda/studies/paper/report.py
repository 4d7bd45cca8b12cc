"""From stored results to tables, figures and the report: one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..._messages import plural
from ...datasets import BENCHMARKS
from ..drawing import COLORS, save, to_inline_svg
from ..measures import arrow, paper_measures
from ..page import NOTHING, duration, fill, p_text
from ..store import STORE, FitResult, Store, differs
from .curves import (
    CurvePoint,
    PublishedDifference,
    compare_with_published,
    curve_points,
    draw_curves,
    write_curves,
)
from .plan import KIND, StoredSettings
from .published import (
    BASELINE,
    CURVES,
    GAUSSIAN,
    METHOD_NAMES,
    TABLES,
    VIOLATED,
    PublishedPoint,
    check_published_underlines,
    published_points,
    table_measures,
)
from .story import (
    AGREES,
    comparison_sentence,
    extreme_point,
    findings,
    heading,
    headline,
    number,
    signed,
    underline_sentence,
)
from .tables import (
    DatasetFacts,
    Gap,
    PairedComparison,
    TableCell,
    compare_with_baseline,
    dataset_table,
    draw_table_overview,
    find_gaps,
    mark,
    names_of,
    summarize_tables,
    write_tables,
)
from .toy import ROW_TITLES, UNLABELED, ToyPanel, draw_toy, draw_toy_panel, toy_panels

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
_MOST_FAILURES = 20


@dataclass(frozen=True)
class ReportContent:
    """What a report is made of; every part but the results may be left out."""

    results: Sequence[FitResult]
    datasets: Sequence[DatasetFacts] = ()
    toy: Sequence[ToyPanel] = ()
    seed: int | None = None
    command: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    data_hashes: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    notes: Sequence[str] = ()


def draw_everything(out: Path) -> dict[str, Any]:
    """Write everything that follows from the results of a folder; a summary for programs.

    Only the toy figure is fitted.
    """
    store = Store(out / STORE, kind=KIND, read_only=True)
    try:
        settings = store.read_settings(StoredSettings)
        table_results, curve_results = (
            _rename_own(store.rows(experiment), settings) for experiment in (TABLES, CURVES)
        )
    finally:
        store.close()
    results = [*table_results, *curve_results]
    facts, panels = _facts(table_results, settings), toy_panels(settings.seed)
    cells, points = summarize_tables(table_results), curve_points(curve_results)
    seconds = settings.seconds_tables + settings.seconds_curves
    write_tables(out, table_results, facts)
    write_curves(out, curve_results)
    write_figures(out, cells, points, list(published_points().values()), panels)
    content = ReportContent(
        results=results,
        datasets=facts,
        toy=panels,
        seed=settings.seed,
        command="; ".join(settings.commands),
        settings={
            "processes": settings.jobs,
            "machine": settings.machine,
            "last run began": settings.began,
            **{f"{name} from": origin for name, origin in settings.origins.items()},
        },
        versions=settings.versions,
        data_hashes=settings.data,
        seconds=seconds,
        notes=_notes(results, settings),
    )
    return {
        "report": str(write_report(out, content)),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": [str(gap) for gap in find_gaps(table_results)],
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": seconds,
    }


def draw_toy_figure(out: Path, seed: int) -> list[Path]:
    """The toy figure alone; refused where a report with another seed would be contradicted."""
    if (out / STORE).exists():
        store = Store(out / STORE, kind=KIND, read_only=True)
        stored = store.settings().get("seed", seed)
        store.close()
        if stored != seed:
            raise differs(out, "seed", stored, seed)
    return save(draw_toy(toy_panels(seed)), out / "figures" / "toy")


def _is_own(name: str, settings: StoredSettings) -> bool:
    """Whether a set is a file of the user's own under the name of a benchmark."""
    found = settings.data.get(name)
    return found is not None and found != BENCHMARKS[name].sha256


def _shown_name(name: str, settings: StoredSettings) -> str:
    """The user's own sets are shown under other names than the paper's: nothing is published."""
    return f"{name} (own data)" if _is_own(name, settings) else name


def _rename_own(results: list[FitResult], settings: StoredSettings) -> list[FitResult]:
    names = {name: _shown_name(name, settings) for name in {each.dataset for each in results}}
    return [
        each if names[each.dataset] == each.dataset else replace(each, dataset=names[each.dataset])
        for each in results
    ]


def _facts(results: list[FitResult], settings: StoredSettings) -> list[DatasetFacts]:
    names = {result.dataset for result in results}
    facts = (
        DatasetFacts(_shown_name(name, settings), *shape) for name, shape in settings.shapes.items()
    )
    return [each for each in facts if each.name in names]


def _notes(results: list[FitResult], settings: StoredSettings) -> list[str]:
    """What a reader should know before the numbers."""
    own = sorted(name for name in settings.data if _is_own(name, settings))
    notes = []
    if own:
        notes.append(
            f"Not the paper's data: {', '.join(own)}. Nothing published is compared with them."
        )
    made_by = {result.versions for result in results if result.versions}
    if len(made_by) > 1:
        notes.append(f"Rows were made with different versions: {'; '.join(sorted(made_by))}.")
    left_out = sum(
        result.experiment == CURVES and (result.failure is not None or result.number("nll") is None)
        for result in results
        if result.method in METHOD_NAMES
    )
    if left_out:
        notes.append(f"{left_out} fits on curves failed or gave no finite loss and are left out.")
    return notes


def write_figures(
    out: Path,
    cells: Sequence[TableCell] = (),
    points: Sequence[CurvePoint] = (),
    published: Sequence[PublishedPoint] = (),
    toy: Sequence[ToyPanel] = (),
) -> list[Path]:
    """Every figure there is something to draw for, under ``out``/figures; the paths written."""
    folder, paths = out / "figures", []
    for dataset in dict.fromkeys(point.dataset for point in points):
        figure = draw_curves(points, published, dataset)
        paths += save(figure, folder / f"curve-{file_name(dataset)}")
    if cells:
        paths += save(draw_table_overview(cells), folder / "tables")
    if toy:
        paths += save(draw_toy(toy), folder / "toy")
    return paths


def file_name(dataset: str) -> str:
    """A data set's name as part of a file name: no separators, no spaces."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in dataset).strip(".") or "set"


def write_report(out: Path, content: ReportContent) -> Path:
    """Write ``out``/report.html; its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "report.html"
    path.write_text(render_report(content), encoding="utf-8")
    return path


def render_report(content: ReportContent) -> str:
    """The page as text. Every name and message in it is escaped."""
    return fill("report.html.j2", _view(content), __package__)


def _view(content: ReportContent) -> dict[str, Any]:
    results = content.results
    cells, points, gaps = summarize_tables(results), curve_points(results), find_gaps(results)
    compared = compare_with_published(points)
    by_measure = {m: compare_with_baseline(results, m) for m in table_measures()}
    failed = [result for result in results if result.failure is not None]
    is_published = any(cell.published_mean is not None for cell in cells)
    return {
        "headline": headline(cells),
        "findings": findings(cells, [c for some in by_measure.values() for c in some], compared),
        "summary": _summary(content, cells, points),
        "notes": content.notes,
        "toy": _toy_view(content.toy),
        "n_toy_labels": int((content.toy[0].y != UNLABELED).sum()) if content.toy else 0,
        "curves": [
            _curve_view(name, points, compared)
            for name in dict.fromkeys(point.dataset for point in points)
        ],
        "overview": _overview(cells),
        "tables": [
            _measure_view(cells, measure, comparisons, gaps)
            for measure, comparisons in by_measure.items()
            if any(cell.measure == measure for cell in cells)
        ],
        "gaps": [str(gap) for gap in gaps],
        "underlines": _underline_views(cells) if is_published else [],
        "datasets": dataset_table(content.datasets),
        "run": _run_view(content),
        "failures": [
            {
                "place": f"{r.experiment}, {r.dataset}, repeat {r.repeat}, part {r.part}, "
                f"{r.method}",
                "traceback": r.failure,
            }
            for r in failed[:_MOST_FAILURES]
        ],
        "n_failed": len(failed),
        "n_fits": len(results),
    }


def _summary(
    content: ReportContent, cells: Sequence[TableCell], points: Sequence[CurvePoint]
) -> str:
    """One line under the headline: what this page is made of."""
    parts = []
    if cells:
        repeats = max(cell.repeats for cell in cells)
        sets = len({cell.dataset for cell in cells})
        parts.append(f"{plural(sets, 'data set')} with {plural(repeats, 'repeat')} of 10 folds")
    if points:
        repeats = max(point.repeats for point in points)
        count = len({point.dataset for point in points})
        parts.append(f"{plural(count, 'learning curve')} with {plural(repeats, 'repeat')}")
    if content.toy:
        parts.append("the toy figure")
    fits = f"{plural(len(content.results), 'fit')}" if content.results else ""
    time = f"in {duration(content.seconds)}" if content.seconds is not None else ""
    return " · ".join(filter(None, [*parts, " ".join(filter(None, [fits, time]))]))


def _toy_view(panels: Sequence[ToyPanel]) -> list[dict[str, Any]]:
    rows = [panels[start : start + 3] for start in range(0, len(panels), 3)]
    return [
        {
            "title": ROW_TITLES[rank] if rank < len(ROW_TITLES) else "",
            "panels": [
                (
                    panel.title,
                    to_inline_svg(draw_toy_panel(panel), f"toy-{rank}-{place}", panel.title),
                )
                for place, panel in enumerate(row)
            ],
        }
        for rank, row in enumerate(rows)
    ]


def _curve_view(
    dataset: str, points: Sequence[CurvePoint], compared: Sequence[PublishedDifference]
) -> dict[str, Any]:
    published = list(published_points().values())
    ours = [c for c in compared if c.point.dataset == dataset]
    sentence = "The paper shows no curve of this set."
    if ours:
        sentence = f"{plural(len(ours), 'point')} compared. Furthest apart: {extreme_point(ours)}."
    measures = {p.measure for p in points if p.dataset == dataset}.intersection(table_measures())
    figures = [
        to_inline_svg(
            draw_curves(points, published, dataset, [measure]),
            f"curve-{dataset}-{measure}",
            f"{paper_measures()[measure].axis} on {dataset} against the number of unlabeled rows",
        )
        for measure in sorted(measures)
    ]
    return {"title": _CURVE_TITLES.get(dataset, dataset), "figures": figures, "sentence": sentence}


def _overview(cells: Sequence[TableCell]) -> Any:
    methods = {cell.method for cell in cells}
    if BASELINE not in methods or not methods & (set(COLORS) - {BASELINE}):
        return None
    return to_inline_svg(
        draw_table_overview(cells), "overview", "Error of each method minus that of LDA, by set"
    )


def _measure_view(
    cells: Sequence[TableCell],
    measure: str,
    comparisons: Sequence[PairedComparison],
    gaps: Sequence[Gap],
) -> dict[str, Any]:
    """The table of a measure."""
    datasets, methods = names_of(cells, measure)
    found = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    verdicts = {(c.dataset, c.method): c.verdict for c in comparisons}
    lacking = {(gap.dataset, gap.method): str(gap) for gap in gaps}
    marks, shown = mark(cells, measure), paper_measures()[measure]

    def cell_view(dataset: str, method: str) -> dict[str, Any]:
        key, verdict = (dataset, method), verdicts.get((dataset, method), "")
        return {
            **_number_views(found.get(key)),
            "is_bold": method in marks.bold.get(dataset, ()),
            "is_underlined": marks.underlined.get(dataset) == method,
            "verdict": verdict,
            "arrow": arrow(verdict, shown),
            "gap": lacking.get(key, ""),
        }

    return {
        "name": heading(measure),
        "heading": shown.axis,
        "methods": [
            (method.removesuffix("-as-published"), _SUBTITLES.get(method, "")) for method in methods
        ],
        "rows": [(name, [cell_view(name, method) for method in methods]) for name in datasets],
        "sentence": comparison_sentence(comparisons),
        "comparisons": [
            {
                "dataset": c.dataset,
                "method": c.method,
                "difference": signed(c.difference, shown.decimals + 1),
                "t": signed(c.t, 2),
                "p": p_text(c.p),
                "p_holm": p_text(c.p_holm),
                "verdict": c.verdict or NOTHING,
            }
            for c in comparisons
        ],
    }


def _number_views(cell: TableCell | None) -> dict[str, Any]:
    """Mean, standard deviation and published mean of a cell as texts."""
    if cell is None or cell.mean is None:
        return {"mean": NOTHING, "spread": "", "published": "", "z": "", "is_extreme": False}
    published = cell.published_mean
    return {
        "mean": number(cell.mean, cell.measure),
        "spread": "" if cell.sd is None else number(cell.sd, cell.measure),
        "published": "" if published is None else number(published, cell.measure),
        "z": "" if cell.z is None else signed(cell.z),
        "is_extreme": cell.z is not None and abs(cell.z) > AGREES,
    }


def _underline_views(cells: Sequence[TableCell]) -> list[dict[str, Any]]:
    """The paper's underlining, checked, beside that of this run."""
    views = []
    for measure in table_measures():
        checks, ours = check_published_underlines(measure), mark(cells, measure).contests
        rows = []
        for check in checks:
            wrong, right = check.as_published, check.against_runner_up
            ending = "stays" if right.is_won else "falls"
            run = ours.get(check.dataset)
            rows.append(
                {
                    "dataset": check.dataset,
                    "winner": right.winner,
                    "opponent": wrong.opponent,
                    "p_wrong": p_text(wrong.p),
                    "runner_up": right.opponent,
                    "p_right": p_text(right.p),
                    "fate": ending if wrong.is_won else "not underlined",
                    "run": f"{run.winner} over {run.opponent}" if run else NOTHING,
                    "run_p": p_text(run.p) if run else "",
                    "is_won": bool(run and run.is_won),
                }
            )
        if rows:
            sentence = underline_sentence(checks)
            views.append({"name": heading(measure), "rows": rows, "sentence": sentence})
    return views


def _run_view(content: ReportContent) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of names and values: how to run the same again."""
    first = [("Command", content.command)] if content.command else []
    if content.seed is not None:
        first.append(("Seed", str(content.seed)))
    if content.seconds is not None:
        first.append(("Time", duration(content.seconds)))
    groups = [
        ("Run", first + [(str(name), str(value)) for name, value in content.settings.items()]),
        ("Versions", [(str(name), str(value)) for name, value in content.versions.items()]),
        ("Data (SHA-256)", [(str(n), str(v)) for n, v in content.data_hashes.items()]),
    ]
    return [(title, pairs) for title, pairs in groups if pairs]
