import numpy as np
import pytest

from iclda._core.solvers.held import hold_all
from tests.helpers.problems import point_of_shares, problem_of, random_shares


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights, tile_rows=16)


@pytest.fixture
def held(problem):
    return hold_all(problem)


def scores_of(problem, seed=2):
    return 3 * np.random.default_rng(seed).standard_normal(problem.labeled_point.shape)


def test_a_stack_of_scores_gives_the_points_of_each(problem, held):
    stack = np.array([scores_of(problem, seed) for seed in range(5)])
    points, log_sums = held.soft_points(stack)
    for scores, point, log_sum in zip(stack, points, log_sums, strict=True):
        labels = held.label(scores)
        np.testing.assert_allclose(point, labels.point, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(log_sum, labels.log_sum, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_no_labeling_lies_further_in_a_direction_than_the_support(
    sample, problem, held, seed
):
    direction, rng = scores_of(problem, seed), np.random.default_rng(seed)
    reach = held.support(direction)
    for sharpness in (0.5, 1, 10):
        shares = random_shares(
            rng, len(sample.X_unlabeled), sample.n_classes, sharpness
        )
        ahead = (
            direction * (point_of_shares(problem, shares) - problem.labeled_point)
        ).sum()
        assert ahead <= reach + 1e-12
    hard = held.label(1e9 * direction).point
    np.testing.assert_allclose(
        (direction * (hard - problem.labeled_point)).sum(), reach, rtol=1e-9
    )
