"""Displays of a fitted classifier and rows: regions in a plane, histograms of a discriminant."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from .._core import AnyArray, Array
from .._estimators.labels import UNLABELED
from ..methods import FAINT
from ..model_selection._splitters import check_count, final_step
from . import _look
from ._look import Axes, Display, class_color, encode_shown, foreground, plain_text

_MOST_VECTOR_DOTS = 2_000  # more dots are drawn as pixels in vector files
_MARGIN = 0.06  # margin around the rows, in ranges of the rows
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
_OPACITY = 0.3  # opacity of the shading where a class is certain
_LARGEST_LOG_ODDS = 1e3  # larger and infinite ones are cut off, so that they can be drawn
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
_LABELED_HEIGHT = 0.45  # height of the highest labeled bar, in heights of the unlabeled one
_CURVE_POINTS = 400


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionBoundaryDisplay(Display):
    """Regions of a classifier in a plane, its labeled rows, and the labels of the unlabeled ones.

    Make one by ``from_estimator``; ``plot`` draws it again.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Places of all rows in the plane.
    codes : ndarray of shape (n_samples,)
        Index of the class of every row, -1 for an unlabeled one.
    classes : ndarray of shape (n_classes,)
        The classes.
    responsibilities : ndarray of shape (n_unlabeled, n_classes), default=None
        Shares of the unlabeled rows in the classes; None draws these rows in gray.
    grid : tuple of two ndarray, default=None
        Coordinates of the columns and of the rows of a grid over the plane.
    log_probabilities : ndarray of shape (n_rows, n_columns, n_classes), default=None
        Log probabilities of the classes on the grid; None draws no regions.
    names : tuple of two str, default=None
        Labels of the axes.
    held : str, default=""
        What is held fixed in the regions, as a note in the corner.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    surface_ : matplotlib AxesImage or None
        Shading of the regions.
    boundaries_ : list of matplotlib QuadContourSet
        Lines between the regions.
    unlabeled_ : matplotlib PathCollection or None
        Unlabeled rows.
    labeled_ : dict of matplotlib PathCollection
        Labeled rows, by class.
    """

    points: Array
    codes: AnyArray
    classes: AnyArray
    responsibilities: Array | None = None
    grid: tuple[Array, Array] | None = None
    log_probabilities: Array | None = None
    names: tuple[str, str] | None = None
    held: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        responsibilities: Any = "auto",
        unlabeled: Any = "auto",
        grid_resolution: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted classifier and rows.

        Two columns are drawn as they are. More are drawn in the plane of the two discriminants
        that separate the classes best; for two classes, of the discriminant and what varies most
        besides it.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; a pipeline too.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Their classes, or the marker; None: all unlabeled.
        responsibilities : {"auto", None}, default="auto"
            Shares of the unlabeled rows in the classes, by which they are colored. "auto": the
            imputed labels where the classifier has them, otherwise its probabilities; None: gray.
        unlabeled : object, default="auto"
            Marker of unlabeled rows in y; "auto": that of the classifier, or -1.
        grid_resolution : int, default=200
            Number of points of the grid along each axis.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : DecisionBoundaryDisplay
            Object that stores what was drawn.
        """
        codes, classes = encode_shown(estimator, X, y, unlabeled)
        plane = plane_of(estimator, X)
        points = plane.coordinates(X)
        check_count("grid_resolution", grid_resolution, 2)
        # A pipeline that imputes takes rows with gaps: they have no place in the plane.
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        margin = np.where(high > low, _MARGIN * (high - low), 1.0)
        across, up = np.linspace(low - margin, high + margin, grid_resolution).T
        places = np.stack(np.meshgrid(across, up), axis=-1)
        log_probabilities = plane.log_probabilities(places.reshape(-1, 2))
        return cls(
            points=points,
            codes=codes,
            classes=classes,
            responsibilities=_responsibilities(estimator, X, codes, responsibilities),
            grid=(across, up),
            log_probabilities=log_probabilities.reshape(*places.shape[:2], -1),
            names=plane.names,
            held=plane.held,
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        labeled_kw: dict[str, Any] | None = None,
        unlabeled_kw: dict[str, Any] | None = None,
        boundary_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        legend : bool, default=True
            Whether to name classes and unlabeled rows beside the axes.
        labeled_kw : dict, default=None
            Passed to ``Axes.scatter`` for labeled rows.
        unlabeled_kw : dict, default=None
            Passed to ``Axes.scatter`` for unlabeled rows.
        boundary_kw : dict, default=None
            Passed to ``Axes.contour``.
        **kwargs : dict
            Passed to ``Axes.imshow`` for the shading; ``alpha`` is the opacity where a class is
            certain.

        Returns
        -------
        display : DecisionBoundaryDisplay
            Object that stores what was drawn.
        """
        ax = self._open_axes(ax)
        self.surface_, self.boundaries_ = None, []
        if self.grid is not None and self.log_probabilities is not None:
            self.surface_ = _draw_regions(ax, self.grid, self.log_probabilities, kwargs)
            style = {"colors": [foreground()], "linewidths": 1.3, "zorder": 2}
            style |= boundary_kw or {}
            self.boundaries_ = _draw_lines(ax, self.grid, self.log_probabilities, style)
        self.unlabeled_ = self._draw_unlabeled(unlabeled_kw or {})
        self.labeled_ = self._draw_labeled(labeled_kw or {})
        if self.names is not None:
            ax.set(xlabel=plain_text(self.names[0]), ylabel=plain_text(self.names[1]))
        if self.held:
            box = {"facecolor": _look.background(), "edgecolor": "none", "alpha": 0.75, "pad": 1.5}
            corner: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top"}
            ax.text(0.99, 0.985, self.held, fontsize=7.5, bbox=box, **corner)
        if legend:
            self._draw_legend()
        return self

    def _draw_unlabeled(self, kwargs: dict[str, Any]) -> Any:
        x, y = self.points[self.codes == UNLABELED].T
        if len(x) == 0:
            return None
        shares = self.responsibilities
        style: dict[str, Any] = {"s": 9, "linewidths": 0, "label": "unlabeled", "zorder": 1}
        style["color"] = FAINT if shares is None else _look.mix(shares)
        # A vector file with thousands of dots is ten times as large.
        style["rasterized"] = len(x) > _MOST_VECTOR_DOTS
        return self.ax_.scatter(x, y, **{**style, **kwargs})

    def _draw_labeled(self, kwargs: dict[str, Any]) -> dict[Any, Any]:
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            x, y = self.points[self.codes == code].T
            style: dict[str, Any] = {"s": 36, "linewidths": 0.9, "zorder": 3}
            style |= {"color": class_color(code), "edgecolor": foreground()}
            style |= {"marker": _MARKERS[code % len(_MARKERS)], "label": plain_text(name), **kwargs}
            if len(x):
                drawn[name] = self.ax_.scatter(x, y, **style)
        return drawn

    def _draw_legend(self) -> None:
        handles = list(self.labeled_.values())
        if self.unlabeled_ is not None:  # one gray dot for dots of many colors
            dot = {"linestyle": "none", "marker": "o", "markersize": 3.5, "color": FAINT}
            lines = _look.import_matplotlib("matplotlib.lines")
            handles.append(lines.Line2D([], [], label="unlabeled", **dot))
        _look.legend_beside(self.ax_, handles)


def _draw_regions(
    ax: Axes, grid: tuple[Array, Array], log_probabilities: Array, kwargs: dict[str, Any]
) -> Any:
    """Draw an image in the colors of the classes, fading where none is certain."""
    kwargs = {"interpolation": "bilinear", "zorder": 0, **kwargs}
    opacity = kwargs.pop("alpha", _OPACITY)
    excess = _look.excess_of(np.exp(log_probabilities))
    total = excess.sum(axis=-1, keepdims=True)
    pure = np.array([_look.to_rgb(class_color(code)) for code in range(excess.shape[-1])])
    white = np.ones((*excess.shape[:-1], 3))
    colors = np.divide(excess @ pure, total, out=white, where=total > 0)
    image = np.concatenate([colors, opacity * excess.max(axis=-1, keepdims=True)], axis=-1)
    across, up = grid
    limits = (across[0], across[-1], up[0], up[-1])
    drawn = ax.imshow(image, extent=limits, origin="lower", aspect="auto", **kwargs)
    ax.set(xlim=limits[:2], ylim=limits[2:])
    return drawn


def _draw_lines(
    ax: Axes, grid: tuple[Array, Array], log_probabilities: Array, style: dict[str, Any]
) -> list[Any]:
    """Draw lines on which two classes are equally probable and no other is more so."""
    n_classes = log_probabilities.shape[-1]
    drawn = []
    for code in range(1 if n_classes == 2 else n_classes):
        with np.errstate(invalid="ignore"):
            others = np.delete(log_probabilities, code, axis=-1).max(axis=-1)
            odds = np.clip(
                log_probabilities[..., code] - others, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS
            )
        if odds.min() < 0 < odds.max():
            drawn.append(ax.contour(*grid, odds, levels=[0.0], **style))
    return drawn


def _responsibilities(estimator: Any, X: Any, codes: AnyArray, given: Any) -> Array | None:
    """Return the shares of the unlabeled rows in the classes; None draws them in gray."""
    is_unlabeled = codes == UNLABELED
    if given is None or not is_unlabeled.any():
        return None
    if not isinstance(given, str) or given != "auto":
        raise ValueError(f'responsibilities must be "auto" or None, got {given!r}.')
    final, before = final_step(estimator)
    if hasattr(final, "impute"):
        return np.asarray(final.impute(before(X)))[is_unlabeled]
    return np.exp(_log_probabilities(estimator, X)[is_unlabeled])


def _log_probabilities(estimator: Any, X: Any) -> Array:
    """Return the log probabilities of the classes, shape (n, K)."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(X))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba, and the plot shows probabilities: "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    with np.errstate(divide="ignore"):
        return np.log(estimator.predict_proba(X))


@dataclass(frozen=True)
class Plane:
    """Coordinates of rows in a plane, and probabilities of the classes at its points."""

    names: tuple[str, str]  # labels of the axes
    held: str  # what is held fixed in the plane, if anything
    coordinates: Callable[[Any], Array]  # rows -> (n, 2)
    log_probabilities: Callable[[Array], Array]  # points (m, 2) -> (m, K)


def plane_of(estimator: Any, X: Any) -> Plane:
    """Return the plane of the columns of X if there are two, else of two discriminants."""
    if np.shape(X)[1] == 2:
        first, second = _column_names(X)
        return Plane(
            names=(first, second),
            held="",
            coordinates=lambda X: np.asarray(X, dtype=np.float64),
            log_probabilities=lambda points: _log_probabilities(estimator, _table_like(points, X)),
        )
    return _discriminant_plane(estimator, X)


def _discriminant_plane(estimator: Any, X: Any) -> Plane:
    """Return the plane of the two discriminants that separate the classes best.

    Two classes have one discriminant: the second axis is then what varies most besides it.
    """
    lda, before = final_step(estimator)
    class_points = class_points_of(lda)
    rows = np.asarray(before(X), dtype=np.float64)
    if rows.shape[1] < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {rows.shape[1]}: draw a "
            "DiscriminantHistogramDisplay instead."
        )
    n_discriminants = class_points.shape[1]
    names = "First discriminant", "Second discriminant"
    if n_discriminants == 1:
        names = "Discriminant", "Largest remaining variation"
        second = _second_axis(lda, rows)

    def coordinates(X: Any) -> Array:
        rows = before(X)
        projected = np.asarray(lda.transform(rows))
        if n_discriminants > 1:
            return projected[:, :2]
        return np.column_stack([projected, second(np.asarray(rows), projected)])

    def log_probabilities(points: Array) -> Array:
        # In discriminant coordinates classes are spheres of variance 1.
        full = np.tile(lda.priors_ @ class_points, (len(points), 1))
        full[:, :2] = points[:, :n_discriminants]
        distances = ((full[:, None, :] - class_points) ** 2).sum(axis=2)
        with np.errstate(divide="ignore"):
            return np.asarray(log_softmax(np.log(lda.priors_) - distances / 2, axis=1))

    held = "other discriminants at their means" if n_discriminants > 2 else ""
    return Plane(names, held, coordinates, log_probabilities)


