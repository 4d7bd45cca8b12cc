"""EM whose class means are drawn to the labeled rows, and means of linear rules.

In EM a hundred unlabeled rows outweigh one labeled row, and where classes overlap a
class may drift away from its labels. Here the mean of class k is (1 - a) times that of
EM plus a times that of its labeled rows, with a = n_k / (n_k + 8) for a labeled weight
n_k: labels count by their number alone, however many unlabeled rows there are. A round
takes one pass for class weights and class sums; the covariance follows from these and
the moments of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .. import Array
from ..frame import mean_variance_in_frame
from ..gaussian import Gaussians
from ..labelsums import LinearRule
from ..moments import Moments
from ..problem import LabeledSummary, Problem
from .supervised import fit_labeled

# This number of labeled rows of a class weighs as much as all its unlabeled rows.
_ANCHOR_ROWS = 8.0
# Keeps the covariance regular where no shrinkage is asked for.
_MIN_SHRINKAGE = 1e-6
# Smallest share of a class in all rows, so that its logarithm is finite.
_MIN_SHARE = 1e-12
# Scores whose spread is below this share of their size differ by rounding only.
_SPREAD_ROUNDING = 1e-12
# Rounding of log priors that were solved for.
_LOG_PRIORS_ROUNDING = 1e-6
# Relative cutoff for singular values: classes may lie in fewer dimensions.
_LEAST_SQUARES_RCOND = 1e-8


def anchored_em(
    problem: Problem,
    shrinkages: Sequence[float],
    proportions: Array | None = None,
    *,
    is_anchored: bool = True,
    start: LinearRule | None = None,
) -> LinearRule:
    """Return the scores after one round of EM for each of ``shrinkages``.

    With falling shrinkages, classes settle while they are still nearly round, and
    unfold later. Rounds begin with ``start``, by default the supervised fit. Without
    ``is_anchored`` the class means are those of EM. ``proportions`` (K, 2) bound the
    shares of the classes among the unlabeled rows: in every round, one step of scaling
    moves the intercepts toward them. The scores returned leave these moves out.
    """
    rule = start
    if rule is None:
        rule = labeled_rule(problem, shrinkages[0], proportions)
    shift = np.zeros(problem.n_classes)
    for shrinkage in shrinkages:
        labeling = LinearRule(rule.coef, rule.intercept + shift, is_soft=True)
        sums = problem.unlabeled.label_sums(labeling, problem.frame)
        rule = refit(
            problem, sums.counts, sums.sums, shrinkage, proportions, is_anchored
        )
        if proportions is not None:
            # Scale the odds of every class by how far its share is out of its bounds.
            shares = np.maximum(sums.counts / sums.counts.sum(), _MIN_SHARE)
            shift += np.log(_within_bounds(shares, proportions)) - np.log(shares)
    return rule


def labeled_rule(
    problem: Problem, shrinkage: float, proportions: Array | None = None
) -> LinearRule:
    """Return the scores of the supervised fit.

    If every class has one row only, rows are scored by the nearest mean.
    """
    labeled = problem.labeled
    shares = _within_bounds(labeled.counts / labeled.weight, proportions)
    if labeled.has_spread:
        covariance = _shrunk(problem, labeled.within / labeled.weight, shrinkage)
    else:
        covariance = _shrunk(problem, problem.moments.covariance, 1.0) * shrinkage
    return _rule_of_classes(problem, labeled.means, covariance, shares)


def refit(
    problem: Problem,
    counts: Array,
    sums: Array,
    shrinkage: float,
    proportions: Array | None = None,
    is_anchored: bool = True,
) -> LinearRule:
    """Return the scores of one round, from label sums of the unlabeled rows.

    The covariance within classes is taken about the drawn means c_k, not the means mu_k
    of all rows of a class: it is larger by the outer squares of mu_k - c_k.
    """
    labeled = problem.labeled
    moments = problem.moments
    # 1. Find the class means of all rows, and draw them to those of the labeled rows.
    labeled_sums = labeled.counts[:, None] * labeled.means
    all_counts = labeled.counts + counts
    means = (labeled_sums + sums) / all_counts[:, None]
    anchor_shares = labeled.counts / (labeled.counts + _ANCHOR_ROWS)
    pull = (is_anchored * anchor_shares)[:, None]
    drawn_means = (1 - pull) * means + pull * labeled.means

    # 2. Find the covariance. Each share enters the two outer products by its root.
    shares = all_counts / all_counts.sum()
    root = np.sqrt(shares)[:, None]
    between = root * (means - moments.mean)
    drawn = root * (means - drawn_means)
    within = moments.covariance - between.T @ between + drawn.T @ drawn
    covariance = _shrunk(problem, within, shrinkage)

    # 3. Score rows by the classes.
    shares = _within_bounds(shares, proportions)
    return _rule_of_classes(problem, drawn_means, covariance, shares)


def _within_bounds(shares: Array, bounds: Array | None) -> Array:
    """Clip shares to bounds (K, 2), if there are any."""
    if bounds is None:
        return shares
    shares = np.clip(shares, bounds[:, 0], bounds[:, 1])
    return np.asarray(shares / shares.sum())


def _rule_of_classes(
    problem: Problem, means: Array, covariance: Array, shares: Array
) -> LinearRule:
    """Return the scores of Gaussian classes."""
    center = problem.moments.mean
    centered = means - center
    try:
        # The passes before and after use NumPy's BLAS: SciPy has another one, whose
        # threads would wait for those of the first.
        solution = np.linalg.solve(covariance, centered.T)
        coef: Array = solution.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        # No row varies.
        coef = scipy.linalg.lstsq(covariance, centered.T, cond=_LEAST_SQUARES_RCOND)[0]
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(np.maximum(shares, _MIN_SHARE))
    squared_lengths = (centered.T * coef).sum(axis=0)
    about_center = log_priors - squared_lengths / 2
    intercept = about_center - center @ coef
    return LinearRule(coef, intercept, is_soft=True)


def _shrunk(problem: Problem, within: Array, shrinkage: float) -> Array:
    """Shrink a covariance toward its mean variance in the user's units."""
    shrinkage = max(shrinkage, _MIN_SHRINKAGE)
    target = mean_variance_in_frame(within, problem.frame, problem.n_left_out)
    if (target <= 0).all():
        # No row varies, and rounding may have left a negative variance.
        return np.zeros_like(within)
    added = np.diag(shrinkage * target)
    return (1 - shrinkage) * within + added


