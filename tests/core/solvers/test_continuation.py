from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import ImplicitlyConstrainedLDA
from iclda._core.labelsums import LinearRule
from iclda._core.solvers import Limits, Outcome, continuation, settings
from iclda._core.solvers.attainable import hold_all
from iclda._core.solvers.continuation import Effort, Follower, Work, _System
from iclda._core.solvers.implicit import maximize_labeled_likelihood
from tests.helpers.problems import (
    Sample,
    change_settings,
    climb,
    draw_sample,
    point_of,
    problem_of,
    soft_maxima,
)

OPTIONS = {"limits": Limits(200, 1e-6), "n_starts": 32, "seed": 0}


def draw(n_classes, n_unlabeled, n_features=3, separation=1.0, seed=5):
    return draw_sample(
        [seed, n_classes, n_unlabeled],
        n_classes=n_classes,
        n_features=n_features,
        n_labeled=8 * n_classes,
        n_unlabeled=n_unlabeled,
        separation=separation,
    )


def read(monkeypatch, sample, *, n_held=200, can_hold_all=False, **options):
    """The solution when few rows are held and all others are read."""
    monkeypatch.setattr(settings, "HELD_ROWS", n_held)
    change_settings(monkeypatch, screened_rows=n_held // 2)
    n_entries = (len(sample.X_unlabeled) if can_hold_all else n_held) * (
        1 + sample.X.shape[1]
    )
    change_settings(monkeypatch, held_entries=n_entries)
    problem = problem_of(sample, tile_rows=64)
    return problem, maximize_labeled_likelihood(problem, **{**OPTIONS, **options})


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n_unlabeled", [300, 1000, 3000])
def test_passes_reach_what_a_dense_optimization_over_all_labels_does(
    monkeypatch, n_unlabeled, separation
):
    sample = draw(2, n_unlabeled, separation=separation)
    problem, found = read(monkeypatch, sample)
    # Of two classes one is what the other leaves.
    assert problem.unlabeled._total is not None
    assert found.outcome is Outcome.CONVERGED
    rule = found.rule
    shares = problem.unlabeled.responsibilities(rule, problem.frame)
    assert climb(sample, shares) <= found.objective + 1e-6
    assert soft_maxima(sample, 2).max() <= found.objective + 1e-6


def follower_of(sample):
    problem = problem_of(sample)
    return problem, Follower(problem.likelihood, hold_all(problem))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_conjugate_gradients_and_a_factor_solve_the_same_system(monkeypatch, n_classes):
    problem, follower = follower_of(draw(n_classes, 400))
    scores = 3 * np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    # Where the system is definite.
    anchor, tau = (
        0.5 * scores,
        100 * problem.likelihood.weight,
    )
    state = follower.state(scores, tau, anchor)
    exact = _System(problem.likelihood, state, Work()).solve(state.residual, np.inf)
    monkeypatch.setattr(settings, "DENSE_UNKNOWNS", 0)
    change_settings(monkeypatch, accuracy=1e-9)
    found = _System(problem.likelihood, state, Work()).solve(state.residual, np.inf)
    tolerance = 1e-8 * np.abs(exact.scores).max()
    assert_allclose(
        found.scores - found.scores[-1], exact.scores, rtol=1e-6, atol=tolerance
    )
    assert found.slope == pytest.approx(exact.slope, rel=1e-6)
    assert found.length == pytest.approx(exact.length, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_rows_near_boundaries_solve_the_system_too(monkeypatch, n_classes):
    problem, follower = follower_of(draw(n_classes, 60, n_features=20))
    scores = 30 * np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    state = follower.state(scores, 1e-3 * problem.likelihood.weight, 0.9 * scores)
    exact = _System(problem.likelihood, state, Work()).solve(state.residual, np.inf)
    monkeypatch.setattr(settings, "DENSE_UNKNOWNS", 0)
    monkeypatch.setattr(continuation, "_MOST_PRODUCTS", 1)
    change_settings(monkeypatch, accuracy=1e-12)
    found = _System(problem.likelihood, state, Work()).solve(state.residual, np.inf)
    assert 1 < state.labeling.n_near <= scores.shape[1]
    assert_allclose(
        found.scores, exact.scores, rtol=1e-6, atol=1e-8 * np.abs(exact.scores).max()
    )
    assert found.slope == pytest.approx(exact.slope, rel=1e-6)
    assert found.length == pytest.approx(exact.length, rel=1e-6)


@pytest.mark.parametrize("tau", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_dense", [0, 64], ids=["products", "factor"])
def test_every_direction_raises_the_merit(monkeypatch, n_classes, tau, n_dense):
    monkeypatch.setattr(settings, "DENSE_UNKNOWNS", n_dense)
    problem, follower = follower_of(draw(n_classes, 400))
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores, anchor = rng.standard_normal((2, *problem.labeled_point.shape))
        state = follower.state(scores, tau * problem.likelihood.weight, anchor)
        system = _System(problem.likelihood, state, Work())
        direction, slope, length = system.solve(state.residual, 1.0)
        assert length <= 1
        assert slope > 0
        size = 1e-5 / max(1, np.abs(direction).max())
        ends = [
            follower.state(scores + a * direction, state.tau, anchor).merit
            for a in (size, -size)
        ]
        assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(
            slope, rel=1e-3, abs=1e-6
        )


def test_a_level_without_a_step_that_gains_is_not_at_its_maximum(monkeypatch):
    problem, follower = follower_of(draw(2, 400))
    scores = np.random.default_rng(0).standard_normal(problem.labeled_point.shape)
    state = follower.state(scores, problem.likelihood.weight)
    monkeypatch.setattr(Follower, "_part_of_step", lambda self, state, *_: (state, 0.0))
    assert follower._center(state, 5, 0.01, Work())[1:] == (
        1,
        continuation._End.UNFINISHED,
    )


def test_a_level_ends_where_its_scores_move_by_the_gradient_over_tau():
    problem, follower = follower_of(draw(3, 400))
    anchor = np.random.default_rng(2).standard_normal(problem.labeled_point.shape)
    tau = 0.1 * problem.likelihood.weight
    state = follower.state(anchor, tau, anchor)
    for _ in range(3):
        state = follower._center(state, 100, 1e-9, Work())[0]
    moved = state.tau * (state.scores - state.anchor)
    np.testing.assert_allclose(
        moved, state.gradient, atol=1e-5 * np.abs(state.gradient).max()
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_unlabeled", [40, 2000])
def test_products_alone_reach_the_maximum_of_the_factor(
    monkeypatch, n_classes, n_unlabeled
):
    sample = draw(n_classes, n_unlabeled)
    expected = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    monkeypatch.setattr(settings, "DENSE_UNKNOWNS", 0)
    found = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    assert found.outcome is expected.outcome is Outcome.CONVERGED
    assert found.objective == pytest.approx(expected.objective, abs=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("can_hold_all", [False, True], ids=["few rows", "more rows"])
def test_a_wrong_step_is_made_up_for(monkeypatch, n_classes, can_hold_all):
    sample = draw(n_classes, 2000)
    expected = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    follow = Follower.follow
    wrong = []

    def wrong_once(self, state, effort, least=0.0):
        path = follow(self, state, effort, least)
        if wrong or not least:
            return path
        wrong.append(path)
        away = state.scores - 3 * (path.state.scores - state.scores)
        return replace(path, levels=(path.levels[0], replace(path.state, scores=away)))

    monkeypatch.setattr(Follower, "follow", wrong_once)
    found = read(monkeypatch, sample, can_hold_all=can_hold_all)[1]
    assert wrong
    assert found.outcome is Outcome.CONVERGED
    assert found.objective == pytest.approx(expected.objective, abs=2e-6)
    assert found.n_passes <= (15 if can_hold_all else 60)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 7), (3, 9)])
def test_few_reads_of_many_rows_are_enough(n_classes, most):
    sample = draw(n_classes, 60_000, n_features=8, seed=2)
    found = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    assert found.outcome is Outcome.CONVERGED
    assert found.n_passes <= most


def test_work_ends_a_path_before_its_steps_do():
    sample = draw_sample(8, n_classes=3, n_features=4, n_labeled=12, n_unlabeled=200)
    problem = problem_of(sample)
    follower = Follower(problem.likelihood, hold_all(problem))
    begin = follower.state(np.zeros(problem.labeled_point.shape), 1.0)
    free = follower.follow(begin, Effort(1e-9, 100))
    work = Work(1000.0)
    bound = follower.follow(begin, Effort(1e-9, 100, work=work))
    assert work.left <= 0
    assert bound.n_iter < free.n_iter
    assert bound.gap > 1e-9 >= free.gap


@pytest.mark.parametrize("most_steps", [1, 2, 15])
def test_the_last_level_is_where_a_path_reached_its_aim(monkeypatch, most_steps):
    monkeypatch.setattr(continuation, "_MOST_STEPS", most_steps)
    problem = problem_of(draw(4, 500))
    follower = Follower(problem.likelihood, hold_all(problem))
    begin = follower.state(np.zeros(problem.labeled_point.shape), 1.0)
    path = follower.follow(begin, Effort(1e-4, 400))
    assert path.gap <= 1e-4
    assert follower.gap(path.levels[-1]) == path.gap


# The labeling at the end: exact, and the same whatever rounds the sums.


def rounded(sample):
    """Whole numbers, of which many rows are alike."""
    return Sample(np.rint(sample.X), sample.y, np.rint(sample.X_unlabeled))


def problems():
    """Hard and interior optima, tied classes beside hard ones, repeated rows."""
    for seed in range(30):
        sample = draw_sample(
            [77, seed],
            n_classes=2 + seed % 3,
            n_features=1 + seed // 3 % 4,
            n_labeled=4 * (2 + seed % 3),
            n_unlabeled=(60, 250, 700, 4000)[seed // 8],
            separation=(0.5, 2.0)[seed // 4 % 2],
        )
        yield pytest.param(rounded(sample) if seed % 5 == 0 else sample, id=str(seed))


every_problem = pytest.mark.parametrize("sample", list(problems()))


@every_problem
def test_the_labels_of_the_rule_attain_the_point_and_leave_nothing_to_gain(sample):
    problem = problem_of(sample)
    found = maximize_labeled_likelihood(problem, **OPTIONS)
    assert_allclose(point_of(problem, found.rule), found.point, atol=1e-13)
    assert found.gap <= 1e-12


@every_problem
def test_rounding_of_the_rows_moves_no_label(sample):
    """Another processor, another backend: as if the rows were not quite the same."""
    fit = sample.fit(ImplicitlyConstrainedLDA())
    for seed in range(3):
        noise = 1 + 1e-15 * np.random.default_rng(seed).standard_normal(
            sample.X_unlabeled.shape
        )
        moved = Sample(sample.X, sample.y, sample.X_unlabeled * noise)
        again = moved.fit(ImplicitlyConstrainedLDA())
        assert_allclose(
            again.responsibilities_, fit.responsibilities_, rtol=1e-9, atol=1e-9
        )
        assert_allclose(
            again.coef_, fit.coef_, rtol=1e-9, atol=1e-9 * np.abs(fit.coef_).max()
        )
        assert_allclose(again.objective_, fit.objective_, rtol=1e-12)


@every_problem
def test_labels_are_hard_but_for_few_rows_or_whole_classes_tie(sample):
    fit = sample.fit(ImplicitlyConstrainedLDA())
    shares = fit.responsibilities_
    others = np.setdiff1d(np.arange(len(shares)), fit.shared_rows_)
    assert_allclose(shares[others].max(axis=1), 1, atol=1e-12)
    rule = fit._imputation_
    if isinstance(rule, LinearRule):
        # All classes tie: the likelihood has no slope left.
        assert fit.gap_ < 1e-12
        assert len(fit.shared_rows_) > len(shares) / 2
        return
    first = rule.first.coef
    apart = [
        np.abs(first[:, k] - first[:, j]).max() > 1e-9 * np.abs(first).max()
        for k in range(fit.classes_.size)
        for j in range(k)
    ]
    if all(apart):
        distinct = np.unique(sample.X_unlabeled[fit.shared_rows_], axis=0)
        assert len(distinct) <= (sample.n_classes - 1) * (sample.X.shape[1] + 1)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_of_two_symmetric_maxima_rounding_chooses_none(seed):
    """Rows that are their own mirror image, and labeled rows on the mirror."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((int(rng.integers(8, 40)), 2))
    half[:, 0] += rng.choice([0.3, 1, 2])
    rows = np.vstack([half, half * [-1, 1]])
    X = np.array([[0, 1.0], [0, 1.5], [0, -1.0], [0, -0.5]])
    y = [0, 0, 1, 1]
    coefs = []
    for draw in range(6):
        order = np.random.default_rng(draw).permutation(len(rows))
        noise = 1 + 1e-15 * np.random.default_rng(draw).standard_normal(rows.shape)
        fit = ImplicitlyConstrainedLDA().fit(X, y, X_unlabeled=(rows * noise)[order])
        coefs.append(fit.coef_)
    # Not symmetric itself.
    assert abs(coefs[0][0, 0]) > 0.1
    assert_allclose(coefs, [coefs[0]] * 6, rtol=1e-6)
