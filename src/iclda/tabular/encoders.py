"""Encoders: columns of a table in, columns of numbers without gaps out.

    color    age  visit                 age  color = red  visit month  visit weekday
    green     31  2020-03-12             31            0            3              4
    red           2020-04-02    ->      39            1            4              4
    green     39  2020-05-20             39            0            5              3
    red       40  2020-05-27             40            1            5              3

A gap among numbers is filled with the median. The most frequent category has no column.
Parts of dates that do not vary, here the year, are left out.

The encoders are written by hand where those of scikit-learn cannot do what is needed:

- `OneHotEncoder(min_frequency=...)` pools rare categories, but encodes a value that it
  does not know like the pool or like the omitted category. Here such a value, and a
  pool too small to learn from, is encoded by the shares of the training rows, so that
  it has no influence. The omitted category is the most frequent one, which `drop`
  cannot name before the fit, and 1.0 and "1", or "" and "NA", are one value.
- `SimpleImputer(add_indicator=True)` flags every column with gaps. Here gaps have to be
  frequent enough to learn from, and of columns with the same gaps only one is flagged;
  what is left for the imputer is a median.
- `TableVectorizer` of skrub also recognizes columns, but encodes names and free text,
  of which a person is told here that nothing can be learned from them; its encoders of
  numbers and of categories are those of scikit-learn.

What is learned is stored in lists, dictionaries and arrays, so that a model file needs
no further types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import AnyArray, Array
from .._messages import ColumnError
from .cells import is_boolean, require_for_tables, text_of, texts_of
from .written_values import amount_form, amounts, date_form, dates

# Names of column types, as model files have them.
NUMBER = "number"
BOOLEAN = "boolean"
CATEGORY = "category"
DATE = "date"
AMOUNT = "amount"
WRITTEN_DATE = "written date"
# Sums of squares of larger numbers overflow.
_LARGEST_NUMBER = 1e150
# A column gets a further column that flags its gaps if there are gaps in at least this
# number of rows ...
_MIN_FLAGGED_GAPS = 10
# ... and in at least this share of the rows.
_MIN_FLAGGED_SHARE = 0.1
# A level is encoded if it has at least one in this number of rows ...
_ROWS_PER_LEVEL_ROW = 100
# ... and at least this number of rows ...
_MIN_LEVEL_ROWS = 5
# ... but in tables of fewer than 50 rows, one in this number ...
_FEW_ROWS_PER_LEVEL_ROW = 10
# ... and this number of rows.
_MIN_LEVEL_ROWS_OF_FEW = 2
# The code of a category about which nothing is known.
_UNKNOWN_CODE = -1
# Kinds of levels of a column of categories.
_KNOWN = "="
_GAPS = "empty"
_RARE = "rare"
# Equally frequent levels come in this order.
_KIND_ORDER = (_KNOWN, _GAPS, _RARE)
# Numbered columns count as one vector, with one unit, up to this ratio of the largest
# of their standard deviations to the median.
_MAX_SPREAD_RATIO = 50
# A column of indicators is 0 or 1 in at least this share of the rows.
_MIN_SHARE_OF_INDICATORS = 0.9


class _Encoder(TransformerMixin, BaseEstimator):
    """Base class of the encoders."""

    def with_forms_of(self, X: Any) -> Self:
        """Take the forms of cells from whole columns; most encoders have none."""
        return self

    def _check_columns(self, X: Any, *, reset: bool = False) -> None:
        """Check the names of the columns, which ``reset`` sets."""
        if not reset:
            check_is_fitted(self)
        validate_data(self, X, reset=reset, skip_check_array=True)


class NumberEncoder(_Encoder):
    """Numbers and booleans as float64, gaps filled with the median.

    Columns with gaps in at least 1 of 10 rows of the fit, and in at least 10 rows, get
    an indicator column, 1 where there was a gap; of columns with the same gaps, the
    first.

    A subclass for other values overrides ``_kind`` and ``_numbers``, which raises a
    ``ColumnError`` for a cell that is not such a value. One that makes several numbers
    of a column, as ``DateEncoder`` does, overrides ``_names``, and learns in ``fit``
    which of them vary.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians, and which gaps are worth a flag."""
        self._check_columns(X, reset=True)
        self.column_kinds_ = {}
        for name in X.columns:
            self.column_kinds_[name] = self._kind(X[name])
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        medians = [_median(column) for column in numbers.T]
        self.medians_ = np.array(medians)
        self.flagged_ = _worth_flagging(X.isna())
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers without gaps, then the columns that flag gaps."""
        self._check_columns(X)
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        is_gap = np.isnan(numbers)
        # The medians, one for each column, are repeated in all rows.
        filled = np.where(is_gap, self.medians_, numbers)
        is_flagged_gap = X[self.flagged_].isna()
        flags = is_flagged_gap.to_numpy(dtype=np.float64)
        return np.column_stack([filled, flags])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns, and "NAME is empty" for flags."""
        check_is_fitted(self)
        flag_names = [_level_name(name, None) for name in self.flagged_]
        names = [*self._names(), *flag_names]
        return np.array(names, dtype=object)

    def _kind(self, series: Any) -> str:
        return BOOLEAN if is_boolean(series) else NUMBER

    def _names(self) -> Sequence[str]:
        """Return names for the columns of ``_numbers``."""
        return list(self.feature_names_in_)

    def _numbers(self, X: Any) -> Array:
        """Return the columns as float64, NaN where there is a gap."""
        is_plain = [_is_plain_number(dtype) for dtype in X.dtypes]
        if all(is_plain):
            # One conversion is many times faster than one per column if there are many.
            matrix = X.to_numpy(dtype=np.float64)
            return np.ascontiguousarray(matrix)
        columns = [_to_numbers(X[name], name) for name in X.columns]
        return np.column_stack(columns)


def _is_plain_number(dtype: Any) -> bool:
    """Return whether a dtype is one of NumPy that float64 can hold."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _median(column: Array) -> float:
    """Return the median of the numbers of a column; 0 if it has gaps only."""
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else 0.0


