"""Column types: how each is recognized and encoded as numbers; the pipeline of a table.

A column type is a row of ``COLUMN_TYPES``: a function that recognizes a pandas column,
an encoder that turns it into numbers, and the words of messages. Reading, fitting,
predicting and reporting all use this table, so that a new type is added here and
nowhere else. A column that no linear model can learn from is refused, with the way out.

The encoders are written by hand where those of scikit-learn cannot do what is needed:

- `OneHotEncoder(min_frequency=...)` pools rare categories, but encodes a value that it
  does not know like the pool or like the omitted category. Here such a value, and a
  pool too small to learn from, is encoded by the shares of the training rows, so that
  it has no influence. The omitted category is the most frequent one, which `drop`
  cannot name before the fit, and 1.0 and "1", or "" and "NA", are one value.
- `SimpleImputer(add_indicator=True)` flags every column with gaps. Here gaps have to be
  frequent enough to learn from, and of columns with the same gaps only one is flagged;
  what is left for the imputer is a median.

What is learned is stored in lists, dictionaries and arrays, so that a model file needs
no further types.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import AnyArray, Array
from .._estimators.labels import is_missing
from .._messages import ColumnError, Hint, say
from .._rows.unit_length import MANY_FEATURES
from .._system import require

# Names of column types, as model files have them.
NUMBER = "number"
BOOLEAN = "boolean"
CATEGORY = "category"
DATE = "date"

# A cell that holds one of these words and nothing else is empty.
EMPTY_WORDS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NULL",
    "null",
    "<NA>",
    "#N/A",
    "?",
)

# Sums of squares of larger numbers overflow.
_LARGEST_NUMBER = 1e150
# A column gets a further column that flags its gaps if there are gaps in at least this
# number of rows ...
_MIN_FLAGGED_GAPS = 10
# ... and in at least this share of the rows.
_MIN_FLAGGED_SHARE = 0.1
# The code of a category about which nothing is known.
_UNKNOWN_CODE = -1
# Columns that an error describes; further ones are counted.
_MAX_DESCRIBED_COLUMNS = 5
# A column of a vector, such as embedding_12.
_NUMBERED_NAME = re.compile(r"(.*?)\d+")
# Numbered columns count as one vector, with one unit, up to this ratio of the largest
# of their standard deviations to the median.
_MAX_SPREAD_RATIO = 50
# Up to this many different texts are categories, however few rows there are.
_CATEGORIES_IN_ANY_TABLE = 20

require_for_tables = partial(require, use="reading tables", extra="data")


def text_of(value: Any, empty: Container[str] = EMPTY_WORDS) -> str | None:
    """Return a value as text without blanks around it; None for an empty cell.

    Whole numbers are written without a decimal point: "1" for 1.0.
    """
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)):
        is_whole = math.isfinite(value) and value == int(value)
        return str(int(value)) if is_whole else str(value)
    text = str(value).strip()
    return None if text in empty else text


def texts_of(values: Any, empty: Container[str] = EMPTY_WORDS) -> AnyArray:
    """Return the text of every value, None for ``empty`` ones, as an object array."""
    # Tables repeat their values: each distinct one is converted once. The cache tells
    # apart values of different types, since 1, 1.0 and True are equal keys.
    convert = lru_cache(maxsize=None, typed=True)(partial(text_of, empty=empty))
    return np.array([convert(value) for value in values], dtype=object)


def value_types(series: Any) -> set[type]:
    """Types of the values of a column of objects; the empty set for other dtypes."""
    is_objects = series.dtype.kind == "O" and str(series.dtype) != "category"
    return {type(value) for value in series.dropna()} if is_objects else set()


def is_boolean(series: Any) -> bool:
    """Whether a column holds true and false, perhaps with gaps."""
    types = value_types(series)
    return series.dtype.kind == "b" or (bool(types) and types <= {bool, np.bool_})


class _Encoder(TransformerMixin, BaseEstimator):
    """Base class of the encoders."""

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

    A subclass for other values overrides ``_kind`` and ``_numbers``, and ``_names`` if
    it makes several numbers of a column.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians."""
        self._check_columns(X, reset=True)
        self.column_kinds_ = {name: self._kind(X[name]) for name in X.columns}
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        medians = []
        for column in numbers.T:
            known = column[~np.isnan(column)]
            medians.append(np.median(known) if len(known) else 0.0)
        self.medians_ = np.array(medians)
        self.flagged_ = _worth_flagging(X.isna())
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers without gaps, then the columns that flag gaps."""
        self._check_columns(X)
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        filled = np.where(np.isnan(numbers), self.medians_, numbers)
        flags = X[self.flagged_].isna().to_numpy(dtype=np.float64)
        return np.column_stack([filled, flags])

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns, and "NAME is empty" for flags."""
        check_is_fitted(self)
        flags = [_level_name(name, None) for name in self.flagged_]
        return np.array([*self._names(), *flags], dtype=object)

    def _kind(self, series: Any) -> str:
        return BOOLEAN if is_boolean(series) else NUMBER

    def _names(self) -> Sequence[str]:
        """Names of the columns of ``_numbers``."""
        return list(self.feature_names_in_)

    def _numbers(self, X: Any) -> Array:
        """Columns as float64, NaN where there is a gap."""
        is_plain = [
            isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes
        ]
        if all(is_plain):
            return np.ascontiguousarray(X.to_numpy(dtype=np.float64))
        return np.column_stack([_to_numbers(X[name], name) for name in X.columns])


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
            parts = _parts_of_dates(X[name])
            varies = {part: values.nunique() > 1 for part, values in parts.items()}
            varies["weekday"] &= varies.pop("day")
            self.parts_ += [[name, part] for part in varies if varies[part]]
        return super().fit(X)

    def _kind(self, series: Any) -> str:
        return DATE

    def _names(self) -> Sequence[str]:
        return [f"{name} {part}" for name, part in self.parts_]

    def _numbers(self, X: Any) -> Array:
        parts = {name: _parts_of_dates(X[name]) for name in X.columns}
        numbers = [
            parts[name][part].to_numpy(dtype=np.float64) for name, part in self.parts_
        ]
        # The empty part keeps the number of rows if no part varies.
        return np.column_stack([np.empty((len(X), 0)), *numbers])


