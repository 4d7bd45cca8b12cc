"""Rows that do not fit into memory, and progress of long passes over them.

Every ``X`` and ``X_unlabeled`` of a classifier may be, instead of an array in memory:
the path of a .npy file or of a Parquet file, a folder of files, a pattern with
wildcards, or a list of paths; a NumPy memory map; an h5py dataset; a pyarrow dataset; a
pyarrow table; a polars LazyFrame; a Dask array or dataframe; an array of torch, CuPy or
JAX; or what the functions here return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral, Real
from typing import Any

from sklearn.utils import check_scalar

from ._progress import show_cells
from ._rows import Callback, listen
from ._rows.batch_readers import batch_reader
from ._rows.checks import refuse_repeated
from ._rows.kinds import reader_of
from ._rows.readers import DEFAULT_MEMORY, Reader
from ._system import require

__all__ = ["bar", "from_batches", "from_dask", "open", "progress"]


def open(
    X: Any, *, columns: Sequence[str] | None = None, memory: int = DEFAULT_MEMORY
) -> Reader:
    """Open rows that are read a few at a time.

    Parameters
    ----------
    X : path, paths or object
        A path may be a file, a folder of files, or a pattern with wildcards. Files of a
        folder or pattern are read in the order of their names. The formats of files,
        and the objects, are those that a classifier takes, but for Dask collections and
        arrays on a device.
    columns : sequence of str, default=None
        Columns of a table to read. None: those that the fit knows by name, or all.
    memory : int, default=268435456
        Bytes of the rows that may be held at a time. At least a few blocks of 512 rows
        are held, whatever the number.

    Returns
    -------
    rows : object
        To be passed to a classifier in place of an array, any number of times.
    """
    memory = _checked_memory(memory)
    reader = reader_of(X, "X")
    if columns is not None:
        reader = _selected(reader, columns)
    reader.memory = memory
    return reader


def _selected(reader: Reader, columns: Any) -> Reader:
    """Return a reader of the columns that a user has named."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise TypeError(
            f"columns must be a list of names, got {columns!r}: pass [{columns!r}]."
        )
    names = [str(name) for name in columns]
    if not names:
        raise ValueError("columns is an empty list: name at least one column.")
    refuse_repeated(names, "columns")
    if reader.feature_names is None:
        raise ValueError(f"columns={names!r} selects by name, and X has no names.")
    return reader.select(names)


def from_batches(
    factory: Callable[[], Iterable[Any]],
    *,
    n_rows: int | None = None,
    memory: int = DEFAULT_MEMORY,
) -> Reader:
    """Open rows of any source that can be read again from the start.

    Parameters
    ----------
    factory : callable
        Takes nothing and returns a new iterable of batches, with the same rows in the
        same order every time: 2-d arrays of one width and dtype, or tables of pyarrow,
        polars or pandas, whose columns have names.
    n_rows : int, default=None
        Number of rows. None: it is counted by the first pass.
    memory : int, default=268435456
        Bytes of the rows that may be held at a time, in addition to one batch.

    Returns
    -------
    rows : object
        To be passed to a classifier in place of an array, any number of times.

    Examples
    --------
    >>> import numpy as np
    >>> from iclda import rows
    >>> rows.from_batches(lambda: (np.full((10, 2), i) for i in range(3)), n_rows=30)
    <30 x 2 rows of batches of arrays>
    """
    if not callable(factory):
        raise TypeError(
            "factory must be a function that returns a new iterable of batches at "
            f"every call, got {type(factory).__name__}. For a list of batches pass "
            "lambda: batches."
        )
    if n_rows is not None:
        check_scalar(n_rows, "n_rows", Integral, min_val=0)
    memory = _checked_memory(memory)
    reader = batch_reader(factory, "X", n_rows)
    reader.memory = memory
    return reader


def from_dask(
    source: Any, *, client: Any = None, retries: int = 2, timeout: float | None = 600.0
) -> Any:
    """Open rows on the workers of a Dask cluster, which send back sums and a sample.

    A Dask array or dataframe can also be passed to a classifier as it is, with the
    settings below at their defaults. The workers keep blocks that fit into half of
    their memory, until this object is deleted; other blocks are read again in every
    pass, unless you have persisted them. Few large blocks are best: every block costs
    some milliseconds per pass.

    Parameters
    ----------
    source : dask array or dask dataframe
        Rows in blocks. ``dask.dataframe.from_map`` makes one of a function that reads a
        block, and ``dask.array.from_delayed`` of delayed objects.
    client : distributed.Client, default=None
        The cluster. None: the current client; if there is none, Dask's own scheduler,
        which reads all blocks in this process, again in every pass, without retries and
        timeout.
    retries : int, default=2
        How often a task that failed is tried again, on any worker. The work of a worker
        that died is always repeated elsewhere.
    timeout : float, default=600.0
        Seconds without a finished task after which ``fit`` gives up with a
        TimeoutError; None: no limit. By default a cluster replaces a worker that does
        not respond for 300 seconds.

    Returns
    -------
    rows : object
        To be passed to a classifier in place of an array, any number of times.
    """
    require("dask.delayed", "rows on a cluster", "dask")
    from ._rows.dask import DaskSource

    check_scalar(retries, "retries", Integral, min_val=0)
    if timeout is not None:
        check_scalar(timeout, "timeout", Real, min_val=0, include_boundaries="neither")
    return DaskSource(source, client, retries, timeout)


def _checked_memory(memory: Any) -> int:
    check_scalar(memory, "memory", Real, min_val=0, include_boundaries="neither")
    return max(1, int(memory))


def progress(callback: Callback) -> AbstractContextManager[None]:
    """Within this block, report the progress of passes over many rows.

    Parameters
    ----------
    callback : callable
        Called with the number of the pass, the number of rows done, and the number of
        all rows or None, after every few ten thousand rows, in the thread that called
        ``fit`` or ``predict``. Passes over the unlabeled rows are numbered from 1, as
        ``n_passes_`` counts them. Number 0 is for rows read before the first one:
        labeled rows, if there are many, and the blocks of a cluster when they are first
        examined. An exception that it raises ends the fit.
    """
    return listen(callback)


@contextmanager
def bar(title: str = "") -> Iterator[None]:
    """Within this block, show a bar for the current pass over many rows.

    The bar is drawn on the error stream. If that is not a terminal, a line is written
    every ten seconds.

    Parameters
    ----------
    title : str, default=""
        Text before the bar.
    """
    with show_cells(quiet=False, unit="rows", title=title) as advance:

        def write(n_pass: int, n_done: int, n_all: int | None) -> None:
            advance(f"{title} pass {n_pass}".lstrip(), n_done, n_all or n_done, 0)

        with listen(write):
            yield
