"""Bounds of the gain of a model over the supervised one, for all labels of the unlabeled rows.

With d(x, k) the log of prior times density under the model less that under the reference, a
labeling q of the unlabeled rows changes the log likelihood of all rows by the sum of d over them.
d is affine in x up to a quadratic term common to all classes, which the moments of all rows give:
d is smallest and largest at hard labels by a linear rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .gaussian import LOG_2PI, Gaussians
from .labelsums import LinearRule
from .moments import Moments
from .problem import Problem
from .types import Array


@dataclass(frozen=True)
class Gains:
    """Changes of the log likelihood of all rows per unit of weight, and how many labels differ."""

    worst: float  # over all labelings of the unlabeled rows
    best: float
    expected: float  # under the posteriors of the model
    disagreement: float  # share of the unlabeled weight to which both give different classes


def gains_over(problem: Problem, model: Gaussians, reference: Gaussians) -> Gains:
    """Gains of a model over a reference, both in the frame of the problem.

    Four passes over the unlabeled rows: two hard ones, a soft one, and one for disagreement.
    """
    labeled, moments, rows = problem.labeled, problem.moments, problem.unlabeled
    ahead = lead_over(model, reference)
    known = _sum_of_scores(ahead, labeled.counts, labeled.counts[:, None] * labeled.means)
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
    """Hard rule with the scores d(x, k), less their part common to all classes."""
    one, two = (_without_priors(each).score_rule() for each in (model, reference))
    # A prior of 0, which both have, changes nothing.
    shift = np.zeros(len(one.intercept))
    is_possible = np.isfinite(model.log_priors)
    np.subtract(model.log_priors, reference.log_priors, out=shift, where=is_possible)
    intercept = one.intercept - two.intercept + shift
    return LinearRule(one.coef - two.coef, intercept, is_soft=False)


def _without_priors(model: Gaussians) -> Gaussians:
    return replace(model, log_priors=np.zeros_like(model.log_priors))


def common_terms(model: Gaussians, moments: Moments) -> float:
    """Sum over rows of the part of log prior times density that all classes have in common."""
    shift = model.projection @ (moments.mean - model.center)
    spread = np.einsum("rd,de,re->", model.projection, moments.scatter, model.projection)
    constant = model.rank * LOG_2PI + model.log_det + float(shift @ shift)
    return -(moments.weight * constant + float(spread)) / 2


def _sum_of_scores(rule: LinearRule, counts: Array, sums: Array) -> float:
    """Sum over rows of their scores, each by its shares, from weights and sums of the classes."""
    return float(counts @ rule.intercept + np.vdot(sums, rule.coef.T))


def _disagreement(problem: Problem, model: Gaussians, reference: Gaussians) -> float:
    """Share of rows that two rules classify differently.

    One pass: the pair of classes with the largest sum of scores is the best class of each rule.
    """
    one, two = model.score_rule(), reference.score_rule()
    n_classes = one.n_classes
    coef = (one.coef[:, :, None] + two.coef[:, None, :]).reshape(len(one.coef), -1)
    intercept = (one.intercept[:, None] + two.intercept).ravel()
    pairs = problem.unlabeled.label_sums(LinearRule(coef, intercept, is_soft=False), problem.frame)
    shares = pairs.counts.reshape(n_classes, n_classes) / pairs.counts.sum()
    return float(shares.sum() - np.trace(shares))
