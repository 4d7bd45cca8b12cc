"""Style, colors and files of the figures of studies."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
_Function = TypeVar("_Function", bound=Callable[..., Any])
_USE, _EXTRA = "figures and reports", "experiments"
_LABEL_STEP = 0.072  # one line of text, in heights of the axes of a curve
_STYLE = Path(__file__).with_name("figures.mplstyle")


def check_can_report() -> None:
    """Raise an ImportError if a package that reports need is missing."""
    _packages.check_installed(("jinja2", "markupsafe", "matplotlib"), _USE, _EXTRA)


def import_for_reports(module: str) -> Any:
    """Import a module; the error of a missing one names the extra to install."""
    return _packages.require(module, _USE, _EXTRA)


@contextmanager
def _house_style() -> Iterator[None]:
    with import_for_reports("matplotlib.style").context(_STYLE, after_reset=True):
        yield


def styled(function: _Function) -> _Function:
    """Decorate a function to run in the style of all figures; settings are restored after it."""
    return _house_style()(function)


def new_figure(width: float, height: float, n_rows: int = 1, n_columns: int = 1) -> Any:
    """Make a figure without a window, and its array of axes, n_rows x n_columns."""
    matplotlib_figure = import_for_reports("matplotlib.figure")
    figure = matplotlib_figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


@styled
def draw_display(display: Any, width: float, height: float) -> Figure:
    """Draw a display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    display.plot(ax=grid[0, 0])
    return figure  # type: ignore[no-any-return]


def paper_color(method: str) -> str:
    """The color of a method by its name in the paper; gray if it is unknown."""
    return COLORS.get(method) or color_of(method)


def label_methods(axes: Axes, ends: dict[str, float]) -> None:
    """Write the names of methods in their colors right of the axes, at the ends of their lines."""
    _look.label_ends(axes, ends, {method: paper_color(method) for method in ends}, _LABEL_STEP)


@styled
def save(figure: Figure, path_without_suffix: Path) -> list[Path]:
    """Write SVG, PNG and PDF files, the same bytes every time; return their paths."""
    path = Path(path_without_suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, varying in {"svg": "Date", "png": "Software", "pdf": "CreationDate"}.items():
        paths.append(path.with_name(f"{path.name}.{kind}"))
        # Files have a white ground, unlike the figures inside a page.
        look: Any = {"metadata": {varying: None}, "facecolor": "white", "dpi": 200}
        with atomic_write(paths[-1]) as unfinished:
            figure.savefig(unfinished, format=kind, **look)
    return paths


@styled
def to_inline_svg(figure: Figure, name: str = "figure", description: str = "") -> Any:
    """Return an <svg> element: text stays text, and ink has the color of the page's text.

    ``name`` keeps the ids of several figures on one page apart.
    """
    buffer = io.StringIO()
    with import_for_reports("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, dpi=200)
    svg = re.sub(r"<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\g<1>#{prefix}-", svg)
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    label = f' role="img" aria-label="{escape(description or name)}"'
    return import_for_reports("markupsafe").Markup(svg.replace("<svg", "<svg" + label, 1))
