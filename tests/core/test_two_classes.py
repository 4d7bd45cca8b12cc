import numpy as np
import pytest

from iclda._core.likelihood import _Parts
from problems import draw_sample, problem_of

PRIORS = np.log([0.3, 0.7])


def likelihood_and_points(log_priors, shrinkage):
    sample = draw_sample(3, n_classes=2, n_features=4, n_labeled=9, n_unlabeled=20, separation=1.0)
    problem = problem_of(sample, log_priors=log_priors, shrinkage=shrinkage)
    rng = np.random.default_rng(4)
    first = rng.uniform(0.2, 0.8, (9, 1))
    sums = 0.1 * rng.standard_normal((9, 4))
    points = np.stack([np.hstack([first, sums]), np.hstack([1 - first, -sums])], axis=1)
    return problem.likelihood, points


@pytest.fixture(params=[(None, 0.0), (PRIORS, 0.0), (None, 0.2), (PRIORS, 0.2)])
def likelihood_points(request):
    return likelihood_and_points(*request.param)


def test_two_classes_are_what_the_formulas_for_any_number_say(likelihood_points):
    likelihood, points = likelihood_points
    for point in points:
        parts = _Parts(likelihood, point)
        value, gradient = likelihood.value_and_gradient(point)
        np.testing.assert_allclose(value, likelihood._value(parts), rtol=1e-12)
        expected = parts.gradient()
        np.testing.assert_allclose(
            gradient[0] - gradient[1], expected[0] - expected[1], rtol=1e-9, atol=1e-10
        )
        direction = np.random.default_rng(5).standard_normal(point.shape)
        direction -= direction.mean(axis=0)
        found = likelihood.hessian_product(point)(direction)
        expected = parts.change_of_gradient(direction)
        np.testing.assert_allclose(
            found[0] - found[1], expected[0] - expected[1], rtol=1e-9, atol=1e-8
        )
        along = (likelihood.hessian(point) @ direction[0]).ravel()
        np.testing.assert_allclose(along, found[0] - found[1], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("n_points", [1, 4, 9])
def test_a_stack_of_points_gives_what_each_of_them_does(likelihood_points, n_points):
    likelihood, points = likelihood_points
    points = points[:n_points]
    values, gradients = likelihood.value_and_gradient(points)
    each = [likelihood.value_and_gradient(point) for point in points]
    np.testing.assert_allclose(values, [value for value, _ in each], rtol=1e-13)
    np.testing.assert_allclose(gradients, [gradient for _, gradient in each], rtol=1e-11)