def mean_of_rules(
    rules: Sequence[LinearRule], weights: Array, moments: Moments
) -> LinearRule:
    """Return the weighted mean of rules, each of unit spread before it is added."""
    coef = np.zeros_like(rules[0].coef)
    intercept = np.zeros_like(rules[0].intercept)
    shares = weights / weights.sum()
    for rule, share in zip(rules, shares, strict=True):
        unit_rule = of_unit_spread(rule, moments)
        coef += share * unit_rule.coef
        intercept += share * unit_rule.intercept
    mean = LinearRule(coef, intercept, is_soft=True)
    return of_unit_spread(mean, moments)


def of_unit_spread(rule: LinearRule, moments: Moments) -> LinearRule:
    """Center scores over the classes, and scale them to unit spread.

    Their mean square over all rows and classes is then 1. Where the classes score
    alike, the scores are 0.
    """
    coef = rule.coef - rule.coef.mean(axis=1, keepdims=True)
    intercept = rule.intercept - rule.intercept.mean()
    # The squares of huge scores would overflow: divide the scores by a power of 2,
    # which changes no digit.
    largest = max(np.abs(coef).max(initial=0), np.abs(intercept).max())
    _, exponent = np.frexp(largest)
    unit = 2.0**-exponent
    coef = unit * coef
    intercept = unit * intercept
    # The mean square of each score is its variance plus the square of its mean.
    variances = (coef * (moments.covariance @ coef)).sum(axis=0)
    means = moments.mean @ coef + intercept
    mean_squares = variances + means**2
    spread = float(np.sqrt(mean_squares.mean()))
    largest_intercept = unit * np.abs(rule.intercept).max()
    if spread <= _SPREAD_ROUNDING * largest_intercept:
        return LinearRule(np.zeros_like(coef), np.zeros_like(intercept), is_soft=True)
    return LinearRule(coef / spread, intercept / spread, is_soft=True)


