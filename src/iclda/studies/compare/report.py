"""Files of a comparison: CSV, JSON, and a self-contained page with its figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...methods import FAINT, INK
from ...plots._scores import ComparisonDisplay, display_points, shows_dots
from .. import page
from ..measures import BRIER, COMPARISON_MEASURES
from .comparison import Comparison, last_line
from .run import FILES
from .splits import LABELED_CURVE
from .summary import (
    CURVE_MEASURES,
    VARIED_COUNTS,
    Score,
    SplitCurvePoint,
)
from .terminal import (
    Word,
    interval_source,
    interval_text,
    known_measures,
    number_text,
    protocol,
    ranked,
    worse_text,
)
from .verdict import rule_text, supervised_name, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Settings that the page and the JSON summary show.
_SHOWN_SETTINGS = (
    "target",
    "measure",
    "folds",
    "repeats",
    "labeled",
    "shrinkage",
    "seed",
)
# Colors that are visible on a light and on a dark page.
_CHOSEN_COLOR = "#c0509f"
_OUTSIDE_COLOR = "#1f82c9"


def json_summary(
    comparison: Comparison, paths: Mapping[str, Path], word: Word = str
) -> dict[str, Any]:
    """Return the whole comparison as JSON values; ``word`` words its messages."""
    summary = comparison.summary
    settings = comparison.settings
    failed = [result for result in comparison.results if result.failure is not None]
    return {
        "comparison": str(paths["comparison"]),
        # The points of the curves have the key "curves".
        "curves_file": str(paths["curves"]),
        "report": str(paths["report"]),
        "recommendation": _recommendation_to_json(comparison, word),
        "supervised": summary.baseline,
        "classes": _classes_to_json(comparison),
        "scores": [asdict(score) for score in summary.scores],
        "differences": [
            {**asdict(difference), "verdict": difference.verdict}
            for difference in summary.differences
        ],
        "curves": [asdict(point) for point in comparison.points],
        "preflight": [
            {**vars(remark), "text": word(remark.text)} for remark in settings.remarks
        ],
        "settings": {name: getattr(settings, name) for name in _SHOWN_SETTINGS},
        "stopped": dict(settings.stopped),
        "failed_fits": len(failed),
        "seconds": round(comparison.seconds, 3),
    }


def _recommendation_to_json(comparison: Comparison, word: Word) -> dict[str, Any]:
    verdict = comparison.verdict
    chosen = comparison.chosen
    return {
        "kind": verdict.kind,
        "method": chosen.method.name if chosen else None,
        "shrinkage": chosen.shrinkage if chosen else None,
        "learned": verdict.learned or None,
        "error": verdict.estimate.to_json() if verdict.estimate else None,
        "headline": verdict.headline,
        "sentence": word(verdict.sentence),
        "caution": comparison.caution,
        "pace": word(comparison.pace),
    }


def _classes_to_json(comparison: Comparison) -> dict[str, Any] | None:
    """Return the errors of the recommended contestant by class, None without one."""
    if comparison.confusion is None:
        return None
    return {
        "method": comparison.verdict.method,
        "base_rate_text": comparison.verdict.base,
        **comparison.confusion.to_json(),
    }


def write_files(
    out: Path, comparison: Comparison, word: Word = str, next_step: str = ""
) -> dict[str, Path]:
    """Write comparison.csv, curves.csv and report.html; return their paths.

    ``word`` words messages for the reader of the page. ``next_step`` is the command
    that fits the recommended method.
    """
    scores = comparison.summary.scores
    contents = {
        FILES["comparison"]: page.records_csv(Score, scores, left_out=["repeats"]),
        FILES["curves"]: page.records_csv(SplitCurvePoint, comparison.points),
        FILES["report"]: _render(comparison, word, next_step),
    }
    page.write_texts(out, contents)
    return {name: out / file for name, file in FILES.items()}


def _render(comparison: Comparison, word: Word, next_step: str) -> str:
    """Return the page as text, with all names in it escaped."""
    settings = comparison.settings
    summary = comparison.summary
    contestants = settings.contestants
    narrow = draw_figures(comparison, is_narrow=True)
    figures = {
        name: page.to_inline_svgs(figure, narrow[name], name)
        for name, figure in draw_figures(comparison).items()
    }
    # Several contestants may have the same method, which is explained once.
    methods = {contestant.method.name: contestant.method for contestant in contestants}
    measures = {name: COMPARISON_MEASURES[name] for name in known_measures(summary)}
    # What the template shows, by the names that it has for it.
    view = {
        "comparison": comparison,
        "settings": settings,
        "verdict": comparison.verdict,
        "scores": summary,
        "shown_settings": [
            (name.capitalize(), getattr(settings, name)) for name in _SHOWN_SETTINGS
        ],
        "sources": [(source.path, source.sha256) for source in settings.sources],
        "supervised": supervised_name(summary),
        "next_step": next_step,
        "protocol": protocol(settings),
        "rule": rule_text(settings.measure),
        "interval_source": interval_source(summary),
        "main": COMPARISON_MEASURES[summary.main],
        "difference_figures": [
            figures[name]
            for name in map(_difference_figure_name, _difference_measures(comparison))
            if name in figures
        ],
        "has_dots": _has_dots(comparison),
        "colors_text": _colors_text(comparison, ranked(summary)),
        "colors_text_of_curves": _colors_text(comparison, comparison.on_curves),
        "names": ranked(summary),
        "long_names": {
            contestant.name: title_of(contestant) for contestant in contestants
        },
        "titles": {
            contestant.name: contestant.method.title for contestant in contestants
        },
        "failed": comparison.failures,
        "methods": [(name, method.sentence) for name, method in methods.items()],
        "measures": measures,
        "figures": figures,
        "curves": _curve_views(comparison, figures),
        "confusion": comparison.confusion,
    }
    # Jinja calls these by the names that the template has for them.
    filters: dict[str, Any] = {
        "interval": interval_text,
        "last_line": last_line,
        "number": _number_with_minus,
        "word": word,
        "worse_text": worse_text,
    }
    return page.fill(
        "comparison.html.j2", view, __package__, comparison.results, **filters
    )


def _number_with_minus(value: float | None, measure: str) -> str:
    return page.with_minus(number_text(value, measure))


def _curve_views(
    comparison: Comparison, figures: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the title, the figures and both ends of every curve that is drawn.

    ``figures`` has all figures of the page by name.
    """
    views = []
    for curve in VARIED_COUNTS:
        names = [_curve_figure_name(curve, measure) for measure in CURVE_MEASURES]
        drawn = [figures[name] for name in names if name in figures]
        if not drawn:
            continue
        # The page gives the numbers of training rows at both ends.
        points = [point for point in comparison.points if point.curve == curve]
        smallest = min(points, key=lambda point: point.size)
        largest = max(points, key=lambda point: point.size)
        view = {
            "title": f"More {curve} rows",
            "figures": drawn,
            "ends": [smallest, largest],
            "is_of_labels": curve == LABELED_CURVE,
        }
        views.append(view)
    return views


