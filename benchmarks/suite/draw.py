"""The figure: seconds against unlabeled rows, ours and others', from a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iclda.methods import FAINT, INK
from iclda.plots._look import method_styles, spread
from iclda.studies.page import new_figure, styled

from .given import RSSL_SECONDS
from .rows import Row, median

_PANELS: tuple[tuple[str, str, dict[str, dict[int, float]]], ...] = (
    ("small", "10 features, 20 labels", {"RSSL (given)": RSSL_SECONDS}),
    ("growth", "20 features, 100 labels", {}),
)
_COLORS = {"LDA lsqr": INK, "RSSL (given)": "#d55e00"}
_LABELS = {"LDA lsqr": "LDA lsqr, all labeled"}
# Height of a line of text, in heights of the axes.
_LINE = 0.065


@styled
def draw_scaling(rows: Sequence[Row]) -> Any:
    """Log-log, one panel a series; dotted lines grow in proportion to the rows."""
    figure, grid = new_figure(9.6, 3.9, 1, len(_PANELS))
    panels = []
    for axes, (case, title, given) in zip(grid[0], _PANELS, strict=True):
        measured = lines_of(rows, case)
        panels.append((axes, {**measured, **given} if measured else {}))
        axes.set(xscale="log", yscale="log", title=title, xlabel="Unlabeled rows")
        _plot(axes, panels[-1][1], set(given))
    limits = [axes.get_ylim() for axes, lines in panels if lines]
    for axes, lines in panels:
        axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        if lines:
            _draw_proportion(axes)
            _name_lines(axes, lines)
    grid[0][0].set_ylabel("Seconds a fit")
    return figure


def lines_of(rows: Sequence[Row], case: str) -> dict[str, dict[int, float]]:
    """Median seconds by number of unlabeled rows, of every method of a series."""
    chosen = [row for row in rows if row.case == case and row.seconds]
    lines: dict[str, dict[int, float]] = {}
    for method in dict.fromkeys(row.method for row in chosen):
        ours = [row for row in chosen if row.method == method]
        for n in sorted({row.n_unlabeled for row in ours}):
            middle = median([row for row in ours if row.n_unlabeled == n], "seconds")
            lines.setdefault(method, {})[n] = middle or 0.0
    return lines


def _plot(axes: Any, lines: Mapping[str, Mapping[int, float]], given: set[str]) -> None:
    for method, line in lines.items():
        is_given = method in given
        axes.plot(
            list(line),
            list(line.values()),
            color=_COLORS.get(method) or method_styles([method])[method]["color"],
            linestyle="--" if is_given else "-",
            marker="o",
            markersize=4,
            markerfacecolor="white" if is_given else None,
            linewidth=2.2 if method == "ICLDA" else 1.3,
            zorder=3 if method == "ICLDA" else 2,
        )


def _draw_proportion(axes: Any) -> None:
    """Guides of slope 1, a factor of 100 apart, that leave the limits as they are."""
    limits = axes.get_xlim(), axes.get_ylim()
    (left, right), (low, high) = limits
    for start in np.arange(np.log10(low / right), np.log10(high / left), 2):
        axes.plot(
            [left, right],
            [10**start * left, 10**start * right],
            ":",
            color=FAINT,
            lw=0.5,
        )
    axes.set(xlim=limits[0], ylim=limits[1])


def _name_lines(axes: Any, lines: Mapping[str, Mapping[int, float]]) -> None:
    """Names where lines end: right of the axes where they reach the largest size."""
    low, high = np.log(axes.get_ylim())
    largest = max(max(line) for line in lines.values())
    ends = {method: (max(line), line[max(line)]) for method, line in lines.items()}
    far = [method for method, (n, _) in ends.items() if n == largest]
    heights = [float(np.log(ends[method][1]) - low) / (high - low) for method in far]
    for method, place in zip(far, spread(heights, _LINE), strict=True):
        _name(axes, method, (1, place), "axes fraction", (7, 0), "left")
    for method in [name for name in lines if name not in far]:
        is_point = len(lines[method]) == 1
        offset, side = ((5, 8), "left") if is_point else ((-6, 5), "right")
        _name(axes, method, ends[method], "data", offset, side)


def _name(
    axes: Any,
    method: str,
    place: tuple[float, float],
    coordinates: str,
    offset: tuple[float, float],
    side: str,
) -> None:
    axes.annotate(
        _LABELS.get(method, method),
        xy=place,
        xytext=offset,
        xycoords=coordinates,
        textcoords="offset points",
        color=_COLORS.get(method) or method_styles([method])[method]["color"],
        ha=side,
        va="center",
        fontsize=8,
        annotation_clip=False,
    )


@styled
def write_figure(
    rows: Sequence[Row], folder: Path, suffixes: Sequence[str] = ("svg", "png")
) -> list[Path]:
    """``scaling`` in every format asked for, the same bytes every time.

    None without a series.
    """
    if not any(lines_of(rows, case) for case, _, _ in _PANELS):
        return []
    figure = draw_scaling(rows)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"scaling.{suffix}" for suffix in suffixes]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, metadata=metadata, facecolor="white", dpi=200)
    return paths
