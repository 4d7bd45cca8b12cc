from dataclasses import replace

import numpy as np
import pytest

from iclda._core.solvers import Limits, Outcome, settings
from iclda._core.solvers.alternate import start_scores
from iclda._core.solvers.attainable import gap
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.implicit import (
    _or_supervised,
    maximize_labeled_likelihood,
    starts_of,
)
from iclda._core.solvers.sample import draw_sample as search_sample
from iclda._core.solvers.streamed import StreamedSet
from tests.helpers.problems import change_settings, draw_apart, draw_sample, problem_of


def _problem(n_classes=3, seed=0):
    sample = draw_sample(n_classes=n_classes, seed=seed)
    problem = problem_of(sample)
    return problem, hold_all(problem)


def test_starts_are_equal_shares_the_supervised_posterior_and_random_labelings():
    problem, _ = _problem(3, seed=4)
    sample = search_sample(problem, 0)
    starts = starts_of(sample, 6, 0)
    high, low = settings.STARTS.heights
    assert [each.height for each in starts] == [high, *[low] * 8]
    for k in (0, 2):
        np.testing.assert_array_equal(starts[k].scores, 0)
    np.testing.assert_allclose(starts[1].scores, start_scores(problem))
    points = np.array([sample.held.label(each.scores).point for each in starts[3:]])
    values = problem.likelihood.value(points)
    # The likeliest ones come first.
    assert (np.diff(values) <= 0).all()


def test_many_unknowns_have_two_starts():
    sample = search_sample(problem_of(MANY, shrinkage=0.1), 0)
    assert len(starts_of(sample, 6, 0)) == 2


MANY = draw_sample(n_classes=12, n_features=15, n_labeled=40, n_unlabeled=300, seed=3)


@pytest.mark.parametrize("read", [1.0, 3e5, 1e7])
def test_a_search_cut_short_is_never_below_the_labels_of_the_supervised_fit(
    read, monkeypatch
):
    change_settings(
        monkeypatch,
        "WORK",
        min_numbers_per_iteration=read,
        share_of_numbers_per_iteration=0.0,
    )
    problem = problem_of(MANY, shrinkage=0.1)
    found = maximize_labeled_likelihood(problem, Limits(1, 1e-6), n_starts=32, seed=0)
    assert found.outcome in (Outcome.NOT_FOUND, Outcome.MAX_ITERATIONS)
    held = hold_all(problem)
    likelihood = problem.likelihood
    start = held.label(start_scores(problem)).point
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
    start = StreamedSet(problem).soft_labels(start_scores(problem)).point
    np.testing.assert_allclose(kept.point, start)
    assert kept.gap > 0
    assert _or_supervised(problem, found).objective == found.objective


def test_many_unknowns_are_searched_to_a_maximum():
    problem = problem_of(MANY, shrinkage=0.1)
    assert problem.labeled_point[:-1].size > settings.NEWTON.max_factored_unknowns
    found = maximize_labeled_likelihood(problem, Limits(200, 1e-6), n_starts=32, seed=0)
    assert found.outcome is Outcome.CONVERGED
    assert found.gap <= 1e-6


@pytest.mark.parametrize("n_unlabeled", [100, 300, 1000])
def test_paths_converge_where_classes_are_far_apart(n_unlabeled):
    problem = problem_of(draw_apart(3, n_unlabeled, 6.0))
    found = maximize_labeled_likelihood(problem, Limits(200, 1e-6), n_starts=32, seed=0)
    assert found.outcome is Outcome.CONVERGED
