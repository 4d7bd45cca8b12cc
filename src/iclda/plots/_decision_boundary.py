"""Display of a fitted classifier and rows: regions in a plane."""

from __future__ import annotations

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

# A vector file with thousands of dots is ten times as large: more dots than this are
# drawn as pixels.
_MAX_VECTOR_DOTS = 2_000
# Margin around the rows, in ranges of the rows.
_MARGIN_IN_RANGES = 0.06
# Markers of the labeled rows, by class.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
# Opacity of the shading where a class is certain.
_OPACITY = 0.3
# Larger and infinite log odds are cut off, so that they can be drawn.
_MAX_LOG_ODDS = 1e3


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionBoundaryDisplay(Display):
    """Regions of a classifier in a plane, and the rows.

    Labeled rows have the color of their class, unlabeled ones that of their shares.
    Make one by ``from_estimator``; ``plot`` draws it again.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Positions of all rows in the plane.
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
    note : str, default=""
        What is fixed in the regions, written in the corner.

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
    note: str = ""

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

        Two columns are drawn as they are. More are drawn in the plane of the two
        discriminants that separate the classes best; for two classes, of the
        discriminant and what varies most besides it.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; a pipeline too.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Their classes, or the marker; None: all unlabeled.
        responsibilities : {"auto", None}, default="auto"
            Shares of the unlabeled rows in the classes, by which they are colored.
            "auto": the imputed labels if the classifier has them, otherwise its
            probabilities; None: gray.
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
        check_count("grid_resolution", grid_resolution, 2)
        across, up = _grid_over(plane.points, grid_resolution)
        # Positions of the nodes of the grid, (n_rows, n_columns, 2).
        nodes = np.stack(np.meshgrid(across, up), axis=-1)
        log_probabilities = plane.log_probabilities(nodes.reshape(-1, 2))
        display = cls(
            points=plane.points,
            codes=codes,
            classes=classes,
            responsibilities=_responsibilities(estimator, X, codes, responsibilities),
            grid=(across, up),
            log_probabilities=log_probabilities.reshape(*nodes.shape[:2], -1),
            names=plane.names,
            note=plane.note,
        )
        return display.plot(ax=ax, **kwargs)

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
            Passed to ``Axes.imshow`` for the shading; ``alpha`` is the opacity where a
            class is certain.

        Returns
        -------
        display : DecisionBoundaryDisplay
            Object that stores what was drawn.
        """
        ax = self._open_axes(ax)
        # From the back to the front.
        self.surface_ = _draw_regions(ax, self.grid, self.log_probabilities, kwargs)
        self.boundaries_ = _draw_lines(ax, self.grid, self.log_probabilities)
        self.unlabeled_ = self._draw_unlabeled()
        self.labeled_ = self._draw_labeled()
        ax.set(xlabel=plain_text(self.names[0]), ylabel=plain_text(self.names[1]))
        if self.note:
            self._write_note()
        if legend:
            self._draw_legend()
        return self

    def _write_note(self) -> None:
        box = {
            "facecolor": _look.background(),
            "edgecolor": "none",
            "alpha": 0.75,
            "pad": 1.5,
        }
        self.ax_.text(
            0.99,
            0.985,
            self.note,
            fontsize=7.5,
            bbox=box,
            transform=self.ax_.transAxes,
            ha="right",
            va="top",
        )

    def _draw_unlabeled(self) -> Any:
        x, y = self.points[self.codes == UNLABELED].T
        if len(x) == 0:
            return None
        shares = self.responsibilities
        color = FAINT if shares is None else _look.mix(shares)
        return self.ax_.scatter(
            x,
            y,
            s=9,
            linewidths=0,
            label="unlabeled",
            # Behind the boundaries and the labeled rows.
            zorder=1,
            color=color,
            rasterized=len(x) > _MAX_VECTOR_DOTS,
        )

    def _draw_labeled(self) -> dict[Any, Any]:
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            x, y = self.points[self.codes == code].T
            if len(x) == 0:
                continue
            drawn[name] = self.ax_.scatter(
                x,
                y,
                s=36,
                linewidths=0.9,
                zorder=3,
                color=class_color(code),
                edgecolor=foreground(),
                marker=_MARKERS[code % len(_MARKERS)],
                label=plain_text(name),
            )
        return drawn

    def _draw_legend(self) -> None:
        handles = list(self.labeled_.values())
        if self.unlabeled_ is not None:
            # One gray dot stands for the dots of many colors.
            lines = _look.import_matplotlib("matplotlib.lines")
            dot = lines.Line2D(
                [],
                [],
                label="unlabeled",
                linestyle="none",
                marker="o",
                markersize=3.5,
                color=FAINT,
            )
            handles.append(dot)
        _look.legend_beside(self.ax_, handles)


