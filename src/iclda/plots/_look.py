"""What displays share: axes, labels, classes of rows, and the color of every method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._core import AnyArray, Array
from .._estimators.labels import UNLABELED, check_lengths, split_marker
from .._system import require
from ..methods import INK, known_method
from ..model_selection._splitters import final_step, marker_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    # matplotlib is imported when something is drawn.
    Axes = Any

# Scores whose name does not say what they are. A classifier's own score is its
# accuracy.
_SCORE_NAMES = {"score": "Accuracy", "nll": "Loss"}
# Colors and dashes of methods that are not in the table of methods.
_OTHER_COLORS = ("#56b4e9", "#8c6d31", "#e0a100", "#7d6bd6", "#8c1d2f", "#12897f")
_OTHER_DASHES: tuple[Any, ...] = ("solid", (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)))

# Any two class colors differ by more than 13 in the Lab colors that readers with red,
# green or blue blindness see; the first three differ in lightness too, for readers in
# gray.
CLASS_COLORS = (
    "#0b5394",
    "#e8890c",
    "#12897f",
    "#8c1d2f",
    "#c79be8",
    "#7d6bd6",
    "#8f7a12",
    "#e58fae",
)
# The color of a row that is equally probable in all classes.
UNDECIDED = "#b8b8b8"
# Font size of labels in points, and the distance of their lines in font sizes.
LABEL_SIZE = 8.5
_LINE_SPACING = 1.3
_POINTS_PER_INCH = 72
# Longer names from the data are cut.
_MAX_NAME_LENGTH = 40


def import_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib or one of its modules.

    The ImportError names the extra to install.
    """
    return require(module, "plots", "plots")


