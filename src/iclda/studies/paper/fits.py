"""Fits of the paper's methods to the training rows of a cell, and their predictions.

``fit_method`` finds a method by its name in the paper. EM with the faults of the code
behind the published numbers is fitted here and nowhere else (``fit_published_em``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from ..._core import AnyArray, Array
from ..._core.frame import frame_of
from ..._core.gaussian import Gaussians
from ..._core.labelsums import GivenLabels
from ..._core.likelihood import FLOOR, smallest_eigenvalue
from ..._core.problem import Problem, summarize_labeled
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.held import hold_all
from ..._core.solvers.implicit import maximize_labeled_likelihood
from ..._estimators.base import LinearGaussianClassifier
from ..._estimators.linear_model import gaussian_model_of
from ..._rows.memory import MemoryRows
from ...methods import COMPARED, find_method
from ..measures import Predictions
from . import design

# The shrinkage of a method that has no fit without any.
_LITTLE_SHRINKAGE = 1e-3
# Parameters of the paper's methods that differ from the defaults of the classifiers.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "MCLDA": {"variant": "symmetric"},
    "EMLDA": {"tol": 1e-10},
}
# The published EM stops after this many rounds ...
_PUBLISHED_EM_ROUNDS = 100
# ... or when no entry of the point (r, B) changes by this much.
_PUBLISHED_EM_TOL = 1e-7


@dataclass(frozen=True)
class CellRows:
    """Training rows of a cell. Only the oracle uses ``codes_unlabeled``."""

    X: Array
    codes: AnyArray
    X_unlabeled: Array
    codes_unlabeled: AnyArray
    n_classes: int
    seed: int

    @cached_property
    def rows(self) -> Array:
        """All training rows: labeled ones first, then unlabeled ones."""
        return np.concatenate([self.X, self.X_unlabeled])

    @property
    def y(self) -> AnyArray:
        """Classes of ``rows``, -1 for unlabeled rows."""
        return np.concatenate([self.codes, np.full(len(self.X_unlabeled), -1)])

    @cached_property
    def problem(self) -> Problem:
        """The problem of the cell. All methods share it, so moments are summed once."""
        frame = frame_of(self.rows)
        labels = GivenLabels(self.codes, self.n_classes)
        labeled = summarize_labeled(MemoryRows(self.X), labels, frame)
        return Problem(frame, labeled, MemoryRows(self.X_unlabeled))


def fit_published_em(
    problem: Problem, n_rounds: int = _PUBLISHED_EM_ROUNDS
) -> Gaussians:
    """Fit EMLDA with the two faults of the code behind the published numbers.

    In every E step after the first it subtracted the feature means from the unlabeled
    rows a second time, and throughout it dropped the factor 1/2 in the exponent of the
    density.
    """
    feature_means = problem.frame.restore(problem.moments.mean) / problem.frame.scale
    # By how much the second subtraction moves the rows, in whitened coordinates.
    shift = problem.whitening.transform @ feature_means
    log_priors = np.log(problem.labeled.counts / problem.labeled.weight)
    # The first E step is that of the supervised fit.
    scores = _without_half(start_scores(problem), log_priors)
    rows = hold_all(problem)
    point = problem.labeled_point
    for _ in range(n_rounds):
        used_scores = scores
        point_before = point
        point = rows.soft_labels(used_scores).point
        change = np.abs(point - point_before).max()
        is_at_floor = smallest_eigenvalue(point) <= FLOOR
        if change < _PUBLISHED_EM_TOL or is_at_floor:
            break
        log_class_weights = np.log(point[:, 0])
        scores = _without_half(problem.posterior_scores(point), log_class_weights)
        scores[:, 0] -= scores[:, 1:] @ shift
    return problem.model_of(point, problem.rule_of(used_scores, is_soft=True))


def _without_half(scores: Array, log_priors: Array) -> Array:
    """Double the exponents: a score is the log prior plus the exponent."""
    doubled = 2 * scores
    doubled[:, 0] -= log_priors
    return doubled


def fit_method(method: str, rows: CellRows) -> Any:
    """Fit a method, by its name in the paper, to the training rows of a cell.

    Returns ``Gaussians``, or a fitted classifier without a density. Most methods are
    fitted to the problem that they share: if each called ``fit``, which checks the rows
    and sums their moments, a cell would take twice as long.
    """
    problem = rows.problem
    if method == design.PUBLISHED_EM:
        return fit_published_em(problem)
    if method == design.ORACLE:
        problem = _with_all_labels(rows)
        method = design.BASELINE

    classifier = _unfitted_classifier(method)
    has_density = isinstance(classifier, LinearGaussianClassifier)
    # A problem has sums of the labeled rows, but not the rows themselves. Without a
    # density, predictions need the fitted classifier.
    if not has_density or classifier._needs.labeled_rows:
        fitted = clone(classifier).fit(rows.rows, rows.y)
        model = gaussian_model_of(fitted)
        return fitted if model is None else model.gaussians

    # A covariance of the labeled rows alone is singular if they do not vary in some
    # direction: some splits of SPECT have a column that is constant in them.
    needs_spread = classifier._needs.labeled_covariance
    if needs_spread and problem.labeled_rank < problem.whitening.rank:
        problem = replace(problem, shrinkage=_LITTLE_SHRINKAGE)
    if method == "ICLDA":
        # Random starts of the search depend on the seed of the study.
        limits = classifier._limits_of(problem)
        best = maximize_labeled_likelihood(
            problem, limits, n_starts=classifier.n_starts, seed=rows.seed
        )
        return problem.model_of(best.point, best.rule)
    return classifier._solve(problem.recast(classifier._needs.problem)).model


def _with_all_labels(rows: CellRows) -> Problem:
    """Return the problem of a cell in which all training rows are labeled."""
    codes = np.concatenate([rows.codes, rows.codes_unlabeled])
    labels = GivenLabels(codes, rows.n_classes)
    frame = rows.problem.frame
    labeled = summarize_labeled(MemoryRows(rows.rows), labels, frame)
    return replace(rows.problem, labeled=labeled)


@cache
def _unfitted_classifier(method: str) -> Any:
    """Return the classifier of a method, unfitted.

    All cells share it, since making one takes longer than fitting a few dozen rows.
    """
    classifier = find_method(method, COMPARED).classifier()
    return classifier.set_params(**_PARAMETERS.get(method, {}))


def predict_rows(model: Any, X: Array, codes: AnyArray, rows: CellRows) -> Predictions:
    """Predict test rows of known classes, and the labeled training rows.

    ``model`` is what ``fit_method`` returned: ``Gaussians``, which have a likelihood,
    or a fitted classifier, which has none.
    """
    if not isinstance(model, Gaussians):
        return Predictions(
            truth=codes,
            is_wrong=model.predict(X) != codes,
            probabilities=model.predict_proba(X),
        )
    # The log of prior x density, of every row in every class.
    joint = model.log_joint(X)
    joint_labeled = model.log_joint(rows.X)
    return Predictions(
        truth=codes,
        is_wrong=joint.argmax(axis=1) != codes,
        probabilities=softmax(joint, axis=1),
        log_likelihood=_of_class(joint, codes),
        log_likelihood_labeled=_of_class(joint_labeled, rows.codes),
    )


def _of_class(values: Array, codes: AnyArray) -> Array:
    """Return the value (n,) of every row in its class, from values (n, K)."""
    return values[np.arange(len(codes)), codes]
