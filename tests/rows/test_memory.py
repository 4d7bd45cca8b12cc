"""Sums of rows in memory, of members among them, and of chained sources."""

from dataclasses import replace

import numpy as np
import pytest

from iclda._core.frame import frame_of
from iclda._core.labelsums import GivenLabels, LinearRule, StackedRules, soften
from iclda._core.rows import Near
from iclda._rows.chained import ChainedRows
from iclda._rows.memory import MemoryRows
from tests.helpers.problems import near_all
from tests.helpers.row_sources import assert_equal_passes, assert_equal_sums

RNG = np.random.default_rng(21)
X = RNG.standard_normal((100, 3)) * [1, 10, 100] + 5
WEIGHTS = RNG.uniform(0, 2, len(X))
IS_MEMBER = RNG.uniform(size=len(X)) < 0.6
FRAME = frame_of(X)
CENTERS = RNG.standard_normal((4, 3))
RULES = {
    "hard": LinearRule(RNG.standard_normal((3, 4)), RNG.standard_normal(4), False),
    "soft": LinearRule(RNG.standard_normal((3, 4)), RNG.standard_normal(4), True),
    "codes": GivenLabels(RNG.integers(4, size=len(X)), 4),
    "shares": GivenLabels(RNG.dirichlet(np.ones(4), size=len(X)), 4),
    "stacked": StackedRules(
        RNG.standard_normal((3, 3, 2)), RNG.standard_normal((3, 2))
    ),
}


@pytest.mark.parametrize("tile_rows", [1, 7, 64, 1000])
@pytest.mark.parametrize("is_member", [None, IS_MEMBER], ids=["all", "some"])
def test_tile_size_changes_nothing_beyond_rounding(tile_rows, is_member):
    blocked, whole = (
        MemoryRows(X, WEIGHTS, is_member, tile_rows=n) for n in (tile_rows, len(X))
    )
    for rule in RULES.values():
        assert_equal_passes(blocked, whole, rule, FRAME)
        found = blocked.responsibilities(rule, FRAME)
        np.testing.assert_allclose(
            found, whole.responsibilities(rule, FRAME), rtol=1e-12
        )


# The frame of rows that far from zero is not folded into the rules.
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_sums_of_stacked_rules_are_those_of_each_rule(offset):
    frame = replace(FRAME, origin=FRAME.origin + offset)
    rows = MemoryRows(X + offset, WEIGHTS, IS_MEMBER)
    rules = RULES["stacked"]
    found = rows.label_sums(rules, frame)
    for i in range(3):
        rule = LinearRule(rules.coef[i], rules.intercept[i], is_soft=True)
        alone = rows.label_sums(rule, frame)
        own = slice(2 * i, 2 * i + 2)
        np.testing.assert_allclose(found.counts[own], alone.counts, rtol=1e-9)
        np.testing.assert_allclose(found.sums[own], alone.sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_members_count_as_if_the_other_rows_were_not_there(name):
    rule = RULES[name]
    alone = rule
    if isinstance(rule, GivenLabels):
        alone = GivenLabels(rule.labels[IS_MEMBER], 4)
    members = MemoryRows(X, WEIGHTS, IS_MEMBER, tile_rows=16)
    cut = MemoryRows(X[IS_MEMBER], WEIGHTS[IS_MEMBER])
    assert members.n_rows == cut.n_rows == IS_MEMBER.sum()
    assert_equal_sums(members.moments(FRAME), cut.moments(FRAME))
    assert_equal_sums(members.label_sums(rule, FRAME), cut.label_sums(alone, FRAME))


@pytest.mark.parametrize("name", RULES)
def test_responsibilities_add_up_to_the_label_sums(name):
    rows = MemoryRows(X, WEIGHTS, tile_rows=16)
    shares = rows.responsibilities(RULES[name], FRAME) * WEIGHTS[:, None]
    sums = rows.label_sums(RULES[name], FRAME)
    np.testing.assert_allclose(sums.counts, shares.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(
        sums.sums, shares.T @ FRAME.apply(X), rtol=1e-10, atol=1e-11
    )


@pytest.mark.parametrize("n", [1, 10, 59, 10_000])
def test_a_sample_weighs_as_much_as_all_rows(n):
    rows = MemoryRows(X, WEIGHTS, IS_MEMBER)
    drawn, weights = rows.sample(n, seed=3)
    assert len(drawn) == len(weights) == min(n, rows.n_rows)
    np.testing.assert_allclose(weights.sum(), WEIGHTS[IS_MEMBER].sum())
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in X[IS_MEMBER]}
    again, _ = rows.sample(n, seed=3)
    np.testing.assert_array_equal(drawn, again)


def test_no_rows_have_no_sums():
    none = MemoryRows(X, WEIGHTS, np.zeros(len(X), dtype=bool))
    assert none.n_rows == 0
    assert none.moments(FRAME).weight == 0
    assert none.label_sums(RULES["soft"], FRAME).counts.tolist() == [0, 0, 0, 0]
    assert none.responsibilities(RULES["soft"], FRAME).shape == (0, 4)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e3, 1e9])
