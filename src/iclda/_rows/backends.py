"""The kinds of rows and how they are recognized; devices; checks and errors of rows.

``KINDS`` lists what can be passed as rows, and the backend that reads each kind.
Nothing is imported to recognize a kind. ``Place`` is a device with its array library.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_jax_namespace

from .._core import AnyArray, Array
from .._messages import Column, ColumnError, Text

Real = type[np.floating[Any]]
# Weights of rows; None: all are 1.
Weights = Array | None
# A mask of rows; None: all rows are members.
Members = AnyArray | None
# Names of columns; None: they have none.
Names = Sequence[str] | AnyArray | None
# Indices of rows.
Index = Sequence[int] | AnyArray | None

# Rows of this many features or more are taken for features of a network.
MANY_FEATURES = 64
# Memory maps and pyarrow tables up to this size are read as arrays in memory.
_MAX_ARRAY_BYTES = 2**28

_IMPUTE = "Impute missing values or drop these rows"
_REPLACE = "Replace infinity or values too large for its dtype, or drop these rows"


@dataclass(frozen=True)
class RowsKind:
    """A kind of rows: what people call it, how it is recognized, and what reads it.

    Attributes
    ----------
    words : str
        What messages and documents call it.
    keys : tuple of str
        Suffixes of files, types (package.name), or packages, with all of their types.
    backend : str
        The module of this folder that reads it.
    is_array_if_small : bool
        Whether it is read as an array in memory unless it is large.
    """

    words: str
    keys: tuple[str, ...]
    backend: str
    is_array_if_small: bool = False


KINDS = (
    RowsKind("a .npy file", (".npy",), "files"),
    RowsKind("a Parquet file", (".parquet", ".pq"), "files"),
    RowsKind("a NumPy memory map", ("numpy.memmap",), "files", is_array_if_small=True),
    RowsKind("an h5py dataset", ("h5py.Dataset",), "files"),
    RowsKind("a pyarrow dataset", ("pyarrow.Dataset",), "files"),
    RowsKind("a pyarrow table", ("pyarrow.Table",), "files", is_array_if_small=True),
    RowsKind("a polars LazyFrame", ("polars.LazyFrame",), "files"),
    RowsKind("a Dask array or dataframe", ("dask", "dask_expr"), "dask"),
    RowsKind(
        "an array of torch, CuPy or JAX",
        ("torch", "cupy", "jax", "jaxlib", "array_api_strict"),
        "device",
    ),
)
KIND_BY_KEY = {key: kind for kind in KINDS for key in kind.keys}
SUFFIXES = tuple(key for key in KIND_BY_KEY if key.startswith("."))


@dataclass(frozen=True)
class UnitLength:
    """Scale rows to length 1 about a center; for rows of any array API library."""

    center: Array

    def __call__(self, rows: Any) -> Any:
        xp = array_namespace(rows)
        center = xp.asarray(self.center, dtype=rows.dtype, device=device(rows))
        centered = rows - center
        # Divide by the largest entry first: its square might overflow or vanish.
        largest = xp.max(xp.abs(centered), axis=1, keepdims=True)
        centered = centered / xp.where(largest > 0, largest, xp.ones_like(largest))
        length = xp.sqrt(xp.sum(centered * centered, axis=1, keepdims=True))
        return centered / xp.where(length > 0, length, xp.ones_like(length))


@dataclass(frozen=True)
class Request:
    """What a backend has to know in addition to the rows.

    Attributes
    ----------
    name : str
        Name of the argument, for messages.
    n_features, feature_names
        Those of the fit: it is a ValueError if the source has others. None: the source
        decides.
    n_threads : int
        Threads that may compute.
    unit : UnitLength or None
        How rows are scaled before they are used. None: not at all.
    """

    name: str
    n_features: int | None = None
    feature_names: AnyArray | None = None
    n_threads: int = 1
    unit: UnitLength | None = None

    def check_width(self, n_features: int) -> None:
        """Raise BadRowsError for another number of features than in the fit."""
        if self.n_features not in (None, n_features):
            raise BadRowsError(
                f"{self.name} has {n_features} features, but X of fit has "
                f"{self.n_features}."
            )


def in_memory(values: Any) -> Any:
    """Return an array of a device as one of NumPy, and anything else unchanged."""
    return to_host(values) if is_device_array(values) else values


def is_device_array(values: Any) -> bool:
    """Return whether the values are an array of another library than NumPy."""
    return name_of_backend(values) == "device"


def is_path(value: Any) -> bool:
    """Return whether a value names a file."""
    return isinstance(value, (str, os.PathLike))


def package_and_type(X: Any) -> tuple[str, str]:
    """Return the names of the package and of the type of an object."""
    package = type(X).__module__.partition(".")[0]
    return package, type(X).__name__


def find_kind(X: Any) -> RowsKind | None:
    """Return the kind that lists the type of X, or all types of its package."""
    package, _ = package_and_type(X)
    types = [f"{package}.{each.__name__}" for each in type(X).__mro__]
    for key in [*types, package]:
        if key in KIND_BY_KEY:
            return KIND_BY_KEY[key]
    return None


def name_of_backend(X: Any) -> str | None:
    """Return the module that reads X; None if X is, or becomes, an array in memory."""
    # Objects that the functions of iclda.rows return name their backend.
    own_backend: str | None = getattr(type(X), "_iclda_backend", None)
    if own_backend is not None:
        return own_backend
    if is_path(X):
        return "files"
    if isinstance(X, (list, tuple)) and len(X) > 0 and is_path(X[0]):
        return "files"
    kind = find_kind(X)
    if kind is None:
        return None
    if kind.is_array_if_small and X.nbytes <= _MAX_ARRAY_BYTES:
        return None
    return kind.backend


# Arrays on devices.


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

    def put(self, array: AnyArray) -> Any:
        """Move real numbers to the device, in the dtype of the sums."""
        return self.put_as_is(np.asarray(array, dtype=self.host_dtype))

    def put_as_is(self, array: AnyArray) -> Any:
        """Move an array to the device, in its own dtype."""
        return self.xp.asarray(np.ascontiguousarray(array), device=self.device)

    def fetch(self, array: Any) -> AnyArray:
        """Return an array of the device in memory."""
        return to_host(array)

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
            return shares / total, (top + xp.log(total))[..., 0, :]
        # The first of the classes that tie has the largest rank.
        ranks = self.put(np.arange(scores.shape[-2], 0, -1))[:, None]
        ranks = ranks * xp.astype(scores >= top - tie, self.dtype)
        is_first = ranks == xp.max(ranks, axis=-2, keepdims=True)
        return xp.astype(is_first, self.dtype), top[..., 0, :]

    def sum_over_classes(self, shares: Any, values: Any) -> Any:
        """Return the sum over classes of shares times values, both (K, n)."""
        return self.xp.sum(shares * values, axis=0)

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
    if hasattr(array, "detach"):  # torch
        array = array.detach().cpu().resolve_conj()
        # NumPy has no bfloat16.
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
        return np.asarray(array)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    xp = array_namespace(array)
    # Only the CPU device of array-api-strict can be read.
    if hasattr(xp, "Device"):
        array = xp.asarray(array, device=xp.Device("CPU_DEVICE"))
    return np.asarray(array)


# Checks.


class BadRowsError(ValueError):
    """Rows that are not what they must be."""


class BadColumnError(BadRowsError, ColumnError):
    """Rows with a column that cannot be used."""


def column_of(column: int, names: Names) -> Column:
    """Return a column as messages show it."""
    return Column(column, None if names is None else str(names[column]))


def check_rows(array: Any, where: str) -> None:
    """Raise BadRowsError unless an array is 2-d and holds real numbers."""
    if len(array.shape) != 2:
        raise BadRowsError(
            f"{where} must be 2-d, rows x features, got shape {array.shape}: reshape "
            "it, for example by X.reshape(len(X), -1)."
        )
    if array.dtype.kind not in "biuf":
        raise BadRowsError(
            f"{where} holds {array.dtype}, and must hold real numbers: convert it to a "
            "dtype of numbers, or leave out the columns that hold none."
        )


def check_finite(
    rows: AnyArray,
    name: str,
    names: Names = None,
    *,
    index: Index = None,
    where: str = "",
) -> None:
    """Raise ``not_finite_error`` for the first NaN or infinity.

    ``index`` has the indices of the rows; ``where`` says where they come from.
    """
    if rows.dtype.kind != "f":
        return
    # NaN and infinity show in the sum, which is cheap. It may also have overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    is_finite = np.isfinite(rows)
    if is_finite.all():
        return
    row, column = np.argwhere(~is_finite)[0].tolist()
    value = "NaN" if np.isnan(rows[row, column]) else "infinity"
    row_index = row if index is None else int(index[row])
    raise not_finite_error(
        value, name, row_index, column_of(column, names), where=where
    )


def not_finite_error(
    value: str, name: str, row: int, column: Column, *, where: str = ""
) -> BadColumnError:
    """Return the error for NaN, infinity or a missing value, with the way out."""
    begin = f"Input {name} contains {value}, first in row {row}, "
    way_out = _REPLACE if value == "infinity" else _IMPUTE
    message = Text(begin, column, f"{where}. ", way_out, ".")
    return BadColumnError(message, column=column.label)


def names_of_table(table: Any) -> list[str] | None:
    """Return the names of the columns of a table; None if there are none."""
    # pyarrow keeps them in the schema, pandas and polars in ``columns``.
    names = getattr(getattr(table, "schema", None), "names", None)
    if not isinstance(names, list):
        columns = getattr(table, "columns", None)
        if columns is None:
            return None
        names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def refuse_repeated(names: Sequence[Any], where: str) -> None:
    """Raise ValueError for a name that occurs more than once."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ValueError(
                f"{where} has {count} columns called {str(name)!r}, and names of "
                "features must differ: rename or drop all but one."
            )


def check_names(
    names: Sequence[str], expected: Sequence[str] | AnyArray, name: str, way_out: str
) -> None:
    """Raise BadRowsError for a column of another name than in the fit.

    The number of columns is not compared: see ``Request.check_width``.
    """
    for column, (given, fitted) in enumerate(zip(names, expected, strict=False)):
        if given != fitted:
            raise BadRowsError(
                "The feature names should match those that were passed during fit: "
                f"column {column} of {name} is {given!r}, and was {str(fitted)!r}. "
                f"{way_out}"
            )


def changed_error(name: str, difference: str) -> BadRowsError:
    """Return the error for a source that changed after it was opened."""
    return BadRowsError(
        f"{name} changed between two passes: {difference}. Rows are read several "
        "times, and must be the same every time: open the source again, or fit to a "
        "copy that nothing writes to."
    )
