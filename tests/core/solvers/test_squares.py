import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from iclda._core.solvers.squares import (
    distance_from_supervised,
    labeled_loss,
    supervised_squares,
)
from tests.helpers.problems import one_hot, point_of_shares, problem_of, random_shares


@pytest.fixture
def labeled(sample):
    """A problem, a labeling of unlabeled rows, its point, and the rows (1, z)."""
    problem = problem_of(sample)
    shares = random_shares(
        np.random.default_rng(1), len(sample.X_unlabeled), sample.n_classes
    )
    whitened = problem.whitening.points(problem.frame.apply(sample.rows))
    z = np.column_stack([np.ones(len(whitened)), whitened])
    return problem, shares, point_of_shares(problem, shares), z


def test_the_fit_of_a_labeling_is_its_point(sample, labeled):
    _, shares, point, z = labeled
    targets = np.vstack([one_hot(sample.y, sample.n_classes), shares])
    expected = LinearRegression().fit(sample.rows, targets).predict(sample.rows)
    np.testing.assert_allclose(z @ point.T, expected, atol=1e-9)


def test_losses_are_those_of_the_rows(sample, labeled):
    problem, _, point, z = labeled
    targets = one_hot(sample.y, sample.n_classes)
    mean = ((z[: len(targets)] @ point.T - targets) ** 2).sum() / len(targets) / 2
    found = -labeled_loss(problem).value_and_gradient(point)[0]
    assert found == pytest.approx(mean, rel=1e-9)
    theirs = LinearRegression().fit(sample.X, targets).predict(sample.rows)
    far = ((z @ point.T - theirs) ** 2).sum() / len(z) / 2
    found = -distance_from_supervised(problem).value_and_gradient(point)[0]
    assert found == pytest.approx(far, rel=1e-9)
    supervised = supervised_squares(problem.labeled, problem.whitening)
    np.testing.assert_allclose(z @ supervised.T, theirs, atol=1e-9)


@pytest.mark.parametrize("make", [labeled_loss, distance_from_supervised])
def test_derivatives_are_those_of_differences(labeled, make):
    problem, _, point, _ = labeled
    loss = make(problem)
    rng = np.random.default_rng(2)
    direction = rng.standard_normal(point.shape)
    direction -= direction.mean(axis=0)
    _, gradient = loss.value_and_gradient(point)
    h = 1e-4
    ahead = loss.value_and_gradient(point + h * direction)
    behind = loss.value_and_gradient(point - h * direction)
    slope = (ahead[0] - behind[0]) / (2 * h)
    assert np.vdot(gradient, direction) == pytest.approx(slope, rel=1e-6)
    change = (ahead[1] - behind[1]) / (2 * h)
    product = loss.hessian_product(point)(direction)
    np.testing.assert_allclose(product, change, atol=1e-7)
    flat = direction[:-1].ravel()
    bend = flat @ loss.hessian(point) @ flat
    assert bend == pytest.approx(np.vdot(direction, change), rel=1e-6)
    assert bend <= 1e-12
    assert loss.is_bounded(point)
