"""Colors, lines and labels that all figures share: one color a method, the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from .._packages import require
from ..methods import FAINT, INK, known_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCORE_NAMES = {"score": "Accuracy", "nll": "Loss"}  # a classifier's own score is its accuracy
# Methods without a color of their own.
_STRANGERS = ("#56b4e9", "#8c6d31", "#e0a100", "#7d6bd6", "#8c1d2f", "#12897f")
_STRANGE_DASHES: tuple[Any, ...] = ("solid", (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)))

# Classes: any two differ by more than 13 in the Lab colors that readers with red, green or blue
# blindness see; the first three differ in lightness too, for readers in gray.
CLASS_COLORS = (
    "#0b5394", "#e8890c", "#12897f", "#8c1d2f", "#c79be8", "#7d6bd6", "#8f7a12", "#e58fae",
)  # fmt: skip
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
CLASS_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
UNDECIDED = "#b8b8b8"  # the color of a row that is as likely of any class
LABEL_SIZE = 8.5
_LONGEST_NAME = 40


def plain_text(name: Any) -> str:
    """A name from the data as it stands: no formula, not hidden from legends, not too long."""
    text = str(name) if str(name).strip() else "(empty)"
    if len(text) > _LONGEST_NAME:
        text = text[: _LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"
    # Matplotlib reads $...$ as a formula, and leaves labels that begin with _ out of legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def class_color(code: int) -> str:
    """The color of a class by its number; colors come again after the eighth."""
    return CLASS_COLORS[code % len(CLASS_COLORS)]


def class_marker(code: int) -> str:
    """The marker of a class by its number."""
    return CLASS_MARKERS[code % len(CLASS_MARKERS)]


def class_dashes(code: int) -> Any:
    """The line style of a class by its number."""
    return CLASS_DASHES[code % len(CLASS_DASHES)]


def mix(shares: Array, colors: Sequence[str] = CLASS_COLORS) -> Array:
    """(..., 3): colors of rows with these shares (..., K) in classes, gray where undecided."""
    excess, gray = excess_of(shares), to_rgb(UNDECIDED)
    pure = np.array([to_rgb(colors[k % len(colors)]) for k in range(excess.shape[-1])])
    return np.clip(gray + excess @ (pure - gray), 0, 1)


def excess_of(shares: Array) -> Array:
    """How far each share exceeds the equal one: 1 for a sure class, 0 for all when undecided."""
    n_classes = np.shape(shares)[-1]
    return np.clip((np.asarray(shares) * n_classes - 1) / (n_classes - 1), 0, 1)


def to_rgb(color: str) -> Array:
    """Red, green and blue of a color like "#1f2328", from 0 to 1."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def color_of(method: str) -> str:
    """The color of a method; gray if it is unknown."""
    known = known_method(method)
    return known.color if known else FAINT


def is_supervised(method: str) -> bool:
    """Whether a method is the supervised one, by its name."""
    known = known_method(method)
    return known is not None and known.paper_name == "LDA"


def readable(score_name: str) -> str:
    """The name of a score as the label of an axis."""
    return _SCORE_NAMES.get(score_name, score_name.replace("_", " ").capitalize())


def method_lines(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Color and line style of every method; strangers get those that are left, in order."""
    names = [str(method) for method in methods]
    taken = {known.color for known in map(known_method, names) if known}
    free = [color for color in _STRANGERS if color not in taken] or list(_STRANGERS)
    styles: dict[str, dict[str, Any]] = {}
    n_strangers = 0
    for name in names:
        if known := known_method(name):
            styles[name] = {"color": known.color, "linestyle": known.dashes}
        else:
            dashes = _STRANGE_DASHES[n_strangers // len(free) % len(_STRANGE_DASHES)]
            styles[name] = {"color": free[n_strangers % len(free)], "linestyle": dashes}
            n_strangers += 1
    return on_ground(styles)


def on_ground(styles: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Ink takes the color of the text of the current style, so that it shows on a dark ground."""
    ink = foreground()
    return {
        name: {**style, "color": ink if style["color"] == INK else style["color"]}
        for name, style in styles.items()
    }


def check_matplotlib() -> None:
    """ImportError before long work whose result could not be drawn."""
    require("matplotlib", "plots", "plots")


def foreground() -> Any:
    """The color of text in the current style of matplotlib."""
    return require("matplotlib", "plots", "plots").rcParams["text.color"]


def background() -> Any:
    """The color behind the data in the current style of matplotlib."""
    color = require("matplotlib", "plots", "plots").rcParams["axes.facecolor"]
    return "white" if color == "none" else color


def axes_for(ax: Axes | None, width: float = 5.0, height: float = 3.8) -> Axes:
    """The axes given, or new ones without frame lines that bound nothing."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
            raise TypeError(
                f"ax must be Axes of matplotlib, as pyplot.subplots() gives them, or None, got "
                f"{ax!r}."
            )
        return ax
    pyplot = require("matplotlib.pyplot", "plots", "plots")
    ax = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def unlabeled_handle(drawn: Any) -> Any:
    """What stands for unlabeled rows in a legend: a gray dot, whatever their colors."""
    if drawn is None:
        return None
    lines = require("matplotlib.lines", "plots", "plots")
    return lines.Line2D(
        [], [], linestyle="none", marker="o", markersize=3.5, color=FAINT, label="unlabeled"
    )


def note(ax: Axes, text: str) -> Any:
    """A remark in the upper right corner, small."""
    box = {"facecolor": background(), "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
    return ax.text(
        0.99, 0.985, text, transform=ax.transAxes, ha="right", va="top", fontsize=7.5, bbox=box
    )


def legend_beside(ax: Axes, handles: Iterable[Any]) -> None:
    """A legend right of the axes, without a frame: it hides no row and leaves room for a title."""
    shown = [handle for handle in handles if handle is not None]
    if shown:
        ax.legend(
            handles=shown,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            frameon=False,
            fontsize=LABEL_SIZE,
            handletextpad=0.5,
            borderaxespad=0.0,
        )


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


def label_ends(
    axes: Axes, ends: Mapping[str, float], colors: Mapping[str, Any], step: float | None = None
) -> list[Any]:
    """Names in their colors right of the axes, next to the ends of their lines.

    ``step`` is the height of one line of text in heights of the axes.
    """
    to_axes = axes.transScale + axes.transLimits
    right = axes.get_xlim()[1]
    heights = [min(max(to_axes.transform((right, y))[1], 0.0), 1.0) for y in ends.values()]
    places = spread(heights, step or _line_of_text(axes))
    return [
        axes.annotate(
            plain_text(name),
            xy=(1, height),
            xytext=(1.06, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colors[name],
            va="center",
            fontsize=LABEL_SIZE,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colors[name],
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )
        for name, height, place in zip(ends, heights, places, strict=True)
    ]


def _line_of_text(axes: Axes) -> float:
    """Height of a line of text in heights of the axes, as large as these are now."""
    points = axes.get_window_extent().height * 72 / axes.figure.dpi
    return 1.3 * LABEL_SIZE / max(points, LABEL_SIZE)
