"""The supervised fit: maximum likelihood from labeled rows, shrinkage, gains over it.

Bounds of the gain of a model hold for all labels of the unlabeled rows. With d(x, k) the log of
prior times density under the model less that under the reference, a labeling q of the unlabeled
rows changes the log likelihood of all rows by the sum of d over them. d is affine in x up to a
quadratic term common to all classes, which the moments of all rows give: d is smallest and largest
at hard labels by a linear rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._messages import FitError, say
from .. import Array
from ..frame import Frame, mean_variance_in_frame
from ..gaussian import LOG_2PI, Gaussians, gaussians
from ..labelsums import LinearRule
from ..moments import Moments, safe_whitening, whiten
from ..problem import WITHIN_TOLERANCE, LabeledSummary, Problem, within_rank

_ROUNDING = 1e-12  # of a distance between covariances, over the square of their size
_SMALL_BETWEEN = (
    1e3  # between over within classes, of every feature: far from any floor
)


def fit_labeled(
    frame: Frame,
    labeled: LabeledSummary,
    log_priors: Array | None = None,
    shrunk_within: Array | None = None,
) -> tuple[Gaussians, int]:
    """Model of the labeled rows, and the rank of their scatter within classes.

    The scatter within classes is used directly, never as total minus between. ``shrunk_within``
    (frame coordinates) replaces it when the covariance is shrunk. Directions in which no class
    varies get the floor of the covariance.
    """
    if shrunk_within is not None:
        labeled = replace(labeled, within=shrunk_within)
    model = _fit_directly(frame, labeled, log_priors)
    if model is not None:
        return model, model.rank
    whitening = whiten(labeled.moments, frame)
    covariance = (
        whitening.transform @ labeled.within @ whitening.transform.T / labeled.weight
    )
    means = whitening.points(labeled.means)
    weights = labeled.counts / labeled.weight
    model = gaussians(
        frame, whitening, weights, means, covariance, log_priors, floor=WITHIN_TOLERANCE
    )
    return model, within_rank(covariance) if model.is_floored else model.rank


def _fit_directly(
    frame: Frame, labeled: LabeledSummary, log_priors: Array | None
) -> Gaussians | None:
    """The model by a factor of the scatter within classes, where it is far from any floor."""
    weights = labeled.counts / labeled.weight
    mean = weights @ labeled.means
    covariance = (labeled.within + labeled.within.T) / (2 * labeled.weight)
    between = weights @ (labeled.means - mean) ** 2
    if not (between < _SMALL_BETWEEN * covariance.diagonal()).all():
        return None
    whitening = safe_whitening(mean, covariance, frame)
    if whitening is None:
        return None
    return Gaussians(
        frame=frame,
        center=mean,
        class_weights=weights,
        log_priors=np.log(weights) if log_priors is None else log_priors,
        means=labeled.means,
        covariance=covariance,
        projection=whitening.transform,
        class_points=whitening.points(labeled.means),
        log_det=whitening.log_det,
        is_floored=False,
    )


def supervised_reference(problem: Problem) -> Gaussians:
    """The supervised fit with priors and shrinkage of the problem, to compare other fits with."""
    labeled, frame, shrunk = problem.labeled, problem.frame, None
    if problem.shrinkage > 0:
        shrunk = shrink_labeled(labeled, problem.shrinkage, frame, problem.n_left_out)
    model, rank = fit_labeled(frame, labeled, problem.log_priors, shrunk)
    needed = problem.whitening.rank
    if rank < needed:
        raise FitError(
            say(
                "The labeled rows are too few, or too alike within their classes, for these "
                "columns (they span {rank} of {needed} dimensions): there is no supervised fit to "
                "compare with. Label more rows, or pass {@shrinkage}, for example 0.1 or 'auto'.",
                rank=rank,
                needed=needed,
            )
        )
    return model


def labeled_log_likelihood(model: Gaussians, labeled: LabeledSummary) -> float:
    """Sum over the labeled rows of log prior times density of their own class."""
    shift = (labeled.means - model.center) @ model.projection.T - model.class_points
    spread = np.trace(model.projection @ labeled.within @ model.projection.T)
    spread += labeled.counts @ (shift**2).sum(axis=1)
    constant = labeled.weight * (model.rank * LOG_2PI + model.log_det)
    return float(labeled.counts @ model.log_priors - (spread + constant) / 2)


def oracle_approximating(
    covariance: Array, n_rows: float, n_constant: int = 0
) -> float:
    """Shrinkage of Chen, Wiesel, Eldar and Hero, in [0, 1], of a covariance of so many rows.

    It needs no more than the covariance, which is additive over blocks of rows. ``n_constant``
    further features do not vary.
    """
    n_features = len(covariance) + n_constant
    norm, trace = float((covariance**2).sum()), float(np.trace(covariance))
    distance = norm - trace**2 / n_features
    if distance <= _ROUNDING * norm:  # the target itself, as always with one feature
        return 0.0
    noise = (1 - 2 / n_features) * norm + trace**2
    signal = (
        n_rows + 1 - 2 / n_features
    ) * distance  # zero for two features and hardly any weight
    return noise / signal if signal > noise else 1.0


def pooled_shrinkage(
    labeled: LabeledSummary, frame: Frame, n_constant: int = 0
) -> float:
    """Shrinkage of the covariance within classes, all of them together, of the labeled rows.

    It has as many degrees of freedom as there are rows beyond one for each class; classes without
    spread leave nothing to estimate, and the shrinkage is 1.
    """
    n_free = labeled.weight - len(labeled.counts)
    if n_free <= 0 or not labeled.has_spread:
        return 1.0
    units = frame.scale / frame.scale.max()
    return oracle_approximating(
        labeled.within / n_free * units[:, None] * units, n_free, n_constant
    )


def shrink_labeled(
    labeled: LabeledSummary, shrinkage: float, frame: Frame, n_constant: int = 0
) -> Array:
    """Scatter within classes shrunk towards its mean variance, as scikit-learn does.

    ``n_constant`` further features do not vary.
    """
    added = shrinkage * target_of_labeled(labeled, frame, n_constant)
    return (1 - shrinkage) * labeled.within + np.diag(added)


def target_of_labeled(
    labeled: LabeledSummary, frame: Frame, n_constant: int = 0
) -> Array:
    """(d,): mean variance within classes, times the weight of the labeled rows.

    Where classes have no spread at all, the spread of all labeled rows sets the scale.
    """
    scatter = labeled.within if labeled.has_spread else labeled.moments.scatter
    return mean_variance_in_frame(scatter, frame, n_constant)


@dataclass(frozen=True)
class Gains:
    """Changes of the log likelihood of all rows per unit of weight, and how many labels differ."""

    worst: float  # over all labelings of the unlabeled rows
    best: float
    expected: float  # under the posteriors of the model
    disagreement: (
        float  # share of the unlabeled weight to which both give different classes
    )


def gains_over(problem: Problem, model: Gaussians, reference: Gaussians) -> Gains:
    """Gains of a model over a reference, both in the frame of the problem.

    Four passes over the unlabeled rows: two hard ones, a soft one, and one for disagreement.
    """
    labeled, moments, rows = problem.labeled, problem.moments, problem.unlabeled
    ahead = lead_over(model, reference)
    known = _sum_of_scores(
        ahead, labeled.counts, labeled.counts[:, None] * labeled.means
    )
    known += common_terms(model, moments) - common_terms(reference, moments)
    weight = moments.weight
    if rows.n_rows == 0:
        return Gains(known / weight, known / weight, known / weight, 0.0)
    behind = LinearRule(-ahead.coef, -ahead.intercept, is_soft=False)
    own = rows.label_sums(model.score_rule(), problem.frame)
    return Gains(
        worst=(known - rows.label_sums(behind, problem.frame).log_sum) / weight,
        best=(known + rows.label_sums(ahead, problem.frame).log_sum) / weight,
        expected=(known + _sum_of_scores(ahead, own.counts, own.sums)) / weight,
        disagreement=_disagreement(problem, model, reference),
    )


def lead_over(model: Gaussians, reference: Gaussians) -> LinearRule:
    """Return the hard rule with scores d(x, k), without their part common to all classes."""
    none = np.zeros_like(model.log_priors)
    one, two = (
        replace(each, log_priors=none).score_rule() for each in (model, reference)
    )
    # A prior of 0, which both have, changes nothing.
    shift = np.zeros_like(none)
    is_possible = np.isfinite(model.log_priors)
    np.subtract(model.log_priors, reference.log_priors, out=shift, where=is_possible)
    intercept = one.intercept - two.intercept + shift
    return LinearRule(one.coef - two.coef, intercept, is_soft=False)


def common_terms(model: Gaussians, moments: Moments) -> float:
    """Sum the part of the log joint density that is common to all classes over all rows."""
    shift = model.projection @ (moments.mean - model.center)
    spread = np.einsum(
        "rd,de,re->", model.projection, moments.scatter, model.projection
    )
    constant = model.rank * LOG_2PI + model.log_det + float(shift @ shift)
    return -(moments.weight * constant + float(spread)) / 2


def _sum_of_scores(rule: LinearRule, counts: Array, sums: Array) -> float:
    """Sum the scores of rows, weighted by their shares, given class weights and class sums."""
    return float(counts @ rule.intercept + np.vdot(sums, rule.coef.T))


def _disagreement(problem: Problem, model: Gaussians, reference: Gaussians) -> float:
    """Share of rows that two rules classify differently.

    One pass: the pair of classes with the largest sum of scores is the best class of each rule.
    """
    one, two = model.score_rule(), reference.score_rule()
    n_classes = one.n_classes
    coef = (one.coef[:, :, None] + two.coef[:, None, :]).reshape(len(one.coef), -1)
    intercept = (one.intercept[:, None] + two.intercept).ravel()
    pairs = problem.unlabeled.label_sums(
        LinearRule(coef, intercept, is_soft=False), problem.frame
    )
    shares = pairs.counts.reshape(n_classes, n_classes) / pairs.counts.sum()
    return float(shares.sum() - np.trace(shares))
