import numpy as np
import pytest

from iclda._core.solvers.held import n_held_rows
from iclda._core.solvers.sample import draw_sample as hold_rows_of
from iclda._core.solvers.sample import moved_scores
from tests.helpers.problems import change_settings, draw_sample, problem_of


@pytest.fixture
def problem():
    sample = draw_sample(3, n_features=4, n_labeled=10, n_unlabeled=300)
    return problem_of(sample)


def test_few_rows_are_all_held(problem):
    sample = hold_rows_of(problem, seed=0)
    assert sample.is_whole
    assert sample.problem is problem
    assert len(sample.rows) == n_held_rows(problem) == 300


def test_labeled_rows_and_those_of_a_sample_together_have_unit_covariance(
    problem, monkeypatch
):
    change_settings(monkeypatch, "HOLDING", max_rows=100, min_rows=10)
    sample = hold_rows_of(problem, seed=0)
    assert not sample.is_whole
    assert len(sample.rows) == 100
    labeled = sample.problem.likelihood
    z = sample.held.z[:, 1:]
    weight = sample.problem.moments.weight
    second_moment = (z.T * sample.held.weights) @ z
    labeled_moment = labeled.within + (labeled.means.T * labeled.counts) @ labeled.means
    np.testing.assert_allclose(
        second_moment + labeled_moment / weight, np.eye(z.shape[1]), atol=1e-10
    )


def test_thinned_rows_have_the_weight_of_all(problem):
    sample = hold_rows_of(problem, seed=0)
    thinned = sample.thinned(50)
    assert len(thinned.rows) == 50
    assert thinned.weights.sum() == pytest.approx(sample.weights.sum())
    assert sample.thinned(300) is sample


def test_moved_scores_label_rows_as_before(problem):
    sample = hold_rows_of(problem, seed=0)
    thinned = sample.thinned(50)
    scores = np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    moved = moved_scores(scores, problem, thinned.problem)
    rows = problem.frame.apply(sample.rows)
    rules = (
        problem.rule_of(scores, is_soft=True),
        thinned.problem.rule_of(moved, is_soft=True),
    )
    shares = [rule.shares(rows, slice(None))[0] for rule in rules]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-10)
