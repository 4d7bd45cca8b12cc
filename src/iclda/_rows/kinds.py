"""The kinds of rows: how they are recognized, and what reads them.

``KINDS`` is the table of everything that can be passed in place of an array in memory.
Nothing is imported to recognize a kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from .batch_readers import ParquetFiles, dataset_reader, query_reader, table_reader
from .places import to_host
from .readers import NumpyFiles, Reader, SlicedArray

# Memory maps and pyarrow tables up to this size are read as arrays in memory.
_MAX_ARRAY_BYTES = 2**28
# Paths that a message shows.
_SHOWN_PATHS = 3


@dataclass(frozen=True)
class RowsKind:
    """A kind of rows: what people call it, how it is recognized, and what reads it.

    Attributes
    ----------
    words : str
        What messages and documents call it.
    keys : tuple of str
        Suffixes of files, types (package.name, whatever module of the package defines
        them), or packages, with all of their types.
    reader : callable or None
        For the backend ``files``: returns the reader of an object of this kind, or of a
        list of files, for an argument with this name.
    backend : str
        The module of this folder that has the sums.
    is_array_if_small : bool
        Whether it is read as an array in memory unless it is large.
    """

    words: str
    keys: tuple[str, ...]
    reader: Callable[[Any, str], Reader] | None = None
    backend: str = "files"
    is_array_if_small: bool = False


KINDS = (
    RowsKind("a .npy file", (".npy",), NumpyFiles),
    RowsKind("a Parquet file", (".parquet", ".pq"), ParquetFiles),
    RowsKind(
        "a NumPy memory map", ("numpy.memmap",), SlicedArray, is_array_if_small=True
    ),
    RowsKind("an h5py dataset", ("h5py.Dataset",), SlicedArray),
    RowsKind("a pyarrow dataset", ("pyarrow.Dataset",), dataset_reader),
    RowsKind(
        "a pyarrow table", ("pyarrow.Table",), table_reader, is_array_if_small=True
    ),
    RowsKind("a polars LazyFrame", ("polars.LazyFrame",), query_reader),
    RowsKind("a Dask array or dataframe", ("dask", "dask_expr"), backend="dask"),
    RowsKind(
        "an array of torch, CuPy or JAX",
        ("torch", "cupy", "jax", "jaxlib", "array_api_strict"),
        backend="device",
    ),
)
_KIND_BY_KEY = {key: kind for kind in KINDS for key in kind.keys}
_SUFFIXES = tuple(key for key in _KIND_BY_KEY if key.startswith("."))
_SUFFIX_LIST = ", ".join(_SUFFIXES)
# The kinds of objects, not of files, that have a reader, as messages list them.
_OBJECT_LIST = ", ".join(
    kind.words for kind in KINDS if kind.reader and kind.keys[0] not in _SUFFIXES
)


# Objects.


def package_and_type(X: Any) -> tuple[str, str]:
    """Return the names of the package and of the type of an object."""
    package = type(X).__module__.partition(".")[0]
    return package, type(X).__name__


def find_kind(X: Any) -> RowsKind | None:
    """Return the kind that lists the type of X, or all types of its package."""
    # Packages move their types between modules: only the first name counts.
    package, _ = package_and_type(X)
    types = [f"{package}.{each.__name__}" for each in type(X).__mro__]
    for key in [*types, package]:
        if key in _KIND_BY_KEY:
            return _KIND_BY_KEY[key]
    return None


def name_of_backend(X: Any) -> str | None:
    """Return the module that reads X; None if X is, or becomes, an array in memory."""
    # Objects that the functions of iclda.rows return name their backend.
    own_backend: str | None = getattr(type(X), "_iclda_backend", None)
    if own_backend is not None:
        return own_backend
    # Paths are recognized by the first one; ``reader_of`` looks at all of them.
    first = X[0] if isinstance(X, (list, tuple)) and len(X) > 0 else X
    if _is_path(first):
        return "files"
    kind = find_kind(X)
    if kind is None:
        return None
    if kind.is_array_if_small and X.nbytes <= _MAX_ARRAY_BYTES:
        return None
    return kind.backend


def is_device_array(values: Any) -> bool:
    """Return whether the values are an array of another library than NumPy."""
    return name_of_backend(values) == "device"


def in_memory(values: Any) -> Any:
    """Return an array of a device as one of NumPy, and anything else unchanged."""
    return to_host(values) if is_device_array(values) else values


def reader_of(X: Any, name: str) -> Reader:
    """Return a reader of paths, of an array, or of a kind of rows that has a reader."""
    kind = find_kind(X)
    source = X
    # Who opens an array wants it to be read in parts, with progress.
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind = _KIND_BY_KEY["numpy.memmap"]
    if kind is None or kind.reader is None:
        source = _files_of(X, name)
        kind = _kind_of_file(source[0])
    assert kind.reader is not None
    reader = kind.reader(source, name)
    reader.words = kind.words
    return reader


# Files.


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _kind_of_file(file: Path) -> RowsKind:
    return _KIND_BY_KEY[file.suffix.lower()]


def _files_of(X: Any, name: str) -> list[Path]:
    """Return the files of paths, all of one format; TypeError if X is not a path."""
    paths = X if isinstance(X, (list, tuple)) else [X]
    if len(paths) == 0 or not all(_is_path(path) for path in paths):
        raise TypeError(
            f"{name} must be a path, a list of at least one path, or one of "
            f"{_OBJECT_LIST}, got {type(X).__name__}. Other arrays and tables, and "
            "what functions of iclda.rows return, are passed to a classifier as they "
            "are; for a list of them, and anything else that can be read again, there "
            "is iclda.rows.from_batches."
        )
    files = [file for path in paths for file in _expand(os.fspath(path), name)]
    for file in files:
        if file.suffix.lower() not in _SUFFIXES:
            raise ValueError(
                f"{name}: unknown format of {file}. Files that end in {_SUFFIX_LIST} "
                f"are read; for others pass {_OBJECT_LIST}, or "
                "iclda.rows.from_batches."
            )
    if len({_kind_of_file(file) for file in files}) > 1:
        shown = ", ".join(str(file) for file in files[:_SHOWN_PATHS])
        raise ValueError(
            f"{name} mixes files of several formats ({shown}): pass those of one."
        )
    return files


def _expand(path: str, name: str) -> list[Path]:
    """Return the files of a folder or pattern in the order of their names."""
    # A file may be called ~, too.
    if not os.path.exists(path):
        path = os.path.expanduser(path)
    candidates: Iterable[Path]
    if os.path.isdir(path):
        folder = Path(path)
        candidates = (each for each in folder.rglob("*") if _is_data_file(each, folder))
    elif os.path.isfile(path):
        # Its name may look like a pattern.
        candidates = [Path(path)]
    else:
        candidates = map(Path, glob(path, recursive=True))
    # File systems list files in any order, and rows must come in the same order every
    # time.
    files = sorted(file for file in candidates if file.is_file())
    if not files:
        if os.path.isdir(path):
            problem = f"there is no file in {path} that ends in {_SUFFIX_LIST}"
        elif has_magic(path):
            problem = f"there is no file that matches {path}"
        else:
            problem = f"there is no file {path}"
        raise FileNotFoundError(
            f"{name}: {problem}. Relative paths start at {os.getcwd()}."
        )
    return files


def _is_data_file(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder holds rows.

    Names that begin with a dot or an underscore are left out: engines write _SUCCESS,
    _metadata and temporary files.
    """
    if file.suffix.lower() not in _SUFFIXES:
        return False
    return not any(part[0] in "._" for part in file.relative_to(folder).parts)