class Display:
    """Base class of the displays: the axes they are drawn in."""

    ax_: Axes
    figure_: Any

    def _open_axes(
        self, ax: Axes | None, width: float = 5.0, height: float = 3.8
    ) -> Axes:
        """Store the axes given, or new ones without the upper and right frame lines."""
        if ax is None:
            pyplot = import_matplotlib("matplotlib.pyplot")
            ax = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
            ax.spines[["top", "right"]].set_visible(False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


def encode_shown(
    estimator: Any, X: Any, y: Any, unlabeled: Any
) -> tuple[AnyArray, AnyArray]:
    """Return the class index of every row, -1 if unlabeled, and the classes.

    The classes are those of a fitted classifier. If y is None, all rows are unlabeled.
    "auto" for ``unlabeled`` is the marker of the classifier.
    """
    check_is_fitted(estimator)
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        raise TypeError(
            f"X is a {type(X).__name__}, which is not read yet: pass the rows, for "
            "example X.collect() of polars, or X.read_all() of pyarrow."
        )
    classes = np.asarray(estimator.classes_)
    codes = np.full(_num_samples(X), UNLABELED)
    if y is None:
        return codes, classes
    check_lengths(X=X, y=y)
    present, is_marker = split_marker(y, marker_of(estimator, unlabeled))
    code_of = {name: code for code, name in enumerate(classes.tolist())}
    given = np.unique(present).tolist()
    unknown = [name for name in given if name not in code_of]
    if unknown:
        raise ValueError(f"y holds {unknown}, and the classes are {list(code_of)}.")
    codes[~is_marker] = [code_of[name] for name in present.tolist()]
    return codes, classes


def by_name(value: Any) -> dict[str, Any]:
    """Return the values of a dict; a single value has the empty name."""
    if not isinstance(value, Mapping):
        return {"": value}
    if not value:
        raise ValueError("There is nothing to draw: the dict is empty.")
    return dict(value)


def estimators_by_name(value: Any) -> dict[str, Any]:
    """Return estimators by name.

    A single one has the name of its class, or of the class of its last step.
    """
    if isinstance(value, Mapping):
        return by_name(value)
    final, _ = final_step(value)
    return {type(final).__name__: value}


def plain_text(name: Any) -> str:
    """Return a name from the data as figures show it literally, and not too long."""
    text = str(name) if str(name).strip() else "(empty)"
    if len(text) > _MAX_NAME_LENGTH:
        text = text[: _MAX_NAME_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    if text.startswith("_"):
        # Matplotlib would leave the label out of legends.
        text = " " + text
    # Matplotlib reads $...$ as a formula.
    return text.replace("$", r"\$")


def readable(score_name: str) -> str:
    """Return the name of a score as the label of an axis."""
    words = score_name.replace("_", " ")
    return _SCORE_NAMES.get(score_name, words[:1].upper() + words[1:])


def class_color(code: int) -> str:
    """Return the color of a class by its index; colors repeat after the eighth."""
    return CLASS_COLORS[code % len(CLASS_COLORS)]


def to_rgb(color: str) -> Array:
    """Return red, green and blue, from 0 to 1, of a color like "#1f2328"."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def excess_of(shares: Array) -> Array:
    """Return how far each share exceeds 1 / K.

    The excess is 1 for a certain class and 0 for equal shares.
    """
    n_classes = np.shape(shares)[-1]
    excess = (np.asarray(shares) * n_classes - 1) / (n_classes - 1)
    return np.clip(excess, 0, 1)


def mix(shares: Array, colors: Sequence[str] = CLASS_COLORS) -> Array:
    """Return colors (..., 3) of rows with shares (..., K); equal shares are gray."""
    excess = excess_of(shares)
    n_classes = excess.shape[-1]
    pure = np.array([to_rgb(colors[k % len(colors)]) for k in range(n_classes)])
    gray = to_rgb(UNDECIDED)
    # A row moves from gray toward the color of every class, as far as its share exceeds
    # that of a row without a class.
    mixed = gray + excess @ (pure - gray)
    return np.clip(mixed, 0, 1)


def is_supervised(method: str) -> bool:
    """Return whether a method is the supervised one, by its name."""
    known = known_method(method)
    return known is not None and known.paper_name == "LDA"


def method_styles(
    methods: Iterable[str], colors: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Return color and line style by method.

    ``colors`` are those of some methods, whose lines are solid. Of the others, methods
    that are not in the table get colors that no other method has, in order.
    """
    names = [str(method) for method in methods]
    known_methods = [known_method(name) for name in names]
    taken = {known.color for known in known_methods if known}
    free = [color for color in _OTHER_COLORS if color not in taken]
    if not free:
        free = list(_OTHER_COLORS)
    # All free colors with the first dashes, then with the next ones.
    others = ((color, dashes) for dashes in cycle(_OTHER_DASHES) for color in free)
    styles: dict[str, dict[str, Any]] = {}
    for name, known in zip(names, known_methods, strict=True):
        if known:
            color = known.color
            dashes = known.dashes
        else:
            color, dashes = next(others)
        if color == INK:
            # Ink has the color of text, so that it is visible on a dark background.
            color = foreground()
        styles[name] = {"color": color, "linestyle": dashes}
    for name in names:
        if colors and name in colors:
            styles[name] = {"color": colors[name], "linestyle": "solid"}
    return styles


def foreground() -> Any:
    """Return the color of text in the current style of matplotlib."""
    return import_matplotlib().rcParams["text.color"]


def background() -> Any:
    """Return the color behind the data in the current style of matplotlib."""
    color = import_matplotlib().rcParams["axes.facecolor"]
    return "white" if color == "none" else color


def legend_beside(ax: Axes, handles: Iterable[Any]) -> None:
    """Draw a legend right of the axes, without a frame.

    There it hides no row, and leaves room above the axes.
    """
    shown = list(handles)
    if not shown:
        return
    ax.legend(
        handles=shown,
        frameon=False,
        handletextpad=0.5,
        borderaxespad=0.0,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=LABEL_SIZE,
    )


def write_beside(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a text beside the axes.

    ``x`` is in widths of the axes, ``y`` in units of the data.
    """
    style = {"va": "center", "fontsize": LABEL_SIZE, "annotation_clip": False, **style}
    ax.annotate(text, xy=(x, y), xycoords=("axes fraction", "data"), **style)


def spread(wanted: Sequence[float], distance: float) -> list[float]:
    """Return the positions closest to the wanted ones that are ``distance`` apart.

    They keep the order of the wanted ones.
    """
    order = np.argsort(wanted, kind="stable")
    ascending = np.asarray(wanted)[order]
    # Positions are far enough apart if they do not decrease after subtracting these
    # steps.
    steps = distance * np.arange(len(wanted))
    nearest = isotonic_regression(ascending - steps).x + steps
    positions = np.empty(len(wanted))
    positions[order] = nearest
    return positions.tolist()


def label_ends(
    axes: Axes, ends: Mapping[str, float], colors: Mapping[str, Any]
) -> list[Any]:
    """Write names in their colors right of the axes, at the ends of their lines."""
    # Where the lines end, in heights of the axes: lines may leave the axes.
    to_axes = axes.transScale + axes.transLimits
    right = axes.get_xlim()[1]
    line_heights = [to_axes.transform((right, y))[1] for y in ends.values()]
    line_heights = [min(max(height, 0.0), 1.0) for height in line_heights]
    # The distance of two lines of text, in heights of the axes.
    axes_points = axes.get_window_extent().height * _POINTS_PER_INCH / axes.figure.dpi
    distance = _LINE_SPACING * LABEL_SIZE / max(axes_points, LABEL_SIZE)
    text_heights = spread(line_heights, distance)
    labels = []
    # A thin line joins the end of a line with its name, which may be higher or lower.
    for name, from_y, to_y in zip(ends, line_heights, text_heights, strict=True):
        connection = {
            "arrowstyle": "-",
            "linewidth": 0.5,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 0,
            "color": colors[name],
        }
        label = axes.annotate(
            plain_text(name),
            xy=(1, from_y),
            xytext=(1.06, to_y),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=LABEL_SIZE,
            annotation_clip=False,
            color=colors[name],
            arrowprops=connection,
        )
        labels.append(label)
    return labels
