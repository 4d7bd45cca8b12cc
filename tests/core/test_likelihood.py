import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda._core.likelihood import (
    FLOOR,
    LabeledLikelihood,
    PrecisionWeightedMeans,
    precision_weighted_means,
    smallest_eigenvalue,
)
from iclda._core.solvers.pessimistic import Contrast
from tests.helpers.problems import (
    draw_sample,
    fit_shares,
    labeled_log_likelihood,
    one_hot,
    point_of_shares,
    problem_of,
    random_shares,
    rising_shares,
)

SETTINGS = {
    "plain": {},
    "shrinkage": {"shrinkage": 0.3},
    "priors": {"fixed": True},
    "shrinkage and priors": {"shrinkage": 0.3, "fixed": True},
}


@pytest.fixture(params=SETTINGS)
def problem(request, sample):
    options = dict(SETTINGS[request.param])
    if options.pop("fixed", False):
        options["log_priors"] = np.log(rising_shares(sample.n_classes))
    return problem_of(sample, **options)


def shares_of(sample, seed=5):
    return random_shares(
        np.random.default_rng(seed), len(sample.X_unlabeled), sample.n_classes
    )


def tangents(point):
    """Directions in which the weights keep adding up to one, and the sums to zero."""
    for k in range(len(point) - 1):
        for j in range(point.shape[1]):
            direction = np.zeros_like(point)
            direction[k, j], direction[-1, j] = 1, -1
            yield direction


