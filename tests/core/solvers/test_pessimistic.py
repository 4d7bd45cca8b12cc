from itertools import product

import numpy as np
import pytest

from iclda._core.solvers import Limits, Outcome
from iclda._core.solvers.held import hold_all
from iclda._core.solvers.pessimistic import contrast_with, maximize_worst_gain
from iclda._core.solvers.supervised import supervised_reference
from tests.helpers.problems import (
    draw_sample,
    fit_shares,
    log_joint,
    maximize_over_shares,
    one_hot,
    parameters,
    point_of_shares,
    problem_of,
    random_shares,
    rising_shares,
)

OPTIONS = {"limits": Limits(200, 1e-8)}


def tiny_sample(number):
    """Few unlabeled rows, enough labels for a supervised fit."""
    n_classes = 2 + number % 2
    return draw_sample(
        [2016, number],
        n_classes=n_classes,
        n_features=1 + number // 2 % 3,
        n_labeled=5 * n_classes,
        n_unlabeled=(8, 5)[number % 2],
        separation=(0.3, 1.0, 3.0)[number // 6 % 3],
    )


def loss_of(problem):
    """Minus the gain h of (n, K) shares of the unlabeled rows, and its gradient."""
    held = hold_all(problem)
    contrast = contrast_with(problem, supervised_reference(problem))

    def evaluate(shares):
        value, gradient = contrast.value_and_gradient(point_of_shares(problem, shares))
        return value, (held.weights * (gradient @ held.z.T)).T

    return evaluate


@pytest.mark.parametrize("number", range(18))
def test_no_labeling_hard_or_soft_has_a_lower_gain(number):
    sample = tiny_sample(number)
    problem = problem_of(sample)
    found = maximize_worst_gain(problem, **OPTIONS)
    loss = loss_of(problem)
    n_rows = len(sample.X_unlabeled)
    n_classes = sample.n_classes
    for labels in product(range(n_classes), repeat=n_rows):
        assert -loss(one_hot(np.array(labels), n_classes))[0] >= found.objective - 1e-9
    rng = np.random.default_rng(number)
    for _ in range(50):
        shares = random_shares(rng, n_rows, n_classes, sharpness=2)
        assert -loss(shares)[0] >= found.objective - 1e-9


@pytest.mark.parametrize("number", range(18))
def test_the_solution_is_that_of_a_general_convex_solver(number):
    sample = tiny_sample(number)
    problem = problem_of(sample, shrinkage=(0.0, 0.3)[number % 3 == 0])
    found = maximize_worst_gain(problem, **OPTIONS)
    assert found.outcome is Outcome.CONVERGED
    assert found.gap <= 1e-8
    start = np.full((len(sample.X_unlabeled), sample.n_classes), 1 / sample.n_classes)
    solved = maximize_over_shares(loss_of(problem), start, ftol=1e-14)
    assert found.objective == pytest.approx(solved.fun, abs=1e-7)
    assert found.objective <= solved.fun + 1e-9


def test_the_steps_allowed_are_not_exceeded_and_the_gap_is_reported(sample):
    found = maximize_worst_gain(problem_of(sample), Limits(1))
    assert found.outcome is Outcome.MAX_ITERATIONS
    assert found.gap > 0


SETTINGS = {"plain": {}, "shrunk": {"shrinkage": 0.3}, "priors": {"fixed": True}}
every_option = pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)


def problem_with(sample, options):
    if "fixed" in options:
        options = {"log_priors": np.log(rising_shares(sample.n_classes))}
    return problem_of(sample, **options)


def random_points(problem, sample, n):
    rng = np.random.default_rng(0)
    size = (len(sample.X_unlabeled), sample.n_classes)
    return [
        point_of_shares(problem, random_shares(rng, *size, sharpness=3))
        for _ in range(n)
    ]


def penalized(rows, shares, model, shrinkage, nu):
    """Log likelihood per row less the penalty of shrinkage, by the printed formulas."""
    priors, means, covariance = model
    strength = shrinkage / (1 - shrinkage)
    value = (shares * log_joint(rows, priors, means, covariance)).sum() / len(rows)
    trace = np.trace(np.linalg.inv(covariance))
    return value - strength / 2 * (np.linalg.slogdet(covariance)[1] + nu * trace)


@every_option
def test_the_contrast_is_the_gain_of_the_fit_of_the_labels_over_the_supervised_fit(
    sample, options
):
    problem = problem_with(sample, options)
    s = problem.shrinkage
    rows = sample.rows
    reference = supervised_reference(problem)
    contrast = contrast_with(problem, reference)
    supervised = parameters(reference)
    rng = np.random.default_rng(1)
    nu = np.trace(np.cov(rows.T, bias=True)) / rows.shape[1]
    for _ in range(5):
        shares = random_shares(
            rng, len(sample.X_unlabeled), sample.n_classes, sharpness=2
        )
        everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
        priors, means, covariance = fit_shares(rows, everything)
        if problem.log_priors is not None:
            priors = np.exp(problem.log_priors)
        shrunk = (1 - s) * covariance + s * nu * np.eye(len(covariance))
        gain = penalized(rows, everything, (priors, means, shrunk), s, nu)
        gain -= penalized(rows, everything, supervised, s, nu)
        point = point_of_shares(problem, shares)
        assert -contrast.value_and_gradient(point)[0] == pytest.approx(gain, rel=1e-9)


@every_option
def test_derivatives_are_those_of_finite_differences(sample, options):
    problem = problem_with(sample, options)
    contrast = contrast_with(problem, supervised_reference(problem))
    rng = np.random.default_rng(2)
    size = 1e-6
    for point in random_points(problem, sample, 3):
        way = rng.standard_normal(point.shape)
        way -= way.mean(axis=0)
        ahead, behind = (
            contrast.value_and_gradient(point + sign * size * way) for sign in (1, -1)
        )
        gradient = contrast.value_and_gradient(point)[1]
        slope = (ahead[0] - behind[0]) / (2 * size)
        assert np.vdot(gradient, way) == pytest.approx(slope, rel=1e-6, abs=1e-6)
        change = (ahead[1] - behind[1]) / (2 * size)
        found = contrast.hessian_product(point)(way)
        scale = np.abs(change).max()
        np.testing.assert_allclose(
            found - found[-1], change - change[-1], atol=1e-5 * scale
        )


def test_the_contrast_is_minus_infinity_where_the_covariance_is_singular(sample):
    problem = problem_of(sample)
    contrast = contrast_with(problem, supervised_reference(problem))
    singular = problem.labeled_point.copy()
    singular[0, 0] = 0
    assert contrast.value_and_gradient(singular)[0] == -np.inf


@every_option
def test_the_contrast_is_concave(sample, options):
    problem = problem_with(sample, options)
    contrast = contrast_with(problem, supervised_reference(problem))
    for point in random_points(problem, sample, 6):
        assert np.linalg.eigvalsh(contrast.hessian(point)).max() < 1e-9
