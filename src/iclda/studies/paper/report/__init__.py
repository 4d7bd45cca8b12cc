"""One self-contained page that tells what was run, what came out, and what the paper says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...._messages import plural
from ...cells import GAUSSIAN, MEASURES, VIOLATED, Row
from ...drawing import require
from ...page import duration, fill
from ..curves import Point, PointComparison, compare_with_published, summarize_curves
from ..figures import (
    COLORS,
    ToyPanel,
    draw_curves,
    draw_table_overview,
    draw_toy_panel,
    to_inline_svg,
)
from ..published import published_points
from ..significance import compare_with_baseline
from ..tables import DatasetFacts, TableCell, dataset_table, find_gaps, summarize
from ..toy_panels import ROW_TITLES, UNLABELED
from .story import extreme_point, findings, headline
from .view import failure_views, is_published, measure_view, underline_view

__all__ = ["ReportContent", "render_report", "write_report"]

_CURVE_TITLES = {
    GAUSSIAN: "Two Gaussians, one for each class",
    VIOLATED: "Two Gaussians, the class boundary across both",
}
_MEASURE_WORDS = {"error": "Error", "nll": "Loss"}


@dataclass(frozen=True)
class ReportContent:
    """All that a report is made of; every part but the rows may be left out."""

    rows: Sequence[Row]
    datasets: Sequence[DatasetFacts] = ()
    toy: Sequence[ToyPanel] = ()
    seed: int | None = None
    command: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    data_hashes: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    notes: Sequence[str] = ()


def write_report(out: Path, content: ReportContent) -> Path:
    """Write ``out``/report.html; its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "report.html"
    path.write_text(render_report(content), encoding="utf-8")
    return path


def render_report(content: ReportContent) -> str:
    """The page as text. Every name and message in it is escaped."""
    return fill("template.html.j2", _view(content), __package__)


def _view(content: ReportContent) -> dict[str, Any]:
    cells, points = summarize(content.rows), summarize_curves(content.rows)
    compared = compare_with_published(points)
    by_measure = {measure: compare_with_baseline(content.rows, measure) for measure in MEASURES}
    comparisons = [c for measure in MEASURES for c in by_measure[measure]]
    gaps = find_gaps(content.rows)
    return {
        "headline": headline(cells),
        "findings": findings(cells, comparisons, compared),
        "summary": _summary(content, cells, points),
        "notes": content.notes,
        "toy": _toy_view(content.toy),
        "n_toy_labels": _n_labels(content.toy),
        "curves": [_curve_view(name, points, compared) for name in _names(points)],
        "overview": _overview(cells),
        "tables": [
            measure_view(cells, measure, by_measure[measure], gaps)
            for measure in MEASURES
            if any(cell.measure == measure for cell in cells)
        ],
        "gaps": [str(gap) for gap in gaps],
        "underlines": [underline_view(cells, m) for m in MEASURES] if is_published(cells) else [],
        "datasets": dataset_table(content.datasets),
        "run": _run_view(content),
        "failures": failure_views(content.rows),
        "n_failed": sum(row.failure is not None for row in content.rows),
        "n_fits": len(content.rows),
    }


def _names(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.dataset for point in points))


def _summary(content: ReportContent, cells: Sequence[TableCell], points: Sequence[Point]) -> str:
    """One line under the headline: what this page is made of."""
    parts = []
    if cells:
        repeats = max(cell.repeats for cell in cells)
        sets = len({cell.dataset for cell in cells})
        parts.append(f"{plural(sets, 'data set')} with {plural(repeats, 'repeat')} of 10 folds")
    if points:
        repeats = max(point.repeats for point in points)
        count = len(_names(points))
        parts.append(f"{plural(count, 'learning curve')} with {plural(repeats, 'repeat')}")
    if content.toy:
        parts.append("the toy figure")
    fits = f"{plural(len(content.rows), 'fit')}" if content.rows else ""
    time = f"in {duration(content.seconds)}" if content.seconds is not None else ""
    return " · ".join(filter(None, [*parts, " ".join(filter(None, [fits, time]))]))


def _svg(figure: Any, name: str, description: str) -> Any:
    return require("markupsafe").Markup(to_inline_svg(figure, name, description))


def _toy_view(panels: Sequence[ToyPanel]) -> list[dict[str, Any]]:
    rows = [panels[start : start + 3] for start in range(0, len(panels), 3)]
    return [
        {
            "title": ROW_TITLES[rank] if rank < len(ROW_TITLES) else "",
            "panels": [
                (panel.title, _svg(draw_toy_panel(panel), f"toy-{rank}-{place}", panel.title))
                for place, panel in enumerate(row)
            ],
        }
        for rank, row in enumerate(rows)
    ]


def _n_labels(panels: Sequence[ToyPanel]) -> int:
    return int((panels[0].y != UNLABELED).sum()) if panels else 0


def _curve_view(
    dataset: str, points: Sequence[Point], compared: Sequence[PointComparison]
) -> dict[str, Any]:
    published = list(published_points().values())
    ours = [c for c in compared if c.point.dataset == dataset]
    sentence = "The paper shows no curve of this set."
    if ours:
        sentence = f"{plural(len(ours), 'point')} compared. Furthest apart: {extreme_point(ours)}."
    measures = {p.measure for p in points if p.dataset == dataset} & set(MEASURES)
    figures = [
        _svg(
            draw_curves(points, published, dataset, [measure]),
            f"curve-{dataset}-{measure}",
            f"{_MEASURE_WORDS[measure]} on {dataset} against the number of unlabeled rows",
        )
        for measure in sorted(measures)
    ]
    return {"title": _CURVE_TITLES.get(dataset, dataset), "figures": figures, "sentence": sentence}


def _overview(cells: Sequence[TableCell]) -> Any:
    methods = {cell.method for cell in cells}
    if "LDA" not in methods or not methods & (set(COLORS) - {"LDA"}):
        return None
    return _svg(
        draw_table_overview(cells), "overview", "Error of each method minus that of LDA, by set"
    )


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
