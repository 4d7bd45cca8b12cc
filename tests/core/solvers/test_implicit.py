from dataclasses import replace

import numpy as np
import pytest

from iclda._core.solvers import Limits, Outcome, settings
from iclda._core.solvers.alternate import start_scores
from iclda._core.solvers.attainable import StreamedSet, gap, hold_all
from iclda._core.solvers.implicit import (
    _Annealing,
    _or_supervised,
    _Starts,
    find_candidates,
    maximize_labeled_likelihood,
)
from iclda._core.solvers.settings import SETTINGS
from tests.helpers.problems import draw_apart, draw_sample, problem_of


def _problem(n_classes=3, seed=0):
    sample = draw_sample(n_classes=n_classes, seed=seed)
    problem = problem_of(sample)
    return problem, hold_all(problem)


def _ended(problem, held, scores):
    annealing = _Annealing(problem.likelihood, held)
    return annealing, *annealing.run(scores, (0.05,), to_the_end=True)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_starts_of_all_kinds_are_there_and_more_of_them_only_add(n_classes):
    problem, _ = _problem(n_classes)
    few, many = (
        _Starts(problem, 32, 0).first(n) for n in (n_classes + 4, n_classes + 9)
    )
    assert len(few) == n_classes + 4
    # Equal shares.
    np.testing.assert_array_equal(few[1], 0)
    # Each class alone.
    for k in range(n_classes):
        assert few[2 + k, :, 0].argmax() == k
    np.testing.assert_array_equal(many[: n_classes + 2], few[: n_classes + 2])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_step_of_the_annealing_loses_merit(n_classes):
    problem, held = _problem(n_classes)
    annealing = _Annealing(problem.likelihood, held)
    members = annealing._evaluate(_Starts(problem, 16, 0).first(16))
    tau = 0.05 * annealing.spread
    for _ in range(12):
        before = members.merits(tau)
        members = annealing._step(members, tau)
        assert (members.merits(tau) >= before - 1e-9 * np.abs(before)).all()


def test_the_annealing_ends_where_scores_are_gradients_over_tau():
    problem, held = _problem()
    annealing = _Annealing(problem.likelihood, held)
    members = annealing._evaluate(np.zeros((1, *held.labeled_point.shape)))
    tau = annealing.spread
    for _ in range(200):
        members = annealing._step(members, tau)
    np.testing.assert_allclose(members.scores, members.gradients / tau, atol=1e-6)


def test_members_that_have_met_are_one():
    problem, held = _problem()
    scores = _Starts(problem, 8, 0).first(8)
    members = _ended(problem, held, np.concatenate([scores, scores]))[1]
    once = _ended(problem, held, scores)[1]
    assert len(members.values) == len(once.values)
    np.testing.assert_allclose(np.sort(members.values), np.sort(once.values))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_changed_scores_are_made_of_their_parents(n_classes):
    problem, _ = _problem(n_classes)
    parents = np.random.default_rng(0).standard_normal(
        (3, *problem.labeled_point.shape)
    )
    starts = _Starts(problem, 20, 0)
    changed = starts.changed(parents, np.array([1.0, 1.0]), 20, 1)
    again = starts.changed(parents, np.array([1.0, 1.0]), 20, 1)
    np.testing.assert_array_equal(changed, again)
    assert not np.array_equal(
        changed, starts.changed(parents, np.array([1.0, 1.0]), 20, 2)
    )
    rows = parents[:, :, 1:].reshape(-1, parents.shape[2] - 1)
    is_known = (changed[:, :, None, 1:] == rows).all(axis=-1).any(axis=-1).all(axis=-1)
    # All but those with noise.
    assert np.count_nonzero(is_known) == 16


def test_candidates_are_few_and_best_first():
    problem, held = _problem(3, seed=4)
    found = find_candidates(problem, held, 32, 0, is_sample=False)
    assert 1 <= len(found.scores) <= SETTINGS.n_followed
    values = [
        float(problem.likelihood.value(held.soft_point(a)[0])) for a in found.scores
    ]
    assert values == sorted(values, reverse=True)


MANY = draw_sample(n_classes=12, n_features=15, n_labeled=40, n_unlabeled=300, seed=3)


@pytest.mark.parametrize("read", [1.0, 3e5, 1e7])
def test_a_search_cut_short_is_never_below_the_labels_of_the_supervised_fit(
    read, monkeypatch
):
    monkeypatch.setattr("iclda._core.solvers.settings.LEAST_READ", read)
    monkeypatch.setattr("iclda._core.solvers.settings.READ_SHARE", 0.0)
    problem = problem_of(MANY, shrinkage=0.1)
    found = maximize_labeled_likelihood(problem, Limits(1, 1e-6), n_starts=32, seed=0)
    assert found.outcome in (Outcome.NOT_FOUND, Outcome.MAX_ITERATIONS)
    held = hold_all(problem)
    likelihood = problem.likelihood
    start = held.soft_point(start_scores(problem))[0]
    assert found.objective >= float(likelihood.value(start)) / likelihood.weight - 1e-12
    value, gradient = likelihood.value_and_gradient(found.point)
    assert found.objective == pytest.approx(float(value) / likelihood.weight)
    assert found.gap == pytest.approx(
        gap(held, found.point, gradient) / likelihood.weight
    )


def test_labels_of_the_supervised_fit_replace_a_labeling_of_lower_likelihood():
    problem = problem_of(MANY, shrinkage=0.1)
    found = maximize_labeled_likelihood(problem, Limits(1, 1e-6), n_starts=1, seed=0)
    low = replace(found, objective=-1e9)
    kept = _or_supervised(problem, low)
    start = StreamedSet(problem).soft_point(start_scores(problem))[0]
    np.testing.assert_allclose(kept.point, start)
    assert kept.gap > 0
    assert _or_supervised(problem, found).objective == found.objective


def test_many_unknowns_are_searched_to_a_maximum():
    problem = problem_of(MANY, shrinkage=0.1)
    assert problem.labeled_point[:-1].size > settings.DENSE_UNKNOWNS
    found = maximize_labeled_likelihood(problem, Limits(200, 1e-6), n_starts=32, seed=0)
    assert found.outcome is Outcome.CONVERGED
    assert found.gap <= 1e-6


@pytest.mark.parametrize("n_unlabeled", [100, 300, 1000])
def test_paths_converge_where_classes_are_far_apart(n_unlabeled):
    problem = problem_of(draw_apart(3, n_unlabeled, 6.0))
    found = maximize_labeled_likelihood(problem, Limits(200, 1e-6), n_starts=32, seed=0)
    assert found.outcome is Outcome.CONVERGED
