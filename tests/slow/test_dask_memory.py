"""Dask workers with less memory than the rows need, which their nannies end."""

import sys

import cloudpickle
import numpy as np
import pytest
from distributed import Client
from numpy.testing import assert_allclose

from iclda import MomentConstrainedLDA
from iclda.rows import from_dask
from tests.helpers.dask_blocks import read_by, two_workers

# 32 MB a block.
N_BLOCKS = 16
N_ROWS = 100_000
N_FEATURES = 40
Y = np.arange(100) % 2
X = np.random.default_rng(1).standard_normal((100, N_FEATURES)) + 2.0 * Y[:, None]


def reader(seed, n_rows=N_ROWS):
    """A function of no module, which workers without the tests can load."""

    def block():
        noise = np.random.default_rng(seed).standard_normal((n_rows, N_FEATURES))
        return noise + 2.0 * (np.arange(n_rows) % 2)[:, None]

    return block


@pytest.fixture(scope="module")
def client():
    # Workers have no tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with two_workers("400 MiB") as cluster, Client(cluster) as client:
        yield client


@pytest.mark.slow
def test_56_rows_that_the_workers_cannot_keep_give_the_same_fit(client):
    functions = [reader(seed) for seed in range(N_BLOCKS)]
    rows = np.concatenate([read() for read in functions])
    model = MomentConstrainedLDA().fit(X, Y, X_unlabeled=read_by(functions, N_FEATURES))
    expected = MomentConstrainedLDA().fit(X, Y, X_unlabeled=rows)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)


@pytest.mark.slow
def test_56_a_block_that_no_worker_can_hold_is_named(client):
    rows = read_by([reader(0), reader(1, 40 * N_ROWS)], N_FEATURES)
    with pytest.raises(RuntimeError, match=r"X_unlabeled, block 1 .*KilledWorker"):
        MomentConstrainedLDA().fit(X, Y, X_unlabeled=from_dask(rows, timeout=1200.0))
    client.wait_for_workers(2, timeout=600)
    model = MomentConstrainedLDA().fit(
        X, Y, X_unlabeled=read_by([reader(0)], N_FEATURES)
    )
    assert np.isfinite(model.coef_).all()
