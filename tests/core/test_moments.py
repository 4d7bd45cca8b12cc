from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from iclda._core.frame import frame_of
from iclda._core.labelsums import GivenLabels
from iclda._core.moments import factor, moments_of_block, no_moments, whiten
from iclda._core.problem import summarize_labeled
from iclda._rows.memory import MemoryRows

NIST = Path(scipy.stats.__file__).parent / "tests" / "data" / "nist_anova"


def blocks_of(seed, n_blocks=3, n_features=2):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=n_blocks)
    return [
        (
            5 * rng.standard_normal() + rng.standard_normal((n, n_features)),
            rng.uniform(0, 2, n),
        )
        for n in sizes
    ]


def assert_equal_moments(a, b, rtol=1e-12):
    np.testing.assert_allclose(a.weight, b.weight, rtol=rtol)
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(
        a.scatter, b.scatter, rtol=rtol, atol=rtol * np.trace(b.scatter)
    )


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_addition_is_associative_and_commutative_to_rounding(seed):
    a, b, c = (moments_of_block(rows, weights) for rows, weights in blocks_of(seed))
    assert_equal_moments((a + b) + c, a + (b + c))
    assert_equal_moments(a + b, b + a)


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_over_blocks_is_that_of_all_rows(seed):
    blocks = blocks_of(seed, n_blocks=6)
    total = sum((moments_of_block(*block) for block in blocks), no_moments(2))
    rows, weights = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    assert_equal_moments(total, moments_of_block(rows, weights))
    np.testing.assert_allclose(total.mean, np.average(rows, axis=0, weights=weights))
    expected = np.cov(rows.T, aweights=weights, bias=True)
    np.testing.assert_allclose(total.covariance, expected, rtol=1e-12)


def read_nist(name):
    """Groups, values, and the certified sums of squares between and within groups."""
    lines = (NIST / f"{name}.dat").read_text().splitlines()
    between, within = (
        line.split() for line in lines if line.startswith(("Between", "Within"))
    )
    certified = [float(between[-3]), float(within[-2])]
    table = np.array([line.split() for line in lines[60:] if line.strip()], dtype=float)
    return table[:, 0].astype(int) - 1, table[:, 1:], certified


def exact_squares(groups, values):
    """Sums of squares between and within groups, without rounding."""
    x = [Fraction(v) for v in values[:, 0].tolist()]
    mean = sum(x) / len(x)
    between = within = Fraction(0)
    for group in np.unique(groups):
        members = [x[i] for i in np.flatnonzero(groups == group)]
        center = sum(members) / len(members)
        between += len(members) * (center - mean) ** 2
        within += sum((v - center) ** 2 for v in members)
    return float(between), float(within)


@pytest.mark.skipif(not NIST.is_dir(), reason="scipy is installed without its tests")
@pytest.mark.parametrize(
    ("name", "certified_to"),
    [
        ("AtmWtAg", 1e-8),
        ("SiRstv", 1e-11),
        *[(f"SmLs0{i}", 1e-12) for i in (1, 2, 3)],
        *[(f"SmLs0{i}", 1e-8) for i in (4, 5, 6)],
        *[(f"SmLs0{i}", 1e-2) for i in (7, 8, 9)],
    ],
)
def test_sums_of_squares_are_those_nist_certifies(name, certified_to):
    """``certified_to``: as far as the decimals of the file survive as doubles."""
    groups, values, certified = read_nist(name)
    frame = frame_of(values)
    rows = MemoryRows(values, tile_rows=100)
    labeled = summarize_labeled(rows, GivenLabels(groups, groups.max() + 1), frame)
    centered = labeled.means[:, 0] - labeled.moments.mean[0]
    found = (
        np.array([labeled.counts @ centered**2, labeled.within[0, 0]])
        * frame.scale[0] ** 2
    )
    np.testing.assert_allclose(found, exact_squares(groups, values), rtol=1e-12)
    np.testing.assert_allclose(found, certified, rtol=certified_to)


# Whitening.


RNG = np.random.default_rng(8)
FULL = (
    RNG.standard_normal((40, 4)) @ RNG.standard_normal((4, 4)) * [1e-5, 1.0, 10.0, 1e5]
    + 7
)
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
    np.testing.assert_allclose(
        whitened(rows)[1].log_det, np.log(eigenvalues).sum(), rtol=1e-9
    )


def test_a_ridge_is_added_to_the_covariance():
    ridge = np.array([0.1, 0.2, 0.3, 0.4])
    frame, whitening = whitened(FULL, ridge)
    covariance = np.cov(frame.apply(FULL).T, bias=True) + np.diag(ridge)
    np.testing.assert_allclose(
        whitening.transform @ covariance @ whitening.transform.T, np.eye(4), atol=1e-12
    )
    expected = np.linalg.slogdet(covariance)[1] + 2 * np.log(frame.scale).sum()
    np.testing.assert_allclose(whitening.log_det, expected, rtol=1e-12)


def matrix_of(eigenvalues, seed=0):
    axes = np.linalg.qr(
        np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2)
    )[0]
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
