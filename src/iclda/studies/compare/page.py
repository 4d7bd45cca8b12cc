"""One self-contained page: the answer, the table it is about, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Array
from ..._statistics import ReliabilityCurve
from ...methods import FAINT
from ...plots import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay
from ..drawing import new_figure, styled, to_inline_svg
from ..measures import COMPARISON_MEASURES, EDGES, ERROR
from ..page import fill, with_minus, write_texts
from . import text
from .cells import pooled_bins
from .plan import COMPARISON, LABELED_CURVE, UNLABELED_CURVE
from .run import FILES
from .summary import CURVE_MEASURES, DECISIVE, LOSS_DIFFERENCE, VARIED, SplitCurvePoint
from .verdict import RULE, Comparison, last_line, points, supervised_name, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_TITLES = {UNLABELED_CURVE: "More unlabeled rows", LABELED_CURVE: "More labeled rows"}
_MOST_REMARKS = 12
_LINEAR_REACH = 10  # typical differences in loss: beyond them the axis is logarithmic
_LARGEST_REACH = 1_000  # typical differences in loss: beyond them lines leave the figure


def write_files(
    out: Path, comparison: Comparison, word: text.Word = str, next_step: str | None = None
) -> dict[str, Path]:
    """Write comparison.csv, curves.csv and report.html; the paths written.

    ``word`` words messages for the reader of the page. ``next_step`` fits the recommended model;
    None is the Python code for that.
    """
    step = text.fit_code(comparison) if next_step is None else next_step
    scores, curves = text.scores_csv(comparison.summary), text.curves_csv(comparison.points)
    contents = scores, curves, render(comparison, word, step)
    paths = write_texts(out, dict(zip(FILES.values(), contents, strict=True)))
    return dict(zip(FILES, paths, strict=True))


def render(comparison: Comparison, word: text.Word, next_step: str) -> str:
    """The page as text. Every name in it is escaped."""
    settings, summary, verdict = comparison.settings, comparison.summary, comparison.verdict
    rival, methods = _rival(comparison), [each.method for each in settings.contestants]
    warned = Counter(
        (result.method, line)
        for result in comparison.results
        for line in result.remarks.splitlines()
    )
    figures = {
        name: to_inline_svg(figure, name, description)
        for name, (figure, description) in _described_figures(comparison).items()
    }
    view = {
        "comparison": comparison,
        "settings": settings,
        "verdict": verdict,
        "scores": summary,
        "shown_settings": [(name, getattr(settings, name)) for name in text.SHOWN_SETTINGS],
        "sources": [(source.path, source.sha256) for source in settings.sources],
        "rival": rival,
        "supervised": supervised_name(summary),
        "confidence": [_confidence(comparison, name) for name in (rival, summary.baseline)],
        "next_step": next_step,
        "protocol": text.protocol(settings),
        "rule": RULE,
        "interval_source": text.interval_source(summary),
        "names": text.ranked(summary),
        "long_names": {each.name: title_of(each) for each in settings.contestants},
        "titles": {each.name: each.method.title for each in settings.contestants},
        "failed": comparison.failures([COMPARISON]),
        "methods": dict.fromkeys((method.name, method.sentence) for method in methods),
        "measures": {name: COMPARISON_MEASURES[name] for name in text.known_measures(summary)},
        "figures": figures,
        "curves": _curves(comparison, figures),
        "confusion": comparison.confusion(verdict.method),
        "warned": warned.most_common(_MOST_REMARKS),
        "fits": Counter(result.method for result in comparison.results),
    }
    filters: dict[str, Any] = {
        "interval": text.interval_text,
        "last_line": last_line,
        "number": lambda value, measure: with_minus(text.number_text(value, measure)),
        "points": points,
        "word": word,
        "worse_text": text.worse_text,
    }
    return fill("comparison.html.j2", view, __package__, comparison.results, **filters)


def _rival(comparison: Comparison) -> str | None:
    """The contestant that is recommended; if that is the baseline, the best that uses all rows."""
    summary, method = comparison.summary, comparison.verdict.method
    if method and method != summary.baseline:
        return method
    names = [each.name for each in comparison.settings.contestants if each.method.uses_unlabeled]
    known = [name for name in names if summary.mean(name, ERROR) is not None]
    return min(known, key=summary.rank, default=None)


def _bins(comparison: Comparison, name: str | None) -> Array:
    return pooled_bins(result for result in comparison.compared if result.method == name)


def _confidence(comparison: Comparison, name: str | None) -> tuple[float, float] | None:
    """Mean probability of the predicted class, and the share of rows for which it was right."""
    n_rows, sure, right = _bins(comparison, name).sum(axis=0)
    return (float(sure / n_rows), float(right / n_rows)) if n_rows else None


def draw_figures(comparison: Comparison) -> dict[str, Figure]:
    """All figures of the page by name: differences, reliability, learning curves."""
    return {name: figure for name, (figure, _) in _described_figures(comparison).items()}


def _described_figures(comparison: Comparison) -> dict[str, tuple[Figure, str]]:
    """Figures by name, each with what it shows in words for those who do not see it."""
    figures = {}
    summary = comparison.summary
    for measure in DECISIVE:
        if display := differences(comparison, measure):
            figure = draw(display, 5.8, 1.2 + 0.38 * len(display.differences))
            description = f"{display.score_name} minus that of {supervised_name(summary)}."
            figures[f"difference-{measure}"] = figure, description
    names = [name for name in (summary.baseline, _rival(comparison)) if name]
    sure = {name: both for name in names if (both := _confidence(comparison, name))}
    if sure:
        curves = {n: ReliabilityCurve.from_sums(EDGES, _bins(comparison, n)) for n in sure}
        figure = draw(ReliabilityDisplay(curves=curves), 4.6, 4.4)
        figures["reliability"] = figure, "Share of rows that are right by the probability given."
    for curve in _CURVE_TITLES:
        for measure in CURVE_MEASURES:
            shown = [p for p in comparison.points if (p.curve, p.measure) == (curve, measure)]
            if lines := learning_curve(shown, comparison.reference):
                figure = draw(lines, 4.8, 3.2, is_loss=measure == LOSS_DIFFERENCE)
                description = f"{lines.score_name} by {curve} rows; curves.csv has the numbers."
                figures[f"curve-{curve}-{measure}"] = figure, description
    return figures


@styled
def draw(display: Any, width: float, height: float, *, is_loss: bool = False) -> Figure:
    """A display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    if is_loss:
        _set_loss_axis(grid[0, 0], display)
    display.plot(ax=grid[0, 0])
    return figure


