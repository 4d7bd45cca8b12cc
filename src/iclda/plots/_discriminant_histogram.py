"""Histograms of labeled classes and of unlabeled rows along a discriminant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from .._core.types import AnyArray, Array
from .._estimators.labels import UNLABELED
from ..methods import FAINT
from ..model_selection._splitters import final_step
from . import _look
from ._look import (
    Axes,
    Display,
    class_color,
    class_points_of,
    encode_shown,
    foreground,
    plain_text,
)

_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
_LABELED_HEIGHT = 0.45  # height of the highest labeled bar, in heights of the unlabeled one
_CURVE_POINTS = 400


@dataclass(kw_only=True, eq=False, repr=False)
class DiscriminantHistogramDisplay(Display):
    """Labeled classes and unlabeled rows along one discriminant, and their expected numbers.

    Unlabeled rows are counted upwards, labeled ones downwards, stacked by class and on a scale of
    their own. Curves are the numbers of unlabeled rows that the fit expects of every class: where
    it is right, they add up to the gray bars.

    Make one by ``from_estimator``; ``plot`` draws it again.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Places of all rows along the discriminant.
    codes : ndarray of shape (n_samples,)
        Index of the class of every row, -1 for an unlabeled one.
    classes : ndarray of shape (n_classes,)
        The classes.
    centers : ndarray of shape (n_classes,), default=None
        Class means of the fit; its classes have variance 1. None draws no curves.
    priors : ndarray of shape (n_classes,), default=None
        Class priors of the fit.
    threshold : float, default=None
        Where the most probable of two classes changes.
    name : str, default="Discriminant"
        Label of the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    unlabeled_ : matplotlib StepPatch or None
        Bars of the unlabeled rows.
    labeled_ : dict of matplotlib StepPatch
        Bars of the labeled rows, by class.
    curves_ : dict of matplotlib Line2D
        Curves of the fit, by class.
    threshold_ : matplotlib Line2D or None
        The threshold.
    """

    values: Array
    codes: AnyArray
    classes: AnyArray
    centers: Array | None = None
    priors: Array | None = None
    threshold: float | None = None
    name: str = "Discriminant"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        component: int = 0,
        unlabeled: Any = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows along a discriminant of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted linear discriminant analysis, or a pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Their classes, or the marker; None: all unlabeled.
        component : int, default=0
            Index of the discriminant, 0 for the one that separates the classes best.
        unlabeled : object, default="auto"
            Marker of unlabeled rows in y; "auto": that of the classifier, or -1.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : DiscriminantHistogramDisplay
            Object that stores what was drawn.
        """
        codes, classes = encode_shown(estimator, X, y, unlabeled)
        lda, before = final_step(estimator)
        points = class_points_of(lda)
        n_components = points.shape[1]
        if not 0 <= component < n_components:
            raise ValueError(
                f"component must be one of the {n_components} discriminants of "
                f"{len(points)} classes, 0 to {n_components - 1}, got {component!r}."
            )
        return cls(
            values=np.asarray(lda.transform(before(X)))[:, component],
            codes=codes,
            classes=classes,
            centers=points[:, component],
            priors=np.asarray(lda.priors_),
            threshold=_threshold(points[:, 0], lda.priors_) if len(points) == 2 else None,
            name="Discriminant" if n_components == 1 else f"Discriminant {component + 1}",
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: Any = 30,
        legend: bool = True,
        unlabeled_kw: dict[str, Any] | None = None,
        curve_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        bins : int, sequence or str, default=30
            Bins, as for ``numpy.histogram``.
        legend : bool, default=True
            Whether to name the classes beside the axes.
        unlabeled_kw : dict, default=None
            Passed to ``Axes.stairs`` for unlabeled rows.
        curve_kw : dict, default=None
            Passed to ``Axes.plot`` for the curves.
        **kwargs : dict
            Passed to ``Axes.stairs`` for labeled rows.

        Returns
        -------
        display : DiscriminantHistogramDisplay
            Object that stores what was drawn.
        """
        is_unlabeled = self.codes == UNLABELED
        edges = np.histogram_bin_edges(self.values, bins)
        above = np.histogram(self.values[is_unlabeled], edges)[0]
        groups = [self.values[self.codes == code] for code in range(len(self.classes))]
        below = np.array([np.histogram(group, edges)[0] for group in groups])
        # Labeled rows are usually few: they have a scale of their own.
        scale = 1.0
        if is_unlabeled.any():
            scale = -_LABELED_HEIGHT * max(above.max(), 1) / max(below.sum(axis=0).max(), 1)
        ax = self._open_axes(ax)
        self.unlabeled_, self.curves_ = None, {}
        if is_unlabeled.any():
            style = {"fill": True, "color": FAINT, "alpha": 0.45, "label": "unlabeled"}
            self.unlabeled_ = ax.stairs(above, edges, **{**style, **(unlabeled_kw or {})})
        self.labeled_ = self._draw_labeled(scale * below, edges, kwargs)
        if self.centers is not None and self.priors is not None:
            n_rows = is_unlabeled.sum() or len(self.values)
            expected = n_rows * np.diff(edges).mean() * self.priors
            self.curves_ = self._draw_curves(edges, self.centers, expected, curve_kw or {})
        self._label_axes(scale)
        if legend:
            _look.legend_beside(ax, self.labeled_.values())
        return self

    def _draw_labeled(self, heights: Array, edges: Array, kwargs: dict[str, Any]) -> dict[Any, Any]:
        """Draw the bars of the classes, stacked."""
        drawn, base = {}, np.zeros(len(edges) - 1)
        for code, name in enumerate(self.classes.tolist()):
            if not heights[code].any():
                continue
            top = base + heights[code]
            style = {"fill": True, "facecolor": class_color(code), "edgecolor": _look.background()}
            style |= {"linewidth": 0.6, "label": plain_text(name), **kwargs}
            drawn[name] = self.ax_.stairs(top, edges, baseline=base, **style)
            base = top
        return drawn

    def _draw_curves(
        self, edges: Array, centers: Array, expected: Array, kwargs: dict[str, Any]
    ) -> dict[Any, Any]:
        """Draw normal densities, scaled to the rows expected of a class in a bin of mean width."""
        along = np.linspace(edges[0], edges[-1], _CURVE_POINTS)
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            # A curve in the color of its class could not be seen over bars of that color.
            color = foreground() if self.unlabeled_ is None else class_color(code)
            style = {"color": color, "linestyle": _DASHES[code % len(_DASHES)], "linewidth": 1.6}
            heights = expected[code] * norm.pdf(along, centers[code])
            (drawn[name],) = self.ax_.plot(along, heights, **{**style, **kwargs})
        return drawn

    def _label_axes(self, scale: float) -> None:
        ax = self.ax_
        ax.axhline(0, color=foreground(), linewidth=0.8)
        self.threshold_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.threshold_ = ax.axvline(self.threshold, color=foreground(), linewidth=1.0)
        ax.set(xlabel=self.name, ylabel="Rows")
        low, high = ax.dataLim.intervaly
        ax.set_ylim(1.12 * min(low, 0), 1.1 * high)
        if self.unlabeled_ is not None and self.labeled_:
            _set_ticks(ax, scale)
            style: dict[str, Any] = {"transform": ax.transAxes, "fontsize": _look.LABEL_SIZE}
            ax.text(0.01, 0.985, "unlabeled", va="top", **style)
            ax.text(0.01, 0.015, "labeled", va="bottom", **style)


def _set_ticks(ax: Axes, scale: float) -> None:
    """Set ticks in numbers of rows, above the line and, on another scale, below it."""
    ticker = _look.import_matplotlib("matplotlib.ticker")
    ticks: dict[float, str] = {}
    for end, factor, n_bins in zip(ax.get_ylim(), (scale, 1.0), (2, 4), strict=True):
        locator = ticker.MaxNLocator(nbins=n_bins, integer=True, steps=[1, 2, 5, 10])
        counts = locator.tick_values(0, end / factor)
        ticks |= {n * factor: f"{n:,.0f}" for n in counts if 0 <= n <= end / factor}
    ax.set_yticks(list(ticks), list(ticks.values()))


def _threshold(centers: Array, priors: Array) -> float:
    """Return where prior times density of two classes of variance 1 are equal."""
    gap = centers[1] - centers[0]
    if gap == 0:
        return float("nan")
    with np.errstate(divide="ignore"):
        return float(centers.mean() + (np.log(priors[0]) - np.log(priors[1])) / gap)
