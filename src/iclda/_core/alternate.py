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
    loop = _maximize_marginal if is_soft else _repeat_labels
    return loop(problem, tol, max_iter)


@dataclass(frozen=True)
class _Round:
    """One read of the rows: labeled by the model at ``point``, they give the next point."""

    point: Array
    rule: LinearRule
    sums: LabelSums
    refitted: Array

    @property
    def is_bounded(self) -> bool:
        return _is_admissible(self.refitted)


def _round(problem: Problem, point: Array, *, is_soft: bool, scores: Array | None = None) -> _Round:
    scores = problem.posterior_scores(point) if scores is None else scores
    rule = problem.rule_of(scores, is_soft=is_soft)
    sums = problem.unlabeled.label_sums(rule, problem.frame)
    return _Round(point, rule, sums, problem.point_of(sums.counts, sums.sums))


def _first_round(problem: Problem, *, is_soft: bool) -> _Round:
    scores = start_scores(problem)
    return _round(problem, problem.labeled_point, is_soft=is_soft, scores=scores)


def _repeat_labels(problem: Problem, tol: float, max_iter: int) -> Alternation:
    """Self-learning: hard labels until they repeat. Nothing is kept of them but their sums."""
    last = _first_round(problem, is_soft=False)
    for n_iter in range(1, max_iter + 1):
        if not last.is_bounded:
            return Alternation(last.refitted, last.rule, n_iter, Outcome.UNBOUNDED)
        this = _round(problem, last.refitted, is_soft=False)
        # The same labels give the same sums to the bit: with tol = 0 this asks for no less.
        if np.abs(this.refitted - last.refitted).max() <= tol:
            return Alternation(this.point, last.rule, n_iter, Outcome.CONVERGED)
        last = this
    return Alternation(last.refitted, last.rule, max_iter, Outcome.MAX_ITERATIONS)


def _maximize_marginal(problem: Problem, tol: float, max_iter: int) -> Alternation:
    """EM, with squared extrapolation (SQUAREM) wherever that does not lose likelihood."""
    last = _first_round(problem, is_soft=True)
    path: list[float] = []
    if last.is_bounded:
        last = _round(problem, last.refitted, is_soft=True)
        path.append(_marginal(problem, last))
    while last.is_bounded and len(path) < max_iter:
        this = _round(problem, last.refitted, is_soft=True)
        path.append(_marginal(problem, this))
        stretch, leap = _extrapolated(last, this)
        if stretch * (path[-1] - path[-2]) <= tol * problem.moments.weight:
            return Alternation(this.point, last.rule, len(path), Outcome.CONVERGED, path)
        last = this
        if len(path) < max_iter and _is_admissible(leap):
            ahead = _round(problem, leap, is_soft=True)
            value = _marginal(problem, ahead)
            if value >= path[-1]:
                last = ahead
                path.append(value)
    outcome = Outcome.MAX_ITERATIONS if last.is_bounded else Outcome.UNBOUNDED
    return Alternation(last.refitted, last.rule, max(1, len(path)), outcome, path)


def _is_admissible(point: Array) -> bool:
    """Whether class weights are positive and the covariance is above its floor."""
    return bool(point[:, 0].min() > 0 and smallest_eigenvalue(point) > FLOOR)


def _extrapolated(last: _Round, this: _Round) -> tuple[float, Array]:
    """How much further steps of shrinking size will lead, in steps, and the point there."""
    step = last.refitted - last.point
    bend = this.refitted - this.point - step
    ratio = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
    stretch = max(1.0, ratio)
    leap = last.point + 2 * stretch * step + stretch**2 * bend
    # Class weights sum to 1 and class sums to 0; the square would blow up what rounding left.
    leap[-1] = -leap[:-1].sum(axis=0)
    leap[-1, 0] += 1
    return stretch, leap


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


def _marginal(problem: Problem, this: _Round) -> float:
    return marginal_log_likelihood(problem, this.point, this.sums.log_sum)


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