def _curve_figure_name(curve: str, measure: str) -> str:
    return f"curve-{curve}-{measure}"


def draw_figures(
    comparison: Comparison, *, is_narrow: bool = False
) -> dict[str, Figure]:
    """Draw all figures of the page: differences and learning curves, by name.

    Figures that have nothing to show are left out. Narrow ones are for small screens.
    """
    all_methods = [difference.method for difference in comparison.summary.differences]
    main = comparison.summary.main
    figures = {
        # The figure at the top of the page shows only the contestants of the curves.
        "difference": _draw_difference(
            comparison, main, comparison.on_curves, is_narrow
        )
    }
    for measure in _difference_measures(comparison):
        name = _difference_figure_name(measure)
        figures[name] = _draw_difference(comparison, measure, all_methods, is_narrow)
    for curve in VARIED_COUNTS:
        for measure in CURVE_MEASURES:
            name = _curve_figure_name(curve, measure)
            figures[name] = _draw_curve(comparison, curve, measure, is_narrow)
    return {name: figure for name, figure in figures.items() if figure is not None}


def _difference_measures(comparison: Comparison) -> list[str]:
    """Return the measures whose differences are drawn."""
    return [BRIER, comparison.summary.main]


def _difference_figure_name(measure: str) -> str:
    return f"difference-{measure}"