def test_many_rows_have_the_moments_of_few_wherever_zero_lies(offset):
    rows = RNG.standard_normal((500, 3)) * [1, 1e-3, 1e3] + offset * np.array(
        [1, 1e-3, 1e3]
    )
    frame = frame_of(rows)
    many, few = (MemoryRows(rows, tile_rows=n).moments(frame) for n in (32, 500))
    assert_equal_sums(many, few)
    exact = np.cov(rows.astype(np.longdouble).T, bias=True)
    found = many.covariance * np.outer(frame.scale, frame.scale)
    np.testing.assert_allclose(np.diag(found), np.diag(exact).astype(float), rtol=1e-12)


def test_a_constant_column_varies_by_nothing_in_many_rows():
    rows = np.column_stack([RNG.standard_normal(500), np.full(500, 0.1)])
    moments = MemoryRows(rows, tile_rows=32).moments(frame_of(rows))
    assert (moments.scatter[1] == 0).all()


def test_rows_that_move_away_from_zero_after_the_first_keep_their_digits():
    rows = RNG.standard_normal((500, 2))
    rows[64:] += 1e7
    frame = frame_of(rows)
    many = MemoryRows(rows, tile_rows=32).moments(frame)
    assert_equal_sums(many, MemoryRows(rows).moments(frame), rtol=1e-11)


NEAR_RULES = {
    n_classes: LinearRule(
        60 * RNG.standard_normal((3, n_classes)), np.zeros(n_classes), True
    )
    for n_classes in (2, 4)
}


@pytest.mark.parametrize("rule", NEAR_RULES.values(), ids=NEAR_RULES)
def test_rows_near_a_boundary_are_those_whose_labels_are_not_hard(rule):
    rows = RNG.standard_normal((5_000, 3))
    weights = RNG.uniform(0.5, 2, 5_000)
    frame = frame_of(rows)
    for known in (None, weights):
        memory = MemoryRows(rows, known, tile_rows=64)
        is_near = memory.responsibilities(rule, frame).max(axis=1) < 1 - 1e-12
        assert 0.05 < is_near.mean() < 0.95
        near = memory.label_sums(rule, frame, **near_all(rule)).near
        np.testing.assert_allclose(near[:, 1:], frame.apply(rows)[is_near], rtol=1e-12)
        expected = np.ones(len(rows)) if known is None else weights
        np.testing.assert_array_equal(near[:, 0], expected[is_near])


@pytest.mark.parametrize("n", [2, 8])
@pytest.mark.parametrize("rule", NEAR_RULES.values(), ids=NEAR_RULES)
def test_every_nth_row_near_a_boundary_stands_for_n(rule, n):
    rows = RNG.standard_normal((20_000, 3))
    frame = frame_of(rows)
    whole, thinned = (
        MemoryRows(rows).label_sums(rule, frame, **near_all(rule, k)).near
        for k in (1, n)
    )
    assert len(thinned) < 1.2 * len(whole) / n
    assert (thinned[:, 0] == n).all()
    found, expected = (a[:, 0] @ a[:, 1:] ** 2 for a in (thinned, whole))
    np.testing.assert_allclose(found, expected, rtol=0.15)


def test_boundaries_may_be_thinned_each_on_its_own():
    rows = RNG.standard_normal((20_000, 3))
    frame = frame_of(rows)
    rule = NEAR_RULES[4]
    every = np.full((4, 4), 16)
    every[0, 1] = every[1, 0] = 1
    near = MemoryRows(rows).label_sums(rule, frame, near=Near(every)).near
    shares = soften(rule.scores(near[:, 1:]))
    first, second = np.argsort(shares, axis=0)[:-3:-1]
    is_between = (np.minimum(first, second) == 0) & (np.maximum(first, second) == 1)
    assert (near[is_between, 0] == 1).all()
    assert set(near[:, 0]) == {1.0, 16.0}
    total = MemoryRows(rows).label_sums(rule, frame, **near_all(rule)).near[:, 0].sum()
    np.testing.assert_allclose(near[:, 0].sum(), total, rtol=0.1)


