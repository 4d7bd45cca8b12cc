import numpy as np
import pytest

from iclda._core.whitening import factor


def matrix_of(eigenvalues, seed=0):
    axes = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))[0]
    return (axes * eigenvalues) @ axes.T


def test_a_factor_and_its_inverse_give_the_matrix_back():
    matrix = matrix_of([0.5, 1.0, 3.0])
    found = factor(matrix, 1e-3)
    np.testing.assert_allclose(found.lower @ found.lower.T, matrix, rtol=1e-13)
    np.testing.assert_allclose(found.inverse @ found.lower, np.eye(3), atol=1e-14)
    assert found.log_det == pytest.approx(np.log(1.5), rel=1e-13)


@pytest.mark.parametrize("smallest", [1e-4, 0.0, -1.0])
def test_no_factor_where_an_eigenvalue_does_not_lie_above_the_floor(smallest):
    assert factor(matrix_of([smallest, 1.0, 2.0]), 1e-3) is None


def test_nothing_has_a_factor_of_nothing():
    assert factor(np.zeros((0, 0)), 1e-3).log_det == 0
