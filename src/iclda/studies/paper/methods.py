"""The classifiers of the experiments, each a function from one shared problem to a model.

The estimators check and convert what a user passes; here thousands of small problems come from one
place, so checks and whitening are done once a cell and shared by all methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._core.frame import frame_of
from ..._core.gaussian import Gaussians
from ..._core.labelsums import GivenLabels, Rule
from ..._core.likelihood import FLOOR, smallest_eigenvalue
from ..._core.problem import Problem, summarize_labeled
from ..._core.solvers.alternate import alternate, start_scores
from ..._core.solvers.attainable import hold_all
from ..._core.solvers.moment_match import match_moments
from ..._core.solvers.search import maximize_labeled_likelihood
from ..._core.solvers.supervised import fit_labeled
from ..._core.types import AnyArray, Array
from ..._rows.memory import MemoryRows

_PUBLISHED_ROUNDS = 100
_TRACE_OF_SHRINKAGE = 1e-3


@dataclass(frozen=True)
class Training:
    """Labeled and unlabeled rows of a cell; the true classes of the latter are for the oracle."""

    X: Array
    codes: AnyArray
    X_unlabeled: Array
    codes_unlabeled: AnyArray
    n_classes: int
    seed: int

    @cached_property
    def rows(self) -> Array:
        """Labeled rows, then unlabeled ones."""
        return np.concatenate([self.X, self.X_unlabeled])

    @cached_property
    def problem(self) -> Problem:
        """The problem all methods share."""
        frame = frame_of(self.rows)
        labels = GivenLabels(self.codes, self.n_classes)
        labeled = summarize_labeled(MemoryRows(self.X), labels, frame)
        return Problem(frame, labeled, MemoryRows(self.X_unlabeled))


def supervised(training: Training) -> Gaussians:
    """LDA on the labeled rows."""
    problem = training.problem
    return fit_labeled(problem.frame, problem.labeled)[0]


def oracle(training: Training) -> Gaussians:
    """LDA given every label."""
    codes = np.concatenate([training.codes, training.codes_unlabeled])
    labels = GivenLabels(codes, training.n_classes)
    frame = training.problem.frame
    return fit_labeled(frame, summarize_labeled(MemoryRows(training.rows), labels, frame))[0]


def moment_constrained(training: Training) -> Gaussians:
    """MCLDA in the variant that made the published tables.

    Where labeled rows do not vary within their classes in some direction (a column of SPECT, now
    and then) no map exists, and a trace of shrinkage makes one.
    """
    problem = training.problem
    if problem.labeled_rank < problem.whitening.rank:
        problem = replace(problem, shrinkage=_TRACE_OF_SHRINKAGE)
    return match_moments(problem, "symmetric")


def self_learning(training: Training) -> Gaussians:
    """SLLDA."""
    found = alternate(training.problem, is_soft=False, tol=0.0, max_iter=1000)
    return training.problem.model_of(found.point, found.rule)


def expectation_maximization(training: Training) -> Gaussians:
    """EMLDA as the text of the paper defines it."""
    found = alternate(training.problem, is_soft=True, tol=1e-10, max_iter=10_000)
    return training.problem.model_of(found.point, found.rule)


def implicitly_constrained(training: Training) -> Gaussians:
    """ICLDA."""
    return implicit_labels(training)[1]


def implicit_labels(training: Training) -> tuple[Rule, Gaussians]:
    """The labeling that ICLDA imputes, and the model it gives."""
    problem = training.problem
    found = maximize_labeled_likelihood(
        problem, tol=1e-6, max_iter=200, n_starts=32, seed=training.seed
    )
    return found.rule, problem.model_of(found.point, found.rule)


def expectation_maximization_as_published(training: Training) -> Gaussians:
    """EMLDA with the two faults of the code behind the published numbers; for comparison only.

    In every E step after the first it subtracted the feature means from the unlabeled rows a
    second time, and throughout it dropped the factor 1/2 in the exponent of the density.
    """
    problem, whitening = training.problem, training.problem.whitening
    means = problem.frame.restore(problem.moments.mean) / problem.frame.scale
    shift = whitening.transform @ means
    log_priors = np.log(problem.labeled.counts / problem.labeled.weight)
    scores = _without_half(start_scores(problem), log_priors)
    rows, point = hold_all(problem), problem.labeled_point
    for _ in range(_PUBLISHED_ROUNDS):
        used = scores
        before, point = point, rows.soft_point(used)[0]
        if np.abs(point - before).max() < 1e-7 or smallest_eigenvalue(point) <= FLOOR:
            break
        scores = _without_half(problem.posterior_scores(point), np.log(point[:, 0]))
        scores[:, 0] -= scores[:, 1:] @ shift
    return problem.model_of(point, problem.rule_of(used, is_soft=True))


def _without_half(scores: Array, log_priors: Array) -> Array:
    doubled = 2 * scores
    doubled[:, 0] -= log_priors
    return doubled


FITS: dict[str, Callable[[Training], Gaussians]] = {
    "LDA": supervised,
    "LDAoracle": oracle,
    "MCLDA": moment_constrained,
    "EMLDA": expectation_maximization,
    "EMLDA-as-published": expectation_maximization_as_published,
    "SLLDA": self_learning,
    "ICLDA": implicitly_constrained,
}


def self_training(training: Training) -> Any:
    """scikit-learn's self-training around its LDA."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.semi_supervised import SelfTrainingClassifier

    return SelfTrainingClassifier(LinearDiscriminantAnalysis()).fit(*_marked(training))


def label_spreading(training: Training) -> Any:
    """scikit-learn's label spreading on standardized features, 7 nearest neighbours."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.semi_supervised import LabelSpreading

    model = make_pipeline(StandardScaler(), LabelSpreading(kernel="knn"))
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that no label reaches, and rounds that run out
        return model.fit(*_marked(training))


def _marked(training: Training) -> tuple[Array, AnyArray]:
    unlabeled = np.full(len(training.X_unlabeled), -1)
    return training.rows, np.concatenate([training.codes, unlabeled])


# They give no density: their error is reported, their loss is not.
EXTRA_FITS: dict[str, Callable[[Training], Any]] = {
    "SelfTraining": self_training,
    "LabelSpreading": label_spreading,
}
