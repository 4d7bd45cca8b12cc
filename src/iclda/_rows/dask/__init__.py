"""Rows on the workers of a Dask cluster: sums are formed and added up where the rows are.

A pass is one graph: a task for every block, then a tree of sums in the order of the blocks. The
result therefore does not depend on which worker did what, or how often. Only the total comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

try:
    import dask.delayed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Dask reads these rows, and is not installed: pip install 'iclda[dask]'."
    ) from error

from ..._core.types import AnyArray, Array
from ..base import Request
from .blocks import Known, applied
from .rows import DaskRows, Opened, open_blocks
from .source import DaskSource, array_of, blocks_of, check_features, kind_of, plain_names
from .workers import Workers, workers_of

__all__ = ["DaskSource", "apply_to_rows", "open_rows"]


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> DaskRows:
    """Rows of a Dask array or dataframe, or of loaders. Blocks are looked at the first time."""
    if not isinstance(X, DaskSource):
        kind_of(X, request.name)
        X = DaskSource(X)
    source: DaskSource = X
    workers = workers_of(source.client, source.retries, source.timeout)
    if not _is_open(source, workers, request.feature_names):
        found = blocks_of(source.source, request)
        source.opened = open_blocks(found, workers, request.name, source.persist)
    opened: Opened = source.opened
    check_features(opened.n_features, opened.found.feature_names, request)
    rows = DaskRows(opened, weights, is_member, request.n_threads)
    rows.source = source
    return rows


def _is_open(source: DaskSource, workers: Workers, feature_names: AnyArray | None) -> bool:
    """Whether its blocks were read, and their names, if found by reading, compared with these."""
    opened = source.opened
    if opened is None or not opened.is_alive(workers):
        return False
    names, found = plain_names(feature_names), opened.found
    is_compared = names in (None, found.expected, plain_names(found.feature_names))
    return is_compared or not isinstance(source.source, list)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> Any:
    """A Dask array of results, not computed."""
    source = X.source if isinstance(X, DaskSource) else X
    rows = array_of(source, request)
    none = np.asarray(function(np.zeros((1, rows.shape[1]))))[:0]
    shape: dict[str, Any] = {"drop_axis": 1, "chunks": (rows.chunks[0],)}
    if none.ndim == 2:
        shape = {"chunks": (rows.chunks[0], (none.shape[1],))}
    known = Known(request.name, 0, request.n_features)
    task = partial(applied, known=known, function=function, none=none)
    return rows.map_blocks(task, dtype=none.dtype, meta=none, **shape)
