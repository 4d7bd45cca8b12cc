"""Devices: the array functions there, and the way of arrays to them and back."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_namespace,
)

from .._core import AnyArray

# A dtype of NumPy, as a class.
Real = type[np.floating[Any]]


@dataclass(frozen=True)
class Place:
    """A device: its array functions, and the precision in which sums are formed there.

    Attributes
    ----------
    xp : module
        The array functions.
    device : object
        The device, as the library names it.
    is_double : bool
        Whether the device has double precision.
    is_compiled : bool
        Whether every new shape of an array costs a compilation, as with JAX.
    """

    xp: Any
    device: Any
    is_double: bool
    is_compiled: bool

    @property
    def dtype(self) -> Any:
        """Dtype of the sums."""
        return self.xp.float64 if self.is_double else self.xp.float32

    @property
    def host_dtype(self) -> Real:
        """NumPy's dtype of the sums."""
        return np.float64 if self.is_double else np.float32

    def put(self, array: Any) -> Any:
        """Move real numbers to the device, in the dtype of the sums.

        An array that is there already is returned as it is.
        """
        if is_array_api_obj(array) and not isinstance(array, np.ndarray | np.generic):
            return array
        return self.put_as_is(np.asarray(array, dtype=self.host_dtype))

    def put_as_is(self, array: AnyArray) -> Any:
        """Move an array to the device, in its own dtype."""
        return self.xp.asarray(np.ascontiguousarray(array), device=self.device)

    def take(self, array: Any, index: Any) -> Any:
        """Return some rows of an array on the device, copied unless consecutive."""
        if isinstance(index, slice):
            return array[index, ...]
        if isinstance(index, np.ndarray):
            index = self.put_as_is(index)
        return self.xp.take(array, index, axis=0)

    def fetch(self, array: Any) -> AnyArray:
        """Return an array of the device in memory."""
        return to_host(array)

    def fetch_all(self, *arrays: Any) -> list[AnyArray]:
        """Return small arrays of the device in memory, all in one move."""
        flat = [self.xp.reshape(array, (-1,)) for array in arrays]
        fetched = self.fetch(self.xp.concat(flat))
        ends = np.cumsum([part.shape[0] for part in flat])
        parts = np.split(fetched, ends[:-1])
        return [
            part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)
        ]

    def label(self, scores: Any, *, is_soft: bool, tie: float = 0.0) -> tuple[Any, Any]:
        """Return shares and log-sum-exp of scores (..., K, n).

        The shares are (..., K, n). If labels are hard, each row goes to the first class
        within ``tie`` of the best one, and the largest score replaces the log-sum-exp.
        """
        xp = self.xp
        top = xp.max(scores, axis=-2, keepdims=True)
        if is_soft:
            shares = xp.exp(scores - top)
            total = xp.sum(shares, axis=-2, keepdims=True)
            log_sums = top + xp.log(total)
            return shares / total, log_sums[..., 0, :]
        # The first of the classes that tie has the largest rank.
        is_best = scores >= top - tie
        n_classes = scores.shape[-2]
        rank_of_class = xp.arange(
            n_classes, 0, -1, dtype=self.dtype, device=self.device
        )
        ranks = rank_of_class[:, None] * xp.astype(is_best, self.dtype)
        is_first = ranks == xp.max(ranks, axis=-2, keepdims=True)
        return xp.astype(is_first, self.dtype), top[..., 0, :]

    def solve(self, matrix: Any, right: Any) -> Any:
        """Return matrix^-1 right, for positive definite matrices (..., d, d)."""
        xp = self.xp
        # torch alone can solve by a factor, which on a GPU is three times as fast. A
        # matrix that is not positive definite but for rounding has no factor.
        if hasattr(xp, "cholesky_solve"):
            factor, error_codes = xp.linalg.cholesky_ex(matrix)
            if not bool(xp.any(error_codes != 0)):
                return xp.cholesky_solve(right, factor)
        return xp.linalg.solve(matrix, right)

    def sum_over_classes(self, shares: Any, values: Any) -> Any:
        """Return the sum over classes of shares times values, both (K, n)."""
        return self.xp.sum(shares * values, axis=0)

    def take_classes(self, array: Any, classes: Any) -> Any:
        """Return those of some classes, at placed indices, of an array (..., K, n)."""
        return self.xp.take(array, classes, axis=-2)

    def exactly(self) -> AbstractContextManager[Any]:
        """Return a context in which products keep all digits: JAX rounds by default."""
        if self.is_compiled:
            import jax

            return jax.default_matmul_precision("highest")  # type: ignore[no-any-return]
        return nullcontext()


def place_of(X: Any) -> Place:
    """Return the device of an array."""
    xp = array_namespace(X)
    array_device = device(X)
    is_double = False
    # On Apple's devices torch lists float64, and then refuses it.
    if not str(array_device).startswith("mps"):
        info = xp.__array_namespace_info__()
        is_double = "float64" in info.dtypes(device=array_device, kind="real floating")
    return Place(xp, array_device, is_double, bool(is_jax_namespace(xp)))


def to_host(array: Any) -> AnyArray:
    """Return an array of any library as one of NumPy."""
    if isinstance(array, np.ndarray):
        return array
    # Tensors of torch.
    if hasattr(array, "detach"):
        array = array.detach().cpu().resolve_conj()
        # NumPy has no bfloat16.
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
        return np.asarray(array)
    # Arrays of CuPy.
    if hasattr(array, "get"):
        return np.asarray(array.get())
    xp = array_namespace(array)
    # Only the CPU device of array-api-strict can be read.
    if hasattr(xp, "Device"):
        array = xp.asarray(array, device=xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that a device has no room left."""
    # NumPy and CuPy raise MemoryError.
    if isinstance(error, MemoryError):
        return True
    # torch, XLA and Metal raise a RuntimeError, or a subclass, that says so.
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return "RESOURCE_EXHAUSTED" in text or "out of memory" in text
