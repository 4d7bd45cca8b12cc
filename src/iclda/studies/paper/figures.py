"""The figures: learning curves, the tables at a glance, and the toy problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cells import MEASURES
from ..drawing import (
    COLORS,
    DASHES,
    FAINT,
    INK,
    color_of,
    label_ends,
    new_figure,
    save,
    styled,
    to_inline_svg,
)
from .curves import Point
from .published import PublishedPoint, published_name
from .significance import BASELINE, ORACLE
from .tables import TableCell, names_of
from .toy_panels import ToyPanel, draw_toy, draw_toy_panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLORS",
    "ToyPanel",
    "draw_curves",
    "draw_table_overview",
    "draw_toy",
    "draw_toy_panel",
    "save",
    "to_inline_svg",
    "write_figures",
]

_AXIS_LABELS = {"error": "Error", "nll": "Loss", "nll_labeled": "Loss on the labeled rows"}
_FAR = 1.5  # a line this many ranges of the others above them is named, not drawn


@styled
def draw_curves(
    points: Iterable[Point],
    published: Iterable[PublishedPoint],
    dataset: str,
    measures: Sequence[str] = MEASURES,
) -> Figure:
    """Measures of one data set side by side, against the number of unlabeled rows."""
    figure, grid = new_figure(4.7 * len(measures), 3.3, 1, len(measures))
    ours = [point for point in points if point.dataset == dataset]
    theirs = [point for point in published if point.dataset == dataset]
    for axes, measure in zip(grid[0], measures, strict=True):
        _plot_curves(
            axes,
            [point for point in ours if point.measure == measure],
            [point for point in theirs if point.measure == measure],
        )
        axes.set_title(_AXIS_LABELS.get(measure, measure))
        axes.set_xlabel("Unlabeled rows")
    return figure


def _plot_curves(axes: Axes, ours: list[Point], theirs: list[PublishedPoint]) -> None:
    lines = {method: [p for p in ours if p.method == method] for method in _methods(ours)}
    _set_sizes(axes, sorted({point.n_unlabeled for point in ours}))
    far = _far_above(lines)
    for method, line in lines.items():
        if method not in far:
            _plot_line(axes, method, line)
            counterpart = [p for p in theirs if p.method == published_name(method)]
            _plot_published(axes, method, counterpart)
    if not lines:
        return
    axes.margins(y=0.08)
    label_ends(axes, {m: line[-1].mean for m, line in lines.items() if m not in far})
    notes = [_far_note(method, lines[method]) for method in far]
    for place, (method, note) in enumerate(zip(far, notes, strict=True)):
        axes.text(
            0.99,
            0.985 - 0.075 * place,
            note,
            color=color_of(method),
            transform=axes.transAxes,
            ha="right",
            va="top",
            fontsize=8.5,
        )


def _methods(ours: list[Point]) -> list[str]:
    return list(dict.fromkeys(point.method for point in ours))


def _set_sizes(axes: Axes, sizes: list[int]) -> None:
    """Ticks at the sizes drawn, every other one where they are many."""
    axes.set_xscale("log", base=2)
    shown = sizes[:: 2 if len(sizes) > 8 else 1]
    axes.set_xticks(shown, [str(size) for size in shown])
    axes.set_xticks([], minor=True)
    axes.margins(x=0.03)


def _far_above(lines: dict[str, list[Point]]) -> list[str]:
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


def _far_note(method: str, line: list[Point]) -> str:
    means = [point.mean for point in line]
    return f"\N{UPWARDS ARROW} {method} lies above: {min(means):.3g} to {max(means):.3g}"


def _plot_line(axes: Axes, method: str, line: list[Point]) -> None:
    sizes = [point.n_unlabeled for point in line]
    means = np.array([point.mean for point in line])
    errors = np.array([point.se or 0.0 for point in line])
    color = color_of(method)
    width = 2.2 if method == "ICLDA" else 1.4
    style: Any = DASHES.get(method, "solid")
    axes.fill_between(sizes, means - errors, means + errors, color=color, alpha=0.18, linewidth=0)
    axes.plot(sizes, means, color=color, linestyle=style, linewidth=width)


def _plot_published(axes: Axes, method: str, line: list[PublishedPoint]) -> None:
    axes.plot(
        [point.n_unlabeled for point in line],
        [point.mean for point in line],
        linestyle="none",
        marker="o",
        markersize=3.4,
        markerfacecolor="none",
        markeredgecolor=color_of(method),
        markeredgewidth=0.8,
    )


@styled
def draw_table_overview(cells: Sequence[TableCell], measure: str = "error") -> Figure:
    """For each data set, how far each method lies from LDA: left is better."""
    datasets, methods = names_of(cells, measure)
    means = {(c.dataset, c.method): c.mean for c in cells if c.measure == measure}
    shown = [method for method in methods if method != BASELINE]
    figure, grid = new_figure(5.0, 1.1 + 0.36 * max(len(datasets), 1))
    axes = grid[0, 0]
    axes.axvline(0, color=INK, linewidth=0.8)
    for rank, method in enumerate(shown):
        shift = 0.5 * (rank / max(len(shown) - 1, 1) - 0.5)  # equal dots do not hide each other
        pairs = [
            (place + shift, means.get((name, method)), means.get((name, BASELINE)))
            for place, name in enumerate(datasets)
        ]
        known = [(p, a - b) for p, a, b in pairs if a is not None and b is not None]
        _plot_dots(axes, method, [place for place, _ in known], [gap for _, gap in known])
    axes.set_yticks(range(len(datasets)), datasets)
    axes.set_ylim(max(len(datasets), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"{_AXIS_LABELS[measure]} minus that of LDA  "
        "(\N{LEFTWARDS ARROW} better, worse \N{RIGHTWARDS ARROW})"
    )
    if shown:
        figure.legend(
            loc="outside upper left", ncols=3, frameon=False, handletextpad=0.2, fontsize=8.5
        )
    return figure


def _plot_dots(axes: Axes, method: str, places: list[float], gaps: list[float]) -> None:
    is_reference = method == ORACLE
    axes.plot(
        gaps,
        places,
        linestyle="none",
        marker="|" if is_reference else "o",
        markersize=8 if is_reference else 5,
        markeredgewidth=1.6 if is_reference else 1.2,
        markeredgecolor=color_of(method),
        markerfacecolor="none" if method == "EMLDA-as-published" else color_of(method),
        label=method,
        zorder=3 if method == "ICLDA" else 2,
    )


def write_figures(
    out: Path,
    cells: Sequence[TableCell] = (),
    points: Sequence[Point] = (),
    published: Sequence[PublishedPoint] = (),
    toy: Sequence[ToyPanel] = (),
) -> list[Path]:
    """Every figure there is something to draw for, under ``out``/figures; the paths written."""
    folder, paths = out / "figures", []
    for dataset in dict.fromkeys(point.dataset for point in points):
        figure = draw_curves(points, published, dataset)
        paths += save(figure, folder / f"curve-{file_name(dataset)}")
    if cells:
        paths += save(draw_table_overview(cells), folder / "tables")
    if toy:
        paths += save(draw_toy(toy), folder / "toy")
    return paths


def file_name(dataset: str) -> str:
    """A data set's name as part of a file name: no separators, no spaces."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in dataset).strip(".") or "set"
