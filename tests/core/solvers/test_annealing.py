import numpy as np
import pytest

from iclda._core.solvers.annealing import Annealing
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.starts import StartMaker
from tests.helpers.problems import draw_sample, problem_of


def _problem(n_classes=3, seed=0):
    sample = draw_sample(n_classes=n_classes, seed=seed)
    problem = problem_of(sample)
    return problem, hold_all(problem)


def _ended(problem, held, scores):
    annealing = Annealing(problem.likelihood, held)
    return annealing, *annealing.run(scores, (0.05,), to_the_end=True)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_step_of_the_annealing_loses_merit(n_classes):
    problem, held = _problem(n_classes)
    annealing = Annealing(problem.likelihood, held)
    population = annealing.evaluate(StartMaker(problem, 0).first(16))
    tau = 0.05 * annealing.spread
    for _ in range(12):
        before = population.merits(tau)
        population = annealing.step(population, tau)
        assert (population.merits(tau) >= before - 1e-9 * np.abs(before)).all()


def test_the_annealing_ends_where_scores_are_gradients_over_tau():
    problem, held = _problem()
    annealing = Annealing(problem.likelihood, held)
    population = annealing.evaluate(np.zeros((1, *held.labeled_point.shape)))
    tau = annealing.spread
    for _ in range(200):
        population = annealing.step(population, tau)
    np.testing.assert_allclose(population.scores, population.gradients / tau, atol=1e-6)


def test_members_that_have_met_are_one():
    problem, held = _problem()
    scores = StartMaker(problem, 0).first(8)
    population = _ended(problem, held, np.concatenate([scores, scores]))[1]
    once = _ended(problem, held, scores)[1]
    assert len(population.values) == len(once.values)
    np.testing.assert_allclose(np.sort(population.values), np.sort(once.values))
