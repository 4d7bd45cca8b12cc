"""Displays of scores: learning curves, differences of methods, and reliability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from .._core import AnyArray, Array
from .._estimators.labels import UNLABELED
from .._statistics import ReliabilityCurve, bin_sums
from ..methods import FAINT
from ..model_selection._splitters import check_count
from . import _look
from ._look import Axes, Display, plain_text

_ROW_NAMES = {"n_unlabeled": "Unlabeled rows", "n_labeled": "Labeled rows"}
# A logarithmic axis is drawn if sizes span at least this factor.
_MIN_LOG_SPAN = 8
# At most this many sizes are written at the axis.
_MAX_TICKS = 8
# If a method has more differences than this, they are not drawn one by one ...
_MAX_DOTS = 300
# ... nor if they have only this many distinct values: their dots would coincide.
_MAX_COINCIDENT_VALUES = 3
# Distance of the outermost dots from the line of their method.
_DOT_SPREAD = 0.16
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_PREDICTED_CLASS = "the predicted class"


def shows_dots(values: Array) -> bool:
    """Return whether single differences can be told apart, and so are drawn."""
    has_too_many = len(values) > _MAX_DOTS
    would_coincide = len(np.unique(values)) <= _MAX_COINCIDENT_VALUES
    return not has_too_many and not would_coincide


@dataclass(kw_only=True, eq=False, repr=False)
class LearningCurveDisplay(Display):
    """Mean score of one or several classifiers against the number of rows.

    Bands are one standard error to either side. Make a display by ``from_curve``;
    ``plot`` draws it again.

    Parameters
    ----------
    sizes : dict of ndarray
        Numbers of rows, by classifier.
    means : dict of ndarray
        Mean scores there, by classifier.
    standard_errors : dict of ndarray, default=None
        Standard errors of the means, by classifier; None or NaN draws no band.
    varied : str, default="n_unlabeled"
        What the sizes count: "n_unlabeled", "n_labeled", or the label of the axis.
    score_name : str, default="score"
        What the scores are.
    colors : dict, default=None
        Colors by classifier, in place of those that classifiers have in all plots.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : dict of matplotlib Line2D
        Means, by classifier.
    bands_ : dict of matplotlib FillBetweenPolyCollection
        Standard errors, by classifier.
    labels_ : list of matplotlib Annotation
        Names beside the ends of the lines.
    """

    sizes: Mapping[str, AnyArray]
    means: Mapping[str, Array]
    standard_errors: Mapping[str, Array] | None = None
    varied: str = "n_unlabeled"
    score_name: str = "score"
    colors: Mapping[str, Any] | None = None

    @classmethod
    def from_curve(
        cls,
        curve: Any,
        *,
        as_error: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what ``iclda.model_selection.semi_supervised_learning_curve`` returned.

        Parameters
        ----------
        curve : LearningCurve or dict of LearningCurve
            One curve, or one for each name.
        as_error : bool, default=False
            Whether to draw 1 minus the score.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : LearningCurveDisplay
            Object that stores what was drawn.
        """
        curves = _look.by_name(curve)
        kinds = {(each.varied, each.score_name) for each in curves.values()}
        if len(kinds) > 1:
            raise ValueError(
                "Curves must show one score against one kind of rows, got "
                f"{sorted(kinds)}."
            )
        ((varied, score_name),) = kinds
        means = {name: each.mean for name, each in curves.items()}
        if as_error:
            means = {name: 1 - mean for name, mean in means.items()}
            score_name = "error"
        display = cls(
            sizes={name: each.sizes for name, each in curves.items()},
            means=means,
            standard_errors={
                name: each.standard_error for name, each in curves.items()
            },
            varied=varied,
            score_name=score_name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : LearningCurveDisplay
            Object that stores what was drawn.
        """
        ax = self._open_axes(ax)
        self.lines_: dict[str, Any] = {}
        self.bands_: dict[str, Any] = {}
        self.labels_: list[Any] = []
        styles = _look.method_styles(self.means, self.colors)
        for name, mean in self.means.items():
            style = {"linewidth": 1.7, **styles[str(name)], **kwargs}
            self._draw_band(name, style["color"])
            # A single curve has the empty name.
            label = plain_text(name) if name else None
            [line] = ax.plot(self.sizes[name], mean, label=label, **style)
            self.lines_[name] = line
        all_sizes = np.concatenate(list(self.sizes.values()))
        _set_sizes(ax, np.unique(all_sizes))
        ax.set_xlabel(_ROW_NAMES.get(self.varied, self.varied))
        ax.set_ylabel(_look.readable(self.score_name))
        self._label_lines()
        return self

    def _draw_band(self, name: str, color: Any) -> None:
        error = None if self.standard_errors is None else self.standard_errors[name]
        if error is None or not np.isfinite(error).any():
            return
        mean = self.means[name]
        # The reference is often flat, and its band would cover all others.
        alpha = 0.07 if _look.is_supervised(str(name)) else 0.13
        self.bands_[name] = self.ax_.fill_between(
            self.sizes[name],
            mean - error,
            mean + error,
            color=color,
            alpha=alpha,
            linewidth=0,
        )

    def _label_lines(self) -> None:
        """Write the names of the curves beside the ends of their lines."""
        # Means of the last sizes that have one.
        ends = {}
        for name, mean in self.means.items():
            if not str(name):
                continue
            finite = mean[np.isfinite(mean)].tolist()
            ends[str(name)] = finite[-1] if finite else 0.0
        if ends:
            colors = {str(name): line.get_color() for name, line in self.lines_.items()}
            self.labels_ = _look.label_ends(self.ax_, ends, colors)


def display_points(
    points: Iterable[Any],
    varied: str,
    score_name: str,
    colors: Mapping[str, Any] | None = None,
) -> LearningCurveDisplay:
    """Return a display of points, one line for each method.

    A point has the attributes ``method``, ``mean``, ``se``, which is the standard error
    of the mean, and its size under the name ``varied``. ``colors`` are those of some
    methods.
    """
    points_of_lines: dict[str, list[Any]] = {}
    for point in points:
        points_of_lines.setdefault(point.method, []).append(point)

    def values(attribute: str, dtype: type) -> dict[str, AnyArray]:
        # None becomes NaN in an array of floats.
        return {
            name: np.array([getattr(point, attribute) for point in line], dtype)
            for name, line in points_of_lines.items()
        }

    return LearningCurveDisplay(
        sizes=values(varied, int),
        means=values("mean", float),
        standard_errors=values("se", float),
        varied=varied,
        score_name=score_name,
        colors=colors,
    )


def _set_sizes(ax: Axes, sizes: AnyArray) -> None:
    """Set ticks at the sizes, with a logarithmic axis if they span a large factor."""
    positive = sizes[sizes > 0]
    if len(positive) > 1 and positive.max() >= _MIN_LOG_SPAN * positive.min():
        if sizes.min() <= 0:
            # Linear from 0 to the smallest size above it.
            ax.set_xscale("symlog", base=2, linthresh=float(positive.min()))
        else:
            ax.set_xscale("log", base=2)
        ax.set_xticks([], minor=True)

    # Of many sizes every second, third, ... one is written.
    step = math.ceil(len(sizes) / _MAX_TICKS)
    shown = sizes[::step]
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.margins(x=0.03)


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Mean paired differences of methods to a baseline, one line for each method.

    The dot is the mean difference, the bar its confidence interval, and the faint dots
    are the single differences. The count on the right is the number of repeats in which
    the method was worse than the baseline.

    ``figures()`` of what ``iclda.compare`` returns draws one.

    Parameters
    ----------
    differences : dict of ndarray
        Scores less those of the baseline in the same repeat, by method.
    intervals : dict of tuple
        Ends of the confidence interval of the mean difference, by method.
    baseline : str
        Name of the baseline.
    score_name : str, default="score"
        What the scores are.
    greater_is_better : bool, default=True
        Whether larger scores are better.
    colors : dict, default=None
        Colors by method, in place of those that methods have in all plots.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    methods_ : list of str
        Methods from top to bottom: the best mean difference first.
    """

    differences: Mapping[str, Array]
    intervals: Mapping[str, tuple[float, float]]
    baseline: str
    score_name: str = "score"
    greater_is_better: bool = True
    colors: Mapping[str, Any] | None = None

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``Axes.plot`` for the dots of the means.

        Returns
        -------
        display : ComparisonDisplay
            Object that stores what was drawn.
        """
        means = {
            name: float(np.mean(values)) for name, values in self.differences.items()
        }
        self.methods_ = sorted(
            means, key=means.__getitem__, reverse=self.greater_is_better
        )
        # In inches: room for the axis and its label, and for a line of each method.
        ax = self._open_axes(ax, width=5.6, height=1.1 + 0.5 * len(means))
        ax.axvline(0, color=_look.foreground(), linewidth=0.8, zorder=1)
        styles = _look.method_styles(self.methods_, self.colors)
        for height, name in enumerate(self.methods_):
            color = styles[name]["color"]
            self._draw_dots(height, np.asarray(self.differences[name]))
            self._draw_interval(height, name, color)
            self._draw_mean(height, name, means[name], {"color": color, **kwargs})
        self._label_axes()
        return self

    def _draw_interval(self, height: int, name: str, color: Any) -> None:
        ends = self.intervals[name]
        self.ax_.plot(ends, [height, height], color=color, linewidth=1.6, zorder=2)

    def _draw_mean(
        self, height: int, name: str, mean: float, given: dict[str, Any]
    ) -> None:
        style: dict[str, Any] = {
            "linestyle": "none",
            "marker": "o",
            "markersize": 6.5,
            "zorder": 3,
            "label": plain_text(name),
            **given,
        }
        self.ax_.plot([mean], [height], **style)

    def _draw_dots(self, height: int, values: Array) -> None:
        """Draw single differences, if they can be told apart."""
        if not shows_dots(values):
            return
        # Dots stand side by side in the order of the repeats: none is moved at random.
        shifts = _DOT_SPREAD * np.linspace(-1, 1, len(values))
        self.ax_.plot(
            values,
            height + shifts,
            linestyle="none",
            marker="o",
            markersize=3.2,
            markeredgewidth=0,
            color=FAINT,
            alpha=0.7,
            zorder=1.5,
        )

    def _label_axes(self) -> None:
        """Write methods on the left, counts on the right, and what is drawn below."""
        ax = self.ax_
        self._write_counts()
        n_methods = len(self.methods_)
        ax.set_yticks(range(n_methods), [plain_text(name) for name in self.methods_])
        # The first method is at the top.
        ax.set_ylim(n_methods - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["left", "top", "right"]].set_visible(False)
        ax.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.4)
        ax.set_axisbelow(True)
        # More numbers of four digits would touch.
        ax.locator_params(axis="x", nbins=6)

        ends = ("worse", "better") if self.greater_is_better else ("better", "worse")
        left, right = ends
        directions = f"\N{LEFTWARDS ARROW} {left}, {right} \N{RIGHTWARDS ARROW}"
        score_name = _look.readable(self.score_name)
        baseline = plain_text(self.baseline)
        ax.set_xlabel(f"{score_name} minus that of {baseline}\n{directions}")

    def _write_counts(self) -> None:
        """Write right of every line in how many repeats its method was worse."""
        sign = 1 if self.greater_is_better else -1
        for height, name in enumerate(self.methods_):
            gains = sign * np.asarray(self.differences[name])
            count = f"{(gains < 0).sum():,} of {len(gains):,}"
            _look.write_beside(self.ax_, 1.02, height, count)
        heading = "repeats\nworse"
        _look.write_beside(self.ax_, 1.02, -0.62, heading, va="bottom", color=FAINT)


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Observed against predicted probability, for one or several classifiers.

    On the diagonal both agree. Vertical bars are one standard error, long where a bin
    has few rows, and the legend gives the mean distance from the diagonal, known as
    expected calibration error.

    Make one by ``from_estimator``; ``plot`` draws it again.

    Parameters
    ----------
    curves : dict of ReliabilityCurve
        Binned rows, by classifier.
    event : str, default="the predicted class"
        Whose probability it is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : dict of matplotlib Line2D
        Curves, by classifier.
    diagonal_ : matplotlib Line2D
        The diagonal.
    """

    curves: Mapping[str, ReliabilityCurve]
    event: str = _PREDICTED_CLASS

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        n_bins: int = 10,
        unlabeled: Any = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the probabilities of fitted classifiers for rows of known class.

        Parameters
        ----------
        estimator : classifier or dict of classifiers
            Fitted; one, or one for each name.
        X : array-like of shape (n_samples, n_features)
            Rows, preferably some that were not trained on.
        y : array-like of shape (n_samples,)
            Their classes; rows with the marker are left out.
        pos_label : object, default=None
            Class whose probability is drawn. None: the second of two classes, the
            predicted one of more.
        n_bins : int, default=10
            Number of bins, of equal width.
        unlabeled : object, default="auto"
            Marker of unlabeled rows in y; "auto": that of the classifier, or -1.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : ReliabilityDisplay
            Object that stores what was drawn.
        """
        estimators = _look.estimators_by_name(estimator)
        classes = _common_classes(estimators)
        first = next(iter(estimators.values()))
        codes, _ = _look.encode_shown(first, X, y, unlabeled)
        labeled = np.flatnonzero(codes != UNLABELED)
        if len(labeled) == 0:
            raise ValueError(
                f"y labels none of the {len(codes)} rows, and classes must be known."
            )
        # scikit-learn does not index tables of pyarrow.
        is_arrow = type(X).__module__.startswith("pyarrow")
        rows = X.take(labeled) if is_arrow else _safe_indexing(X, labeled)
        truth = codes[labeled]
        code = _drawn_class(classes, pos_label)
        event = _PREDICTED_CLASS
        if code is not None:
            event = f"class {plain_text(classes[code])}"

        edges = np.linspace(0, 1, check_count("n_bins", n_bins, 1) + 1)
        curves = {}
        for name, each in estimators.items():
            probabilities = np.asarray(each.predict_proba(rows))
            curves[name] = _curve_of_event(probabilities, truth, code, edges)
        return cls(curves=curves, event=event).plot(ax=ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, legend: bool = True, **kwargs: Any
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        legend : bool, default=True
            Whether to name the classifiers, with their calibration errors.
        **kwargs : dict
            Passed to ``Axes.plot`` for the curves.

        Returns
        -------
        display : ReliabilityDisplay
            Object that stores what was drawn.
        """
        ax = self._open_axes(ax, width=4.4, height=4.6)
        [self.diagonal_] = ax.plot(
            [0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle=(0, (2, 2))
        )
        self.lines_: dict[str, Any] = {}
        styles = _look.method_styles(self.curves)
        # Of many curves the first ones share their markers with later ones.
        markers = cycle(_MARKERS)
        for name, curve in self.curves.items():
            style = {**styles[str(name)], "marker": next(markers), **kwargs}
            self.lines_[name] = self._draw_curve(name, curve, style)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.03))
        ax.set_xlabel(f"Predicted probability of {self.event}")
        ax.set_ylabel("Observed share")
        if legend:
            self._draw_legend()
        return self

    def _draw_curve(
        self, name: str, curve: ReliabilityCurve, style: dict[str, Any]
    ) -> Any:
        """Draw the bins that have rows; return their line."""
        is_full = curve.counts > 0
        low, high = curve.interval
        predicted = curve.predicted[is_full]
        observed = curve.observed[is_full]
        self.ax_.vlines(
            predicted,
            low[is_full],
            high[is_full],
            color=style["color"],
            linewidth=0.8,
            alpha=0.6,
        )
        error = f"{curve.calibration_error:.3f}"
        label = f"{plain_text(name)}  {error}" if name else error
        style = {"markersize": 4.5, "linewidth": 1.4, "label": label, **style}
        [line] = self.ax_.plot(predicted, observed, **style)
        return line

    def _draw_legend(self) -> None:
        self.ax_.legend(
            handles=list(self.lines_.values()),
            title="Calibration error",
            loc="best",
            frameon=False,
            alignment="left",
            title_fontsize=_look.LABEL_SIZE,
            fontsize=_look.LABEL_SIZE,
        )