def _second_axis(lda: Any, rows: Array) -> Callable[[Array, Array], Array]:
    """Return the first principal axis of the standardized rows without their discriminant."""
    scaler, projected = StandardScaler().fit(rows), transform_array(lda, rows)
    line = LinearRegression().fit(projected, scaler.transform(rows))

    def residuals(rows: Array, projected: Array) -> Array:
        return np.asarray(scaler.transform(rows) - line.predict(projected))

    axis = PCA(1).fit(residuals(rows, projected))
    return lambda rows, projected: axis.transform(residuals(rows, projected))[:, 0]


def _column_names(X: Any) -> list[str]:
    """Return the names of the columns of X, or "Feature 0" and so on."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        return [f"Feature {column}" for column in range(np.shape(X)[1])]
    return [str(name) for name in names]


def _table_like(rows: Array, X: Any) -> Any:
    """Return rows in a table like X, so that their names are checked as those of X are."""
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return type(X)(rows, columns=X.columns)
    if package == "polars":
        return type(X)(rows, schema=X.columns)
    if package == "pyarrow":
        return sys.modules["pyarrow"].table(list(rows.T), names=X.column_names)
    return rows


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


def class_points_of(lda: Any) -> Array:
    """Return the class means in discriminant coordinates, shape (K, n_discriminants)."""
    lacking = [name for name in ("transform", "means_", "priors_") if not hasattr(lda, name)]
    if lacking:
        raise ValueError(
            f"{type(lda).__name__} has no {lacking[0]}, and discriminants are those of a linear "
            "discriminant analysis. DecisionBoundaryDisplay draws any classifier of two columns."
        )
    return transform_array(lda, lda.means_)


def transform_array(lda: Any, rows: AnyArray) -> Array:
    """Return discriminant coordinates of an array, also where ``lda`` expects a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # The array has no feature names.
        return np.asarray(lda.transform(rows), dtype=np.float64)