def fourth_order(function, h):
    """Derivative at zero, to the fourth power of the step."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (
        12 * h
    )


def test_the_gradient_is_that_of_finite_differences(sample, problem):
    likelihood = problem.likelihood
    point = point_of_shares(problem, shares_of(sample))
    _, gradient = likelihood.value_and_gradient(point)
    for direction in tangents(point):
        slope = fourth_order(
            lambda t, v=direction: likelihood.value(point + t * v), 1e-4
        )
        np.testing.assert_allclose(
            (gradient * direction).sum(), slope, rtol=1e-7, atol=1e-6
        )


def test_the_hessian_is_that_of_finite_differences(sample, problem):
    likelihood = problem.likelihood
    point = point_of_shares(problem, shares_of(sample))

    def free_gradient(at):
        _, gradient = likelihood.value_and_gradient(at)
        return (gradient[:-1] - gradient[-1]).ravel()

    rows = [
        fourth_order(lambda t, v=direction: free_gradient(point + t * v), 1e-4)
        for direction in tangents(point)
    ]
    hessian = likelihood.hessian(point)
    np.testing.assert_allclose(
        hessian, rows, rtol=1e-6, atol=1e-8 * np.abs(hessian).max()
    )
    np.testing.assert_array_equal(hessian, hessian.T)
    changes = likelihood.hessian_product(point)(np.array(list(tangents(point))))
    products = (changes[:, :-1] - changes[:, -1:]).reshape(hessian.shape)
    np.testing.assert_allclose(
        products, hessian, rtol=1e-8, atol=1e-9 * np.abs(hessian).max()
    )


def test_the_value_is_the_log_likelihood_in_the_users_units(sample, problem):
    """Fixed priors leave means and covariance to the class weights."""
    shares = shares_of(sample)
    shrinkage = problem.shrinkage
    everything = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    priors, means, covariance = fit_shares(sample.rows, everything)
    if problem.log_priors is not None:
        priors = np.exp(problem.log_priors)
    nu = sample.rows.var(axis=0).mean()
    shrunk = (1 - shrinkage) * covariance + shrinkage * nu * np.eye(len(covariance))
    expected = labeled_log_likelihood(sample, priors, means, shrunk)
    value = problem.likelihood.value(point_of_shares(problem, shares))
    np.testing.assert_allclose(value, expected * len(sample.X), rtol=1e-11)


def test_stacks_of_points_are_evaluated_one_by_one(sample, problem):
    # Up to six points of two classes are evaluated one by one, longer stacks at once.
    points = np.array(
        [point_of_shares(problem, shares_of(sample, seed)) for seed in range(8)]
    )
    values, gradients = problem.likelihood.value_and_gradient(points)
    for i, point in enumerate(points):
        value, gradient = problem.likelihood.value_and_gradient(point)
        np.testing.assert_allclose(values[i], value, rtol=1e-13)
        np.testing.assert_allclose(gradients[i], gradient, rtol=1e-10, atol=1e-10)


def test_no_value_is_reported_at_the_floor():
    sample = draw_sample(4, n_features=1)
    problem = problem_of(sample)
    point = point_of_shares(problem, shares_of(sample))
    r = point[0, 0]
    point[:, 1] = np.sqrt(r * (1 - r) * (1 - FLOOR / 2)) * np.array([1, -1])
    value, gradient = problem.likelihood.value_and_gradient(point)
    assert value == -np.inf
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("separation", [0.5, 3.0, 300.0])
def test_the_smallest_eigenvalue_is_that_of_the_covariance(n_classes, separation):
    sample = draw_sample(
        [8, n_classes], n_classes=n_classes, n_features=4, separation=separation
    )
    problem = problem_of(sample)
    shares = one_hot(np.arange(40) % n_classes, n_classes)
    points = np.stack(
        [point_of_shares(problem, each) for each in (shares, shares[::-1])]
    )
    for point, found in zip(points, smallest_eigenvalue(points), strict=True):
        r = point[:, 0]
        b = point[:, 1:]
        expected = np.linalg.eigvalsh(np.eye(b.shape[1]) - (b.T / r) @ b)[0]
        assert found == pytest.approx(expected, abs=1e-8)
        assert smallest_eigenvalue(point) == pytest.approx(expected, abs=1e-8)


def point_of_many_classes(rng):
    r = rng.dirichlet(np.full(9, 5.0))
    b = 0.2 * r[:, None] * rng.standard_normal((9, 3))
    return np.column_stack([r, b - r[:, None] * b.sum(axis=0)])


@pytest.mark.parametrize("is_many", [False, True], ids=["few classes", "many classes"])
def test_precision_weighted_means_are_means_times_the_inverse_of_the_covariance(
    sample, is_many
):
    point = point_of_shares(problem_of(sample), shares_of(sample))
    if is_many:
        point = point_of_many_classes(np.random.default_rng(5))
    r = point[:, 0]
    b = point[:, 1:]
    M = np.eye(b.shape[1]) - (b.T / r) @ b
    in_a_stack = PrecisionWeightedMeans(
        *(part[1] for part in precision_weighted_means(np.stack([point, point])))
    )
    for found in (precision_weighted_means(point), in_a_stack):
        assert_allclose(
            found.rows, np.linalg.solve(M, (b / r[:, None]).T).T, rtol=1e-10
        )
        assert_allclose(found.along, np.einsum("kd,kd->k", found.rows, b), rtol=1e-10)
        assert_allclose(found.log_det, np.linalg.slogdet(M)[1], rtol=1e-10)
    assert_allclose(smallest_eigenvalue(point), np.linalg.eigvalsh(M)[0], rtol=1e-10)


@pytest.mark.parametrize("log_priors", [None, np.full(9, -np.log(9))])
def test_more_classes_than_features_have_the_derivatives_of_finite_differences(
    log_priors,
):
    rng = np.random.default_rng(0)
    point = point_of_many_classes(rng)
    direction = rng.standard_normal((9, 4))
    direction -= direction.mean(axis=0)
    counts = rng.uniform(1, 3, 9)
    means = 0.3 * rng.normal(size=(9, 3))
    labeled = LabeledLikelihood(counts, means, 50 * np.eye(3), log_priors, 0.1, 0.0)
    contrast = Contrast(rng.normal(size=(9, 4)), 0.3, log_priors, 0.1)
    for objective in (labeled, contrast):

        def value_and_gradient(t, objective=objective):
            value, gradient = objective.value_and_gradient(point + t * direction)
            return np.append((gradient - gradient[-1]).ravel(), value)

        slopes = fourth_order(value_and_gradient, 1e-4)
        assert_allclose(
            slopes[-1], np.vdot(objective.value_and_gradient(point)[1], direction)
        )
        change = objective.hessian_product(point)(direction)
        assert_allclose(
            (change - change[-1]).ravel(), slopes[:-1], rtol=1e-6, atol=1e-6
        )
