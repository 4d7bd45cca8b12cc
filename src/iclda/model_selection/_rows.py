"""Rows of what a user passes along with X and y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils import _safe_indexing

from .._core.types import AnyArray


def cut(params: Mapping[str, Any], rows: AnyArray, n_rows: int) -> dict[str, Any]:
    """The given rows of what has one entry for each of ``n_rows`` rows; anything else as it is."""
    return {
        name: _safe_indexing(value, rows) if _has_rows(value, n_rows) else value
        for name, value in params.items()
    }


def _has_rows(value: Any, n_rows: int) -> bool:
    if isinstance(value, (str, Mapping)):
        return False
    if hasattr(value, "shape"):
        return bool(value.shape) and value.shape[0] == n_rows
    return hasattr(value, "__len__") and len(value) == n_rows