def _parts_of_dates(series: Any) -> dict[str, Any]:
    dates = series.astype("datetime64[us]").dt
    return {
        "year": dates.year,
        "month": dates.month,
        "weekday": dates.day_of_week + 1,
        "day": dates.day,
    }


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
        self.codings_ = [_coding(name, texts_of(X[name])) for name in X.columns]
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns of 0 and 1."""
        self._check_columns(X)
        columns = zip(X.columns, self.codings_, strict=True)
        parts = [_indicators(coding, texts_of(X[name])) for name, coding in columns]
        return np.column_stack([np.empty((len(X), 0)), *parts])

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Count the cells of every column whose text has no category of its own."""
        counts = {}
        for name, coding in zip(self.feature_names_in_, self.codings_, strict=True):
            known = {None, *coding["codes"]}
            n_unknown = 0
            # Counted by value, so that each value is turned into text once.
            for value, n_cells in X[name].value_counts().items():
                if text_of(value) not in known:
                    n_unknown += int(n_cells)
            if n_unknown:
                counts[name] = n_unknown
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return "COLUMN = category" for every column of 0 and 1."""
        check_is_fitted(self)
        names = [name for coding in self.codings_ for name in coding["names"][1:]]
        return np.array(names, dtype=object)


class VectorScaler(StandardScaler):
    """Scales columns to mean 0 and variance 1, the columns of a vector by one factor.

    The columns of a vector, such as the features of a network, have the same unit: how
    much each of them varies says how much it matters. Their mean variance becomes 1. If
    one of them varies far more than the others, they are scaled like any other columns.

    Parameters
    ----------
    vectors : list of lists of int
        Positions of the columns of every vector.
    """

    def __init__(self, vectors: Sequence[Sequence[int]] = ()) -> None:
        super().__init__()
        self.vectors = vectors

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn means and scales."""
        super().fit(X, y, sample_weight)
        for vector in self.vectors:
            columns = list(vector)
            variances = self.var_[columns]
            if variances.max() <= _MAX_SPREAD_RATIO**2 * np.median(variances):
                self.mean_[columns] = 0.0
                self.scale_[columns] = math.sqrt(variances.mean()) or 1.0
        return self


def _vectors_of(encoder: Any) -> list[list[int]]:
    """Positions of numbered columns that are many enough for a vector, by vector."""
    steps = getattr(encoder, "transformers", ())
    # Encoded numbers come first, so that positions in the step are positions in X.
    if not steps or steps[0][0] != "numbers":
        return []
    positions_by_stem: dict[str, list[int]] = {}
    for position, name in enumerate(steps[0][2]):
        numbered = _NUMBERED_NAME.fullmatch(name)
        if numbered is not None:
            positions_by_stem.setdefault(numbered[1], []).append(position)
    return [
        positions
        for positions in positions_by_stem.values()
        if len(positions) >= MANY_FEATURES
    ]


