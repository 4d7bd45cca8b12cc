"""One self-contained page: the answer, the table it is about, and the numbers behind it."""

from __future__ import annotations

from typing import Any

from ...drawing import require, to_inline_svg
from ...page import fill
from ..curves import CURVE_MEASURES, LOSS_DIFFERENCE, Point
from ..figures import draw_curve, draw_differences, draw_reliability, undrawn
from ..findings import Findings
from ..lines import EXPLAINED, HEADINGS, fit_command, protocol
from ..results import LABELED, UNLABELED
from ..summary import BRIER, ERROR
from ..verdict import RULE
from .view import (
    cards,
    failure_views,
    headline,
    measured,
    method_views,
    remark_views,
    rival,
    run_view,
    summary_line,
    table_view,
)

_CURVE_TITLES = {
    UNLABELED: "More unlabeled rows",
    LABELED: "More labeled rows",
}


def render(findings: Findings) -> str:
    """The page as text. Every name in it is escaped."""
    return fill("comparison.html.j2", _view(findings), __package__)


def _view(findings: Findings) -> dict[str, Any]:
    settings = findings.settings
    return {
        "headline": headline(findings),
        "sentence": findings.verdict.sentence,
        "also": findings.verdict.also,
        "summary": summary_line(findings),
        "notes": [],
        "findings": cards(findings),
        "source": ", ".join(source["path"] for source in settings["sources"]),
        "target": settings["target"],
        "fit_command": fit_command(findings),
        "remarks": findings.remarks,
        "protocol": protocol(settings, findings.words),
        "rule": RULE,
        "table": table_view(findings),
        "methods": method_views(findings),
        "measures": [(HEADINGS[m], EXPLAINED[m]) for m in measured(findings)],
        "differences": _difference_figures(findings),
        "curves": _curve_views(findings),
        "n_curve_splits": settings["curve_splits"],
        "reference": findings.reference,
        "reliability": _reliability(findings),
        "said": remark_views(findings),
        "run": run_view(findings),
        "failures": failure_views(findings),
        "n_failed": findings.n_failed,
        "n_fits": len(findings.results),
    }


def _svg(figure: Any, name: str, description: str) -> Any:
    return require("markupsafe").Markup(to_inline_svg(figure, name, description))


def _difference_figures(findings: Findings) -> list[Any]:
    drawn = {measure: draw_differences(findings, measure) for measure in (ERROR, BRIER)}
    return [
        _svg(figure, f"difference-{measure}", f"{HEADINGS[measure]} less that of supervised LDA")
        for measure, figure in drawn.items()
        if figure is not None
    ]


def _curve_views(findings: Findings) -> list[dict[str, Any]]:
    views = []
    for curve, title in _CURVE_TITLES.items():
        drawn = {
            m: draw_curve(findings.points, curve, m, findings.reference) for m in CURVE_MEASURES
        }
        names = {**HEADINGS, LOSS_DIFFERENCE: f"loss minus that of {findings.reference}"}
        figures = [
            _svg(figure, f"curve-{curve}-{measure}", f"{names[measure]}: {title.lower()}")
            for measure, figure in drawn.items()
            if figure is not None
        ]
        if figures:
            views.append({"title": title, "figures": figures, "note": _curve_note(findings, curve)})
    return views


def _curve_note(findings: Findings, curve: str) -> str:
    shown = [point for point in findings.points if point.curve == curve]
    first, last = (end(shown, key=lambda point: point.size) for end in (min, max))
    if curve == UNLABELED:
        note = f"With {first.n_labeled:,} labeled rows throughout; 0 is a fit to these alone."
    elif first.n_unlabeled == last.n_unlabeled:
        note = f"With {last.n_unlabeled:,} unlabeled rows throughout."
    else:
        note = (
            "Rows whose label is not used train as unlabeled ones: "
            f"{first.n_unlabeled:,} on the left, {last.n_unlabeled:,} on the right."
        )
    if missing := undrawn(findings.points, curve):
        note += (
            " Left out of the figure of the loss, because beside them the other points could not "
            f"be told apart: {', '.join(map(_point_words, missing))}."
        )
    return note


def _point_words(point: Point) -> str:
    mean = f"{point.mean:,.3g}".replace("-", "\N{MINUS SIGN}")
    return f"{point.method} at {point.size:,} rows ({mean})"


def _reliability(findings: Findings) -> Any:
    names = [name for name in (findings.outcome.baseline, rival(findings)) if name]
    figure = draw_reliability(findings, list(dict.fromkeys(names)))
    return None if figure is None else _svg(figure, "reliability", "How sure, and how often right")
