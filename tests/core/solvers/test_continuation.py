import numpy as np
import pytest

from iclda._core.solvers import Limits, Outcome, continuation
from iclda._core.solvers.continuation import Effort, Follower
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from iclda._core.solvers.newton import WorkLeft
from tests.helpers.problems import change_settings, draw_sample, problem_of

OPTIONS = {"limits": Limits(200, 1e-6), "n_starts": 32, "seed": 0}


def draw(n_classes, n_unlabeled, n_features=3, separation=1.0, seed=5):
    return draw_sample(
        [seed, n_classes, n_unlabeled],
        n_classes=n_classes,
        n_features=n_features,
        n_labeled=8 * n_classes,
        n_unlabeled=n_unlabeled,
        separation=separation,
    )


def follower_of(sample):
    problem = problem_of(sample)
    return problem, Follower(problem.likelihood, hold_all(problem))


def test_a_level_without_a_step_that_gains_is_not_at_its_maximum(monkeypatch):
    problem, follower = follower_of(draw(2, 400))
    scores = np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    state = follower.state(scores, problem.likelihood.weight)
    monkeypatch.setattr(Follower, "_part_of_step", lambda self, state, *_: (state, 0.0))
    assert follower._center(state, 5, 0.01, Effort(0.0, 5))[1:] == (
        1,
        continuation._End.UNFINISHED,
    )


def test_a_level_ends_where_its_scores_move_by_the_gradient_over_tau():
    problem, follower = follower_of(draw(3, 400))
    anchor = np.random.default_rng(2).standard_normal(problem.labeled_point.shape)
    tau = 0.1 * problem.likelihood.weight
    state = follower.state(anchor, tau, anchor)
    for _ in range(3):
        state = follower._center(state, 100, 1e-9, Effort(0.0, 100))[0]
    moved = state.tau * (state.scores - state.anchor)
    np.testing.assert_allclose(
        moved, state.gradient, atol=1e-5 * np.abs(state.gradient).max()
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_unlabeled", [40, 2000])
def test_products_alone_reach_the_maximum_of_the_factor(
    monkeypatch, n_classes, n_unlabeled
):
    sample = draw(n_classes, n_unlabeled)
    expected = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    change_settings(monkeypatch, "NEWTON", max_factored_unknowns=0)
    found = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    assert found.outcome is expected.outcome is Outcome.CONVERGED
    assert found.objective == pytest.approx(expected.objective, abs=1e-7)


def test_work_ends_a_path_before_its_steps_do():
    sample = draw_sample(8, n_classes=3, n_features=4, n_labeled=12, n_unlabeled=200)
    problem = problem_of(sample)
    follower = Follower(problem.likelihood, hold_all(problem))
    begin = follower.state(np.zeros(problem.labeled_point.shape), 1.0)
    free = follower.follow(begin, Effort(1e-9, 100))
    work = WorkLeft(1000.0)
    bound = follower.follow(begin, Effort(1e-9, 100, work=work))
    assert work.n_numbers <= 0
    assert bound.n_iter < free.n_iter
    assert bound.gap > 1e-9 >= free.gap


@pytest.mark.parametrize("max_steps", [1, 2, 15])
def test_the_last_level_is_where_a_path_reached_its_aim(monkeypatch, max_steps):
    change_settings(monkeypatch, "LEVELS", max_steps=max_steps)
    problem = problem_of(draw(4, 500))
    follower = Follower(problem.likelihood, hold_all(problem))
    begin = follower.state(np.zeros(problem.labeled_point.shape), 1.0)
    path = follower.follow(begin, Effort(1e-4, 400))
    assert path.gap <= 1e-4
    assert follower.gap(path.levels[-1]) == path.gap
