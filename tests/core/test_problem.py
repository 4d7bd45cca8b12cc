import numpy as np
import pytest

from iclda._core.problem import SphericalProblem
from iclda._core.solvers.alternate import marginal_log_likelihood
from iclda._core.solvers.held import hold_all
from tests.helpers.problems import (
    fit_shares,
    log_joint,
    one_hot,
    parameters,
    point_of_shares,
    problem_of,
    random_shares,
)


def fit_of(sample, shares):
    """Class weights, means and the covariance sigma^2 I."""
    everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    weights, means, covariance = fit_shares(sample.rows, everything)
    d = sample.X.shape[1]
    return weights, means, np.trace(covariance) / d * np.eye(d)


@pytest.fixture
def labeled(sample):
    """A problem, a labeling of its unlabeled rows, and its point."""
    problem = problem_of(sample).recast(SphericalProblem)
    shares = random_shares(
        np.random.default_rng(1), len(sample.X_unlabeled), sample.n_classes
    )
    return problem, shares, point_of_shares(problem, shares)


def test_the_model_of_a_labeling_has_one_variance(sample, labeled):
    problem, shares, point = labeled
    model = problem.model_of(point)
    weights, means, covariance = fit_of(sample, shares)
    np.testing.assert_allclose(model.class_weights, weights, rtol=1e-10)
    _, found_means, found = parameters(model)
    np.testing.assert_allclose(found_means, means, rtol=1e-9)
    np.testing.assert_allclose(found, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        model.log_joint(sample.rows),
        log_joint(sample.rows, weights, means, covariance),
        rtol=1e-8,
    )


def test_scores_and_marginal_likelihood_are_those_of_the_model(sample, labeled):
    problem, shares, point = labeled
    weights, means, covariance = fit_of(sample, shares)
    joint = log_joint(sample.rows, weights, means, covariance)
    z = hold_all(problem).z
    scores = problem.posterior_scores(point) @ z.T
    expected = joint[len(sample.X) :].T
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-8)
    log_sum = np.logaddexp.reduce(scores, axis=0).sum()
    found = marginal_log_likelihood(
        problem, point, log_sum, problem.precision_weighted_means(point)
    )
    known = joint[np.arange(len(sample.y)), sample.y].sum()
    marginal = np.logaddexp.reduce(joint[len(sample.X) :], axis=1).sum()
    assert found == pytest.approx(known + marginal, rel=1e-9)


def test_points_without_weight_or_variance_are_not_admissible(labeled):
    problem, _, point = labeled
    assert problem.is_admissible(point)
    without = point.copy()
    without[0, 0] = 0
    assert not problem.is_admissible(without)
    far = point.copy()
    far[:, 1:] *= 100
    assert not problem.is_admissible(far)
