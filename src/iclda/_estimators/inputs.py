"""Rows that users pass, wherever they are: checked, opened, read in blocks."""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _get_feature_names, validate_data

from .._core.problem import Rows
from .._core.types import AnyArray, Array
from .._rows.backends import Backend, backend_of, is_device_array, kind_of
from .._rows.base import (
    Request,
    WeightedRows,
    check_finite,
    column_of,
    not_finite_error,
    refuse_repeated,
)
from .._rows.memory import MemoryRows, concatenate
from .._rows.passes import PartOfPass, report_as
from .predictions import Numbers, composed

_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-100, 1e100  # products of weights stay finite
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Tables that are not read yet, and what reads them.
_UNREAD = {
    ("polars", "LazyFrame"): "collect()",
    ("pyarrow", "RecordBatchReader"): "read_all()",
    ("pyarrow", "Dataset"): "to_table()",
    ("pyarrow", "Scanner"): "to_table()",
    ("pyarrow", "ParquetFile"): "read()",
}


@dataclass(frozen=True)
class RowSource:
    """One argument of ``fit``: an array in memory, or what a backend reads."""

    X: Any
    request: Request
    backend: Backend | None
    opened: WeightedRows | None = None  # what a backend keeps of a first look lives as long as this

    @cached_property
    def n_rows(self) -> int:
        """Exact number of rows, which some backends have to read to count."""
        return len(self.X) if self.opened is None else self.opened.count()

    @property
    def is_at_hand(self) -> bool:
        return self.backend is None or is_device_array(self.X)

    def rows(self, weights: Array | None = None, is_member: AnyArray | None = None) -> Rows:
        """All rows, or those that ``is_member`` marks."""
        if self.backend is None:
            return MemoryRows(self.X, weights, is_member, n_threads=self.request.n_threads)
        return self.backend.open_rows(self.X, self.request, weights, is_member)

    def in_memory(self, is_member: AnyArray) -> RowSource:
        """The marked rows as an array in memory."""
        rows = self.rows(is_member=is_member).sample(int(is_member.sum()), 0)[0]
        return RowSource(rows, self.request, None)

    def check_finite(self) -> None:
        """ValueError that names row and column; sources to be read find them when they are."""
        if self.opened is None:
            check_finite(self.X, self.request.name, self.request.feature_names)
        else:
            self.opened.check_finite()


