"""Paired differences of methods to the supervised one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._core.types import Array
from .._estimators.labels import encode_labels
from .._statistics import mean_interval
from ..methods import FAINT
from ..model_selection._splitters import SemiSupervisedKFold, draw_seed, is_whole, marker_of
from . import _look
from ._look import Axes, Display, foreground, plain_text

_MOST_DOTS = 300  # more single differences of a method are not drawn
_FEWEST_DISTINCT = 3  # dots of so few values or fewer would cover each other
_DOT_SPREAD = 0.16  # distance of the outermost dots from the line of their method


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Mean paired differences of methods to a baseline, one line a method.

    The dot is the mean difference, the bar its confidence interval, the faint dots the single
    differences. The count on the right is the number of them in which the method was worse than
    the baseline.

    Make one by ``from_estimator``; ``plot`` draws it again.

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
    unit : str, default="repeats"
        What is paired.

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
    unit: str = "repeats"

    @classmethod
    def from_estimator(
        cls,
        estimator: Mapping[str, Any],
        X: Any,
        y: Any,
        *,
        baseline: str | None = None,
        cv: Any = 5,
        n_repeats: int = 10,
        scoring: Any = None,
        confidence: float = 0.95,
        n_jobs: int | None = None,
        random_state: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Cross-validate classifiers on the same splits and draw their scores.

        Training sets of different splits overlap, so that differences are not independent:
        intervals are those of the corrected resampled t-test of Nadeau and Bengio.

        Parameters
        ----------
        estimator : dict of classifiers
            Classifiers, by name.
        X : array-like of shape (n_samples, n_features)
            Rows, labeled and unlabeled.
        y : array-like of shape (n_samples,)
            Class of every row, or the marker. Unlabeled rows train and are never scored.
        baseline : str, default=None
            Method the others are compared with; None: the supervised one, or else the first.
        cv : int, splitter or iterable, default=5
            An int is the number of folds of ``iclda.model_selection.SemiSupervisedKFold``; the mean
            over the folds of a repeat is one score. With a splitter every split is one score.
        n_repeats : int, default=10
            Number of repeats, if ``cv`` is an int.
        scoring : str or callable, default=None
            As in scikit-learn; None: accuracy.
        confidence : float, default=0.95
            Level of the intervals.
        n_jobs : int, default=None
            Number of processes, as in scikit-learn.
        random_state : int, RandomState instance or None, default=None
            For the folds, if ``cv`` is an int.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : ComparisonDisplay
            Object that stores what was drawn.
        """
        from sklearn.model_selection import check_cv, cross_val_score

        _look.import_matplotlib()
        if not isinstance(estimator, Mapping) or len(estimator) < 2:
            raise ValueError("estimator must be a dict of at least 2 classifiers, by name.")
        if baseline is None:
            baseline = next(filter(_look.is_supervised, estimator), next(iter(estimator)))
        if baseline not in estimator:
            raise ValueError(f"baseline must be one of {list(estimator)}, got {baseline!r}.")
        marker = marker_of(estimator[baseline])
        is_repeated = is_whole(cv)
        if is_repeated:
            seed = draw_seed(random_state)
            cv = SemiSupervisedKFold(cv, n_repeats=n_repeats, unlabeled=marker, random_state=seed)
        splits = list(check_cv(cv).split(X, y))
        # Unlabeled rows are the same in every split: only labeled ones make splits differ.
        is_labeled = encode_labels(y, marker).is_labeled
        ratio = float(np.mean([len(test) / is_labeled[train].sum() for train, test in splits]))
        scores: dict[str, Any] = {
            name: cross_val_score(one, X, y, cv=splits, scoring=scoring, n_jobs=n_jobs)
            for name, one in estimator.items()
        }
        reference = scores.pop(baseline)
        paired = {name: one - reference for name, one in scores.items()}
        unit = (n_repeats, -1) if is_repeated else (len(splits), 1)
        return cls(
            differences={
                name: _finite(one.reshape(unit).mean(axis=1)) for name, one in paired.items()
            },
            intervals={
                name: mean_interval(_finite(one), confidence, ratio) for name, one in paired.items()
            },
            baseline=baseline,
            score_name=scoring if isinstance(scoring, str) else "accuracy",
            unit="repeats" if is_repeated else "splits",
        ).plot(ax=ax, **kwargs)

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
        means = {name: float(np.mean(values)) for name, values in self.differences.items()}
        self.methods_ = sorted(means, key=lambda name: sign * means[name])
        ax = self._open_axes(ax, 5.6, 1.1 + 0.5 * len(means))
        ax.axvline(0, color=foreground(), linewidth=0.8, zorder=1)
        styles = _look.method_styles(self.methods_)
        for place, name in enumerate(self.methods_):
            values = np.asarray(self.differences[name])
            if len(values) <= _MOST_DOTS and len(np.unique(values)) > _FEWEST_DISTINCT:
                self._draw_dots(place, values)
            color = styles[name]["color"]
            ax.plot(self.intervals[name], [place, place], color=color, linewidth=1.6, zorder=2)
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6.5}
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
            _look.write_beside(ax, 1.02, place, f"{(values < 0).sum():,} of {len(values):,}")
        _look.write_beside(ax, 1.02, -0.62, f"{self.unit}\nworse", va="bottom", color=FAINT)
        ax.set_yticks(range(len(self.methods_)), list(map(plain_text, self.methods_)))
        ax.set_ylim(len(self.methods_) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["left", "top", "right"]].set_visible(False)
        ax.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.4)
        ax.set_axisbelow(True)
        ax.locator_params(axis="x", nbins=6)  # More numbers of four digits would touch.
        left, right = ("worse", "better") if self.greater_is_better else ("better", "worse")
        directions = f"\N{LEFTWARDS ARROW} {left}, {right} \N{RIGHTWARDS ARROW}"
        name, baseline = _look.readable(self.score_name), plain_text(self.baseline)
        ax.set_xlabel(f"{name} minus that of {baseline}\n{directions}")


def _finite(values: Array) -> Array:
    """Leave out repeats in which a fit failed."""
    return values[np.isfinite(values)]
