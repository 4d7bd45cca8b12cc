"""Tables, figures and report of the paper's experiments, drawn from stored rows.

``draw_everything`` writes all files of a folder. The report is the template
``report.html.j2``, which ``render_report`` fills in.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import AnyArray, Array
from ...datasets import BENCHMARKS, make_gaussians, make_violated_gaussians
from ...methods import INK, find_method
from ...plots._decision_boundary import DecisionBoundaryDisplay
from ...plots._look import mix
from ...plots._scores import display_points
from .. import page
from ..engine import rng_of
from ..measures import PAPER_MEASURES
from ..store import STORE, FitResult, Store
from . import design, summary
from .marks import Table, count_marks, is_clearly_lower, published_table
from .published import read_cells
from .sentences import check_sentences
from .stored_settings import StoredSettings, read_settings
from .summary import ReproducedPoint, TableCell
from .surrogate import (
    compare_loss_and_error,
    differences_from_lda,
    rank_correlation,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOY_ROWS = 1000
_TOY_LABELS_PER_CLASS = 5
# Numbers at the axis of differences in loss.
_LOSS_TICKS = (-100, -10, -1)
# Error of the best rule on the toy problem, whose classes have the variance 0.8 and the
# means (1, 1) and (-1, -1).
_BEST_GAUSSIAN_ERROR = NormalDist().cdf(-math.sqrt(2 / 0.8))

# Means by data set and method.
Means = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Reproduction:
    """The rows and settings of a folder, and the cells and points of its report."""

    results: Sequence[FitResult]
    settings: StoredSettings = field(default_factory=StoredSettings)

    @cached_property
    def cells(self) -> list[TableCell]:
        return summary.summarize_tables(self.results)

    @cached_property
    def differences(self) -> dict[summary.Key, Array]:
        return differences_from_lda(self.results)

    @cached_property
    def points(self) -> list[ReproducedPoint]:
        return summary.summarize_curves(self.results)

    def means(self, measure: str) -> Means:
        """Return the means of a measure in the tables."""
        return {
            (cell.dataset, cell.method): cell.mean
            for cell in self.cells
            if cell.measure == measure and cell.mean is not None
        }


def draw_everything(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the rows of a folder.

    Returns a summary that can be written as JSON. Nothing is fitted except for the toy
    figure.
    """
    reproduction = _read_reproduction(out)
    cells = reproduction.cells
    points = reproduction.points
    figures = draw_all_figures(reproduction)
    for name, figure in figures.items():
        page.save(figure, out / "figures" / name)
    cells_text = page.records_csv(TableCell, cells)
    page.write_texts(out / "tables", {"cells.csv": cells_text})
    points_text = page.records_csv(ReproducedPoint, points)
    page.write_texts(out / "curves", {"points.csv": points_text})
    narrow_figures = draw_all_figures(reproduction, is_narrow=True)
    report = render_report(reproduction, figures, narrow_figures)
    [report_path] = page.write_texts(out, {"report.html": report})
    failed = [result for result in reproduction.results if result.failure is not None]
    return {
        "report": str(report_path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": list(summary.find_gaps(cells).values()),
        "failed_fits": len(failed),
        "seconds": reproduction.settings.seconds,
    }


def _read_reproduction(out: Path) -> Reproduction:
    """Read the rows of a folder.

    Data sets that are not those of the paper, or not labeled as there, get names of
    their own.
    """
    with closing(Store(out / STORE, kind=design.KIND, read_only=True)) as store:
        settings = read_settings(store)
        results = [*store.rows(design.TABLES), *store.rows(design.CURVES)]
    # Under another name, they are not compared with the numbers of the paper.
    names = {result.dataset for result in results}.union(settings.shapes)
    shown = {name: _shown_name(name, settings) for name in names}
    results = [replace(result, dataset=shown[result.dataset]) for result in results]
    shapes = {shown[name]: shape for name, shape in settings.shapes.items()}
    return Reproduction(results, replace(settings, shapes=shapes))


def _own_sets(settings: StoredSettings) -> list[str]:
    """Return the names of users' own files that have the name of a benchmark."""
    # A user's own file may also hold the very numbers of the paper.
    return sorted(
        name
        for name, sha256 in settings.data.items()
        if sha256 != BENCHMARKS[name].sha256
    )


def _own_labeling(settings: StoredSettings) -> list[str]:
    """Say how rows are labeled, where that is not as in the paper."""
    said = []
    if settings.labels:
        said.append(f"{settings.labels} labels")
    if settings.drawing != design.WITH_REPLACEMENT:
        said.append(f"drawn {settings.drawing}")
    return said


def _shown_name(name: str, settings: StoredSettings) -> str:
    """Return the name of a data set, with what sets it apart from that of the paper."""
    said = _own_labeling(settings)
    if name in _own_sets(settings):
        said = ["own data", *said]
    return f"{name} ({', '.join(said)})" if said else name


def draw_all_figures(
    reproduction: Reproduction, *, is_narrow: bool = False
) -> dict[str, Figure]:
    """Draw the figures, by name of file: toy problem, curves, loss and error.

    Narrow figures are for small screens.
    """
    figures = {"toy": draw_toy(reproduction.settings.seed, is_narrow=is_narrow)}
    drawn = {
        dataset: each
        for (dataset, method), each in reproduction.differences.items()
        if method == "ICLDA"
    }
    if drawn:
        figures["loss-and-error"] = draw_loss_and_error(drawn, is_narrow=is_narrow)
    points = reproduction.points
    for dataset in dict.fromkeys(point.dataset for point in points):
        name = _curve_name(dataset)
        figures[name] = draw_curves(points, dataset, is_narrow=is_narrow)
    return figures


def _curve_name(dataset: str) -> str:
    return "curve-" + re.sub("[^A-Za-z0-9.-]", "-", dataset)


def render_report(
    reproduction: Reproduction,
    figures: Mapping[str, Figure],
    narrow_figures: Mapping[str, Figure],
) -> str:
    """Return the report as HTML, with all names and messages escaped.

    Small screens show the narrow figures in place of those of the same name.
    """
    results = reproduction.results
    settings = reproduction.settings
    cells = reproduction.cells
    points = reproduction.points
    measures = design.TABLE_MEASURES
    errors = reproduction.means("error")
    losses = reproduction.means("nll")
    origins = settings.origins.items()
    # Rows that an earlier run stored may have been made by other versions.
    made_by = {result.versions for result in results if result.versions}
    svgs = {
        name: page.to_inline_svgs(figure, narrow_figures[name], name)
        for name, figure in figures.items()
    }
    # The table of data sets describes those of the tables; curves name their own.
    shapes = {
        cell.dataset: settings.shapes[cell.dataset]
        for cell in cells
        if cell.dataset in settings.shapes
    }
    tables_by_em = summary.tables_by_em(cells)
    drawn_methods = {point.method for point in points}
    names_of_methods = sorted(
        drawn_methods.union(cell.method for cell in cells), key=design.method_rank
    )
    comparisons = {
        name: summary.compare_with_baseline(results, name) for name in measures
    }
    view = {
        "settings": settings,
        "origins": [(f"{name} from", origin) for name, origin in origins],
        "own": _own_sets(settings),
        "own_labeling": _own_labeling(settings),
        "made_by": sorted(made_by),
        "cells": cells,
        "points": points,
        "far_cells": _furthest(cells),
        "far_points": _furthest(points),
        "best_gaussian_error": _BEST_GAUSSIAN_ERROR,
        "em": _em_pairs(errors),
        "errors": errors,
        "iclda": {"error": _above_lda(errors), "loss": _above_lda(losses)},
        "figures": svgs,
        "curves": {point.dataset: _curve_name(point.dataset) for point in points},
        "tables": [
            (name, measure, summary.arrange(cells, name))
            for name, measure in measures.items()
            if any(cell.measure == name for cell in cells)
        ],
        "comparisons": comparisons,
        "tests": {
            name: _count_verdicts(cells, name, comparisons[name]) for name in measures
        },
        "marks": {
            name: {em: count_marks(table, name) for em, table in tables_by_em.items()}
            for name in measures
        },
        "sentences": _checked_by_source(tables_by_em),
        "loss_and_error": compare_loss_and_error(reproduction.differences),
        "gaps": summary.find_gaps(cells),
        "datasets": summary.dataset_table(shapes, settings.labels),
        "methods": summary.describe_methods(names_of_methods),
        "short_titles": {name: summary.short_title(name) for name in names_of_methods},
    }
    return page.fill(
        "report.html.j2",
        view,
        __package__,
        results,
        number=_number,
        heading=_heading,
    )


def _count_verdicts(
    cells: Sequence[TableCell],
    measure: str,
    comparisons: Mapping[tuple[str, str], summary.PairedComparison],
) -> list[tuple[str, int, int]]:
    """Count the methods that are better and worse than LDA, by both tests.

    Each is the name of a test and both counts, over the same comparisons.
    """
    table = summary.table_of(cells)
    pairs = []
    for dataset, method in comparisons:
        samples = table.get((dataset, measure), {})
        if method in samples and design.BASELINE in samples:
            pairs.append((samples[method], samples[design.BASELINE]))
    verdicts = [comparison.verdict for comparison in comparisons.values()]
    return [
        (
            "Welch, repeats independent (the paper's)",
            sum(is_clearly_lower(sample, lda) for sample, lda in pairs),
            sum(is_clearly_lower(lda, sample) for sample, lda in pairs),
        ),
        (
            "paired, shared rows allowed for, Holm",
            verdicts.count("better"),
            verdicts.count("worse"),
        ),
    ]


def _checked_by_source(tables_by_em: Mapping[str, Table]) -> list[list[Any]]:
    """Check the sentences of the paper in print and here, with each fit of EM.

    Returns a list for every sentence: the sentence checked by each source.
    """
    n_sets = len(BENCHMARKS)
    n_cells = n_sets * len(design.TABLE_MEASURES)
    complete = [table for table in tables_by_em.values() if len(table) == n_cells]
    if len(complete) < 2:
        return []
    sources = [published_table(), *complete]
    by_source = [check_sentences(table) for table in sources]
    return [list(checked) for checked in zip(*by_source, strict=True)]


def _heading(measure: str) -> str:
    """Return the name of a measure in a sentence: error, loss."""
    return PAPER_MEASURES[measure].heading


def _number(value: float, measure: str = "error") -> str:
    """Format a value with the decimals of its measure."""
    return page.with_minus(f"{value:.{PAPER_MEASURES[measure].decimals}f}")


def _furthest(compared: Sequence[Any]) -> list[Any]:
    """Return the cells or points that the paper has too, the furthest from it first."""
    published = [number for number in compared if number.z is not None]
    return sorted(published, key=lambda number: -abs(number.z))


def _em_pairs(errors: Means) -> list[dict[str, Any]]:
    """Return the errors of EM as defined and as published, by data set.

    The latter are those of the EM that repeats the faults or, if that was not run, the
    printed ones.
    """
    pairs = []
    for (dataset, method), defined in errors.items():
        if method != "EMLDA":
            continue
        cell = read_cells().get((dataset, "EMLDA", "error"))
        printed = cell.mean if cell else None
        # Without a run of the faulty EM, what the paper prints stands in for it.
        faulty = errors.get((dataset, design.PUBLISHED_EM), printed)
        if faulty is None:
            continue
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
    """Return the mean of ICLDA minus that of LDA, by data set."""
    return {
        dataset: mean - means[dataset, design.BASELINE]
        for (dataset, method), mean in means.items()
        if method == "ICLDA" and (dataset, design.BASELINE) in means
    }


# Figures.


@page.styled
def draw_toy(seed: int, *, is_narrow: bool = False) -> Figure:
    """Draw true classes and given labels, where clusters are classes or are not.

    A narrow figure has a column for every problem, and its unlabeled rows are a
    picture, since the page has them as shapes in the wide one.
    """
    problems = {
        "Class boundary between the clusters": ("between", make_gaussians),
        "Class boundary across the clusters": ("across", make_violated_gaussians),
    }
    # The method of every panel, and whether colors show the true classes or the labels
    # that it gives.
    panels = {
        "True classes, LDA": ("supervised", True),
        "ICLDA": ("iclda", False),
        "EMLDA": ("em", False),
    }
    if is_narrow:
        size = (page.NARROW_WIDTH, 6.2)
        figure, columns = page.new_figure(*size, len(panels), len(problems))
        grid = columns.T
    else:
        figure, grid = page.new_figure(8.4, 6.0, len(problems), len(panels))
    figure.set_label("True classes of rows, and the labels of ICLDA and EMLDA")
    # A row of the grid for every problem, a column for every method.
    for row, (title, (name, make)) in zip(grid, problems.items(), strict=True):
        X, codes = make(_TOY_ROWS, rng_of(seed, "toy", name))
        y = _keep_first_labels(codes)
        for axes, (panel, (method, is_truth)) in zip(row, panels.items(), strict=True):
            _draw_panel(axes, method, X, y, codes[y == -1] if is_truth else None)
            axes.set_title(panel)
            if is_narrow:
                _draw_dots_as_picture(axes)
        if is_narrow:
            # Above the column, on two lines.
            words = title.replace("boundary ", "boundary\n")
            row[0].set_title(f"{words}\n\n{row[0].get_title(loc='left')}")
        else:
            row[0].set_ylabel(title)
    return figure


def _draw_dots_as_picture(axes: Axes) -> None:
    """Let formats of shapes hold a picture of the unlabeled rows."""
    for dots in axes.collections:
        has_many = np.shape(dots.get_offsets())[0] > _TOY_LABELS_PER_CLASS
        dots.set_rasterized(has_many)


def _draw_panel(
    axes: Axes, method: str, X: Array, y: AnyArray, codes_unlabeled: AnyArray | None
) -> None:
    """Fit a method and draw its boundary, without numbers at the axes.

    Unlabeled rows have the colors of their classes, if these are given, otherwise those
    of the labels that the method gives them.
    """
    classifier = find_method(method).classifier()
    with warnings.catch_warnings():
        # With some seeds a fit may be degenerate, which the figure then shows.
        warnings.simplefilter("ignore")
        classifier.fit(X, y)
    display = DecisionBoundaryDisplay.from_estimator(
        classifier, X, y, legend=False, ax=axes
    )
    if codes_unlabeled is not None:
        colors = mix(np.eye(len(classifier.classes_))[codes_unlabeled])
        display.unlabeled_.set_facecolor(colors)
    axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _keep_first_labels(codes: AnyArray) -> AnyArray:
    """Return the classes of the first rows of each class, -1 for all others."""
    y = np.full(len(codes), -1)
    for code in (0, 1):
        rows = np.flatnonzero(codes == code)
        y[rows[:_TOY_LABELS_PER_CLASS]] = code
    return y


@page.styled
def draw_loss_and_error(
    differences: Mapping[str, Array], *, is_narrow: bool = False
) -> Figure:
    """Draw the error of ICLDA minus that of LDA against the loss, by data set.

    Every dot is a split.
    """
    n_columns = 2 if is_narrow else 5
    n_rows = -(-len(differences) // n_columns)
    width = page.NARROW_WIDTH if is_narrow else 9.4
    figure, grid = page.new_figure(width, 0.5 + 1.9 * n_rows, n_rows, n_columns)
    figure.set_label("Differences of ICLDA from LDA in error and in loss, by split")
    first, *others = grid.flat
    for axes in others:
        axes.sharex(first)
        axes.sharey(first)
    for axes in grid.flat[len(differences) :]:
        axes.axis("off")
    for axes, dataset in zip(grid.flat, differences, strict=False):
        losses, errors = differences[dataset].T
        for line in (axes.axhline, axes.axvline):
            line(0, color=INK, linewidth=0.6)
        axes.plot(
            losses,
            100 * errors,
            linestyle="none",
            marker="o",
            markersize=2.6,
            markeredgewidth=0,
            alpha=0.45,
            color=find_method("iclda").color,
            rasterized=True,
        )
        # In some splits the loss of LDA is a hundred times as large as in others.
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.set_xticks(_LOSS_TICKS, map(page.with_minus, map(str, _LOSS_TICKS)))
        axes.minorticks_off()
        correlation = rank_correlation(differences[dataset])
        axes.set_title(f"{dataset} {page.signed(correlation, 2)}")
    figure.supxlabel("loss of ICLDA minus loss of LDA", fontsize="medium")
    figure.supylabel("error of ICLDA minus error of LDA, points", fontsize="medium")
    return figure


@page.styled
def draw_curves(
    points: Iterable[ReproducedPoint], dataset: str, *, is_narrow: bool = False
) -> Figure:
    """Draw the measures of a data set against the number of unlabeled rows.

    Their panels stand side by side or, in a narrow figure, below each other.
    """
    measures = design.TABLE_MEASURES
    n_panels = len(measures)
    if is_narrow:
        figure, grid = page.new_figure(page.NARROW_WIDTH, 3.0 * n_panels, n_panels)
    else:
        figure, grid = page.new_figure(4.7 * n_panels, 3.3, n_columns=n_panels)
    figure.set_label(
        f"Error and loss on {dataset} against the number of unlabeled rows"
    )
    points = [point for point in points if point.dataset == dataset]
    for axes, (name, measure) in zip(grid.flat, measures.items(), strict=True):
        shown = [point for point in points if point.measure == name]
        _plot_curves(axes, shown)
        axes.set(title=measure.axis, ylabel="")
    return figure


def _plot_curves(axes: Axes, points: Sequence[ReproducedPoint]) -> None:
    """Draw means with bands of one standard error, published means as circles."""
    display = display_points(points, "n_unlabeled", "")
    # The published EM may rise so far that all other lines would lie on each other: the
    # axis is limited by the other methods.
    others = [
        mean for method, mean in display.means.items() if method != design.PUBLISHED_EM
    ]
    if others:
        low = np.min(others)
        high = np.max(others)
        # Above the lines there is room for their names.
        span = high - low
        axes.set_ylim(low - 0.08 * span, high + 0.3 * span)
    display.plot(ax=axes)
    for method, line in display.lines_.items():
        published = [point.published_mean for point in points if point.method == method]
        axes.plot(
            display.sizes[method],
            # None becomes NaN, which is not drawn.
            np.array(published, dtype=float),
            linestyle="none",
            marker="o",
            markersize=3.4,
            markerfacecolor="none",
            markeredgecolor=line.get_color(),
            markeredgewidth=0.8,
        )
