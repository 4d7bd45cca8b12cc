"""Display of a fitted classifier and rows: regions in a plane."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
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
_LARGEST_LOG_ODDS = (
    1e3  # larger and infinite ones are cut off, so that they can be drawn
)


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
    grid : tuple of two ndarray
        Coordinates of the columns and of the rows of a grid over the plane.
    log_probabilities : ndarray of shape (n_rows, n_columns, n_classes)
        Log probabilities of the classes on the grid.
    names : tuple of two str
        Labels of the axes.
    held : str, default=""
        What is held fixed in the regions, as a note in the corner.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn in.
    figure_ : matplotlib Figure
        Its figure.
    surface_ : matplotlib AxesImage
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
    grid: tuple[Array, Array]
    log_probabilities: Array
    names: tuple[str, str]
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
        points = plane.points
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
        self, ax: Axes | None = None, *, legend: bool = True, **kwargs: Any
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        legend : bool, default=True
            Whether to name classes and unlabeled rows beside the axes.
        **kwargs : dict
            Passed to ``Axes.imshow`` for the shading; ``alpha`` is the opacity where a class is
            certain.

        Returns
        -------
        display : DecisionBoundaryDisplay
            Object that stores what was drawn.
        """
        ax = self._open_axes(ax)
        self.surface_ = _draw_regions(ax, self.grid, self.log_probabilities, kwargs)
        self.boundaries_ = _draw_lines(ax, self.grid, self.log_probabilities)
        self.unlabeled_ = self._draw_unlabeled()
        self.labeled_ = self._draw_labeled()
        ax.set(xlabel=plain_text(self.names[0]), ylabel=plain_text(self.names[1]))
        if self.held:
            box = {
                "facecolor": _look.background(),
                "edgecolor": "none",
                "alpha": 0.75,
                "pad": 1.5,
            }
            corner: dict[str, Any] = {
                "transform": ax.transAxes,
                "ha": "right",
                "va": "top",
            }
            ax.text(0.99, 0.985, self.held, fontsize=7.5, bbox=box, **corner)
        if legend:
            self._draw_legend()
        return self

    def _draw_unlabeled(self) -> Any:
        x, y = self.points[self.codes == UNLABELED].T
        if len(x) == 0:
            return None
        shares = self.responsibilities
        style: dict[str, Any] = {
            "s": 9,
            "linewidths": 0,
            "label": "unlabeled",
            "zorder": 1,
        }
        style["color"] = FAINT if shares is None else _look.mix(shares)
        # A vector file with thousands of dots is ten times as large.
        style["rasterized"] = len(x) > _MOST_VECTOR_DOTS
        return self.ax_.scatter(x, y, **style)

    def _draw_labeled(self) -> dict[Any, Any]:
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            x, y = self.points[self.codes == code].T
            style: dict[str, Any] = {"s": 36, "linewidths": 0.9, "zorder": 3}
            style |= {"color": class_color(code), "edgecolor": foreground()}
            style |= {
                "marker": _MARKERS[code % len(_MARKERS)],
                "label": plain_text(name),
            }
            if len(x):
                drawn[name] = self.ax_.scatter(x, y, **style)
        return drawn

    def _draw_legend(self) -> None:
        handles = list(self.labeled_.values())
        if self.unlabeled_ is not None:  # one gray dot for dots of many colors
            dot = {
                "linestyle": "none",
                "marker": "o",
                "markersize": 3.5,
                "color": FAINT,
            }
            lines = _look.import_matplotlib("matplotlib.lines")
            handles.append(lines.Line2D([], [], label="unlabeled", **dot))
        _look.legend_beside(self.ax_, handles)


def _draw_regions(
    ax: Axes,
    grid: tuple[Array, Array],
    log_probabilities: Array,
    kwargs: dict[str, Any],
) -> Any:
    """Draw an image in the colors of the classes, fading where none is certain."""
    kwargs = {"interpolation": "bilinear", "zorder": 0, **kwargs}
    opacity = kwargs.pop("alpha", _OPACITY)
    excess = _look.excess_of(np.exp(log_probabilities))
    total = excess.sum(axis=-1, keepdims=True)
    pure = np.array(
        [_look.to_rgb(class_color(code)) for code in range(excess.shape[-1])]
    )
    white = np.ones((*excess.shape[:-1], 3))
    colors = np.divide(excess @ pure, total, out=white, where=total > 0)
    image = np.concatenate(
        [colors, opacity * excess.max(axis=-1, keepdims=True)], axis=-1
    )
    across, up = grid
    limits = (across[0], across[-1], up[0], up[-1])
    drawn = ax.imshow(image, extent=limits, origin="lower", aspect="auto", **kwargs)
    ax.set(xlim=limits[:2], ylim=limits[2:])
    return drawn


