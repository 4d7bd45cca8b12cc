"""Displays of scores: learning curves, differences of methods, and reliability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
_MOST_DOTS = 300  # more single differences of a method are not drawn
_FEWEST_DISTINCT = 3  # dots of so few values or fewer would cover each other
_DOT_SPREAD = 0.16  # distance of the outermost dots from the line of their method
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_PREDICTED = "the predicted class"


@dataclass(kw_only=True, eq=False, repr=False)
class LearningCurveDisplay(Display):
    """Mean score of one or several classifiers against the number of rows.

    Bands are one standard error to either side. Make one by ``from_curve``; ``plot`` draws it
    again.

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
        kinds = {(one.varied, one.score_name) for one in curves.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"Curves must show one score against one kind of rows, got {sorted(kinds)}."
            )
        ((varied, score_name),) = kinds
        return cls(
            sizes={name: one.sizes for name, one in curves.items()},
            means={
                name: 1 - one.mean if as_error else one.mean
                for name, one in curves.items()
            },
            standard_errors={name: one.standard_error for name, one in curves.items()},
            varied=varied,
            score_name="error" if as_error else score_name,
        ).plot(ax=ax, **kwargs)

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
        self.lines_, self.bands_, self.labels_ = {}, {}, []
        styles = _look.method_styles(self.means)
        for name, mean in self.means.items():
            sizes, style = (
                self.sizes[name],
                {"linewidth": 1.7, **styles[str(name)], **kwargs},
            )
            error = None if self.standard_errors is None else self.standard_errors[name]
            if error is not None and np.isfinite(error).any():
                # The reference is often flat, and its band would cover all others.
                alpha = 0.07 if _look.is_supervised(str(name)) else 0.13
                band = {"color": style["color"], "alpha": alpha, "linewidth": 0}
                self.bands_[name] = ax.fill_between(
                    sizes, mean - error, mean + error, **band
                )
            label = plain_text(name) if name else None
            (self.lines_[name],) = ax.plot(sizes, mean, label=label, **style)
        _set_sizes(ax, np.unique(np.concatenate(list(self.sizes.values()))))
        ax.set_xlabel(_ROW_NAMES.get(self.varied, self.varied))
        ax.set_ylabel(_look.readable(self.score_name))
        ends = {
            str(name): next(reversed(mean[np.isfinite(mean)].tolist()), 0.0)
            for name, mean in self.means.items()
            if str(name)
        }
        if ends:
            colors = {str(name): line.get_color() for name, line in self.lines_.items()}
            self.labels_ = _look.label_ends(ax, ends, colors)
        return self


def display_points(
    points: Iterable[Any], varied: str, score_name: str
) -> LearningCurveDisplay:
    """Return a display of points that have a method, a mean, its standard error and a size.

    ``varied`` is the attribute of the size.
    """
    lines: dict[str, list[Any]] = {}
    for point in points:
        lines.setdefault(point.method, []).append(point)
    sizes, means, errors = (
        {
            name: np.array([getattr(p, f) for p in line], dtype)
            for name, line in lines.items()
        }
        for f, dtype in ((varied, int), ("mean", float), ("se", float))
    )
    how: Any = {"varied": varied, "score_name": score_name}
    return LearningCurveDisplay(sizes=sizes, means=means, standard_errors=errors, **how)