@pytest.mark.parametrize("rule", NEAR_RULES.values(), ids=NEAR_RULES)
def test_softened_rules_return_rows_further_from_a_boundary(rule):
    rows = RNG.standard_normal((5_000, 3))
    frame = frame_of(rows)
    wide = replace(near_all(rule)["near"], softening=4.0)
    softer = LinearRule(rule.coef / 4, rule.intercept / 4, is_soft=True)
    found = MemoryRows(rows).label_sums(rule, frame, near=wide)
    expected = MemoryRows(rows).label_sums(softer, frame, **near_all(softer))
    np.testing.assert_array_equal(found.near, expected.near)
    np.testing.assert_array_equal(
        found.sums, MemoryRows(rows).label_sums(rule, frame).sums
    )


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize(
    "steepness",
    [1.0, 300.0],
    # Scores with and beyond exponentials.
)
def test_classes_are_summed_alike_once_the_sum_of_all_rows_is_known(
    is_soft, n_classes, steepness
):
    # A last block of one row.
    rows = 1 + RNG.standard_normal((64 * 47 + 1, 3)) * [
        1,
        10,
        100,
    ]
    frame = frame_of(rows)
    coef = steepness * RNG.standard_normal((3, n_classes))
    rule = LinearRule(coef, RNG.standard_normal(n_classes), is_soft)
    knowing, ignorant = (MemoryRows(rows, tile_rows=64) for _ in range(2))
    knowing.moments(frame)
    assert knowing._total is not None
    for options in ({}, near_all(rule), near_all(rule, 4)):
        found, expected = (
            a.label_sums(rule, frame, **options) for a in (knowing, ignorant)
        )
        assert_equal_sums(found, expected, rtol=1e-11)
    centers = RNG.standard_normal((n_classes, 3))
    scatter = [a.label_sums(rule, frame, centers) for a in (knowing, ignorant)]
    assert_equal_sums(*scatter, rtol=1e-11)


@pytest.mark.parametrize("tied", [(0, 1), (1, 2), (0, 1, 2), ()])
def test_of_tied_classes_the_first_is_taken_also_where_it_is_not_summed(tied):
    rows = RNG.standard_normal((500, 2))
    coef = np.zeros((2, 3))
    coef[:, [k for k in range(3) if k not in tied]] = RNG.standard_normal(
        (2, 3 - len(tied))
    )
    rule = LinearRule(coef, np.zeros(3), is_soft=False)
    frame = frame_of(rows)
    knowing = MemoryRows(rows, tile_rows=64)
    knowing.moments(frame)
    scores = frame.apply(rows) @ coef
    expected = np.bincount(scores.argmax(axis=1), minlength=3)
    np.testing.assert_array_equal(knowing.label_sums(rule, frame).counts, expected)


PAIR = LinearRule(RNG.standard_normal((3, 2)), RNG.standard_normal(2), True)
CUTS = (slice(0, 5), slice(5, 5), slice(5, 42), slice(42, 100))


def chained(factor=1.0):
    return ChainedRows([MemoryRows(X[cut], WEIGHTS[cut]) for cut in CUTS], 3, factor)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_a_chain_is_its_rows_with_all_weights_multiplied(factor):
    chain = chained(factor)
    whole = MemoryRows(X, factor * WEIGHTS)
    assert (chain.n_rows, chain.n_features) == (100, 3)
    for centers in (None, CENTERS[:2]):
        sums = (rows.label_sums(PAIR, FRAME, centers) for rows in (chain, whole))
        assert_equal_sums(*sums, rtol=1e-11)
    assert_equal_sums(chain.moments(FRAME), whole.moments(FRAME), rtol=1e-11)
    expected = whole.responsibilities(PAIR, FRAME)
    np.testing.assert_allclose(
        chain.responsibilities(PAIR, FRAME), expected, rtol=1e-12
    )


@pytest.mark.parametrize("n", [4, 20, 100])
def test_a_sample_of_a_chain_weighs_as_much_as_all_rows(n):
    rows, weights = chained().sample(n, seed=0)
    assert abs(len(rows) - n) <= len(CUTS)
    np.testing.assert_allclose(weights.sum(), WEIGHTS.sum())
    if n == 100:
        np.testing.assert_array_equal(rows, X)


def test_a_chain_of_nothing_has_no_sums():
    none = ChainedRows([], 3)
    assert none.n_rows == none.moments(FRAME).weight == 0
    assert none.label_sums(PAIR, FRAME).counts.tolist() == [0, 0]
    assert none.sample(5, 0)[0].shape == (0, 3)
    assert none.responsibilities(PAIR, FRAME).shape == (0, 2)


@pytest.mark.parametrize("share", [0.02, 0.4, 0.6, 0.98, 1.0])
def test_rows_are_drawn_from_members_as_from_a_table_of_them_alone(share):
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((20_000, 2))
    is_member = rng.random(len(rows)) < share
    found, _ = MemoryRows(rows, None, is_member).sample(300, 7)
    expected, _ = MemoryRows(rows[is_member]).sample(300, 7)
    np.testing.assert_array_equal(found, expected)