class RowReader:
    """Reads rows for a classifier: at first ``reset`` notes the features, later they must agree."""

    n_features_in_: int
    feature_names_in_: AnyArray

    @property
    def _feature_names(self) -> AnyArray | None:
        return getattr(self, "feature_names_in_", None)

    def _open(
        self, X: Any, *, name: str = "X", reset: bool = False, is_summed_later: bool = False
    ) -> RowSource:
        """X checked as far as is possible without reading it."""
        backend, opened = backend_of(X), None
        if backend is None:
            X = self._check_rows(X, name=name, reset=reset, is_summed_later=is_summed_later)
        else:
            opened = backend.open_rows(X, Request(name) if reset else self._request(name))
            X = X if opened.source is None else opened.source  # opened once, read many times
            self._note_features(opened, name=name, reset=reset)
        return RowSource(X, self._request(name), backend, opened)

    def _request(self, name: str) -> Request:
        n_threads = int(effective_n_jobs(getattr(self, "n_jobs", None)))
        return Request(name, self.n_features_in_, self._feature_names, n_threads)

    def _check_rows(
        self, X: Any, *, name: str = "X", reset: bool = False, is_summed_later: bool = False
    ) -> AnyArray:
        """X as a 2-d array of real, finite numbers; nothing that is one already is copied.

        Rows that are summed later are not read for NaN and infinity now: their sums show them.
        """
        may_be_empty = name != "X"
        X = check_shape(check_is_read(X, name), name, self.n_features_in_ if may_be_empty else None)
        _refuse_non_numeric(X, name)
        _refuse_masked(X, name)
        X = _with_names(X)
        array: AnyArray = validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=0 if may_be_empty else 1,
        )
        # scikit-learn leaves objects that pyarrow makes of nulls and decimals as they are.
        if array.dtype.kind == "O" or array.dtype == np.longdouble != np.float64:
            with np.errstate(over="ignore"):  # infinity is found as any other
                array = array.astype(np.float64)
        if not is_summed_later:
            check_finite(array, name, self._feature_names)
        return array

    def _note_features(self, opened: WeightedRows, *, name: str, reset: bool) -> None:
        """Set, or compare, number and names of the features, as scikit-learn does for arrays."""
        names = opened.feature_names
        if reset:
            self.n_features_in_ = opened.n_features
            if names is not None:
                self.feature_names_in_ = np.asarray(names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif names is None and hasattr(self, "feature_names_in_"):
            warnings.warn(
                f"{name} does not have valid feature names, but {type(self).__name__} was fitted "
                "with feature names",
                UserWarning,
                stacklevel=2,
            )

    def _in_blocks(
        self, X: Any, numbers: Numbers, function: Callable[[Any], Any] | None = None
    ) -> Any:
        """Numbers of rows, or a function of them, in a container like that of X.

        Rows are read in blocks, so that no copy of X is made.
        """
        backend = backend_of(X)
        if backend is None:
            X = self._check_rows(X, is_summed_later=numbers.use_all_features)
            found = self._numbers_in_blocks(X, numbers)
            return concatenate(found if function is None else map(function, found), len(X))
        of_block = numbers if function is None else composed(numbers, function)
        with report_as(PartOfPass(1)):
            return backend.apply_to_rows(X, of_block, self._request("X"))

    def _numbers_in_blocks(self, X: AnyArray, numbers: Numbers) -> Iterator[AnyArray]:
        """Where numbers are not finite, X is searched for NaN and infinity."""
        is_checked = not numbers.use_all_features
        for rows, _, _ in MemoryRows(X).blocks():
            with nullcontext() if is_checked else np.errstate(invalid="ignore", over="ignore"):
                found = numbers(rows)
                is_finite = is_checked or bool(np.isfinite(found.sum()))
            if not is_finite:
                check_finite(X, "X", self._feature_names)
                is_checked = True
                found = numbers(rows)  # with warnings: rows are finite, and their numbers are not
            yield found


def check_is_read(X: Any, name: str = "X") -> Any:
    """X itself, a batch of pyarrow as a table; TypeError for a table that is not read yet."""
    for kind in type(X).__mro__:
        package = kind.__module__.partition(".")[0]
        if (package, kind.__name__) in _UNREAD:
            raise TypeError(
                f"{name} is a {package} {type(X).__name__}, which is not read yet: pass "
                f"{name}.{_UNREAD[package, kind.__name__]}, with the columns of the features only."
            )
        if (package, kind.__name__) == ("pyarrow", "RecordBatch"):
            # scikit-learn finds the names of a table, not those of a batch.
            return sys.modules["pyarrow"].Table.from_batches([X])
    return X


def take_rows(X: Any, rows: AnyArray) -> Any:
    """Rows of a table or array, by index."""
    return X.take(rows) if kind_of(X)[0] == "pyarrow" else _safe_indexing(X, rows)


def _with_names(X: Any) -> Any:
    """X, in a form whose names scikit-learn sees: not every version knows every table."""
    is_table = kind_of(X)[0] in ("polars", "pyarrow") and hasattr(X, "columns")
    if is_table and _get_feature_names(X) is None:
        return NamedRows(np.asarray(X), list(getattr(X, "column_names", X.columns)))
    return X


class NamedRows:
    """An array with the names of its columns, as the data frame interchange protocol gives them."""

    def __init__(self, values: AnyArray, names: list[str]) -> None:
        self._values, self._names = values, names
        self.shape = values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self._values, dtype=dtype, copy=copy)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> NamedRows:
        return self

    def column_names(self) -> list[str]:
        """Names in the order of the columns."""
        return self._names


def check_weights(weights: Any, n_rows: int, name: str) -> Array | None:
    """Weights as a 1-d array of non-negative numbers, one a row."""
    if weights is None:
        return None
    array = _real_numbers(weights, name)
    if array.ndim == 0:
        array = np.full(n_rows, array)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one number for each of the {n_rows} rows, got shape {array.shape}."
        )
    is_bad = ~(np.isfinite(array) & (array >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"{name} must be finite and not negative, got {array[row]} in row {row}. Weight 0 "
            "leaves a row out."
        )
    extreme = (array > 0) & ~((array >= _SMALLEST_WEIGHT) & (array <= _LARGEST_WEIGHT))
    if extreme.any():
        row = int(np.argmax(extreme))
        raise ValueError(
            f"{name} must be 0 or between {_SMALLEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}, got "
            f"{array[row]} in row {row}: only ratios of weights matter, divide them by their mean."
        )
    if n_rows > 0 and not array.any():
        raise ValueError(f"{name} is zero for all {n_rows} rows: at least one must count.")
    return array


def _real_numbers(weights: Any, name: str) -> Array:
    if np.ma.is_masked(weights):
        raise ValueError(f"{name} has masked entries: fill them. Weight 0 leaves a row out.")
    try:
        array = np.asarray(weights)
        if array.dtype.kind not in "cmM":
            with np.errstate(over="ignore"):  # infinity is refused
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    first = reprlib.repr(np.asarray(weights, dtype=object).ravel()[:3].tolist())
    raise ValueError(f"{name} must hold real numbers, one a row, got {first}.")


def check_shape(X: Any, name: str = "X", n_features: int | None = None) -> Any:
    """X, of lists as an array; ValueError unless it is 2-d, with so many features if given."""
    is_column = isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1
    X = _array_of_lists(list(X), name) if is_column or isinstance(X, (list, tuple)) else X
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2:
        got = f"shape {shape}" if shape else f"an object of type {type(X).__name__}"
        raise ValueError(f"{name} must be 2-d, rows x features, got {got}. {_way_to_2d(X, shape)}")
    if shape[1] == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={shape}) while a minimum of 1 is required: pass the "
            "columns to learn from."
        )
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"{name} has {shape[1]} features, but X has {n_features}.")
    return X


