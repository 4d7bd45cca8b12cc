"""Minimize a convex function over all labelings of the unlabeled rows: the pessimistic fit.

One path leads to the only minimum of a convex function, and the gap bounds how far any point is
above it. Squared losses are convex (``squares``), and so is the gain over the supervised fit, whose
minimum is the model of the largest least gain.

For labels q of the unlabeled rows that give the point p, the fit to all rows has the highest
likelihood of all models, and gains

    h(p) = sum_k r_k log r_k - log|M| / (2 (1 - s)) - (supervised scores)' p + constant

on the supervised model, per row: the likelihood of any one model is linear in p, in these
coordinates. h is a maximum of linear functions, hence convex; its minimum over the attainable set
is the largest gain that a model has whatever the labels are. With shrinkage s both likelihoods are
less the penalty N0/2 (log|Sigma| + nu tr Sigma^-1), N0 = N s / (1 - s). Derivation: docs/safety.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .. import Array
from ..gaussian import Gaussians
from ..likelihood import (
    FLOOR,
    Objective,
    change_of_precise_means,
    precise_means,
    smallest_eigenvalue,
)
from ..problem import Problem
from . import Limits, settings
from .continuation import Effort, Follower, Path, Work
from .search import HeldSample, Solution, search
from .supervised import supervised_reference, target_of_labeled


def maximize_worst_gain(problem: Problem, limits: Limits) -> Solution:
    """The model of the highest least gain over the supervised one, with its certificate.

    ``objective`` and ``gap`` are per row: no model has a least gain above the objective, and this
    one has the objective less the gap.
    """
    reference = supervised_reference(problem)

    def contrast(problem: Problem) -> Objective:
        found = contrast_with(problem, reference)
        return replace(found, constant=found.constant - _gain_left_out(problem))

    return minimize_over_labelings(problem, contrast, limits)


def _gain_left_out(problem: Problem) -> float:
    """Gain in directions in which no row varies: shrinkage alone sets both covariances there."""
    if problem.n_left_out == 0 or problem.ridge is None:
        return 0.0
    n_left_out, keep = problem.n_left_out, 1 - problem.shrinkage
    supervised = target_of_labeled(problem.labeled, problem.frame, n_left_out)
    ratio = (
        keep
        / problem.shrinkage
        * problem.ridge[0]
        * problem.labeled.weight
        / supervised[0]
    )
    return float(n_left_out * (ratio - 1 - np.log(ratio)) / (2 * keep))


def minimize_over_labelings(
    problem: Problem,
    objective_of: Callable[[Problem], Objective],
    limits: Limits,
) -> Solution:
    """The smallest value of a convex function of the point, with its certificate.

    ``objective_of`` gives minus the function, in coordinates of a problem: a sample of the rows has
    its own.
    """
    rounds, work = problem.rounds(limits.max_iter), Work()
    if (
        rounds < limits.max_iter
    ):  # steps of many classes may each take hundreds of products
        work = Work(rounds * problem.unlabeled.n_rows * problem.labeled_point.size)

    def follow(sample: HeldSample, effort: Effort) -> list[Path]:
        held, scores = sample.held, np.zeros(sample.held.labeled_point.shape)
        follower = Follower(objective_of(sample.problem), held)
        spread = held.spread(follower.state(scores, 1.0).gradient)
        begin = follower.state(scores, max(settings.FIRST_TAU * spread, effort.tol))
        return [follower.follow(begin, effort)]

    effort = Effort(tol=limits.tol, aim=settings.CONVEX_GAP, max_iter=rounds, work=work)
    found = search(problem, objective_of, follow, effort)
    return replace(found, objective=-found.objective)


@dataclass(frozen=True)
class Contrast(Objective):
    """-h per row, which is concave, with its derivatives."""

    scores: Array  # (K, 1 + rank): linear scores of the supervised model
    constant: float
    log_priors: Array | None  # (K,) when fixed by the user
    shrinkage: float
    weight: float = 1.0  # the unit of gaps: the contrast is per row

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """-h, minus infinity at the floor, and its gradient.

        The gradient is the lead of the supervised scores over those of the model at the point.
        """
        if not smallest_eigenvalue(point) > FLOOR:
            return -np.inf, np.zeros_like(point)
        precise, r, keep = (
            precise_means(point, is_for_newton=True),
            point[:, 0],
            1 - self.shrinkage,
        )
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        value = precise.log_det / (2 * keep) - r @ log_priors
        gradient = self.scores.copy()
        gradient[:, 0] -= log_priors - precise.along / (2 * keep * r)
        gradient[:, 1:] -= precise.rows / keep
        return float(value + np.vdot(self.scores, point) + self.constant), gradient

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        precise, keep = precise_means(point, is_for_newton=True), 1 - self.shrinkage
        r, b = point[:, 0], point[:, 1:]

        def change(direction: Array) -> Array:
            dr, drows = (
                direction[..., 0],
                change_of_precise_means(point, precise, direction),
            )
            dalong = (drows * b + precise.rows * direction[..., 1:]).sum(axis=-1)
            found = np.empty(direction.shape)
            found[..., 1:] = -drows / keep
            found[..., 0] = (dalong - precise.along / r * dr) / (2 * keep * r)
            if self.log_priors is None:
                found[..., 0] -= dr / r
            return found

        return change


def contrast_with(problem: Problem, reference: Gaussians) -> Contrast:
    """The contrast of a problem with its supervised model."""
    whitening, keep, rank = (
        problem.whitening,
        1 - problem.shrinkage,
        problem.whitening.rank,
    )
    scores = problem.scores_of(reference.score_rule())
    # A row z in whitened coordinates is half @ z + shift, standardized by the reference.
    half = reference.projection @ whitening.inverse
    shift = reference.projection @ (whitening.mean - reference.center)
    spread = float(np.vdot(half, half) + shift @ shift)
    log_det = reference.log_det - whitening.log_det
    constant = (rank + rank * np.log(keep) - log_det) / (2 * keep) - spread / 2
    return Contrast(scores, float(constant), problem.log_priors, problem.shrinkage)