def _refuse_extremes(numbers: Array, names: Sequence[str]) -> None:
    """Refuse infinity, and a column whose variance overflows."""
    # The largest size in each column. Unlike maximum, fmax passes over NaN, the gaps.
    sizes = np.fmax.reduce(np.abs(numbers), axis=0, initial=0)
    is_extreme = sizes > _LARGEST_NUMBER
    if not is_extreme.any():
        return
    k = int(is_extreme.argmax())
    raise ColumnError(
        f"Column {names[k]!r} holds numbers up to {sizes[k]:.3g} in size, and the "
        "limit is 1e150: empty these cells, or rescale the column.",
        column=names[k],
    )


def _to_numbers(series: Any, name: str) -> Array:
    """Return a column of any dtype as numbers, NaN for gaps.

    ColumnError for values that are not numbers.
    """
    numbers = require_for_tables("pandas").to_numeric(series, errors="coerce")
    is_text = numbers.isna() & series.notna()
    # Durations, dates and complex numbers could be converted, but not meaningfully.
    is_meaningless = series.dtype.kind in "mMc"
    is_refused = is_text | is_meaningless
    if is_refused.any():
        example = series[is_refused].iloc[0]
        raise ColumnError(
            f"Column {name!r} must hold numbers, got {example!r}: "
            "empty the cell if the number is unknown.",
            column=name,
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _worth_flagging(is_gap: Any) -> list[str]:
    """Return columns whose gaps get a flag: the first of those with the same gaps."""
    n_rows = len(is_gap)
    n_gaps = is_gap.sum()
    # In a column with more gaps than values, the values are what is rare.
    n_rarer = np.minimum(n_gaps, n_rows - n_gaps)
    n_enough = max(_MIN_FLAGGED_GAPS, _MIN_FLAGGED_SHARE * n_rows)
    has_enough = n_rarer >= n_enough
    # Two flags with the same entries would be collinear: the first name stays.
    name_by_gaps: dict[bytes, str] = {}
    for name in is_gap.columns[has_enough]:
        gaps = is_gap[name].to_numpy()
        name_by_gaps.setdefault(gaps.tobytes(), name)
    return list(name_by_gaps.values())


class DateEncoder(NumberEncoder):
    """Dates as year, month and weekday, as far as these vary; gaps get the medians.

    The weekday (1 is Monday) is left out if all dates are on the same day of a month:
    such dates stand for months, and their weekdays mean nothing.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which parts vary, and their medians."""
        # Pairs of a column and a part, as lists so that a model file can hold them.
        self.parts_: list[list[str]] = []
        for name in X.columns:
            for part in _encoded_parts(X[name]):
                self.parts_.append([name, part])
        return super().fit(X)

    def _kind(self, series: Any) -> str:
        return DATE

    def _names(self) -> Sequence[str]:
        return [f"{name} {part}" for name, part in self.parts_]

    def _numbers(self, X: Any) -> Array:
        # A column that does not vary has no parts, but its cells are checked, too.
        parts_by_name = {name: _parts_of_dates(X[name]) for name in X.columns}
        numbers = []
        for name, part in self.parts_:
            values = parts_by_name[name][part]
            numbers.append(values.to_numpy(dtype=np.float64))
        return _side_by_side(numbers, n_rows=len(X))


def _side_by_side(columns: Sequence[Array], *, n_rows: int) -> Array:
    """Return columns, of which there may be none, as one matrix."""
    # NumPy cannot stack an empty list, which does not tell the number of rows.
    no_columns = np.empty((n_rows, 0))
    return np.column_stack([no_columns, *columns])


def _encoded_parts(series: Any) -> list[str]:
    """Return the parts of the dates of a column that are encoded: those that vary."""
    parts = _parts_of_dates(series)
    varying = [name for name, values in parts.items() if values.nunique() > 1]
    # The day of the month is not encoded. If it does not vary, dates stand for months.
    if "day" in varying:
        varying.remove("day")
    elif "weekday" in varying:
        varying.remove("weekday")
    return varying


def _parts_of_dates(series: Any) -> dict[str, Any]:
    """Return the parts of the dates of a column, each as a column."""
    dates = series.astype("datetime64[us]").dt
    return {
        "year": dates.year,
        "month": dates.month,
        "weekday": dates.day_of_week + 1,
        "day": dates.day,
    }


# Every class with ``forms`` gets an ``__init__`` of its own, so that the message about
# a parameter that does not exist names the class that was called.
@dataclass(eq=False, repr=False)
class _WithForms(_Encoder):
    """Base class of encoders whose columns are text of one form each.

    A subclass has ``_form_of``, which returns the form of one column.

    Parameters
    ----------
    forms : dict of str to str, default=None
        The form of every column; None takes them from the rows of the fit.
    """

    forms: Mapping[str, str] | None = None

    def with_forms_of(self, X: Any) -> Self:
        """Take the forms from columns, of which a fit may see some rows."""
        return self.set_params(forms=self._forms_of(X))

    def _learn_forms(self, X: Any) -> None:
        self.forms_ = self._forms_of(X) if self.forms is None else dict(self.forms)

    def _forms_of(self, X: Any) -> dict[str, str]:
        return {name: self._form_of(name, X[name]) for name in X.columns}

    def _form_of(self, name: str, series: Any) -> str:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class AmountEncoder(_WithForms, NumberEncoder):
    """Numbers with signs of currency, percent or thousands, such as $1,889.50.

    Parameters
    ----------
    forms : dict of str to str, default=None
        The decimal sign of every column; None takes them from the rows of the fit.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians, and which gaps are worth a flag."""
        self._learn_forms(X)
        return super().fit(X)

    def _form_of(self, name: str, series: Any) -> str:
        form = amount_form(texts_of(series))
        return "." if form is None else form.decimal

    def _kind(self, series: Any) -> str:
        return AMOUNT

    def _numbers(self, X: Any) -> Array:
        columns = []
        for name in X.columns:
            numbers, odd = amounts(X[name], self.forms_[name])
            if odd is not None:
                raise _unlike_column(name, odd, "numbers such as $1,889.50")
            columns.append(numbers)
        return np.column_stack(columns)


@dataclass(eq=False, repr=False)
class WrittenDateEncoder(_WithForms, DateEncoder):
    """Dates in a form of their own, such as 26/11/2007, as those of ``DateEncoder``.

    Parameters
    ----------
    forms : dict of str to str, default=None
        The format of every column; None takes them from the rows of the fit.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which parts vary, and their medians."""
        self._learn_forms(X)
        return super().fit(self._dates(X))

    def transform(self, X: Any) -> Array:
        """Return the parts of the dates without gaps, then the columns for gaps."""
        self._check_columns(X)
        return super().transform(self._dates(X))

    def _form_of(self, name: str, series: Any) -> str:
        form = date_form(texts_of(series))
        if form is None:
            raise ColumnError(
                f"Column {name!r} must hold dates of one form: write them as "
                "2020-03-12.",
                column=name,
            )
        return form.format

    def _kind(self, series: Any) -> str:
        return WRITTEN_DATE

    def _dates(self, X: Any) -> Any:
        """Return the columns as dates; ColumnError for a text of another form."""
        columns = {}
        for name in X.columns:
            form = self.forms_[name]
            columns[name] = dates(X[name], form)
            is_odd = columns[name].isna() & X[name].notna()
            if is_odd.any():
                example = columns[name].dropna().head(1).dt.strftime(form)
                like = "" if example.empty else f" such as {example.iloc[0]}"
                odd = X[name][is_odd].iloc[0]
                raise _unlike_column(name, odd, f"dates of one form{like}")
        return require_for_tables("pandas").DataFrame(columns, index=X.index)


def _unlike_column(name: str, text: Any, cells: str) -> ColumnError:
    return ColumnError(
        f"Column {name!r} must hold {cells}, as in the data the model was fitted to, "
        f"got {text!r}: empty the cell if it is unknown.",
        column=name,
    )


class CategoryEncoder(_Encoder):
    """Text as columns of 0 and 1, one for every category but the most frequent.

    Categories of fewer than 1 in 100 rows, or of fewer than 5 rows, are pooled; with
    less than 50 rows the limits are 1 in 10 and 2. Gaps are a category. Values that are
    still too rare, or that ``fit`` has not seen, are encoded by the shares of the
    training rows, so that the column has no influence.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories."""
        self._check_columns(X, reset=True)
        self.column_kinds_ = dict.fromkeys(X.columns, CATEGORY)
        self.codings_ = []
        for name in X.columns:
            texts = texts_of(X[name])
            self.codings_.append(_coding(name, texts))
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns of 0 and 1."""
        self._check_columns(X)
        indicators = []
        for name, coding in zip(X.columns, self.codings_, strict=True):
            texts = texts_of(X[name])
            indicators.append(_indicators(coding, texts))
        return _side_by_side(indicators, n_rows=len(X))

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Count the cells of every column whose text has no category of its own."""
        counts = {}
        for name, coding in zip(self.feature_names_in_, self.codings_, strict=True):
            known = {None, *coding["codes"]}
            n_unknown = 0
            # Values are counted first, so that each of them is turned into text once.
            for value, n_cells in X[name].value_counts().items():
                if text_of(value) not in known:
                    n_unknown += int(n_cells)
            if n_unknown:
                counts[name] = n_unknown
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return "COLUMN = category" for every column of 0 and 1."""
        check_is_fitted(self)
        names = []
        for coding in self.codings_:
            # The first level, the most frequent one, has no column.
            names += coding["names"][1:]
        return np.array(names, dtype=object)


class _Level(NamedTuple):
    """A category of a column, the pool of its rare categories, or its gaps."""

    n_rows: int
    kind: str
    text: str = ""

    def name_in(self, column: str) -> str:
        """Name the column of 0 and 1 of the level."""
        if self.kind == _GAPS:
            return _level_name(column, None)
        if self.kind == _RARE:
            return _level_name(column, "any other")
        return _level_name(column, self.text)


def _coding(name: str, texts: AnyArray) -> dict[str, Any]:
    """Return codes, names and shares of the levels of a column, most frequent first.

    They are plain lists and dictionaries, which a model file can hold: ``codes`` of
    known texts, the codes of gaps and of rare texts under their kinds, and ``names``
    and ``shares`` of the training rows, in the order of the codes.
    """
    levels = _frequent_levels(texts)
    # The shares are those of these levels alone, and add up to 1. A column of nothing
    # but rare values has no levels.
    n_rows = sum(level.n_rows for level in levels)
    coding: dict[str, Any] = {
        "codes": {},
        _RARE: _UNKNOWN_CODE,
        _GAPS: _UNKNOWN_CODE,
        "names": [],
        "shares": [],
    }
    for code, level in enumerate(levels):
        if level.kind == _KNOWN:
            coding["codes"][level.text] = code
        else:
            coding[level.kind] = code
        coding["names"].append(level.name_in(name))
        coding["shares"].append(level.n_rows / n_rows)
    return coding


def _frequent_levels(texts: AnyArray) -> list[_Level]:
    """Return the levels of a column that have rows enough, most frequent first."""
    n_enough = _rows_enough(len(texts))
    counts = Counter(texts.tolist())
    n_gaps = counts.pop(None, 0)

    levels = []
    n_rare = 0
    for text, count in counts.items():
        levels.append(_Level(count, _KNOWN, text))
        if count < n_enough:
            n_rare += count
    levels.append(_Level(n_rare, _RARE))
    levels.append(_Level(n_gaps, _GAPS))
    # The pool and the gaps need as many rows as a category.
    frequent = [level for level in levels if level.n_rows >= n_enough]

    def order(level: _Level) -> tuple[int, int, str]:
        return -level.n_rows, _KIND_ORDER.index(level.kind), level.text

    return sorted(frequent, key=order)


def _rows_enough(n_rows: int) -> int:
    """Return how many rows of a table of ``n_rows`` a level has to have."""
    of_few_rows = min(_MIN_LEVEL_ROWS, n_rows // _FEW_ROWS_PER_LEVEL_ROW)
    of_many_rows = n_rows // _ROWS_PER_LEVEL_ROW
    return max(_MIN_LEVEL_ROWS_OF_FEW, of_few_rows, of_many_rows)


def _indicators(coding: dict[str, Any], texts: AnyArray) -> Array:
    """Return columns of 0 and 1 for all levels of a column but the first.

    A text without a code of its own is taken for a rare one. Where rare texts have no
    code either, its row holds the shares of the levels.
    """
    rare_code = coding[_RARE]
    code_of_text = {None: coding[_GAPS], **coding["codes"]}
    code_of_row = [code_of_text.get(text, rare_code) for text in texts]
    codes = np.array(code_of_row, dtype=int)

    shares = np.array(coding["shares"], dtype=np.float64)
    rows_of_levels = np.eye(len(shares))
    # A row for each code. The last row, the shares, is that of _UNKNOWN_CODE, -1.
    row_of_code = np.vstack([rows_of_levels, shares])
    indicators = row_of_code[codes]
    # The columns would add up to 1: without the first they are not collinear.
    return indicators[:, 1:]


def _level_name(name: str, text: str | None) -> str:
    """Name the column of 0 and 1 for a category; None stands for gaps."""
    return f"{name} is empty" if text is None else f"{name} = {text}"


class ColumnScaler(StandardScaler):
    """Scales columns to mean 0 and variance 1, but indicators and vectors differently.

    Indicators, columns of 0 and 1, stay as they are: divided by its small standard
    deviation, a rare category would be far larger than anything else. The columns of a
    vector, such as the features of a network, have the same unit: how much each of them
    varies says how much it matters. They are divided by one number, so that their mean
    variance becomes 1. If one of them varies far more than the others, they are scaled
    like any other columns.

    Parameters
    ----------
    vectors : list of lists of int
        Positions of the columns of every vector.
    keep_indicators : bool, default=True
        Whether columns of 0 and 1 stay as they are.
    """

    def __init__(
        self, vectors: Sequence[Sequence[int]] = (), keep_indicators: bool = True
    ) -> None:
        super().__init__()
        self.vectors = vectors
        self.keep_indicators = keep_indicators

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn means and scales."""
        super().fit(X, y, sample_weight)
        if self.keep_indicators:
            are_indicators = _are_indicators(np.asarray(X))
            self.mean_[are_indicators] = 0.0
            self.scale_[are_indicators] = 1.0
        for vector in self.vectors:
            columns = list(vector)
            variances = self.var_[columns]
            max_variance = _MAX_SPREAD_RATIO**2 * np.median(variances)
            # Otherwise the columns keep the scales that each of them has alone.
            if variances.max() <= max_variance:
                # The mean is not subtracted from a vector.
                self.mean_[columns] = 0.0
                common_scale = math.sqrt(variances.mean())
                # A vector of constant columns has the scale 1.
                self.scale_[columns] = common_scale or 1.0
        return self


def _are_indicators(rows: Array) -> AnyArray:
    """Return which columns lie between 0 and 1, nearly all of them at one of the two.

    The others are rare values, which have the shares of the training rows.
    """
    is_end = (rows == 0) | (rows == 1)
    is_mostly_end = is_end.mean(axis=0) >= _MIN_SHARE_OF_INDICATORS
    return is_mostly_end & (rows.min(axis=0) >= 0) & (rows.max(axis=0) <= 1)
