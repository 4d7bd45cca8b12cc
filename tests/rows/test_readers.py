"""Readers: storage of rows, columns and dtypes, batches, changes during a pass."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")
pyarrow_dataset = pytest.importorskip("pyarrow.dataset")

from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA, SupervisedLDA, rows
from iclda._rows.memory import MemoryRows
from iclda._rows.readers import SlicedArray
from tests.helpers.file_rows import (
    FEW,
    FRAME,
    FRAMED,
    NAMES,
    SAMPLE,
    WHOLE,
    X,
    fit,
    named,
)
from tests.helpers.row_sources import Dataset, opened, table

# Arrays.


@pytest.mark.parametrize("orders", ["FC", "CF", "F1", "1F", "FCF"])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2"])
def test_files_may_differ_in_the_order_of_their_entries(orders, dtype, tmp_path):
    every = (100 * X[:3_000]).astype(dtype)
    # One row is stored in C order, whatever it was.
    cuts = np.cumsum([1 if order == "1" else 1_111 for order in orders])
    parts = np.split(every[: cuts[-1]], cuts[:-1])
    for i, (order, part) in enumerate(zip(orders, parts, strict=True)):
        np.save(
            tmp_path / f"{i}.npy", np.asarray(part, order="F" if order in "F1" else "C")
        )
    expected = MemoryRows(every[: cuts[-1]].astype(float)).moments(FRAME)
    assert_allclose(
        opened(tmp_path).moments(FRAME).scatter, expected.scatter, rtol=1e-10
    )
    assert_array_equal(opened(tmp_path).sample(10**6, 0)[0], every[: cuts[-1]])
    assert_array_equal(
        opened(tmp_path).apply(lambda block: block[:, 1]), every[: cuts[-1], 1]
    )


def test_37_arrays_of_another_width_or_dtype_are_named(tmp_path):
    np.save(tmp_path / "a.npy", FEW)
    np.save(tmp_path / "b.npy", FEW.astype(np.float32))
    with pytest.raises(
        ValueError, match=r"b\.npy holds 3 columns of float32, but .*3 of float64"
    ):
        fit(tmp_path)


def test_what_is_no_npy_file_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(OSError, match=r"rows\.npy is not a complete \.npy file"):
        fit(path)
    np.save(path, FEW[0])
    with pytest.raises(ValueError, match=r"rows\.npy must be 2-d, .* got shape \(3,\)"):
        fit(path)
    np.save(path, FEW.astype(str))
    with pytest.raises(
        ValueError, match=r"rows\.npy holds <U.*, and must hold real numbers"
    ):
        fit(path)


def test_an_hdf5_dataset_is_read_in_blocks():
    source = Dataset(X)
    read = opened(source)
    expected = MemoryRows(X)
    assert_array_equal(read.sample(10**6, 0)[0], X)
    assert_array_equal(read.moments(FRAME).scatter, expected.moments(FRAME).scatter)
    assert max(source.n_read) < len(X) / 2
    assert repr(rows.open(Dataset(FEW))) == "<500 x 3 rows of an h5py dataset>"
    assert_allclose(fit(Dataset(FEW)).coef_, fit(FEW).coef_, rtol=1e-9)
    with pytest.raises(
        ValueError, match=r"X_unlabeled must be 2-d, .* got shape \(500,\)"
    ):
        fit(Dataset(FEW[:, 0]))


def test_a_dataset_of_h5py_is_one_of_them(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("rows", data=FEW, chunks=(100, 3))
    with h5py.File(tmp_path / "rows.h5") as file:
        assert_allclose(fit(file["rows"]).coef_, fit(FEW).coef_, rtol=1e-9)


# Changes while rows are read.

FILES = {"npy": Path, "parquet": Path, "dataset": pyarrow_dataset.dataset}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("classifier", [MomentConstrainedLDA, ImplicitlyConstrainedLDA])
def test_36_a_file_written_to_during_a_fit_is_named(kind, classifier, tmp_path):
    path = tmp_path / "rows.npy" if kind == "npy" else tmp_path / "rows.parquet"
    if kind == "npy":
        np.save(path, WHOLE)
    else:
        pq.write_table(table(WHOLE), path)
    # Several blocks: the only pass of a moment-constrained fit is under way.
    source = rows.open(FILES[kind](path), memory=2**18)
    with (
        rows.progress(lambda *_: os.utime(path, ns=(0, 0))),
        pytest.raises(
            ValueError, match=r"X_unlabeled changed between two passes: .*was written"
        ),
    ):
        fit(source, classifier)


@pytest.mark.parametrize("order", ["C", "F"])
def test_36_a_file_that_is_cut_short_while_it_is_read_is_named(order, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.asarray(X, order=order))
    with (
        rows.progress(lambda *_: os.truncate(path, 10_000)),
        pytest.raises(OSError, match=r"rows\.npy ends early: it was cut short"),
    ):
        fit(rows.open(path, memory=1))


def test_36_a_map_that_is_cut_short_while_it_is_read_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    spans = SlicedArray(np.load(path, mmap_mode="r"), "X").spans(100)
    next(spans).read(np.empty((100, 3), X.dtype), 0)
    os.truncate(path, 10_000)
    with pytest.raises(
        ValueError, match=r"rows\.npy .*10000 bytes now, 1800128 bytes at first"
    ):
        next(spans)


CHANGES = {
    "fewer rows": ([WHOLE[:-1]], "it gave 29999 rows, and 30000 rows before"),
    "more rows": ([WHOLE, WHOLE], "it gave more, and 30000 rows before"),
    "no rows": ([], "it gave 0 rows, and 30000 rows before"),
}


@pytest.mark.parametrize(("other", "message"), CHANGES.values(), ids=CHANGES)
def test_36_batches_of_another_number_of_rows_in_a_later_pass_are_refused(
    other, message
):
    batches = [WHOLE]
    source = rows.from_batches(lambda: list(batches))
    with (
        rows.progress(lambda *_: batches.__setitem__(slice(None), other)),
        pytest.raises(
            ValueError, match=f"X_unlabeled changed between two passes: {message}"
        ),
    ):
        fit(source, ImplicitlyConstrainedLDA)


# Batches.


def once(n, frame):
    """A function whose batches can be read only once."""
    batches = iter(np.array_split(FEW, n))
    return lambda: map(frame, batches)


def shuffled():
    rng = np.random.default_rng(0)
    return lambda: [rng.permutation(FEW)]


AGAIN = {
    "a shuffle": shuffled,
    "three arrays": lambda: once(3, np.asarray),
}


@pytest.mark.parametrize("make", AGAIN.values(), ids=AGAIN)
def test_36_batches_that_begin_with_other_rows_when_read_again_are_refused_at_once(
    make,
):
    with pytest.raises(
        ValueError, match="X begins with other rows, or none, when its factory"
    ):
        rows.from_batches(make())


def test_a_source_without_rows_is_refused():
    with pytest.raises(ValueError, match="gave no rows: leave it out"):
        rows.from_batches(lambda: [FEW[:0]])


SINGLE = FEW.astype(np.float32)
DIFFERENT = {
    "width": (
        [FEW, FEW[:, :2]],
        r"batch 1 \(from row 500 on\) has 2 columns, but the first",
    ),
    "dtype": (
        [SINGLE, FEW],
        r"batch 1 \(from row 500 on\) holds float64, but float32 was read",
    ),
    "text": (
        [FEW, FEW.astype(str)],
        r"batch 1 .* holds <U.*, and must hold real numbers",
    ),
    "dimensions": (
        [FEW, FEW[0]],
        r"batch 1 .*must be 2-d, rows x features, got shape \(3,\)",
    ),
    "columns": (
        [table(FEW), table(FEW[:, :2])],
        r"batch 1 .* lacks the columns 'x2'; it has",
    ),
    "dtype of a column": (
        [table(SINGLE), table(FEW)],
        ".*'x0' holds float64, but float32",
    ),
}


@pytest.mark.parametrize(("batches", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_37_a_batch_of_another_kind_is_named(batches, message):
    with pytest.raises(ValueError, match=f"X_unlabeled: {message}"):
        fit(rows.from_batches(lambda: batches))


def test_a_batch_of_fewer_digits_than_the_first_is_taken():
    for frame in (np.asarray, table):
        parts = [frame(FEW[:100]), frame(SINGLE[100:])]
        whole = np.concatenate([FEW[:100], SINGLE[100:].astype(float)])
        found = fit(rows.from_batches(lambda parts=parts: parts)).coef_
        assert_allclose(found, fit(whole).coef_, rtol=1e-9)


# Tables.


def write_named(folder):
    """The columns in another order, beside others."""
    columns = {"id": np.arange(500).astype(str), "x2": FEW[:, 2], "x0": FEW[:, 0]}
    pq.write_table(pa.table({**columns, "x1": FEW[:, 1]}), folder / "named.parquet")
    return folder / "named.parquet"


READ = {
    "path": lambda path: path,
    "dataset": pyarrow_dataset.dataset,
    "table": lambda path: rows.open(pq.read_table(path)),
    "LazyFrame": pl.scan_parquet,
    "batches": lambda path: rows.from_batches(
        lambda: pq.ParquetFile(path).iter_batches(200)
    ),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_columns_are_found_by_the_names_of_x(read, tmp_path):
    source = read(write_named(tmp_path))
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=source)
    expected = fit(FEW)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(source), expected.predict_proba(FEW), rtol=1e-9)
    other = FRAMED.rename(columns={"x1": "weight"})
    with pytest.raises(
        ValueError, match=r"X_unlabeled lacks the columns 'weight'; it has"
    ):
        MomentConstrainedLDA().fit(other, SAMPLE.y, X_unlabeled=source)


def test_columns_may_be_chosen_and_then_name_the_features(tmp_path):
    path = write_named(tmp_path)
    model = SupervisedLDA().fit(
        rows.open(path, columns=["x2", "x1"]), np.arange(500) % 2
    )
    assert_array_equal(model.feature_names_in_, ["x2", "x1"])
    expected = SupervisedLDA().fit(FEW[:, [2, 1]], np.arange(500) % 2)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_array_equal(model.predict(path), expected.predict(FEW[:, [2, 1]]))


def test_names_are_missed_where_x_has_some_and_forgotten_where_it_has_none(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    with pytest.warns(
        UserWarning, match="X_unlabeled does not have valid feature names"
    ):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=tmp_path / "rows.npy")
    model = SupervisedLDA().fit(FRAMED, SAMPLE.y)
    model.fit(tmp_path / "rows.npy", np.arange(500) % 2)
    assert not hasattr(model, "feature_names_in_")


MISSING = {
    "pyarrow": lambda a: a,
    "polars": pl.from_arrow,
    "pandas": pa.Table.to_pandas,
    "nullable": lambda a: a.to_pandas().convert_dtypes(dtype_backend="numpy_nullable"),
}


@pytest.mark.parametrize("frame", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("is_integer", [False, True], ids=["real", "integer"])
def test_missing_values_are_named_with_row_and_column(frame, is_integer):
    dtype = pa.int64() if is_integer else pa.float64()
    many = {
        name: pa.array(np.arange(500) % (j + 2), dtype) for j, name in enumerate(NAMES)
    }
    few = {name: pa.array([1, 2, None if name == "x1" else 3], dtype) for name in NAMES}
    batches = [frame(pa.table(many)), frame(pa.table(few))]
    with pytest.raises(
        ValueError, match=r"contains NaN, first in row 502, column 'x1'"
    ):
        fit(rows.from_batches(lambda: batches))


def test_columns_that_hold_no_numbers_are_named(tmp_path):
    path = write_named(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"X_unlabeled, column 'id' does not hold real numbers.*columns=",
    ):
        fit(rows.open(path, columns=["id", "x0", "x1"]))


@pytest.mark.parametrize("damage", ["pages", "checksum"])
def test_a_damaged_parquet_file_is_named(damage, tmp_path):
    path = tmp_path / "rows.parquet"
    options = {"use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table(FEW), path, compression="none", **options)
    data = bytearray(path.read_bytes())
    if damage == "pages":
        data[100:4000] = bytes(3900)
    else:
        # Another number, as plausible as any.
        data[data.index(FEW[250, 1].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"X_unlabeled: .*rows\.parquet cannot be read"):
        fit(path)


def test_a_table_with_a_column_twice_is_refused(tmp_path):
    columns = [pa.array(column) for column in FEW.T]
    twice = pa.Table.from_arrays(columns, names=["a", "b", "a"])
    pq.write_table(twice, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows\.parquet has 2 columns called 'a'"):
        fit(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="X has 2 columns called 'a'"):
        rows.from_batches(lambda: [twice])


def test_names_of_rows_that_pandas_stores_are_no_feature(tmp_path):
    frame = named(FEW)[::-1]
    frame[frame["x0"] > 0].to_parquet(tmp_path / "a.parquet")
    frame.set_index("x2").to_parquet(tmp_path / "b.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    assert opened(tmp_path / "a.parquet").feature_names == NAMES
    assert opened(tmp_path / "b.parquet").feature_names == ["x0", "x1"]
    chosen = opened(rows.open(tmp_path / "b.parquet", columns=NAMES))
    assert_array_equal(chosen.sample(1000, 0)[0], FEW[::-1])


def test_a_file_of_more_columns_than_x_which_has_no_names_says_how_to_choose(tmp_path):
    frame = named(FEW).assign(id=np.arange(500).astype(str))
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(
        ValueError, match=r"has 4 features, .* 'id', .*open\(\.\.\., columns="
    ):
        fit(tmp_path / "rows.parquet")


def test_without_pyarrow_the_error_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        ImportError, match=r"pyarrow is needed for reading .*iclda\[files\]"
    ):
        fit(folder / "rows.parquet")
