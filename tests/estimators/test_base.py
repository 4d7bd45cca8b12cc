"""The template of all classifiers: what lies between fit and the sums, and the outcome."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import iclda
from iclda import AutoLDA, ImplicitlyConstrainedLDA, MomentConstrainedLDA
from iclda._core.problem import Problem
from iclda._core.rows import Rows
from iclda._core.solvers import Outcome, implicit
from iclda._estimators import base, moment_constrained
from iclda._estimators.fit_inputs import FitInputs
from iclda.methods import FITTED, FURTHER

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
TRUE = np.arange(60) % 2
X = np.random.default_rng(5).standard_normal((60, 3)) + 1.0 * TRUE[:, None]
Y = np.where(np.arange(60) < 20, TRUE, -1)


def test_the_three_values_between_fit_and_the_sums_are_those_of_the_document():
    text = ARCHITECTURE.read_text()
    sentence = re.search(r"Three values lie between `fit` and the sums: (.*?)\.", text)
    named = re.findall(r"`(\w+)`", sentence[1])
    seen = []

    class Watched(ImplicitlyConstrainedLDA):
        def _fit_inputs(self, inputs):
            seen.append(inputs)
            super()._fit_inputs(inputs)

        def _solve(self, problem):
            seen.append(problem)
            seen.append(problem.unlabeled)
            return super()._solve(problem)

    Watched().fit(X, Y)
    assert [FitInputs, Problem, Rows] == [type(seen[0]), type(seen[1]), Rows]
    members = ("moments", "label_sums", "sample", "responsibilities")
    assert all(hasattr(seen[2], member) for member in members)
    assert named == ["FitInputs", "Problem", "Rows"]


ITERATIVE = sorted(
    name
    for name in {method.class_name for method in (*FITTED, *FURTHER)}
    if "max_iter" in getattr(iclda, name)().get_params()
)


def warned_outcomes(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    kinds = [each.message for each in caught]
    return [
        each.outcome for each in kinds if isinstance(each, iclda.NotConvergedWarning)
    ]


@pytest.mark.parametrize("name", ITERATIVE)
def test_the_warning_and_the_fit_agree_on_the_outcome(name):
    model = getattr(iclda, name)(max_iter=1)
    if "tol" in model.get_params():
        model.set_params(tol=0.0)
    outcomes = warned_outcomes(model, X, Y)
    if model.converged_:
        assert (outcomes, model.outcome_) == ([], "converged")
    else:
        assert outcomes == [model.outcome_]


@pytest.mark.parametrize("name", ITERATIVE)
def test_they_agree_where_the_likelihood_has_no_maximum(name):
    rows = np.column_stack([X, 1.0 * TRUE])
    model = getattr(iclda, name)()
    try:
        outcomes = warned_outcomes(model, rows, Y)
    except iclda.FitError:
        return
    assert outcomes == ([] if model.converged_ else [model.outcome_])


def test_a_moment_constrained_fit_that_stalls_says_so(monkeypatch):
    solve = moment_constrained.maximize_under_moments
    monkeypatch.setattr(
        moment_constrained,
        "maximize_under_moments",
        lambda problem: (solve(problem)[0], Outcome.STALLED),
    )
    model = MomentConstrainedLDA(variant="likelihood")
    assert warned_outcomes(model, X, Y) == ["stalled"]
    assert (model.converged_, model.outcome_) == (False, "stalled")


def test_an_error_in_a_solver_is_not_taken_for_rows_that_cannot_be_fitted(monkeypatch):
    def broken(*arguments, **parameters):
        raise ValueError("a mistake in the solver")

    monkeypatch.setattr(implicit, "maximize_labeled_likelihood", broken)
    monkeypatch.setattr(
        "iclda._estimators.implicitly_constrained.maximize_labeled_likelihood", broken
    )
    with pytest.raises(ValueError, match="a mistake in the solver"):
        AutoLDA(methods=["supervised", "iclda"]).fit(X, Y)


def test_a_fit_that_fails_leaves_the_earlier_one(monkeypatch):
    model = ImplicitlyConstrainedLDA().fit(X, Y)
    before = dict(vars(model))
    monkeypatch.setattr(base, "prepare", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X[:, :2], Y)
    assert vars(model) == before
