"""Encoders: columns as numbers, gaps filled, categories as columns of 0 and 1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.types import AnyArray, Array
from .._estimators.labels import is_missing
from .._messages import ColumnError, Hint, ParameterError, say
from .._packages import require

NUMBER, BOOLEAN, CATEGORY, DATE = "number", "boolean", "category", "date"
MISSING = ("impute", "refuse")  # what to do about empty cells

# A cell with one of these and nothing else is empty.
EMPTY_WORDS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A", "?")

_SMALLEST, _LARGEST = 1e-150, 1e150  # beyond these, sums of squares under- or overflow
_LEAST_GAPS, _LEAST_SHARE = 10, 0.1  # rows, and share of rows, for a column that flags gaps
_NEUTRAL = -1  # the code of a value that nothing is known about

require_for_tables = partial(require, use="reading tables", extra="data")


class _Encoder(TransformerMixin, BaseEstimator):
    """Base class of the encoders."""

    def __init__(self, *, missing: str = "impute") -> None:
        self.missing = missing

    def _check_columns(self, X: Any) -> None:
        """Raise an error unless the encoder is fitted, to these columns."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)

    def _refuse_gaps(self, is_gap: AnyArray, name: str) -> None:
        if self.missing == "refuse" and is_gap.any():
            text = say(
                "Column {name!r} is empty in {n_gaps} of {n_rows} rows, and empty cells are to be "
                "refused: fill them in, leave the rows or the column out, or pass "
                "{@missing=impute}.",
                name=name,
                n_gaps=is_gap.sum(),
                n_rows=len(is_gap),
            )
            raise ColumnError(text, column=name)


class NumberEncoder(_Encoder):
    """Numbers and booleans as float64, gaps filled with the median.

    Parameters
    ----------
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are filled or an error.
    flagged : sequence of str or "auto", default=()
        Columns that get an indicator column, 1 where there was a gap. "auto" takes columns with
        gaps in at least 1 of 10 rows of the fit, and in at least 10 rows; of columns with the same
        gaps, the first.
    """

    def __init__(self, *, missing: str = "impute", flagged: Any = ()) -> None:
        super().__init__(missing=missing)
        self.flagged = flagged

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians."""
        validate_data(self, X, skip_check_array=True)
        self.column_kinds_ = {name: self._kind(X[name]) for name in X.columns}
        numbers = self._known_or_nan(X)
        is_gap = np.isnan(numbers)
        has_gaps = is_gap.any(axis=0)
        self.medians_ = np.zeros(numbers.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            self.medians_[~has_gaps] = np.median(numbers[:, ~has_gaps], axis=0)
            for k in np.flatnonzero(has_gaps & ~is_gap.all(axis=0)):
                self.medians_[k] = np.median(numbers[~is_gap[:, k], k])
            _refuse_extremes(np.where(is_gap, self.medians_, numbers), X.columns)
        if self.flagged == "auto":
            gaps = {X.columns[k]: is_gap[:, k] for k in np.flatnonzero(has_gaps)}
            self.flagged_ = _worth_flagging(gaps)
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers without gaps, then the columns that flag gaps."""
        self._check_columns(X)
        numbers = self._known_or_nan(X)
        is_gap = np.isnan(numbers)
        places = [list(self.feature_names_in_).index(name) for name in self._flagged_columns()]
        flags = is_gap[:, places].astype(np.float64)
        return np.column_stack([np.where(is_gap, self.medians_, numbers), flags])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns, and "NAME is empty" for flags."""
        check_is_fitted(self)
        flags = [_level_name(name, None) for name in self._flagged_columns()]
        return np.array([*self.feature_names_in_, *flags], dtype=object)

    def _flagged_columns(self) -> Sequence[str]:
        return self.flagged_ if self.flagged == "auto" else self.flagged

    def _kind(self, series: Any) -> str:
        return BOOLEAN if is_boolean(series) else NUMBER

    def _numbers(self, X: Any) -> Array:
        """Columns as float64, NaN where there is a gap."""
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes):
            return np.ascontiguousarray(X.to_numpy(dtype=np.float64))
        return np.column_stack([_to_numbers(X[name], name) for name in X.columns])

    def _known_or_nan(self, X: Any) -> Array:
        numbers = self._numbers(X)
        if self.missing == "refuse":
            for name, column in zip(X.columns, numbers.T, strict=True):
                self._refuse_gaps(np.isnan(column), name)
        return numbers


class CategoryEncoder(_Encoder):
    """Text as columns of 0 and 1, one for every category but the most frequent.

    Categories of fewer than 1 in 100 rows, or of fewer than 5 rows, are pooled; with less than 50
    rows the limits are 1 in 10 and 2. Gaps are a category. Values that are still too rare, or that
    ``fit`` has not seen, are encoded by the shares of the training rows, so that the column has no
    influence.

    Parameters
    ----------
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are a category or an error.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories."""
        validate_data(self, X, skip_check_array=True)
        self.column_kinds_ = dict.fromkeys(X.columns, CATEGORY)
        self.codings_ = [_coding(name, self._texts(X[name], name)) for name in X.columns]
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns of 0 and 1."""
        self._check_columns(X)
        parts = [
            _indicators(coding, self._texts(X[name], name))
            for name, coding in zip(X.columns, self.codings_, strict=True)
        ]
        return np.column_stack([np.empty((len(X), 0)), *parts])

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Count the cells of every column that hold a text without a category of its own."""
        counts = {}
        for name, coding in zip(self.feature_names_in_, self.codings_, strict=True):
            known = {None, *coding["codes"]}
            cells = X[name].value_counts()  # each value is turned into text once
            counts[name] = sum(int(n) for value, n in cells.items() if text_of(value) not in known)
        return {name: count for name, count in counts.items() if count}

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return "COLUMN = category" for every column of 0 and 1."""
        check_is_fitted(self)
        names = [name for coding in self.codings_ for name in coding["names"][1:]]
        return np.array(names, dtype=object)

    def _texts(self, series: Any, name: str) -> AnyArray:
        texts = texts_of(series.to_numpy(dtype=object))
        if self.missing == "refuse":
            self._refuse_gaps(np.array([text is None for text in texts]), name)
        return texts


