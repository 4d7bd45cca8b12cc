"""Rows of an array on any device: torch, CuPy, JAX, whatever follows the array API standard.

The rows stay on their device: what comes back are sums, and the rows of a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.types import AnyArray, Array
from ..base import Request
from .devices import place_of, to_host
from .rows import ArrayRows

__all__ = ["apply_to_rows", "open_rows", "to_host"]


def open_rows(
    X: Any, request: Request, weights: Array | None = None, is_member: AnyArray | None = None
) -> ArrayRows:
    """Rows of a device array, whose columns have no names and whose device has its own threads."""
    X = _checked(X, request)
    return ArrayRows(X, weights, is_member, name=request.name, names=request.feature_names)


def apply_to_rows(X: Any, function: Callable[[Any], Any], request: Request) -> Any:
    """Results on the device of X; the function is given blocks of rows in floating point."""
    rows = open_rows(X, request)
    if rows.n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={tuple(X.shape)}): {request.name} needs at least "
            "one row."
        )
    results = rows.apply(function)
    if isinstance(results[0], np.ndarray):  # class names, which no device can hold
        return np.concatenate(results)
    return rows.place.xp.concat(results, axis=0)


def _check_tensor(X: Any, name: str) -> None:
    """TypeError or ValueError for a tensor of torch whose numbers are not all there."""
    if str(X.layout) != "torch.strided":
        raise TypeError(
            f"{name} is a sparse tensor ({X.layout}), and rows must be dense: pass "
            f"{name}.to_dense()."
        )
    if X.is_meta:
        raise ValueError(
            f"{name} is on the meta device, which holds shapes and no numbers: pass a tensor with "
            "data."
        )


def _checked(X: Any, request: Request) -> Any:
    name = request.name
    if hasattr(X, "detach"):
        _check_tensor(X, name)
        X = X.detach()  # sums need no gradient
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must be 2-d, rows x features, got an array of shape {shape}.")
    if request.n_features is None and 0 in shape:
        raise ValueError(f"{name} has shape {shape}, and needs at least one row and one feature.")
    request.check_width(shape[1])
    if place_of(X).xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: {name} has dtype {X.dtype}. Split it into two columns."
        )
    return X
