from dataclasses import fields

import numpy as np
import pytest

from iclda._core.solvers.attainable import Labeling, gap
from iclda._core.solvers.held import hold_all
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


def vars_of(labeling):
    return {each.name: getattr(labeling, each.name) for each in fields(labeling)}


def derivative(held, scores, step):
    change = (
        held.label(scores + 1e-5 * step).point - held.label(scores - 1e-5 * step).point
    )
    return change / 2e-5


def test_products_with_j_are_derivatives_of_the_soft_point(problem, held):
    scores, step = scores_of(problem) / 3, scores_of(problem, 5)
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
    labeling, step = held.label(100 * scores_of(problem)), scores_of(problem, 5)
    assert len(labeling.near[0]) < 0.6 * len(held.z)
    whole = Labeling(**vars_of(labeling))
    whole.near = held.z, held.weights, labeling.shares
    np.testing.assert_allclose(labeling.product(step), whole.product(step), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_never_negative_and_zero_at_the_furthest_point(problem, held, seed):
    scores, direction = scores_of(problem, seed), scores_of(problem, seed + 10)
    point = held.label(scores).point
    assert gap(held, point, direction) > 0
    furthest = held.label(1e9 * direction).point
    assert gap(held, furthest, direction) == pytest.approx(0, abs=1e-11)
