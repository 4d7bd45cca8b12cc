"""How much better or worse methods are than the supervised one, repeat by repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.types import Array
from .._statistics import corrected_standard_error, mean_interval
from ._cross_validation import cross_validate_all
from ._look import (
    FAINT,
    LABEL_SIZE,
    axes_for,
    check_matplotlib,
    foreground,
    method_lines,
    plain_text,
    readable,
)
from ._paired import PairedDifference, pair
from ._rows import known_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CONFIDENCE = 0.95
_MANY = 300  # differences of one method that are worth a dot each
_SPREAD = 0.16  # of these dots about the line of their method


class ComparisonDisplay:
    """Mean paired differences of methods to a baseline, one line a method.

    The dot is the mean difference, the thick bar one standard error to either side, the thin bar
    its confidence interval, the faint dots the single differences. On the right: in how many of
    them the method was worse than the baseline.

    Make one by ``from_scores``, ``from_predictions`` or ``from_estimator``; ``plot`` draws it
    again.

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
        Ends of confidence intervals, by method, where it is known how the differences depend on
        each other. None: by Student's t, as if they were independent.
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
    differences_ : dict of PairedDifference
        By method: ``mean``, ``n_worse``, and ``standard_error`` and ``interval(confidence)`` as if
        differences were independent.
    """

    def __init__(
        self,
        *,
        differences: Mapping[str, Array],
        baseline: str,
        score_name: str = "score",
        greater_is_better: bool = True,
        unit: str = "repeats",
        intervals: Mapping[str, tuple[float, float]] | None = None,
        standard_errors: Mapping[str, float] | None = None,
    ) -> None:
        self.differences = differences
        self.baseline = baseline
        self.score_name = score_name
        self.greater_is_better = greater_is_better
        self.unit = unit
        self.intervals = intervals
        self.standard_errors = standard_errors

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
            Scores by method, in the same order of repeats; NaN where a fit failed. Of repeated
            cross-validation give one mean a repeat: folds of one repeat are not independent.
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
            What was drawn.
        """
        baseline, differences = pair(scores, baseline)
        display = cls(
            differences=differences,
            baseline=baseline,
            score_name=score_name,
            greater_is_better=greater_is_better,
            unit=unit,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Mapping[str, Any],
        *,
        baseline: str | None = None,
        unlabeled: Any = -1,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the errors of several methods on the same rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes of the rows; rows with the marker are left out.
        y_pred : dict of array-like of shape (n_samples,)
            Predicted classes, by method.
        baseline : str, default=None
            Method the others are compared with; None: the supervised one, or else the first.
        unlabeled : object, default=-1
            Marker of unlabeled rows in y_true.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        **kwargs : dict
            Passed to ``plot``.

        Returns
        -------
        display : ComparisonDisplay
            What was drawn.
        """
        truth, kept = known_rows(y_true, unlabeled)
        for name, predicted in y_pred.items():
            if np.shape(predicted) != kept.shape:
                raise ValueError(
                    f"y_pred must hold the predicted class of each of the {len(kept)} rows of "
                    f"y_true; {name!r} has shape {np.shape(predicted)}."
                )
        errors = {name: np.asarray(one)[kept] != truth for name, one in y_pred.items()}
        return cls.from_scores(
            errors,
            baseline=baseline,
            score_name="error",
            greater_is_better=False,
            unit="rows",
            ax=ax,
            **kwargs,
        )

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
        """Cross-validate classifiers on the same splits, and draw that.

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
            What was drawn.
        """
        check_matplotlib()
        if not isinstance(estimator, Mapping) or len(estimator) < 2:
            raise ValueError("estimator must be a dict of at least 2 classifiers, by name.")
        found = cross_validate_all(
            estimator, X, y, cv, n_repeats, random_state, scoring=scoring, n_jobs=n_jobs
        )
        level = kwargs.get("confidence", _CONFIDENCE)
        baseline, differences = pair(found.scores, baseline)
        display = cls(
            differences=pair(found.of_units(), baseline)[1],
            baseline=baseline,
            score_name=scoring if isinstance(scoring, str) else "accuracy",
            unit="splits" if found.n_repeats is None else "repeats",
            intervals={
                name: mean_interval(one, level, found.ratio) for name, one in differences.items()
            },
            standard_errors={
                name: corrected_standard_error(one, found.ratio)
                for name, one in differences.items()
            },
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        confidence: float = _CONFIDENCE,
        dots: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: new ones.
        confidence : float, default=0.95
            Level of the intervals, unless they were given.
        dots : bool, default=None
            Whether to draw the single differences; None: where they are few enough to tell apart.
        **kwargs : dict
            Passed to ``Axes.plot`` for the dots of the means.

        Returns
        -------
        display : ComparisonDisplay
            Itself.
        """
        ax = axes_for(ax, 5.6, 1.1 + 0.5 * len(self.differences))
        self.ax_, self.figure_ = ax, ax.figure
        self.differences_ = {
            name: PairedDifference(np.asarray(values), self.greater_is_better)
            for name, values in self.differences.items()
        }
        self.methods_ = sorted(self.differences_, key=lambda name: -self.differences_[name].gain)
        ax.axvline(0, color=foreground(), linewidth=0.8, zorder=1)
        styles = method_lines(self.methods_)
        dots = any(map(_can_be_told_apart, self.differences.values())) if dots is None else dots
        for place, name in enumerate(self.methods_):
            if dots:
                self._draw_dots(place, name)
            style = {"color": styles[name]["color"], **kwargs}
            self._draw_mean(place, name, confidence, style)
        self._draw_words()
        return self

    def _draw_dots(self, place: int, name: str) -> None:
        values = self.differences[name]
        # Side by side in the order of the repeats: no dot is moved at random.
        shifts = _SPREAD * np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1)
        self.ax_.plot(
            values, place + shifts, linestyle="none", marker="o", markersize=3.2,
            markeredgewidth=0, color=FAINT, alpha=0.7, zorder=1.5,
        )  # fmt: skip

    def _draw_mean(self, place: int, name: str, confidence: float, style: dict[str, Any]) -> None:
        found, color = self.differences_[name], style["color"]
        mean, error, places = found.mean, found.standard_error, [place, place]
        ends = found.interval(confidence)
        if self.intervals:
            ends, error = self.intervals[name], (self.standard_errors or {}).get(name, np.nan)
        self.ax_.plot(ends, places, color=color, linewidth=1.1, zorder=2)
        if np.isfinite(error):
            bar: dict[str, Any] = {"linewidth": 3.2, "solid_capstyle": "butt", "zorder": 2}
            self.ax_.plot([mean - error, mean + error], places, color=color, **bar)
        style = {"linestyle": "none", "marker": "o", "markersize": 6.5, "zorder": 3, **style}
        self.ax_.plot([mean], [place], label=plain_text(name), **style)

    def _draw_words(self) -> None:
        ax = self.ax_
        for place, name in enumerate(self.methods_):
            ax.annotate(
                f"{self.differences_[name].n_worse:,} of {len(self.differences[name]):,}",
                xy=(1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=LABEL_SIZE,
                annotation_clip=False,
            )
        ax.annotate(
            f"{self.unit}\nworse",
            xy=(1.02, -0.62),
            xycoords=("axes fraction", "data"),
            va="bottom",
            fontsize=LABEL_SIZE,
            color=FAINT,
            annotation_clip=False,
        )
        ax.set_yticks(range(len(self.methods_)), list(map(plain_text, self.methods_)))
        ax.set_ylim(len(self.methods_) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["left", "top", "right"]].set_visible(False)
        ax.grid(axis="y", color=FAINT, linewidth=0.4, alpha=0.4)
        ax.set_axisbelow(True)
        ax.locator_params(axis="x", nbins=6)  # more numbers of four digits would touch
        better, worse = "\N{LEFTWARDS ARROW} better", "worse \N{RIGHTWARDS ARROW}"
        if self.greater_is_better:
            better, worse = "\N{LEFTWARDS ARROW} worse", "better \N{RIGHTWARDS ARROW}"
        name, baseline = readable(self.score_name), plain_text(self.baseline)
        ax.set_xlabel(f"{name} minus that of {baseline}   ({better}, {worse})")


def _can_be_told_apart(values: Array) -> bool:
    return len(values) <= _MANY and len(np.unique(values)) > 3
