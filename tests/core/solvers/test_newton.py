import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda._core.solvers.continuation import Follower
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.newton import NewtonSystem, WorkLeft
from tests.helpers.problems import change_settings, draw_sample, problem_of


def draw(n_classes, n_unlabeled, n_features=3, separation=1.0, seed=5):
    return draw_sample(
        [seed, n_classes, n_unlabeled],
        n_classes=n_classes,
        n_features=n_features,
        n_labeled=8 * n_classes,
        n_unlabeled=n_unlabeled,
        separation=separation,
    )


def solve(problem, state, radius=np.inf):
    system = NewtonSystem(problem.likelihood, state.labeling, state.tau, WorkLeft())
    return system.solve(state.residual, radius)


def follower_of(sample):
    problem = problem_of(sample)
    return problem, Follower(problem.likelihood, hold_all(problem))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_conjugate_gradients_and_a_factor_solve_the_same_system(monkeypatch, n_classes):
    problem, follower = follower_of(draw(n_classes, 400))
    scores = 3 * np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    anchor, tau = (
        0.5 * scores,
        100 * problem.likelihood.weight,
    )  # where the system is definite
    state = follower.state(scores, tau, anchor)
    exact = solve(problem, state)
    change_settings(monkeypatch, "NEWTON", max_factored_unknowns=0)
    change_settings(monkeypatch, "NEWTON", residual_left=1e-9)
    found = solve(problem, state)
    tolerance = 1e-8 * np.abs(exact.scores).max()
    assert_allclose(
        found.scores - found.scores[-1], exact.scores, rtol=1e-6, atol=tolerance
    )
    assert found.slope == pytest.approx(exact.slope, rel=1e-6)
    assert found.length == pytest.approx(exact.length, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_rows_near_boundaries_solve_the_system_too(monkeypatch, n_classes):
    problem, follower = follower_of(draw(n_classes, 60, n_features=20))
    scores = 30 * np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    state = follower.state(scores, 1e-3 * problem.likelihood.weight, 0.9 * scores)
    exact = solve(problem, state)
    change_settings(monkeypatch, "NEWTON", max_factored_unknowns=0)
    change_settings(monkeypatch, "NEWTON", max_products=1, residual_left=1e-12)
    found = solve(problem, state)
    assert 1 < state.labeling.n_near <= scores.shape[1]
    assert_allclose(
        found.scores, exact.scores, rtol=1e-6, atol=1e-8 * np.abs(exact.scores).max()
    )
    assert found.slope == pytest.approx(exact.slope, rel=1e-6)
    assert found.length == pytest.approx(exact.length, rel=1e-6)


@pytest.mark.parametrize("tau", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_factored", [0, 64], ids=["products", "factor"])
def test_every_direction_raises_the_merit(monkeypatch, n_classes, tau, n_factored):
    change_settings(monkeypatch, "NEWTON", max_factored_unknowns=n_factored)
    problem, follower = follower_of(draw(n_classes, 400))
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores, anchor = rng.standard_normal((2, *problem.labeled_point.shape))
        state = follower.state(scores, tau * problem.likelihood.weight, anchor)
        direction, slope, length = solve(problem, state, radius=1.0)
        assert length <= 1
        assert slope > 0
        size = 1e-5 / max(1, np.abs(direction).max())
        ends = [
            follower.state(scores + a * direction, state.tau, anchor).merit
            for a in (size, -size)
        ]
        assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(
            slope, rel=1e-3, abs=1e-6
        )