def _set_sizes(ax: Axes, sizes: AnyArray) -> None:
    """Set ticks at the sizes; the axis is logarithmic above 0 if they span a factor of 8."""
    positive = sizes[sizes > 0]
    if len(positive) > 1 and positive.max() >= 8 * positive.min():
        if sizes.min() <= 0:
            ax.set_xscale("symlog", base=2, linthresh=float(positive.min()))
        else:
            ax.set_xscale("log", base=2)
        ax.set_xticks([], minor=True)
    shown = sizes[:: -(-len(sizes) // 8)]
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.margins(x=0.03)


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Mean paired differences of methods to a baseline, one line a method.

    The dot is the mean difference, the bar its confidence interval, the faint dots the single
    differences. The count on the right is the number of them in which the method was worse than
    the baseline.

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
        sign = -1 if self.greater_is_better else 1
        means = {
            name: float(np.mean(values)) for name, values in self.differences.items()
        }
        self.methods_ = sorted(means, key=lambda name: sign * means[name])
        ax = self._open_axes(ax, 5.6, 1.1 + 0.5 * len(means))
        ax.axvline(0, color=_look.foreground(), linewidth=0.8, zorder=1)
        styles = _look.method_styles(self.methods_)
        for place, name in enumerate(self.methods_):
            values = np.asarray(self.differences[name])
            if len(values) <= _MOST_DOTS and len(np.unique(values)) > _FEWEST_DISTINCT:
                self._draw_dots(place, values)
            color = styles[name]["color"]
            ax.plot(
                self.intervals[name],
                [place, place],
                color=color,
                linewidth=1.6,
                zorder=2,
            )
            style: dict[str, Any] = {
                "linestyle": "none",
                "marker": "o",
                "markersize": 6.5,
            }
            style |= {"zorder": 3, "color": color, "label": plain_text(name), **kwargs}
            ax.plot([means[name]], [place], **style)
        self._label_axes()
        return self

    def _draw_dots(self, place: int, values: Array) -> None:
        # Dots stand side by side in the order of the repeats: none is moved at random.
        shifts = _DOT_SPREAD * np.linspace(-1, 1, len(values))
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.2}
        style |= {"markeredgewidth": 0, "color": FAINT, "alpha": 0.7, "zorder": 1.5}
        self.ax_.plot(values, place + shifts, **style)

    def _label_axes(self) -> None:
        ax = self.ax_
        sign = 1 if self.greater_is_better else -1
        for place, name in enumerate(self.methods_):
            values = sign * np.asarray(self.differences[name])
            _look.write_beside(
                ax, 1.02, place, f"{(values < 0).sum():,} of {len(values):,}"
            )
        _look.write_beside(ax, 1.02, -0.62, "repeats\nworse", va="bottom", color=FAINT)
        ax.set_yticks(range(len(self.methods_)), list(map(plain_text, self.methods_)))
        ax.set_ylim(len(self.methods_) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["left", "top", "right"]].set_visible(False)
        ax.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.4)
        ax.set_axisbelow(True)
        ax.locator_params(axis="x", nbins=6)  # More numbers of four digits would touch.
        left, right = (
            ("worse", "better") if self.greater_is_better else ("better", "worse")
        )
        directions = f"\N{LEFTWARDS ARROW} {left}, {right} \N{RIGHTWARDS ARROW}"
        name, baseline = _look.readable(self.score_name), plain_text(self.baseline)
        ax.set_xlabel(f"{name} minus that of {baseline}\n{directions}")


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Observed against predicted probability, for one or several classifiers.

    On the diagonal both agree. Vertical bars are one standard error, long where a bin has few rows,
    and the legend gives the mean distance from the diagonal, known as expected calibration error.

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
    event: str = _PREDICTED

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
            Rows, best ones that were not trained on.
        y : array-like of shape (n_samples,)
            Their classes; rows with the marker are left out.
        pos_label : object, default=None
            Class whose probability is drawn. None: the second of two classes, the predicted one of
            more.
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
        first = next(iter(estimators.values()))
        known = {
            name: np.asarray(one.classes_).tolist() for name, one in estimators.items()
        }
        if any(classes != list(first.classes_) for classes in known.values()):
            raise ValueError(f"Classifiers must know the same classes, got {known}.")
        codes, _ = _look.encode_shown(first, X, y, unlabeled)
        kept = np.flatnonzero(codes != UNLABELED)
        if len(kept) == 0:
            raise ValueError(
                f"y labels none of the {len(codes)} rows, and classes must be known."
            )
        is_arrow = type(X).__module__.startswith("pyarrow")
        rows = X.take(kept) if is_arrow else _safe_indexing(X, kept)
        truth, classes = codes[kept], np.asarray(first.classes_)
        names = classes.tolist()
        if pos_label is not None and pos_label not in names:
            raise ValueError(
                f"pos_label must be one of the classes {names}, got {pos_label!r}."
            )
        code = 1 if len(names) == 2 else None
        code = code if pos_label is None else names.index(pos_label)
        edges = np.linspace(0, 1, check_count("n_bins", n_bins, 1) + 1)
        curves = {}
        for name, one in estimators.items():
            probabilities = np.asarray(one.predict_proba(rows))
            drawn = (
                probabilities.argmax(axis=1)
                if code is None
                else np.full(len(truth), code)
            )
            predicted = probabilities[np.arange(len(truth)), drawn]
            sums = bin_sums(predicted, truth == drawn, edges)
            curves[name] = ReliabilityCurve.from_sums(edges, sums)
        event = _PREDICTED if code is None else f"class {plain_text(names[code])}"
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
        ax = self._open_axes(ax, 4.4, 4.6)
        diagonal: dict[str, Any] = {
            "color": FAINT,
            "linewidth": 0.9,
            "linestyle": (0, (2, 2)),
        }
        (self.diagonal_,) = ax.plot([0, 1], [0, 1], **diagonal)
        self.lines_: dict[str, Any] = {}
        styles = _look.method_styles(self.curves)
        for rank, (name, curve) in enumerate(self.curves.items()):
            style = {
                **styles[str(name)],
                "marker": _MARKERS[rank % len(_MARKERS)],
                **kwargs,
            }
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
        is_full = curve.counts > 0
        low, high = (end[is_full] for end in curve.interval)
        predicted, observed = curve.predicted[is_full], curve.observed[is_full]
        self.ax_.vlines(
            predicted, low, high, color=style["color"], linewidth=0.8, alpha=0.6
        )
        error = f"{curve.calibration_error:.3f}"
        label = f"{plain_text(name)}  {error}" if name else error
        style = {"markersize": 4.5, "linewidth": 1.4, "label": label, **style}
        return self.ax_.plot(predicted, observed, **style)[0]

    def _draw_legend(self) -> None:
        style: dict[str, Any] = {"loc": "best", "frameon": False, "alignment": "left"}
        style |= {"title_fontsize": _look.LABEL_SIZE, "fontsize": _look.LABEL_SIZE}
        self.ax_.legend(
            handles=list(self.lines_.values()), title="Calibration error", **style
        )
