import numpy as np
import pytest
from scipy.stats import multivariate_normal

from iclda._core.gaussian import gaussians
from iclda._core.likelihood import FLOOR
from tests.helpers.problems import (
    fit_shares,
    one_hot,
    parameters,
    point_of_shares,
    problem_of,
    random_shares,
)


@pytest.fixture
def parts(sample):
    """A model of soft labels, and its parameters computed without it."""
    problem = problem_of(sample)
    rng = np.random.default_rng(6)
    shares = random_shares(rng, len(sample.X_unlabeled), sample.n_classes, sharpness=3)
    model = problem.model_of(point_of_shares(problem, shares))
    everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    return model, fit_shares(sample.rows, everything)


def test_the_model_of_a_point_is_the_fit_by_its_labels(parts):
    model, (weights, means, covariance) = parts
    np.testing.assert_allclose(model.class_weights, weights, rtol=1e-12)
    _, found_means, found_covariance = parameters(model)
    np.testing.assert_allclose(found_means, means, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found_covariance, covariance, rtol=1e-10)
    np.testing.assert_allclose(
        model.log_det, np.linalg.slogdet(covariance)[1], rtol=1e-11
    )


def test_log_joint_is_prior_times_density(sample, parts):
    model, (weights, means, covariance) = parts
    expected = [
        np.log(r) + multivariate_normal(mean, covariance).logpdf(sample.rows)
        for r, mean in zip(weights, means, strict=True)
    ]
    np.testing.assert_allclose(model.log_joint(sample.rows).T, expected, rtol=1e-10)


def test_scores_are_the_log_joint_up_to_a_constant_of_the_row(sample, parts):
    model, _ = parts
    scores = model.score_rule().scores(model.frame.apply(sample.rows)).T
    difference = scores - model.log_joint(sample.rows)
    np.testing.assert_allclose(
        difference, np.tile(difference[:, :1], scores.shape[1]), rtol=1e-9
    )


def test_discriminants_have_unit_variance_within_classes_and_none_in_common(
    sample, parts
):
    model, _ = parts
    n_components = min(sample.n_classes - 1, 3)
    axes = model.discriminants(n_components)
    np.testing.assert_allclose(
        axes.T @ model.covariance @ axes, np.eye(n_components), atol=1e-10
    )
    centered = model.means - model.class_weights @ model.means
    between = axes.T @ (model.class_weights[:, None] * centered).T @ centered @ axes
    np.testing.assert_allclose(between, np.diag(np.diag(between)), atol=1e-10)
    assert np.all(np.diff(np.diag(between)) <= 0)


def test_variances_are_held_at_the_floor(sample):
    problem = problem_of(sample)
    flat = np.diag([1.0, 0.5, FLOOR / 100])
    weights = np.full(sample.n_classes, 1 / sample.n_classes)
    means = np.zeros((sample.n_classes, 3))
    model = gaussians(problem.frame, problem.whitening, weights, means, flat, None)
    assert model.is_floored
    assert np.all(np.isfinite(model.log_joint(sample.rows)))
    unit = model.projection @ problem.whitening.inverse
    np.testing.assert_allclose(
        np.linalg.eigvalsh(np.linalg.inv(unit.T @ unit)), [FLOOR, 0.5, 1.0], rtol=1e-6
    )
