"""What the user passes, as a list of blocks: Dask arrays, Dask dataframes, loaders."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from numbers import Real
from typing import Any, ClassVar

import dask
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed, delayed

from ..._core.types import AnyArray
from ..base import Request, check_names, column_names
from .blocks import Known, rows_of


@dataclass(eq=False, repr=False)
class DaskSource:
    """A Dask collection or a list of loaders, with settings: see ``iclda.rows.from_dask``."""

    _iclda_backend: ClassVar[str] = "dask"
    source: Any
    client: Any = None
    persist: bool | None = None
    retries: int = 2
    timeout: float | None = 600.0
    opened: Any = None  # blocks once looked at, as long as this lives

    def __repr__(self) -> str:
        n_blocks = "" if not isinstance(self.source, list) else f"{len(self.source)} "
        return f"<rows of {n_blocks}{kind_of(self.source, 'source')}>"

    def __post_init__(self) -> None:
        if isinstance(self.source, (list, tuple)):
            self.source = list(self.source)
            _check_loaders(self.source)
        elif not hasattr(self.source, "to_delayed") and not isinstance(self.source, Delayed):
            raise TypeError(
                "source must be a Dask array, a Dask dataframe, or a list of loaders, got "
                f"{type(self.source).__name__}. Rows in memory are passed to a classifier as they "
                "are; dask.array.from_array cuts them into blocks for the workers of a cluster."
            )
        else:
            kind_of(self.source, "source")
        if not isinstance(self.retries, (int, np.integer)) or self.retries < 0:
            raise ValueError(f"retries must be an integer, 0 or more, got {self.retries!r}.")
        _check_timeout(self.timeout)
        if self.persist not in (None, True, False):
            raise ValueError(f"persist must be True, False or None, got {self.persist!r}.")
        if self.client is not None and not hasattr(self.client, "asynchronous"):
            raise TypeError(
                f"client must be a distributed.Client, or None, got {type(self.client).__name__}: "
                "pass distributed.Client(address)."
            )


def _check_timeout(timeout: Any) -> None:
    if timeout is not None and not (isinstance(timeout, Real) and 0 < float(timeout) < inf):
        raise ValueError(f"timeout must be a positive number of seconds, or None, got {timeout!r}.")


@dataclass(frozen=True)
class Blocks:
    """What a task takes for every block, and what is known of all of them without a read.

    An input is a key of ``graph``, a loader, which is called where the task runs, a block, or the
    future of one: those of an array that the user has persisted.
    """

    inputs: list[Any]
    graph: dict[Any, Any]
    n_features: int | None
    feature_names: Sequence[str] | None = None
    n_bytes: float | None = None
    expected: tuple[str, ...] | None = None  # names of the fit, to compare blocks with
    is_array: bool = False
    is_kept: bool = False  # the inputs are futures of the workers


def blocks_of(source: Any, request: Request) -> Blocks:
    """The blocks of a source, whose columns must be those of the fit."""
    kind = kind_of(source, request.name)
    if kind == "loaders":
        return _blocks_of_loaders(source, request)
    width, names = _check_columns(source, request)
    is_sized = kind == "array" and not np.isnan(source.shape[0])
    n_bytes = float(source.nbytes) if is_sized else None
    futures = _futures_of(source) if kind == "array" else []
    if futures:
        return Blocks(futures, {}, width, names, n_bytes, is_array=True, is_kept=True)
    best = _optimized(source)
    keys = list(flatten(best.__dask_keys__()))
    graph = dict(best.__dask_graph__())
    return Blocks(keys, graph, width, names, n_bytes, is_array=kind == "array")


def _futures_of(array: Any) -> list[Any]:
    """Blocks that the workers keep because the user has persisted them; empty if some are not."""
    if "distributed" not in sys.modules:
        return []
    graph = array.__dask_graph__()
    found = [graph.get(key) for key in flatten(array.__dask_keys__())]
    is_future = [isinstance(one, sys.modules["distributed"].Future) for one in found]
    return found if all(is_future) else []


def _optimized(source: Any) -> Any:
    """The same rows by fewer tasks."""
    # Of a dataframe with operations on it, dask.optimize gives keys that name other rows.
    if hasattr(source, "optimize"):
        return source.optimize()
    (best,) = dask.optimize(source)
    return best


def _check_columns(source: Any, request: Request) -> tuple[int, list[str] | None]:
    """Number and names of the columns of an array or dataframe, as in the fit."""
    names = None
    if kind_of(source, request.name) == "array":
        _check_array(source, request.name)
    else:
        names = column_names(source)
    check_features(source.shape[1], names, request)
    return source.shape[1], names


def _blocks_of_loaders(loaders: list[Any], request: Request) -> Blocks:
    graph: dict[Any, Any] = {}
    inputs = []
    for loader in loaders:
        if isinstance(loader, Delayed):
            graph.update(loader.__dask_graph__())
            loader = loader.key
        inputs.append(loader)
    return Blocks(inputs, graph, request.n_features, expected=plain_names(request.feature_names))


def plain_names(names: AnyArray | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of the fit as they travel."""
    return None if names is None else tuple(map(str, names))