def _best_outside(comparison: Comparison) -> str | None:
    """Return the best contestant that is a method of scikit-learn, if there is one."""
    best = sorted(comparison.summary.best.values(), key=comparison.summary.order)
    return next((name for name in best if name in comparison.outside), None)


def highlight(comparison: Comparison) -> dict[str, str]:
    """Return colors of contestants: only those to look at differ from gray.

    These are the recommended one, the baseline and the best of scikit-learn.
    """
    colors = {each.name: FAINT for each in comparison.settings.contestants}
    outside = _best_outside(comparison)
    if outside is not None:
        colors[outside] = _OUTSIDE_COLOR
    if comparison.summary.baseline is not None:
        # In pages this becomes the color of the text.
        colors[comparison.summary.baseline] = INK
    if comparison.verdict.method is not None:
        colors[comparison.verdict.method] = _CHOSEN_COLOR
    return colors


def _colors_text(comparison: Comparison, names: Collection[str]) -> str:
    """Explain the colors of figures that show the contestants of these names."""
    meanings = {
        _CHOSEN_COLOR: "Pink: {name}, the recommended one.",
        _OUTSIDE_COLOR: "Blue: {name}, the best of scikit-learn.",
    }
    name_of_color = {
        color: name for name, color in highlight(comparison).items() if name in names
    }
    return " ".join(
        meaning.format(name=name_of_color[color])
        for color, meaning in meanings.items()
        if color in name_of_color
    )


def _has_dots(comparison: Comparison) -> bool:
    """Return whether the figures of differences show single repeats of any method."""
    all_methods = [difference.method for difference in comparison.summary.differences]
    displays = [
        differences(comparison, measure, all_methods)
        for measure in _difference_measures(comparison)
    ]
    return any(
        shows_dots(np.asarray(values))
        for display in displays
        if display is not None
        for values in display.differences.values()
    )


def _draw_difference(
    comparison: Comparison, measure: str, methods: Collection[str], is_narrow: bool
) -> Figure | None:
    display = differences(comparison, measure, methods)
    if display is None:
        return None
    supervised = supervised_name(comparison.summary)
    text = f"{display.score_name} minus that of {supervised}."
    # In inches: room for the axis and its label, and for a line of each method.
    height = 1.2 + 0.38 * len(display.differences)
    return page.draw_display(display, 5.8, height, text, is_narrow=is_narrow)


def _draw_curve(
    comparison: Comparison, curve: str, measure: str, is_narrow: bool
) -> Figure | None:
    points = [
        point
        for point in comparison.points
        if point.curve == curve and point.measure == measure
    ]
    axis = COMPARISON_MEASURES[measure].axis
    colors = highlight(comparison)
    display = display_points(points, VARIED_COUNTS[curve], axis, colors)
    # Without two points of any method there is no curve.
    has_lines = any(len(sizes) > 1 for sizes in display.sizes.values())
    if not has_lines:
        return None
    text = f"{axis} by {curve} rows; curves.csv has the numbers."
    return page.draw_display(display, 4.8, 3.2, text, is_narrow=is_narrow)


def differences(
    comparison: Comparison, measure: str, methods: Collection[str]
) -> ComparisonDisplay | None:
    """Return contestants minus the supervised one: repeats as dots, intervals as bars.

    None if no contestant but the supervised one has the measure.
    """
    summary = comparison.summary
    baseline = summary.baseline
    if baseline is None:
        return None
    paired = {}
    intervals = {}
    for difference in summary.differences:
        name = difference.method
        if difference.measure != measure or name not in methods:
            continue
        # Repeats are paired: both were tested on the same rows after the same training.
        supervised = summary.repeats[baseline, measure]
        values = summary.repeats[name, measure] - supervised
        # Repeats that one of the two lacks are left out.
        values = values[np.isfinite(values)]
        if values.size:
            paired[name] = values
            intervals[name] = (difference.low, difference.high)
    if not paired:
        return None
    shown = COMPARISON_MEASURES[measure]
    return ComparisonDisplay(
        differences=paired,
        baseline=baseline,
        score_name=shown.axis,
        greater_is_better=not shown.lower_is_better,
        intervals=intervals,
        colors=highlight(comparison),
    )
