"""Observed against predicted probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from .._estimators.labels import UNLABELED
from .._statistics import ReliabilityCurve, bin_sums
from ..methods import FAINT
from ..model_selection._splitters import check_count
from . import _look
from ._look import LABEL_SIZE, Axes, Display, encode_shown, estimators_by_name, plain_text

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_PREDICTED = "the predicted class"


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
        estimators = estimators_by_name(estimator)
        first = next(iter(estimators.values()))
        known = {name: np.asarray(one.classes_).tolist() for name, one in estimators.items()}
        if any(classes != list(first.classes_) for classes in known.values()):
            raise ValueError(f"Classifiers must know the same classes, got {known}.")
        codes, _ = encode_shown(first, X, y, unlabeled)
        kept = np.flatnonzero(codes != UNLABELED)
        if len(kept) == 0:
            raise ValueError(f"y labels none of the {len(codes)} rows, and classes must be known.")
        is_arrow = type(X).__module__.startswith("pyarrow")
        rows = X.take(kept) if is_arrow else _safe_indexing(X, kept)
        truth, classes = codes[kept], np.asarray(first.classes_)
        names = classes.tolist()
        if pos_label is not None and pos_label not in names:
            raise ValueError(f"pos_label must be one of the classes {names}, got {pos_label!r}.")
        code = 1 if len(names) == 2 else None
        code = code if pos_label is None else names.index(pos_label)
        edges = np.linspace(0, 1, check_count("n_bins", n_bins, 1) + 1)
        curves = {}
        for name, one in estimators.items():
            probabilities = np.asarray(one.predict_proba(rows))
            drawn = probabilities.argmax(axis=1) if code is None else np.full(len(truth), code)
            predicted = probabilities[np.arange(len(truth)), drawn]
            sums = bin_sums(predicted, truth == drawn, edges)
            curves[name] = ReliabilityCurve.from_sums(edges, sums)
        event = _PREDICTED if code is None else f"class {plain_text(names[code])}"
        return cls(curves=curves, event=event).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, legend: bool = True, **kwargs: Any) -> Self:
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
        diagonal: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "linestyle": (0, (2, 2))}
        (self.diagonal_,) = ax.plot([0, 1], [0, 1], **diagonal)
        self.lines_: dict[str, Any] = {}
        styles = _look.method_styles(self.curves)
        for rank, (name, curve) in enumerate(self.curves.items()):
            style = {**styles[str(name)], "marker": _MARKERS[rank % len(_MARKERS)], **kwargs}
            self.lines_[name] = self._draw_curve(name, curve, style)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.03))
        ax.set_xlabel(f"Predicted probability of {self.event}")
        ax.set_ylabel("Observed share")
        if legend:
            self._draw_legend()
        return self

    def _draw_curve(self, name: str, curve: ReliabilityCurve, style: dict[str, Any]) -> Any:
        is_full = curve.counts > 0
        low, high = (end[is_full] for end in curve.interval)
        predicted, observed = curve.predicted[is_full], curve.observed[is_full]
        self.ax_.vlines(predicted, low, high, color=style["color"], linewidth=0.8, alpha=0.6)
        error = f"{curve.calibration_error:.3f}"
        label = f"{plain_text(name)}  {error}" if name else error
        style = {"markersize": 4.5, "linewidth": 1.4, "label": label, **style}
        return self.ax_.plot(predicted, observed, **style)[0]

    def _draw_legend(self) -> None:
        style: dict[str, Any] = {"loc": "best", "framealpha": 0.75, "alignment": "left"}
        style |= {"facecolor": _look.background(), "edgecolor": "none"}
        style |= {"title_fontsize": LABEL_SIZE, "fontsize": LABEL_SIZE}
        self.ax_.legend(handles=list(self.lines_.values()), title="Calibration error", **style)
