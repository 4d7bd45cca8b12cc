from dataclasses import replace

import numpy as np
import pytest

from iclda._core.labelsums import GivenLabels
from iclda._core.solvers.attainable import StreamedSet, gap, hold
from iclda._rows.memory import MemoryRows
from problems import problem_of, random_shares


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights, block_rows=16)


@pytest.fixture
def held(sample, problem):
    return hold(problem, *problem.unlabeled.sample(len(sample.X_unlabeled), 0))


def scores_of(problem, seed=2):
    return 3 * np.random.default_rng(seed).standard_normal(problem.labeled_point.shape)


def labeled_by(problem, shares):
    sums = problem.unlabeled.label_sums(GivenLabels(shares, problem.n_classes), problem.frame)
    return problem.point_of(sums.counts, sums.sums)


def test_rows_read_anew_give_the_points_of_rows_held(problem, held):
    scores, reader = scores_of(problem), StreamedSet(problem, held)
    point, log_sum = held.soft_point(scores)
    read_point, read_log_sum = reader.soft_point(scores)
    np.testing.assert_allclose(read_point, point, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(read_log_sum, log_sum, rtol=1e-11)
    np.testing.assert_allclose(reader.support(scores), held.support(scores), rtol=1e-11)
    assert reader.n_passes == 2


def test_a_stack_of_scores_gives_the_points_of_each(problem, held):
    stack = np.array([scores_of(problem, seed) for seed in range(5)])
    points = [held.soft_point(scores)[0] for scores in stack]
    np.testing.assert_allclose(held.soft_points(stack), points, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_every_labeling_keeps_the_overall_mean(sample, problem, seed):
    rng = np.random.default_rng(seed)
    shares = random_shares(rng, len(sample.X_unlabeled), sample.n_classes, sharpness=seed + 1)
    point = labeled_by(problem, shares)
    np.testing.assert_allclose(point.sum(axis=0), np.eye(1, point.shape[1])[0], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_labeling_lies_further_in_a_direction_than_the_support(sample, problem, held, seed):
    direction, rng = scores_of(problem, seed), np.random.default_rng(seed)
    reach = held.support(direction)
    for sharpness in (0.5, 1, 10):
        shares = random_shares(rng, len(sample.X_unlabeled), sample.n_classes, sharpness)
        ahead = (direction * (labeled_by(problem, shares) - problem.labeled_point)).sum()
        assert ahead <= reach + 1e-12
    hard = held.soft_point(1e9 * direction)[0]
    np.testing.assert_allclose((direction * (hard - problem.labeled_point)).sum(), reach, rtol=1e-9)


def test_the_curvature_is_the_derivative_of_the_soft_point(problem, held):
    scores = scores_of(problem) / 3
    width = scores.shape[1]
    columns = []
    for i in range((len(scores) - 1) * width):
        step = np.zeros_like(scores)
        step[i // width, i % width] = 1e-5
        change = held.soft_point(scores + step)[0] - held.soft_point(scores - step)[0]
        columns.append(change[:-1].ravel() / 2e-5)
    curvature = held.curvature(scores)
    np.testing.assert_allclose(curvature, np.array(columns).T, rtol=1e-6, atol=1e-9)


def test_rows_read_anew_give_the_curvature_of_rows_held(problem, held):
    scores = scores_of(problem) / 3
    expected = held.curvature(scores)
    exact = StreamedSet(problem).curvature(scores)
    np.testing.assert_allclose(exact, expected, rtol=1e-9, atol=1e-10)
    # Beside a sample it serves to predict: rows that hardly count are left out.
    found = StreamedSet(problem, held).curvature(scores)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_the_curvature_is_the_sum_of_that_between_any_two_classes(problem, held):
    scores = scores_of(problem) / 3
    every = ~np.eye(len(scores), dtype=bool)
    first = np.zeros_like(every)
    first[0, 1] = first[1, 0] = True
    whole = held.curvature(scores)
    if len(scores) == 2:
        np.testing.assert_allclose(held.curvature(scores, first), whole)
        return
    parts = held.curvature(scores, first) + held.curvature(scores, every & ~first)
    np.testing.assert_allclose(parts, whole, atol=1e-3 * np.abs(whole).max())
    assert np.abs(held.curvature(scores, first)).max() > 0


class AnswersInFull(MemoryRows):
    """Rows that tell the curvature between all classes, whichever are asked for."""

    def label_sums(self, rule, frame, centers=None, *, curvature=0):
        return super().label_sums(rule, frame, centers, curvature=int(np.any(curvature)))


def test_what_rows_tell_unasked_does_not_count_twice(sample, monkeypatch):
    problem = problem_of(sample)
    held = hold(problem, sample.X_unlabeled, np.ones(len(sample.X_unlabeled)))
    scores = scores_of(problem) / 3
    # Between some classes the sample knows enough, between others it does not.
    counts = held.n_between(scores)
    enough = np.median(counts[np.triu_indices(len(counts), 1)]) / scores.shape[1]
    monkeypatch.setattr("iclda._core.solvers.attainable._ENOUGH_NEAR", enough)
    generous = replace(problem, unlabeled=AnswersInFull(sample.X_unlabeled))
    found = StreamedSet(generous, held).curvature(scores)
    expected = held.curvature(scores)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_never_negative_and_zero_at_the_furthest_point(problem, held, seed):
    scores, direction = scores_of(problem, seed), scores_of(problem, seed + 10)
    point = held.soft_point(scores)[0]
    assert gap(held, point, direction, problem.labeled_point) > 0
    furthest = held.soft_point(1e9 * direction)[0]
    assert gap(held, furthest, direction, problem.labeled_point) == pytest.approx(0, abs=1e-11)


def test_the_gap_bounds_what_any_labeling_gains_to_first_order(sample, problem, held):
    point = held.soft_point(scores_of(problem))[0]
    gradient = problem.likelihood.value_and_gradient(point)[1]
    promised = gap(held, point, gradient, problem.labeled_point)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shares = random_shares(rng, len(sample.X_unlabeled), sample.n_classes, sharpness=5)
        assert (gradient * (labeled_by(problem, shares) - point)).sum() <= promised + 1e-12
