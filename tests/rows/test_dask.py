"""Rows on a cluster: two worker processes, of which some are killed or stopped."""

import gc
import importlib
import logging
import os
import pickle
import signal
import threading
import time

import numpy as np
import psutil
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("distributed")

import dask.array
from dask.delayed import delayed
from distributed import Client, LocalCluster

from dask_blocks import (
    FITTED,
    N_BLOCKS,
    N_FEATURES,
    N_ROWS,
    ROWS,
    assert_same_fit,
    fit,
    in_blocks,
    loaders,
    with_entry,
)
from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA
from iclda._rows.dask import DaskRows
from iclda.rows import from_dask, progress
from problems import FAMILY

pytestmark = pytest.mark.timeout(60)  # a cluster that waits for ever is a failure, not a long test


@pytest.fixture(scope="module")
def client():
    """Two worker processes; once the tests are done nothing of them is left."""
    # A worker that dies 15 seconds after another death would not be replaced.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="1 GiB",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        with Client(cluster) as client:
            yield client
        pids = pids_of(cluster)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def pids_of(cluster):
    return [nanny.process.pid for nanny in cluster.workers.values() if nanny.process]


@pytest.mark.parametrize("method", FAMILY.values(), ids=FAMILY)
def test_a_fit_on_the_cluster_is_the_fit_in_memory(client, method):
    model = fit(in_blocks(ROWS), method)
    expected = fit(ROWS, method)
    assert_same_fit(model, expected)
    if hasattr(expected, "objective_"):
        assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
        assert model.n_passes_ == expected.n_passes_


@pytest.mark.parametrize("persist", [None, True, False])
def test_loaders_give_the_same_fit_kept_on_the_workers_or_read_again(client, persist):
    source = from_dask(loaders(ROWS), persist=persist)
    model, expected = fit(source), fit(ROWS)
    assert model.converged_
    assert_allclose(model.objective_, expected.objective_, atol=2e-6)  # twice the gap
    assert_array_equal(fit(source).coef_, model.coef_)


def test_delayed_objects_are_loaders_too_and_may_be_empty(client):
    blocks = [delayed(load)() for load in [list, *loaders(ROWS), list]]
    assert_same_fit(fit(from_dask(blocks)), fit(ROWS))


@pytest.mark.parametrize("persist", [None, True, False])
def test_an_array_that_the_user_persisted_is_not_kept_twice(client, persist):
    rows = in_blocks(ROWS).persist()
    n_bytes = []

    def weigh(*counts):
        held = client.run(lambda dask_worker: dask_worker.state.nbytes)
        n_bytes.append(sum(held.values()))

    with progress(weigh):
        model = fit(from_dask(rows, persist=persist), MomentConstrainedLDA)
    assert_same_fit(model, fit(ROWS, MomentConstrainedLDA))
    assert max(n_bytes) < 1.5 * ROWS.nbytes


def test_a_fit_is_the_same_to_the_bit_on_one_worker_and_on_two(client):
    rows = in_blocks(ROWS)
    one = next(iter(client.nthreads()))
    with dask.annotate(workers=[one], allow_other_workers=False):
        alone = fit(rows)
    assert_array_equal(alone.coef_, fit(rows).coef_)


def test_48_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, monkeypatch):
    def slowly(rows):
        time.sleep(0.05)
        return rows

    rows = in_blocks(ROWS).map_blocks(slowly, dtype=float)
    expected = fit(rows)
    killed = []
    sums = DaskRows.label_sums

    def sums_and_a_death(self, *args, **options):
        if not killed:
            killed.append(pids_of(client.cluster)[0])
            threading.Timer(0.05, os.kill, (killed[0], signal.SIGKILL)).start()
        return sums(self, *args, **options)

    monkeypatch.setattr(DaskRows, "label_sums", sums_and_a_death)
    model = fit(rows)
    client.wait_for_workers(2, timeout=30)
    assert killed
    assert killed[0] not in pids_of(client.cluster)
    for name in FITTED:
        assert_array_equal(getattr(model, name), getattr(expected, name))


def test_56_a_worker_stopped_for_a_while_in_the_middle_of_a_fit_changes_nothing(
    client, monkeypatch
):
    source = from_dask(in_blocks(ROWS), timeout=30.0)
    expected = fit(source)
    stopped = []
    sums = DaskRows.label_sums

    def sums_and_a_pause(self, *args, **options):
        if not stopped:
            stopped.append(pids_of(client.cluster)[0])
            os.kill(stopped[0], signal.SIGSTOP)
            threading.Timer(1.0, os.kill, (stopped[0], signal.SIGCONT)).start()
        return sums(self, *args, **options)

    monkeypatch.setattr(DaskRows, "label_sums", sums_and_a_pause)
    model = fit(source)
    assert stopped
    for name in FITTED:
        assert_array_equal(getattr(model, name), getattr(expected, name))


