import numpy as np
import pytest

from iclda._core.solvers.attainable import AllSums, Labeling, StreamedSet, gap, hold
from tests.helpers.problems import point_of_shares, problem_of, random_shares


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights, tile_rows=16)


@pytest.fixture
def held(sample, problem):
    return hold(problem, *problem.unlabeled.sample(len(sample.X_unlabeled), 0))


def scores_of(problem, seed=2):
    return 3 * np.random.default_rng(seed).standard_normal(problem.labeled_point.shape)


def test_rows_read_anew_give_the_points_of_rows_held(problem, held):
    scores = scores_of(problem)
    reader = StreamedSet(problem, held)
    point, log_sum = held.soft_point(scores)
    read_point, read_log_sum = reader.soft_point(scores)
    np.testing.assert_allclose(read_point, point, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(read_log_sum, log_sum, rtol=1e-11)
    np.testing.assert_allclose(reader.support(scores), held.support(scores), rtol=1e-11)
    assert reader.n_passes == 2


def test_a_stack_of_scores_gives_the_points_of_each(problem, held):
    stack = np.array([scores_of(problem, seed) for seed in range(5)])
    points, log_sums = zip(*(held.soft_point(scores) for scores in stack), strict=True)
    found = held.soft_points(stack)
    np.testing.assert_allclose(found[0], points, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found[1], log_sums, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_no_labeling_lies_further_in_a_direction_than_the_support(
    sample, problem, held, seed
):
    direction = scores_of(problem, seed)
    rng = np.random.default_rng(seed)
    reach = held.support(direction)
    for sharpness in (0.5, 1, 10):
        shares = random_shares(
            rng, len(sample.X_unlabeled), sample.n_classes, sharpness
        )
        ahead = (
            direction * (point_of_shares(problem, shares) - problem.labeled_point)
        ).sum()
        assert ahead <= reach + 1e-12
    hard = held.soft_point(1e9 * direction)[0]
    np.testing.assert_allclose(
        (direction * (hard - problem.labeled_point)).sum(), reach, rtol=1e-9
    )


def derivative(held, scores, step):
    change = (
        held.soft_point(scores + 1e-5 * step)[0]
        - held.soft_point(scores - 1e-5 * step)[0]
    )
    return change / 2e-5


def test_products_with_j_are_derivatives_of_the_soft_point(problem, held):
    scores = scores_of(problem) / 3
    step = scores_of(problem, 5)
    found = held.label(scores).product(step)
    np.testing.assert_allclose(
        found, derivative(held, scores, step), rtol=1e-6, atol=1e-8
    )


def test_the_matrix_gives_the_same_products(problem, held):
    labeling = held.label(scores_of(problem) / 3)
    step = scores_of(problem, 5)
    step[-1] = 0
    found = labeling.matrix() @ step[:-1].ravel()
    np.testing.assert_allclose(
        found, labeling.product(step)[:-1].ravel(), rtol=1e-10, atol=1e-12
    )


def test_rows_far_from_a_boundary_may_be_left_out(problem, held):
    labeling = held.label(100 * scores_of(problem))
    step = scores_of(problem, 5)
    assert len(labeling.near[0]) < 0.6 * len(held.z)
    whole = Labeling(AllSums(labeling.point, labeling.log_sum), held, labeling.shares)
    whole.near = held.z, held.weights, labeling.shares
    np.testing.assert_allclose(labeling.product(step), whole.product(step), atol=1e-10)


def test_rows_read_anew_give_the_labeling_of_rows_held(problem, held):
    for scale in (1 / 3, 10):
        scores = scale * scores_of(problem)
        step = scores_of(problem, 5)
        expected = held.label(scores)
        found = StreamedSet(problem, held).label(scores)
        np.testing.assert_allclose(found.point, expected.point, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-11)
        product = expected.product(step)
        np.testing.assert_allclose(found.product(step), product, rtol=1e-9, atol=1e-10)


def test_the_set_of_rows_near_boundaries_agrees_where_it_was_made_and_near_by(
    problem, held
):
    scores = 3 * scores_of(problem)
    step = scores_of(problem, 5)
    labeling = StreamedSet(problem, held).label(scores)
    local = labeling.local_set
    np.testing.assert_allclose(
        local.soft_point(scores)[0], labeling.point, rtol=1e-11, atol=1e-12
    )
    near_by = scores + 0.1 * step
    found = local.soft_point(near_by)[0]
    expected = held.soft_point(near_by)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_rows_near_boundaries_are_read_again_only_if_others_are_near(problem, held):
    scores = 20 * scores_of(problem)
    reader = StreamedSet(problem, held)
    # Only rows whose labels are soft: fewer, the larger the scores.
    reader._least = 0
    first = reader.label(scores)
    same = reader.label(1.001 * scores)
    assert same.rows is first.rows
    np.testing.assert_allclose(same.point, held.label(1.001 * scores).point)
    softer = reader.label(scores / 20)
    assert len(softer.rows.z) > len(first.rows.z)
    reader.return_more(10_000)
    assert reader.label(scores / 20).rows is not softer.rows


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_never_negative_and_zero_at_the_furthest_point(problem, held, seed):
    scores = scores_of(problem, seed)
    direction = scores_of(problem, seed + 10)
    point = held.soft_point(scores)[0]
    assert gap(held, point, direction) > 0
    furthest = held.soft_point(1e9 * direction)[0]
    assert gap(held, furthest, direction) == pytest.approx(0, abs=1e-11)
