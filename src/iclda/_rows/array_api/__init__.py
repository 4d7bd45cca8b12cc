"""Rows of an array on any device: torch, CuPy, JAX, whatever follows the array API standard.

The rows stay on their device: what comes back are sums, and the rows of a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.types import AnyArray, Array
from .devices import place_of, to_host
from .rows import ArrayRows

__all__ = ["apply_to_rows", "open_rows", "to_host"]


def open_rows(
    X: Any,
    *,
    name: str,
    n_features: int | None = None,
    feature_names: AnyArray | None = None,
    weights: Array | None = None,
    is_member: AnyArray | None = None,
    n_threads: int = 1,
) -> ArrayRows:
    """Rows of a device array, whose columns have no names and whose device has its own threads."""
    X = _checked(X, name, n_features)
    return ArrayRows(X, weights, is_member, name=name, names=feature_names)


def apply_to_rows(
    X: Any,
    function: Callable[[Any], Any],
    *,
    name: str,
    n_features: int,
    feature_names: AnyArray | None = None,
    n_threads: int = 1,
) -> Any:
    """Results on the device of X; the function is given blocks of rows in floating point."""
    X = _checked(X, name, n_features)
    if X.shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={tuple(X.shape)}): {name} needs at least one row."
        )
    rows = ArrayRows(X, name=name, names=feature_names)
    results = rows.apply(function)
    if isinstance(results[0], np.ndarray):  # class names, which no device can hold
        return np.concatenate(results)
    return rows.place.xp.concat(results, axis=0)


def _checked(X: Any, name: str, n_features: int | None) -> Any:
    if hasattr(X, "detach"):
        X = X.detach()  # sums need no gradient
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must be 2-d, rows x features, got an array of shape {shape}.")
    if n_features is None and 0 in shape:
        raise ValueError(f"{name} has shape {shape}, and needs at least one row and one feature.")
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"{name} has {shape[1]} features, but X of fit has {n_features}.")
    if place_of(X).xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: {name} has dtype {X.dtype}. Split it into two columns."
        )
    return X
