"""From stored results to tables, figures and the report: one self-contained page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from ..._messages import and_list, plural
from ...datasets import BENCHMARKS
from ..drawing import COLORS, save, to_inline_svg
from ..measures import paper_measures
from ..page import fill, with_minus, write_texts
from ..store import STORE, FitResult, Store, other_setting
from . import curves, tables, toy
from .plan import KIND, StoredSettings
from .published import (
    BASELINE,
    CURVES,
    METHOD_NAMES,
    TABLES,
    check_published_underlines,
    published_cells,
    table_measures,
)

_CLEAR = 0.05  # a difference in error that counts without a test
_BEST_GAUSSIAN_ERROR = NormalDist().cdf(-math.sqrt(2 / 0.8))  # means at (1, 1), (-1, -1)
Means = Mapping[tuple[str, str], float]  # by data set and method


def draw_everything(out: Path) -> dict[str, Any]:
    """Write everything that follows from the results of a folder; a summary for programs.

    Only the toy figure is fitted.
    """
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        settings = store.read_settings(StoredSettings)
        results = [result for name in (TABLES, CURVES) for result in store.rows(name)]
    own = _own_sets(settings)
    results = [replace(r, dataset=own.get(r.dataset, r.dataset)) for r in results]
    cells, points = tables.summarize_tables(results), curves.summarize_curves(results)
    panels = toy.toy_panels(settings.seed)
    write_texts(out / "tables", tables.table_files(results, _shapes(results, settings)))
    write_texts(out / "curves", curves.curve_files(points))
    write_figures(out, cells, points, panels)
    page = render_report(results, settings, panels)
    [path] = write_texts(out, {"report.html": page})
    return {
        "report": str(path),
        "cells": [vars(cell) for cell in cells],
        "points": [{name: getattr(p, name) for name in curves.POINT_COLUMNS} for p in points],
        "incomplete": [gap.text for gap in tables.find_gaps(results)],
        "failed_fits": sum(result.failure is not None for result in results),
        "seconds": settings.seconds,
    }


def draw_toy_figure(out: Path, seed: int) -> list[Path]:
    """The toy figure alone; refused where a report with another seed would be contradicted."""
    if (out / STORE).exists():
        with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
            stored = store.settings().get("seed", seed)
        if stored != seed:
            raise other_setting(out, "seed", stored, seed)
    return save(toy.draw_toy(toy.toy_panels(seed)), out / "figures" / "toy")


def _own_sets(settings: StoredSettings) -> dict[str, str]:
    """Files of the user's own under the name of a benchmark, and the names they are shown by.

    Nothing published is compared with these.
    """
    hashes = settings.data.items()
    return {name: f"{name} (own data)" for name, h in hashes if h != BENCHMARKS[name].sha256}


def _shapes(results: Sequence[FitResult], settings: StoredSettings) -> dict[str, list[int]]:
    """Shapes of the sets in the tables."""
    names = {result.dataset for result in results if result.experiment == TABLES}
    own = _own_sets(settings)
    shapes = {own.get(name, name): shape for name, shape in settings.shapes.items()}
    return {name: shape for name, shape in shapes.items() if name in names}


def write_figures(
    out: Path,
    cells: Sequence[tables.TableCell] = (),
    points: Sequence[curves.ReproducedPoint] = (),
    panels: Sequence[toy.ToyPanel] = (),
) -> list[Path]:
    """Every figure there is something to draw for, under ``out``/figures; the paths written."""
    folder, paths = out / "figures", []
    for dataset in dict.fromkeys(point.dataset for point in points):
        paths += save(curves.draw_curves(points, dataset), folder / f"curve-{file_name(dataset)}")
    if cells:
        paths += save(tables.draw_table_overview(cells), folder / "tables")
    if panels:
        paths += save(toy.draw_toy(panels), folder / "toy")
    return paths


def file_name(dataset: str) -> str:
    """A data set's name as part of a file name: no separators, no spaces."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in dataset).strip(".") or "set"


