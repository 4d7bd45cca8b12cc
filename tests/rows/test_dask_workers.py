"""What a block of Dask may hold, and lazy results: Dask runs in this process, without a cluster."""

import sys
from importlib import import_module

import cloudpickle
import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

for package in ("dask", "polars", "pyarrow"):
    pytest.importorskip(package)

import dask.array
import dask.dataframe
import polars
import pyarrow
from dask.delayed import delayed

from dask_blocks import (
    OPERATIONS,
    ROWS,
    SAMPLE,
    assert_same_fit,
    fit,
    frame_of,
    in_blocks,
    stored_frame,
    with_entry,
)
from iclda import ColumnError, MomentConstrainedLDA
from iclda.rows import from_dask
from problems import draw_sample


def test_without_a_client_dask_reads_in_this_process():
    model, expected = fit(in_blocks(ROWS)), fit(ROWS)
    assert_allclose(model.objective_, expected.objective_, atol=2e-6)  # twice the gap


def test_rows_of_unknown_number_are_counted():
    rows = in_blocks(ROWS)
    some = rows[rows[:, 0] > 0]
    assert np.isnan(some.shape[0])
    expected = fit(ROWS[ROWS[:, 0] > 0], MomentConstrainedLDA)
    assert_same_fit(fit(some, MomentConstrainedLDA), expected)


def test_an_array_cut_along_its_columns_is_put_together():
    rows = dask.array.from_array(ROWS, chunks=(5_000, 3))
    model, expected = fit(rows, MomentConstrainedLDA), fit(ROWS, MomentConstrainedLDA)
    assert_same_fit(model, expected)
    assert_array_equal(model.predict(rows), expected.predict(ROWS))


REFUSED = {
    "one dimension": (lambda X: X[:, 0], r"2-d, rows x features, got shape \(30000,\)"),
    "another width": (lambda X: X[:, :3], "X_unlabeled has 3 features, but X of fit has 4"),
    "complex numbers": (lambda X: X + 1j, r"block \d holds complex128: every column"),
    "unknown width": (lambda X: X.T[X[0] > 0].T, "has nan features, but X of fit has 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_no_rows_are_refused(name):
    change, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        fit(change(in_blocks(ROWS)))


BAD_BLOCKS = {
    "NaN": (with_entry(np.nan)[20_000:], "block 1 contains NaN, first in row 1, column 2"),
    "infinity": (with_entry(np.inf)[20_000:], "block 1 contains infinity, .* row 1, column 2"),
    "another width": (SAMPLE.X[:, :3], "block 1 has 3 columns, but X of fit has 4"),
    "text": (SAMPLE.X.astype(str), "block 1 holds <U32: every column must hold real numbers"),
    "a mixture": (
        pandas.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0], "d": [3.0]}),
        "block 1 holds object: every column must hold real numbers",
    ),
    "one dimension": (SAMPLE.X[0], r"block 1 must be 2-d, rows x features, got shape \(4,\)"),
}


@pytest.mark.parametrize("name", BAD_BLOCKS)
def test_37_a_bad_block_is_named(name):
    block, message = BAD_BLOCKS[name]
    with pytest.raises(ValueError, match=f"X_unlabeled, {message}"):
        fit(from_dask([lambda: ROWS, lambda: block]), MomentConstrainedLDA)


def test_36_a_block_that_changes_between_passes_is_named():
    reads = []

    def changes():
        reads.append(1)
        return ROWS[: 300 - len(reads)]

    source = from_dask([lambda: ROWS, changes])
    with pytest.raises(ValueError, match=r"block 1 changed .* it has 298 rows, and had 299"):
        fit(source, MomentConstrainedLDA)


def test_37_empty_blocks_are_skipped():
    X = ROWS
    blocks = [list, lambda: X[:500], lambda: X[:0], lambda: X[500:900]]
    assert_same_fit(
        fit(from_dask(blocks), MomentConstrainedLDA), fit(X[:900], MomentConstrainedLDA)
    )
    y = np.where(np.arange(len(X)) < 50, np.arange(len(X)) % 2, -1)
    found = MomentConstrainedLDA().fit(from_dask([list, lambda: X]), y)
    assert_same_fit(found, MomentConstrainedLDA().fit(X, y), tol=1e-6)
    with pytest.raises(ValueError, match="X has no rows in any of its 2 blocks"):
        MomentConstrainedLDA().fit(from_dask([list, list]), SAMPLE.y)


def test_the_columns_of_a_dataframe_are_those_of_the_fit():
    frame = dask.dataframe.from_pandas(frame_of(ROWS), npartitions=3)
    model = MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=frame)
    assert_same_fit(model, fit(ROWS, MomentConstrainedLDA))
    for other in (frame[list("abdc")], frame.rename(columns={"c": "d", "d": "c"})):
        with pytest.raises(ValueError, match="column 2 of X_unlabeled is 'd', and was 'c'"):
            MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=other)
        with pytest.raises(ValueError, match="column 2 of X is 'd', and was 'c'"):
            model.predict(other)
    assert_array_equal(model.predict(frame), model.predict(frame_of(ROWS)))


