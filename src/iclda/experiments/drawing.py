"""The look of all figures, and how they are written: one color a method, the same every time."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .requirements import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

INK, FAINT = "#1f2328", "#8b949e"
# Distinct to color-blind readers (after Okabe and Ito), and on white as on near-black.
COLORS = {
    "LDA": INK,
    "LDAoracle": FAINT,
    "MCLDA": "#1f82c9",
    "EMLDA": "#d55e00",
    "EMLDA-as-published": "#e0a100",
    "SLLDA": "#009e73",
    "ICLDA": "#c0509f",
    "SelfTraining": "#56b4e9",
    "LabelSpreading": "#8c6d31",
}
DASHES = {"LDAoracle": (0, (4, 2)), "EMLDA-as-published": (0, (1, 1.2)), "LDA": (0, (6, 1.5))}
_LABEL_STEP = 0.072  # one line of text, in heights of the axes of a curve
_STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "iclda",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function under the house style, and leave matplotlib's settings as they were."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        matplotlib = require("matplotlib")
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
            return function(*args, **kwargs)

    return run


def new_figure(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> Any:
    """A figure without a window and its array of axes, n_rows x n_columns."""
    figure = require("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def color_of(method: str) -> str:
    """The one color of a method; gray for a stranger."""
    return COLORS.get(method, FAINT)


def spread(wanted: list[float], distance: float) -> list[float]:
    """Positions near the wanted ones, in their order, at least ``distance`` apart."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    blocks: list[list[float]] = []  # [sum of wanted positions, number of labels]
    for rank in order:
        blocks.append([wanted[rank], 1])
        while len(blocks) > 1 and _overlap(blocks[-2], blocks[-1], distance):
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    placed = [
        total / count + (i - (count - 1) / 2) * distance
        for total, count in blocks
        for i in range(int(count))
    ]
    positions = [0.0] * len(wanted)
    for rank, position in zip(order, placed, strict=True):
        positions[rank] = position
    return positions


def _overlap(below: list[float], above: list[float], distance: float) -> bool:
    gap = above[0] / above[1] - below[0] / below[1]
    return gap < distance * (below[1] + above[1]) / 2


def label_ends(axes: Axes, ends: dict[str, float]) -> None:
    """Names of methods in their colors right of the axes, next to the ends of their lines."""
    low, high = axes.get_ylim()
    heights = [min(max((y - low) / (high - low), 0.0), 1.0) for y in ends.values()]
    for (method, _), height, place in zip(
        ends.items(), heights, spread(heights, _LABEL_STEP), strict=True
    ):
        axes.annotate(
            method,
            xy=(1, height),
            xytext=(1.06, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=color_of(method),
            va="center",
            fontsize=8.5,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color_of(method),
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


@styled
def save(figure: Figure, path_without_suffix: Path) -> list[Path]:
    """Write SVG, PNG and PDF, the same bytes every time; the paths written."""
    path = Path(path_without_suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Files stand on their own: a white ground, unlike the figures inside a page.
    shared: dict[str, Any] = {"facecolor": "white", "dpi": 200}
    paths = [path.with_name(f"{path.name}.{suffix}") for suffix in ("svg", "png", "pdf")]
    figure.savefig(paths[0], metadata={"Date": None}, **shared)
    figure.savefig(paths[1], metadata={"Software": None}, **shared)
    figure.savefig(paths[2], metadata={"CreationDate": None}, **shared)
    return paths


@styled
def to_inline_svg(figure: Figure, name: str = "figure", description: str = "") -> str:
    """An <svg> element for a page: text stays text, ink takes the color of the page's text.

    ``name`` keeps the ids of several figures on one page apart.
    """
    buffer = io.StringIO()
    with require("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=200)
    svg = re.sub(r"<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\g<1>#{prefix}-", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(description or name)}"'
    return svg.replace("<svg", "<svg" + label, 1)
