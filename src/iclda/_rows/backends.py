"""The kinds of rows, which backend reads each, and what backends share: places, checks, errors.

``KINDS`` says what a backend reads; nothing is imported to recognize it.
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
Weights = Array | None  # of rows; None: all are 1
Members = AnyArray | None  # mask of rows; None: all
Names = Sequence[str] | AnyArray | None  # of columns
Index = Sequence[int] | AnyArray | None  # of rows

MANY_FEATURES = 64  # from which rows are taken for features of a network
_LARGE_BYTES = 2**28
_IMPUTE = "Impute missing values or drop these rows"
_REPLACE = "Replace infinity or values too large for its dtype, or drop these rows"


@dataclass(frozen=True)
class RowsKind:
    """A kind of rows: what people call it, how it is recognized, and what reads it."""

    words: str
    keys: tuple[
        str, ...
    ]  # suffixes of files, types (package.name), or packages with all types
    backend: str  # a module of this folder
    reader: str = ""  # a class or function of ``readers``, for the backend ``files``
    is_array_if_small: bool = (
        False  # below ``_LARGE_BYTES`` it is read as an array in memory
    )


KINDS = (
    RowsKind("a .npy file", (".npy",), "files", "NumpyFiles"),
    RowsKind("a Parquet file", (".parquet", ".pq"), "files", "ParquetFiles"),
    RowsKind("a NumPy memory map", ("numpy.memmap",), "files", "SlicedArray", True),
    RowsKind("an h5py dataset", ("h5py.Dataset",), "files", "SlicedArray"),
    RowsKind("a pyarrow dataset", ("pyarrow.Dataset",), "files", "dataset_reader"),
    RowsKind("a pyarrow table", ("pyarrow.Table",), "files", "table_reader", True),
    RowsKind("a polars LazyFrame", ("polars.LazyFrame",), "files", "query_reader"),
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
    """Scales rows, less a center, to length 1; rows of any library that follows the standard."""

    center: Array

    def __call__(self, rows: Any) -> Any:
        xp = array_namespace(rows)
        moved = rows - xp.asarray(self.center, dtype=rows.dtype, device=device(rows))
        # By the largest entry first, whose square might overflow or vanish.
        largest = xp.max(xp.abs(moved), axis=1, keepdims=True)
        moved = moved / xp.where(largest > 0, largest, xp.ones_like(largest))
        length = xp.sqrt(xp.sum(moved * moved, axis=1, keepdims=True))
        return moved / xp.where(length > 0, length, xp.ones_like(length))


@dataclass(frozen=True)
class Request:
    """What a backend is given beside the rows.

    ``n_features`` and ``feature_names`` are those of the fit: ValueError if the source has others.
    None: the source decides.
    """

    name: str  # of the argument, for messages
    n_features: int | None = None
    feature_names: AnyArray | None = None
    n_threads: int = 1
    unit: UnitLength | None = (
        None  # how rows are scaled before they are used; None: as they are
    )

    def check_width(self, n_features: int) -> None:
        if self.n_features not in (None, n_features):
            raise BadRowsError(
                f"{self.name} has {n_features} features, but X of fit has {self.n_features}."
            )


def in_memory(values: Any) -> Any:
    """Return labels, weights or results from a device in memory; anything else as it is."""
    return to_host(values) if is_device_array(values) else values


def is_device_array(values: Any) -> bool:
    """Whether these are an array of another library than NumPy."""
    return name_of_backend(values) == "device"


def is_path(value: Any) -> bool:
    """Whether it names a file."""
    return isinstance(value, (str, os.PathLike))


def package_and_type(X: Any) -> tuple[str, str]:
    """Return the names of the package and of the type of an object."""
    return type(X).__module__.partition(".")[0], type(X).__name__


def find_kind(X: Any) -> RowsKind | None:
    """Return the kind that lists the type of X, or all types of its package."""
    package, _ = package_and_type(X)
    names = [f"{package}.{each.__name__}" for each in type(X).__mro__]
    return next(
        (KIND_BY_KEY[key] for key in [*names, package] if key in KIND_BY_KEY), None
    )


def name_of_backend(X: Any) -> str | None:
    """Return the module that reads X; None for what is, or becomes, an array in memory."""
    own: str | None = getattr(type(X), "_iclda_backend", None)  # made by iclda.rows
    if own is not None:
        return own
    if is_path(X) or (isinstance(X, (list, tuple)) and any(map(is_path, X[:1]))):
        return "files"
    kind = find_kind(X)
    if kind is None or (kind.is_array_if_small and X.nbytes <= _LARGE_BYTES):
        return None
    return kind.backend


# Arrays on devices.


@dataclass(frozen=True)
class Place:
    """A namespace of array functions, a device, and the precision that sums are formed in."""

    xp: Any
    device: Any
    is_double: bool  # whether the device has double precision
    is_compiled: bool  # every new shape of an array costs a compilation, as with JAX

    @property
    def dtype(self) -> Any:
        return self.xp.float64 if self.is_double else self.xp.float32

    @property
    def host_dtype(self) -> Real:
        """NumPy's name of the dtype of the sums."""
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
        """Return shares (..., K, n), and log-sum-exp of the scores or, hard, the largest (..., n).

        The first of the classes within ``tie`` of the best one is taken.
        """
        xp = self.xp
        top = xp.max(scores, axis=-2, keepdims=True)
        if is_soft:
            shares = xp.exp(scores - top)
            total = xp.sum(shares, axis=-2, keepdims=True)
            return shares / total, (top + xp.log(total))[..., 0, :]
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
    xp, where = array_namespace(X), device(X)
    has_double = False
    if not str(where).startswith(
        "mps"
    ):  # torch lists float64 there, and then refuses it
        dtypes = xp.__array_namespace_info__().dtypes(
            device=where, kind="real floating"
        )
        has_double = "float64" in dtypes
    return Place(xp, where, has_double, bool(is_jax_namespace(xp)))