@dataclass(frozen=True)
class ColumnType:
    """A type of column. A new one is a row of ``COLUMN_TYPES`` and perhaps an encoder.

    Attributes
    ----------
    name : str
        The name in model files.
    holds : callable
        Tells whether a pandas column is of this type.
    step : str
        Name of the step of the ``ColumnTransformer``, a plural as in "2 of numbers".
        Types of one step share an encoder.
    encoder : transformer
        Unfitted; it is cloned.
    arrow : str
        Arrow type, as Arrow writes it, of the cells of a CSV file for prediction.
    dtypes : str
        Kinds of NumPy dtypes that prediction accepts.
    cells : str
        What the cells hold, as in "must hold numbers".
    """

    name: str
    holds: Callable[[Any], bool]
    step: str
    encoder: Any
    arrow: str
    dtypes: str
    cells: str


def _is_number(series: Any) -> bool:
    types = value_types(series) - {bool, np.bool_}
    is_numbers = bool(types) and all(
        issubclass(kind, (int, float, np.number)) for kind in types
    )
    return series.dtype.kind in "iuf" or is_numbers


def _is_category(series: Any) -> bool:
    if str(series.dtype) == "category":
        return True
    if series.dtype.kind != "O" or is_boolean(series) or _is_number(series):
        return False
    return _reason_against(series) is None


def _is_date(series: Any) -> bool:
    """Whether a column holds dates without a time zone (not "datetime64[us, UTC]")."""
    dtype = str(series.dtype)
    return dtype.startswith("datetime64") and "," not in dtype


# The first type that a column holds is taken.
COLUMN_TYPES = [
    ColumnType(
        NUMBER,
        _is_number,
        step="numbers",
        encoder=NumberEncoder(),
        arrow="double",
        dtypes="biuf",
        cells="numbers",
    ),
    ColumnType(
        BOOLEAN,
        is_boolean,
        step="numbers",
        encoder=NumberEncoder(),
        arrow="bool",
        dtypes="biuf",
        cells="true or false",
    ),
    ColumnType(
        CATEGORY,
        _is_category,
        step="categories",
        encoder=CategoryEncoder(),
        arrow="string",
        dtypes="biufO",
        cells="text",
    ),
    ColumnType(
        DATE,
        _is_date,
        step="dates",
        encoder=DateEncoder(),
        arrow="timestamp[us]",
        dtypes="M",
        cells="dates such as 2020-03-12",
    ),
]


def type_named(name: str) -> ColumnType:
    """Return the column type of this name."""
    return next(each for each in COLUMN_TYPES if each.name == name)


def preprocessing(features: Any) -> ColumnTransformer:
    """Make an unfitted transformer that turns the columns of a table into numbers.

    Numbers and booleans are kept, and their gaps filled with the median; a column with
    gaps in at least 1 of 10 rows, and in at least 10 rows, gets an indicator column.
    Categories become columns of 0 and 1, one for each but the most frequent; rare
    categories are pooled, and unknown ones have no influence. Dates become year, month
    and weekday, as far as these vary. All this is learned by ``fit``, so that it can be
    done inside a fold. Features are named after the columns of the table: "color =
    red", "age is empty", "visit month".

    Parameters
    ----------
    features : DataFrame
        The table, without its target. Kinds and names of columns are taken from it;
        nothing that is learned from it is kept.

    Returns
    -------
    transformer : ColumnTransformer
        Takes frames with these columns, in any order, and gives frames of numbers.
    """
    columns_by_step: dict[str, list[str]] = {}
    for name, kind in kinds_of(features).items():
        columns_by_step.setdefault(type_named(kind).step, []).append(name)
    encoder_by_step = {each.step: each.encoder for each in COLUMN_TYPES}
    steps = [
        (step, clone(encoder), columns_by_step[step])
        for step, encoder in encoder_by_step.items()
        if step in columns_by_step
    ]
    transformer = ColumnTransformer(steps, verbose_feature_names_out=False)
    return transformer.set_output(transform="pandas")