def gaussians_of_rule(
    problem: Problem, rule: LinearRule, shrinkage: float
) -> Gaussians:
    """Return Gaussian classes with the posteriors of a soft rule.

    Their covariance is that within the classes which the rule makes of all rows,
    shrunk. The means follow from it and from the scores, up to one vector: moving all
    means by it does not change the posteriors. It is chosen so that the priors are
    those of the problem, or the class weights.
    """
    labeled = problem.labeled
    moments = problem.moments
    # 1. Label the unlabeled rows, and compute the covariance within the classes.
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    counts = np.maximum(labeled.counts + sums.counts, _MIN_SHARE * moments.weight)
    labeled_sums = labeled.counts[:, None] * labeled.means
    means = (labeled_sums + sums.sums) / counts[:, None]
    shares = counts / counts.sum()
    between = np.sqrt(shares)[:, None] * (means - moments.mean)
    within = moments.covariance - between.T @ between
    covariance = _shrunk(problem, within, shrinkage)

    # 2. Move the means so that the priors are the wanted ones.
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(shares)
    coef, half_squares = _with_priors(rule, covariance, moments.mean, log_priors)
    # Log priors that the moved means imply: exact if the linear system could be solved.
    implied = rule.intercept + moments.mean @ rule.coef + half_squares
    implied = implied - np.logaddexp.reduce(implied)
    rounding = _LOG_PRIORS_ROUNDING
    if np.allclose(implied, log_priors, rtol=rounding, atol=rounding):
        implied = log_priors

    # 3. Classes with these means and this covariance have the posteriors of the rule.
    moved_means = moments.mean + coef.T @ covariance
    scatter = covariance * counts.sum()
    summary = LabeledSummary(counts, moved_means, scatter, labeled.n_rows)
    model, _ = fit_labeled(problem.frame, summary, implied)
    return model


def _with_priors(
    rule: LinearRule, covariance: Array, center: Array, log_priors: Array
) -> tuple[Array, Array]:
    """Move all coefficients by one vector, so that the priors come close to given ones.

    Also return c_k Sigma c_k / 2 of the moved coefficients. About ``center``, scores
    c_k x + b_k are those of classes with means Sigma c_k and log priors
    b_k + c_k Sigma c_k / 2. A vector v = C w added to all c_k changes the latter by
    c_k Sigma v, up to a constant: w solves a linear system, by least squares.
    """
    coef = rule.coef
    # Entry (k, j) is c_k Sigma c_j.
    gram = coef.T @ covariance @ coef
    implied = rule.intercept + center @ coef + gram.diagonal() / 2
    change = log_priors - implied
    # The constant is left out on both sides of the system.
    matrix = gram - gram.mean(axis=0)
    wanted = change - change.mean()
    steps = np.zeros_like(wanted)
    # The second solution corrects the rounding of the first.
    for _ in range(2):
        left = wanted - matrix @ steps
        solution = scipy.linalg.lstsq(matrix, left, cond=_LEAST_SQUARES_RCOND)
        steps += solution[0]
    common = (coef @ steps)[:, None]
    moved_coef = coef + common
    squares = (moved_coef * (covariance @ moved_coef)).sum(axis=0)
    return moved_coef, squares / 2