def array_of(source: Any, request: Request) -> Any:
    """A Dask array of the rows, not read."""
    import dask.array

    kind, n_features = kind_of(source, request.name), request.n_features
    assert n_features is not None
    if kind != "loaders":
        _check_columns(source, request)
    if kind == "array":
        return source
    parts = []
    names = plain_names(request.feature_names) if kind == "loaders" else None
    for i, block in enumerate(source if kind == "loaders" else source.to_delayed()):
        task = partial(rows_of, known=Known(request.name, i, n_features, names=names))
        rows = (
            delayed(task)(block) if isinstance(block, Delayed) else delayed(partial(task, block))()
        )
        shape = (np.nan, n_features)
        parts.append(dask.array.from_delayed(rows, shape, meta=np.empty((0, n_features))))
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def kind_of(source: Any, name: str) -> str:
    """Array, dataframe or loaders; TypeError for anything else, with what it must be."""
    if isinstance(source, list):
        return "loaders"
    if not isinstance(source, Delayed) and hasattr(source, "to_delayed"):
        if hasattr(source, "rechunk"):
            return "array"
        if hasattr(source, "columns") and source.ndim == 2:
            return "dataframe"
        if hasattr(source, "to_frame"):
            raise TypeError(
                f"{name} must be 2-d, rows x features, got a Dask {type(source).__name__}: pass "
                f"{name}.to_frame(), a dataframe of one column."
            )
    raise TypeError(
        f"{name} must be a Dask array, a Dask dataframe, or iclda.rows.from_dask(...) of one of "
        f"them or of a list of loaders, got {type(source).__name__}."
    )


def _check_loaders(loaders: list[Any]) -> None:
    if not loaders:
        raise ValueError("source is an empty list: pass one loader for every block of rows.")
    for i, loader in enumerate(loaders):
        if not callable(loader):  # delayed objects are
            raise TypeError(
                f"source[{i}] must be a function without arguments or a delayed object, which "
                f"returns a block of rows, got {type(loader).__name__}."
            )


def _check_array(array: Any, name: str) -> None:
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-d, rows x features, got shape {array.shape}.")
    if np.isnan(array.shape[1]):
        raise ValueError(
            f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        )
    if len(array.chunks[1]) > 1:
        raise ValueError(
            f"{name} is cut along its columns, into {array.chunks[1]}, and every block must hold "
            f"whole rows: pass {name}.rechunk({{1: -1}})."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got an array of {array.dtype}.")


def check_features(n_found: int, found: Sequence[str] | None, request: Request) -> None:
    """ValueError unless number and names of the columns are those of the fit, where known."""
    request.check_width(n_found)
    name, expected = request.name, request.feature_names
    if found is None or expected is None:
        return
    check_names(found, expected, name, f"Pass {name}[feature_names_in_].")
