""".npy files and memory maps: how they are stored, and changes while they are read."""

import os
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from backends import opened, table
from file_rows import FEW, FRAME, SAMPLE, WHOLE, X, fit
from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA, rows
from iclda._rows.file_readers import MappedArray
from iclda._rows.memory import MemoryRows


@pytest.mark.parametrize("orders", ["FC", "CF", "F1", "1F", "1C", "FCF"])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2"])
def test_files_may_differ_in_the_order_of_their_entries(orders, dtype, tmp_path):
    every = (100 * X[:3_000]).astype(dtype)
    # One row is stored in C order, whatever it was.
    cuts = np.cumsum([1 if order == "1" else 1_111 for order in orders])
    parts = np.split(every[: cuts[-1]], cuts[:-1])
    for i, (order, part) in enumerate(zip(orders, parts, strict=True)):
        np.save(tmp_path / f"{i}.npy", np.asarray(part, order="F" if order in "F1" else "C"))
    read = opened(tmp_path)
    expected = MemoryRows(every[: cuts[-1]].astype(float)).moments(FRAME)
    assert_allclose(read.moments(FRAME).scatter, expected.scatter, rtol=1e-10)
    assert_array_equal(opened(tmp_path).sample(10**6, 0)[0], every[: cuts[-1]])
    assert_array_equal(opened(tmp_path).apply(lambda block: block[:, 1]), every[: cuts[-1], 1])


FILES = {"npy": Path, "parquet": Path, "dataset": pyarrow.dataset.dataset}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("classifier", [MomentConstrainedLDA, ImplicitlyConstrainedLDA])
def test_36_a_file_written_to_during_a_fit_is_named(kind, classifier, tmp_path):
    path = tmp_path / "rows.npy" if kind == "npy" else tmp_path / "rows.parquet"
    if kind == "npy":
        np.save(path, WHOLE)
    else:
        pq.write_table(table(WHOLE), path)
    # Several slabs: the only pass of a moment-constrained fit is under way.
    source = rows.open(FILES[kind](path), memory=2**18)

    def touch(n_pass, n_done, n_all):
        os.utime(path, ns=(0, 0))

    with (
        rows.progress(touch),
        pytest.raises(ValueError, match=r"changed between two passes: .*rows\.\w+ was written to"),
    ):
        fit(source, classifier)


def test_a_file_written_to_before_it_is_fitted_to_again_is_named(tmp_path):
    np.save(tmp_path / "rows.npy", FEW)
    source = rows.open(tmp_path / "rows.npy")
    fit(source)
    os.utime(tmp_path / "rows.npy", ns=(0, 0))
    with pytest.raises(
        ValueError, match=r"X_unlabeled changed between two passes: .*rows\.npy was"
    ):
        fit(source)
    assert_allclose(fit(rows.open(tmp_path / "rows.npy")).coef_, fit(FEW).coef_, rtol=1e-9)


def test_36_a_file_that_shrinks_during_a_fit_is_named_with_both_sizes(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, SAMPLE.X_unlabeled)
    mapped = rows.open(np.load(path, mmap_mode="r"))
    size = path.stat().st_size

    def shrink(n_pass, n_done, n_all):
        os.truncate(path, size - 8)

    with (
        rows.progress(shrink),
        pytest.raises(ValueError, match=f"has {size - 8} bytes, and had {size} at first"),
    ):
        fit(mapped, ImplicitlyConstrainedLDA)


@pytest.mark.parametrize("order", ["C", "F"])
def test_36_a_file_that_is_cut_short_while_it_is_read_is_named(order, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.asarray(X, order=order))

    def shrink(n_pass, n_done, n_all):
        os.truncate(path, 10_000)

    with (
        rows.progress(shrink),
        pytest.raises(OSError, match=r"rows\.npy ends .* bytes early: it was cut short"),
    ):
        fit(rows.open(path, memory=1))


def test_36_a_map_that_is_cut_short_while_it_is_read_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    (chunk,) = MappedArray(np.load(path, mmap_mode="r"), "X").chunks(100)
    os.truncate(path, 10_000)
    with pytest.raises(ValueError, match=r"rows\.npy has 10000 bytes, and had 1800128"):
        chunk.fill(np.empty((100, 3), X.dtype), 100_000)


def test_37_arrays_of_another_width_or_dtype_are_named(tmp_path):
    np.save(tmp_path / "a.npy", FEW)
    np.save(tmp_path / "b.npy", FEW.astype(np.float32))
    with pytest.raises(ValueError, match=r"b\.npy holds 3 columns of float32, but .*3 of float64"):
        fit(tmp_path)


def test_a_file_that_was_cut_short_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, FEW)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(OSError, match=r"rows\.npy has 12127 bytes, but 500 x 3 .* take 12128"):
        fit(path)
    path = tmp_path / "rows.parquet"
    pq.write_table(table(FEW), path)
    os.truncate(path, 1000)
    with pytest.raises(OSError, match=r"rows\.parquet cannot be read as Parquet"):
        fit(path)


def test_what_is_no_npy_file_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(OSError, match=r"rows\.npy is no \.npy file that can be read"):
        fit(path)
    np.save(path, FEW[0])
    with pytest.raises(ValueError, match=r"rows\.npy must hold a 2-d array.* got \(3,\)"):
        fit(path)
    np.save(path, FEW.astype(str))
    with pytest.raises(ValueError, match=r"rows\.npy holds <U.*, and must hold real numbers"):
        fit(path)
