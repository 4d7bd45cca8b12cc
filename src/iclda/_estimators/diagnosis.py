"""Warnings about a fit, and bounds of its gain on supervised LDA.

The checks (``check_...``) yield the warnings that they find; their caller shows them
with ``warn``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom, norm
from sklearn.exceptions import ConvergenceWarning

from .._core import AnyArray, Array
from .._core.gaussian import Gaussians
from .._core.problem import WITHIN_TOLERANCE, Problem
from .._core.rowspace import FeatureSpace
from .._core.solvers import Outcome
from .._core.solvers.supervised import Gains
from .._error_estimate import NOTHING_LEARNED, BaseRate, ErrorEstimate
from .._messages import (
    DegenerateFitWarning,
    FitError,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    Text,
    percent_text,
    say,
    warn,
)
from .._rows.checks import column_of
from .fit import LabeledSpan
from .labels import plain

# The mean of the unlabeled rows lies outside of the labeled classes if that happens by
# chance with this probability at most, over all columns ...
_SHIFT_PROBABILITY = 1e-3
# ... and by at least this many standard deviations of the column.
_MIN_SHIFT_DEVIATIONS = 0.75
# With more labels than this for every direction, a fit does not degenerate.
_FEW_LABELS_PER_DIRECTION = 2
# A class is lost if its share of the unlabeled rows is below this fraction of its share
# of the labeled ones ...
_LOST_FRACTION = 0.1
# ... which is at least this fraction of an equal share ...
_COMMON_SHARE = 0.5
# ... and as many labels as it has are as unlikely as this among so few of its rows.
_LOST_PROBABILITY = 1e-3
# At most this many constant columns are named.
_MAX_NAMED_COLUMNS = 5
# A column separates the classes alone if it has this share of the direction that does.
_MIN_SHARE_OF_ONE_COLUMN = 0.9
# Smaller changes of the log likelihood per row, or of a share of rows, are rounding.
_NO_CHANGE = 1e-9
# Bounds take matrices of features x features: with more features they are left out.
_MAX_FEATURES_FOR_BOUNDS = 1_000


class NotConvergedWarning(ConvergenceWarning):
    """A fit stopped before it converged. ``outcome`` is ``outcome_`` of the classifier.

    - "max_iterations": it stopped after ``max_iter`` rounds;
    - "many_classes": after fewer rounds, because that many classes take too long;
    - "not_found": after fewer rounds, because every step takes long or gains little;
    - "stalled": no step reduces the gap any more;
    - "unfilled": the labels of rows that are read in passes miss the proportions;
    - "unbounded": the likelihood has no maximum.
    """

    def __init__(self, message: str, *, outcome: str | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


def warn_of_no_unlabeled(
    name: str, unlabeled: object, supervised: str = "SupervisedLDA"
) -> None:
    """Warn that a semi-supervised classifier has labeled rows only."""
    message = (
        f"{name} got no unlabeled rows: the fit equals that of {supervised}. Mark rows "
        f"by y = {plain(unlabeled)!r}, or pass X_unlabeled."
    )
    warn(NoUnlabeledRowsWarning(message, estimator=name))


def warn_if_nothing_learned(
    base: BaseRate, estimate: ErrorEstimate, brier: float
) -> None:
    """Warn if neither the error nor the Brier score is better than the base rate's."""
    if base.judge(estimate.error, estimate.high, brier) != NOTHING_LEARNED:
        return
    if estimate.n_rows < base.n_labels_needed:
        finding = f"{estimate.n_rows:,} labels cannot show that anything was learned"
        advice = (
            f"About {base.n_labels_needed:,} would show an error 5 percentage points "
            "lower"
        )
    else:
        finding = "Nothing was learned from these columns"
        advice = "Look for columns that say more"
    message = (
        f"{finding}: always predicting {base.majority!r} is wrong "
        f"{percent_text(base.error)} of the time, and this fit looks no better. "
        f"{advice}."
    )
    warn(NothingLearnedWarning(message, majority=base.majority, base_rate=base.error))


