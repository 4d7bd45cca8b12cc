"""Seconds of the default by the size of the table, and memory of a fit to a file."""

from __future__ import annotations

import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from iclda import AutoLDA
from suite.memory import peak_in_fork

from .bars import met

N_LABELS = 50
# Rows and columns -> the bar, in seconds of one core.
TIMED = {(1_000, 30): 3.0, (100_000, 30): 10.0}
FILE_ROWS = 1_000_000
FILE_COLUMNS = 50
FILE_BLOCK_ROWS = 100_000
# The bar, in MiB beyond what the process had.
MAX_FILE_MIB = 200.0


def two_classes(n_rows: int, n_columns: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return rows of two Gaussian classes, and their classes."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, n_columns))
    X[:, : n_columns // 3] += 0.5 * codes[:, None]
    return X, codes


def fit_seconds(n_rows: int, n_columns: int) -> float:
    """Return the processor time of one fit to rows in memory."""
    X, codes = two_classes(n_rows, n_columns, seed=0)
    y = np.where(np.arange(n_rows) < N_LABELS, codes, -1)
    start = time.process_time()
    AutoLDA().fit(X, y)
    return time.process_time() - start


def write_parquet(path: Path) -> None:
    """Write the rows of a large table, block by block."""
    import pyarrow
    from pyarrow import parquet

    names = [f"x{k}" for k in range(FILE_COLUMNS)]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for block in range(FILE_ROWS // FILE_BLOCK_ROWS):
            X = two_classes(FILE_BLOCK_ROWS, FILE_COLUMNS, seed=block)[0]
            writer.write_table(pyarrow.table(list(X.T), names=names))


def fit_file_mib() -> float:
    """Return the peak memory of one fit to the rows of a Parquet file."""
    X, codes = two_classes(N_LABELS, FILE_COLUMNS, seed=FILE_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path)
        return peak_in_fork(partial(AutoLDA().fit, X, codes, X_unlabeled=path))


def measure_large() -> str:
    """Return lines on time and memory, and whether the bars are met."""
    warnings.simplefilter("ignore")
    # The first fit imports what the others use.
    fit_seconds(100, 3)
    lines = []
    for (n_rows, n_columns), limit in TIMED.items():
        seconds = fit_seconds(n_rows, n_columns)
        lines.append(
            f"- {n_rows:,} x {n_columns}, 2 classes, {N_LABELS} labels: {seconds:.1f} "
            f"s of one core, at most {limit:.0f}: {met(seconds <= limit)}"
        )
    mebibytes = fit_file_mib()
    lines.append(
        f"- {FILE_ROWS:,} x {FILE_COLUMNS} from a Parquet file: {mebibytes:.0f} MiB "
        f"beyond the process, at most {MAX_FILE_MIB:.0f}: "
        f"{met(mebibytes <= MAX_FILE_MIB)}"
    )
    return "\n".join(lines)