def _grid_over(points: Array, resolution: int) -> tuple[Array, Array]:
    """Return the coordinates of the columns and rows of a grid over rows (n, 2)."""
    # A pipeline that imputes takes rows with gaps, which have no position in the plane.
    low = np.nanmin(points, axis=0)
    high = np.nanmax(points, axis=0)
    # Around rows that all have the same value, there is a unit on either side.
    margin = np.where(high > low, _MARGIN_IN_RANGES * (high - low), 1.0)
    across, up = np.linspace(low - margin, high + margin, resolution).T
    return across, up


def _draw_regions(
    ax: Axes,
    grid: tuple[Array, Array],
    log_probabilities: Array,
    kwargs: dict[str, Any],
) -> Any:
    """Draw an image in the colors of the classes, fading where none is certain."""
    options = {"interpolation": "bilinear", "zorder": 0, **kwargs}
    certain_opacity = options.pop("alpha", _OPACITY)
    image = _shading(np.exp(log_probabilities), certain_opacity)
    across, up = grid
    limits = (across[0], across[-1], up[0], up[-1])
    surface = ax.imshow(image, extent=limits, origin="lower", aspect="auto", **options)
    ax.set(xlim=limits[:2], ylim=limits[2:])
    return surface


def _shading(probabilities: Array, certain_opacity: float) -> Array:
    """Return red, green, blue and opacity of every node of a grid, shape (..., 4)."""
    excess = _look.excess_of(probabilities)
    n_classes = excess.shape[-1]
    pure = np.array([_look.to_rgb(class_color(code)) for code in range(n_classes)])

    # The mean of the colors of the classes, weighted by their excess. Where all classes
    # are equally probable the color does not matter: the opacity is 0.
    total = excess.sum(axis=-1, keepdims=True)
    white = np.ones((*excess.shape[:-1], 3))
    colors = np.divide(excess @ pure, total, out=white, where=total > 0)
    opacity = certain_opacity * excess.max(axis=-1, keepdims=True)
    return np.concatenate([colors, opacity], axis=-1)


