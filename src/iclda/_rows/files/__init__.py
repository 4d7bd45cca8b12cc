"""Rows larger than memory: files, memory maps, tables and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.types import AnyArray, Array
from ..base import Request, check_names
from .readers import Reader
from .rows import FileRows
from .source import FileSource, is_table, source_of
from .tables import listed

__all__ = ["FileSource", "apply_to_rows", "open_rows"]


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> FileRows:
    """Rows of a source, read a few at a time."""
    source = source_of(X, request.name)
    reader = source.reader.named(request.name)
    reader.use_threads, reader.memory = request.n_threads > 1, source.memory
    expected = request.feature_names
    if expected is not None and reader.feature_names is not None:
        if is_table(X):  # the same rules as for a small one, which is taken for an array
            way_out = f"Pass {request.name}.select(feature_names_in_)."
            check_names(reader.feature_names, expected, request.name, way_out)
        reader = reader.selected(list(expected))
    _check_width(reader, request)
    rows = FileRows(
        reader,
        weights,
        is_member,
        n_threads=request.n_threads,
        memory=source.memory,
    )
    rows.source = FileSource(reader, source.memory)
    return rows


def _check_width(reader: Reader, request: Request) -> None:
    """ValueError unless there are as many columns as in the fit; of a table, with the way out."""
    try:
        request.check_width(reader.n_features)
    except ValueError as error:
        if reader.feature_names is None:
            raise
        raise ValueError(
            f"{error} Its columns are {listed(reader.feature_names)}, and X of fit has no names to "
            "choose among them: pass iclda.rows.open(..., columns=[...]), or a table as X."
        ) from None


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> AnyArray:
    """Results of a function of rows, as an array in memory."""
    return open_rows(X, request).applied(function)
