import numpy as np
import pytest
from scipy.special import logit

from iclda._core.solvers import Limits
from iclda._core.solvers.global_bound import ProofCell, UpperBounds, is_proved_global
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from tests.helpers.problems import (
    change_settings,
    climb_shares,
    draw_sample,
    point_of_shares,
    problem_of,
    random_shares,
    small_sample,
)

OPTIONS = [{}, {"shrinkage": 0.2}, {"log_priors": np.log([0.3, 0.7])}]


def solve(problem, n_starts=32, seed=0):
    return maximize_labeled_likelihood(
        problem, Limits(200, 1e-7), n_starts=n_starts, seed=seed
    )


def draw_points(problem, rng, n):
    """Attainable points with soft and hard labels, and their pairs (r, v)."""
    held, width = hold_all(problem), problem.labeled_point.shape[1]
    for i in range(n):
        scores = rng.normal(size=(2, width)) * np.exp(rng.uniform(-2, 3))
        point = held.label(scores).point if i % 3 else held.hard_point(scores)
        r, b = point[0, 0], point[0, 1:]
        yield point, r, 1 - b @ b / (r * (1 - r))


def draw_problem(seed, **options):
    rng = np.random.default_rng([seed, 1])
    sample = draw_sample(
        [32, seed],
        n_features=1 + seed % 4,
        n_labeled=int(rng.integers(8, 25)),
        n_unlabeled=int(rng.integers(5, 80)),
        separation=(0.3, 1.0, 3.0)[seed % 3],
    )
    return problem_of(sample, weights=rng.uniform(0.5, 2, len(sample.rows)), **options)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_no_attainable_point_of_a_cell_is_above_its_bound(seed, options):
    problem, rng = draw_problem(seed, **options), np.random.default_rng(seed)
    bounds = UpperBounds(problem, solve(problem).point)
    for point, r, v in draw_points(problem, rng, 100):
        width = 10 ** rng.uniform(-5, -0.3)
        about = rng.uniform(0, width, (2, 2)) * [-1, 1]
        cell = ProofCell(
            tuple(logit(r) + about[0]), tuple(np.minimum(np.log(v) + about[1], 0))
        )
        size = bounds.weight * 10 ** rng.uniform(-6, 1)
        multipliers = bounds.start + size * rng.normal(size=len(bounds.start))
        multipliers[-1] = abs(multipliers[-1])
        value, places = problem.likelihood.value(point), (np.array([r]), np.array([v]))
        rounding = 1e-12 * abs(value)
        assert (
            bounds.largest_bound(multipliers, *places, size).largest >= value - rounding
        )
        assert bounds.bound(multipliers, cell).value >= value - rounding


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_cells_cover_all_points_above_the_target(seed, options):
    problem, rng = draw_problem(seed, **options), np.random.default_rng(seed)
    bounds, edge = UpperBounds(problem, solve(problem).point), 1e-12
    target = bounds.maximum - 2 * bounds.weight  # so low that many points are above it
    cells = np.array(bounds.cells(target))
    for point, r, v in draw_points(problem, rng, 200):
        place = np.array([logit(r), np.log(v)])
        is_inside = (cells[..., 0] <= place + edge) & (place <= cells[..., 1] + edge)
        assert is_inside.all(axis=1).any() or problem.likelihood.value(point) < target


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_at_the_maximum_is_the_maximum_where_it_is_tight(seed, options):
    bounds = UpperBounds(problem := draw_problem(seed, **options), solve(problem).point)
    at = bounds.largest_bound(
        bounds.start, np.array([bounds.r]), np.array([bounds.v]), 1.0
    )
    assert not bounds.are_tight or at.largest == pytest.approx(bounds.maximum, abs=1e-6)


@pytest.mark.parametrize("number", [22, 46])
def test_of_several_maxima_the_lower_ones_are_never_proved(number):
    sample, rng = small_sample(number), np.random.default_rng(number)
    problem = problem_of(sample)
    values = {}
    for _ in range(12):
        shares = climb_shares(sample, random_shares(rng, len(sample.X_unlabeled), 2))
        point = point_of_shares(problem, shares)
        values[float(problem.likelihood.value(point))] = point
    best = max(*values, solve(problem).objective * problem.likelihood.weight)
    lower = [point for value, point in values.items() if value < best - 1e-3]
    assert lower
    assert not any(is_proved_global(problem, point) for point in lower)


@pytest.mark.parametrize("seed", range(4))
def test_a_point_that_is_no_maximum_is_never_proved(seed):
    problem = draw_problem(seed)
    best = solve(problem).objective * problem.likelihood.weight
    points = [
        point for point, _, _ in draw_points(problem, np.random.default_rng(seed), 6)
    ]
    lower = [point for point in points if problem.likelihood.value(point) < best - 1e-3]
    assert lower
    assert not any(is_proved_global(problem, point) for point in lower)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 8])
def test_maxima_of_problems_with_enough_labels_are_proved(seed):
    problem = draw_problem(seed)
    assert is_proved_global(problem, solve(problem).point)


def test_nothing_is_proved_of_three_classes_or_after_too_much_work(monkeypatch):
    sample = draw_sample(5, n_classes=3, n_labeled=30)
    problem = problem_of(sample)
    assert not is_proved_global(problem, solve(problem).point)
    problem = draw_problem(0)
    change_settings(monkeypatch, "PROOF", max_numbers_read=1.0)
    assert not is_proved_global(problem, solve(problem).point)
