"""Rows that users pass, wherever they are: opened once, checked, read in blocks.

A ``RowsReader`` opens an argument of ``fit`` as a ``RowSource``, and applies a
``RowFunction`` to the rows of ``predict``. Arrays and tables become an array in memory;
for everything else a backend (``_rows``) reads the rows. An argument is opened once:
whoever needs some of its rows, or other weights, asks the opened rows for them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import _num_features, validate_data

from .._core import AnyArray, Array
from .._core.rows import Rows
from .._rows import WeightedRows, backend_of, report_as
from .._rows.checks import check_finite, column_of, not_finite_error, refuse_repeated
from .._rows.kinds import is_device_array, package_and_type
from .._rows.memory import MemoryRows, concatenate
from .._rows.protocol import Request
from .._rows.views import View, chained
from .labels import is_missing
from .predictions import RowFunction


@dataclass(frozen=True)
class RowSource:
    """Opened rows of one argument of ``fit``: all of them, or those of ``is_member``.

    Attributes
    ----------
    X : array or object
        The rows as an array, or what a backend reads them from.
    request : Request
        What the fit wants of the rows: their features, threads, view.
    opened : WeightedRows or None
        All rows, opened by a backend; None for an array in memory.
    weights : (n_rows,), optional
        Weights of all rows, members or not.
    is_member : (n_rows,), optional
        Mask of the members; None: all rows.
    """

    X: Any
    request: Request
    opened: WeightedRows | None = None
    weights: Array | None = None
    is_member: AnyArray | None = None

    @property
    def n_rows(self) -> int:
        """Exact number of rows, members or not; some backends have to read to count."""
        return len(self.X) if self.opened is None else self.opened.count()

    @property
    def n_features(self) -> int:
        """Number of features, as the view of the rows gives them."""
        view = self.request.view
        return (self.request.n_features or 0) if view is None else view.n_features

    @property
    def keeps_columns(self) -> bool:
        """Whether every feature is a column of the rows."""
        return self.request.view is None or self.request.view.keeps_columns

    @property
    def is_in_memory(self) -> bool:
        return self.opened is None

    @property
    def is_held(self) -> bool:
        """Whether the rows are an array, in memory or on a device."""
        return self.opened is None or is_device_array(self.X)

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
        if self.opened is None:
            n_threads = self.request.n_threads
            rows = MemoryRows(self.X, weights, is_member, n_threads=n_threads)
        else:
            rows = self.opened.restricted(weights, is_member)
        rows.view = self.request.view
        return rows

    def held(self, is_member: AnyArray) -> RowSource:
        """Return the marked rows as an array in memory, mapped by the view."""
        weights = None if self.weights is None else self.weights[is_member]
        if self.opened is None and self.request.view is None:
            return RowSource(self.X[is_member], self.request, weights=weights)
        # A sample as large as their number has all rows, in their order, and mapped.
        rows, _ = self._rows(None, is_member).sample(
            int(np.count_nonzero(is_member)), 0
        )
        return RowSource(rows, self._mapped_request, weights=weights)

    def viewed(self, view: View) -> RowSource:
        """Map rows as they are read; fewer rows than features are mapped at once."""
        if self.opened is None and len(self.X) < self.X.shape[1]:
            mapped = view(np.asarray(self.X, dtype=np.float64))
            source = replace(self, request=replace(self.request, view=view))
            return replace(self, X=mapped, request=source._mapped_request)
        every_view = chained(self.request.view, view)
        return replace(self, request=replace(self.request, view=every_view))

    @property
    def _mapped_request(self) -> Request:
        """The request for rows that were mapped already."""
        names = self.request.feature_names if self.keeps_columns else None
        return replace(
            self.request, view=None, n_features=self.n_features, feature_names=names
        )

    def check_finite(self) -> None:
        """Raise a ValueError that names row and column of NaN or infinity.

        Sources to be read find them when they are read.
        """
        if self.opened is None:
            check_finite(self.X, self.request.name, self.request.feature_names)
        else:
            self.opened.check_finite()


class RowsReader:
    """Reads rows for an estimator, which keeps number and names of the features of fit.

    The first argument that is opened with ``is_first`` sets ``n_features_in_`` and
    ``feature_names_in_`` of the estimator; all others must have the same features.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._n_threads = int(effective_n_jobs(getattr(estimator, "n_jobs", None)))

    @property
    def feature_names(self) -> AnyArray | None:
        names: AnyArray | None = getattr(self.estimator, "feature_names_in_", None)
        return names

    def open(
        self,
        X: Any,
        name: str = "X",
        *,
        is_first: bool = False,
        is_summed_later: bool = False,
    ) -> RowSource:
        """Open rows, and check them as far as is possible without reading them.

        Rows in memory that are summed later are not searched for NaN and infinity:
        their sums show them.
        """
        backend = backend_of(X)
        if backend is None:
            array = self._array_of(X, name, is_first=is_first)
            if not is_summed_later:
                check_finite(array, name, self.feature_names)
            return RowSource(array, self._request(name))
        # The first argument decides which features there are, and later ones must have
        # the same.
        if is_first:
            request = Request(name, n_threads=self._n_threads)
        else:
            request = self._request(name)
        opened = backend.open_rows(X, request)
        self._note_features(opened, name, is_first=is_first)
        return RowSource(X, self._request(name), opened)

    def apply(self, X: Any, function: RowFunction) -> Any:
        """Return the results of a function of rows, in a container like that of X.

        Rows are read in blocks, so that no copy of X is made.
        """
        backend = backend_of(X)
        if backend is None:
            array = self._array_of(X, "X")
            results = self._results_by_block(array, function)
            return concatenate(results, len(array))
        with report_as(1):
            return backend.apply_to_rows(X, function, self._request("X"))

    def _request(self, name: str) -> Request:
        n_features = self.estimator.n_features_in_
        return Request(name, n_features, self.feature_names, self._n_threads)

    def _array_of(self, X: Any, name: str, *, is_first: bool = False) -> AnyArray:
        """Return X as a 2-d array of real numbers, not copied if it is one already."""
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)
        X = as_read(X, name)
        if name != "X":
            # scikit-learn would call the argument X.
            self._request(name).check_width(_num_features(X))
        _refuse_non_numeric(X, name)
        if np.ma.is_masked(X) and X.ndim == 2:
            row, column = np.argwhere(np.ma.getmaskarray(X))[0].tolist()
            raise not_finite_error("masked entries", name, row, column_of(column, None))
        array: AnyArray = validate_data(
            self.estimator,
            X,
            reset=is_first,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=int(name == "X"),
        )
        # scikit-learn leaves objects that pyarrow makes of nulls and decimals as they
        # are.
        is_wider_than_double = array.dtype == np.longdouble != np.float64
        if array.dtype.kind == "O" or is_wider_than_double:
            # Numbers that overflow become infinity, which is found like any other.
            with np.errstate(over="ignore"):
                array = array.astype(np.float64)
        return array

    def _note_features(
        self, opened: WeightedRows, name: str, *, is_first: bool
    ) -> None:
        """Set or compare features, as scikit-learn does for arrays."""
        names = opened.feature_names
        estimator = self.estimator
        if is_first:
            estimator.n_features_in_ = opened.n_features
            if names is not None:
                estimator.feature_names_in_ = np.asarray(names, dtype=object)
            elif hasattr(estimator, "feature_names_in_"):
                del estimator.feature_names_in_
        elif names is None and self.feature_names is not None:
            warnings.warn(
                f"{name} does not have valid feature names, but "
                f"{type(estimator).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=2,
            )

    def _results_by_block(
        self, array: AnyArray, function: RowFunction
    ) -> Iterator[AnyArray]:
        """Yield results; where numbers are not finite, look for NaN and infinity."""
        # NaN and infinity show in numbers that depend on every feature: rows are then
        # searched only where numbers are not finite, which saves a pass.
        is_checked = not function.uses_all_features
        if is_checked:
            check_finite(array, "X", self.feature_names)
        for tile in MemoryRows(array).tiles():
            numbers = function.numbers(tile.rows)
            if not is_checked:
                with np.errstate(invalid="ignore", over="ignore"):
                    is_finite = bool(np.isfinite(numbers.sum()))
                if not is_finite:
                    check_finite(array, "X", self.feature_names)
                    is_checked = True
            yield function.result(numbers)


