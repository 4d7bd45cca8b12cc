"""Minimize a convex function over all labelings of the unlabeled rows.

One path leads to the only minimum of a convex function, and the gap bounds how far any
point is above it. Squared losses are convex (``squares``), and so is the gain over the
supervised fit, whose minimum is the model of the largest least gain: the pessimistic
fit.

For labels q of the unlabeled rows that give the point p, the fit to all rows has the
highest likelihood of all models, and gains

    h(p) = sum_k r_k log r_k - log|M| / (2 (1 - s)) - (supervised scores)' p + constant

on the supervised model, per row: the likelihood of any one model is linear in p, in
these coordinates. h is a maximum of linear functions, hence convex; its minimum over
the attainable set is the largest gain that a model has whatever the labels are. With
shrinkage s both likelihoods are less the penalty N0/2 (log|Sigma| + nu tr Sigma^-1),
N0 = N s / (1 - s). Derivation: docs/safety.md.
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
    change_of_precision_weighted_means,
    precision_weighted_means,
    smallest_eigenvalue,
)
from ..problem import Problem
from . import Limits, settings
from .continuation import Effort
from .held import n_held_rows
from .newton import WorkLeft
from .sample import Sample
from .search import Goal, Solution, Start, search
from .sets import attainable_sets
from .supervised import supervised_reference, target_of_labeled


def maximize_worst_gain(problem: Problem, limits: Limits) -> Solution:
    """Return the model of the highest least gain over the supervised one.

    ``objective`` and ``gap`` are per row: no model has a least gain above the
    objective, and this one has the objective less the gap.
    """
    reference = supervised_reference(problem)

    # The reference is fitted to the labeled rows alone: it is that of a sample, too.
    def contrast_of(problem: Problem) -> Objective:
        contrast = contrast_with(problem, reference)
        constant = contrast.constant - _gain_left_out(problem)
        return replace(contrast, constant=constant)

    return minimize_over_labelings(problem, contrast_of, limits)


def _gain_left_out(problem: Problem) -> float:
    """Return the gain in directions in which no row varies.

    Shrinkage alone sets both covariances there.
    """
    if problem.n_left_out == 0 or problem.ridge is None:
        return 0.0
    n_left_out = problem.n_left_out
    keep = 1 - problem.shrinkage
    supervised = target_of_labeled(problem.labeled, problem.frame, n_left_out)
    of_all_rows = keep / problem.shrinkage * problem.ridge[0]
    ratio = of_all_rows * problem.labeled.weight / supervised[0]
    return float(n_left_out * (ratio - 1 - np.log(ratio)) / (2 * keep))


def minimize_over_labelings(
    problem: Problem,
    negative_of: Callable[[Problem], Objective],
    limits: Limits,
) -> Solution:
    """Return the minimum of a convex function of the point, with its certificate.

    ``negative_of`` gives minus the function in the coordinates of a problem: a sample
    of the rows has its own.
    """
    max_iter = problem.rounds(limits.max_iter)
    n_rows = problem.unlabeled.n_rows
    n_numbers = n_rows * problem.labeled_point.size
    work = WorkLeft()
    if max_iter < limits.max_iter:
        # Steps of many classes may each take hundreds of products.
        work = WorkLeft(max_iter * n_numbers)
    elif not attainable_sets(problem).are_free and n_held_rows(problem) < n_rows:
        # So may labelings that fill quotas.
        numbers_per_iteration = max(
            settings.WORK.min_numbers_per_iteration,
            settings.WORK.share_of_numbers_per_iteration * n_numbers,
        )
        work = WorkLeft(max_iter * numbers_per_iteration)
    effort = Effort(
        tol=limits.tol, aim=settings.GAPS.aimed_of_convex, max_iter=max_iter, work=work
    )
    goal = Goal(
        objective_of=negative_of,
        starts_of=_equal_shares,
        effort_of=lambda n_rows: effort,
    )
    solution = search(problem, goal)
    return replace(solution, objective=-solution.objective)


def _equal_shares(sample: Sample) -> list[Start]:
    """Return the only start of a concave objective."""
    scores = np.zeros(sample.problem.labeled_point.shape)
    return [Start(scores, settings.CONVEX.first_height)]


@dataclass(frozen=True)
class Contrast(Objective):
    """-h per row, which is concave, with its derivatives.

    Attributes
    ----------
    scores : (K, 1 + rank) linear scores of the supervised model
    constant : the part of -h that does not depend on the point
    log_priors : (K,) when fixed by the user
    shrinkage : s
    weight : the unit of gaps; the contrast is per row
    """

    scores: Array
    constant: float
    log_priors: Array | None
    shrinkage: float
    weight: float = 1.0

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Return -h, minus infinity at the floor, and its gradient.

        The gradient is the lead of the supervised scores over those of the model at the
        point.
        """
        if not smallest_eigenvalue(point) > FLOOR:
            return -np.inf, np.zeros_like(point)
        weighted_means = precision_weighted_means(point, is_for_newton=True)
        r = point[:, 0]
        keep = 1 - self.shrinkage
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        # -h = log|M| / (2 (1 - s)) - r'log priors + (supervised scores)'p + constant
        value = weighted_means.log_det / (2 * keep) - r @ log_priors
        value = value + np.vdot(self.scores, point) + self.constant
        # h is the maximum over models of linear functions of p: its gradient is that of
        # the linear function of the best model, the scores of that model.
        gradient = self.scores.copy()
        gradient[:, 0] -= log_priors - weighted_means.along / (2 * keep * r)
        gradient[:, 1:] -= weighted_means.rows / keep
        return float(value), gradient

    def hessian_product(self, point: Array) -> Callable[[Array], Array]:
        """Map directions to changes of the gradient, differentiated term by term."""
        weighted_means = precision_weighted_means(point, is_for_newton=True)
        keep = 1 - self.shrinkage
        r = point[:, 0]
        b = point[:, 1:]

        def change(direction: Array) -> Array:
            dr = direction[..., 0]
            db = direction[..., 1:]
            drows = change_of_precision_weighted_means(point, weighted_means, direction)
            # mu_k' M^-1 mu_k = along_k / r_k changes by ``dratio`` / r_k.
            dalong = (drows * b + weighted_means.rows * db).sum(axis=-1)
            dratio = dalong - weighted_means.along / r * dr
            dgradient = np.empty(direction.shape)
            dgradient[..., 1:] = -drows / keep
            dgradient[..., 0] = dratio / (2 * keep * r)
            if self.log_priors is None:
                dgradient[..., 0] -= dr / r
            return dgradient

        return change


def contrast_with(problem: Problem, reference: Gaussians) -> Contrast:
    """Return the contrast of a problem with its supervised model."""
    whitening = problem.whitening
    rank = whitening.rank
    keep = 1 - problem.shrinkage
    # A row z in whitened coordinates is half @ z + shift, standardized by the
    # reference.
    # The mean of its squared length over all rows, of mean 0 and covariance I, follows.
    half = reference.projection @ whitening.inverse
    shift = reference.projection @ (whitening.mean - reference.center)
    spread = float(np.vdot(half, half) + shift @ shift)
    log_det = reference.log_det - whitening.log_det
    added = rank + rank * np.log(keep) - log_det
    constant = added / (2 * keep) - spread / 2
    return Contrast(
        scores=problem.scores_of(reference.score_rule()),
        constant=float(constant),
        log_priors=problem.log_priors,
        shrinkage=problem.shrinkage,
    )
