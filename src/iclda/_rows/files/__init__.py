"""Rows larger than memory: files, memory maps, tables and batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..._core.types import AnyArray, Array
from .reader import DEFAULT_MEMORY, Reader
from .readers import reader_of
from .rows import FileRows
from .slabs import Remembered


@dataclass(frozen=True, repr=False)
class FileSource:
    """Rows that a classifier takes in place of an array."""

    reader: Reader
    memory: int = DEFAULT_MEMORY
    remembered: Remembered | None = None  # what one fit read before its first pass

    _iclda_backend = "files"

    def __repr__(self) -> str:
        n_rows = "?" if self.reader.n_rows is None else self.reader.n_rows
        return f"<{n_rows} x {self.reader.n_features} rows of {type(self.reader).__name__}>"


def source_of(X: Any, name: str, memory: int = DEFAULT_MEMORY) -> FileSource:
    """X as a source; one that is a source already stays what it is."""
    return X if isinstance(X, FileSource) else FileSource(reader_of(X, name), memory)


def open_rows(
    X: Any,
    *,
    name: str,
    n_features: int | None = None,
    feature_names: AnyArray | None = None,
    weights: Array | None = None,
    is_member: AnyArray | None = None,
    n_threads: int = 1,
) -> FileRows:
    """Rows of a source, read a few at a time."""
    source = source_of(X, name)
    reader = source.reader.named(name)
    reader.use_threads, reader.memory = n_threads > 1, source.memory
    if feature_names is not None and reader.feature_names is not None:
        reader = reader.selected(list(feature_names))
    if n_features is not None and reader.n_features != n_features:
        raise ValueError(f"{name} has {reader.n_features} features, but X of fit has {n_features}.")
    rows = FileRows(
        reader,
        weights,
        is_member,
        n_threads=n_threads,
        memory=source.memory,
        remembered=source.remembered,
    )
    rows.source = FileSource(reader, source.memory, Remembered())
    return rows


def apply_to_rows(
    X: Any,
    function: Callable[[Any], Any],
    *,
    name: str,
    n_features: int,
    feature_names: AnyArray | None = None,
    n_threads: int = 1,
) -> AnyArray:
    """Results of a function of rows, as an array in memory."""
    return open_rows(
        X, name=name, n_features=n_features, feature_names=feature_names, n_threads=n_threads
    ).applied(function)
