"""How rows lie along a discriminant: labeled ones by class, unlabeled ones as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.types import AnyArray, Array
from ._bars import count_both_ways, edges_of, threshold_of
from ._look import (
    FAINT,
    LABEL_SIZE,
    axes_for,
    background,
    class_color,
    class_dashes,
    foreground,
    legend_beside,
    plain_text,
)
from ._planes import class_points_of
from ._rows import UNLABELED, encode, final_step, shown_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELED_HEIGHT = 0.45  # of the bars of labeled rows, in heights of those of unlabeled ones
_CURVE_POINTS = 400


class DiscriminantHistogramDisplay:
    """Labeled classes and unlabeled rows along one discriminant, with what the fit expects there.

    Unlabeled rows are counted upwards and labeled ones downwards, on a scale of their own, one
    class on the other. Curves are the numbers of unlabeled rows that the fit expects of every
    class: they add up to what the gray bars should look like.

    Make one by ``from_estimator`` or ``from_predictions``; ``plot`` draws it again.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Places of all rows along the discriminant.
    codes : ndarray of shape (n_samples,)
        Number of the class of every row, -1 for an unlabeled one.
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

    def __init__(
        self,
        *,
        values: Array,
        codes: AnyArray,
        classes: AnyArray,
        centers: Array | None = None,
        priors: Array | None = None,
        threshold: float | None = None,
        name: str = "Discriminant",
    ) -> None:
        self.values = values
        self.codes = codes
        self.classes = classes
        self.centers = centers
        self.priors = priors
        self.threshold = threshold
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        X_unlabeled: Any = None,
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
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows.
        component : int, default=0
            Number of the discriminant, 0 for the one that separates the classes best.
        unlabeled : object, default="auto"
            Marker of unlabeled rows in y; "auto": that of the classifier, or -1.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : DiscriminantHistogramDisplay
            What was drawn.
        """
        shown = shown_rows(estimator, X, y, X_unlabeled, unlabeled)
        lda, before = final_step(estimator)
        points = class_points_of(lda, ": pass scores of your own to from_predictions")
        n_components = points.shape[1]
        if not 0 <= component < n_components:
            raise ValueError(
                f"component must be one of the {n_components} discriminants of "
                f"{len(points)} classes, 0 to {n_components - 1}, got {component!r}."
            )
        display = cls(
            values=shown.collect(lambda X: np.asarray(lda.transform(before(X)))[:, component]),
            codes=shown.codes,
            classes=shown.classes,
            centers=points[:, component],
            priors=np.asarray(lda.priors_),
            threshold=threshold_of(points[:, 0], lda.priors_) if len(points) == 2 else None,
            name="Discriminant" if n_components == 1 else f"Discriminant {component + 1}",
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        values: Any,
        y: Any,
        *,
        classes: Any = None,
        threshold: float | None = None,
        unlabeled: Any = -1,
        name: str = "Score",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw given scores of rows, of any classifier.

        Parameters
        ----------
        values : array-like of shape (n_samples,)
            Scores, for example of ``transform`` or ``decision_function``.
        y : array-like of shape (n_samples,)
            Classes of the rows, or the marker.
        classes : array-like of shape (n_classes,), default=None
            The classes; None: those in y, sorted.
        threshold : float, default=None
            Where the predicted class changes.
        unlabeled : object, default=-1
            Marker of unlabeled rows in y.
        name : str, default="Score"
            Label of the axis.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : DiscriminantHistogramDisplay
            What was drawn.
        """
        from .._estimators.labels import split_marker

        values = np.asarray(values, dtype=np.float64)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        classes = np.unique(split_marker(y, unlabeled)[0]) if classes is None else classes
        codes = encode(y, np.asarray(classes), unlabeled)
        if values.shape != codes.shape:
            raise ValueError(
                f"values must hold one number for each of the {len(codes)} rows of y, got shape "
                f"{values.shape}."
            )
        display = cls(
            values=values,
            codes=codes,
            classes=np.asarray(classes),
            threshold=threshold,
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: Any = "auto",
        curves: bool = True,
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
        bins : int, sequence or str, default="auto"
            Bins, as for ``numpy.histogram``; "auto" makes 20 to 50 of them.
        curves : bool, default=True
            Whether to draw what the fit expects.
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
            Itself.
        """
        ax = axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        is_unlabeled = self.codes == UNLABELED
        edges = edges_of(self.values, bins)
        above = np.histogram(self.values[is_unlabeled], edges)[0]
        below = [np.histogram(self.values[self.codes == k], edges)[0] for k in self._numbers()]
        # Above and below the line have scales of their own: there are few labels, as a rule.
        ratio = _LABELED_HEIGHT * max(above.max(), 1) / max(np.sum(below, axis=0).max(), 1)
        is_alone = not is_unlabeled.any()
        self._scale = 1.0 if is_alone else -float(ratio)
        self.unlabeled_ = None
        if not is_alone:
            style = {"fill": True, "color": FAINT, "alpha": 0.45, "label": "unlabeled"}
            self.unlabeled_ = ax.stairs(above, edges, **{**style, **(unlabeled_kw or {})})
        self.labeled_ = self._draw_labeled(below, edges, kwargs)
        self.curves_ = {}
        if curves and self.centers is not None:
            n_rows = len(self.values) if is_alone else is_unlabeled.sum()
            self.curves_ = self._draw_curves(edges, n_rows, curve_kw or {})
        self._finish(is_alone=is_alone, legend=legend)
        return self

    def _numbers(self) -> range:
        return range(len(self.classes))

    def _draw_labeled(
        self, counts: list[AnyArray], edges: Array, kwargs: dict[str, Any]
    ) -> dict[Any, Any]:
        """Bars of the classes, one on the other."""
        drawn, base = {}, np.zeros(len(edges) - 1)
        for code, name in enumerate(self.classes.tolist()):
            if not counts[code].any():
                continue
            top = base + counts[code] * self._scale
            style = {"fill": True, "facecolor": class_color(code), "edgecolor": background()}
            style |= {"linewidth": 0.6, "label": plain_text(name), **kwargs}
            drawn[name] = self.ax_.stairs(top, edges, baseline=base, **style)
            base = top
        return drawn

    def _draw_curves(self, edges: Array, n_rows: int, kwargs: dict[str, Any]) -> dict[Any, Any]:
        """Rows that the fit expects in a bin of every class, were all bins as wide as the mean."""
        assert self.centers is not None
        assert self.priors is not None
        along = np.linspace(edges[0], edges[-1], _CURVE_POINTS)
        per_bin = n_rows * np.diff(edges).mean()
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            density = np.exp(-((along - self.centers[code]) ** 2) / 2) / np.sqrt(2 * np.pi)
            # Over bars of the same color only ink is seen.
            color = class_color(code) if self._scale < 0 else foreground()
            style = {"color": color, "linestyle": class_dashes(code), **kwargs}
            expected = per_bin * self.priors[code] * density
            (drawn[name],) = self.ax_.plot(along, expected, **{"linewidth": 1.6, **style})
        return drawn

    def _finish(self, *, is_alone: bool, legend: bool) -> None:
        ax = self.ax_
        ax.axhline(0, color=foreground(), linewidth=0.8)
        self.threshold_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.threshold_ = ax.axvline(self.threshold, color=foreground(), linewidth=1.0)
        ax.set(xlabel=self.name, ylabel="Rows")
        low, high = ax.dataLim.intervaly
        ax.set_ylim(1.12 * min(low, 0), 1.1 * high)
        if not is_alone and self.labeled_:
            count_both_ways(ax, self._scale)
            for place, va, text in ((0.985, "top", "unlabeled"), (0.015, "bottom", "labeled")):
                ax.text(0.01, place, text, transform=ax.transAxes, va=va, fontsize=LABEL_SIZE)
        if legend:
            legend_beside(ax, self.labeled_.values())