def check_span(
    variances: Array, rank: int, feature_names: AnyArray | None = None
) -> Iterator[Warning]:
    """Warn of what a fit drops: constant columns, and directions of hardly any spread.

    Rows differ along these by less than a millionth of the widest spread
    (``RANK_TOLERANCE`` and ``WITHIN_TOLERANCE``, of squares).
    """
    n_features = len(variances)
    if rank == n_features:
        return
    constant = np.flatnonzero(variances == 0)
    n_others = n_features - len(constant)
    others = ""
    if rank < n_others:
        begin = "; " if len(constant) else ""
        others = (
            f"{begin}along {n_others - rank} of {n_others} directions, rows differ by "
            "less than a millionth of the widest spread (a column nearly repeats "
            "others, or rows are too few)"
        )
    message = say(
        "Rows span {rank} of {n_features} dimensions: {constant}{others}. The fit uses "
        "those dimensions and drops the rest.",
        rank=rank,
        n_features=n_features,
        constant=_constant_columns(constant, feature_names),
        others=others,
    )
    yield UserWarning(message)


def _constant_columns(constant: AnyArray, feature_names: AnyArray | None) -> Text:
    """Return the words that name constant columns; none if there are none."""
    if not len(constant):
        return Text()
    named: list[Any] = []
    for column in constant[:_MAX_NAMED_COLUMNS]:
        separator = ", " if named else ""
        named += [separator, column_of(int(column), feature_names)]
    if len(constant) > _MAX_NAMED_COLUMNS:
        named.append(f" and {len(constant) - _MAX_NAMED_COLUMNS} more")
    named.append(" are constant" if len(constant) > 1 else " is constant")
    return Text(*named)


def check_labeled_span(
    name: str,
    span: LabeledSpan,
    variances: Array,
    feature_names: AnyArray | None,
    *,
    n_labeled: int,
    is_shrunk: bool,
    can_shrink: bool,
) -> Iterator[Warning]:
    """Warn of a fit to labeled rows that these do not determine.

    ``variances`` are those of the labeled rows. ``can_shrink`` says whether the
    classifier has the parameter ``shrinkage``, which is advised then.
    """
    if span.within >= span.total:
        yield from check_span(variances, span.within + span.left_out, feature_names)
        return
    way_out = Text("Label more rows")
    if can_shrink:
        way_out = say(
            "Label more rows, or pass {another}{@shrinkage}, for example 0.1",
            another="another " if is_shrunk else "",
        )
    message = say(
        "The {n} labeled rows are too few, or too alike within their classes, for "
        "these columns (they span {rank} of {needed} dimensions): {name} separates "
        "any such rows perfectly, so its probabilities will be 0 or 1. {way_out}.",
        n=n_labeled,
        rank=span.within,
        needed=span.total,
        name=name,
        way_out=way_out,
    )
    yield UserWarning(message)


def check_unlabeled_mean(
    problem: Problem, space: FeatureSpace, feature_names: AnyArray | None = None
) -> Iterator[Warning]:
    """Warn if no mix of the labeled classes explains the mean of the unlabeled rows.

    Any mix has a mean that lies, in every column, between the smallest and the largest
    mean of a class. If the labeled rows were drawn at random from all rows, the means
    of labeled and unlabeled rows differ by a few standard errors at most.
    """
    labeled = problem.labeled
    total = problem.moments
    if total.weight <= labeled.weight:
        return
    # Mean and variance of the unlabeled rows follow from those of all rows.
    share = labeled.weight / total.weight
    means = [total.mean, labeled.moments.mean]
    mean_of_all, mean_of_labeled = space.points(np.array(means))
    mean = (mean_of_all - share * mean_of_labeled) / (1 - share)
    total_variance = space.variances(total.covariance)
    labeled_variance = space.variances(labeled.moments.covariance)
    between = share * (1 - share) * (mean - mean_of_labeled) ** 2
    variance = (total_variance - share * labeled_variance - between) / (1 - share)

    # How far the mean lies outside of the labeled classes. In a column that is nearly
    # constant, few labeled rows or all of them may have the same value: hence the
    # larger of both variances.
    scale = np.sqrt(np.maximum(np.maximum(variance, labeled_variance), 0))
    class_means = space.points(labeled.means)
    low = class_means.min(axis=0)
    high = class_means.max(axis=0)
    distance_outside = np.maximum(low - mean, mean - high)
    # A spread that is only rounding makes any distance look large.
    has_spread = scale**2 > WITHIN_TOLERANCE * total_variance
    quantile = norm.isf(_SHIFT_PROBABILITY / len(scale))
    inverse_counts = 1 / labeled.n_rows + 1 / problem.unlabeled.n_rows
    n_scales = max(quantile * np.sqrt(inverse_counts), _MIN_SHIFT_DEVIATIONS)
    is_far = (distance_outside > n_scales * scale) & has_spread
    if not is_far.any():
        return

    # The message is about the column that is farthest outside.
    safe_scale = np.where(is_far, scale, 1.0)
    n_deviations = np.where(is_far, distance_outside / safe_scale, 0)
    column = int(np.argmax(n_deviations))
    restore = space.frame.restore
    message = say(
        "The unlabeled rows seem to come from elsewhere: the mean of {column} is "
        "{mean:.4g} among them, but {low:.4g} to {high:.4g} in the labeled classes "
        "(standard deviation {scale:.3g}). Compare with supervised LDA.",
        column=column_of(column, feature_names),
        mean=restore(mean)[column],
        low=restore(low)[column],
        high=restore(high)[column],
        scale=scale[column] * space.frame.scale[column],
    )
    yield UserWarning(message)


