"""Tables, figures and report of the paper's experiments, drawn from stored rows.

``draw_everything`` writes all files of a folder. The report is the template
``report.html.j2``, filled in by ``render_report``.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import AnyArray
from ...datasets import BENCHMARKS, make_gaussians, make_violated_gaussians
from ...methods import find_method
from ...plots._decision_boundary import DecisionBoundaryDisplay
from ...plots._scores import display_points
from .. import page
from ..engine import rng_of
from ..measures import paper_measures
from ..store import STORE, FitResult, Store
from . import design, summary
from .published import read_cells
from .stored_settings import StoredSettings, read_settings
from .summary import ReproducedPoint, TableCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOY_ROWS = 1000
_TOY_LABELS_PER_CLASS = 5
# Error of the best rule on the toy problem, whose classes have the variance 0.8 and the
# means (1, 1) and (-1, -1).
_BEST_GAUSSIAN_ERROR = NormalDist().cdf(-math.sqrt(2 / 0.8))

# Means by data set and method.
Means = Mapping[tuple[str, str], float]


def draw_everything(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the rows of a folder.

    Returns a summary that can be written as JSON. Nothing is fitted except for the toy
    figure.
    """
    with closing(Store(out / STORE, kind=design.KIND, read_only=True)) as store:
        settings = read_settings(store)
        results = [*store.rows(design.TABLES), *store.rows(design.CURVES)]
    own_names = _own_sets(settings)
    results = [
        replace(result, dataset=own_names.get(result.dataset, result.dataset))
        for result in results
    ]
    shapes = {
        own_names.get(name, name): shape for name, shape in settings.shapes.items()
    }
    settings = replace(settings, shapes=shapes)

    cells = summary.summarize_tables(results)
    points = summary.summarize_curves(results)
    figures = draw_all_figures(points, settings.seed)
    for name, figure in figures.items():
        page.save(figure, out / "figures" / name)
    cells_text = page.records_csv(TableCell, cells)
    page.write_texts(out / "tables", {"cells.csv": cells_text})
    points_text = page.records_csv(ReproducedPoint, points)
    page.write_texts(out / "curves", {"points.csv": points_text})
    report = render_report(results, settings, figures)
    [report_path] = page.write_texts(out, {"report.html": report})
    return {
        "report": str(report_path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": list(summary.find_gaps(cells).values()),
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": settings.seconds,
    }


def _own_sets(settings: StoredSettings) -> dict[str, str]:
    """Return the names to show for users' own files that have the name of a benchmark.

    Nothing published is compared with these.
    """
    return {
        name: f"{name} (own data)"
        for name, sha256 in settings.data.items()
        if sha256 != BENCHMARKS[name].sha256
    }


def draw_all_figures(points: Sequence[ReproducedPoint], seed: int) -> dict[str, Figure]:
    """Draw the toy figure and the curves of all data sets, by name of file."""
    figures = {"toy": draw_toy(seed)}
    for dataset in dict.fromkeys(point.dataset for point in points):
        figures[_curve_name(dataset)] = draw_curves(points, dataset)
    return figures


def _curve_name(dataset: str) -> str:
    return "curve-" + re.sub("[^A-Za-z0-9.-]", "-", dataset)


def render_report(
    results: Sequence[FitResult],
    settings: StoredSettings | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> str:
    """Return the report as HTML, with all names and messages escaped."""
    settings = settings or StoredSettings()
    figures = figures or {}
    cells = summary.summarize_tables(results)
    points = summary.summarize_curves(results)
    measures = design.table_measures()
    errors = _means(cells, "error")
    losses = _means(cells, "nll")
    origins = settings.origins.items()
    shapes = {
        cell.dataset: settings.shapes[cell.dataset]
        for cell in cells
        if cell.dataset in settings.shapes
    }
    view = {
        "settings": settings,
        "origins": [(f"{name} from", origin) for name, origin in origins],
        "own": sorted(_own_sets(settings)),
        "made_by": sorted({result.versions for result in results if result.versions}),
        "cells": cells,
        "points": points,
        "far_cells": _furthest(cells),
        "far_points": _furthest(points),
        "best_gaussian_error": _BEST_GAUSSIAN_ERROR,
        "em": _em_pairs(errors),
        "errors": errors,
        "iclda": {"error": _above_lda(errors), "loss": _above_lda(losses)},
        "figures": {
            name: page.to_inline_svg(figure, name) for name, figure in figures.items()
        },
        "curves": {point.dataset: _curve_name(point.dataset) for point in points},
        "tables": [
            (name, measure, summary.arrange(cells, name))
            for name, measure in measures.items()
            if any(cell.measure == name for cell in cells)
        ],
        "comparisons": {
            name: summary.compare_with_baseline(results, name) for name in measures
        },
        "gaps": summary.find_gaps(cells),
        "datasets": summary.dataset_table(shapes),
    }
    return page.fill(
        "report.html.j2",
        view,
        __package__,
        results,
        number=_number,
        heading=_heading,
    )


def _heading(measure: str) -> str:
    """Return the name of a measure in a sentence: error, loss."""
    return paper_measures()[measure].heading


def _number(value: float, measure: str = "error") -> str:
    """Format a value with the decimals of its measure."""
    return page.with_minus(f"{value:.{paper_measures()[measure].decimals}f}")


def _means(cells: Sequence[TableCell], measure: str) -> Means:
    return {
        (cell.dataset, cell.method): cell.mean
        for cell in cells
        if cell.measure == measure and cell.mean is not None
    }


def _furthest(compared: Sequence[Any]) -> list[Any]:
    """Return the cells or points that the paper has too, the furthest from it first."""
    published = [each for each in compared if each.z is not None]
    return sorted(published, key=lambda each: -abs(each.z))


def _em_pairs(errors: Means) -> list[dict[str, Any]]:
    """Return the errors of EM as defined and as published, by data set.

    The latter is that of the EM that repeats the faults; if it was not run, the printed
    one.
    """
    pairs = []
    for dataset, method in errors:
        if method != "EMLDA":
            continue
        defined = errors[dataset, "EMLDA"]
        cell = read_cells().get((dataset, "EMLDA", "error"))
        printed = cell.mean if cell else None
        faulty = errors.get((dataset, design.PUBLISHED_EM), printed)
        if faulty is not None:
            pair = {
                "dataset": dataset,
                "defined": defined,
                "faulty": faulty,
                "printed": printed,
                "lda": errors.get((dataset, design.BASELINE)),
                "fall": faulty - defined,
            }
            pairs.append(pair)
    return pairs


def _above_lda(means: Means) -> dict[str, float]:
    """Return the mean of ICLDA less that of LDA, by data set."""
    return {
        dataset: mean - means[dataset, design.BASELINE]
        for (dataset, method), mean in means.items()
        if method == "ICLDA" and (dataset, design.BASELINE) in means
    }


# Figures.


@page.styled
def draw_toy(seed: int) -> Figure:
    """Draw the labels that LDA, ICLDA and EM give to rows that help or mislead."""
    problems = {
        "Class boundary between the clusters": ("between", make_gaussians),
        "Class boundary across the clusters": ("across", make_violated_gaussians),
    }
    # Method of each panel, and whether the labels it gives to rows are shown by color.
    panels = {
        "Labels and LDA": ("supervised", None),
        "ICLDA": ("iclda", "auto"),
        "EMLDA": ("em", "auto"),
    }
    figure, grid = page.new_figure(8.4, 6.0, len(problems), len(panels))
    figure.set_label("Labels that LDA, ICLDA and EMLDA give to rows")
    for row, (title, (name, make)) in zip(grid, problems.items(), strict=True):
        X, codes = make(_TOY_ROWS, rng_of(seed, "toy", name))
        y = _keep_first_labels(codes)
        for axes, (panel, (method, shares)) in zip(row, panels.items(), strict=True):
            classifier = find_method(method).classifier()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(X, y)
            DecisionBoundaryDisplay.from_estimator(
                classifier, X, y, responsibilities=shares, legend=False, ax=axes
            )
            axes.set(title=panel, xlabel="", ylabel="", xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(title)
    return figure


def _keep_first_labels(codes: AnyArray) -> AnyArray:
    """Return the classes of the first rows of each class, -1 for all others."""
    y = np.full(len(codes), -1)
    for code in (0, 1):
        rows = np.flatnonzero(codes == code)
        y[rows[:_TOY_LABELS_PER_CLASS]] = code
    return y


@page.styled
def draw_curves(points: Iterable[ReproducedPoint], dataset: str) -> Figure:
    """Draw the measures of a data set against the number of unlabeled rows."""
    measures = design.table_measures()
    figure, grid = page.new_figure(4.7 * len(measures), 3.3, 1, len(measures))
    figure.set_label(
        f"Error and loss on {dataset} against the number of unlabeled rows"
    )
    points = [point for point in points if point.dataset == dataset]
    for axes, (name, measure) in zip(grid[0], measures.items(), strict=True):
        _plot_curves(axes, [point for point in points if point.measure == name])
        axes.set(title=measure.axis, ylabel="")
    return figure


def _plot_curves(axes: Axes, points: Sequence[ReproducedPoint]) -> None:
    """Draw means with bands of one standard error, published means as circles."""
    display = display_points(points, "n_unlabeled", "")
    # With its faults the published EM may rise so far that the others would be one
    # line: the others determine the limits of the axis.
    others = [
        mean for method, mean in display.means.items() if method != design.PUBLISHED_EM
    ]
    if others:
        low = np.min(others)
        high = np.max(others)
        axes.set_ylim(low - 0.08 * (high - low), high + 0.3 * (high - low))
    display.plot(ax=axes)
    for method, line in display.lines_.items():
        published = [point.published_mean for point in points if point.method == method]
        axes.plot(
            display.sizes[method],
            np.array(published, dtype=float),  # None becomes NaN, which is not drawn.
            linestyle="none",
            marker="o",
            markersize=3.4,
            markerfacecolor="none",
            markeredgecolor=line.get_color(),
            markeredgewidth=0.8,
        )