def to_host(array: Any) -> AnyArray:
    """Return an array of any library as one of NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        array = array.detach().cpu().resolve_conj()
        return np.asarray(
            array.float() if str(array.dtype) == "torch.bfloat16" else array
        )
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    xp = array_namespace(array)
    if hasattr(xp, "Device"):  # array-api-strict allows only its CPU to be read
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
            f"{where} must be 2-d, rows x features, got shape {array.shape}: reshape it, for "
            "example by X.reshape(len(X), -1)."
        )
    if array.dtype.kind not in "biuf":
        raise BadRowsError(
            f"{where} holds {array.dtype}, and must hold real numbers: convert it to a dtype of "
            "numbers, or leave out the columns that hold none."
        )


def check_finite(
    rows: AnyArray,
    name: str,
    names: Names = None,
    *,
    index: Index = None,
    where: str = "",
) -> None:
    """Raise ``not_finite_error`` for the first NaN or infinity; ``index``: indices of the rows."""
    if rows.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    is_finite = np.isfinite(rows)
    if not is_finite.all():
        row, column = (int(i) for i in np.argwhere(~is_finite)[0])
        value = "NaN" if np.isnan(rows[row, column]) else "infinity"
        at = row if index is None else int(index[row])
        raise not_finite_error(value, name, at, column_of(column, names), where=where)


def not_finite_error(
    value: str, name: str, row: int, column: Column, *, where: str = ""
) -> BadColumnError:
    """Return the error for NaN, infinity and missing values, with row, column and the way out."""
    begin = f"Input {name} contains {value}, first in row {row}, "
    way_out = _REPLACE if value == "infinity" else _IMPUTE
    return BadColumnError(
        Text(begin, column, f"{where}. ", way_out, "."), column=column.label
    )


def names_of_table(table: Any) -> list[str] | None:
    """Return the names of the columns of a table; None for an array, and without names."""
    names = getattr(getattr(table, "schema", None), "names", None)  # pyarrow
    if not isinstance(names, list):
        columns = getattr(table, "columns", None)
        names = None if columns is None else list(columns)
    is_named = names is not None and all(isinstance(name, str) for name in names)
    return names if is_named else None


def refuse_repeated(names: Sequence[Any], where: str) -> None:
    """Raise ValueError for a name that occurs more than once."""
    column, count = max(
        Counter(names).items(), key=lambda item: item[1], default=("", 0)
    )
    if count > 1:
        raise ValueError(
            f"{where} has {count} columns called {str(column)!r}, and names of features must "
            "differ: rename or drop all but one."
        )


def check_names(
    names: Sequence[str], expected: Sequence[str] | AnyArray, name: str, way_out: str
) -> None:
    """Raise ValueError for a column of another name than in the fit. See ``check_width``, too."""
    for column, (one, other) in enumerate(zip(names, expected, strict=False)):
        if one != other:
            raise BadRowsError(
                "The feature names should match those that were passed during fit: column "
                f"{column} of {name} is {one!r}, and was {str(other)!r}. {way_out}"
            )


def changed_error(name: str, difference: str) -> BadRowsError:
    """Return the error for a source that differs from what it was when it was opened."""
    return BadRowsError(
        f"{name} changed between two passes: {difference}. Rows are read several times, and must "
        "be the same every time: open the source again, or fit to a copy that nothing writes to."
    )
