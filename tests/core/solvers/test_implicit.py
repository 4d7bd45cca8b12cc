import numpy as np
import pytest

from iclda._core.solvers.attainable import hold_all
from iclda._core.solvers.implicit import _Annealing, _Starts, find_candidates
from iclda._core.solvers.settings import SETTINGS
from problems import draw_sample, problem_of


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
    few, many = (_Starts(problem, 32, 0).first(n) for n in (n_classes + 4, n_classes + 9))
    assert len(few) == n_classes + 4
    np.testing.assert_array_equal(few[1], 0)  # equal shares
    for k in range(n_classes):  # each class alone
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
    members, tau = annealing._evaluate(np.zeros((1, *held.labeled_point.shape))), annealing.spread
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
    parents = np.random.default_rng(0).standard_normal((3, *problem.labeled_point.shape))
    starts = _Starts(problem, 20, 0)
    changed = starts.changed(parents, np.array([1.0, 1.0]), 20, 1)
    again = starts.changed(parents, np.array([1.0, 1.0]), 20, 1)
    np.testing.assert_array_equal(changed, again)
    assert not np.array_equal(changed, starts.changed(parents, np.array([1.0, 1.0]), 20, 2))
    rows = parents[:, :, 1:].reshape(-1, parents.shape[2] - 1)
    is_known = (changed[:, :, None, 1:] == rows).all(axis=-1).any(axis=-1).all(axis=-1)
    assert np.count_nonzero(is_known) == 16  # all but those with noise


def test_candidates_are_few_and_best_first():
    problem, held = _problem(3, seed=4)
    found = find_candidates(problem, held, 32, 0, is_sample=False)
    assert 1 <= len(found.scores) <= SETTINGS.n_followed
    values = [float(problem.likelihood.value(held.soft_point(a)[0])) for a in found.scores]
    assert values == sorted(values, reverse=True)
