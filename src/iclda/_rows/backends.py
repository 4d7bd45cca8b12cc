"""Which backend reads rows, by the name of their type: nothing is imported to find out.

A backend is a module of this folder with the two functions of ``Backend``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

from .._core.types import AnyArray, Array
from .base import Request, WeightedRows

# Package that a type comes from -> module of this folder.
BACKENDS = {
    "array_api_strict": "device",
    "cupy": "device",
    "jax": "device",
    "jaxlib": "device",
    "torch": "device",
    "dask": "dask",
    "dask_expr": "dask",
}
# Types of packages whose other types are arrays or tables in memory.
_FILE_TYPES = {
    ("polars", "LazyFrame"),
    ("pyarrow", "Dataset"),
    ("pyarrow", "FileSystemDataset"),
    ("pyarrow", "InMemoryDataset"),
    ("pyarrow", "UnionDataset"),
    ("pyarrow", "RecordBatchReader"),
}
# Read as arrays in memory unless they are large.
_LARGE_TYPES = {("numpy", "memmap"), ("pyarrow", "Table")}
_LARGE = 2**28  # bytes
_WITH_COLUMNS = {"numpy", "pandas", "polars"}  # whose 1-d arrays may hold paths
_FEW = 64  # entries of a list that are inspected: one that holds a path must hold nothing else


class Backend(Protocol):
    def open_rows(
        self,
        X: Any,
        request: Request,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
    ) -> WeightedRows:
        """Rows of a source, those that ``is_member`` marks. Reads little or nothing.

        Beyond the types, callers rely on this:

        - ``sample(n, seed)`` with n >= ``n_rows`` gives all members, in their order, with their own
          weights: labeled rows are taken into memory this way.
        - NaN and infinity raise a ValueError that names row or block, and column, when they are
          first read. Rows that a fit does not read (unlabeled ones, in ``SupervisedLDA``) are
          checked only if the backend has ``check_finite``.
        - A pass calls ``passes.report_progress`` after every few ten thousand rows, in the thread
          of the caller, who counts the passes.
        - If the number of rows is found by reading, ``n_rows`` may be an upper bound until the
          first pass, but it is 0 once a sample found nothing; ``count()`` is exact.
        """
        ...

    def apply_to_rows(self, X: Any, function: Callable[[Any], Any], request: Request) -> Any:
        """Results of a function of (n, d) rows, whose result has n entries, in the same order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


def backend_of(X: Any) -> Backend | None:
    """The module that reads X; None for an array, or what can be made one, in memory."""
    name = _name_of_backend(X)
    if name is None:
        return None
    return cast(Backend, import_module(f".{name}", __package__))


def in_memory(values: Any) -> Any:
    """Labels, weights or results from a device in memory; anything else as it is."""
    if is_device_array(values):
        from .device_sums import to_host

        return to_host(values)
    return values


def is_device_array(values: Any) -> bool:
    """Whether these are an array of another library than NumPy."""
    return _name_of_backend(values) == "device"


def is_lazy(X: Any) -> bool:
    """Whether results for these rows are computed lazily."""
    return _name_of_backend(X) == "dask"


def is_path(value: Any) -> bool:
    """Whether it names a file."""
    return isinstance(value, (str, os.PathLike))


def kind_of(X: Any) -> tuple[str, str]:
    """Package and name of a type."""
    return type(X).__module__.partition(".")[0], type(X).__name__


def _name_of_backend(X: Any) -> str | None:
    own: str | None = getattr(type(X), "_iclda_backend", None)  # made by iclda.rows
    if own is not None:
        return own
    if is_path(X) or _may_hold_paths(X):
        return "files"
    kind = kind_of(X)
    if kind in _FILE_TYPES or (kind in _LARGE_TYPES and X.nbytes > _LARGE):
        return "files"
    return BACKENDS.get(kind[0])


def _may_hold_paths(X: Any) -> bool:
    """A list of paths, or what should have been one: the files backend raises the error."""
    if isinstance(X, (set, frozenset, Iterator)):
        return True
    is_column = kind_of(X)[0] in _WITH_COLUMNS and len(getattr(X, "shape", ())) == 1
    return (isinstance(X, (list, tuple)) or is_column) and any(map(is_path, list(X[:_FEW])))
