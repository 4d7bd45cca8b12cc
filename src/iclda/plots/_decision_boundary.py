"""Where the classes meet, with labeled and unlabeled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.types import AnyArray, Array
from ._look import (
    FAINT,
    axes_for,
    class_color,
    class_marker,
    foreground,
    legend_beside,
    mix,
    note,
    plain_text,
    unlabeled_handle,
)
from ._planes import log_probabilities_of, plane_of
from ._regions import draw_lines, shade
from ._rows import UNLABELED, ShownRows, encode, final_step, shown_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 2_000
_MARGIN = 0.06  # of the range of the rows, around them


class DecisionBoundaryDisplay:
    """Regions of a classifier in a plane, its labeled rows, and the labels of the unlabeled ones.

    Make one by ``from_estimator`` or ``from_predictions``; ``plot`` draws it again.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Places of all rows in the plane.
    codes : ndarray of shape (n_samples,)
        Number of the class of every row, -1 for an unlabeled one.
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

    def __init__(
        self,
        *,
        points: Array,
        codes: AnyArray,
        classes: AnyArray,
        responsibilities: Array | None = None,
        grid: tuple[Array, Array] | None = None,
        log_probabilities: Array | None = None,
        names: tuple[str, str] | None = None,
        held: str = "",
    ) -> None:
        self.points = points
        self.codes = codes
        self.classes = classes
        self.responsibilities = responsibilities
        self.grid = grid
        self.log_probabilities = log_probabilities
        self.names = names
        self.held = held

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        X_unlabeled: Any = None,
        features: Any = None,
        responsibilities: Any = "auto",
        unlabeled: Any = "auto",
        grid_resolution: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted classifier and rows.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; a pipeline too.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Their classes, or the marker; None: all unlabeled.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further unlabeled rows.
        features : pair of int or str, "discriminants" or None, default=None
            The plane: two columns, the others held at their means; or the two discriminants that
            separate the classes best (for two classes, the discriminant and what varies most
            besides it). None: the two columns if there are two, otherwise the discriminants.
        responsibilities : array-like of shape (n_unlabeled, n_classes) or None, default="auto"
            Shares of the unlabeled rows in the classes, those of X first. "auto": the imputed
            labels where the classifier has them, otherwise its probabilities; None: rows in gray.
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
            What was drawn.
        """
        shown = shown_rows(estimator, X, y, X_unlabeled, unlabeled)
        plane = plane_of(estimator, shown.parts[0], features)
        points = shown.collect(plane.coordinates)
        across, up = _axis(points[:, 0], grid_resolution), _axis(points[:, 1], grid_resolution)
        places = np.stack(np.meshgrid(across, up), axis=-1)
        display = cls(
            points=points,
            codes=shown.codes,
            classes=shown.classes,
            responsibilities=_responsibilities(estimator, shown, responsibilities),
            grid=(across, up),
            log_probabilities=plane.log_probabilities(places.reshape(-1, 2)).reshape(
                *places.shape[:2], -1
            ),
            names=plane.names,
            held=plane.held,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        y: Any,
        responsibilities: Any = None,
        *,
        classes: Any = None,
        unlabeled: Any = -1,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows of two features and given labels, without a classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, 2)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes, or the marker.
        responsibilities : array-like of shape (n_unlabeled, n_classes), default=None
            Shares of the unlabeled rows in the classes; None: rows in gray.
        classes : array-like of shape (n_classes,), default=None
            The classes, in the order of the shares; None: those in y, sorted.
        unlabeled : object, default=-1
            Marker of unlabeled rows in y.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : DecisionBoundaryDisplay
            What was drawn.
        """
        from .._estimators.labels import split_marker

        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(
                f"X must have two columns, the places of the rows, got {points.shape}."
            )
        classes = np.unique(split_marker(y, unlabeled)[0]) if classes is None else classes
        codes = encode(y, np.asarray(classes), unlabeled)
        if responsibilities is not None:
            shape = ((codes == UNLABELED).sum(), len(classes))
            responsibilities = _checked(responsibilities, shape)
        display = cls(
            points=points,
            codes=codes,
            classes=np.asarray(classes),
            responsibilities=responsibilities,
        )
        return display.plot(ax=ax, **kwargs)

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
            Passed to ``Axes.imshow`` for the shading; ``alpha`` is that of a sure class.

        Returns
        -------
        display : DecisionBoundaryDisplay
            Itself.
        """
        ax = axes_for(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.surface_, self.boundaries_ = None, []
        if self.grid is not None and self.log_probabilities is not None:
            self.surface_ = shade(ax, self.grid, self.log_probabilities, kwargs)
            self.boundaries_ = draw_lines(ax, self.grid, self.log_probabilities, boundary_kw or {})
        self.unlabeled_ = self._draw_unlabeled(unlabeled_kw or {})
        self.labeled_ = self._draw_labeled(labeled_kw or {})
        if self.names is not None:
            ax.set(xlabel=plain_text(self.names[0]), ylabel=plain_text(self.names[1]))
        if self.held:
            note(ax, self.held)
        if legend:
            legend_beside(ax, [*self.labeled_.values(), unlabeled_handle(self.unlabeled_)])
        return self

    def _draw_unlabeled(self, kwargs: dict[str, Any]) -> Any:
        points = self.points[self.codes == UNLABELED]
        if len(points) == 0:
            return None
        style: dict[str, Any] = {"s": 9, "linewidths": 0, "label": "unlabeled", "zorder": 1}
        # Thousands of dots as pixels: a tenth of the size in a vector file.
        style["rasterized"] = len(points) > _MANY
        style["color"] = FAINT if self.responsibilities is None else mix(self.responsibilities)
        return self.ax_.scatter(points[:, 0], points[:, 1], **{**style, **kwargs})

    def _draw_labeled(self, kwargs: dict[str, Any]) -> dict[Any, Any]:
        drawn = {}
        for code, name in enumerate(self.classes.tolist()):
            points = self.points[self.codes == code]
            style = {
                "s": 36,
                "marker": class_marker(code),
                "color": class_color(code),
                "edgecolor": foreground(),
                "linewidths": 0.9,
                "label": plain_text(name),
                "zorder": 3,
                **kwargs,
            }
            if len(points):
                drawn[name] = self.ax_.scatter(points[:, 0], points[:, 1], **style)
        return drawn


def _axis(values: Array, n_points: int) -> Array:
    if not isinstance(n_points, (int, np.integer)) or n_points < 2:
        raise ValueError(f"grid_resolution must be a whole number of at least 2, got {n_points!r}.")
    # A pipeline that imputes takes rows with gaps: they have no place in the plane.
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, n_points)


def _responsibilities(estimator: Any, shown: ShownRows, given: Any) -> Array | None:
    is_unlabeled = shown.codes == UNLABELED
    if given is None or not is_unlabeled.any():
        return None
    if not isinstance(given, str):
        return _checked(given, (int(is_unlabeled.sum()), len(shown.classes)))
    if given != "auto":
        raise ValueError(f'responsibilities must be an array, "auto" or None, got {given!r}.')
    final, before = final_step(estimator)
    if hasattr(final, "impute"):
        return shown.collect(lambda X: final.impute(before(X)))[is_unlabeled]
    return np.exp(shown.collect(lambda X: log_probabilities_of(estimator, X))[is_unlabeled])


def _checked(responsibilities: Any, shape: tuple[int, int]) -> Array:
    array = np.asarray(responsibilities, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"responsibilities must hold {shape[0]} rows, the unlabeled ones, with {shape[1]} "
            f"shares each, one a class; got shape {array.shape}."
        )
    return array
