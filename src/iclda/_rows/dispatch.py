"""The protocol of a backend, and the choice of one for what a user passes as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .backends import Members, Request, Weights, name_of_backend, package_and_type
from .weighted_rows import WeightedRows


class Backend(Protocol):
    """A module of this folder that opens rows of some kinds."""

    def open_rows(
        self,
        X: Any,
        request: Request,
        weights: Weights = None,
        is_member: Members = None,
    ) -> WeightedRows:
        """Return the rows of a source, or those that ``is_member`` marks.

        Opening reads little or nothing. Beyond the types, callers rely on this:

        - ``sample(n, seed)`` with n >= ``n_rows`` returns all members in their order,
          with their own weights: labeled rows are taken into memory this way.
        - NaN and infinity raise a ValueError that names row or block, and column, when
          they are first read. Rows that a fit does not read (unlabeled ones, in
          ``SupervisedLDA``) are checked only if the backend has ``check_finite``.
        - A pass calls ``report_progress`` after every few ten thousand rows, in the
          thread of the caller, who counts the passes.
        - If rows must be read to be counted, ``n_rows`` may be an upper bound until the
          first pass, but it is 0 after a sample without rows; ``count()`` is exact.
        """
        ...

    def apply_to_rows(
        self, X: Any, function: Callable[[Any], Any], request: Request
    ) -> Any:
        """Return the results of a function of rows, one entry per row, in order.

        The request is that of a fitted classifier: it has ``n_features``.
        """
        ...


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
