import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclda._core.frame import frame_of
from iclda._core.labelsums import GivenLabels, LinearRule, label, within_scatter
from iclda._core.moments import sums_from_zero
from iclda._rows.memory import MemoryRows
from tests.helpers.problems import one_hot, random_shares

RNG = np.random.default_rng(3)
ROWS = np.array([1.0, -2.0, 4.0]) + RNG.standard_normal((30, 3))
WEIGHTS = RNG.uniform(0, 2, len(ROWS))
CODES = RNG.integers(4, size=len(ROWS))
SHARES = random_shares(RNG, len(ROWS), 4)
FRAME = frame_of(ROWS)
CENTERS = RNG.standard_normal((4, 3))


def sums_of(labels, weights=WEIGHTS, centers=CENTERS):
    return MemoryRows(ROWS, weights).label_sums(GivenLabels(labels, 4), FRAME, centers)


def test_label_sums_are_weighted_sums_of_the_rows():
    sums = sums_of(SHARES)
    u = FRAME.apply(ROWS)
    shares = SHARES * WEIGHTS[:, None]
    np.testing.assert_allclose(sums.counts, shares.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(sums.sums, shares.T @ u, rtol=1e-12)
    deviations = u[:, None, :] - CENTERS
    scatter = np.einsum("nk,nkd,nke->de", shares, deviations, deviations)
    np.testing.assert_allclose(sums.scatter, scatter, rtol=1e-12)


@pytest.mark.parametrize("knows_total", [False, True])
@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_overlaps_are_weighted_products_of_shares(n_classes, is_soft, knows_total):
    coef = RNG.standard_normal((3, n_classes))
    rule = LinearRule(coef, RNG.standard_normal(n_classes), is_soft)
    centered = np.tile(ROWS - ROWS.mean(axis=0), (100, 1))
    weights = None if knows_total else np.tile(WEIGHTS, 100)
    frame = frame_of(centered)
    rows = MemoryRows(centered, weights, tile_rows=512)
    rows.moments(frame)
    assert (rows._total is not None) == knows_total
    found = rows.label_sums(rule, frame, with_overlaps=True)
    shares, _ = rule.shares(frame.apply(centered), slice(None))
    weighted = shares if weights is None else shares * weights
    np.testing.assert_allclose(found.overlaps, weighted @ shares.T, atol=1e-10)
    assert rows.label_sums(rule, frame).overlaps is None


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize(("n_classes", "n_shares"), [(2, 1), (3, 3), (4, 4)])
def test_rules_that_know_the_sums_of_all_rows_give_the_same_shares(
    n_classes, n_shares, is_soft
):
    coef = RNG.standard_normal((3, n_classes))
    rule = LinearRule(coef, RNG.standard_normal(n_classes), is_soft)
    shares, _ = rule.knowing(sums_from_zero(ROWS)).shares(ROWS, slice(None))
    expected, _ = rule.shares(ROWS, slice(None))
    assert shares.shape == (n_shares, len(ROWS))
    np.testing.assert_allclose(shares, expected[-n_shares:], atol=1e-14)


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("offset", [0.0, 30.0, 1e9])
def test_folding_the_frame_into_a_rule_changes_nothing(is_soft, offset):
    rows = ROWS + offset
    frame = frame_of(rows)
    rule = LinearRule(RNG.standard_normal((3, 4)), RNG.standard_normal(4), is_soft)
    found = MemoryRows(rows, WEIGHTS).label_sums(rule, frame)
    shares, log_sums = rule.shares(frame.apply(rows), slice(None))
    weighted = shares.T * WEIGHTS[:, None]
    np.testing.assert_allclose(found.counts, weighted.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(
        found.sums, weighted.T @ frame.apply(rows), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(found.log_sum, WEIGHTS @ log_sums, rtol=1e-10)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    st.lists(
        st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_shares_are_nonnegative_and_add_up_to_one(scores, is_soft):
    scores = np.array(scores).T
    shares, log_sums = label(scores, is_soft=is_soft)
    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(axis=0), 1, rtol=1e-14)
    assert np.all(log_sums >= scores.max(axis=0))
    assert np.all(log_sums <= scores.max(axis=0) + np.log(3) + 1e-12 * np.abs(log_sums))


def test_soft_shares_are_softmax_and_hard_ones_the_largest_score():
    scores = RNG.standard_normal((4, 9))
    soft, log_sums = label(scores, is_soft=True)
    np.testing.assert_allclose(
        soft, np.exp(scores) / np.exp(scores).sum(axis=0), rtol=1e-13
    )
    np.testing.assert_allclose(log_sums, np.log(np.exp(scores).sum(axis=0)), rtol=1e-13)
    hard, top = label(scores, is_soft=False)
    assert np.array_equal(hard, one_hot(scores.argmax(axis=0), 4).T)
    assert np.array_equal(top, scores.max(axis=0))


def test_scatter_about_nearby_centers_gives_the_scatter_within_classes():
    means, within = within_scatter(sums_of(CODES), CENTERS)
    u = FRAME.apply(ROWS)
    expected = np.zeros((3, 3))
    for k in range(4):
        is_member = np.equal(CODES, k)
        w = WEIGHTS[is_member]
        members = u[is_member]
        np.testing.assert_allclose(
            means[k], np.average(members, axis=0, weights=w), rtol=1e-12
        )
        expected += w.sum() * np.cov(members.T, aweights=w, bias=True)
    np.testing.assert_allclose(within, expected, rtol=1e-11, atol=1e-12)
