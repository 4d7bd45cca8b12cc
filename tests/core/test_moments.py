from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from iclda._core.frame import frame_of
from iclda._core.labelsums import GivenLabels
from iclda._core.moments import moments_of_block, no_moments
from iclda._core.problem import summarize_labeled
from iclda._rows.memory import MemoryRows

NIST = Path(scipy.stats.__file__).parent / "tests" / "data" / "nist_anova"


def blocks_of(seed, n_blocks=3, n_features=2):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=n_blocks)
    return [
        (5 * rng.standard_normal() + rng.standard_normal((n, n_features)), rng.uniform(0, 2, n))
        for n in sizes
    ]


def assert_equal_moments(a, b, rtol=1e-12):
    np.testing.assert_allclose(a.weight, b.weight, rtol=rtol)
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.scatter, b.scatter, rtol=rtol, atol=rtol * np.trace(b.scatter))


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


def test_no_rows_add_nothing():
    some = moments_of_block(*blocks_of(1)[0])
    for total in (some + no_moments(2), no_moments(2) + some):
        assert_equal_moments(total, some, rtol=0)
    assert (no_moments(2) + no_moments(2)).weight == 0


def test_rows_of_weight_zero_are_no_rows():
    rows, weights = blocks_of(4)[0]
    padded = moments_of_block(np.vstack([rows, [[1e9, -1e9]]]), np.r_[weights, 0.0])
    assert_equal_moments(padded, moments_of_block(rows, weights))
    assert moments_of_block(rows, np.zeros(len(rows))).weight == 0


def read_nist(name):
    """Groups, values, and the certified sums of squares between and within groups."""
    lines = (NIST / f"{name}.dat").read_text().splitlines()
    between, within = (line.split() for line in lines if line.startswith(("Between", "Within")))
    certified = [float(between[-3]), float(within[-2])]
    table = np.array([line.split() for line in lines[60:] if line.strip()], dtype=float)
    return table[:, 0].astype(int) - 1, table[:, 1:], certified


def exact_squares(groups, values):
    """Sums of squares between and within groups of the numbers as stored, without rounding."""
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
    """``certified_to``: as far as the decimals of the file survive being stored as doubles."""
    groups, values, certified = read_nist(name)
    frame = frame_of(values)
    rows = MemoryRows(values, tile_rows=100)
    labeled = summarize_labeled(rows, GivenLabels(groups, groups.max() + 1), frame)
    centered = labeled.means[:, 0] - labeled.moments.mean[0]
    found = np.array([labeled.counts @ centered**2, labeled.within[0, 0]]) * frame.scale[0] ** 2
    np.testing.assert_allclose(found, exact_squares(groups, values), rtol=1e-12)
    np.testing.assert_allclose(found, certified, rtol=certified_to)