def check_lost_class(
    name: str, problem: Problem, class_weights: Array, classes: AnyArray
) -> Iterator[Warning]:
    """Warn if a class with a fair share of the labels gets hardly any unlabeled row."""
    labeled = problem.labeled
    if labeled.n_rows > _FEW_LABELS_PER_DIRECTION * problem.rank:
        return
    # Shares (K,) of the classes among the labeled rows, and those that the fit gives
    # them among the unlabeled rows.
    total_weight = problem.moments.weight
    unlabeled_weight = total_weight - labeled.weight
    if unlabeled_weight <= _NO_CHANGE * total_weight:
        # What the fit gives to rows of hardly any weight is lost in rounding.
        return
    labeled_shares = labeled.counts / labeled.weight
    unlabeled_weights = class_weights * total_weight - labeled.counts
    unlabeled_shares = unlabeled_weights / unlabeled_weight

    # A class that the priors make rare may be rare among the unlabeled rows.
    fair_shares = labeled_shares
    if problem.log_priors is not None:
        fair_shares = np.minimum(labeled_shares, np.exp(problem.log_priors))
    is_rarer = unlabeled_shares < _LOST_FRACTION * fair_shares
    is_common = fair_shares >= _COMMON_SHARE / len(fair_shares)
    chances = _chances_of_labels(problem, labeled_shares, unlabeled_shares)
    is_lost = is_rarer & is_common & (chances < _LOST_PROBABILITY)
    if not is_lost.any():
        return

    # The message is about the class with the smallest part of its share.
    ratios = np.where(is_lost, unlabeled_shares / labeled_shares, np.inf)
    lost = int(np.argmin(ratios))
    label = plain(classes[lost])
    share = max(0.0, float(unlabeled_shares[lost]))
    message = say(
        "{name} has degenerated: it gives {percent:.2g} % of the unlabeled rows to "
        "class {label!r}, which has {n:.0f} of the {n_rows} labeled rows. Pass "
        "{@proportions=auto}, or the shares of the classes if they are known; or "
        "compare with supervised LDA.",
        name=name,
        percent=100 * share,
        label=label,
        n=np.rint(labeled_shares[lost] * labeled.n_rows),
        n_rows=labeled.n_rows,
    )
    yield DegenerateFitWarning(message, label=label, share=share)


def _chances_of_labels(
    problem: Problem, labeled_shares: Array, unlabeled_shares: Array
) -> Array:
    """Return the probabilities (K,) that classes have as many of the labels or more.

    The labels are drawn at random from all rows, among which a class has the rows with
    its label and its share of the unlabeled ones.
    """
    n_labeled = problem.labeled.n_rows
    n_unlabeled = problem.unlabeled.n_rows
    n_known = np.rint(labeled_shares * n_labeled)
    n_given = np.rint(unlabeled_shares * n_unlabeled)
    n_rows = n_labeled + n_unlabeled
    chances = hypergeom.sf(n_known - 1, n_rows, n_known + n_given, n_labeled)
    return np.asarray(chances)


