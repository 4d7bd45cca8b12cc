import numpy as np
import pytest

from iclda._core.solvers.quotas import Quotas, minimize_dual


@pytest.mark.parametrize("size", [1.0, 30.0, 1e7])
def test_quotas_of_very_different_size_are_filled_in_few_steps(size):
    # Newton's method alone took more than 150 steps, and ran on where rounding leaves
    # no more.
    rng = np.random.default_rng(3)
    shares = 10.0 ** -np.arange(8.0)
    shares /= shares.sum()
    weights = np.full(300, 1 / 300)
    is_held = np.arange(8) < 7
    quotas = Quotas(shares, np.zeros(8), is_held, weight=1.0)
    scores = size * rng.standard_normal((1, 8, 300))
    tau = max(1.0, size / 10)  # as soft as labels are at first
    shifts, is_filled = minimize_dual(
        scores / tau, weights, quotas, np.zeros((1, 8)), max_steps=40
    )
    assert is_filled.all()
    odds = np.exp(scores[0] / tau + shifts[0][:, None] - (scores[0] / tau).max(axis=0))
    np.testing.assert_allclose(
        (odds / odds.sum(axis=0)) @ weights, shares, rtol=1e-5, atol=1e-9
    )
