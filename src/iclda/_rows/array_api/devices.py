"""Where an array lives and what can be computed there, whichever library it comes from."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_jax_namespace

from ..._core.types import AnyArray

_CPU = ("cpu", "TFRT_CPU", "CPU_DEVICE")


@dataclass(frozen=True)
class Place:
    """A namespace of array functions, a device, and the dtype that sums are formed in."""

    xp: Any
    device: Any
    dtype: Any  # float64 where the device has it

    @property
    def is_double(self) -> bool:
        return bool(self.dtype == self.xp.float64)

    @property
    def is_cpu(self) -> bool:
        return str(self.device).startswith(_CPU)

    @property
    def is_compiled(self) -> bool:
        """Whether every new shape of an array costs a compilation: so it is with JAX."""
        return bool(is_jax_namespace(self.xp))

    @property
    def host_dtype(self) -> type[np.floating[Any]]:
        """The dtype of the sums, as NumPy calls it."""
        return np.float64 if self.is_double else np.float32

    def put(self, array: AnyArray) -> Any:
        """Real numbers from memory, in the dtype of the sums."""
        return self.put_as_is(np.asarray(array, dtype=self.host_dtype))

    def exactly(self) -> AbstractContextManager[Any]:
        """A context in which products keep all digits of their dtype: by default JAX rounds."""
        if self.is_compiled:
            import jax

            return jax.default_matmul_precision("highest")  # type: ignore[no-any-return]
        return nullcontext()

    def put_as_is(self, array: AnyArray) -> Any:
        """An array from memory, in its own dtype."""
        return self.xp.asarray(np.ascontiguousarray(array), device=self.device)


def place_of(X: Any) -> Place:
    """Where X lives."""
    xp = array_namespace(X)
    where = device(X)
    return Place(xp, where, xp.float64 if _has_float64(xp, where) else xp.float32)


def _has_float64(xp: Any, where: Any) -> bool:
    if str(where).startswith("mps"):  # torch lists it there, and then refuses it
        return False
    return "float64" in xp.__array_namespace_info__().dtypes(device=where, kind="real floating")


def to_host(array: Any) -> AnyArray:
    """An array of any library as one of NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        array = array.detach().cpu().resolve_conj()
        return np.asarray(array.float() if str(array.dtype) == "torch.bfloat16" else array)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    xp = array_namespace(array)
    if hasattr(xp, "Device"):  # array-api-strict lets nothing but its CPU be read
        array = xp.asarray(array, device=xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no room left, in the words of any library."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error)