def _curves(comparison: Comparison, figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Title, figures, and the smallest and the largest point of every curve that is drawn."""
    views = []
    for curve, title in _CURVE_TITLES.items():
        drawn = [svg for name, svg in figures.items() if name.startswith(f"curve-{curve}-")]
        if drawn:
            shown = [point for point in comparison.points if point.curve == curve]
            ends = [end(shown, key=lambda point: point.size) for end in (min, max)]
            is_of_labels = curve == LABELED_CURVE
            view = {"title": title, "figures": drawn, "ends": ends, "is_of_labels": is_of_labels}
            views.append(view)
    return views


def differences(comparison: Comparison, measure: str) -> ComparisonDisplay | None:
    """Every contestant less the supervised one: repeats as dots, corrected intervals as bars.

    None without two contestants that have the measure.
    """
    summary = comparison.summary
    paired, intervals = {}, {}
    for each in summary.differences:
        if each.measure == measure and summary.baseline:
            values = summary.repeats[each.method, measure]
            values = values - summary.repeats[summary.baseline, measure]
            values = values[np.isfinite(values)]
            if values.size:
                paired[each.method], intervals[each.method] = values, (each.low, each.high)
    if not paired:
        return None
    return ComparisonDisplay(
        differences=paired,
        baseline=summary.baseline or "",
        score_name=COMPARISON_MEASURES[measure].axis,
        greater_is_better=not COMPARISON_MEASURES[measure].lower_is_better,
        intervals=intervals,
    )


def learning_curve(
    points: Sequence[SplitCurvePoint], reference: str | None = None
) -> LearningCurveDisplay | None:
    """One measure against the number of unlabeled, or of labeled, rows.

    A loss is that above the one of ``reference``. None if there are no two points to connect.
    """
    lines: dict[str, list[SplitCurvePoint]] = {}
    for point in points:
        lines.setdefault(point.method, []).append(point)
    if max(map(len, lines.values()), default=0) < 2:
        return None
    sizes, means, errors = (
        {name: np.array([getattr(p, f) for p in line], dtype) for name, line in lines.items()}
        for f, dtype in (("size", int), ("mean", float), ("se", float))
    )
    measure = points[0].measure
    is_loss = measure == LOSS_DIFFERENCE
    return LearningCurveDisplay(
        sizes=sizes,
        means=means,
        standard_errors=errors,
        varied=VARIED[points[0].curve],
        score_name=f"Loss minus that of {reference}"
        if is_loss
        else COMPARISON_MEASURES[measure].axis,
    )


def _set_loss_axis(ax: Any, display: LearningCurveDisplay) -> None:
    """Scale and ends of the axis; lines and bands of fits that are far off are cut."""
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
    reach = np.abs(means).max()
    reach = np.clip(reach, _LINEAR_REACH * typical, _LARGEST_REACH * typical)
    ends = np.clip([*(means - errors), *(means + errors), 0.0], -reach, reach)
    if reach > _LINEAR_REACH * typical:
        ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(typical)))
        ax.yaxis.set_major_formatter(lambda value, _: with_minus(f"{value:,g}"))
        ax.axhline(0, color=FAINT, linewidth=0.6)
    scale = ax.transScale
    low, high = (scale.transform((1, end))[1] for end in (ends.min(), ends.max()))
    margin = 0.05 * (high - low) or 1.0
    inverse = scale.inverted()
    ax.set_ylim(*(inverse.transform((1, end))[1] for end in (low - margin, high + margin)))


def _median_size(differences: Array) -> float:
    """The median; differences of the reference to itself do not count."""
    sizes = np.abs(differences[differences != 0])
    return float(np.median(sizes)) if sizes.size else 0.0
