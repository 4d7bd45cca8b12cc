"""The choice of a backend for what a user passes as rows."""

from __future__ import annotations

from typing import Any

from .._core import AnyArray, Array
from .kinds import name_of_backend, package_and_type
from .memory import MemoryRows
from .protocol import Backend, Request, WeightedRows


def backend_of(X: Any) -> Backend | None:
    """Return the module that reads X; None if X is, or becomes, an array in memory."""
    name = name_of_backend(X)
    # Backends are imported when they are used: their libraries are optional.
    if name == "files":
        from . import files

        return files
    if name == "device":
        from . import device

        return device
    if name == "dask":
        from . import dask

        return dask
    if hasattr(X, "shape") and not (hasattr(X, "__array__") or hasattr(X, "toarray")):
        raise TypeError(
            f"Rows of the type {'.'.join(package_and_type(X))} are not read: pass a "
            "NumPy array, or iclda.rows.from_batches with a function that yields "
            "arrays of some rows each."
        )
    return None


def held_rows(rows: AnyArray, weights: Array, held_at: Any) -> WeightedRows:
    """Return rows in memory as ``Rows``, moved to a device if there is one."""
    if held_at is None:
        return MemoryRows(rows, weights)
    from .device import ArrayRows

    placed = ArrayRows(held_at.put(rows), Request("X"))
    return placed.restricted(weights, None)
