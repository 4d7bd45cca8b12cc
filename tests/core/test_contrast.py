from itertools import pairwise

import numpy as np
import pytest

from iclda._core.contrast import contrast_with
from iclda._core.solvers.supervised import supervised_reference
from problems import fit_shares, log_joint, one_hot, problem_of, random_shares

OPTIONS = {"plain": {}, "shrunk": {"shrinkage": 0.3}, "priors": {"fixed": True}}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def problem_with(sample, options):
    if "fixed" in options:
        shares = np.arange(1.0, 1 + sample.n_classes)
        options = {"log_priors": np.log(shares / shares.sum())}
    return problem_of(sample, **options)


def point_of_shares(problem, sample, shares):
    z = problem.whitening.points(problem.frame.apply(sample.X_unlabeled))
    sums = shares.T @ np.column_stack([np.ones(len(z)), z])
    return problem.labeled_point + sums / problem.moments.weight


def random_points(problem, sample, n):
    rng = np.random.default_rng(0)
    size = len(sample.X_unlabeled), sample.n_classes
    return [
        point_of_shares(problem, sample, random_shares(rng, *size, sharpness=3)) for _ in range(n)
    ]


def penalized(rows, shares, model, shrinkage, nu):
    """Log likelihood per row less the penalty of shrinkage, by the printed formulas."""
    priors, means, covariance = model
    strength = shrinkage / (1 - shrinkage)
    value = (shares * log_joint(rows, priors, means, covariance)).sum() / len(rows)
    trace = np.trace(np.linalg.inv(covariance))
    return value - strength / 2 * (np.linalg.slogdet(covariance)[1] + nu * trace)


@every_option
def test_the_contrast_is_the_gain_of_the_fit_of_the_labels_over_the_supervised_fit(sample, options):
    problem = problem_with(sample, options)
    s, rows = problem.shrinkage, sample.rows
    reference = supervised_reference(problem)
    contrast = contrast_with(problem, reference)
    scale = problem.frame.scale
    supervised = (
        np.exp(reference.log_priors),
        problem.frame.restore(reference.means),
        reference.covariance * np.outer(scale, scale),
    )
    rng = np.random.default_rng(1)
    nu = np.trace(np.cov(rows.T, bias=True)) / rows.shape[1]
    for _ in range(5):
        shares = random_shares(rng, len(sample.X_unlabeled), sample.n_classes, sharpness=2)
        everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
        priors, means, covariance = fit_shares(rows, everything)
        if problem.log_priors is not None:
            priors = np.exp(problem.log_priors)
        shrunk = (1 - s) * covariance + s * nu * np.eye(len(covariance))
        gain = penalized(rows, everything, (priors, means, shrunk), s, nu)
        gain -= penalized(rows, everything, supervised, s, nu)
        point = point_of_shares(problem, sample, shares)
        assert -contrast.value_and_gradient(point)[0] == pytest.approx(gain, rel=1e-9)


@every_option
def test_derivatives_are_those_of_finite_differences(sample, options):
    problem = problem_with(sample, options)
    contrast = contrast_with(problem, supervised_reference(problem))
    rng, size = np.random.default_rng(2), 1e-6
    for point in random_points(problem, sample, 3):
        way = rng.standard_normal(point.shape)
        way -= way.mean(axis=0)
        ahead, behind = (contrast.value_and_gradient(point + sign * size * way) for sign in (1, -1))
        gradient = contrast.value_and_gradient(point)[1]
        slope = (ahead[0] - behind[0]) / (2 * size)
        assert np.vdot(gradient, way) == pytest.approx(slope, rel=1e-6, abs=1e-6)
        change = (ahead[1] - behind[1]) / (2 * size)
        found = contrast.hessian_product(point)(way)
        scale = np.abs(change).max()
        np.testing.assert_allclose(found - found[-1], change - change[-1], atol=1e-5 * scale)


@every_option
def test_the_contrast_is_concave(sample, options):
    problem = problem_with(sample, options)
    contrast = contrast_with(problem, supervised_reference(problem))
    points = random_points(problem, sample, 6)
    for point in points:
        assert np.linalg.eigvalsh(contrast.hessian(point)).max() < 1e-9
    for one, two in pairwise(points):
        ends = [contrast.value_and_gradient(each)[0] for each in (one, two)]
        assert contrast.value_and_gradient((one + two) / 2)[0] >= np.mean(ends) - 1e-12


def test_the_contrast_is_minus_infinity_where_the_covariance_is_singular(sample):
    problem = problem_of(sample)
    contrast = contrast_with(problem, supervised_reference(problem))
    singular = problem.labeled_point.copy()
    singular[0, 0] = 0
    assert contrast.value_and_gradient(singular)[0] == -np.inf
