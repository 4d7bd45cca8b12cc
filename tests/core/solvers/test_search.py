import numpy as np
import pytest

from iclda._core.solvers import Limits, Outcome
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from iclda._core.solvers.pessimistic import maximize_worst_gain
from tests.helpers.problems import change_settings, draw_apart, point_of, problem_of

OPTIONS = {"limits": Limits(200, 1e-7), "n_starts": 32, "seed": 0}


def solve(problem, **options):
    return maximize_labeled_likelihood(problem, **{**OPTIONS, **options})


@pytest.mark.parametrize("separation", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", [solve, maximize_worst_gain])
def test_more_rows_than_are_held_reach_the_same_objective(
    monkeypatch, n_classes, separation, solver
):
    sample = draw_apart(n_classes, 6000, separation)
    held = solver(problem_of(sample), limits=Limits(200, 1e-8))
    change_settings(monkeypatch, "HOLDING", max_rows=2000)
    change_settings(monkeypatch, "STARTS", screened_rows=500)
    read = solver(problem_of(sample), limits=Limits(200, 1e-6))
    assert held.outcome is read.outcome is Outcome.CONVERGED
    assert read.objective == pytest.approx(held.objective, abs=1e-6)
    assert read.gap <= 1e-6
    assert held.n_passes <= 2
    assert 2 < read.n_passes <= 20


def test_seeds_and_the_number_of_starts_do_not_change_the_best_maximum(sample):
    problem = problem_of(sample)
    objectives = [solve(problem, seed=seed).objective for seed in range(3)]
    objectives.append(solve(problem, n_starts=100).objective)
    np.testing.assert_allclose(objectives, objectives[0], atol=1e-8)


@pytest.mark.parametrize("options", [{"shrinkage": 0.2}, {"fixed": True}])
def test_no_random_labeling_does_better(sample, options):
    log_priors = -np.log(sample.n_classes) * np.ones(sample.n_classes)
    options = {"log_priors": log_priors} if "fixed" in options else options
    problem = problem_of(sample, **options)
    found = solve(problem)
    assert found.outcome is Outcome.CONVERGED
    rng = np.random.default_rng(0)
    for scale in (0.3, 1, 3, 10):
        for _ in range(20):
            scores = scale * rng.standard_normal(problem.labeled_point.shape)
            point = point_of(problem, problem.rule_of(scores, is_soft=True))
            value = problem.likelihood.value(point)
            assert value / problem.likelihood.weight <= found.objective + 1e-7
