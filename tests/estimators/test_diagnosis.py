"""Fits that do not converge say what stopped them, in fields and in words."""

import numpy as np
import pytest

from iclda import (
    ExpectationMaximizationLDA,
    ExpectationMaximizationNearestMean,
    ImplicitlyConstrainedLDA,
    ImplicitlyConstrainedLeastSquares,
    NotConvergedWarning,
    PessimisticLDA,
    SelfLearningLDA,
    SelfLearningLeastSquares,
    SelfTrainingLDA,
)
from iclda._core import problem
from problems import draw_sample

ITERATIVE = [
    ExpectationMaximizationLDA,
    ExpectationMaximizationNearestMean,
    ImplicitlyConstrainedLDA,
    ImplicitlyConstrainedLeastSquares,
    PessimisticLDA,
    SelfLearningLDA,
    SelfLearningLeastSquares,
    SelfTrainingLDA,
]
SAMPLE = draw_sample(11, separation=0.3, n_unlabeled=200)


def fit_with_warning(classifier, match):
    with pytest.warns(NotConvergedWarning, match=match) as caught:
        fitted = SAMPLE.fit(classifier)
    assert not fitted.converged_
    assert [each.message.outcome for each in caught] == [fitted.outcome_]
    return fitted


@pytest.mark.parametrize("classifier", ITERATIVE)
def test_too_few_rounds_are_the_outcome_and_a_larger_max_iter_the_advice(classifier):
    assert SAMPLE.fit(classifier()).outcome_ == "converged"
    fitted = fit_with_warning(classifier(max_iter=1), r"Raise max_iter \(now 1\)")
    assert fitted.outcome_ == "max_iterations"
    assert fitted.n_iter_ >= 1


@pytest.mark.parametrize("classifier", [ExpectationMaximizationLDA, SelfLearningLDA])
def test_many_classes_limit_the_rounds_and_max_iter_is_not_advised(classifier, monkeypatch):
    monkeypatch.setattr(problem, "_MANY_CLASSES", 1)
    monkeypatch.setattr(problem, "_MOST_SHARES", 1)
    monkeypatch.setattr(problem, "_LEAST_ROUNDS", 1)
    fitted = fit_with_warning(classifier(), "pass fewer unlabeled rows, or raise tol")
    assert fitted.outcome_ == "many_classes"


def test_where_rounding_forbids_the_tolerance_a_larger_one_is_advised():
    fitted = fit_with_warning(PessimisticLDA(tol=0), r"max_iter does not help: raise tol \(now 0\)")
    assert fitted.outcome_ == "stalled"


def test_a_likelihood_without_a_maximum_is_unbounded():
    rows = np.array([[0.0], [0.0], [1.0], [1.0], [0.0], [1.0]])
    with pytest.warns(NotConvergedWarning, match="one value per class.*pass shrinkage") as caught:
        fitted = SelfLearningLDA().fit(rows, [0, 0, 1, 1, -1, -1])
    assert (fitted.outcome_, caught[0].message.outcome) == ("unbounded", "unbounded")
