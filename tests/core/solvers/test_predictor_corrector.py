import numpy as np
import pytest

from iclda._core.solvers import Outcome, predictor_corrector, search
from iclda._core.solvers.attainable import gap, hold_all
from iclda._core.solvers.search import maximize_labeled_likelihood
from problems import climb, draw_sample, problem_of, soft_maxima

OPTIONS = {"tol": 1e-6, "max_iter": 200, "n_starts": 32, "seed": 0}


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
    monkeypatch.setattr(search, "_HELD_ROWS", n_held)
    monkeypatch.setattr(search, "_SCREENED_ROWS", n_held // 2)
    n_entries = (len(sample.X_unlabeled) if can_hold_all else n_held) * (1 + sample.X.shape[1])
    monkeypatch.setattr(search, "_HELD_ENTRIES", n_entries)
    problem = problem_of(sample, block_rows=64)
    return problem, maximize_labeled_likelihood(problem, **{**OPTIONS, **options})


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n_unlabeled", [300, 1000, 3000])
def test_the_fast_way_reaches_what_a_dense_optimization_over_all_labels_does(
    monkeypatch, n_unlabeled, separation
):
    sample = draw(2, n_unlabeled, separation=separation)
    problem, found = read(monkeypatch, sample)
    assert problem.unlabeled._total is not None  # of two classes one is what the other leaves
    assert found.outcome is Outcome.CONVERGED
    rule = found.rule
    shares = problem.unlabeled.responsibilities(rule, problem.frame)
    assert climb(sample, shares) <= found.objective + 1e-6
    assert soft_maxima(sample, 2).max() <= found.objective + 1e-6


def backwards(system, factor, groups):
    scores = system.state.scores
    return -scores, np.full((len(scores), len(scores)), 10.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("can_hold_all", [False, True], ids=["read", "held"])
def test_predictions_that_fail_are_made_up_for_by_the_careful_way(
    monkeypatch, n_classes, can_hold_all
):
    sample = draw(n_classes, 2000)
    expected = read(monkeypatch, sample)[1]
    monkeypatch.setattr(predictor_corrector, "_stretched", backwards)
    found = read(monkeypatch, sample, can_hold_all=can_hold_all)[1]
    assert found.outcome is Outcome.CONVERGED
    assert found.objective == pytest.approx(expected.objective, abs=2e-6)
    assert (found.n_passes <= 8) is can_hold_all


@pytest.mark.parametrize("seed", range(5))
def test_no_gap_exceeds_its_bound(sample, seed):
    problem = problem_of(sample)
    held = hold_all(problem)
    rng = np.random.default_rng(seed)
    scores, gradient = rng.standard_normal((2, *problem.labeled_point.shape))
    point = held.soft_point(scores)[0]
    found = gap(held, point, gradient, problem.labeled_point)
    assert found <= predictor_corrector.gap_bound(gradient) * (1 + 1e-12)


def test_the_shortfall_of_all_rows_is_the_gap(sample):
    problem = problem_of(sample)
    held = hold_all(problem)
    scores, gradient = np.random.default_rng(1).standard_normal((2, *problem.labeled_point.shape))
    point = held.soft_point(scores)[0]
    expected = gap(held, point, gradient, problem.labeled_point)
    assert held.shortfall(scores, gradient) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 7), (3, 9)])
def test_few_reads_of_many_rows_are_enough(n_classes, most):
    sample = draw(n_classes, 60_000, n_features=8, seed=2)
    found = maximize_labeled_likelihood(problem_of(sample), **OPTIONS)
    assert found.outcome is Outcome.CONVERGED
    assert found.n_passes <= most