def unbounded_warning(
    name: str,
    problem: Problem,
    model: Gaussians,
    feature_names: AnyArray | None,
    *,
    can_shrink: bool,
) -> NotConvergedWarning:
    """Return the warning that the likelihood has no maximum, with the reason.

    Some direction takes one value per class on all rows, or rows are too few.
    ``can_shrink`` says whether the classifier has the parameter ``shrinkage``, which is
    advised then.
    """
    if problem.has_one_variance:
        reason = Text("all rows (nearly) coincide with the means of their classes")
        way_out = Text("use more rows")
    elif problem.is_unbounded and not model.is_floored:
        reason = say(
            "{n} rows are too few for {rank} columns, because any labeling separates "
            "them",
            n=problem.labeled.n_rows + problem.unlabeled.n_rows,
            rank=problem.whitening.rank,
        )
        way_out = Text("drop columns")
    else:
        reason = _one_value_per_class(model, feature_names)
        way_out = Text("drop the column")
    if can_shrink:
        way_out = say(
            "pass {@shrinkage}, for example 0.1 or 'auto', or {way_out}",
            way_out=way_out,
        )
    message = say(
        "{name}: {reason}, so the likelihood has no maximum. Probabilities will be 0 "
        "or 1: {way_out}.",
        name=name,
        reason=reason,
        way_out=way_out,
    )
    return NotConvergedWarning(message, outcome=Outcome.UNBOUNDED.name.lower())


def _one_value_per_class(model: Gaussians, feature_names: AnyArray | None) -> Text:
    """Name the column, or the first of those, that separates the classes completely."""
    # The standardized coordinate in which the class means lie furthest apart.
    sharpest = int(np.argmax(np.ptp(model.class_points, axis=0)))
    # What a standard deviation of each column contributes to it.
    deviations = np.sqrt(np.maximum(model.variances, 0))
    contributions = np.abs(model.projection[sharpest]) * deviations
    column = int(np.argmax(contributions))
    least_of_one = _MIN_SHARE_OF_ONE_COLUMN * contributions.sum()
    is_one_column = contributions[column] > least_of_one
    return Text(
        "" if is_one_column else "a mix of columns, first ",
        column_of(column, feature_names),
        " takes (nearly) one value per class on all rows",
    )


@dataclass(frozen=True)
class GainBounds(Gains):
    """Changes from the supervised fit to this one, over all labelings.

    ``worst``, ``best`` and ``expected`` are changes of the log likelihood of all rows,
    labeled and unlabeled, per unit of weight: the smallest and the largest that any
    labeling of the unlabeled rows gives, and the one under the fit's own posteriors.
    ``disagreement`` is the share of the unlabeled rows to which both classifiers give
    different classes: the error on them differs by no more than that.
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
            return "No rows are unlabeled, so the fit is the supervised one."
        if self.disagreement <= _NO_CHANGE:
            mistakes = "It agrees with supervised LDA on all unlabeled rows."
        else:
            share = f"{100 * self.disagreement:.1f} %"
            mistakes = (
                f"It disagrees with supervised LDA on {share} of the unlabeled rows, "
                "so their errors differ by at most that."
            )
        return f"{mistakes} {self._likelihood}"

    @property
    def _likelihood(self) -> str:
        """Which fit has the higher likelihood, and what that means for mistakes."""
        if max(abs(self.worst), abs(self.best)) <= _NO_CHANGE:
            return "Both have the same likelihood."
        is_never_higher = self.best <= _NO_CHANGE
        if not (self.is_safe or is_never_higher):
            return "Which of the two has the higher likelihood depends on the labeling."
        comparison = "higher" if self.is_safe else "lower"
        sentence = f"Its likelihood is {comparison} for every possible labeling."
        if self.disagreement <= _NO_CHANGE:
            return sentence
        number = "fewer" if self.is_safe else "more"
        return f"{sentence} That does not guarantee {number} mistakes."

    def __str__(self) -> str:
        return self.sentence


def safety_bounds(classifier: Any, X: Any, y: Any) -> GainBounds | None:
    """Return the bounds of a fit; None if they say nothing or cannot be computed."""
    find_bounds = getattr(classifier, "gain_bounds", None)
    needs = getattr(classifier, "_needs", None)
    if find_bounds is None or needs is None or not needs.unlabeled_rows:
        return None
    if classifier.n_features_in_ > _MAX_FEATURES_FOR_BOUNDS:
        return None
    try:
        with warnings.catch_warnings():
            # The fit has given the warnings about these rows.
            warnings.simplefilter("ignore")
            bounds: GainBounds = find_bounds(X, y)
    except FitError:
        # The labeled rows alone give no supervised fit to compare with.
        return None
    return bounds if bounds.n_unlabeled else None