def as_read(X: Any, name: str = "X") -> Any:
    """Return X, a pyarrow batch as a table; TypeError for a table not read yet."""
    package, kind = package_and_type(X)
    if (package, kind) == ("pyarrow", "RecordBatch"):
        # scikit-learn finds the names of a table, not those of a batch.
        return sys.modules["pyarrow"].Table.from_batches([X])
    if package in ("polars", "pyarrow") and not hasattr(X, "__len__"):
        method = "collect" if package == "polars" else "read_all"
        raise TypeError(
            f"{name} is a {package} {kind}, which is not read yet: pass what it reads, "
            f"for example {name}.{method}()."
        )
    return X


def _refuse_non_numeric(X: Any, name: str) -> None:
    """Raise an error that names the first column without real numbers."""
    columns: Iterable[tuple[str, Any]] = ()
    # Tables of pandas, polars or pyarrow; the last one calls its names column_names.
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape"):
        names = list(getattr(X, "column_names", X.columns))
        refuse_repeated(names, name)
        columns = ((f"column {str(each)!r}", X[each]) for each in names)
    # Objects, texts and times; other arrays hold numbers.
    elif isinstance(X, np.ndarray) and X.dtype.kind in "OUSmM" and X.ndim == 2:
        columns = ((f"column {j}", X[:, j]) for j in range(X.shape[1]))
    for column, values in columns:
        _refuse_column(np.asarray(values), f"{name}, {column} holds")


def _refuse_column(values: AnyArray, holds: str) -> None:
    """Raise an error that shows the first value that is not a real number."""
    # Objects and texts may be numbers, so that each value has to be looked at.
    is_listed = values.ndim == 1 and values.dtype.kind in "OUS"
    if is_listed:
        suspects = values.tolist()
    elif values.ndim == 1 and values.dtype.kind not in "mMV":
        return
    else:
        # Dates, records, columns of several columns: one value shows what all are.
        suspects = list(values[:1])
    for value in suspects:
        if is_missing(value) or (is_listed and _is_number(value, holds)):
            continue
        if isinstance(value, (str, bytes)):
            raise ValueError(
                f"{holds} text, for example {value!r}, which could not be converted to "
                "numbers: fit iclda.tabular.TableClassifier, which encodes text, or "
                "drop the column."
            )
        raise TypeError(
            f"{holds} {value!r}, and every argument must be a string or a real number: "
            "turn the column into numbers, or drop it."
        )


def _is_number(value: Any, holds: str) -> bool:
    """Return whether a value is a number, or text of one."""
    try:
        return isinstance(float(value), float)
    except OverflowError:
        message = f"{holds} a number too large for float64: rescale the column."
        raise ValueError(message) from None
    except (TypeError, ValueError):
        return False
