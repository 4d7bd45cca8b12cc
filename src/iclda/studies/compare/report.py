"""One self-contained page: the answer, the table it is about, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Array
from ..._statistics import ReliabilityCurve
from ...methods import FAINT
from ...plots import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay
from ..drawing import new_figure, styled, to_inline_svg
from ..measures import COMPARED, EDGES, ERROR
from ..page import NOTHING, fill, with_minus
from .alternatives import curve_text, differences_text, reliability_text
from .cell_fits import pooled_bins
from .class_errors import class_errors
from .findings import SHOWN_SETTINGS, Findings, failures, last_line
from .lines import (
    fit_command,
    interval_source,
    interval_text,
    known_measures,
    number_text,
    protocol,
    ranked,
    worse_text,
)
from .plan import LABELED, UNLABELED
from .summary import CURVE_MEASURES, DECISIVE, LOSS_DIFFERENCE, VARIED, SplitCurvePoint
from .verdict import RULE, points, supervised_name, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_TITLES = {UNLABELED: "More unlabeled rows", LABELED: "More labeled rows"}
_MOST_REMARKS = 12
_WIDE = 10  # times the typical difference in loss: a larger one is drawn on a logarithmic axis,
_DRAWABLE = 1000  # and one that exceeds the median so many times is left out


def render(findings: Findings) -> str:
    """The page as text. Every name in it is escaped."""
    settings, summary = findings.settings, findings.summary
    rival, methods = _rival(findings), [each.method for each in settings.contestants]
    fits = Counter(result.method for result in findings.results)
    warned = Counter(
        (result.method, text) for result in findings.results for text in result.remarks.splitlines()
    )
    view = {
        "findings": findings,
        "settings": settings,
        "verdict": findings.verdict,
        "scores": summary,
        "shown_settings": [(name, getattr(settings, name)) for name in (*SHOWN_SETTINGS, "jobs")],
        "sources": [(source.path, source.sha256) for source in settings.sources],
        "rival": rival,
        "supervised": supervised_name(summary),
        "confidence": [_confidence(findings, name) for name in (rival, summary.baseline)],
        "fit_command": fit_command(findings),
        "protocol": protocol(settings, findings.words),
        "rule": RULE,
        "interval_source": interval_source(summary),
        "names": ranked(summary),
        "long_names": {each.name: title_of(each) for each in settings.contestants},
        "titles": {each.name: each.method.title for each in settings.contestants},
        "failed": failures(findings.compared),
        "methods": dict.fromkeys((method.name, method.sentence) for method in methods),
        "measures": {name: COMPARED[name] for name in known_measures(summary)},
        "differences": _difference_figures(findings),
        "curves": _curves(findings),
        "class_errors": class_errors(findings),
        "reliability": _reliability_figure(findings, rival),
        "warned": warned.most_common(_MOST_REMARKS),
        "fits": fits,
    }
    filters: Any = {
        "interval": interval_text,
        "last_line": last_line,
        "number": _number,
        "worse_text": worse_text,
    }
    filters |= {"points": points, "with_minus": with_minus}
    return fill("comparison.html.j2", view, __package__, findings.results, **filters)


def _rival(findings: Findings) -> str | None:
    """The contestant that is recommended; if that is the baseline, the best that uses all rows."""
    summary = findings.summary
    if findings.verdict.method != summary.baseline and findings.verdict.method:
        return findings.verdict.method
    names = [each.name for each in findings.settings.contestants if each.method.uses_unlabeled]
    known = [name for name in names if summary.mean(name, ERROR) is not None]
    return min(known, key=summary.rank, default=None)


def _bins(findings: Findings, name: str | None) -> Array:
    return pooled_bins(result for result in findings.compared if result.method == name)


def _confidence(findings: Findings, name: str | None) -> tuple[float, float] | None:
    """Mean probability of the predicted class, and the share of rows for which it was right."""
    n_rows, sure, right = _bins(findings, name).sum(axis=0)
    return (float(sure / n_rows), float(right / n_rows)) if n_rows else None


def _number(value: float | None, measure: str) -> str:
    return NOTHING if value is None else with_minus(number_text(value, measure))


@styled
def draw(display: Any, width: float, height: float, *, is_loss: bool = False) -> Figure:
    """A display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    if is_loss:
        _set_loss_axis(grid[0, 0], display)
    display.plot(ax=grid[0, 0])
    return figure


def draw_figures(findings: Findings) -> dict[str, Figure]:
    """All figures of the page by name: differences, reliability, learning curves."""
    found = {f"difference-{name}": figure for name, figure in _draw_differences(findings).items()}
    if figure := _draw_reliability(findings, _rival(findings)):
        found["reliability"] = figure
    for curve in _CURVE_TITLES:
        found |= {f"curve-{curve}-{k}": f for k, f in _draw_curves(findings, curve).items()}
    return found


def _draw_differences(findings: Findings) -> dict[str, Figure]:
    displays = {name: differences(findings, name) for name in DECISIVE}
    return {
        name: draw(display, 5.8, 1.2 + 0.38 * len(display.differences))
        for name, display in displays.items()
        if display
    }


def _difference_figures(findings: Findings) -> list[Any]:
    return [
        to_inline_svg(
            figure,
            f"difference-{name}",
            differences_text(findings.summary, name, supervised_name(findings.summary)),
        )
        for name, figure in _draw_differences(findings).items()
    ]


def _draw_reliability(findings: Findings, rival: str | None) -> Figure | None:
    """How often contestants are right when they are so sure, over all test rows."""
    names = dict.fromkeys((findings.summary.baseline, rival))
    bins = {name: _bins(findings, name) for name in names if name}
    curves = {n: ReliabilityCurve.from_sums(EDGES, b) for n, b in bins.items() if b.any()}
    return draw(ReliabilityDisplay(curves=curves), 4.6, 4.4) if curves else None