class DateEncoder(_Encoder):
    """Dates as year, month and weekday, as far as these vary; gaps filled with their medians.

    Parameters
    ----------
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are filled or an error.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which parts vary, and their medians."""
        validate_data(self, X, skip_check_array=True)
        self.column_kinds_ = dict.fromkeys(X.columns, DATE)
        self.parts_: list[list[str]] = []  # column and part
        medians = []
        for name, parts in self._parts(X).items():
            for part, numbers in parts.items():
                known = numbers[~np.isnan(numbers)]
                if len(np.unique(known)) > 1:
                    self.parts_.append([name, part])
                    medians.append(np.median(known))
        self.medians_ = np.array(medians)
        gaps = {name: X[name].isna().to_numpy(dtype=bool) for name in X.columns}
        self.flagged_ = _worth_flagging(gaps)
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers without gaps, then the columns that flag gaps."""
        self._check_columns(X)
        parts = self._parts(X)
        numbers = [parts[name][part] for name, part in self.parts_]
        filled = [np.where(np.isnan(c), m, c) for c, m in zip(numbers, self.medians_, strict=True)]
        flags = [X[name].isna().to_numpy(dtype=np.float64) for name in self.flagged_]
        return np.column_stack([np.empty((len(X), 0)), *filled, *flags])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return names such as "visit month", and "visit is empty" for flags."""
        check_is_fitted(self)
        names = [f"{name} {part}" for name, part in self.parts_]
        return np.array([*names, *(_level_name(n, None) for n in self.flagged_)], dtype=object)

    def _parts(self, X: Any) -> dict[str, dict[str, Array]]:
        """Return year, month and weekday (1 is Monday) of every column, NaN for gaps."""
        columns = {}
        for name in X.columns:
            self._refuse_gaps(X[name].isna().to_numpy(dtype=bool), name)
            dates = X[name].astype("datetime64[us]").dt
            parts = {"year": dates.year, "month": dates.month, "weekday": dates.day_of_week + 1}
            columns[name] = {part: each.to_numpy(dtype=np.float64) for part, each in parts.items()}
        return columns


def text_of(value: Any, empty: Container[str] = EMPTY_WORDS) -> str | None:
    """Return a value as text without blanks around it; None for an empty cell, "1" for 1.0."""
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    text = str(value).strip()
    return None if text in empty else text


def texts_of(values: Any, empty: Container[str] = EMPTY_WORDS) -> AnyArray:
    """Text of every value, None for ``empty`` ones, as an array of objects."""
    convert = lru_cache(maxsize=None, typed=True)(partial(text_of, empty=empty))
    return np.array([convert(value) for value in values], dtype=object)


def value_types(series: Any) -> set[type]:
    """Types of the values of a column of objects; no type for columns of any other dtype."""
    is_objects = series.dtype.kind == "O" and str(series.dtype) != "category"
    return {type(value) for value in series.dropna()} if is_objects else set()


