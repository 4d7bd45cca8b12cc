from dataclasses import replace

import pytest

from iclda._core.solvers import Limits, Outcome, passes
from iclda._core.solvers.continuation import Follower
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from tests.helpers.problems import (
    change_settings,
    climb,
    draw_sample,
    problem_of,
    soft_maxima,
)

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


def read(monkeypatch, sample, *, n_held=200, can_hold_all=False, **options):
    """The solution when few rows are held and all others are read."""
    change_settings(monkeypatch, "STARTS", screened_rows=n_held // 2)
    n_entries = (len(sample.X_unlabeled) if can_hold_all else n_held) * (
        1 + sample.X.shape[1]
    )
    change_settings(
        monkeypatch, "HOLDING", max_rows=n_held, max_entries_of_sample=n_entries
    )
    problem = problem_of(sample, tile_rows=64)
    return problem, maximize_labeled_likelihood(problem, **{**OPTIONS, **options})


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n_unlabeled", [300, 1000, 3000])
def test_passes_reach_what_a_dense_optimization_over_all_labels_does(
    monkeypatch, n_unlabeled, separation
):
    sample = draw(2, n_unlabeled, separation=separation)
    problem, found = read(monkeypatch, sample)
    # Of two classes one is what the other leaves.
    assert problem.unlabeled._total is not None
    assert found.outcome is Outcome.CONVERGED
    rule = found.rule
    shares = problem.unlabeled.responsibilities(rule, problem.frame)
    assert climb(sample, shares) <= found.objective + 1e-6
    assert soft_maxima(sample, 2).max() <= found.objective + 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("can_hold_all", [False, True], ids=["few rows", "more rows"])
def test_a_wrong_step_is_made_up_for(monkeypatch, n_classes, can_hold_all):
    sample = draw(n_classes, 2000)
    expected = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    follow = Follower.follow
    wrong = []

    def wrong_once(self, state, effort, min_tau=0.0):
        path = follow(self, state, effort, min_tau)
        # The first level of a start is no step between two passes.
        if wrong or not 0 < min_tau < state.tau:
            return path
        wrong.append(path)
        away = state.scores - 3 * (path.state.scores - state.scores)
        return replace(path, levels=(path.levels[0], replace(path.state, scores=away)))

    monkeypatch.setattr(Follower, "follow", wrong_once)
    found = read(monkeypatch, sample, can_hold_all=can_hold_all)[1]
    assert wrong
    assert found.outcome is Outcome.CONVERGED
    assert found.objective == pytest.approx(expected.objective, abs=2e-6)
    assert found.n_passes <= (15 if can_hold_all else 60)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 7), (3, 9)])
def test_few_reads_of_many_rows_are_enough(n_classes, most):
    sample = draw(n_classes, 60_000, n_features=8, seed=2)
    found = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    assert found.outcome is Outcome.CONVERGED
    assert found.n_passes <= most


def test_a_search_whose_gap_no_longer_falls_ends_after_few_passes(monkeypatch):
    sample = draw_sample(
        [11, 2], n_classes=2, n_features=24, n_labeled=12, n_unlabeled=4000
    )
    # The gap never halves: a search goes on as long as it may.
    monkeypatch.setattr(passes, "_local_gap", lambda objective, state: 1.0)
    n_passes = {}
    for max_idle_passes in (3, 1000):
        change_settings(monkeypatch, "PASSES", max_idle_passes=max_idle_passes)
        found = read(monkeypatch, sample)[1]
        n_passes[max_idle_passes] = found.n_passes
    # Each step takes a pass or, if it is shortened, five, and one with more rows.
    n_before = 1 + 4 + 1
    assert n_passes[3] <= n_before + 6 * (1 + 3) + 1 < n_passes[1000]


class Stuck(Follower):
    """Follow a path in passes, and find the gap as large as ever."""

    def gap(self, state):
        return 1.0


def test_a_search_gives_up_after_many_steps_that_do_not_halve_the_gap(monkeypatch):
    sample = draw_sample(
        [11, 2], n_classes=2, n_features=24, n_labeled=12, n_unlabeled=4000
    )
    monkeypatch.setattr(passes, "Follower", Stuck)
    n_iter = {}
    for share in (0.05, 1000.0):
        change_settings(
            monkeypatch,
            "PASSES",
            idle_steps_over_max_iter=share,
            min_idle_steps=0,
            max_idle_passes=1000,
        )
        found = read(monkeypatch, sample, limits=Limits(200, 0.0))[1]
        n_iter[share] = found.n_iter
        assert (found.outcome is Outcome.NOT_FOUND) == (share < 1)
    assert n_iter[0.05] < n_iter[1000.0]


@pytest.mark.parametrize("max_iter", [1, 2])
def test_a_search_of_few_steps_ends_because_they_are_few(monkeypatch, max_iter):
    # That every step gains little would be the wrong reason, with the wrong advice.
    sample = draw_sample(
        [11, 2], n_classes=2, n_features=24, n_labeled=12, n_unlabeled=4000
    )
    monkeypatch.setattr(passes, "Follower", Stuck)
    found = read(monkeypatch, sample, limits=Limits(max_iter, 0.0))[1]
    assert found.outcome is Outcome.MAX_ITERATIONS