def render_report(
    results: Sequence[FitResult],
    settings: StoredSettings | None = None,
    panels: Sequence[toy.ToyPanel] = (),
) -> str:
    """The page as text. Every name and message in it is escaped."""
    settings = settings or StoredSettings()
    cells, points = tables.summarize_tables(results), curves.summarize_curves(results)
    comparisons = {m: tables.compare_with_baseline(results, m) for m in table_measures()}
    on_curves = [r for r in results if r.experiment == CURVES and r.method in METHOD_NAMES]
    gaps = tables.find_gaps(results)
    errors, losses = (_means(cells, measure) for measure in ("error", "nll"))
    view = {
        "headline": headline(errors),
        "settings": settings,
        "origins": [(f"{name} from", origin) for name, origin in settings.origins.items()],
        "own": sorted(_own_sets(settings)),
        "made_by": sorted({result.versions for result in results if result.versions}),
        "n_left_out": sum(r.failure is not None or r.number("nll") is None for r in on_curves),
        "cells": cells,
        "points": points,
        "far_cells": _furthest(cells),
        "far_points": _furthest(points),
        "best_gaussian_error": _BEST_GAUSSIAN_ERROR,
        "em": _em_pairs(errors),
        "errors": errors,
        "iclda": {"error": _above_lda(errors), "loss": _above_lda(losses)},
        "iclda_verdicts": _verdicts([c for some in comparisons.values() for c in some]),
        "panels": [
            (panel, to_inline_svg(toy.draw_toy_panel(panel), f"toy-{k // 3}-{k % 3}", panel.title))
            for k, panel in enumerate(panels)
        ],
        "toy_titles": toy.ROW_TITLES,
        "curves": _curve_figures(points),
        "overview": _overview(cells),
        "tables": [
            (measure, paper_measures()[measure], tables.arrange(cells, measure))
            for measure in table_measures()
            if any(cell.measure == measure for cell in cells)
        ],
        "comparisons": comparisons,
        "worse": _worse_folds(results),
        "marks": {measure: tables.mark(cells, measure) for measure in table_measures()},
        "verdicts": {
            m: {(c.dataset, c.method): c.verdict for c in some} for m, some in comparisons.items()
        },
        "gaps": gaps,
        "lacking": {(gap.dataset, gap.method): gap.text for gap in gaps},
        "underlines": {
            measure: check_published_underlines(measure)
            for measure in table_measures()
            if any(cell.published_mean is not None for cell in cells)
        },
        "datasets": tables.dataset_table(_shapes(results, settings)),
    }
    filters: Any = {"number": _number, "heading": _heading, "of_all": of_all}
    return fill("report.html.j2", view, __package__, results, **filters)


def _heading(measure: str) -> str:
    """A measure in a sentence: error, loss."""
    return paper_measures()[measure].heading


def _number(value: float, measure: str = "error") -> str:
    """A value with the decimals of its measure."""
    return with_minus(f"{value:.{paper_measures()[measure].decimals}f}")


def of_all(count: int, total: int, noun: str = "data set") -> str:
    """A share as one says it: all 10 data sets, none of 10 data sets, 3 of 10 data sets."""
    if total == 1:
        return f"the one {noun} run" if count else f"none (one {noun} was run)"
    if count == total:
        return f"{'both' if total == 2 else f'all {total}'} {noun}s"
    return f"{count or 'none'} of {total} {noun}s"


def _means(cells: Sequence[tables.TableCell], measure: str) -> Means:
    return {
        (c.dataset, c.method): c.mean for c in cells if c.measure == measure and c.mean is not None
    }


def _furthest(compared: Sequence[Any]) -> list[Any]:
    """Cells or points that the paper has too, those furthest from it first."""
    return sorted((each for each in compared if each.z is not None), key=lambda e: -abs(e.z))


