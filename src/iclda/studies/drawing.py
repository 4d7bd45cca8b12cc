"""The look of all figures, and how they are written: one color a method, the same every time."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial, wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import _packages
from .._paths import atomic_write
from ..methods import BASELINES, FAINT, INK, METHODS
from ..plots import _look
from ..plots._look import color_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLORS = {method.paper_name: method.color for method in (*METHODS, BASELINES[0])} | {
    "LDAoracle": FAINT,
    "EMLDA-as-published": "#e0a100",
    "sklearn-LabelSpreading": "#8c6d31",
}
DASHES = {method.paper_name: method.dashes for method in (*METHODS, BASELINES[0])} | {
    "LDAoracle": (0, (4, 2)),
    "EMLDA-as-published": (0, (1, 1.2)),
}
P = ParamSpec("P")
T = TypeVar("T")

_USE, _EXTRA = "figures and reports", "experiments"
require = partial(_packages.require, use=_USE, extra=_EXTRA)
_LABEL_STEP = 0.072  # one line of text, in heights of the axes of a curve
_STYLE = Path(__file__).with_name("figures.mplstyle")


def check_can_report() -> None:
    """ImportError before anything is computed, if what is computed could not be shown."""
    _packages.check_installed(("jinja2", "markupsafe", "matplotlib"), _USE, _EXTRA)


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function under the house style, and leave matplotlib's settings as they were."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with require("matplotlib.style").context(_STYLE, after_reset=True):
            return function(*args, **kwargs)

    return run


def new_figure(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> Any:
    """A figure without a window and its array of axes, n_rows x n_columns."""
    figure = require("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


@styled
def draw_display(display: Any, width: float, height: float) -> Figure:
    """A display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    display.plot(ax=grid[0, 0])
    return figure  # type: ignore[no-any-return]


def paper_color(method: str) -> str:
    """The color of a method by its name in the paper; gray if it is unknown."""
    return COLORS.get(method) or color_of(method)


def label_methods(axes: Axes, ends: dict[str, float]) -> None:
    """Names of methods in their colors right of the axes, next to the ends of their lines."""
    _look.label_ends(axes, ends, {method: paper_color(method) for method in ends}, _LABEL_STEP)


@styled
def save(figure: Figure, path_without_suffix: Path) -> list[Path]:
    """Write SVG, PNG and PDF, the same bytes every time; the paths written."""
    path = Path(path_without_suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    varying = {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
    paths = {path.with_name(f"{path.name}.{suffix}"): key for suffix, key in varying.items()}
    for file, key in paths.items():
        kind = file.suffix[1:]
        with atomic_write(file) as unfinished:
            # Files stand on their own: a white ground, unlike the figures inside a page.
            figure.savefig(
                unfinished, format=kind, metadata={key: None}, facecolor="white", dpi=200
            )
    return list(paths)


@styled
def to_inline_svg(figure: Figure, name: str = "figure", description: str = "") -> Any:
    """An <svg> element as markup: text stays text, ink takes the color of the page's text.

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
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(description or name)}"'
    return require("markupsafe").Markup(svg.replace("<svg", "<svg" + label, 1))
