"""Every way to pass rows: how to make a source of an array. All run the same tests.

``tests/rows/test_backends.py`` compares each of them with the array itself. To add one, add a
function of an (n, d) array and an empty folder to ``SOURCES``.
"""

from functools import partial
from itertools import pairwise

import numpy as np

from iclda._rows.open import backend_of

SOURCES = {}


def source(name):
    """Register a function that makes a source of an array."""

    def register(make):
        SOURCES[name] = make
        return make

    return register


def opened(X, name="X", **settings):
    """Rows of a source, as the estimators open them."""
    return backend_of(X).open_rows(X, name=name, **settings)


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
    from iclda._rows.dask_source import DaskSource

    cuts = [0, 100, 100, 450, len(X)]
    return DaskSource([partial(X.__getitem__, slice(*cut)) for cut in pairwise(cuts)])
