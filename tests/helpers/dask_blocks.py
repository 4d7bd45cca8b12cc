"""One problem whose unlabeled rows come in blocks of Dask."""

import logging
from contextlib import contextmanager

import dask.array
import dask.dataframe
import numpy as np
import pandas
from distributed import LocalCluster

from iclda import ImplicitlyConstrainedLDA
from tests.helpers.problems import draw_sample

# More rows than the search holds: it has to read them all.
N_ROWS = 30_000
N_FEATURES = 4
N_BLOCKS = 6
SAMPLE = draw_sample(
    5,
    n_classes=2,
    n_features=N_FEATURES,
    n_labeled=80,
    n_unlabeled=N_ROWS,
    separation=2.0,
)
ROWS = SAMPLE.X_unlabeled


@contextmanager
def two_workers(memory_limit):
    """A cluster of two worker processes."""
    # A worker that dies 15 seconds after another death would not be replaced.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory_limit,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


def in_blocks(X):
    """A Dask array."""
    return dask.array.from_array(X, chunks=(-(-len(X) // N_BLOCKS), -1))


def read_by(functions, n_features=N_FEATURES):
    """A Dask array of blocks of unknown length that functions return."""
    shape = (np.nan, n_features)
    blocks = [
        dask.array.from_delayed(dask.delayed(read)(), shape, float)
        for read in functions
    ]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


def with_entry(value):
    """The rows with another number in row 1 of block 4, column 2."""
    X = ROWS.copy()
    X[20_001, 2] = value
    return X


def fit(X_unlabeled, method=ImplicitlyConstrainedLDA):
    return method().fit(SAMPLE.X, SAMPLE.y, X_unlabeled=X_unlabeled)


def frame_of(X, names="abcd"):
    """A table in memory."""
    return pandas.DataFrame(X, columns=list(names))


def stored_frame(folder):
    """A Dask dataframe of the rows, from Parquet files."""
    for i, part in enumerate(np.array_split(ROWS, 3)):
        frame_of(part).to_parquet(folder / f"part-{i}.parquet", index=False)
    return dask.dataframe.read_parquet(folder)


# What people do to a dataframe before they pass it.
OPERATIONS = {
    "filtered": lambda frame: frame[frame["a"] > 0],
    "filtered by another column": lambda frame: frame[frame["d"] < 0.5][
        ["a", "b", "c", "d"]
    ],
    "doubled": lambda frame: frame * 2,
    "mapped": lambda frame: frame.map_partitions(lambda part: part + 1),
    "assigned": lambda frame: frame.assign(a=frame["a"] + frame["b"]),
    "repartitioned": lambda frame: frame[frame["a"] > 0].repartition(npartitions=2),
}
