"""Rows that users pass, wherever they are: checked, opened, read in blocks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_array
from sklearn.utils.validation import _num_features, validate_data

from .._core import AnyArray, Array
from .._core.rows import Rows
from .._rows import Backend, WeightedRows, backend_of, report_as
from .._rows.checks import check_finite, column_of, not_finite_error, refuse_repeated
from .._rows.kinds import package_and_type
from .._rows.memory import MemoryRows, concatenate
from .._rows.protocol import Request
from .._rows.unit_length import UnitLength
from .labels import is_missing
from .predictions import Numbers, composed

_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-100, 1e100  # products of weights stay finite


@dataclass(frozen=True)
class RowSource:
    """Rows of one argument of ``fit``, in memory or where a backend reads them.

    All rows, or those that ``is_member`` marks.
    """

    X: Any
    request: Request
    backend: Backend | None
    opened: WeightedRows | None = (
        None  # what a backend keeps of a first look lives as long as this
    )
    weights: Array | None = None
    is_member: AnyArray | None = None

    @property
    def n_rows(self) -> int:
        """Exact number of rows, members or not, which some backends have to read to count."""
        return len(self.X) if self.opened is None else self.opened.count()

    @property
    def rows(self) -> Rows:
        """Members of positive weight."""
        is_member = self.is_member
        if self.weights is not None:
            is_counted = self.weights > 0
            is_member = is_counted if is_member is None else is_member & is_counted
        return self._rows(self.weights, is_member)

    @property
    def every_row(self) -> Rows:
        """All members, without their weights."""
        return self._rows(None, self.is_member)

    def _rows(self, weights: Array | None, is_member: AnyArray | None) -> Rows:
        rows: WeightedRows
        if self.backend is None:
            rows = MemoryRows(
                self.X, weights, is_member, n_threads=self.request.n_threads
            )
        else:
            rows = self.backend.open_rows(self.X, self.request, weights, is_member)
        rows.unit = self.request.unit
        return rows

    def held(self, is_member: AnyArray) -> RowSource:
        """The marked rows as an array in memory, scaled if the request says so."""
        weights = None if self.weights is None else self.weights[is_member]
        if self.backend is None and self.request.unit is None:
            return RowSource(self.X[is_member], self.request, None, weights=weights)
        rows = self._rows(None, is_member).sample(int(is_member.sum()), 0)[0]
        return RowSource(rows, replace(self.request, unit=None), None, weights=weights)

    def check_finite(self) -> None:
        """ValueError that names row and column; sources to be read find them when they are."""
        if self.opened is None:
            check_finite(self.X, self.request.name, self.request.feature_names)
        else:
            self.opened.check_finite()


class RowReader:
    """Reads rows for a classifier: ``reset`` stores number and names of the features of ``fit``."""

    n_features_in_: int
    feature_names_in_: AnyArray
    _center_: Array | None = (
        None  # rows are scaled to length 1 about it; None: they are not
    )

    @property
    def _feature_names(self) -> AnyArray | None:
        return getattr(self, "feature_names_in_", None)

    def _open(
        self,
        X: Any,
        *,
        name: str = "X",
        reset: bool = False,
        is_summed_later: bool = False,
    ) -> RowSource:
        """Open X, and check it as far as is possible without reading it."""
        backend, opened = backend_of(X), None
        if backend is None:
            X = self._check_rows(
                X, name=name, reset=reset, is_summed_later=is_summed_later
            )
        else:
            opened = backend.open_rows(
                X, Request(name) if reset else self._request(name)
            )
            X = (
                X if opened.source is None else opened.source
            )  # opened once, read many times
            self._note_features(opened, name=name, reset=reset)
        return RowSource(X, self._request(name), backend, opened)

    def _request(self, name: str) -> Request:
        n_threads = int(effective_n_jobs(getattr(self, "n_jobs", None)))
        return Request(name, self.n_features_in_, self._feature_names, n_threads)

    def _check_rows(
        self,
        X: Any,
        *,
        name: str = "X",
        reset: bool = False,
        is_summed_later: bool = False,
    ) -> AnyArray:
        """Return X as a 2-d array of real, finite numbers, without a copy where it is one already.

        Rows that are summed later are not read for NaN and infinity now: their sums show them.
        """
        X = check_is_read(np.asarray(X) if isinstance(X, (list, tuple)) else X, name)
        is_first = name == "X"
        if not is_first:
            self._request(name).check_width(_num_features(X))
        _refuse_non_numeric(X, name)
        if np.ma.is_masked(X) and X.ndim == 2:
            row, column = (int(i) for i in np.argwhere(np.ma.getmaskarray(X))[0])
            raise not_finite_error("masked entries", name, row, column_of(column, None))
        array: AnyArray = validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=int(is_first),
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
        if self._center_ is not None:
            numbers = replace(
                numbers, of_block=composed(UnitLength(self._center_), numbers.of_block)
            )
        if backend is None:
            X = self._check_rows(X, is_summed_later=numbers.use_all_features)
            found = self._numbers_in_blocks(X, numbers)
            return concatenate(
                found if function is None else map(function, found), len(X)
            )
        of_block = numbers if function is None else composed(numbers, function)
        with report_as(1):
            return backend.apply_to_rows(X, of_block, self._request("X"))

    def _numbers_in_blocks(self, X: AnyArray, numbers: Numbers) -> Iterator[AnyArray]:
        """Compute numbers by blocks; if some are not finite, look for NaN and infinity in X."""
        is_checked = not numbers.use_all_features
        for rows, _, _ in MemoryRows(X).tiles():
            with (
                nullcontext()
                if is_checked
                else np.errstate(invalid="ignore", over="ignore")
            ):
                found = numbers(rows)
                is_finite = is_checked or bool(np.isfinite(found.sum()))
            if not is_finite:
                check_finite(X, "X", self._feature_names)
                is_checked = True
                found = numbers(
                    rows
                )  # with warnings: rows are finite, and their numbers are not
            yield found


def check_is_read(X: Any, name: str = "X") -> Any:
    """Return X, a pyarrow batch as a table; raise a TypeError for a table that is not read yet."""
    package, kind = package_and_type(X)
    if (package, kind) == ("pyarrow", "RecordBatch"):
        # scikit-learn finds the names of a table, not those of a batch.
        return sys.modules["pyarrow"].Table.from_batches([X])
    if package in ("polars", "pyarrow") and not hasattr(X, "__len__"):
        raise TypeError(
            f"{name} is a {package} {kind}, which is not read yet: pass what it reads, for example "
            f"{name}.{'collect' if package == 'polars' else 'read_all'}()."
        )
    return X


def check_weights(weights: Any, n_rows: int, name: str) -> Array | None:
    """Weights as a 1-d array of non-negative numbers, one a row."""
    if weights is None:
        return None
    if np.ma.is_masked(weights):
        raise ValueError(
            f"{name} has masked entries: fill them. Weight 0 leaves a row out."
        )
    if isinstance(weights, Real):
        weights = np.full(n_rows, weights)
    array: Array = check_array(
        weights,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name=name,
    )
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one number for each of the {n_rows} rows, got shape {array.shape}."
        )
    is_fine = (array == 0) | ((array >= _SMALLEST_WEIGHT) & (array <= _LARGEST_WEIGHT))
    if not is_fine.all():
        row = int(np.argmin(is_fine))
        raise ValueError(
            f"{name} must be 0, which leaves a row out, or between {_SMALLEST_WEIGHT:g} and "
            f"{_LARGEST_WEIGHT:g}, got {array[row]} in row {row}."
        )
    if n_rows > 0 and not array.any():
        raise ValueError(
            f"{name} is zero for all {n_rows} rows: at least one must count."
        )
    return array


def _refuse_non_numeric(X: Any, name: str) -> None:
    """Name the first column that holds no real numbers, which NumPy's own errors do not."""
    columns: Iterable[tuple[str, Any]] = ()
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape"):
        names = list(getattr(X, "column_names", X.columns))
        refuse_repeated(names, name)
        columns = ((f"column {str(each)!r}", X[each]) for each in names)
    elif isinstance(X, np.ndarray) and X.dtype.kind in "OUSmM" and X.ndim == 2:
        columns = ((f"column {j}", X[:, j]) for j in range(X.shape[1]))
    for where, values in columns:
        _refuse_column(np.asarray(values), f"{name}, {where} holds")


def _refuse_column(values: AnyArray, found: str) -> None:
    """Raise an error that shows the first value that is no real number."""
    is_listed = values.ndim == 1 and values.dtype.kind in "OUS"
    is_numeric = (
        values.ndim == 1 and values.dtype.kind not in "mMV"
    )  # dates and records
    for value in values.tolist() if is_listed else () if is_numeric else values[:1]:
        try:
            if is_missing(value) or (is_listed and isinstance(float(value), float)):
                continue
        except OverflowError:
            message = f"{found} a number too large for float64: rescale the column."
            raise ValueError(message) from None
        except (TypeError, ValueError):
            pass
        if isinstance(value, (str, bytes)):
            raise ValueError(
                f"{found} text, for example {value!r}, which could not be converted to numbers: "
                "encode it (sklearn.preprocessing.OneHotEncoder), or drop the column."
            )
        raise TypeError(
            f"{found} {value!r}, and every argument must be a string or a real number: turn the "
            "column into numbers, or drop it."
        )
