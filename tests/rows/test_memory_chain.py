import numpy as np
import pytest

from iclda._core.frame import frame_of
from iclda._core.labelsums import LinearRule
from iclda._rows.memory import ChainedRows, MemoryRows

RNG = np.random.default_rng(22)
X = RNG.standard_normal((60, 3)) + 5
WEIGHTS = RNG.uniform(0, 2, len(X))
FRAME = frame_of(X)
RULE = LinearRule(RNG.standard_normal((3, 2)), RNG.standard_normal(2), True)
CUTS = (slice(0, 5), slice(5, 5), slice(5, 42), slice(42, 60))


def chained(factor=1.0):
    return ChainedRows([MemoryRows(X[cut], WEIGHTS[cut]) for cut in CUTS], 3, factor)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_a_chain_is_its_rows_with_all_weights_multiplied(factor):
    chain, whole = chained(factor), MemoryRows(X, factor * WEIGHTS)
    assert (chain.n_rows, chain.n_features) == (60, 3)
    for centers in (None, np.zeros((2, 3))):
        a, b = (rows.label_sums(RULE, FRAME, centers) for rows in (chain, whole))
        for name in vars(a):
            if getattr(b, name) is not None:
                np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-11)
    a, b = chain.moments(FRAME), whole.moments(FRAME)
    for name in vars(a):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-11)


def test_responsibilities_come_in_the_order_of_the_parts():
    expected = MemoryRows(X).responsibilities(RULE, FRAME)
    np.testing.assert_allclose(chained().responsibilities(RULE, FRAME), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [4, 20])
def test_a_sample_weighs_as_much_as_all_rows(n):
    rows, weights = chained().sample(n, seed=0)
    assert abs(len(rows) - n) <= len(CUTS)
    np.testing.assert_allclose(weights.sum(), WEIGHTS.sum())


def test_a_chain_of_nothing_has_no_sums():
    none = ChainedRows([], 3)
    assert none.n_rows == 0
    assert none.moments(FRAME).weight == 0
    assert none.label_sums(RULE, FRAME).counts.tolist() == [0, 0]
    assert none.sample(5, 0)[0].shape == (0, 3)
    assert none.responsibilities(RULE, FRAME).shape == (0, 2)