def _array_of_lists(rows: list[Any], name: str) -> AnyArray:
    try:
        return np.asarray(rows)
    except ValueError:  # of different lengths: the rows, or else entries that are lists
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if other is None:
            return np.asarray(rows, dtype=object)
    raise ValueError(
        f"{name} must hold rows of equal length, but row 0 has {lengths[0]} entries and row "
        f"{other} has {lengths[other]}: fill the gaps (sklearn.impute), or drop these rows."
    )


def _way_to_2d(X: Any, shape: tuple[int, ...]) -> str:
    if getattr(getattr(X, "dtype", None), "names", None):
        return "Records become rows by numpy.lib.recfunctions.structured_to_unstructured."
    if isinstance(X, dict) or (len(shape) == 1 and isinstance(next(iter(X), None), dict)):
        return "pandas.DataFrame makes a table of dictionaries."
    if not shape:
        return "Pass an array, a table or a list of rows."
    if len(shape) == 1:
        return "Reshape your data: to (-1, 1) if it is one feature, to (1, -1) if it is one row."
    return f"Reshape your data: to ({shape[0]}, -1) if all entries of a row are its features."


def _refuse_masked(X: Any, name: str) -> None:
    """Name the first masked entry: the value under a mask is none."""
    if np.ma.is_masked(X) and X.ndim == 2:
        row, column = (int(i) for i in np.argwhere(np.ma.getmaskarray(X))[0])
        raise not_finite_error("masked entries", name, row, column_of(column, None))


def _refuse_non_numeric(X: Any, name: str) -> None:
    """Name the first column that holds no real numbers, which NumPy's own errors do not."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape"):
        columns = list(getattr(X, "column_names", X.columns))
        refuse_repeated(columns, name)
        for column in columns:
            _refuse_column(X[column], name, f"column {str(column)!r}")
        return
    if isinstance(X, np.ndarray) and X.dtype.kind not in "biuf":
        columns = list(range(X.shape[1]))
        if X.dtype.kind == "c":  # one with imaginary parts, if there is any
            columns.sort(key=lambda j: not X[:, j].imag.any())
        for column in columns:
            _refuse_column(X[:, column], name, f"column {column}")
        if X.dtype.kind in "US" and X.size:
            raise ValueError(
                f"{name} holds numbers as text, for example {X.flat[0].item()!r}: convert it by "
                f"numpy.array({name}, dtype=float)."
            )


def _refuse_column(values: Any, name: str, where: str) -> None:
    array = np.asarray(values)
    if array.ndim > 1:  # records, or lists of equal length
        suspects = [array[0].tolist()]
    elif array.dtype.kind == "c":
        suspects = array[np.argsort(array.imag == 0, kind="stable")][:1].tolist()
    elif array.dtype.kind in "mM":
        suspects = list(array[:1])
    else:
        suspects = array.tolist() if array.dtype.kind in "OUSV" else []
    for value in suspects:
        _refuse_object(value, f"{name}, {where} holds")


def _refuse_object(value: Any, found: str) -> None:
    if value is None or type(value).__name__ == "NAType":
        return
    if isinstance(value, (str, bytes)):
        with suppress(ValueError):
            float(value)
            return
        raise ValueError(
            f"{found} text, for example {value!r}, which could not be converted "
            "to numbers: encode it (sklearn.preprocessing.OneHotEncoder) or drop it."
        )
    if isinstance(value, _DATES) or type(value).__name__ == "Period":
        raise ValueError(
            f"{found} dates or durations, for example {value}: turn them into numbers, "
            "for example of days since the first one."
        )
    if isinstance(value, (complex, np.complexfloating)):
        raise ValueError(
            f"Complex data not supported: {found} {value!r}. Split it into two columns."
        )
    try:
        if getattr(value, "ndim", 0) == 0:
            float(value)
            return
    except OverflowError:
        raise ValueError(
            f"{found} a number too large for float64, whose largest is 1.8e308: rescale the column."
        ) from None
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"{found} {value!r}: every argument must be a string or a real number. Turn the column "
        "into numbers, or drop it."
    )
