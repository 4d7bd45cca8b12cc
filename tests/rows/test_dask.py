"""Rows on a cluster, whose workers are killed or stopped; blocks; lazy results."""

import gc
import os
import pickle
import signal
import sys
import time
from functools import partial
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pandas
import psutil
import pytest
from numpy.testing import assert_allclose, assert_array_equal

for package in ("distributed", "polars", "pyarrow"):
    pytest.importorskip(package)

import dask.array
import dask.dataframe
from dask.delayed import delayed
from distributed import Client

from iclda import ColumnError, ImplicitlyConstrainedLDA, MomentConstrainedLDA
from iclda._rows import dask_workers
from iclda.rows import from_dask, progress
from tests.helpers.changes import assert_same_fit
from tests.helpers.dask_blocks import (
    N_BLOCKS,
    N_FEATURES,
    N_ROWS,
    OPERATIONS,
    ROWS,
    SAMPLE,
    fit,
    frame_of,
    in_blocks,
    read_by,
    stored_frame,
    two_workers,
    with_entry,
)
from tests.helpers.problems import FAMILY, draw_sample

# Blocks and lazy results: Dask runs in this process, without a cluster.


def test_rows_of_unknown_number_are_counted():
    rows = in_blocks(ROWS)
    some = rows[rows[:, 0] > 0]
    assert np.isnan(some.shape[0])
    expected = fit(ROWS[ROWS[:, 0] > 0], MomentConstrainedLDA)
    assert_same_fit(fit(some, MomentConstrainedLDA), expected)


def test_an_array_cut_along_its_columns_is_put_together():
    rows = dask.array.from_array(ROWS, chunks=(5_000, 3))
    model = fit(rows, MomentConstrainedLDA)
    expected = fit(ROWS, MomentConstrainedLDA)
    assert_same_fit(model, expected)
    assert_array_equal(model.predict(rows), expected.predict(ROWS))


REFUSED = {
    "one dimension": (lambda X: X[:, 0], r"2-d, rows x features, got shape \(30000,\)"),
    "another width": (
        lambda X: X[:, :3],
        "X_unlabeled has 3 features, but X of fit has 4",
    ),
    "complex numbers": (lambda X: X + 1j, r"block \d holds complex128, and must hold"),
    "unknown width": (
        lambda X: X.T[X[0] > 0].T,
        "has nan features, but X of fit has 4",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_no_rows_are_refused(name):
    change, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        fit(change(in_blocks(ROWS)))


BAD_BLOCKS = {
    "NaN": (
        with_entry(np.nan)[20_000:],
        "block 1 contains NaN, first in row 1, column 2",
    ),
    "infinity": (
        with_entry(np.inf)[20_000:],
        "block 1 contains infinity, .* row 1, column 2",
    ),
    "another width": (SAMPLE.X[:, :3], "block 1 has 3 columns, but X of fit has 4"),
    "text": (SAMPLE.X.astype(str), "block 1 holds <U32, and must hold real numbers"),
    "a mixture": (
        pandas.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0], "d": [3.0]}),
        "block 1 holds object, and must hold real numbers",
    ),
    "one dimension": (
        SAMPLE.X[0],
        r"block 1 must be 2-d, rows x features, got shape \(4,\)",
    ),
}


@pytest.mark.parametrize("name", BAD_BLOCKS)
def test_37_a_bad_block_is_named(name):
    block, message = BAD_BLOCKS[name]
    with pytest.raises(ValueError, match=f"X_unlabeled, {message}"):
        fit(read_by([lambda: ROWS, lambda: block]), MomentConstrainedLDA)


def test_36_a_block_that_changes_between_passes_is_named():
    reads = []

    def changes():
        reads.append(1)
        return ROWS[: 300 - len(reads)]

    source = read_by([lambda: ROWS, changes])
    with pytest.raises(
        ValueError, match=r"block 1 changed .* it has 298 rows, and had 299"
    ):
        fit(source, MomentConstrainedLDA)


def test_37_empty_blocks_are_skipped():
    X = ROWS
    blocks = [list, lambda: X[:500], lambda: X[:0], lambda: X[500:900]]
    assert_same_fit(
        fit(read_by(blocks), MomentConstrainedLDA), fit(X[:900], MomentConstrainedLDA)
    )
    y = np.where(np.arange(len(X)) < 50, np.arange(len(X)) % 2, -1)
    found = MomentConstrainedLDA().fit(read_by([list, lambda: X]), y)
    assert_same_fit(found, MomentConstrainedLDA().fit(X, y), tol=1e-6)


