"""Warnings about a fit, and bounds of its gain on supervised LDA.

Every check yields the warnings that it finds, and ``warn`` shows them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

from .._core import AnyArray, Array
from .._core.gaussian import Gaussians
from .._core.problem import WITHIN_TOLERANCE, Problem, SphericalProblem
from .._core.rowspace import FeatureSpace
from .._core.solvers import Outcome
from .._core.solvers.supervised import Gains
from .._messages import (
    DegenerateFitWarning,
    NoUnlabeledRowsWarning,
    Text,
    plural,
    say,
    warn,
)
from .._rows.checks import column_of
from .labels import plain, split_marker

_SHIFT_PROBABILITY = 1e-6
_LEAST_SHIFT = 5.0  # standard deviations within classes
_FEW_LABELS = 2  # for every direction: more of them keep a fit from degenerating
_MOST_NAMES = 5  # constant columns that are named
_LOST = 0.1  # share of the unlabeled rows of a class, over that of the labeled ones
_NO_CHANGE = 1e-9  # of the log likelihood per row: smaller changes are rounding
_MOST_FEATURES = 1_000  # for which a fit to a table computes bounds
_FRAMES_TO_SCORER = (
    12  # frames between ``predict`` and a scorer, with pipelines and searches
)
_UNLIKELY = 1e-3  # probability that so many rows of a class are labeled ones by chance


class NotConvergedWarning(ConvergenceWarning):
    """A fit stopped before it converged. ``outcome`` is ``outcome_`` of the classifier.

    "max_iterations": after ``max_iter`` rounds; "many_classes": after fewer, because so many
    classes take too long; "not_found": after fewer, because every step takes long; "stalled": no
    step reduces the gap any more; "unbounded": the likelihood has no maximum.
    """

    def __init__(self, message: str, *, outcome: str | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


def warn_of_no_unlabeled(
    name: str, unlabeled: object, supervised: str = "SupervisedLDA"
) -> None:
    """A semi-supervised classifier has labeled rows only."""
    message = (
        f"{name} got no unlabeled rows: the fit equals that of {supervised}. Mark rows by "
        f"y = {plain(unlabeled)!r}, or pass X_unlabeled."
    )
    warn(NoUnlabeledRowsWarning(message, estimator=name))


def warn_if_scored_wrong(unlabeled: Any) -> None:
    """A scorer of scikit-learn calls ``predict``, and its rows have unlabeled ones among them.

    It does not pass them on: they are looked for in the frames that called.
    """
    frame = sys._getframe(2)
    for _ in range(_FRAMES_TO_SCORER):
        if frame.f_back is None:
            return
        frame = frame.f_back
        is_scorer = frame.f_globals.get("__name__") == "sklearn.metrics._scorer"
        if is_scorer and "y_true" in frame.f_locals:
            if split_marker(frame.f_locals["y_true"], unlabeled)[1].any():
                _warn_of_score(repr(plain(unlabeled)))
            return


@cache  # once: scikit-learn forgets which warnings were shown in earlier folds
def _warn_of_score(marker: str) -> None:
    warn(
        f"Rows to score are unlabeled (y = {marker}), and the score counts each as wrong: pass "
        "scoring=semi_supervised_scorer('accuracy'), or any other name, from "
        "iclda.model_selection, which leaves them out."
    )


def check_span(
    variances: Array, rank: int, feature_names: AnyArray | None = None
) -> Iterator[Warning]:
    """Constant columns, and columns that are functions of others, are left out of a fit."""
    n_features, constant = len(variances), np.flatnonzero(variances == 0)
    if rank == n_features:
        return
    shown = [column_of(int(column), feature_names) for column in constant[:_MOST_NAMES]]
    named = [part for column in shown for part in (", ", column)][1:]
    if len(constant) > _MOST_NAMES:
        named.append(f" and {len(constant) - _MOST_NAMES} more")
    if named:
        named.append(" are constant" if len(constant) > 1 else " is constant")
    n_others, others = n_features - len(constant), ""
    if rank < n_others:
        others = (
            f"{'; the other' if named else 'the'} {n_others} columns are worth {rank} only (some "
            "can be computed from others, or rows are too few)"
        )
    message = say(
        "Rows span {rank} of {n_features} dimensions: {constant}{others}. The fit is made in those "
        "dimensions and ignores the rest.",
        rank=rank,
        n_features=n_features,
        constant=Text(*named),
        others=others,
    )
    yield UserWarning(message)


def check_unlabeled_mean(
    problem: Problem, space: FeatureSpace, feature_names: AnyArray | None = None
) -> Iterator[Warning]:
    """The mean of the unlabeled rows is one that no class of labeled rows would explain."""
    labeled, total = problem.labeled, problem.moments
    freedom = labeled.weight - problem.n_classes
    if freedom <= 0 or total.weight <= labeled.weight:
        return
    share = labeled.weight / total.weight
    mean = (total.mean - share * labeled.moments.mean) / (1 - share)
    mean = space.points(mean[None])[0]
    deviation = np.sqrt(np.maximum(space.variances(labeled.within), 0) / freedom)
    quantile = student.isf(_SHIFT_PROBABILITY / len(deviation), freedom)
    means = space.points(labeled.means)
    low, high = means.min(axis=0), means.max(axis=0)
    outside = np.maximum(low - mean, mean - high)
    # A spread that is only rounding makes any distance look large.
    has_spread = deviation**2 > WITHIN_TOLERANCE * space.variances(total.covariance)
    is_far = (outside > max(quantile, _LEAST_SHIFT) * deviation) & has_spread
    if not is_far.any():
        return
    column = int(
        np.argmax(np.where(is_far, outside / np.where(is_far, deviation, 1.0), 0))
    )
    restore = space.frame.restore
    message = say(
        "The unlabeled rows seem to come from elsewhere: the mean of {column} is {mean:.4g} among "
        "them, but {low:.4g} to {high:.4g} in the labeled classes, whose standard deviation is "
        "{deviation:.3g}. Compare with supervised LDA.",
        column=column_of(column, feature_names),
        mean=restore(mean)[column],
        low=restore(low)[column],
        high=restore(high)[column],
        deviation=deviation[column] * space.frame.scale[column],
    )
    yield UserWarning(message)


def check_lost_class(
    name: str, problem: Problem, class_weights: Array, classes: AnyArray
) -> Iterator[Warning]:
    """A class gets hardly any unlabeled row although it has a fair share of the labels."""
    labeled, total = problem.labeled, problem.moments.weight
    if labeled.n_rows > _FEW_LABELS * problem.rank:
        return
    known = labeled.counts / labeled.weight
    unlabeled = (class_weights * total - labeled.counts) / (total - labeled.weight)
    n_unlabeled = problem.unlabeled.n_rows
    n_known, n_given = np.rint(known * labeled.n_rows), np.rint(unlabeled * n_unlabeled)
    n_rows = labeled.n_rows + n_unlabeled
    chance = hypergeom.sf(n_known - 1, n_rows, n_known + n_given, labeled.n_rows)
    fair = (
        known
        if problem.log_priors is None
        else np.minimum(known, np.exp(problem.log_priors))
    )
    is_lost = (
        (unlabeled < _LOST * fair) & (fair >= 0.5 / len(fair)) & (chance < _UNLIKELY)
    )
    if not is_lost.any():
        return
    lost = int(np.argmin(np.where(is_lost, unlabeled / known, np.inf)))
    label, share = plain(classes[lost]), max(0.0, float(unlabeled[lost]))
    message = say(
        "{name} has degenerated: it gives {percent:.2g} % of the unlabeled rows to class "
        "{label!r}, which has {n:.0f} of the {n_rows} labeled rows. Pass {@proportions=auto}, "
        "or the shares of the classes if they are known; or compare with supervised LDA.",
        name=name,
        percent=100 * share,
        label=label,
        n=n_known[lost],
        n_rows=labeled.n_rows,
    )
    yield DegenerateFitWarning(message, label=label, share=share)


def unbounded_warning(
    name: str, problem: Problem, model: Gaussians, feature_names: AnyArray | None
) -> NotConvergedWarning:
    """Every row of a class has the same value in some direction: there is no maximum."""
    if isinstance(problem, SphericalProblem):
        reason = Text("all rows (nearly) coincide with the means of their classes")
        way_out = Text("use more rows")
    elif problem.is_unbounded and not model.is_floored:
        reason = say(
            "{n} rows are too few for {rank} columns, so that every labeling separates them",
            n=problem.labeled.n_rows + problem.unlabeled.n_rows,
            rank=problem.whitening.rank,
        )
        way_out = say("pass {@shrinkage}, for example 0.1 or 'auto', or drop columns")
    else:
        # The standardized coordinate in which the class means lie furthest apart.
        sharpest = int(np.argmax(np.ptp(model.class_points, axis=0)))
        share = np.abs(model.projection[sharpest]) * np.sqrt(
            np.maximum(model.variances, 0)
        )
        column = int(np.argsort(-share)[0])
        mix = "" if share[column] > 0.9 * share.sum() else "a mix of columns, first "
        column_name = column_of(column, feature_names)
        reason = Text(
            mix, column_name, " takes (nearly) one value per class on all rows"
        )
        way_out = say(
            "pass {@shrinkage}, for example 0.1 or 'auto', or drop the column"
        )
    message = say(
        "{name}: {reason}, so the likelihood has no maximum. Probabilities will be 0 or 1: "
        "{way_out}.",
        name=name,
        reason=reason,
        way_out=way_out,
    )
    return NotConvergedWarning(message, outcome=Outcome.UNBOUNDED.name.lower())


@dataclass(frozen=True)
class GainBounds(Gains):
    """Changes from the supervised fit to this one, over all labelings of the unlabeled rows.

    ``worst``, ``best`` and ``expected`` are changes of the log likelihood of all rows, labeled and
    unlabeled, per unit of weight: the smallest and the largest that any labeling gives, and the one
    under the fit's own posteriors. ``disagreement`` is the share of the unlabeled rows to which
    both classifiers give different classes: the error on them differs by no more than that.
    """

    n_unlabeled: int

    @property
    def is_safe(self) -> bool:
        """Whether no labeling of the unlabeled rows lowers the log likelihood."""
        return self.worst >= -_NO_CHANGE

    @property
    def sentence(self) -> str:
        """The bounds for a reader who knows neither the method nor the formulas."""
        if not self.n_unlabeled:
            return "There are no unlabeled rows, so that the fit is the supervised one."
        rows = plural(self.n_unlabeled, "unlabeled row")
        if self.disagreement <= _NO_CHANGE:
            mistakes = f"This fit and supervised LDA classify the {rows} alike"
        else:
            share = f"{100 * self.disagreement:.1f}"
            mistakes = (
                f"Of the {rows}, this fit may get up to {share} % more wrong than supervised LDA, "
                f"or up to {share} % fewer: so many get another class"
            )
        return f"{mistakes}. {self._likelihood}"

    @property
    def _likelihood(self) -> str:
        """Which of both fits has the higher likelihood, and that this does not count mistakes."""
        if max(abs(self.worst), abs(self.best)) <= _NO_CHANGE:
            return "Both have the same likelihood."
        if not (self.is_safe or self.best <= _NO_CHANGE):
            return (
                "Which of both has the higher likelihood depends on the true classes."
            )
        than, other = ("higher", "more") if self.is_safe else ("lower", "fewer")
        mistakes = f", which may come with {other} mistakes all the same"
        return (
            f"Whatever their true classes are, its likelihood is {than} than that of supervised "
            f"LDA{mistakes if self.disagreement > _NO_CHANGE else ''}."
        )

    def __str__(self) -> str:
        return self.sentence


def safety_bounds(classifier: Any, X: Any, y: Any) -> GainBounds | None:
    """The bounds of a fit; None where they say nothing or cannot be had."""
    find_bounds = getattr(classifier, "gain_bounds", None)
    if find_bounds is None or not getattr(classifier, "_uses_unlabeled_rows", False):
        return None
    if (
        classifier.n_features_in_ > _MOST_FEATURES
    ):  # takes matrices of features x features
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has given them
            found: GainBounds = find_bounds(X, y)
    except (
        ValueError
    ):  # the rows were fitted: there is no supervised fit to compare with
        return None
    return found if found.n_unlabeled else None
