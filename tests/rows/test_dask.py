"""Rows on a cluster: two worker processes, of which some are killed or stopped."""

import gc
import logging
import os
import pickle
import signal
import sys
import threading
import time
from functools import partial
from importlib import import_module
from itertools import pairwise

import dask.array
import dask.dataframe
import numpy as np
import pandas
import psutil
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info

from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA
from iclda._rows.dask import DaskRows
from iclda.rows import from_dask, progress
from problems import SEMI_SUPERVISED, draw_sample

N_ROWS, N_FEATURES, N_BLOCKS = 30_000, 4, 6
SAMPLE = draw_sample(
    5, n_classes=2, n_features=N_FEATURES, n_labeled=80, n_unlabeled=N_ROWS, separation=2.0
)
FITTED = ["priors_", "means_", "covariance_", "coef_", "intercept_"]


@pytest.fixture(scope="module")
def client():
    """Two worker processes; once the tests are done nothing of them is left."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit="1 GiB",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        with Client(cluster) as client:
            yield client
        pids = pids_of(cluster)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def pids_of(cluster):
    return [nanny.process.pid for nanny in cluster.workers.values() if nanny.process]


def workers_back(client, n_workers=2):
    client.wait_for_workers(n_workers, timeout=30)


def in_blocks(X, n_blocks=N_BLOCKS):
    return dask.array.from_array(X, chunks=(-(-len(X) // n_blocks), -1))


def loaders(X, n_blocks=N_BLOCKS):
    """Blocks that their loaders cut from X, which travels with them."""
    cuts = np.linspace(0, len(X), n_blocks + 1).astype(int)
    return [partial(np.array, X[begin:end]) for begin, end in pairwise(cuts)]


def fit(X_unlabeled, method=ImplicitlyConstrainedLDA, **settings):
    return method(**settings).fit(SAMPLE.X, SAMPLE.y, X_unlabeled=X_unlabeled)


def assert_same_fit(model, expected, tol):
    for name in FITTED:
        found, wanted = getattr(model, name), getattr(expected, name)
        assert_allclose(found, wanted, rtol=tol, atol=tol * np.abs(wanted).max())


@pytest.mark.parametrize("method", SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED)
def test_a_fit_on_the_cluster_is_the_fit_in_memory(client, method):
    model = fit(in_blocks(SAMPLE.X_unlabeled), method)
    expected = fit(SAMPLE.X_unlabeled, method)
    assert_same_fit(model, expected, 1e-9)
    if hasattr(expected, "objective_"):
        assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
        assert model.n_passes_ == expected.n_passes_


@pytest.mark.parametrize("persist", [None, True, False])
def test_loaders_give_the_same_fit_kept_on_the_workers_or_read_again(client, persist):
    source = from_dask(loaders(SAMPLE.X_unlabeled), persist=persist)
    model, expected = fit(source), fit(SAMPLE.X_unlabeled)
    assert model.converged_
    assert_allclose(model.objective_, expected.objective_, atol=2e-6)  # twice the gap
    assert_array_equal(fit(source).coef_, model.coef_)


def test_delayed_objects_are_loaders_too(client):
    blocks = [delayed(load)() for load in loaders(SAMPLE.X_unlabeled)]
    assert_same_fit(fit(from_dask(blocks)), fit(SAMPLE.X_unlabeled), 1e-9)


def test_a_fit_is_the_same_to_the_bit_on_one_worker_and_on_two(client):
    rows = in_blocks(SAMPLE.X_unlabeled)
    one = next(iter(client.nthreads()))
    with dask.annotate(workers=[one], allow_other_workers=False):
        alone = fit(rows)
    assert_array_equal(alone.coef_, fit(rows).coef_)


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, monkeypatch):
    def slowly(rows):
        time.sleep(0.05)
        return rows

    rows = in_blocks(SAMPLE.X_unlabeled).map_blocks(slowly, dtype=float)
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
    workers_back(client)
    assert killed
    assert killed[0] not in pids_of(client.cluster)
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
    forget_peak()
    before = peak_memory()
    model = ImplicitlyConstrainedLDA(n_starts=2).fit(X, y, X_unlabeled=rows)
    assert peak_memory() - before < 0.5 * rows.nbytes
    # The sample of the search, that of the frame, and one result a pass: sums.
    sample, pilot, *sums = sorted(received, reverse=True)
    assert sample < 1.01 * 20_000 * (d + 1) * 8
    assert pilot < 1.01 * 4_096 * (d + 1) * 8
    assert model.n_passes_ <= len(sums) <= model.n_passes_ + 2
    assert max(sums) < 3 * 8 * (d + 1) ** 2


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_memory():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def test_workers_keep_nothing_after_a_fit(client):
    fit(in_blocks(SAMPLE.X_unlabeled))
    gc.collect()
    deadline = time.monotonic() + 5
    while any(client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.has_what().values())


def test_a_worker_that_hangs_ends_in_an_error_within_the_timeout(client):
    source = from_dask(in_blocks(SAMPLE.X_unlabeled), timeout=1.5)
    fit(source)
    pid = pids_of(client.cluster)[0]
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    try:
        with pytest.raises(TimeoutError, match=r"finished for 1\.5 seconds.*X_unlabeled, block"):
            fit(source)
        assert time.monotonic() - begin < 10
    finally:
        os.kill(pid, signal.SIGCONT)
    workers_back(client)
    assert_same_fit(fit(source), fit(SAMPLE.X_unlabeled), 1e-9)


def test_a_loader_that_fails_is_tried_again(client, tmp_path):
    def fails_once():
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            raise OSError("no answer")
        return np.ones((100, N_FEATURES))

    blocks = [*loaders(SAMPLE.X_unlabeled), fails_once]
    with pytest.raises(RuntimeError, match=r"X_unlabeled, block 6 .*OSError: no answer"):
        fit(from_dask(blocks, retries=0), MomentConstrainedLDA)
    (tmp_path / "tried").unlink()
    assert np.isfinite(fit(from_dask(blocks, retries=1), MomentConstrainedLDA).coef_).all()


def test_an_error_of_the_users_own_tasks_names_the_block(client):
    def fails_in_block_2(rows, block_id):
        if block_id[0] == 2:
            raise OSError("gone")
        return rows

    rows = in_blocks(SAMPLE.X_unlabeled).map_blocks(fails_in_block_2, dtype=float)
    with pytest.raises(RuntimeError, match=r"block 2 could not .* 1 retries: OSError: gone"):
        fit(from_dask(rows, retries=1))


def test_a_block_that_kills_its_workers_is_named(client):
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    blocks = [*loaders(SAMPLE.X_unlabeled, 1), lambda: os._exit(1)]
    with pytest.raises(RuntimeError, match=r"X_unlabeled, block \d .*every worker that tried died"):
        fit(from_dask(blocks))
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    workers_back(client)


def test_a_client_that_is_asynchronous_is_refused(client):
    source = from_dask(in_blocks(SAMPLE.X_unlabeled), client=type("", (), {"asynchronous": True}))
    with pytest.raises(TypeError, match="asynchronous=False"):
        fit(source)


def test_weights_of_many_rows_travel_without_a_warning(client):
    X = np.random.default_rng(0).standard_normal((1_500_000, 1), dtype=np.float32)
    y = np.where(np.arange(len(X)) < 20, X[:, 0] > 0, -1)
    weights = 1.0 + np.arange(len(X)) % 3
    rows = dask.array.from_array(X, chunks=(750_000, 1)).persist()
    model = MomentConstrainedLDA().fit(rows, y, weights)
    assert_same_fit(model, MomentConstrainedLDA().fit(X, y, weights), 1e-9)


def test_progress_counts_the_rows_of_every_pass(client):
    heard = []
    with progress(lambda *counts: heard.append(counts)):
        fit(in_blocks(SAMPLE.X_unlabeled))
    passes = sorted({n_pass for n_pass, _, _ in heard})
    assert passes == list(range(1, len(passes) + 1))
    of_last = [(n_done, n_all) for n_pass, n_done, n_all in heard if n_pass == passes[-1]]
    assert of_last == [(5_000 * (i + 1), N_ROWS) for i in range(N_BLOCKS)]


# From here on Dask runs in this process: what a block may hold does not depend on who reads it.


@pytest.fixture
def no_client(monkeypatch):
    with dask.config.set(scheduler="threads"):
        yield


def test_without_a_client_dask_reads_in_this_process(no_client):
    before = threadpool_info()
    model, expected = fit(in_blocks(SAMPLE.X_unlabeled)), fit(SAMPLE.X_unlabeled)
    assert_allclose(model.objective_, expected.objective_, atol=2e-6)  # twice the gap
    assert threadpool_info() == before


def test_rows_of_unknown_number_are_counted(no_client):
    rows = in_blocks(SAMPLE.X_unlabeled)
    some = rows[rows[:, 0] > 0]
    assert np.isnan(some.shape[0])
    expected = fit(SAMPLE.X_unlabeled[SAMPLE.X_unlabeled[:, 0] > 0], MomentConstrainedLDA)
    assert_same_fit(fit(some, MomentConstrainedLDA), expected, 1e-9)


def test_an_array_cut_along_its_columns_is_refused_with_the_way_out(no_client):
    rows = dask.array.from_array(SAMPLE.X_unlabeled, chunks=(5_000, 3))
    with pytest.raises(ValueError, match=r"cut along its columns, into \(3, 1\)"):
        fit(rows)
    assert np.isfinite(fit(rows.rechunk({1: -1}), MomentConstrainedLDA).coef_).all()


REFUSED = {
    "one dimension": (lambda X: X[:, 0], r"2-d, rows x features, got shape \(30000,\)"),
    "another width": (lambda X: X[:, :3], "X_unlabeled has 3 features, but X of fit has 4"),
    "complex numbers": (lambda X: X + 1j, "real numbers, got an array of complex128"),
    "unknown width": (lambda X: X.T[X[0] > 0].T, "unknown number of columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_no_rows_are_refused_before_they_are_read(no_client, name):
    change, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        fit(change(in_blocks(SAMPLE.X_unlabeled)))


def with_entry(value):
    X = SAMPLE.X_unlabeled.copy()
    X[20_001, 2] = value
    return X


BAD_BLOCKS = {
    "NaN": (with_entry(np.nan)[20_000:], "block 1 contains NaN, first in its row 1, column 2"),
    "infinity": (with_entry(np.inf)[20_000:], "block 1 contains infinity, .* row 1, column 2"),
    "another width": (SAMPLE.X[:, :3], "block 1 has 3 columns, but X of fit has 4"),
    "another dtype": (
        SAMPLE.X.astype("f4"),
        "block 1 has 4 columns of float32, and block 0 .* float64",
    ),
    "text": (SAMPLE.X.astype(str), "block 1 holds <U32: every column must hold real numbers"),
    "a mixture": (
        pandas.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0], "d": [3.0]}),
        "block 1 holds object, first in column 1",
    ),
    "one dimension": (SAMPLE.X[0], r"block 1 must be 2-d, rows x 4 features, got shape \(4,\)"),
}


@pytest.mark.parametrize("name", BAD_BLOCKS)
def test_a_bad_block_is_named(no_client, name):
    block, message = BAD_BLOCKS[name]
    with pytest.raises(ValueError, match=f"X_unlabeled, {message}"):
        fit(from_dask([lambda: SAMPLE.X_unlabeled, lambda: block]), MomentConstrainedLDA)


def test_nan_on_the_cluster_names_block_row_and_column(client):
    with pytest.raises(ValueError, match=r"X_unlabeled, block 4 contains NaN, .* row 1, column 2"):
        fit(in_blocks(with_entry(np.nan)), MomentConstrainedLDA)


def test_a_block_that_changes_between_passes_is_named(no_client):
    reads = []

    def changes():
        reads.append(1)
        return SAMPLE.X_unlabeled[: 300 - len(reads)]

    source = from_dask([lambda: SAMPLE.X_unlabeled, changes])
    with pytest.raises(ValueError, match=r"block 1 has changed .* 299 rows .* now 298"):
        fit(source, MomentConstrainedLDA)


def test_a_block_with_other_numbers_in_the_next_pass_is_named(no_client):
    reads = []

    def changes():
        reads.append(1)
        return SAMPLE.X_unlabeled[:300] * len(reads)

    with pytest.raises(ValueError, match=r"block 0 has changed .* some of its rows are others"):
        fit(from_dask([changes]), MomentConstrainedLDA)


def test_a_source_that_can_be_read_only_once_is_named(no_client):
    once = iter([SAMPLE.X_unlabeled])
    with pytest.raises(RuntimeError, match="X_unlabeled, block 0 could not be read: StopIteration"):
        fit(from_dask([lambda: next(once)]), MomentConstrainedLDA)


def test_empty_blocks_are_skipped(no_client):
    X = SAMPLE.X_unlabeled
    blocks = [list, lambda: X[:500], lambda: X[:0], lambda: X[500:900]]
    assert_same_fit(
        fit(from_dask(blocks), MomentConstrainedLDA), fit(X[:900], MomentConstrainedLDA), 1e-9
    )
    with pytest.raises(ValueError, match="X has no rows in any of its 2 blocks"):
        MomentConstrainedLDA().fit(from_dask([list, list]), SAMPLE.y)


def frame_of(X, names="abcd"):
    return pandas.DataFrame(X, columns=list(names))


def test_the_columns_of_a_dataframe_are_those_of_the_fit(no_client):
    frame = dask.dataframe.from_pandas(frame_of(SAMPLE.X_unlabeled), npartitions=3)
    model = MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=frame)
    assert_same_fit(model, fit(SAMPLE.X_unlabeled, MomentConstrainedLDA), 1e-9)
    for other in (frame[list("abdc")], frame.rename(columns={"c": "d", "d": "c"})):
        with pytest.raises(ValueError, match="column 2 of X_unlabeled is 'd', and was 'c'"):
            MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=other)
        with pytest.raises(ValueError, match="column 2 of X is 'd', and was 'c'"):
            model.predict(other)
    assert_array_equal(model.predict(frame), model.predict(frame_of(SAMPLE.X_unlabeled)))


def test_names_of_a_dataframe_become_those_of_the_features(no_client):
    rows = dask.dataframe.from_pandas(frame_of(SAMPLE.X_unlabeled[:60]), npartitions=3)
    y = np.where(np.arange(60) < 30, SAMPLE.X_unlabeled[:60, 0] > 0, -1)
    assert MomentConstrainedLDA().fit(rows, y).feature_names_in_.tolist() == list("abcd")


def test_a_missing_value_of_a_nullable_column_is_named(no_client):
    frame = frame_of(SAMPLE.X_unlabeled[:50]).astype("Float64")
    frame.loc[41, "b"] = pandas.NA
    rows = dask.dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="block 1 contains NaN, first in its row 16, column 'b'"):
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=rows)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_for_a_dask_array_are_lazy_with_chunks_dtype_and_meta(no_client, n_classes):
    sample = draw_sample(n_classes, n_classes=n_classes, n_features=3, n_unlabeled=100)
    model = MomentConstrainedLDA().fit(
        sample.X, np.array(["a", "bc", "d"])[sample.y], X_unlabeled=sample.X_unlabeled
    )
    reads = []
    rows = dask.array.from_array(sample.X_unlabeled, chunks=(40, 3))
    counted = rows.map_blocks(lambda block: (reads.append(1), block)[1], meta=np.empty((0, 0)))
    for method in ["predict", "predict_proba", "decision_function", "transform", "score_samples"]:
        found, expected = getattr(model, method)(counted), getattr(model, method)(rows.compute())
        assert not reads
        assert isinstance(found, dask.array.Array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.chunks[0] == (40, 40, 20)
        assert (type(found._meta), found._meta.ndim) == (np.ndarray, expected.ndim)
        assert found._meta.dtype == expected.dtype
        assert_array_equal(found.compute(), expected)
        reads.clear()


def test_a_bad_block_is_named_when_lazy_results_are_computed(no_client):
    model = fit(SAMPLE.X_unlabeled, MomentConstrainedLDA)
    with pytest.raises(ValueError, match="X, block 4 contains NaN, first in its row 1, column 2"):
        model.predict(in_blocks(with_entry(np.nan))).compute()
    with pytest.raises(ValueError, match="X has 3 features, but X of fit has 4"):
        model.predict(in_blocks(SAMPLE.X_unlabeled)[:, :3])


def test_lazy_results_carry_nothing_of_the_fitted_rows(client):
    model = fit(SAMPLE.X_unlabeled)
    assert model.responsibilities_.nbytes > 400_000
    graph = dict(model.predict_proba(in_blocks(SAMPLE.X[:6])).__dask_graph__())
    import cloudpickle

    assert len(cloudpickle.dumps(graph)) < 100_000


BAD_SETTINGS = {
    "no source": ((3,), {}, TypeError, "Dask array, a Dask dataframe, .* got int"),
    "a single delayed": ((delayed(np.zeros)((3, 4)),), {}, TypeError, "list of loaders, got Delay"),
    "no loaders": (([],), {}, ValueError, "empty list: pass one loader for every block"),
    "no callable": (([list, 3],), {}, TypeError, r"source\[1\] must be a function .* got int"),
    "retries": (([list],), {"retries": -1}, ValueError, "0 or more, got -1"),
    "timeout": (([list],), {"timeout": 0}, ValueError, "positive number of seconds, .* got 0"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_refused_at_once(name):
    sources, settings, error, message = BAD_SETTINGS[name]
    with pytest.raises(error, match=message):
        from_dask(*sources, **settings)


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "iclda._rows.dask")
    monkeypatch.setitem(sys.modules, "dask.delayed", None)
    with pytest.raises(ImportError, match=r"iclda\[dask\]"):
        import_module("iclda._rows.dask")
