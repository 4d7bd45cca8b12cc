"""Steps within a radius, and the minima that they lead to."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda._core.solvers.trust_region import QuadraticModel, minimize


def symmetric(seed, eigenvalues):
    """A matrix with these eigenvalues, and its eigenvectors."""
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    return (vectors * eigenvalues) @ vectors.T, vectors


SPECTRA = {
    "convex": [0.5, 1.0, 2.0, 30.0],
    "saddle": [-1.0, 0.5, 2.0, 30.0],
    "concave": [-3.0, -2.0, -2.0, -1e-3],
    "singular": [0.0, 0.0, 1.0, 2.0],
    "huge": [-2e12, -1e12, 1.0, 1e12],
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("radius", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_no_step_within_the_radius_is_better(spectrum, radius, is_hard, seed):
    eigenvalues = np.array(SPECTRA[spectrum])
    hessian, vectors = symmetric(seed, eigenvalues)
    rng = np.random.default_rng([seed, 1])
    slopes = rng.standard_normal(4)
    if is_hard:
        # No slope along the direction of lowest curvature.
        slopes[eigenvalues == eigenvalues[0]] = 0
    model = QuadraticModel(vectors @ slopes, hessian)
    step = model.best_step(radius)
    assert np.linalg.norm(step) <= radius * (1 + 1e-9)
    others = rng.standard_normal((2_000, 4))
    others *= radius / np.linalg.norm(others, axis=1, keepdims=True)
    others *= rng.uniform(size=(2_000, 1)) ** 0.25
    near = step + 1e-3 * others
    near *= np.minimum(1, radius / np.linalg.norm(near, axis=1))[:, None]
    best = model.change(step)
    slack = 1e-9 * abs(best)
    assert best < 0
    assert min(map(model.change, [*others, *near])) >= best - slack


def test_of_huge_curvatures_beside_a_small_gradient_the_lowest_is_followed():
    hessian, vectors = symmetric(0, np.linspace(-1.93e12, 1e12, 20))
    model = QuadraticModel(1e-3 * vectors.sum(axis=1), hessian)
    step = model.best_step(0.1)
    assert_allclose(np.linalg.norm(step), 0.1)
    assert_allclose(model.change(step), -1.93e12 * 0.1**2 / 2, rtol=1e-9)


def rosenbrock(x):
    value = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    inner = x[1:] - x[:-1] ** 2
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * x[:-1] * inner - 2 * (1 - x[:-1])
    gradient[1:] += 200 * inner
    return float(value), gradient


def rosenbrock_hessian(x):
    hessian = np.diag(np.r_[1200 * x[:-1] ** 2 - 400 * x[1:] + 2, 0.0])
    hessian += np.diag(np.r_[0.0, np.full(len(x) - 1, 200.0)])
    return hessian + np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)


HOW = {"gradient_left": 1e-9, "max_steps": 500, "first_radius": 0.1}


@pytest.mark.parametrize("start", [[-1.2, 1.0], [3.0, -2.0, 0.5]])
def test_a_curved_valley_is_followed_to_its_minimum(start):
    end = minimize(rosenbrock, rosenbrock_hessian, np.array(start), **HOW)
    assert_allclose(end.unknowns, 1.0, atol=1e-7)
    assert np.linalg.norm(end.gradient) < 1e-9
    assert_allclose(end.value, rosenbrock(end.unknowns)[0])
    assert_allclose(end.hessian, rosenbrock_hessian(end.unknowns))


@pytest.mark.parametrize("outside", [np.inf, np.nan])
def test_no_step_leaves_where_the_loss_is_defined(outside):
    """x - log x, which is defined for positive x only, from near its pole."""
    tried = []

    def loss(x):
        tried.append(x[0])
        if x[0] <= 0:
            return outside, np.zeros(1)
        return float(x[0] - np.log(x[0])), 1 - 1 / x

    end = minimize(loss, lambda x: np.diag(x**-2.0), np.array([9.0]), **HOW)
    assert min(tried) < 0
    assert_allclose(end.unknowns, 1.0)


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_a_start_at_a_minimum_or_of_infinite_loss_stays(value):
    end = minimize(lambda x: (value, 0 * x), lambda x: np.eye(2), np.ones(2), **HOW)
    assert_allclose(end.unknowns, 1.0)
    assert end.value == value