def _draw_lines(
    ax: Axes, grid: tuple[Array, Array], log_probabilities: Array
) -> list[Any]:
    """Draw lines on which two classes are equally probable and no other is more so."""
    n_classes = log_probabilities.shape[-1]
    # Two classes share their only line.
    n_regions = 1 if n_classes == 2 else n_classes
    lines = []
    for code in range(n_regions):
        # Against the most probable of the other classes.
        with np.errstate(invalid="ignore"):
            others = np.delete(log_probabilities, code, axis=-1).max(axis=-1)
            log_odds = log_probabilities[..., code] - others
        log_odds = np.clip(log_odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        has_line = log_odds.min() < 0 < log_odds.max()
        if not has_line:
            continue
        line = ax.contour(
            *grid,
            log_odds,
            levels=[0.0],
            colors=[foreground()],
            linewidths=1.3,
            zorder=2,
        )
        lines.append(line)
    return lines


def _responsibilities(
    estimator: Any, X: Any, codes: AnyArray, given: Any
) -> Array | None:
    """Return the shares of the unlabeled rows; None draws these rows in gray."""
    is_unlabeled = codes == UNLABELED
    if given is None or not is_unlabeled.any():
        return None
    if not isinstance(given, str) or given != "auto":
        raise ValueError(f'responsibilities must be "auto" or None, got {given!r}.')
    final, before = final_step(estimator)
    if hasattr(final, "impute"):
        shares = np.asarray(final.impute(before(X)))
    else:
        shares = np.exp(_log_probabilities(estimator, X))
    return shares[is_unlabeled]


def _log_probabilities(estimator: Any, X: Any) -> Array:
    """Return the log probabilities of the classes, shape (n, K)."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(X))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba, and the plot shows "
            "probabilities: wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    with np.errstate(divide="ignore"):
        return np.log(estimator.predict_proba(X))


@dataclass(frozen=True)
class Plane:
    """Rows in a plane, and probabilities of the classes at its points.

    Attributes
    ----------
    names : labels of the axes
    points : (n, 2) positions of the rows
    log_probabilities : maps points (m, 2) to log probabilities (m, K)
    note : what is fixed in the plane, if anything
    """

    names: tuple[str, str]
    points: Array
    log_probabilities: Callable[[Array], Array]
    note: str = ""


def plane_of(estimator: Any, X: Any) -> Plane:
    """Return the plane of the two columns of X, or of two discriminants of more."""
    if np.shape(X)[1] != 2:
        return _discriminant_plane(estimator, X)

    def log_probabilities(points: Array) -> Array:
        rows = _table_like(points, X)
        return _log_probabilities(estimator, rows)

    first, second = _column_names(X)
    points = np.asarray(X, dtype=np.float64)
    return Plane((first, second), points, log_probabilities)


def _discriminant_plane(estimator: Any, X: Any) -> Plane:
    """Return the plane of the two discriminants that separate the classes best.

    Two classes have one discriminant: the second axis is then what varies most besides
    it.
    """
    lda, before = final_step(estimator)
    _check_has_discriminants(lda)
    rows = before(X)
    n_features = np.shape(rows)[1]
    if n_features < 2:
        raise ValueError(
            f"A plane needs two features, and {type(lda).__name__} has {n_features}: "
            "draw a histogram of the rows instead."
        )
    with warnings.catch_warnings():
        # Means have no feature names.
        warnings.simplefilter("ignore", UserWarning)
        class_points = np.asarray(lda.transform(lda.means_), dtype=np.float64)
    n_discriminants = class_points.shape[1]
    points = np.asarray(lda.transform(rows))
    names = ("First discriminant", "Second discriminant")
    if n_discriminants == 1:
        names = ("Discriminant", "Largest remaining variation")
        points = np.column_stack([points, _remaining_variation(rows, points)])

    def log_probabilities(points: Array) -> Array:
        # Further discriminants are at their means. The remaining variation is not a
        # discriminant: it does not tell classes apart.
        coordinates = np.tile(lda.priors_ @ class_points, (len(points), 1))
        coordinates[:, :2] = points[:, :n_discriminants]
        # In discriminant coordinates classes are spheres of variance 1. Differences
        # have the shape (points, classes, discriminants).
        differences = coordinates[:, None, :] - class_points
        squared_distances = (differences**2).sum(axis=2)
        # A prior may be 0.
        with np.errstate(divide="ignore"):
            log_priors = np.log(lda.priors_)
        return np.asarray(log_softmax(log_priors - squared_distances / 2, axis=1))

    note = "other discriminants at their means" if n_discriminants > 2 else ""
    return Plane(names, points[:, :2], log_probabilities, note)


def _check_has_discriminants(lda: Any) -> None:
    """Raise ValueError if a classifier is not a linear discriminant analysis."""
    for name in ("transform", "means_", "priors_"):
        if not hasattr(lda, name):
            raise ValueError(
                f"{type(lda).__name__} has no {name}, and discriminants are those of a "
                "linear discriminant analysis. DecisionBoundaryDisplay draws any "
                "classifier of two columns."
            )


def _remaining_variation(rows: Any, points: Array) -> Array:
    """Return the first principal component (n, 1) of what points do not explain."""
    numbers = np.asarray(rows, dtype=np.float64)
    standardized = StandardScaler().fit_transform(numbers)
    regression = LinearRegression().fit(points, standardized)
    remainder = standardized - regression.predict(points)
    return np.asarray(PCA(1).fit_transform(remainder))


def _column_names(X: Any) -> list[str]:
    """Return the names of the columns of X, or "Feature 0" and so on."""
    # pyarrow has ``column_names``; pandas and polars have ``columns``.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        n_columns = np.shape(X)[1]
        names = [f"Feature {column}" for column in range(n_columns)]
    return [str(name) for name in names]


def _table_like(rows: Array, X: Any) -> Any:
    """Return rows in a table like X, so that column names are checked as for X."""
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return type(X)(rows, columns=X.columns)
    if package == "polars":
        return type(X)(rows, schema=X.columns)
    if package == "pyarrow":
        return type(X).from_arrays(list(rows.T), names=X.column_names)
    return rows