def is_boolean(series: Any) -> bool:
    """Whether a column holds true and false, perhaps with gaps."""
    types = value_types(series)
    return series.dtype.kind == "b" or (bool(types) and types <= {bool, np.bool_})


def check_missing(missing: str) -> None:
    """Raise a ParameterError unless a way to treat empty cells has this name."""
    if missing not in MISSING:
        text = say(
            "{@missing} must be {names}, got {given!r}.", names=" or ".join(MISSING), given=missing
        )
        raise ParameterError(text, parameter="missing", value=missing)


def _refuse_extremes(numbers: Array, names: Any) -> None:
    """Refuse a column whose variance over- or underflows."""
    sizes = np.abs(numbers).max(axis=0, initial=0)
    deviations = sizes * np.std(numbers / np.where(sizes > 0, sizes, 1), axis=0)
    is_extreme = (sizes > _LARGEST) | ((deviations > 0) & (deviations < _SMALLEST))
    for name, size, deviation in zip(
        names[is_extreme], sizes[is_extreme], deviations[is_extreme], strict=True
    ):
        text = say(
            "Column {name!r} holds numbers up to {size:.3g} in size, with a standard deviation of "
            "{deviation:.3g}, and nothing above 1e150 or that varies by less than 1e-150 can be "
            "computed with: rescale the column, for example divide it by {size:.0e}, or leave it "
            "out by {drop}.",
            name=name,
            size=size,
            deviation=deviation,
            drop=Hint("drop", [name]),
        )
        raise ColumnError(text, column=name)


def _to_numbers(series: Any, name: str) -> Array:
    numbers = require_for_tables("pandas").to_numeric(series, errors="coerce")
    is_text = (numbers.isna() & series.notna()) | (series.dtype.kind in "mMc")
    if is_text.any():
        raise ColumnError(
            f"Column {name!r} must hold numbers, got {series[is_text].iloc[0]!r}: empty the cell "
            "if the number is unknown.",
            column=name,
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _worth_flagging(is_gap: dict[str, AnyArray]) -> list[str]:
    """Columns with gaps in some share of the rows; the first of those with the same gaps."""
    flagged: dict[bytes, str] = {}
    for name, column in is_gap.items():
        n_gaps = min(column.sum(), (~column).sum())
        if n_gaps >= max(_LEAST_GAPS, _LEAST_SHARE * len(column)):
            flagged.setdefault(column.tobytes(), name)
    return list(flagged.values())


def _coding(name: str, texts: AnyArray) -> dict[str, Any]:
    """Codes of the categories of a column, most frequent first, and their names and shares.

    Plain lists and dicts, so that a model file needs no type of ours for it.
    """
    counts = Counter(texts.tolist())
    least = max(2, min(5, len(texts) // 10), len(texts) // 100)  # rows of a category of its own
    n_empty = counts.pop(None, 0)
    levels = [(count, "=", text) for text, count in counts.items() if count >= least]
    n_rare = sum(count for count in counts.values() if count < least)
    levels += [(n, kind, "") for n, kind in ((n_rare, "rare"), (n_empty, "empty")) if n >= least]
    levels.sort(key=lambda level: (-level[0], level[1], level[2]))
    places = {level[1:]: code for code, level in enumerate(levels)}
    total = max(sum(level[0] for level in levels), 1)
    texts_by_kind = {"rare": _pool_name(counts), "empty": None}
    return {
        "codes": {text: code for (kind, text), code in places.items() if kind == "="},
        "rare": places.get(("rare", ""), _NEUTRAL),
        "empty": places.get(("empty", ""), _NEUTRAL),
        "names": [_level_name(name, texts_by_kind.get(kind, text)) for _, kind, text in levels],
        "shares": [level[0] / total for level in levels],
    }


def _indicators(coding: dict[str, Any], texts: AnyArray) -> Array:
    codes = {None: coding["empty"], **coding["codes"]}
    numbers = np.array([codes.get(text, coding["rare"]) for text in texts], dtype=int)
    shares = np.array(coding["shares"], dtype=np.float64)
    # The last row stands for codes of -1.
    table = np.vstack([np.eye(len(shares)), shares[None, :]])
    return table[numbers][:, 1:]


def _pool_name(texts: Container[str]) -> str:
    """Name of the pool of rare categories: a text that is none of the column's own."""
    name = "any other"
    while name in texts:
        name += " value"
    return name


def _level_name(name: str, text: str | None) -> str:
    """Name of the column of 0 and 1 for a category; None stands for gaps."""
    return f"{name} is empty" if text is None else f"{name} = {text}"