def _em_pairs(errors: Means) -> list[dict[str, Any]]:
    """The error of EM as defined, and as published (emulated, else as printed); by data set."""
    pairs = []
    for dataset in (name for name, method in errors if method == "EMLDA"):
        printed = published_cells().get((dataset, "EMLDA", "error"))
        pair: dict[str, Any] = {
            "dataset": dataset,
            "defined": errors[dataset, "EMLDA"],
            "emulated": errors.get((dataset, "EMLDA-as-published")),
            "printed": printed.mean if printed else None,
            "lda": errors.get((dataset, BASELINE)),
        }
        pair["faulty"] = pair["printed"] if pair["emulated"] is None else pair["emulated"]
        if pair["faulty"] is not None:
            pair["fall"] = pair["faulty"] - pair["defined"]
            for kind in ("faulty", "defined"):
                pair[f"is_{kind}_worse"] = pair["lda"] is not None and pair[kind] > pair["lda"]
            pairs.append(pair)
    return pairs


def headline(errors: Means) -> str:
    """The one sentence on top, from the errors of the tables."""
    pairs = _em_pairs(errors)
    if max((pair["fall"] for pair in pairs), default=0.0) < _CLEAR:
        return "Implicitly constrained semi-supervised LDA, reproduced"
    known = [pair for pair in pairs if pair["lda"] is not None]
    source = "the published EMLDA column comes from two faults in the code"
    worst = [max((p[kind] - p["lda"] for p in known), default=0) for kind in ("defined", "faulty")]
    is_tame = known and 2 * worst[0] < worst[1]
    return f"EM was not erratic: {source}" if is_tame else source[0].upper() + source[1:]


def _above_lda(means: Means) -> dict[str, float]:
    """By data set, the mean of ICLDA less that of LDA."""
    return {
        name: mean - means[name, BASELINE]
        for (name, method), mean in means.items()
        if method == "ICLDA" and (name, BASELINE) in means
    }


def _verdicts(comparisons: Sequence[tables.PairedComparison]) -> str:
    """Significant differences of ICLDA after correction, better and worse, in one sentence."""
    ours = [c for c in comparisons if c.method == "ICLDA"]
    worse = [f"{c.dataset} ({_heading(c.measure)})" for c in ours if c.verdict == "worse"]
    better = {
        measure: sum(c.verdict == "better" for c in ours if c.measure == measure)
        for measure in table_measures()
    }
    gains = and_list([f"{plural(n, 'set')} in {_heading(each)}" for each, n in better.items()])
    losses = f"significantly worse on {and_list(worse)}" if worse else "nowhere significantly worse"
    text = f"Paired by split and corrected, it is {losses}, and significantly better on {gains}."
    return text if ours else ""


def _worse_folds(results: Sequence[FitResult]) -> dict[str, dict[str, tables.WorseFolds]]:
    """By method and measure, on how many folds it is worse than LDA."""
    found: dict[str, dict[str, tables.WorseFolds]] = {}
    for measure in table_measures():
        for counted in tables.count_worse_folds(results, measure):
            found.setdefault(counted.method, {})[measure] = counted
    return found


def _overview(cells: Sequence[tables.TableCell]) -> Any:
    methods = {cell.method for cell in cells}
    if BASELINE not in methods or not methods & (set(COLORS) - {BASELINE}):
        return None
    description = "Error of each method minus that of LDA, by set"
    return to_inline_svg(tables.draw_table_overview(cells), "overview", description)


def _curve_figures(points: Sequence[curves.ReproducedPoint]) -> dict[str, list[Any]]:
    """By data set, a figure of each measure that the tables have too."""
    shown = {(p.dataset, p.measure): p for p in points if p.measure in table_measures()}
    figures: dict[str, list[Any]] = {point.dataset: [] for point in points}
    for dataset, measure in sorted(shown):
        axis = paper_measures()[measure].axis
        svg = to_inline_svg(
            curves.draw_curves(points, dataset, [measure]),
            f"curve-{dataset}-{measure}",
            f"{axis} on {dataset} against the number of unlabeled rows",
        )
        figures[dataset].append(svg)
    return figures
