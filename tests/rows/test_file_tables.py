"""Tables and Parquet files: names and dtypes of columns, missing values, pages."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from backends import opened, table
from file_rows import FEW, FRAMED, NAMES, RNG, SAMPLE, fit, named
from iclda import MomentConstrainedLDA, SupervisedLDA, rows
from iclda._rows import backends as dispatch


def write_named(folder):
    """The columns in another order, beside others."""
    columns = {"id": np.arange(500).astype(str), "x2": FEW[:, 2], "x0": FEW[:, 0]}
    pq.write_table(pa.table({**columns, "x1": FEW[:, 1]}), folder / "named.parquet")
    return folder / "named.parquet"


READ = {
    "path": lambda path: path,
    "dataset": pyarrow.dataset.dataset,
    "table": lambda path: rows.open(pq.read_table(path)),
    "LazyFrame": pl.scan_parquet,
    "batches": lambda path: rows.from_batches(lambda: pq.ParquetFile(path).iter_batches(200)),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_columns_are_found_by_the_names_of_x(read, tmp_path):
    source = read(write_named(tmp_path))
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=source)
    expected = fit(FEW)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.predict_proba(source), expected.predict_proba(FEW), rtol=1e-9)


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_a_table_without_the_columns_of_x_is_refused(read, tmp_path):
    source = read(write_named(tmp_path))
    other = FRAMED.rename(columns={"x1": "weight"})
    with pytest.raises(
        ValueError, match=r"X_unlabeled lacks the columns \['weight'\]; it has \['id"
    ):
        MomentConstrainedLDA().fit(other, SAMPLE.y, X_unlabeled=source)


def test_columns_may_be_chosen_and_then_name_the_features(tmp_path):
    path = write_named(tmp_path)
    model = SupervisedLDA().fit(rows.open(path, columns=["x2", "x1"]), np.arange(500) % 2)
    assert_array_equal(model.feature_names_in_, ["x2", "x1"])
    expected = SupervisedLDA().fit(FEW[:, [2, 1]], np.arange(500) % 2)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_array_equal(model.predict(path), expected.predict(FEW[:, [2, 1]]))


def test_columns_of_a_file_without_names_cannot_be_chosen(folder):
    with pytest.raises(ValueError, match=r"columns=\['a'\] selects by name, and X has no names"):
        rows.open(folder / "rows.npy", columns=["a"])


def test_names_are_missed_where_x_has_some(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    with pytest.warns(UserWarning, match="X_unlabeled does not have valid feature names"):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=tmp_path / "rows.npy")


def test_a_fit_without_names_forgets_those_of_the_last(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    model = SupervisedLDA().fit(FRAMED, SAMPLE.y)
    model.fit(tmp_path / "rows.npy", np.arange(500) % 2)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("names", [["x0", "x2", "x1"], ["x0", "x1", "y"], [*NAMES, "more"]])
def test_a_table_of_any_size_must_have_the_columns_of_x_in_their_order(
    names, is_large, monkeypatch
):
    other = pa.table({name: FEW[:, i % 3] for i, name in enumerate(names)})
    model = MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=named(FEW))
    monkeypatch.setattr(dispatch, "_LARGE", 0 if is_large else 2**28)
    assert (dispatch.backend_of(other) is not None) == is_large
    with pytest.raises(ValueError, match=r"feature names should match|has 4 features, but X"):
        MomentConstrainedLDA().fit(FRAMED, SAMPLE.y, X_unlabeled=other)
    with pytest.raises(ValueError, match=r"feature names should match|has 4 features, but X"):
        model.predict(other)
    same = pa.Table.from_pandas(named(FEW), preserve_index=False)
    assert_array_equal(model.predict(same), model.predict(named(FEW)))


def test_files_of_other_columns_are_named(tmp_path):
    pq.write_table(table(FEW), tmp_path / "a.parquet")
    pq.write_table(table(FEW.astype(np.float32)), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet, column 'x0' holds float32, but float64 in"):
        fit(tmp_path)
    pq.write_table(table(FEW[:, :2]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet lacks the columns \['x2'\] of .*a\.parquet"):
        fit(tmp_path)


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas"])
def test_missing_values_are_named_with_row_and_column(kind):
    tables = {"pyarrow": lambda a: a, "polars": pl.from_arrow, "pandas": pa.Table.to_pandas}
    columns = {"x0": [1.0, 2.0, 3.0], "x1": [1.0, 2.0, None], "x2": [0.0, 1.0, 5.0]}
    batches = [tables[kind](table(FEW)), tables[kind](pa.table(columns))]
    with pytest.raises(
        ValueError, match=r"contains a missing value, first in row 502, column 'x1'"
    ):
        fit(rows.from_batches(lambda: batches))


def test_columns_that_hold_no_numbers_are_named(tmp_path):
    path = write_named(tmp_path)
    with pytest.raises(
        ValueError, match=r"X_unlabeled, column 'id' does not hold real numbers.*columns="
    ):
        fit(rows.open(path, columns=["id", "x0", "x1"]))


def test_a_parquet_file_with_bad_pages_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(table(FEW), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:4000] = bytes(3900)
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"X_unlabeled: .*rows\.parquet cannot be read as Parquet"):
        fit(path)
    with pytest.raises(OSError, match="X_unlabeled: the dataset cannot be read"):
        fit(pyarrow.dataset.dataset(path))


def test_a_parquet_file_whose_pages_differ_from_their_checksums_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table(FEW), path, **options)
    data = bytearray(path.read_bytes())
    place = data.index(FEW[250, 1].tobytes())
    data[place] ^= 1  # another number, and as good as any
    path.write_bytes(data)
    for source in (path, pyarrow.dataset.dataset(path)):
        with pytest.raises(OSError, match=r"cannot be read.*CRC"):
            fit(source)


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path):
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


@pytest.mark.parametrize(("memory", "most"), [(2**28, 2**26), (2**24, 2**24), (1, 2**24)])
def test_buffers_of_many_columns_stay_within_memory(memory, most, tmp_path, monkeypatch):
    wide = RNG.standard_normal((50, 1500)).astype(np.float32)
    pq.write_table(table(wide), tmp_path / "rows.parquet")
    sizes = []

    class Noted(pq.ParquetFile):
        def __init__(self, *args, buffer_size, **options):
            sizes.append(buffer_size)
            super().__init__(*args, buffer_size=buffer_size, **options)

    monkeypatch.setattr(pq, "ParquetFile", Noted)
    read = opened(rows.open(tmp_path / "rows.parquet", memory=memory))
    sizes.clear()
    assert_array_equal(read.sample(50, 0)[0], wide)
    assert sizes
    assert max(sizes) * 1500 <= most


def test_a_file_of_more_columns_than_x_which_has_no_names_says_how_to_choose(tmp_path):
    frame = named(FEW).assign(id=np.arange(500).astype(str))
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"has 4 features, .* 'id'\], .*open\(\.\.\., columns="):
        fit(tmp_path / "rows.parquet")
