"""Which backend reads rows, by the name of their type: nothing is imported to find out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from .._core.problem import Rows
from .._core.types import AnyArray, Array
from .base import Request

# Package that a type comes from -> module of this folder.
_BACKENDS = {
    "array_api_strict": "device",
    "cupy": "device",
    "jax": "device",
    "jaxlib": "device",
    "torch": "device",
    "dask": "dask",
    "dask_expr": "dask",
}
# Types of packages whose others are arrays or tables in memory.
_FILE_TYPES = {
    ("polars", "LazyFrame"),
    ("pyarrow", "Dataset"),
    ("pyarrow", "FileSystemDataset"),
    ("pyarrow", "InMemoryDataset"),
    ("pyarrow", "UnionDataset"),
    ("pyarrow", "RecordBatchReader"),
}
# Taken for arrays in memory unless they are large.
_LARGE_TYPES = {("numpy", "memmap"), ("pyarrow", "Table")}
_LARGE = 2**28  # bytes
_WITH_COLUMNS = {"numpy", "pandas", "polars"}  # whose 1-d arrays may hold paths
_FEW = 64  # entries of a list that are looked at: one that holds a path must hold nothing else


class OpenRows(Rows, Protocol):
    """Rows of a source, and what it calls its columns. What callers rely on beyond the types:

    - ``sample(n, seed)`` with n of ``n_rows`` or more gives all members, in their order, with
      their own weights: labeled rows are taken into memory this way.
    - NaN and infinity are the backend's to find, when it first reads them: a ValueError that names
      row or block, and column. Nobody looks at the rows of a source before, and nobody looks at
      what a fit does not read (unlabeled rows, by ``SupervisedLDA``) unless it is ``Checkable``.
    - A pass calls ``progress.report`` after every few ten thousand rows, in the thread of the
      caller, who counts the passes.
    - If the number of rows is found by reading, they are ``Countable``, and ``n_rows`` may be an
      upper bound until the first pass; but it is 0 once a sample found nothing.
    """

    @property
    def feature_names(self) -> Sequence[str] | None: ...


@runtime_checkable
class Checkable(Protocol):
    """Rows that are at hand, and can be looked at even where a fit does not sum them."""

    def check_finite(self) -> None:
        """ValueError that names the first row and column with NaN or infinity."""
        ...


@runtime_checkable
class Countable(Protocol):
    """Rows whose number may have to be found by reading."""

    def count(self) -> int:
        """Exact number of rows; reads them if it is not known otherwise."""
        ...


@runtime_checkable
class Reopenable(Protocol):
    """Rows that learned or kept something of X when it was first opened, not to be lost."""

    @property
    def source(self) -> Any:
        """What to open in place of X from then on."""
        ...


class Backend(Protocol):
    """A module of this folder."""

    def open_rows(
        self,
        X: Any,
        request: Request,
        weights: Array | None = None,
        is_member: AnyArray | None = None,
    ) -> OpenRows:
        """Rows of a source, those that ``is_member`` marks.

        Reads little or nothing; what a block holds is checked when it is read.
        """
        ...

    def apply_to_rows(self, X: Any, function: Callable[[Any], Any], request: Request) -> Any:
        """Results of a function of (n, d) rows, whose result has n entries, in the same order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


def backend_of(X: Any) -> Backend | None:
    """The module that reads X; None is an array, or what can be made one, in memory."""
    name = _name_of_backend(X)
    if name is None:
        return None
    return cast(Backend, import_module(f".{name}", __package__))


def in_memory(values: Any) -> Any:
    """Labels, weights or results from a device in memory; anything else as it is."""
    if is_device_array(values):
        from .device import to_host

        return to_host(values)
    return values


def is_device_array(values: Any) -> bool:
    """Whether these are an array of another library than NumPy."""
    return _name_of_backend(values) == "device"


def is_lazy(X: Any) -> bool:
    """Whether results for these rows are computed lazily."""
    return _name_of_backend(X) == "dask"


def _name_of_backend(X: Any) -> str | None:
    own: str | None = getattr(type(X), "_iclda_backend", None)  # made by iclda.rows
    if own is not None:
        return own
    if is_path(X) or _may_hold_paths(X):
        return "files"
    package = _package_of(X)
    kind = package, type(X).__name__
    if kind in _FILE_TYPES or (kind in _LARGE_TYPES and X.nbytes > _LARGE):
        return "files"
    return _BACKENDS.get(package)


def _may_hold_paths(X: Any) -> bool:
    """A list of paths, or what should have been one: the files backend says so."""
    if isinstance(X, (set, frozenset, Iterator)):
        return True
    is_column = _package_of(X) in _WITH_COLUMNS and len(getattr(X, "shape", ())) == 1
    return (isinstance(X, (list, tuple)) or is_column) and any(map(is_path, list(X[:_FEW])))


def _package_of(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def is_path(value: Any) -> bool:
    """Whether it names a file."""
    return isinstance(value, (str, os.PathLike))