TABLES = {
    "pandas": lambda frame: frame,
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.Table.from_pandas,
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("persist", [None, True, False])
def test_names_of_tables_that_loaders_return_are_compared_with_those_of_the_fit(kind, persist):
    right, wrong = (TABLES[kind](frame_of(ROWS)[list(names)]) for names in ("abcd", "abdc"))
    model = MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=frame_of(ROWS))
    mixed = from_dask([lambda: right, lambda: wrong], persist=persist)
    with pytest.raises(ValueError, match="columns of X_unlabeled, block 1 differ from"):
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=mixed)
    with pytest.raises(ValueError, match=r"column 2 of X, block 1 is 'd', and was 'c'"):
        model.predict(mixed).compute()


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("persist", [None, True, False])
def test_names_of_tables_that_loaders_return_become_those_of_the_features(kind, persist):
    many, reads = TABLES[kind](frame_of(ROWS[:600])), []
    few = TABLES[kind](frame_of(SAMPLE.X))
    source = from_dask([list, lambda: (reads.append(1), many)[1], lambda: few], persist=persist)
    y = np.where(np.arange(600 + len(few)) < 99, np.arange(600 + len(few)) % 2, -1)
    model = MomentConstrainedLDA().fit(source, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    if persist:
        assert len(reads) == 1
    MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=source)
    with pytest.raises(ValueError, match="column 0 of X_unlabeled is 'a', and was 'x'"):
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X, "xbcd"), SAMPLE.y, X_unlabeled=source)


# Dask reads Parquet in a way that pandas 3.1 gives up.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_dataframe_with_operations_on_it_is_fitted_to_their_result(name, tmp_path):
    frame = OPERATIONS[name](stored_frame(tmp_path))
    expected = frame.compute()
    labeled = frame_of(SAMPLE.X)
    model, wanted = (
        MomentConstrainedLDA().fit(labeled, SAMPLE.y, X_unlabeled=many)
        for many in (frame, expected)
    )
    assert_same_fit(model, wanted)
    y = np.where(np.arange(len(expected)) < 99, expected["b"] > expected["b"].median(), -1)
    assert_same_fit(MomentConstrainedLDA().fit(frame, y), MomentConstrainedLDA().fit(expected, y))
    assert_array_equal(model.predict(frame), model.predict(expected))


def test_a_missing_value_of_a_nullable_column_is_named():
    frame = frame_of(ROWS[:50]).astype("Float64")
    frame.loc[41, "b"] = pandas.NA
    rows = dask.dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="block 1 contains NaN, first in row 16, column 'b'"):
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=rows)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_for_a_dask_array_are_lazy_with_chunks_dtype_and_meta(n_classes):
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


@pytest.mark.parametrize("source", [in_blocks(ROWS), from_dask([lambda: ROWS])])
def test_lazy_results_are_not_put_into_a_table_in_memory(source):
    model = fit(ROWS, MomentConstrainedLDA).set_output(transform="pandas")
    assert model.transform(ROWS[:9]).shape == (9, 1)
    with pytest.raises(
        ValueError, match=r"return pandas tables, .*set_output\(transform='default'"
    ):
        model.transform(source)
    found = model.set_output(transform="default").transform(source)
    assert_allclose(found, model.transform(ROWS), rtol=1e-12)


def test_a_bad_block_is_named_when_lazy_results_are_computed():
    model = fit(ROWS, MomentConstrainedLDA)
    with pytest.raises(ValueError, match="X, block 4 contains NaN, first in row 1, column 2"):
        model.predict(in_blocks(with_entry(np.nan))).compute()
    with pytest.raises(ValueError, match="X has 3 features, but X of fit has 4"):
        model.predict(in_blocks(ROWS)[:, :3])


def test_lazy_results_carry_nothing_of_the_fitted_rows():
    model = fit(ROWS)
    assert model.responsibilities_.nbytes > 400_000
    graph = dict(model.predict_proba(in_blocks(SAMPLE.X[:6])).__dask_graph__())
    assert len(cloudpickle.dumps(graph)) < 100_000


BAD_SETTINGS = {
    "no source": ((3,), {}, TypeError, "Dask array, a Dask dataframe, .* got int"),
    "a single delayed": ((delayed(np.zeros)((3, 4)),), {}, TypeError, "list of loaders, got Delay"),
    "no loaders": (([],), {}, ValueError, "empty list: pass one loader for every block"),
    "retries": (([list],), {"retries": -1}, ValueError, "retries == -1, must be >= 0"),
    "client": (([list],), {"client": "x"}, TypeError, r"distributed\.Client, or None, got str"),
    "timeout": (([list],), {"timeout": 0}, ValueError, "timeout == 0, must be > 0"),
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


def test_the_error_of_a_bad_block_has_the_column_as_a_field():
    frame = dask.dataframe.from_pandas(frame_of(with_entry(np.nan)), npartitions=3)
    with pytest.raises(ColumnError) as raised:
        MomentConstrainedLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=frame)
    assert raised.value.column == "c"