def _curve_of_event(
    probabilities: Array, truth: AnyArray, code: int | None, edges: Array
) -> ReliabilityCurve:
    """Bin rows by the probability of a class, or of the predicted one for None."""
    n_rows = len(truth)
    # The class of every row whose probability is drawn.
    drawn = probabilities.argmax(axis=1)
    if code is not None:
        drawn = np.full(n_rows, code)
    predicted = probabilities[np.arange(n_rows), drawn]
    sums = bin_sums(predicted, truth == drawn, edges)
    return ReliabilityCurve.from_sums(edges, sums)


def _common_classes(estimators: Mapping[str, Any]) -> list[Any]:
    """Return the classes that all classifiers know, or raise ValueError."""
    known = {
        name: np.asarray(each.classes_).tolist() for name, each in estimators.items()
    }
    classes = next(iter(known.values()))
    if any(others != classes for others in known.values()):
        raise ValueError(f"Classifiers must know the same classes, got {known}.")
    return classes


def _drawn_class(classes: list[Any], pos_label: Any) -> int | None:
    """Return the index of the class whose probability is drawn.

    None stands for the predicted class.
    """
    if pos_label is None:
        return 1 if len(classes) == 2 else None
    if pos_label not in classes:
        raise ValueError(
            f"pos_label must be one of the classes {classes}, got {pos_label!r}."
        )
    return classes.index(pos_label)
