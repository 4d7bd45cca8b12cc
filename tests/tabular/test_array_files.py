import hashlib
import re

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from iclda.tabular import read_table
from iclda.tabular.array_files import FeatureFile
from iclda.tabular.files import open_data

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float16)


def saved(folder, array=X, name="x.npy"):
    np.save(folder / name, array)
    return folder / name


def batches(file, *others):
    types = dict.fromkeys(file.features, pa.float64())
    types |= dict.fromkeys(others, pa.string())
    return pa.Table.from_batches([batch for batch, _ in file.batches(types)])


def test_features_are_numbered_columns_and_keep_their_dtype(tmp_path):
    file = open_data(saved(tmp_path), ["row"])
    assert file.columns == ("row", "feature_0", "feature_1", "feature_2")
    assert (file.n_rows, file.rows.find_dtype()) == (50, np.float16)
    read = batches(file, "row")
    assert_array_equal(read["feature_1"].to_numpy(), X[:, 1].astype(float))
    assert read["row"].to_pylist() == [str(k) for k in range(50)]
    taken = file.take(np.arange(50) % 10 == 3)
    assert_array_equal(taken, X[3::10].astype(float))


def test_shards_of_a_folder_follow_each_other_in_the_order_of_their_names(tmp_path):
    for name, start in (("b.npy", 20), ("a.npy", 0)):
        saved(tmp_path, X[start : start + 20 + start // 2], name)
    (tmp_path / "notes.txt").write_text("not read")
    file = FeatureFile(tmp_path)
    assert_array_equal(np.column_stack(batches(file).columns), X.astype(float))
    read = (tmp_path / "a.npy").read_bytes() + (tmp_path / "b.npy").read_bytes()
    assert file.sha256() == hashlib.sha256(read).hexdigest()


def test_shards_whose_numbers_have_another_order_than_their_names_are_refused(tmp_path):
    for name in ("1f.npy", "09ab.npy", "part.npy", "part1.npy", "part2.npy"):
        saved(tmp_path, X, name)
    assert FeatureFile(tmp_path).n_rows == 250
    saved(tmp_path, X, "part10.npy")
    with pytest.raises(
        ValueError, match=r"part10\.npy comes before part2\.npy: write numbers with"
    ):
        FeatureFile(tmp_path)


def test_an_npz_file_has_columns_beside_its_features(tmp_path):
    names = np.array([f"n{k}" for k in range(50)])
    kinds = np.arange(50) % 2
    np.savez(tmp_path / "x.npz", X=X, name=names, kind=kinds, other=np.arange(3))
    file = FeatureFile(tmp_path / "x.npz", ["name"])
    assert file.columns[:2] == ("name", "kind")
    assert batches(file, "name")["name"].to_pylist() == names.tolist()
    table = read_table(tmp_path / "x.npz", target="kind")
    assert table.labels[:3].tolist() == ["0", "1", "0"]


def test_a_frame_of_an_array_has_all_labeled_rows_and_a_sample_of_many_others(
    tmp_path, monkeypatch
):
    rows = np.arange(6_000.0).reshape(2_000, 3)
    (tmp_path / "l.csv").write_text("row,label\n7,a\n1999,b\n")
    table = read_table(saved(tmp_path, rows), labels=tmp_path / "l.csv", id="row")
    assert len(table.framed().features) == 2_000
    monkeypatch.setattr("iclda.tabular.table._MAX_FRAME_ENTRIES", 1)
    few = table.framed()
    assert few.features.shape == (1_002, 3)
    assert few.features["feature_0"][few.is_labeled].tolist() == [21.0, 5997.0]
    assert "1,000 of the 1,998 unlabeled rows are used, drawn at random." in few.notes


BAD = {
    "one dimension": (X[:, 0], r"x\.npy must be 2-d, .* got shape \(50,\): reshape it"),
    "three dimensions": (X[:, :, None], r"got shape \(50, 3, 1\)"),
    "objects": (
        X.astype(object),
        r"not a complete \.npy file of numbers.*Python objects",
    ),
    "complex": (X.astype(complex), "holds complex128, and must hold real numbers"),
}


@pytest.mark.parametrize(("array", "message"), BAD.values(), ids=BAD)
def test_other_arrays_are_refused_with_their_shape_or_dtype(tmp_path, array, message):
    with pytest.raises((ValueError, OSError), match=message):
        FeatureFile(saved(tmp_path, array))


def test_a_file_without_features_is_named_with_its_folder(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, 0])
    folder = re.escape(str(tmp_path))
    message = rf"^All \.npy files in {folder} .* b\.npy has shape \(50,\): name the"
    with pytest.raises(ValueError, match=message):
        FeatureFile(tmp_path)


def test_an_npz_file_must_hold_one_array_of_rows(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, Z=X)
    message = r"got 2 \('X' of shape \(50, 3\), 'Z' of shape \(50, 3\)\)"
    with pytest.raises(ValueError, match=message):
        FeatureFile(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", X=X, odd=np.array([None] * 50))
    with pytest.raises(
        ValueError, match=r"x\.npz cannot be read \(Object arrays cannot be"
    ):
        FeatureFile(tmp_path / "x.npz")


def test_nan_is_named_with_its_row_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("iclda.tabular.array_files.BATCH_ROWS", 10)
    bad = X.copy()
    bad[37, 2] = np.nan
    file = FeatureFile(saved(tmp_path, bad))
    with pytest.raises(
        ValueError, match="contains NaN, first in row 37, column 'feature_2'"
    ):
        batches(file)


def test_options_for_tables_are_refused_and_a_missing_target_names_what_there_is(
    tmp_path,
):
    path = saved(tmp_path)
    (tmp_path / "l.csv").write_text("label\n" + "a\nb\n" * 25)
    with pytest.raises(
        ValueError, match=r"drop is for tables, and .*x\.npy is an array"
    ):
        read_table(path, labels=tmp_path / "l.csv", drop="feature_0")
    # Names of ids number the rows of an array, and its features are no classes.
    for target in (None, "label", "nr", "feature_0"):
        for id in (None, "nr"):
            with pytest.raises(
                ValueError, match=r"x\.npy holds features and no classes: set labels to"
            ):
                read_table(path, target=target, id=id)
    columns = {"nr": np.arange(5), "kind": list("ababa")}
    np.savez(tmp_path / "x.npz", X=np.zeros((5, 2)), **columns)
    with pytest.raises(ValueError, match=r"one of 'kind'\. If another file"):
        read_table(tmp_path / "x.npz", target="label", id="nr")


def test_numbers_of_rows_of_a_table_name_no_rows_of_an_array(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    message = "x.npy is an array, whose rows count from 0, and 'file_row' counts those"
    with pytest.raises(ValueError, match=message):
        open_data(tmp_path / "x.npy", ["file_row"])
    # A column of that name is one of ids like any other.
    np.savez(tmp_path / "x.npz", X=np.zeros((5, 2)), file_row=np.arange(2, 7))
    read = open_data(tmp_path / "x.npz", ["file_row"]).column("file_row")
    assert read.to_pylist() == [2, 3, 4, 5, 6]
