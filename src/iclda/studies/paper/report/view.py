"""From content to what the template shows: plain texts, numbers already formatted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...cells import Row
from ...page import NOTHING, p_text
from ..significance import Comparison, check_published_underlines
from ..tables import DECIMALS, MEASURE_NAMES, Gap, TableCell, mark, names_of
from .story import AGREES, comparison_sentence, number, signed, underline_sentence

_HEADINGS = {"error": "Error", "nll": "Loss"}
_SUBTITLES = {
    "EMLDA": "as defined",
    "EMLDA-as-published": "as published",
    "LDAoracle": "all labels",
    "LDA": "supervised",
}
_ARROWS = {"better": "\N{BLACK DOWN-POINTING TRIANGLE}", "worse": "\N{BLACK UP-POINTING TRIANGLE}"}


@dataclass(frozen=True)
class CellView:
    """One cell of a results table."""

    mean: str
    spread: str = ""
    is_bold: bool = False
    is_underlined: bool = False
    verdict: str = ""
    arrow: str = ""
    published: str = ""
    z: str = ""
    is_extreme: bool = False
    gap: str = ""


def measure_view(
    cells: Sequence[TableCell],
    measure: str,
    comparisons: Sequence[Comparison],
    gaps: Sequence[Gap],
) -> dict[str, Any]:
    """The error table or the loss table."""
    datasets, methods = names_of(cells, measure)
    found = {(c.dataset, c.method): c for c in cells if c.measure == measure}
    verdicts = {(c.dataset, c.method): c.verdict for c in comparisons}
    lacking = {(gap.dataset, gap.method): str(gap) for gap in gaps}
    marks = mark(cells, measure)
    rows = []
    for dataset in datasets:
        views = []
        for method in methods:
            key = dataset, method
            is_bold = method in marks.bold.get(dataset, ())
            is_underlined = marks.underlined.get(dataset) == method
            view = _cell_view(found.get(key), is_bold, is_underlined)
            verdict = verdicts.get(key, "")
            extra = {"verdict": verdict, "arrow": _ARROWS.get(verdict, "")}
            views.append(CellView(**{**vars(view), **extra, "gap": lacking.get(key, "")}))
        rows.append((dataset, views))
    return {
        "name": MEASURE_NAMES[measure],
        "heading": _HEADINGS[measure],
        "methods": [_method_heading(method) for method in methods],
        "rows": rows,
        "sentence": comparison_sentence(comparisons),
        "comparisons": [_comparison_view(c) for c in comparisons],
    }


def _method_heading(method: str) -> tuple[str, str]:
    return method.removesuffix("-as-published"), _SUBTITLES.get(method, "")


def _cell_view(cell: TableCell | None, is_bold: bool, is_underlined: bool) -> CellView:
    if cell is None or cell.mean is None:
        return CellView(NOTHING)
    published = "" if cell.published_mean is None else number(cell.published_mean, cell.measure)
    return CellView(
        mean=number(cell.mean, cell.measure),
        spread="" if cell.sd is None else f"{cell.sd:.{DECIMALS[cell.measure]}f}",
        is_bold=is_bold,
        is_underlined=is_underlined,
        published=published,
        z="" if cell.z is None else signed(cell.z),
        is_extreme=cell.z is not None and abs(cell.z) > AGREES,
    )


def _comparison_view(c: Comparison) -> dict[str, str]:
    return {
        "dataset": c.dataset,
        "method": c.method,
        "difference": signed(c.difference, DECIMALS[c.measure] + 1),
        "t": signed(c.t, 2),
        "p": p_text(c.p),
        "p_holm": p_text(c.p_holm),
        "verdict": c.verdict or NOTHING,
    }


def underline_view(cells: Sequence[TableCell], measure: str) -> dict[str, Any]:
    """The paper's underlining, checked, beside that of this run."""
    checks = check_published_underlines(measure)
    ours = mark(cells, measure).contests
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
    return {
        "name": MEASURE_NAMES[measure],
        "rows": rows,
        "sentence": underline_sentence(checks),
    }


def is_published(cells: Sequence[TableCell]) -> bool:
    """Whether any cell has a published counterpart."""
    return any(cell.published_mean is not None for cell in cells)


def failure_views(rows: Sequence[Row], most: int = 20) -> list[dict[str, str]]:
    """Where fits failed, and the traceback of each; the first ``most``."""
    failed = [row for row in rows if row.failure is not None]
    return [
        {
            "place": f"{r.experiment}, {r.dataset}, repeat {r.repeat}, part {r.part}, {r.method}",
            "traceback": r.failure or "",
        }
        for r in failed[:most]
    ]
