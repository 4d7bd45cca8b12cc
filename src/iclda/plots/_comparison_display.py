"""Paired differences of methods to the supervised one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._core.types import Array
from .._estimators.labels import encode_labels
from .._statistics import corrected_standard_error, mean_interval
from ..methods import FAINT
from ..model_selection._splitters import draw_seed, is_whole, marker_of
from . import _look
from ._look import Axes, Display, foreground, plain_text

_MOST_DOTS = 300  # more single differences of a method are not drawn
_FEWEST_DISTINCT = 3  # dots of so few values or fewer would cover each other
_DOT_SPREAD = 0.16  # distance of the outermost dots from the line of their method


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Mean paired differences of methods to a baseline, one line a method.

    The dot is the mean difference, the thick bar one standard error to either side, the thin bar
    its confidence interval, the faint dots the single differences. The count on the right is the
    number of them in which the method was worse than the baseline.

    Make one by ``from_scores`` or ``from_estimator``; ``plot`` draws it again.

    Parameters
    ----------
    differences : dict of ndarray
        Scores less those of the baseline in the same repeat, by method.
    baseline : str
        Name of the baseline.
    score_name : str, default="score"
        What the scores are.
    greater_is_better : bool, default=True
        Whether larger scores are better.
    unit : str, default="repeats"
        What is paired.
    intervals : dict of tuple, default=None
        Ends of confidence intervals, by method, for differences that are not independent. None: by
        Student's t, for independent ones.
    standard_errors : dict of float, default=None
        Standard errors to go with ``intervals``; None leaves the thick bars out beside them.

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
    baseline: str
    score_name: str = "score"
    greater_is_better: bool = True
    unit: str = "repeats"
    intervals: Mapping[str, tuple[float, float]] | None = None
    standard_errors: Mapping[str, float] | None = None

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, Any],
        *,
        baseline: str | None = None,
        score_name: str = "score",
        greater_is_better: bool = True,
        unit: str = "repeats",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw scores of several methods in the same repeats.

        Parameters
        ----------
        scores : dict of array-like of shape (n_repeats,)
            Scores by method, in the same order of repeats; NaN where a fit failed. For repeated
            cross-validation pass one mean a repeat: folds of one repeat are not independent.
        baseline : str, default=None
            Method the others are compared with; None: the supervised one, or else the first.
        score_name : str, default="score"
            What the scores are.
        greater_is_better : bool, default=True
            Whether larger scores are better; False for errors and losses.
        unit : str, default="repeats"
            What is paired.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : ComparisonDisplay
            Object that stores what was drawn.
        """
        baseline, differences = _pair(scores, baseline)
        return cls(
            differences=differences,
            baseline=baseline,
            score_name=score_name,
            greater_is_better=greater_is_better,
            unit=unit,
        ).plot(ax=ax, **kwargs)

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
        n_jobs: int | None = None,
        random_state: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Cross-validate classifiers on the same splits and draw their scores.

        Training sets of different splits overlap, so that differences are not independent: standard
        errors and intervals are those of the corrected resampled t-test of Nadeau and Bengio.

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

        from ..model_selection import SemiSupervisedKFold

        _look.import_matplotlib()
        if not isinstance(estimator, Mapping) or len(estimator) < 2:
            raise ValueError("estimator must be a dict of at least 2 classifiers, by name.")
        marker = marker_of(next(iter(estimator.values())))
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
        baseline, differences = _pair(scores, baseline)
        level = kwargs.get("confidence", 0.95)
        intervals = {name: mean_interval(one, level, ratio) for name, one in differences.items()}
        errors = {name: corrected_standard_error(one, ratio) for name, one in differences.items()}
        if is_repeated:
            means = {name: one.reshape(n_repeats, -1).mean(axis=1) for name, one in scores.items()}
            baseline, differences = _pair(means, baseline)
        return cls(
            differences=differences,
            baseline=baseline,
            score_name=scoring if isinstance(scoring, str) else "accuracy",
            unit="repeats" if is_repeated else "splits",
            intervals=intervals,
            standard_errors=errors,
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        confidence: float = 0.95,
        **kwargs: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        confidence : float, default=0.95
            Level of the intervals, unless they were given.
        **kwargs : dict
            Passed to ``Axes.plot`` for the dots of the means.

        Returns
        -------
        display : ComparisonDisplay
            Object that stores what was drawn.
        """
        sign = -1 if self.greater_is_better else 1
        means = {name: sign * np.mean(values) for name, values in self.differences.items()}
        self.methods_ = sorted(means, key=means.__getitem__)
        ax = self._open_axes(ax, 5.6, 1.1 + 0.5 * len(means))
        ax.axvline(0, color=foreground(), linewidth=0.8, zorder=1)
        styles = _look.method_styles(self.methods_)
        for place, name in enumerate(self.methods_):
            values = np.asarray(self.differences[name])
            if len(values) <= _MOST_DOTS and len(np.unique(values)) > _FEWEST_DISTINCT:
                self._draw_dots(place, values)
            self._draw_mean(place, name, confidence, {"color": styles[name]["color"], **kwargs})
        self._label_axes()
        return self

    def _draw_dots(self, place: int, values: Array) -> None:
        # Dots stand side by side in the order of the repeats: none is moved at random.
        shifts = _DOT_SPREAD * np.linspace(-1, 1, len(values))
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.2}
        style |= {"markeredgewidth": 0, "color": FAINT, "alpha": 0.7, "zorder": 1.5}
        self.ax_.plot(values, place + shifts, **style)

    def _draw_mean(self, place: int, name: str, confidence: float, style: dict[str, Any]) -> None:
        values = self.differences[name]
        mean, ends = np.mean(values), mean_interval(values, confidence)
        error = corrected_standard_error(values)
        if self.intervals:
            ends, error = self.intervals[name], (self.standard_errors or {}).get(name, np.nan)
        bar: dict[str, Any] = {"color": style["color"], "zorder": 2}
        self.ax_.plot(ends, [place, place], linewidth=1.1, **bar)
        if np.isfinite(error):
            bar |= {"linewidth": 3.2, "solid_capstyle": "butt"}
            self.ax_.plot([mean - error, mean + error], [place, place], **bar)
        style = {"linestyle": "none", "marker": "o", "markersize": 6.5, "zorder": 3, **style}
        self.ax_.plot([mean], [place], label=plain_text(name), **style)

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
        ax.set_xlabel(f"{name} minus that of {baseline}   ({directions})")


def _pair(scores: Mapping[str, Any], baseline: str | None) -> tuple[str, dict[str, Array]]:
    """Return the baseline, and the finite differences to it by method."""
    values = {str(name): np.asarray(one, dtype=np.float64) for name, one in scores.items()}
    if len(values) < 2:
        raise ValueError(f"There must be at least 2 methods to compare, got {list(values)}.")
    if baseline is None:
        baseline = next(filter(_look.is_supervised, values), next(iter(values)))
    if baseline not in values:
        raise ValueError(f"baseline must be one of {list(values)}, got {baseline!r}.")
    differences = {}
    reference = values.pop(baseline)
    for name, one in values.items():
        if reference.ndim != 1 or one.shape != reference.shape:
            raise ValueError(
                "scores must hold one number a repeat for every method; "
                f"{baseline!r} has shape {reference.shape}, {name!r} has shape {one.shape}."
            )
        difference = one - reference
        differences[name] = difference[np.isfinite(difference)]
        if differences[name].size == 0:
            raise ValueError(
                f"{name!r} has no finite score in a repeat in which {baseline!r} has one."
            )
    return baseline, differences