def _draw_lines(
    ax: Axes, grid: tuple[Array, Array], log_probabilities: Array
) -> list[Any]:
    """Draw lines on which two classes are equally probable and no other is more so."""
    n_classes = log_probabilities.shape[-1]
    drawn = []
    for code in range(1 if n_classes == 2 else n_classes):
        with np.errstate(invalid="ignore"):
            others = np.delete(log_probabilities, code, axis=-1).max(axis=-1)
            odds = np.clip(
                log_probabilities[..., code] - others,
                -_LARGEST_LOG_ODDS,
                _LARGEST_LOG_ODDS,
            )
        if odds.min() < 0 < odds.max():
            style: Any = {"colors": [foreground()], "linewidths": 1.3, "zorder": 2}
            drawn.append(ax.contour(*grid, odds, levels=[0.0], **style))
    return drawn


def _responsibilities(
    estimator: Any, X: Any, codes: AnyArray, given: Any
) -> Array | None:
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
    """Rows in a plane, and probabilities of the classes at its points."""

    names: tuple[str, str]  # labels of the axes
    held: str  # what is held fixed in the plane, if anything
    points: Array  # of the rows, (n, 2)
    log_probabilities: Callable[[Array], Array]  # points (m, 2) -> (m, K)


def plane_of(estimator: Any, X: Any) -> Plane:
    """Return the plane of the columns of X if there are two, else of two discriminants."""
    if np.shape(X)[1] == 2:
        first, second = _column_names(X)
        return Plane(
            names=(first, second),
            held="",
            points=np.asarray(X, dtype=np.float64),
            log_probabilities=lambda points: _log_probabilities(
                estimator, _table_like(points, X)
            ),
        )
    return _discriminant_plane(estimator, X)


def _discriminant_plane(estimator: Any, X: Any) -> Plane:
    """Return the plane of the two discriminants that separate the classes best.

    Two classes have one discriminant: the second axis is then what varies most besides it.
    """
    lda, before = final_step(estimator)
    lacking = [
        name for name in ("transform", "means_", "priors_") if not hasattr(lda, name)
    ]
    if lacking:
        raise ValueError(
            f"{type(lda).__name__} has no {lacking[0]}, and discriminants are those of a linear "
            "discriminant analysis. DecisionBoundaryDisplay draws any classifier of two columns."
        )
    rows = before(X)
    if np.shape(rows)[1] < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {np.shape(rows)[1]}: draw a "
            "histogram of the rows instead."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # means have no feature names
        class_points = np.asarray(lda.transform(lda.means_), dtype=np.float64)
    n_discriminants = class_points.shape[1]
    points, names = (
        np.asarray(lda.transform(rows)),
        ("First discriminant", "Second discriminant"),
    )
    if n_discriminants == 1:
        names = "Discriminant", "Largest remaining variation"
        standardized = StandardScaler().fit_transform(
            np.asarray(rows, dtype=np.float64)
        )
        along = LinearRegression().fit(points, standardized).predict(points)
        points = np.column_stack([points, PCA(1).fit_transform(standardized - along)])

    def log_probabilities(points: Array) -> Array:
        # In discriminant coordinates classes are spheres of variance 1.
        full = np.tile(lda.priors_ @ class_points, (len(points), 1))
        full[:, :2] = points[:, :n_discriminants]
        distances = ((full[:, None, :] - class_points) ** 2).sum(axis=2)
        with np.errstate(divide="ignore"):
            return np.asarray(log_softmax(np.log(lda.priors_) - distances / 2, axis=1))

    held = "other discriminants at their means" if n_discriminants > 2 else ""
    return Plane(names, held, points[:, :2], log_probabilities)


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