def _reliability_figure(findings: Findings, rival: str | None) -> Any:
    figure = _draw_reliability(findings, rival)
    if figure is None:
        return None
    names = (name for name in dict.fromkeys((rival, findings.summary.baseline)) if name)
    known = {name: found for name in names if (found := _confidence(findings, name))}
    return to_inline_svg(figure, "reliability", reliability_text(known))


def _draw_curves(findings: Findings, curve: str) -> dict[str, Figure]:
    displays = {
        name: learning_curve(findings.points, curve, name, findings.reference)
        for name in CURVE_MEASURES
    }
    return {
        name: draw(display, 4.8, 3.2, is_loss=name == LOSS_DIFFERENCE)
        for name, display in displays.items()
        if display
    }


def _curves(findings: Findings) -> list[dict[str, Any]]:
    names = {name: measure.heading for name, measure in COMPARED.items()}
    names[LOSS_DIFFERENCE] = f"loss minus that of {findings.reference}"
    views = []
    for curve, title in _CURVE_TITLES.items():
        shown = [point for point in findings.points if point.curve == curve]
        figures = [
            to_inline_svg(
                figure,
                f"curve-{curve}-{name}",
                curve_text([point for point in shown if point.measure == name], names[name]),
            )
            for name, figure in _draw_curves(findings, curve).items()
        ]
        if figures:
            ends = [end(shown, key=lambda point: point.size) for end in (min, max)]
            missing = undrawn(findings.points, curve)
            view = {"title": title, "figures": figures, "ends": ends, "undrawn": missing}
            views.append({"is_of_labels": curve == LABELED, **view})
    return views


def differences(findings: Findings, measure: str) -> ComparisonDisplay | None:
    """Every contestant less the supervised one: repeats as dots, corrected intervals as bars.

    None without two contestants that have the measure.
    """
    summary = findings.summary
    paired, intervals = {}, {}
    for found in summary.differences:
        if found.measure == measure and summary.baseline:
            ours, theirs = (summary.repeats[n, measure] for n in (found.method, summary.baseline))
            values = ours - theirs
            values = values[np.isfinite(values)]
            if values.size:
                paired[found.method], intervals[found.method] = values, (found.low, found.high)
    if not paired:
        return None
    return ComparisonDisplay(
        differences=paired,
        baseline=summary.baseline or "",
        score_name=COMPARED[measure].axis,
        greater_is_better=not COMPARED[measure].lower_is_better,
        intervals=intervals,
    )


def learning_curve(
    points: Sequence[SplitCurvePoint], curve: str, measure: str, reference: str | None = None
) -> LearningCurveDisplay | None:
    """One measure against the number of unlabeled, or of labeled, rows.

    A loss is that above the one of ``reference``. None if there are no two points to connect.
    """
    left_out = undrawn(points, curve) if measure == LOSS_DIFFERENCE else []
    lines: dict[str, list[SplitCurvePoint]] = {}
    for point in points:
        if (point.curve, point.measure) == (curve, measure) and point not in left_out:
            lines.setdefault(point.method, []).append(point)
    if max(map(len, lines.values()), default=0) < 2:
        return None
    sizes, means, errors = (
        {name: np.array([getattr(p, f) for p in line], dtype) for name, line in lines.items()}
        for f, dtype in (("size", int), ("mean", float), ("se", float))
    )
    is_loss = measure == LOSS_DIFFERENCE
    return LearningCurveDisplay(
        sizes=sizes,
        means=means,
        standard_errors=errors,
        varied=VARIED[curve],
        score_name=f"Loss minus that of {reference}" if is_loss else COMPARED[measure].axis,
    )


def undrawn(points: Sequence[SplitCurvePoint], curve: str) -> list[SplitCurvePoint]:
    """Points so far off in loss that the others could not be told apart beside them."""
    shown = [point for point in points if (point.curve, point.measure) == (curve, LOSS_DIFFERENCE)]
    most = _DRAWABLE * _median_size(np.array([point.mean for point in shown]))
    return [point for point in shown if abs(point.mean) > most]


def _median_size(differences: Array) -> float:
    """The median; differences of the reference to itself do not count."""
    sizes = np.abs(differences[differences != 0])
    return float(np.median(sizes)) if sizes.size else 0.0


def _set_loss_axis(ax: Any, display: LearningCurveDisplay) -> None:
    """Scale and ends of the axis; bands of fits that vary wildly are cut off."""
    spreads = display.standard_errors or {}
    # Less than a standard error is noise, and says nothing about magnitudes.
    rivals = [
        max(_median_size(mean), _median_size(np.nan_to_num(spreads[name])))
        for name, mean in display.means.items()
        if mean.any()
    ]
    typical = sorted(rivals)[(len(rivals) - 1) // 2] if rivals else 1.0
    means = np.concatenate(list(display.means.values()))
    errors = np.nan_to_num(np.concatenate(list(spreads.values())))
    reach = max(np.abs(means).max(), _WIDE * typical)
    ends = np.clip([*(means - errors), *(means + errors), 0.0], -reach, reach)
    if reach > _WIDE * typical:
        ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(typical)))
        ax.yaxis.set_major_formatter(lambda value, _: with_minus(f"{value:,g}"))
        ax.axhline(0, color=FAINT, linewidth=0.6)
    scale = ax.transScale
    low, high = (scale.transform((1, end))[1] for end in (ends.min(), ends.max()))
    margin = 0.05 * (high - low) or 1.0
    inverse = scale.inverted()
    ax.set_ylim(*(inverse.transform((1, end))[1] for end in (low - margin, high + margin)))
