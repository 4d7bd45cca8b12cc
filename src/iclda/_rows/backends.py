"""The kinds of rows, and which backend reads each: nothing is imported to recognize them.

A backend is a module of this folder with the two functions of ``Backend``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from .._core.types import AnyArray, Array
from .base import Request, WeightedRows

_LARGE_BYTES = 2**28


@dataclass(frozen=True)
class RowsKind:
    """A kind of rows: what people call it, how it is recognized, and what reads it."""

    words: str
    keys: tuple[str, ...]  # suffixes of files, types (package.name), or packages with all types
    backend: str  # a module of this folder
    reader: str = ""  # a class or function of ``readers``, for the backend ``files``
    is_array_if_small: bool = False  # below ``_LARGE_BYTES`` it is read as an array in memory


KINDS = (
    RowsKind("a .npy file", (".npy",), "files", "NumpyFiles"),
    RowsKind("a Parquet file", (".parquet", ".pq"), "files", "ParquetFiles"),
    RowsKind("a NumPy memory map", ("numpy.memmap",), "files", "SlicedArray", True),
    RowsKind("an h5py dataset", ("h5py.Dataset",), "files", "SlicedArray"),
    RowsKind("a pyarrow dataset", ("pyarrow.Dataset",), "files", "dataset_reader"),
    RowsKind("a pyarrow table", ("pyarrow.Table",), "files", "table_reader", True),
    RowsKind("a polars LazyFrame", ("polars.LazyFrame",), "files", "query_reader"),
    RowsKind("a Dask array or dataframe", ("dask", "dask_expr"), "dask"),
    RowsKind(
        "an array of torch, CuPy or JAX",
        ("torch", "cupy", "jax", "jaxlib", "array_api_strict"),
        "device",
    ),
)
KIND_BY_KEY = {key: kind for kind in KINDS for key in kind.keys}
SUFFIXES = tuple(key for key in KIND_BY_KEY if key.startswith("."))


class Backend(Protocol):
    def open_rows(
        self,
        X: Any,
        request: Request,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
    ) -> WeightedRows:
        """Return the rows of a source, or those that ``is_member`` marks. Reads little or nothing.

        Beyond the types, callers rely on this:

        - ``sample(n, seed)`` with n >= ``n_rows`` gives all members, in their order, with their own
          weights: labeled rows are taken into memory this way.
        - NaN and infinity raise a ValueError that names row or block, and column, when they are
          first read. Rows that a fit does not read (unlabeled ones, in ``SupervisedLDA``) are
          checked only if the backend has ``check_finite``.
        - A pass calls ``passes.report_progress`` after every few ten thousand rows, in the thread
          of the caller, who counts the passes.
        - If rows must be read to be counted, ``n_rows`` may be an upper bound until the first
          pass, but it is 0 after a sample without rows; ``count()`` is exact.
        """
        ...

    def apply_to_rows(self, X: Any, function: Callable[[Any], Any], request: Request) -> Any:
        """Return the results of a function of (n, d) rows, n entries for n rows, in their order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


def backend_of(X: Any) -> Backend | None:
    """Return the module that reads X; None for what is an array, or can be made one, in memory."""
    name = _name_of_backend(X)
    return None if name is None else cast(Backend, import_module(f".{name}", __package__))


def in_memory(values: Any) -> Any:
    """Return labels, weights or results from a device in memory; anything else as it is."""
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
    """Return package and name of a type."""
    return type(X).__module__.partition(".")[0], type(X).__name__


def find_kind(X: Any) -> RowsKind | None:
    """Return the kind that lists the type of X, or all types of its package."""
    package, _ = kind_of(X)
    names = [f"{package}.{each.__name__}" for each in type(X).__mro__]
    return next((KIND_BY_KEY[key] for key in [*names, package] if key in KIND_BY_KEY), None)


def _name_of_backend(X: Any) -> str | None:
    own: str | None = getattr(type(X), "_iclda_backend", None)  # made by iclda.rows
    if own is not None:
        return own
    if is_path(X) or (isinstance(X, (list, tuple)) and any(map(is_path, X[:1]))):
        return "files"
    kind = find_kind(X)
    if kind is None or (kind.is_array_if_small and X.nbytes <= _LARGE_BYTES):
        return None
    return kind.backend