def test_rows_stay_on_the_workers(client, monkeypatch):
    n_rows, d = 400_000, 40
    noise = dask.array.random.default_rng(3).standard_normal((n_rows, d), chunks=(n_rows // 4, d))
    rows = noise + 2.0 * (dask.array.arange(n_rows, chunks=n_rows // 4) % 2)[:, None]
    received = []
    gather = Client._gather

    async def gather_and_weigh(self, futures, *args, **options):
        results = await gather(self, futures, *args, **options)
        received.append(len(pickle.dumps(results)))
        return results

    monkeypatch.setattr(Client, "_gather", gather_and_weigh)
    y = np.arange(100) % 2
    X = np.random.default_rng(1).standard_normal((100, d)) + 2.0 * y[:, None]
    model = ImplicitlyConstrainedLDA(n_starts=2).fit(X, y, X_unlabeled=rows)
    # The sample of the search, that of the frame, and one result a pass: sums, and in passes of the
    # search no more rows near boundaries than the sample has.
    assert max(received) < 1.01 * 20_000 * (d + 1) * 8
    assert model.n_passes_ <= len(received) - 2 <= model.n_passes_ + 2
    assert sum(size < 3 * 8 * (d + 1) ** 2 for size in received) >= 2  # moments, certificate


def assert_nothing_is_kept(client):
    deadline = time.monotonic() + 5
    while any(client.has_what().values()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.05)
    assert not any(client.has_what().values())


def test_workers_keep_nothing_after_a_fit_that_failed(client):
    with pytest.raises(ValueError, match="block 4 contains NaN"):
        fit(in_blocks(with_entry(np.nan)), MomentConstrainedLDA)
    assert_nothing_is_kept(client)


def test_blocks_that_the_workers_lost_are_read_again(client):
    source = from_dask(in_blocks(ROWS))
    model = fit(source, MomentConstrainedLDA)
    client.restart()
    assert_array_equal(fit(source, MomentConstrainedLDA).coef_, model.coef_)


def test_49_a_worker_that_hangs_ends_in_an_error_within_the_timeout(client):
    source = from_dask(in_blocks(ROWS), timeout=3.0)
    fit(source)
    pid = pids_of(client.cluster)[0]
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    try:
        with pytest.raises(TimeoutError, match=r"finished for 3 seconds.*X_unlabeled, block"):
            fit(source)
        assert time.monotonic() - begin < 10
    finally:
        os.kill(pid, signal.SIGCONT)
    client.wait_for_workers(2, timeout=30)
    assert_same_fit(fit(source), fit(ROWS))


def test_a_loader_that_fails_is_tried_again(client, tmp_path):
    def fails_once():
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            raise OSError("no answer")
        return np.ones((100, N_FEATURES))

    blocks = [*loaders(ROWS), fails_once]
    with pytest.raises(RuntimeError, match=r"X_unlabeled, block 6 .*OSError: no answer"):
        fit(from_dask(blocks, retries=0), MomentConstrainedLDA)
    (tmp_path / "tried").unlink()
    assert np.isfinite(fit(from_dask(blocks, retries=1), MomentConstrainedLDA).coef_).all()


def test_an_error_of_the_users_own_tasks_names_the_block(client):
    def fails_in_block_2(rows, block_id):
        if block_id[0] == 2:
            raise OSError("gone")
        return rows

    rows = in_blocks(ROWS).map_blocks(fails_in_block_2, dtype=float)
    with pytest.raises(RuntimeError, match=r"block 2 could not .* 1 retries: OSError: gone"):
        fit(from_dask(rows, retries=1))


def test_a_loader_that_the_workers_cannot_import_is_named(client, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def read():\n    raise AssertionError\n")
    monkeypatch.syspath_prepend(tmp_path)
    read = importlib.import_module("only_here").read
    expected = "X_unlabeled, block 0 could not be read: .*only_here.*client.upload_file"
    with pytest.raises(RuntimeError, match=expected):
        fit(from_dask([read], retries=0), MomentConstrainedLDA)


def test_a_block_that_kills_its_workers_is_named(client):
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    blocks = [*loaders(ROWS, 1), lambda: os._exit(1)]
    with pytest.raises(RuntimeError, match=r"X_unlabeled, block \d .*KilledWorker"):
        fit(from_dask(blocks))
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    client.wait_for_workers(2, timeout=30)


def test_a_client_that_is_asynchronous_is_refused(client):
    source = from_dask(in_blocks(ROWS), client=type("", (), {"asynchronous": True}))
    with pytest.raises(TypeError, match="asynchronous=False"):
        fit(source)


def test_weights_of_many_rows_travel_without_a_warning(client):
    X = np.random.default_rng(0).standard_normal((1_500_000, 1), dtype=np.float32)
    y = np.where(np.arange(len(X)) < 20, X[:, 0] > 0, -1)
    weights = 1.0 + np.arange(len(X)) % 3
    rows = dask.array.from_array(X, chunks=(750_000, 1)).persist()
    model = MomentConstrainedLDA().fit(rows, y, weights)
    assert_same_fit(model, MomentConstrainedLDA().fit(X, y, weights))


def test_progress_counts_the_rows_of_every_pass(client):
    heard = []
    with progress(lambda *counts: heard.append(counts)):
        model = fit(in_blocks(ROWS))
    passes = list(dict.fromkeys(n_pass for n_pass, _, _ in heard))
    assert passes == list(range(model.n_passes_ + 1))  # 0: the look at the blocks
    of_last = [(n_done, n_all) for n_pass, n_done, n_all in heard if n_pass == passes[-1]]
    assert of_last == [(5_000 * (i + 1), N_ROWS) for i in range(N_BLOCKS)]
