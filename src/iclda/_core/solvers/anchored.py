"""EM whose class means are drawn to the labeled rows, and means of linear rules.

In EM a hundred unlabeled rows outweigh one labeled row, and where classes overlap a class may drift
away from its labels. Here the mean of class k is (1 - a) EM's + a of its labeled rows, with
a = n_k / (n_k + 8) for n_k labeled rows: the labels count by their number alone, however many
unlabeled rows there are. A round takes one pass for class weights and class sums; the covariance
follows from these and the moments of all rows.
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

_ANCHOR = 8.0  # labeled rows of a class that weigh as much as all its unlabeled rows
_LEAST_SHRINKAGE = 1e-6  # keeps the covariance regular where none is asked for
_LEAST_SHARE = 1e-12  # of a class in all rows
_LEAST_SPREAD = (
    1e-12  # of scores, over their size: below, they differ by rounding alone
)
_PRIORS_ROUNDING = 1e-6  # of log priors that were solved for
_INDEPENDENT = 1e-8  # singular values of directions of classes, over the largest


def anchored_em(
    problem: Problem,
    shrinkages: Sequence[float],
    proportions: Array | None = None,
    *,
    is_anchored: bool = True,
    start: LinearRule | None = None,
) -> LinearRule:
    """Scores after a round of EM for each of ``shrinkages``, from the labeled rows or a start.

    A sequence of falling shrinkages lets classes settle while they are still nearly round, and
    unfold later. Without ``is_anchored`` class means are those of EM. ``proportions`` (K, 2) are
    bounds of the shares of the classes among the unlabeled rows: intercepts move toward them by one
    step of scaling in every round. The scores returned are those of the classes found in this way,
    without the moves.
    """
    shift = np.zeros(problem.n_classes)
    rule = labeled_rule(problem, shrinkages[0], proportions) if start is None else start
    for shrinkage in shrinkages:
        labeling = LinearRule(rule.coef, rule.intercept + shift, is_soft=True)
        sums = problem.unlabeled.label_sums(labeling, problem.frame)
        rule = refit(
            problem, sums.counts, sums.sums, shrinkage, proportions, is_anchored
        )
        if proportions is not None:
            shares = np.maximum(sums.counts / sums.counts.sum(), _LEAST_SHARE)
            shift += np.log(_within(shares, proportions)) - np.log(shares)
    return rule


def labeled_rule(
    problem: Problem, shrinkage: float, proportions: Array | None = None
) -> LinearRule:
    """Scores of the supervised fit; of classes of one row each, by the nearest mean."""
    labeled = problem.labeled
    shares = _within(labeled.counts / labeled.weight, proportions)
    if labeled.has_spread:
        covariance = _shrunk(problem, labeled.within / labeled.weight, shrinkage)
    else:
        covariance = _shrunk(problem, problem.moments.covariance, 1.0) * shrinkage
    return _rule(problem, labeled.means, covariance, shares)


def refit(
    problem: Problem,
    counts: Array,
    sums: Array,
    shrinkage: float,
    proportions: Array | None = None,
    is_anchored: bool = True,
) -> LinearRule:
    """Scores of the classes of one round, from class weights and sums of the unlabeled rows."""
    labeled, moments = problem.labeled, problem.moments
    means = labeled.counts[:, None] * labeled.means + sums
    counts = labeled.counts + counts
    means = means / counts[:, None]
    pull = (is_anchored * labeled.counts / (labeled.counts + _ANCHOR))[:, None]
    centers = (1 - pull) * means + pull * labeled.means
    shares = counts / counts.sum()
    root = np.sqrt(shares)[:, None]
    between, moved = root * (means - moments.mean), root * (means - centers)
    within = moments.covariance - between.T @ between + moved.T @ moved
    covariance = _shrunk(problem, within, shrinkage)
    return _rule(problem, centers, covariance, _within(shares, proportions))


def _within(shares: Array, bounds: Array | None) -> Array:
    """Shares within bounds (K, 2), if there are any."""
    if bounds is None:
        return shares
    shares = np.clip(shares, bounds[:, 0], bounds[:, 1])
    return np.asarray(shares / shares.sum())


def _rule(
    problem: Problem, means: Array, covariance: Array, shares: Array
) -> LinearRule:
    """Scores of Gaussian classes."""
    center = problem.moments.mean
    centered = means - center
    try:
        # NumPy's, as the sums before and after: threads of SciPy's BLAS would wait for its threads.
        coef: Array = np.linalg.solve(covariance, centered.T).astype(
            np.float64, copy=False
        )
    except np.linalg.LinAlgError:  # no row varies
        coef = scipy.linalg.lstsq(covariance, centered.T, cond=_INDEPENDENT)[0]
    log_shares = np.log(np.maximum(shares, _LEAST_SHARE))
    if problem.log_priors is not None:
        log_shares = problem.log_priors
    intercept = log_shares - (centered.T * coef).sum(axis=0) / 2 - center @ coef
    return LinearRule(coef, intercept, is_soft=True)


def _shrunk(problem: Problem, within: Array, shrinkage: float) -> Array:
    """A covariance shrunk toward its mean variance in the user's units."""
    shrinkage = max(shrinkage, _LEAST_SHRINKAGE)
    target = mean_variance_in_frame(within, problem.frame, problem.n_left_out)
    if (
        target <= 0
    ).all():  # no row varies, and rounding may have left a negative variance
        return np.zeros_like(within)
    return (1 - shrinkage) * within + np.diag(shrinkage * target)