def pipeline(encoder: Any, estimator: Any, *, scale: bool | None = None) -> Pipeline:
    """Make a pipeline of encoder and classifier, in which None marks unlabeled rows.

    Parameters
    ----------
    encoder : transformer or None
        As ``preprocessing`` returns it. None: the rows are numbers, to be used as they
        are.
    estimator : classifier
        It is cloned, and ``unlabeled`` of the clone is None, the mark that tables use.
    scale : bool, default=None
        Whether columns are divided by their standard deviation. Without shrinkage that
        changes nothing; None scales if there is shrinkage, so that it affects all
        columns equally. 64 or more numbered columns, such as embedding_0 and so on, are
        divided by one number.

    Returns
    -------
    pipeline : Pipeline
        Unfitted.
    """
    estimator = clone(estimator)
    parameters = estimator.get_params()
    if "unlabeled" in parameters:
        estimator.set_params(unlabeled=None)
    if encoder is None:
        return Pipeline([("classify", estimator)])
    if scale is None:
        scale = parameters.get("shrinkage") is not None
    vectors = _vectors_of(encoder)
    scaler = VectorScaler(vectors) if vectors else StandardScaler()
    steps = [("scale", scaler.set_output(transform="pandas"))] if scale else []
    return Pipeline([("encode", clone(encoder)), *steps, ("classify", estimator)])


def kinds_of(features: Any) -> dict[str, str]:
    """Name of the type of every column; ColumnError if some column has none."""
    kinds, reasons = kinds_and_reasons(features)
    if reasons:
        raise _unusable_error(reasons)
    return kinds


def _unusable_error(reasons: dict[str, str]) -> ColumnError:
    """Make the error for columns of no type, with the way out."""
    names = list(reasons)[:_MAX_DESCRIBED_COLUMNS]
    described = " ".join(f"Column {name!r} holds {reasons[name]}." for name in names)
    n_more = len(reasons) - len(names)
    more = f" {n_more} more columns cannot be used." if n_more else ""
    sentence = "{described}{more} Or leave out {what}: {drop}."
    if len(reasons) > 1:
        what = "all such columns"
        drop = Hint("drop_unusable", True)
    else:
        what = "the column"
        drop = Hint("drop", names)
    text = say(sentence, described=described, more=more, what=what, drop=drop)
    return ColumnError(text, column=names[0])


