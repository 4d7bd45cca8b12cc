"""Tables, figures and report of the paper's experiments, from their stored results."""

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
from .. import page, paper, rng_of
from ..measures import paper_measures
from ..store import STORE, FitResult, Store
from . import summary
from .summary import ReproducedPoint, TableCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOY_ROWS, _TOY_LABELS_OF_CLASS = 1000, 5
_BEST_GAUSSIAN_ERROR = NormalDist().cdf(
    -math.sqrt(2 / 0.8)
)  # means at (1, 1), (-1, -1)
Means = Mapping[tuple[str, str], float]  # by data set and method


def draw_everything(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the results of a folder; return a summary as JSON.

    Only the toy figure is fitted.
    """
    with closing(Store(out / STORE, kind=paper.KIND, read_only=True)) as store:
        settings = paper.read_settings(store)
        results = [r for name in (paper.TABLES, paper.CURVES) for r in store.rows(name)]
    own = _own_sets(settings)
    results = [replace(r, dataset=own.get(r.dataset, r.dataset)) for r in results]
    shapes = {own.get(name, name): shape for name, shape in settings.shapes.items()}
    settings = replace(settings, shapes=shapes)
    cells, points = summary.summarize_tables(results), summary.summarize_curves(results)
    figures = draw_all_figures(points, settings.seed)
    for name, figure in figures.items():
        page.save(figure, out / "figures" / name)
    page.write_texts(out / "tables", {"cells.csv": page.records_csv(TableCell, cells)})
    page.write_texts(
        out / "curves", {"points.csv": page.records_csv(ReproducedPoint, points)}
    )
    [path] = page.write_texts(
        out, {"report.html": render_report(results, settings, figures)}
    )
    return {
        "report": str(path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": list(summary.find_gaps(cells).values()),
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": settings.seconds,
    }


def _own_sets(settings: paper.StoredSettings) -> dict[str, str]:
    """Names to show for the user's own files that have the name of a benchmark.

    Nothing published is compared with these.
    """
    hashes = settings.data.items()
    return {
        name: f"{name} (own data)" for name, h in hashes if h != BENCHMARKS[name].sha256
    }


def draw_all_figures(points: Sequence[ReproducedPoint], seed: int) -> dict[str, Figure]:
    """Draw the toy figure and the curves of all data sets."""
    datasets = dict.fromkeys(point.dataset for point in points)
    return {"toy": draw_toy(seed)} | {
        _curve_name(d): draw_curves(points, d) for d in datasets
    }


def _curve_name(dataset: str) -> str:
    return "curve-" + re.sub("[^A-Za-z0-9.-]", "-", dataset)


def render_report(
    results: Sequence[FitResult],
    settings: paper.StoredSettings | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> str:
    """Return the report as HTML, with all names and messages escaped."""
    settings = settings or paper.StoredSettings()
    cells, points = summary.summarize_tables(results), summary.summarize_curves(results)
    measures = paper.table_measures()
    comparisons = {
        name: summary.compare_with_baseline(results, name) for name in measures
    }
    errors, losses = (_means(cells, measure) for measure in ("error", "nll"))
    view = {
        "settings": settings,
        "origins": [
            (f"{name} from", origin) for name, origin in settings.origins.items()
        ],
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
            name: page.to_inline_svg(figure, name)
            for name, figure in (figures or {}).items()
        },
        "curves": {point.dataset: _curve_name(point.dataset) for point in points},
        "tables": [
            (name, measure, summary.arrange(cells, name))
            for name, measure in measures.items()
            if any(cell.measure == name for cell in cells)
        ],
        "comparisons": comparisons,
        "gaps": summary.find_gaps(cells),
        "datasets": summary.dataset_table(
            {
                c.dataset: settings.shapes[c.dataset]
                for c in cells
                if c.dataset in settings.shapes
            }
        ),
    }
    filters: Any = {"number": _number, "heading": _heading}
    return page.fill("report.html.j2", view, __package__, results, **filters)


def _heading(measure: str) -> str:
    """Name of a measure in a sentence: error, loss."""
    return paper_measures()[measure].heading


def _number(value: float, measure: str = "error") -> str:
    """A value with the decimals of its measure."""
    return page.with_minus(f"{value:.{paper_measures()[measure].decimals}f}")


def _means(cells: Sequence[TableCell], measure: str) -> Means:
    return {
        (c.dataset, c.method): c.mean
        for c in cells
        if c.measure == measure and c.mean is not None
    }


def _furthest(compared: Sequence[Any]) -> list[Any]:
    """Cells or points that the paper has too, those furthest from it first."""
    return sorted(
        (each for each in compared if each.z is not None), key=lambda e: -abs(e.z)
    )


def _em_pairs(errors: Means) -> list[dict[str, Any]]:
    """Errors of EM as defined and as published (emulated, else as printed), by data set."""
    pairs = []
    for dataset in (name for name, method in errors if method == "EMLDA"):
        cell = paper.read_cells().get((dataset, "EMLDA", "error"))
        printed = cell.mean if cell else None
        faulty = errors.get((dataset, paper.PUBLISHED_EM), printed)
        if faulty is not None:
            defined = errors[dataset, "EMLDA"]
            lda = errors.get((dataset, paper.BASELINE))
            pair = {
                "dataset": dataset,
                "defined": defined,
                "faulty": faulty,
                "printed": printed,
            }
            pairs.append({**pair, "lda": lda, "fall": faulty - defined})
    return pairs


def _above_lda(means: Means) -> dict[str, float]:
    """By data set, the mean of ICLDA less that of LDA."""
    return {
        name: mean - means[name, paper.BASELINE]
        for (name, method), mean in means.items()
        if method == "ICLDA" and (name, paper.BASELINE) in means
    }


# Figures.


@page.styled
def draw_toy(seed: int) -> Figure:
    """Draw the toy figure: labels that LDA, ICLDA and EM give, on rows that help or mislead."""
    toys = {
        "Class boundary between the clusters": ("between", make_gaussians),
        "Class boundary across the clusters": ("across", make_violated_gaussians),
    }
    panels = {
        "Labels and LDA": ("supervised", None),
        "ICLDA": ("iclda", "auto"),
        "EMLDA": ("em", "auto"),
    }
    figure, grid = page.new_figure(8.4, 6.0, len(toys), len(panels))
    figure.set_label("Labels that LDA, ICLDA and EMLDA give to rows")
    for row, (title, (name, make)) in zip(grid, toys.items(), strict=True):
        X, codes = make(_TOY_ROWS, rng_of(seed, "toy", name))
        y = _keep_first_labels(codes)
        for axes, (panel, (method, shares)) in zip(row, panels.items(), strict=True):
            classifier = find_method(method).classifier()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(X, y)
            options: Any = {"responsibilities": shares, "legend": False, "ax": axes}
            DecisionBoundaryDisplay.from_estimator(classifier, X, y, **options)
            axes.set(title=panel, xlabel="", ylabel="", xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(title)
    return figure


def _keep_first_labels(codes: AnyArray) -> AnyArray:
    """Return the classes of five rows of each class, -1 for all others."""
    y = np.full(len(codes), -1)
    for code in (0, 1):
        y[np.flatnonzero(codes == code)[:_TOY_LABELS_OF_CLASS]] = code
    return y


@page.styled
def draw_curves(points: Iterable[ReproducedPoint], dataset: str) -> Figure:
    """Draw the measures of one data set side by side, against the number of unlabeled rows."""
    measures = paper.table_measures()
    figure, grid = page.new_figure(4.7 * len(measures), 3.3, 1, len(measures))
    figure.set_label(
        f"Error and loss on {dataset} against the number of unlabeled rows"
    )
    ours = [point for point in points if point.dataset == dataset]
    for axes, (name, measure) in zip(grid[0], measures.items(), strict=True):
        _plot_curves(axes, [point for point in ours if point.measure == name])
        axes.set(title=measure.axis, ylabel="")
    return figure


def _plot_curves(axes: Axes, ours: Sequence[ReproducedPoint]) -> None:
    """Draw means with a band of one standard error, and published means as open circles."""
    display = display_points(ours, "n_unlabeled", "")
    # The faults of the published EM may take it so far up that the others would be one line.
    others = [
        mean for method, mean in display.means.items() if method != paper.PUBLISHED_EM
    ]
    if others:
        low, high = np.min(others), np.max(others)
        axes.set_ylim(low - 0.08 * (high - low), high + 0.3 * (high - low))
    display.plot(ax=axes)
    circles: Any = {"linestyle": "none", "marker": "o", "markersize": 3.4}
    circles |= {"markerfacecolor": "none", "markeredgewidth": 0.8}
    for method, line in display.lines_.items():
        published = [p.published_mean for p in ours if p.method == method]
        means = np.array(published, dtype=float)  # NaN for None
        axes.plot(
            display.sizes[method], means, markeredgecolor=line.get_color(), **circles
        )
