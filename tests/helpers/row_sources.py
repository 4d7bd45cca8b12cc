"""Every way to pass rows: how to make a source of an array. All run the same tests.

``tests/rows/test_backends.py`` compares each of them with the array itself. To add one,
add a function of an (n, d) array and an empty folder to ``SOURCES``.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import rows
from iclda._rows import backend_of
from iclda._rows.device import ArrayRows
from iclda._rows.protocol import Request
from tests.helpers.problems import near_all

SOURCES = {}


def source(name):
    """Register a function that makes a source of an array."""

    def register(make):
        SOURCES[name] = make
        return make

    return register


def opened(X, name="X", weights=None, is_member=None, **settings):
    """Rows of a source, as the estimators open them."""
    rows = backend_of(X).open_rows(X, Request(name, **settings))
    return rows.restricted(weights, is_member)


def assert_equal_sums(found, expected, rtol=1e-11):
    """All fields that are expected, up to rounding."""
    for name in vars(expected):
        x = getattr(found, name)
        y = getattr(expected, name)
        if y is not None:
            assert_allclose(x, y, rtol=rtol, atol=rtol * (1 + np.abs(y).max()))


def assert_equal_passes(found, expected, rule, frame, rtol=1e-11):
    """Moments, and label sums with all that they may hold."""
    assert_equal_sums(found.moments(frame), expected.moments(frame), rtol)
    centers = np.random.default_rng(0).standard_normal(
        (rule.n_classes, len(frame.scale))
    )
    overlaps = {"with_overlaps": True}
    for options in ({}, {"centers": centers}, near_all(rule), overlaps):
        sums = (rows.label_sums(rule, frame, **options) for rows in (found, expected))
        assert_equal_sums(*sums, rtol)


def array_rows(X, weights=None, is_member=None, name="X", block_rows=None):
    """Rows of a device array, in blocks of this size if it is given."""
    found = ArrayRows(X, Request(name)).restricted(weights, is_member)
    found._block_rows = block_rows or found._block_rows
    return found


@source("dask array")
def _dask_array(X, folder):
    dask_array = pytest.importorskip("dask.array")
    return dask_array.from_array(X, chunks=(191, -1))


@source("dask dataframe")
def _dask_dataframe(X, folder):
    dask_dataframe = pytest.importorskip("dask.dataframe")
    import pandas

    frame = pandas.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    return dask_dataframe.from_pandas(frame, npartitions=4)


@source("npy")
def npy(X, folder):
    path = folder / "rows.npy"
    np.save(path, X)
    return path


@source("npy files")
def npy_files(X, folder):
    cuts = np.array_split(X, [0, len(X) // 3, len(X) // 3, len(X) // 2])
    for i, part in enumerate(cuts):
        np.save(folder / f"part-{i}.npy", part)
    return str(folder)


@source("Fortran npy")
def fortran_npy(X, folder):
    np.save(folder / "rows.npy", np.asfortranarray(X))
    return str(folder / "*.npy")


@source("memory map")
def memory_map(X, folder):
    np.save(folder / "rows.npy", X)
    return rows.open(np.load(folder / "rows.npy", mmap_mode="r"))


def table(X):
    pa = pytest.importorskip("pyarrow")
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})


@source("parquet")
def parquet(X, folder):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(X), folder / "rows.parquet", row_group_size=97)
    return folder / "rows.parquet"


@source("parquet files")
def parquet_files(X, folder):
    pq = pytest.importorskip("pyarrow.parquet")
    cut = len(X) // 3
    pq.write_table(table(X[:cut]), folder / "a.parquet")
    pq.write_table(table(X[cut:]), folder / "b.parquet", row_group_size=50)
    return [folder / "a.parquet", folder / "b.parquet"]


@source("pyarrow dataset")
def dataset(X, folder):
    return pytest.importorskip("pyarrow.dataset").dataset(parquet(X, folder))


@source("pyarrow table")
def large_table(X, folder):
    return rows.open(table(X))


@source("polars LazyFrame")
def lazy_frame(X, folder):
    return pytest.importorskip("polars").scan_parquet(parquet(X, folder))


@source("batches of arrays")
def array_batches(X, folder):
    return rows.from_batches(lambda: np.array_split(X, [3, 3, 200, 201]))


@source("batches of tables")
def table_batches(X, folder):
    frame = pytest.importorskip("polars").DataFrame(
        X, schema=[f"x{j}" for j in range(X.shape[1])]
    )
    return rows.from_batches(lambda: frame.iter_slices(64))


@source("array-api-strict")
def strict(X, folder):
    return pytest.importorskip("array_api_strict").asarray(X)


@source("array-api-strict on a device")
def strict_elsewhere(X, folder):
    xp = pytest.importorskip("array_api_strict")
    return xp.asarray(X, device=xp.Device("device1"))


@source("torch")
def tensor(X, folder):
    return pytest.importorskip("torch").asarray(X)


class Dataset:
    """A dataset as h5py has it: a shape, a dtype, and slices."""

    def __init__(self, array):
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.n_read = []

    def __getitem__(self, index):
        part = self._array[index]
        self.n_read.append(len(part))
        return part


Dataset.__module__ = "h5py._hl.dataset"


@source("HDF5 dataset")
def hdf5(X, folder):
    return Dataset(X)
