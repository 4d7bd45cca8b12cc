"""Points of the learning curves beside the published ones, as files and figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..drawing import DASHES, label_methods, new_figure, paper_color, styled
from ..measures import paper_measures
from ..page import attributes_csv
from ..store import FitResult
from . import published

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAR = 1.5  # a line this many ranges of the others above them is named, not drawn


@dataclass(frozen=True)
class ReproducedPoint:
    """Mean and standard error over the repeats whose fit succeeded, beside the published ones."""

    dataset: str
    n_unlabeled: int
    method: str
    measure: str
    mean: float
    se: float | None
    repeats: int
    published_mean: float | None = None
    published_se: float | None = None
    z: float | None = None  # their difference in combined standard errors


_COMPARED = tuple(each.name for each in fields(ReproducedPoint))
POINT_COLUMNS = _COMPARED[:-3]


def summarize_curves(results: Iterable[FitResult]) -> list[ReproducedPoint]:
    """Points of all curves, by data set, measure, method and number of unlabeled rows."""
    measures = list(paper_measures())
    values: dict[tuple[str, str, str, int], dict[int, float]] = defaultdict(dict)
    for result in results:
        for measure in measures:
            value = result.number(measure)
            if result.experiment == published.CURVES and value is not None:
                values[result.dataset, measure, result.method, result.part][result.repeat] = value

    def rank(key: tuple[str, str, str, int]) -> tuple[Any, ...]:
        dataset, measure, method, size = key
        return dataset.casefold(), measures.index(measure), published.method_rank(method), size

    points = []
    for dataset, measure, method, size in sorted(values, key=rank):
        repeats = list(values[dataset, measure, method, size].values())
        n, (mean, variance) = len(repeats), published.mean_and_variance(repeats)
        se = None if variance is None else sqrt(variance / n)
        point = ReproducedPoint(dataset, size, method, measure, mean or 0.0, se, n)
        points.append(_beside_published(point))
    return points


def _beside_published(point: ReproducedPoint) -> ReproducedPoint:
    """Add the point of the paper and the difference to it, where the paper has one."""
    key = point.dataset, point.n_unlabeled, published.counterpart_of(point.method), point.measure
    theirs = published.read_points().get(key)
    if theirs is None:
        return point
    z = published.z_score(point.mean, point.se, theirs.mean, theirs.se)
    return replace(point, published_mean=theirs.mean, published_se=theirs.se, z=z)


def curve_files(points: Sequence[ReproducedPoint]) -> dict[str, str]:
    """File name to content: all points, and those that the paper has too."""
    return {
        "points.csv": attributes_csv(POINT_COLUMNS, points),
        "comparison.csv": attributes_csv(_COMPARED, [p for p in points if p.z is not None]),
    }


@styled
def draw_curves(points: Iterable[ReproducedPoint], dataset: str) -> Figure:
    """Draw the measures of one data set side by side, against the number of unlabeled rows."""
    measures = published.table_measures()
    figure, grid = new_figure(4.7 * len(measures), 3.3, 1, len(measures))
    ours = [point for point in points if point.dataset == dataset]
    for axes, (name, measure) in zip(grid[0], measures.items(), strict=True):
        _plot_curves(axes, [point for point in ours if point.measure == name])
        axes.set_title(measure.axis)
        axes.set_xlabel("Unlabeled rows")
    return figure


def _plot_curves(axes: Axes, ours: list[ReproducedPoint]) -> None:
    methods = dict.fromkeys(point.method for point in ours)
    lines = {method: [p for p in ours if p.method == method] for method in methods}
    sizes = sorted({point.n_unlabeled for point in ours})
    shown = sizes[:: 2 if len(sizes) > 8 else 1]
    axes.set_xscale("log", base=2)
    axes.set_xticks(shown, [str(size) for size in shown])
    axes.set_xticks([], minor=True)
    axes.margins(x=0.03)
    far = _far_above(lines)
    for method, line in lines.items():
        if method not in far:
            _plot_line(axes, line)
    if not lines:
        return
    axes.margins(y=0.08)
    label_methods(axes, {m: line[-1].mean for m, line in lines.items() if m not in far})
    look: Any = {"transform": axes.transAxes, "ha": "right", "va": "top", "fontsize": 8.5}
    for place, method in enumerate(far):
        means = [point.mean for point in lines[method]]
        text = f"\N{UPWARDS ARROW} {method} lies above: {min(means):.3g} to {max(means):.3g}"
        axes.text(0.99, 0.985 - 0.075 * place, text, color=paper_color(method), **look)


def _far_above(lines: dict[str, list[ReproducedPoint]]) -> list[str]:
    """Methods so far above the others that drawing them would flatten these to one line."""
    order = sorted(lines, key=lambda method: min(point.mean for point in lines[method]))
    if len(order) < 4:
        return []
    lowest = min(point.mean for point in lines[order[0]])
    highest = lowest
    for rank, method in enumerate(order):
        means = [point.mean for point in lines[method]]
        if rank > 2 and min(means) - highest > _FAR * (highest - lowest):
            return order[rank:]
        highest = max(highest, *means)
    return []


def _plot_line(axes: Axes, line: list[ReproducedPoint]) -> None:
    """Means with a band of one standard error, and published means as open circles."""
    method, sizes = line[0].method, [point.n_unlabeled for point in line]
    means = np.array([point.mean for point in line])
    errors = np.array([point.se or 0.0 for point in line])
    color = paper_color(method)
    width = 2.2 if method == "ICLDA" else 1.4
    style: Any = DASHES.get(method, "solid")
    axes.fill_between(sizes, means - errors, means + errors, color=color, alpha=0.18, linewidth=0)
    axes.plot(sizes, means, color=color, linestyle=style, linewidth=width)
    circles: Any = {"markersize": 3.4, "markerfacecolor": "none", "markeredgewidth": 0.8}
    columns = published.counterpart_of(method), line[0].measure
    theirs = {
        size: published.read_points().get((line[0].dataset, size, *columns)) for size in sizes
    }
    known = {size: point.mean for size, point in theirs.items() if point is not None}
    places = list(known), list(known.values())
    axes.plot(*places, linestyle="none", marker="o", markeredgecolor=color, **circles)
