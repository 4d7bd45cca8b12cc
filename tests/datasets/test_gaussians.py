"""The two toy problems of the paper."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclda.datasets import make_gaussians, make_violated_gaussians

both = pytest.mark.parametrize("make", [make_gaussians, make_violated_gaussians])


@pytest.mark.parametrize("variance", [0.3, 0.6, 0.8])
def test_classes_are_round_gaussians_at_opposite_points(variance):
    n = 200_000
    X, y = make_gaussians(n, np.random.default_rng(0), variance)
    assert abs(y.mean() - 0.5) < 5 * 0.5 / np.sqrt(n)
    for label, center in ((0, 1.0), (1, -1.0)):
        rows = X[y == label]
        slack = 5 * np.sqrt(2 / n)
        assert_allclose(rows.mean(axis=0), center, atol=slack * np.sqrt(variance))
        covariance = np.cov(rows.T)
        assert_allclose(covariance, variance * np.eye(2), atol=2 * slack * variance)


def test_the_violated_problem_has_the_same_rows_and_a_boundary_across_the_clusters():
    X, cluster = make_gaussians(1000, np.random.default_rng(1), 0.8)
    same, y = make_violated_gaussians(1000, np.random.default_rng(1), 0.8)
    assert_array_equal(same, X)
    assert_array_equal(y == 1, X[:, 1] - X[:, 0] > 0)
    assert abs(np.corrcoef(y, cluster)[0, 1]) < 5 / np.sqrt(1000)


@both
@pytest.mark.parametrize("n", [0, 1, 7])
def test_samples_have_the_shape_asked_for(make, n):
    X, y = make(n, np.random.default_rng(0), 0.6)
    assert (X.shape, X.dtype) == ((n, 2), np.float64)
    assert (y.shape, y.dtype) == ((n,), np.int64)
    assert set(y.tolist()) <= {0, 1}


@both
@pytest.mark.parametrize("variance", [0, -0.5, np.nan, np.inf])
def test_a_variance_that_is_none_is_an_error_that_shows_it(make, variance):
    with pytest.raises(
        ValueError, match=f"^variance must be a number above 0, got {variance}"
    ):
        make(10, np.random.default_rng(0), variance)


@both
def test_a_negative_number_of_rows_is_an_error_that_shows_it(make):
    with pytest.raises(ValueError, match=r"^n must be at least 0, got -3\.$"):
        make(-3, np.random.default_rng(0), 0.6)