def mean_of_rules(
    rules: Sequence[LinearRule], weights: Array, moments: Moments
) -> LinearRule:
    """The weighted mean of scores, those of each rule about their mean and of unit spread."""
    coef, intercept = np.zeros_like(rules[0].coef), np.zeros_like(rules[0].intercept)
    for rule, weight in zip(rules, weights / weights.sum(), strict=True):
        one = of_unit_spread(rule, moments)
        coef += weight * one.coef
        intercept += weight * one.intercept
    return of_unit_spread(LinearRule(coef, intercept, is_soft=True), moments)


def of_unit_spread(rule: LinearRule, moments: Moments) -> LinearRule:
    """Scores less their mean over the classes, with mean square 1 over rows and classes.

    They are 0 where all rows and classes score alike.
    """
    coef = rule.coef - rule.coef.mean(axis=1, keepdims=True)
    intercept = rule.intercept - rule.intercept.mean()
    # A power of 2, which changes no digit, keeps the squares of huge scores from overflowing.
    unit = (
        2.0 ** -np.frexp(max(np.abs(coef).max(initial=0), np.abs(intercept).max()))[1]
    )
    coef, intercept = unit * coef, unit * intercept
    at_mean = moments.mean @ coef + intercept
    squares = (coef * (moments.covariance @ coef)).sum(axis=0) + at_mean**2
    spread = float(np.sqrt(squares.mean()))
    if spread <= _LEAST_SPREAD * unit * np.abs(rule.intercept).max():
        return LinearRule(np.zeros_like(coef), np.zeros_like(intercept), is_soft=True)
    return LinearRule(coef / spread, intercept / spread, is_soft=True)


def gaussians_of_rule(
    problem: Problem, rule: LinearRule, shrinkage: float
) -> Gaussians:
    """Gaussian classes with the posteriors of a soft rule.

    Their covariance is that within the classes which the rule makes of all rows, shrunk, and the
    means follow from it and the scores. Means may all move by one vector without a change of the
    posteriors: it is chosen so that the priors are those of the problem, or the class weights.
    """
    labeled, moments = problem.labeled, problem.moments
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    counts = np.maximum(labeled.counts + sums.counts, _LEAST_SHARE * moments.weight)
    means = (labeled.counts[:, None] * labeled.means + sums.sums) / counts[:, None]
    between = np.sqrt(counts / counts.sum())[:, None] * (means - moments.mean)
    covariance = _shrunk(problem, moments.covariance - between.T @ between, shrinkage)
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(counts / counts.sum())
    coef, distances = _with_priors(rule, covariance, moments.mean, log_priors)
    implied = rule.intercept + moments.mean @ rule.coef + distances
    implied = implied - np.logaddexp.reduce(implied)
    if np.allclose(implied, log_priors, rtol=_PRIORS_ROUNDING, atol=_PRIORS_ROUNDING):
        implied = log_priors
    summary = LabeledSummary(
        counts,
        moments.mean + coef.T @ covariance,
        covariance * counts.sum(),
        labeled.n_rows,
    )
    return fit_labeled(problem.frame, summary, implied)[0]


def _with_priors(
    rule: LinearRule, covariance: Array, center: Array, log_priors: Array
) -> tuple[Array, Array]:
    """Coefficients moved by a common vector toward given priors, and squares / 2 of their means.

    Scores c_k x + b_k are those of means Sigma c_k and log priors b_k + c_k Sigma c_k / 2. A vector
    v = C w added to all c_k changes the latter by c_k Sigma v, up to a constant.
    """
    coef = rule.coef
    gram = coef.T @ covariance @ coef
    wanted = log_priors - (rule.intercept + center @ coef + gram.diagonal() / 2)
    centered = gram - gram.mean(axis=0)
    steps = np.zeros_like(wanted)
    for _ in range(2):  # once more for the digits
        left = wanted - wanted.mean() - centered @ steps
        steps += scipy.linalg.lstsq(centered, left, cond=_INDEPENDENT)[0]
    coef = coef + (coef @ steps)[:, None]
    return coef, (coef * (covariance @ coef)).sum(axis=0) / 2