def test_the_columns_of_a_dataframe_are_those_of_the_fit():
    frame = dask.dataframe.from_pandas(frame_of(ROWS), npartitions=3)
    model = MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=frame)
    assert_same_fit(model, fit(ROWS, MomentConstrainedLDA))
    for other in (frame[list("abdc")], frame.rename(columns={"c": "d", "d": "c"})):
        with pytest.raises(
            ValueError, match="column 2 of X_unlabeled is 'd', and was 'c'"
        ):
            MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=other)
        with pytest.raises(ValueError, match="column 2 of X is 'd', and was 'c'"):
            model.predict(other)
    assert_array_equal(model.predict(frame), model.predict(frame_of(ROWS)))


# Dask reads Parquet in a way that pandas 3.1 gives up.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
# Operations leave other rows at the beginning, which is labeled, than after it.
@pytest.mark.filterwarnings("ignore:The unlabeled rows seem to come from elsewhere")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_dataframe_with_operations_on_it_is_fitted_to_their_result(name, tmp_path):
    frame = OPERATIONS[name](stored_frame(tmp_path))
    expected = frame.compute()
    labeled = frame_of(SAMPLE.X)
    model = MomentConstrainedLDA().fit(labeled, SAMPLE.y, X_unlabeled=frame)
    wanted = MomentConstrainedLDA().fit(labeled, SAMPLE.y, X_unlabeled=expected)
    assert_same_fit(model, wanted)
    y = np.where(
        np.arange(len(expected)) < 99, expected["b"] > expected["b"].median(), -1
    )
    assert_same_fit(
        MomentConstrainedLDA().fit(frame, y), MomentConstrainedLDA().fit(expected, y)
    )
    assert_array_equal(model.predict(frame), model.predict(expected))


