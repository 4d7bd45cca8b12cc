"""Every way to pass rows: how to make a source of an array. All run the same tests.

``tests/rows/test_backends.py`` compares each of them with the array itself. To add one, add a
function of an (n, d) array and an empty folder to ``SOURCES``.
"""

from functools import partial
from importlib.util import find_spec
from itertools import pairwise

import array_api_strict
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from iclda import rows
from iclda._rows.backends import backend_of
from iclda._rows.base import Request

SOURCES = {}


def source(name):
    """Register a function that makes a source of an array."""

    def register(make):
        SOURCES[name] = make
        return make

    return register


def opened(X, name="X", weights=None, is_member=None, **settings):
    """Rows of a source, as the estimators open them."""
    return backend_of(X).open_rows(X, Request(name, **settings), weights, is_member)


def single(X):
    """The values of X as float32 holds them, in float64: no source may tell them apart."""
    return X.astype(np.float32).astype(np.float64)


@source("dask array")
def _dask_array(X, folder):
    import dask.array

    return dask.array.from_array(X, chunks=(191, -1))


@source("dask dataframe")
def _dask_dataframe(X, folder):
    import dask.dataframe
    import pandas

    frame = pandas.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    return dask.dataframe.from_pandas(frame, npartitions=4)


@source("dask loaders")
def _dask_loaders(X, folder):
    cuts = [0, 100, 100, 450, len(X)]
    return rows.from_dask([partial(X.__getitem__, slice(*cut)) for cut in pairwise(cuts)])


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
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})


@source("parquet")
def parquet(X, folder):
    pq.write_table(table(X), folder / "rows.parquet", row_group_size=97)
    return folder / "rows.parquet"


@source("parquet files")
def parquet_files(X, folder):
    cut = len(X) // 3
    pq.write_table(table(X[:cut]), folder / "a.parquet")
    pq.write_table(table(X[cut:]), folder / "b.parquet", row_group_size=50)
    return [folder / "a.parquet", folder / "b.parquet"]


@source("pyarrow dataset")
def dataset(X, folder):
    return pyarrow.dataset.dataset(parquet(X, folder))


@source("pyarrow table")
def large_table(X, folder):
    return rows.open(table(X))


@source("polars LazyFrame")
def lazy_frame(X, folder):
    return pl.scan_parquet(parquet(X, folder))


@source("batches of arrays")
def array_batches(X, folder):
    return rows.from_batches(lambda: np.array_split(X, [3, 3, 200, 201]))


@source("batches of tables")
def table_batches(X, folder):
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])
    return rows.from_batches(lambda: frame.iter_slices(64))


@source("array-api-strict")
def strict(X, folder):
    return array_api_strict.asarray(X)


@source("array-api-strict on another device")
def strict_elsewhere(X, folder):
    return array_api_strict.asarray(X, device=array_api_strict.Device("device1"))


if find_spec("torch") is not None:

    @source("torch")
    def tensor(X, folder):
        import torch

        return torch.asarray(X)
