"""The loop that self-learning (hard labels) and EM (soft labels) share.

Label the unlabeled rows by the current model, refit on everything, repeat. A pass needs linear
scores and class sums only: the covariance follows from the class sums (design: rank K-1 downdate).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from .labelsums import LabelSums, LinearRule
from .likelihood import FLOOR, log_determinant, precise_means, smallest_eigenvalue
from .outcome import Outcome
from .problem import Problem, within_rank
from .types import Array


@dataclass(frozen=True)
class Alternation:
    """Where the loop ended: the point, the labeling that attains it, and the way there."""

    point: Array
    rule: LinearRule
    n_iter: int
    outcome: Outcome
    path: list[float] = field(default_factory=list)


def alternate(problem: Problem, *, is_soft: bool, tol: float, max_iter: int) -> Alternation:
    """Alternate between labels and model until the labels, or the likelihood, stand still."""
    rule = problem.rule_of(start_scores(problem), is_soft=is_soft)
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    point = problem.point_of(sums.counts, sums.sums)
    path: list[float] = []
    for n_iter in range(1, max_iter + 1):
        if smallest_eigenvalue(point) <= FLOOR:
            return Alternation(point, rule, n_iter, Outcome.UNBOUNDED, path)
        next_rule = problem.rule_of(problem.posterior_scores(point), is_soft=is_soft)
        next_sums = problem.unlabeled.label_sums(next_rule, problem.frame)
        if is_soft:
            path.append(marginal_log_likelihood(problem, point, next_sums.log_sum))
            is_done = _remaining_ascent(path) <= tol * problem.moments.weight
        else:
            is_done = _has_stood_still(sums, next_sums, tol * problem.moments.weight)
        if is_done:
            return Alternation(point, rule, n_iter, Outcome.CONVERGED, path)
        rule, sums = next_rule, next_sums
        point = problem.point_of(sums.counts, sums.sums)
    return Alternation(point, rule, max_iter, Outcome.MAX_ITERATIONS, path)


def start_scores(problem: Problem) -> Array:
    """Linear scores of the supervised fit; where it is singular, pooled moments of all rows."""
    labeled = problem.likelihood
    covariance = labeled.within / labeled.weight + problem.whitened_ridge
    covariance *= 1 - problem.shrinkage
    if within_rank(covariance) < len(covariance):
        covariance = np.eye(len(covariance))
    slopes = scipy.linalg.solve(covariance, labeled.means.T, assume_a="pos").T
    log_priors = problem.log_priors
    if log_priors is None:
        log_priors = np.log(labeled.counts / labeled.weight)
    return np.column_stack([log_priors - (slopes * labeled.means).sum(axis=1) / 2, slopes])


def marginal_log_likelihood(problem: Problem, point: Array, log_sum: float) -> float:
    """Labeled log joint plus unlabeled log marginal, with shrinkage less its penalty.

    ``log_sum`` is the sum over unlabeled rows of log-sum-exp of the posterior scores. The penalty
    N0/2 (log|Sigma| + nu tr Sigma^-1) turns the scatter of all rows into N times the identity.
    """
    labeled, weight = problem.likelihood, problem.moments.weight
    keep = 1 - problem.shrinkage
    second = labeled.within + (labeled.counts[:, None] * labeled.means).T @ labeled.means
    unlabeled_second = weight * np.eye(problem.whitening.rank) - second
    b, slopes = point[:, 1:], precise_means(point)
    spread = np.trace(unlabeled_second) + np.einsum("kd,kd->", b, slopes @ unlabeled_second)
    log_det = log_determinant(point) + problem.whitening.rank * np.log(keep)
    penalized_weight = weight / keep - labeled.weight
    unlabeled_weight = weight - labeled.weight
    # The constant holds 2 pi once a row, and the change of units once a unit of weight.
    units = problem.whitening.log_det
    return float(
        labeled.value(point)
        + log_sum
        - spread / (2 * keep)
        - penalized_weight / 2 * (log_det + units)
        - unlabeled_weight / 2 * problem.whitening.rank * np.log(2 * np.pi)
    )


def _has_stood_still(before: LabelSums, after: LabelSums, tol: float) -> bool:
    """Whether labels repeat: their sums do to the bit or, with ``tol``, their counts nearly."""
    if tol > 0:
        return float(np.abs(after.counts - before.counts).sum()) / 2 <= tol
    return np.array_equal(after.counts, before.counts) and np.array_equal(after.sums, before.sums)


def _remaining_ascent(path: list[float]) -> float:
    """How much more the likelihood will rise, judged by how its last steps shrank (Aitken)."""
    if len(path) < 3:
        return np.inf
    before, last = path[-2] - path[-3], path[-1] - path[-2]
    if last <= 0 or before <= 0:
        return 0.0
    rate = min(last / before, 0.9999)
    return last / (1 - rate)
