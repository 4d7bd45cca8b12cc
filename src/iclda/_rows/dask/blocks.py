"""One block of rows: what it holds, and whether that is what it must be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from ..._core.types import AnyArray
from ..base import BadRowsError, changed, check_finite, check_names


class UnreadableBlockError(RuntimeError):
    """A block whose loader failed, named in the message."""


@dataclass(frozen=True)
class Look:
    """What a block holds; small."""

    n_rows: int
    n_features: int
    dtype: str
    names: int | None = None  # checksum of the names of its columns; None: it is no table

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Known:
    """What a block is called, and what is known of it."""

    name: str
    number: int
    n_features: int | None
    n_rows: int | None = None  # once it was read
    begin: int = 0  # number of its first row among all
    names: tuple[str, ...] | None = None  # of the fit, which a table must have; until it was read

    def check_finite(self, rows: AnyArray, positions: AnyArray | None = None) -> None:
        """ValueError that names block, row and column of the first NaN or infinity."""
        check_finite(rows, self.label, numbers=positions, where=" of the block")

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"{self.name}, block {self.number}"


def rows_of(block: Any, known: Known) -> AnyArray:
    """The rows of a block, or of what its loader returns, checked against what is known."""
    return array_of(loaded(block, known), known)


def loaded(block: Any, known: Known) -> Any:
    """A block as it is, or what its loader returns."""
    if not callable(block):
        return block
    try:
        return block()
    except Exception as error:
        raise UnreadableBlockError(
            f"{known.label} could not be read: {type(error).__name__}: {error}"
        ) from error


def array_of(block: Any, known: Known) -> AnyArray:
    """The rows of an array or table, checked against what is known."""
    rows = _array_of(block)
    if rows.size == 0 and rows.ndim != 2:
        rows = np.zeros((0, known.n_features or 0))
    _check_shape(rows, known)
    if known.names is not None and len(rows) > 0:
        way_out = "Have its loader return the columns in the order of feature_names_in_."
        found = names_of(block)
        if found is not None:
            check_names(found, known.names, known.label, way_out)
    if rows.dtype.kind not in "biuf":
        _refuse_dtype(rows, known)
    if known.n_rows not in (None, len(rows)):
        raise changed(known.label, f"it has {len(rows)} rows, and had {known.n_rows}")
    return rows


def look_at(rows: AnyArray, names: Sequence[str] | None = None) -> Look:
    """What must be alike in all blocks."""
    mark_of_names = None if names is None else crc32(repr(list(names)).encode())
    return Look(len(rows), rows.shape[1], rows.dtype.str, mark_of_names)


def names_of(block: Any) -> list[str] | None:
    """Names of the columns of a table; None for an array, and for columns with numbers."""
    names = getattr(getattr(block, "schema", None), "names", None)  # pyarrow
    if not isinstance(names, list):
        names = list(getattr(block, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _array_of(block: Any) -> AnyArray:
    rows = np.asarray(block)
    if rows.dtype == object and hasattr(block, "to_numpy"):
        # Nullable columns of pandas: numbers, with NaN for what is missing.
        with suppress(TypeError, ValueError):
            return np.asarray(block.to_numpy(dtype=np.float64, na_value=np.nan))
    return rows


def _check_shape(rows: AnyArray, known: Known) -> None:
    expected = "its" if known.n_features is None else known.n_features
    if rows.ndim != 2:
        raise BadRowsError(
            f"{known.label} must be 2-d, rows x {expected} features, got shape {rows.shape}."
        )
    if len(rows) > 0 and known.n_features not in (None, rows.shape[1]):
        raise BadRowsError(
            f"{known.label} has {rows.shape[1]} columns, but X of fit has {known.n_features}."
        )


def _refuse_dtype(rows: AnyArray, known: Known) -> None:
    column = next((k for k, values in enumerate(rows.T) if not _is_numeric(values)), None)
    where = "" if column is None else f", first in column {column}"
    raise BadRowsError(
        f"{known.label} holds {rows.dtype}{where}: every column must hold real numbers, of a NumPy "
        "dtype. Convert it, or leave it out.",
        column,
    )


def _is_numeric(values: AnyArray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
