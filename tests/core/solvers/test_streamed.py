import numpy as np
import pytest

from iclda._core.solvers.held import hold_all
from iclda._core.solvers.streamed import StreamedSet
from tests.helpers.problems import problem_of


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights, tile_rows=16)


@pytest.fixture
def held(problem):
    return hold_all(problem)


def scores_of(problem, seed=2):
    return 3 * np.random.default_rng(seed).standard_normal(problem.labeled_point.shape)


def test_rows_read_anew_give_the_points_of_rows_held(problem, held):
    scores, reader = scores_of(problem), StreamedSet(problem, held)
    expected, found = held.soft_labels(scores), reader.soft_labels(scores)
    np.testing.assert_allclose(found.point, expected.point, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-11)
    np.testing.assert_allclose(reader.support(scores), held.support(scores), rtol=1e-11)
    assert reader.n_passes == 2


def test_rows_read_anew_give_the_labeling_of_rows_held(problem, held):
    for scale in (1 / 3, 10):
        scores, step = scale * scores_of(problem), scores_of(problem, 5)
        expected, found = held.label(scores), StreamedSet(problem, held).label(scores)
        np.testing.assert_allclose(found.point, expected.point, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-11)
        product = expected.product(step)
        np.testing.assert_allclose(found.product(step), product, rtol=1e-9, atol=1e-10)


def test_the_set_of_rows_near_boundaries_agrees_where_it_was_made_and_near_by(
    problem, held
):
    scores, step = 3 * scores_of(problem), scores_of(problem, 5)
    labeling = StreamedSet(problem, held).label(scores)
    local = labeling.local_set
    np.testing.assert_allclose(
        local.label(scores).point, labeling.point, rtol=1e-11, atol=1e-12
    )
    near_by = scores + 0.1 * step
    found, expected = local.label(near_by).point, held.label(near_by).point
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_rows_near_boundaries_are_read_again_only_if_others_are_near(problem, held):
    scores, reader = 20 * scores_of(problem), StreamedSet(problem, held)
    reader._min_returned = (
        0  # only rows whose labels are soft: fewer, the larger the scores
    )
    first, same = reader.label(scores), reader.label(1.001 * scores)
    assert same.rows is first.rows
    np.testing.assert_allclose(same.point, held.label(1.001 * scores).point)
    softer = reader.label(scores / 20)
    assert len(softer.rows.z) > len(first.rows.z)
    reader.return_more(10_000)
    assert reader.label(scores / 20).rows is not softer.rows
