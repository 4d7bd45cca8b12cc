import numpy as np
import pytest

from iclda._core.frame import frame_of
from iclda._core.whitening import factor, whiten
from iclda._rows.memory import MemoryRows

RNG = np.random.default_rng(8)
FULL = RNG.standard_normal((40, 4)) @ RNG.standard_normal((4, 4)) * [1e-5, 1.0, 10.0, 1e5] + 7
ROWS = {
    "full rank": FULL,
    "constant column": np.column_stack([FULL, np.full(40, 0.1)]),
    "repeated column": np.column_stack([FULL, FULL[:, 1]]),
    "sum of columns": np.column_stack([FULL[:, :3], FULL[:, 1] + FULL[:, 2]]),
    "fewer rows than columns": RNG.standard_normal((4, 6)),
}
RANKS = {
    "full rank": 4,
    "constant column": 4,
    "repeated column": 4,
    "sum of columns": 3,
    "fewer rows than columns": 3,
}


def whitened(rows, ridge=None):
    frame = frame_of(rows)
    moments = MemoryRows(rows).moments(frame)
    return frame, whiten(moments, frame, ridge)


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_whitened_in_the_directions_they_vary_in(name):
    rows = ROWS[name]
    frame, whitening = whitened(rows)
    assert whitening.rank == RANKS[name]
    u = frame.apply(rows)
    z = whitening.points(u)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(RANKS[name]), atol=1e-9)
    np.testing.assert_allclose(z @ whitening.inverse.T + whitening.mean, u, atol=1e-10)
    np.testing.assert_allclose(
        whitening.transform @ whitening.inverse, np.eye(RANKS[name]), atol=1e-9
    )


def test_the_log_determinant_is_that_of_the_covariance_in_the_users_units():
    covariance = np.cov(FULL.T, bias=True)
    deviations = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviations, deviations)
    expected = np.linalg.slogdet(correlation)[1] + 2 * np.log(deviations).sum()
    np.testing.assert_allclose(whitened(FULL)[1].log_det, expected, rtol=1e-10)


def test_the_log_determinant_of_deficient_rows_is_taken_in_their_range():
    rows = ROWS["fewer rows than columns"]
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[-3:]
    np.testing.assert_allclose(whitened(rows)[1].log_det, np.log(eigenvalues).sum(), rtol=1e-9)


def test_a_ridge_is_added_to_the_covariance():
    ridge = np.array([0.1, 0.2, 0.3, 0.4])
    frame, whitening = whitened(FULL, ridge)
    covariance = np.cov(frame.apply(FULL).T, bias=True) + np.diag(ridge)
    np.testing.assert_allclose(
        whitening.transform @ covariance @ whitening.transform.T, np.eye(4), atol=1e-12
    )
    expected = np.linalg.slogdet(covariance)[1] + 2 * np.log(frame.scale).sum()
    np.testing.assert_allclose(whitening.log_det, expected, rtol=1e-12)


def test_class_sums_are_sums_of_whitened_rows():
    frame, whitening = whitened(FULL)
    u, shares = frame.apply(FULL), RNG.dirichlet(np.ones(3), size=len(FULL))
    found = whitening.class_sums(shares.sum(axis=0), shares.T @ u)
    z = np.column_stack([np.ones(len(u)), whitening.points(u)])
    np.testing.assert_allclose(found, shares.T @ z, atol=1e-10)


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