def test_a_missing_value_of_a_nullable_column_is_named():
    frame = frame_of(ROWS[:50]).astype("Float64")
    frame.loc[41, "b"] = pandas.NA
    rows = dask.dataframe.from_pandas(frame, npartitions=2)
    expected = "block 1 contains NaN, first in row 16, column 'b'"
    with pytest.raises(ColumnError, match=expected) as raised:
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=rows)
    assert raised.value.column == "b"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_for_a_dask_array_are_lazy_with_chunks_dtype_and_meta(n_classes):
    sample = draw_sample(n_classes, n_classes=n_classes, n_features=3, n_unlabeled=100)
    model = MomentConstrainedLDA().fit(
        sample.X, np.array(["a", "bc", "d"])[sample.y], X_unlabeled=sample.X_unlabeled
    )
    reads = []
    rows = dask.array.from_array(sample.X_unlabeled, chunks=(40, 3))
    counted = rows.map_blocks(
        lambda block: (reads.append(1), block)[1], meta=np.empty((0, 0))
    )
    for method in [
        "predict",
        "predict_proba",
        "decision_function",
        "transform",
        "score_samples",
    ]:
        found = getattr(model, method)(counted)
        expected = getattr(model, method)(rows.compute())
        assert not reads
        assert isinstance(found, dask.array.Array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.chunks[0] == (40, 40, 20)
        assert (type(found._meta), found._meta.ndim) == (np.ndarray, expected.ndim)
        assert found._meta.dtype == expected.dtype
        assert_array_equal(found.compute(), expected)
        reads.clear()


def test_a_bad_block_is_named_when_lazy_results_are_computed():
    model = fit(ROWS, MomentConstrainedLDA)
    with pytest.raises(
        ValueError, match="X, block 4 contains NaN, first in row 1, column 2"
    ):
        model.predict(in_blocks(with_entry(np.nan))).compute()
    with pytest.raises(ValueError, match="X has 3 features, but X of fit has 4"):
        model.predict(in_blocks(ROWS)[:, :3])


def test_lazy_results_carry_nothing_of_the_fitted_rows():
    model = fit(ROWS)
    assert model.responsibilities_.nbytes > 400_000
    graph = dict(model.predict_proba(in_blocks(SAMPLE.X[:6])).__dask_graph__())
    assert len(cloudpickle.dumps(graph)) < 100_000


NO_SOURCES = {
    "a number": 3,
    "a single delayed": delayed(np.zeros)((3, 4)),
    "functions": [list],
}
BAD_SETTINGS = {
    **{
        name: (
            source,
            {},
            TypeError,
            f"Dask array or .*got {type(source).__name__}.*from_map",
        )
        for name, source in NO_SOURCES.items()
    },
    "retries": (
        in_blocks(ROWS),
        {"retries": -1},
        ValueError,
        "retries == -1, must be >= 0",
    ),
    "timeout": (
        in_blocks(ROWS),
        {"timeout": 0},
        ValueError,
        "timeout == 0, must be > 0",
    ),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_refused_at_once(name):
    source, settings, error, message = BAD_SETTINGS[name]
    with pytest.raises(error, match=message):
        from_dask(source, **settings)


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.delayed", None)
    with pytest.raises(ImportError, match=r"dask is needed for .*iclda\[dask\]"):
        from_dask(in_blocks(ROWS))


# A cluster.


@pytest.fixture(scope="module")
def client():
    """Two worker processes; once the tests are done nothing of them is left."""
    with two_workers("1 GiB") as cluster:
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


@pytest.mark.parametrize("share_of_memory", [0.5, 0.0])
def test_blocks_give_the_same_fit_kept_on_the_workers_or_read_again(
    client, share_of_memory, monkeypatch
):
    monkeypatch.setattr(dask_workers, "_SHARE_OF_MEMORY", share_of_memory)
    parts = np.array_split(ROWS, N_BLOCKS)
    source = from_dask(read_by([partial(np.array, part) for part in parts]))
    model = fit(source)
    assert model.converged_
    # The difference is at most twice the gap.
    assert_allclose(model.objective_, fit(ROWS).objective_, atol=2e-6)
    assert_array_equal(fit(source).coef_, model.coef_)


def test_an_array_that_the_user_persisted_is_not_kept_twice(client):
    rows = in_blocks(ROWS).persist()
    n_bytes = []

    def weigh(*counts):
        held = client.run(lambda dask_worker: dask_worker.state.nbytes)
        n_bytes.append(sum(held.values()))

    with progress(weigh):
        model = fit(rows, MomentConstrainedLDA)
    assert_same_fit(model, fit(ROWS, MomentConstrainedLDA))
    assert max(n_bytes) < 1.5 * ROWS.nbytes


def test_48_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client):
    def slowly(rows):
        time.sleep(0.05)
        return rows

    rows = in_blocks(ROWS).map_blocks(slowly, dtype=float)
    expected = fit(rows)
    killed = []

    def kill_in_the_second_pass(n_pass, n_done, n_all):
        if n_pass > 1 and not killed:
            killed.append(pids_of(client.cluster)[0])
            os.kill(killed[0], signal.SIGKILL)

    with progress(kill_in_the_second_pass):
        model = fit(rows)
    client.wait_for_workers(2)
    assert killed
    assert killed[0] not in pids_of(client.cluster)
    assert_same_fit(model, expected, 0)


def test_rows_stay_on_the_workers(client, monkeypatch):
    n_rows = 400_000
    d = 40
    noise = dask.array.random.default_rng(3).standard_normal(
        (n_rows, d), chunks=(n_rows // 4, d)
    )
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
    # The sample of the search, that of the frame, and one result a pass: sums, and in
    # passes of the search no more rows near boundaries than the sample has.
    assert max(received) < 1.01 * 20_000 * (d + 1) * 8
    assert model.n_passes_ <= len(received) - 2 <= model.n_passes_ + 2
    # The moments and the certificate are small.
    assert sum(size < 3 * 8 * (d + 1) ** 2 for size in received) >= 2


def assert_nothing_is_kept(client):
    # If something stays, pytest ends this test.
    while any(client.has_what().values()):
        gc.collect()
        time.sleep(0.05)


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
    rows = in_blocks(ROWS)
    expected = fit(from_dask(rows))
    pid = pids_of(client.cluster)[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(
            TimeoutError, match=r"finished for 3 seconds.*X_unlabeled, block"
        ):
            fit(from_dask(rows, timeout=3.0))
    finally:
        os.kill(pid, signal.SIGCONT)
    client.wait_for_workers(2)
    assert_same_fit(fit(from_dask(rows)), expected)


def test_a_block_that_fails_is_tried_again(client, tmp_path):
    def fails_once():
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            raise OSError("no answer")
        return np.ones((100, N_FEATURES))

    blocks = read_by([lambda: ROWS, fails_once])
    with pytest.raises(
        RuntimeError, match=r"X_unlabeled, block \d .*OSError: no answer"
    ):
        fit(from_dask(blocks, retries=0), MomentConstrainedLDA)
    (tmp_path / "tried").unlink()
    assert np.isfinite(
        fit(from_dask(blocks, retries=1), MomentConstrainedLDA).coef_
    ).all()


@pytest.mark.parametrize("client", ["x", SimpleNamespace(asynchronous=True)])
def test_what_is_no_client_that_waits_is_refused(client):
    with pytest.raises(
        TypeError, match=r"client must be .*Client that .*asynchronous=False"
    ):
        fit(from_dask(in_blocks(ROWS), client=client))


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
    # Pass 0 is the first look at the blocks.
    assert passes == list(range(model.n_passes_ + 1))
    of_last = [
        (n_done, n_all) for n_pass, n_done, n_all in heard if n_pass == passes[-1]
    ]
    assert of_last == [(5_000 * (i + 1), N_ROWS) for i in range(N_BLOCKS)]