def kinds_and_reasons(features: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Types of the usable columns; of the others, what they hold and what to do."""
    if not hasattr(features, "iloc"):
        class_name = f"{type(features).__module__}.{type(features).__name__}"
        raise TypeError(
            f"features must be a pandas frame, got {class_name}: read_table gives one, "
            "and to_pandas() of other frames."
        )
    kinds: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name, count in Counter(features.columns).items():
        if count > 1 or not isinstance(name, str):
            raise ColumnError(
                f"Column names must be text and occur once, got {name!r}: rename it, "
                "for example by features.columns = features.columns.astype(str).",
                column=name,
            )
        series = features[name]
        kind = next((each.name for each in COLUMN_TYPES if each.holds(series)), None)
        if kind is None:
            reasons[name] = _reason_against(series) or "no values that can be used"
        else:
            kinds[name] = kind
    return kinds, reasons


def _reason_against(series: Any) -> str | None:
    """What a column of no use holds and what to do about it; None for a useful one."""
    present = series.dropna()
    usable = (str, bool, int, float, np.bool_, np.integer, np.floating)
    odd = next((value for value in present if not isinstance(value, usable)), None)
    if odd is not None:
        return (
            "values that are neither numbers nor text nor dates without a time zone, "
            f"for example {odd}: write dates as 2020-03-12, and times as numbers, for "
            "example of hours"
        )

    texts = [text for text in texts_of(present) if text is not None]
    not_numbers = [text for text in texts if number_in(text) is None]
    if texts and len(not_numbers) <= len(texts) / 2:
        example = not_numbers[0] if not_numbers else texts[0]
        return (
            f"numbers, but text in {len(not_numbers)} of {len(texts)} rows, for "
            f"example {example!r}: empty these cells if the number is unknown, or "
            "write it with digits and a decimal point alone"
        )

    n_distinct = len(set(texts))
    are_all_distinct = 2 < n_distinct == len(texts)
    if are_all_distinct or n_distinct > max(_CATEGORIES_IN_ANY_TABLE, len(texts) / 2):
        return (
            f"{n_distinct} different texts in {len(texts)} rows, for example "
            f"{texts[0]!r}: nothing can be learned from names, ids or free text; group "
            "them into categories, write numbers with digits and a decimal point alone "
            "and dates as 2020-03-12"
        )
    return None


def number_in(text: str) -> float | None:
    """The number that a cell is read as, if it is read as one."""
    # Python reads 1_000, +1 and digits of other scripts as numbers; readers of files do
    # not.
    if "_" in text or text.startswith("+") or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _refuse_extremes(numbers: Array, names: Sequence[str]) -> None:
    """Refuse infinity, and a column whose variance overflows."""
    sizes = np.fmax.reduce(np.abs(numbers), axis=0, initial=0)
    for k in np.flatnonzero(sizes > _LARGEST_NUMBER).tolist():
        raise ColumnError(
            f"Column {names[k]!r} holds numbers up to {sizes[k]:.3g} in size, and "
            "nothing above 1e150 can be computed with: empty such cells, or rescale "
            "the column.",
            column=names[k],
        )


def _to_numbers(series: Any, name: str) -> Array:
    """Numbers of a column of any dtype, NaN for gaps; ColumnError for other values."""
    numbers = require_for_tables("pandas").to_numeric(series, errors="coerce")
    # Durations, dates and complex numbers could be converted, but not meaningfully.
    is_text = (numbers.isna() & series.notna()) | (series.dtype.kind in "mMc")
    if is_text.any():
        raise ColumnError(
            f"Column {name!r} must hold numbers, got {series[is_text].iloc[0]!r}: "
            "empty the cell if the number is unknown.",
            column=name,
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _worth_flagging(is_gap: Any) -> list[str]:
    """Columns whose gaps get a flag: the first of those with the same gaps."""
    n_rows = len(is_gap)
    n_gaps = is_gap.sum()
    # In a column with more gaps than values, the values are what is rare.
    n_rarer = n_gaps.where(2 * n_gaps <= n_rows, n_rows - n_gaps)
    limit = max(_MIN_FLAGGED_GAPS, _MIN_FLAGGED_SHARE * n_rows)
    name_by_gaps: dict[bytes, str] = {}
    for name in is_gap.columns[n_rarer >= limit]:
        name_by_gaps.setdefault(is_gap[name].to_numpy().tobytes(), name)
    return list(name_by_gaps.values())


def _coding(name: str, texts: AnyArray) -> dict[str, Any]:
    """Codes of the categories of a column, most frequent first; their names and shares.

    They are plain lists and dictionaries, which a model file can hold.
    """
    counts = Counter(texts.tolist())
    n_empty = counts.pop(None, 0)
    # Rows that it takes for a category of its own.
    n_enough = max(2, min(5, len(texts) // 10), len(texts) // 100)
    n_rare = sum(count for count in counts.values() if count < n_enough)

    # A level is a count, a kind and a text. Categories, the pool of rare ones and the
    # gaps are levels if there are enough of them.
    levels = [(count, "=", text) for text, count in counts.items()]
    levels += [(n_rare, "rare", ""), (n_empty, "empty", "")]
    levels = [level for level in levels if level[0] >= n_enough]
    levels.sort(key=lambda level: (-level[0], level[1], level[2]))

    codes: dict[str, int] = {}
    code_by_kind = {"rare": _UNKNOWN_CODE, "empty": _UNKNOWN_CODE}
    names = []
    for code, (_, kind, text) in enumerate(levels):
        if kind == "=":
            codes[text] = code
            names.append(_level_name(name, text))
        else:
            code_by_kind[kind] = code
            names.append(_level_name(name, "any other" if kind == "rare" else None))
    total = max(sum(count for count, _, _ in levels), 1)
    return {
        "codes": codes,
        "rare": code_by_kind["rare"],
        "empty": code_by_kind["empty"],
        "names": names,
        "shares": [count / total for count, _, _ in levels],
    }


def _indicators(coding: dict[str, Any], texts: AnyArray) -> Array:
    """Columns of 0 and 1 for all categories of a column but the first."""
    code_of_text = {None: coding["empty"], **coding["codes"]}
    codes = np.array(
        [code_of_text.get(text, coding["rare"]) for text in texts], dtype=int
    )
    shares = np.array(coding["shares"], dtype=np.float64)
    # A row for each code; the last row, the shares, is that of _UNKNOWN_CODE, -1.
    rows = np.vstack([np.eye(len(shares)), shares[None, :]])
    return rows[codes][:, 1:]


def _level_name(name: str, text: str | None) -> str:
    """Name of the column of 0 and 1 for a category; None stands for gaps."""
    return f"{name} is empty" if text is None else f"{name} = {text}"
