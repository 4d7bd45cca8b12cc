"""The reader for what a user passes: paths, folders, patterns, arrays and tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from .array_readers import NumpyFiles, SlicedArray
from .backends import KIND_BY_KEY, KINDS, SUFFIXES, RowsKind, find_kind, is_path
from .readers import Reader
from .table_readers import ParquetFiles, dataset_reader, query_reader, table_reader

# The reader of every kind of ``backends.KINDS`` that the files backend reads, by the
# first key of the kind.
_READERS: dict[str, Callable[[Any, str], Reader]] = {
    ".npy": NumpyFiles,
    ".parquet": ParquetFiles,
    "numpy.memmap": SlicedArray,
    "h5py.Dataset": SlicedArray,
    "pyarrow.Dataset": dataset_reader,
    "pyarrow.Table": table_reader,
    "polars.LazyFrame": query_reader,
}


def reader_of(X: Any, name: str) -> Reader:
    """Return a reader of paths, or of a kind of rows that the files backend reads."""
    kind = find_kind(X)
    source = X
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind = KIND_BY_KEY["numpy.memmap"]
    if kind is None or kind.backend != "files":
        source = _files_of(X, name)
        kind = _kind_of_file(source[0])
    reader = _READERS[kind.keys[0]](source, name)
    reader.words = kind.words
    return reader


def _kind_of_file(file: Path) -> RowsKind:
    return KIND_BY_KEY[file.suffix.lower()]


def _files_of(X: Any, name: str) -> list[Path]:
    """Return the files of paths, all of one format; TypeError if X is not a path."""
    paths = [X] if is_path(X) else X
    is_list = isinstance(paths, (list, tuple)) and len(paths) > 0
    if not is_list or not all(is_path(path) for path in paths):
        others = [
            kind.words
            for kind in KINDS
            if kind.backend == "files" and kind.keys[0] not in SUFFIXES
        ]
        raise TypeError(
            f"{name} must be a path, a list of at least one path, or one of "
            f"{', '.join(others)}, got {type(X).__name__}. Other arrays and tables, "
            "and what functions of iclda.rows return, are passed to a classifier as "
            "they are; for a list of them, and anything else that can be read again, "
            "there is iclda.rows.from_batches."
        )
    files = [file for path in paths for file in _expand(os.fspath(path), name)]
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"{name}: unknown format of {file}. Files that end in "
                f"{', '.join(SUFFIXES)} are read; for others pass an h5py dataset, a "
                "pyarrow dataset, a polars LazyFrame, or iclda.rows.from_batches."
            )
    if len({_kind_of_file(file) for file in files}) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(
            f"{name} mixes files of several formats ({shown}): pass those of one."
        )
    return files


def _expand(path: str, name: str) -> list[Path]:
    """Return the files of a folder or pattern in the order of their names."""
    if not os.path.exists(path):
        path = os.path.expanduser(path)
    if os.path.isdir(path):
        candidates = [
            file for file in Path(path).rglob("*") if _is_data_file(file, Path(path))
        ]
    elif os.path.isfile(path):
        candidates = [Path(path)]
    else:
        candidates = [Path(match) for match in glob(path, recursive=True)]
    files = sorted(file for file in candidates if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"{name}: there is no file {path}, nor in it one that ends in "
            f"{', '.join(SUFFIXES)}."
        )
    return files


def _is_data_file(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder holds rows.

    Names that begin with a dot or an underscore are left out: engines write _SUCCESS,
    _metadata and temporary files.
    """
    if file.suffix.lower() not in SUFFIXES:
        return False
    return not any(part[0] in "._" for part in file.relative_to(folder).parts)
