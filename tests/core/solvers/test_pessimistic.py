from itertools import product

import numpy as np
import pytest
import scipy.optimize

from iclda._core.contrast import contrast_with
from iclda._core.gains import gains_over
from iclda._core.solvers import Limits, Outcome, settings
from iclda._core.solvers.attainable import hold_all
from iclda._core.solvers.pessimistic import maximize_worst_gain
from iclda._core.solvers.supervised import supervised_reference
from problems import draw_sample, one_hot, problem_of, random_shares

OPTIONS = {"limits": Limits(200, 1e-8)}


def tiny_sample(number):
    """Few unlabeled rows, enough labels for a supervised fit."""
    n_classes = 2 + number % 2
    return draw_sample(
        [2016, number],
        n_classes=n_classes,
        n_features=1 + number // 2 % 3,
        n_labeled=5 * n_classes,
        n_unlabeled=(8, 5)[number % 2],
        separation=(0.3, 1.0, 3.0)[number // 6 % 3],
    )


def gain_of(problem, held, contrast):
    """The gain h as a function of (n, K) shares of the unlabeled rows, and its gradient."""

    def evaluate(shares):
        point = held.labeled_point + (shares.T * held.weights) @ held.z
        value, gradient = contrast.value_and_gradient(point)
        return -value, -(held.weights * (gradient @ held.z.T)).T

    return evaluate


def prepared(problem):
    held = hold_all(problem)
    return gain_of(problem, held, contrast_with(problem, supervised_reference(problem)))


@pytest.mark.parametrize("number", range(18))
def test_no_labeling_hard_or_soft_has_a_lower_gain(number):
    sample = tiny_sample(number)
    problem = problem_of(sample)
    found, gain = maximize_worst_gain(problem, **OPTIONS), prepared(problem)
    assert found.outcome is Outcome.CONVERGED
    assert found.gap <= 1e-8
    n_rows, n_classes = len(sample.X_unlabeled), sample.n_classes
    for labels in product(range(n_classes), repeat=n_rows):
        assert gain(one_hot(np.array(labels), n_classes))[0] >= found.objective - 1e-9
    rng = np.random.default_rng(number)
    for _ in range(50):
        shares = random_shares(rng, n_rows, n_classes, sharpness=2)
        assert gain(shares)[0] >= found.objective - 1e-9


@pytest.mark.parametrize("number", range(12))
def test_the_solution_is_that_of_a_general_convex_solver(number):
    sample = tiny_sample(number)
    problem = problem_of(sample, shrinkage=(0.0, 0.3)[number % 3 == 0])
    found, gain = maximize_worst_gain(problem, **OPTIONS), prepared(problem)
    n_rows, n_classes = len(sample.X_unlabeled), sample.n_classes
    shape, add_up = (n_rows, n_classes), np.kron(np.eye(n_rows), np.ones(n_classes))

    def flat_gain(flat):
        value, gradient = gain(flat.reshape(shape))
        return value, gradient.ravel()

    solved = scipy.optimize.minimize(
        flat_gain,
        np.full(n_rows * n_classes, 1 / n_classes),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * (n_rows * n_classes),
        constraints={"type": "eq", "fun": lambda x: add_up @ x - 1, "jac": lambda x: add_up},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.objective == pytest.approx(solved.fun, abs=1e-7)
    assert found.objective <= solved.fun + 1e-9


@pytest.mark.parametrize("options", [{}, {"fixed": True}], ids=["free", "priors"])
def test_the_worst_gain_of_the_model_is_the_objective_and_not_negative(sample, options):
    if options:
        options = {"log_priors": -np.log(sample.n_classes) * np.ones(sample.n_classes)}
    problem = problem_of(sample, **options)
    found = maximize_worst_gain(problem, **OPTIONS)
    model = problem.model_of(found.point, found.rule)
    worst = gains_over(problem, model, supervised_reference(problem)).worst
    assert worst == pytest.approx(found.objective - found.gap, abs=1e-9)
    assert worst >= -1e-12


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}], ids=["plain", "shrunk"])
def test_all_starts_end_in_the_same_model(sample, options):
    problem = problem_of(sample, **options)
    rng = np.random.default_rng(0)
    models = [
        problem.model_of(maximize_worst_gain(problem, start=start, **OPTIONS).point)
        for start in (None, *(3 * rng.standard_normal((3, *problem.labeled_point.shape))))
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.means, models[0].means, atol=1e-6)
        np.testing.assert_allclose(model.covariance, models[0].covariance, atol=1e-6)


@pytest.mark.parametrize("separation", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_rows_than_are_held_reach_the_same_objective(monkeypatch, n_classes, separation):
    sample = draw_sample(
        [16, n_classes],
        n_classes=n_classes,
        n_features=3,
        n_labeled=8 * n_classes,
        n_unlabeled=6000,
        separation=separation,
    )
    held = maximize_worst_gain(problem_of(sample), **OPTIONS)
    monkeypatch.setattr(settings, "HELD_ROWS", 2000)
    read = maximize_worst_gain(problem_of(sample), Limits(200, 1e-6))
    assert held.outcome is read.outcome is Outcome.CONVERGED
    assert held.objective - held.gap - 1e-12 <= read.objective <= held.objective + 1e-6
    assert held.n_passes <= 2
    assert 2 < read.n_passes <= 20


def test_the_steps_allowed_are_not_exceeded_and_the_gap_is_reported(sample):
    found = maximize_worst_gain(problem_of(sample), Limits(1))
    assert found.outcome is Outcome.MAX_ITERATIONS
    assert found.gap > 0
