"""Tables, figures and report of the paper's experiments, from their stored results."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from ...datasets import BENCHMARKS
from ..measures import paper_measures
from ..page import attributes_csv, fill, save, to_inline_svg, with_minus, write_texts
from ..store import STORE, FitResult, Store
from . import figures as drawn
from . import published, summary
from .plan import KIND, StoredSettings, read_settings

_BEST_GAUSSIAN_ERROR = NormalDist().cdf(-math.sqrt(2 / 0.8))  # means at (1, 1), (-1, -1)
Means = Mapping[tuple[str, str], float]  # by data set and method
Figures = Mapping[str, tuple[Any, str]]  # figures and their descriptions, by name


def draw_everything(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the results of a folder; return a summary as JSON.

    Only the toy figure is fitted.
    """
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        settings = read_settings(store)
        results = [r for name in (published.TABLES, published.CURVES) for r in store.rows(name)]
    own = _own_sets(settings)
    results = [replace(r, dataset=own.get(r.dataset, r.dataset)) for r in results]
    cells, points = summary.summarize_tables(results), summary.summarize_curves(results)
    figures = draw_all_figures(cells, points, settings.seed)
    for name, (figure, _) in figures.items():
        save(figure, out / "figures" / name)
    write_texts(out / "tables", {"cells.csv": attributes_csv(summary.CELL_COLUMNS, cells)})
    write_texts(out / "curves", {"points.csv": attributes_csv(summary.POINT_COLUMNS, points)})
    [path] = write_texts(out, {"report.html": render_report(results, settings, figures)})
    return {
        "report": str(path),
        "cells": [vars(cell) for cell in cells],
        "points": [vars(point) for point in points],
        "incomplete": list(summary.find_gaps(cells).values()),
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": settings.seconds,
    }


def draw_toy_figure(out: Path, seed: int) -> list[Path]:
    """Write the toy figure alone; StoreError if the folder has a report with another seed."""
    if (out / STORE).exists():
        with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
            store.merge_settings(seed=seed)
    return save(drawn.draw_toy(seed), out / "figures" / "toy")


def _own_sets(settings: StoredSettings) -> dict[str, str]:
    """Names to show for the user's own files that have the name of a benchmark.

    Nothing published is compared with these.
    """
    hashes = settings.data.items()
    return {name: f"{name} (own data)" for name, h in hashes if h != BENCHMARKS[name].sha256}


def _shapes(results: Sequence[FitResult], settings: StoredSettings) -> dict[str, list[int]]:
    """Shapes of the sets in the summary."""
    names = {result.dataset for result in results if result.experiment == published.TABLES}
    own = _own_sets(settings)
    shapes = {own.get(name, name): shape for name, shape in settings.shapes.items()}
    return {name: shape for name, shape in shapes.items() if name in names}


def draw_all_figures(
    cells: Sequence[summary.TableCell], points: Sequence[summary.ReproducedPoint], seed: int
) -> Figures:
    """Draw the toy figure, the overview of the tables, and the curves of all data sets."""
    figures = {"toy": (drawn.draw_toy(seed), "Labels that LDA, ICLDA and EMLDA give to rows")}
    if cells:
        description = "Error of each method minus that of LDA, by set"
        figures["tables"] = drawn.draw_table_overview(cells), description
    for dataset in dict.fromkeys(point.dataset for point in points):
        description = f"Error and loss on {dataset} against the number of unlabeled rows"
        figures[_curve_name(dataset)] = drawn.draw_curves(points, dataset), description
    return figures


def _curve_name(dataset: str) -> str:
    return "curve-" + re.sub("[^A-Za-z0-9.-]", "-", dataset)


def render_report(
    results: Sequence[FitResult],
    settings: StoredSettings | None = None,
    figures: Figures | None = None,
) -> str:
    """Return the report as HTML, with all names and messages escaped."""
    settings = settings or StoredSettings()
    cells, points = summary.summarize_tables(results), summary.summarize_curves(results)
    measures = published.table_measures()
    comparisons = {name: summary.compare_with_baseline(results, name) for name in measures}
    errors, losses = (_means(cells, measure) for measure in ("error", "nll"))
    view = {
        "settings": settings,
        "origins": [(f"{name} from", origin) for name, origin in settings.origins.items()],
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
            name: to_inline_svg(figure, name, description)
            for name, (figure, description) in (figures or {}).items()
        },
        "curves": {point.dataset: _curve_name(point.dataset) for point in points},
        "tables": [
            (name, measure, summary.arrange(cells, name))
            for name, measure in measures.items()
            if any(cell.measure == name for cell in cells)
        ],
        "comparisons": comparisons,
        "gaps": summary.find_gaps(cells),
        "datasets": summary.dataset_table(_shapes(results, settings)),
    }
    filters: Any = {"number": _number, "heading": _heading}
    return fill("report.html.j2", view, __package__, results, **filters)


def _heading(measure: str) -> str:
    """Name of a measure in a sentence: error, loss."""
    return paper_measures()[measure].heading


def _number(value: float, measure: str = "error") -> str:
    """A value with the decimals of its measure."""
    return with_minus(f"{value:.{paper_measures()[measure].decimals}f}")


def _means(cells: Sequence[summary.TableCell], measure: str) -> Means:
    return {
        (c.dataset, c.method): c.mean for c in cells if c.measure == measure and c.mean is not None
    }


def _furthest(compared: Sequence[Any]) -> list[Any]:
    """Cells or points that the paper has too, those furthest from it first."""
    return sorted((each for each in compared if each.z is not None), key=lambda e: -abs(e.z))


def _em_pairs(errors: Means) -> list[dict[str, Any]]:
    """Errors of EM as defined and as published (emulated, else as printed), by data set."""
    pairs = []
    for dataset in (name for name, method in errors if method == "EMLDA"):
        cell = published.read_cells().get((dataset, "EMLDA", "error"))
        printed = cell.mean if cell else None
        faulty = errors.get((dataset, published.PUBLISHED_EM), printed)
        if faulty is not None:
            defined = errors[dataset, "EMLDA"]
            lda = errors.get((dataset, published.BASELINE))
            pair = {"dataset": dataset, "defined": defined, "faulty": faulty, "printed": printed}
            pairs.append({**pair, "lda": lda, "fall": faulty - defined})
    return pairs


def _above_lda(means: Means) -> dict[str, float]:
    """By data set, the mean of ICLDA less that of LDA."""
    return {
        name: mean - means[name, published.BASELINE]
        for (name, method), mean in means.items()
        if method == "ICLDA" and (name, published.BASELINE) in means
    }
