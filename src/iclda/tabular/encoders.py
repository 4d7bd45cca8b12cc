"""Column types: how each is recognized and encoded as numbers; the pipeline of a table.

Columns that no linear model can learn from are refused with the way out.
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
from .._rows.backends import MANY_FEATURES
from .._system import require

NUMBER, BOOLEAN, CATEGORY, DATE = "number", "boolean", "category", "date"

# A cell with one of these and nothing else is empty.
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

_LARGEST = 1e150  # sums of squares of larger numbers overflow
_LEAST_GAPS, _LEAST_SHARE = (
    10,
    0.1,
)  # rows, and share of rows, for a column that flags gaps
_NEUTRAL = -1  # the code of a value that nothing is known about
_MOST_DESCRIBED = 5  # columns that an error describes; further ones are counted
_NUMBERED = re.compile(r"(.*?)\d+")
_MOST_SPREAD = 50  # times the median standard deviation of a vector is the largest
_FEW_TEXTS = 20  # so many different texts are categories, however few the rows

require_for_tables = partial(require, use="reading tables", extra="data")


def text_of(value: Any, empty: Container[str] = EMPTY_WORDS) -> str | None:
    """Return a value as text without blanks around it; None for an empty cell, "1" for 1.0."""
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)):
        return (
            str(int(value))
            if math.isfinite(value) and value == int(value)
            else str(value)
        )
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


class _Encoder(TransformerMixin, BaseEstimator):
    """Base class of the encoders."""

    def _check_columns(self, X: Any, *, reset: bool = False) -> None:
        """Check the names of the columns, which ``reset`` sets."""
        if not reset:
            check_is_fitted(self)
        validate_data(self, X, reset=reset, skip_check_array=True)


class NumberEncoder(_Encoder):
    """Numbers and booleans as float64, gaps filled with the median.

    Columns with gaps in at least 1 of 10 rows of the fit, and in at least 10 rows, get an indicator
    column, 1 where there was a gap; of columns with the same gaps, the first.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the medians."""
        self._check_columns(X, reset=True)
        self.column_kinds_ = {name: self._kind(X[name]) for name in X.columns}
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        known = [column[~np.isnan(column)] for column in numbers.T]
        self.medians_ = np.array(
            [np.median(each) if len(each) else 0.0 for each in known]
        )
        self.flagged_ = _worth_flagging(X.isna())
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers without gaps, then the columns that flag gaps."""
        self._check_columns(X)
        numbers = self._numbers(X)
        _refuse_extremes(numbers, self._names())
        flags = X[self.flagged_].isna().to_numpy(dtype=np.float64)
        return np.column_stack(
            [np.where(np.isnan(numbers), self.medians_, numbers), flags]
        )

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
        if all(
            isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes
        ):
            return np.ascontiguousarray(X.to_numpy(dtype=np.float64))
        return np.column_stack([_to_numbers(X[name], name) for name in X.columns])


class DateEncoder(NumberEncoder):
    """Dates as year, month and weekday, as far as these vary; gaps filled with their medians.

    The weekday (1 is Monday) is left out if all dates are on the same day of a month.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which parts vary, and their medians."""
        self.parts_: list[list[str]] = []  # column and part
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
        return np.column_stack([np.empty((len(X), 0)), *numbers])


def _parts_of_dates(series: Any) -> dict[str, Any]:
    dates = series.astype("datetime64[us]").dt
    weekday = dates.day_of_week + 1
    return {
        "year": dates.year,
        "month": dates.month,
        "weekday": weekday,
        "day": dates.day,
    }


class CategoryEncoder(_Encoder):
    """Text as columns of 0 and 1, one for every category but the most frequent.

    Categories of fewer than 1 in 100 rows, or of fewer than 5 rows, are pooled; with less than 50
    rows the limits are 1 in 10 and 2. Gaps are a category. Values that are still too rare, or that
    ``fit`` has not seen, are encoded by the shares of the training rows, so that the column has no
    influence.
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
        """Count the cells of every column that hold a text without a category of its own."""
        counts = {}
        for name, coding in zip(self.feature_names_in_, self.codings_, strict=True):
            known = {None, *coding["codes"]}
            cells = X[name].value_counts()  # each value is turned into text once
            counts[name] = sum(
                int(n) for value, n in cells.items() if text_of(value) not in known
            )
        return {name: count for name, count in counts.items() if count}

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return "COLUMN = category" for every column of 0 and 1."""
        check_is_fitted(self)
        names = [name for coding in self.codings_ for name in coding["names"][1:]]
        return np.array(names, dtype=object)


class VectorScaler(StandardScaler):
    """Scales columns to mean 0 and variance 1, and the columns of a vector by one factor.

    The columns of a vector, such as the features of a network, have the same unit: how much each
    of them varies says how much it matters. Their mean variance becomes 1. If one of them varies
    far more than the others, they are scaled like any other columns.

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
        for vector in map(list, self.vectors):
            variances = self.var_[vector]
            if variances.max() <= _MOST_SPREAD**2 * np.median(variances):
                self.mean_[vector] = 0.0
                self.scale_[vector] = math.sqrt(variances.mean()) or 1.0
        return self


def _vectors_of(encoder: Any) -> list[list[int]]:
    """Positions of numbered columns, such as embedding_0, that are many enough for a vector."""
    step, _, names = next(iter(getattr(encoder, "transformers", ())), ("", None, ()))
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names if step == "numbers" else ()):
        if numbered := _NUMBERED.fullmatch(name):
            found.setdefault(numbered[1], []).append(position)
    return [
        positions for positions in found.values() if len(positions) >= MANY_FEATURES
    ]


@dataclass(frozen=True)
class ColumnType:
    """A type of column. A new one is a row of ``COLUMN_TYPES`` and, as a rule, an encoder."""

    name: str  # in model files
    holds: Callable[[Any], bool]  # whether a pandas column is of this type
    step: str  # of the ColumnTransformer, as in "2 of numbers"; types of one step share an encoder
    encoder: Any  # unfitted
    arrow: str  # Arrow type, as Arrow writes it, of cells of a CSV file for prediction
    dtypes: str  # kinds of NumPy dtypes that prediction accepts
    cells: str  # as in "must hold numbers"


def _is_number(series: Any) -> bool:
    types = value_types(series) - {bool, np.bool_}
    is_numbers = bool(types) and all(
        issubclass(kind, (int, float, np.number)) for kind in types
    )
    return series.dtype.kind in "iuf" or is_numbers


def _is_category(series: Any) -> bool:
    is_text = series.dtype.kind == "O" and not (
        is_boolean(series) or _is_number(series)
    )
    return str(series.dtype) == "category" or (
        is_text and _reason_against(series) is None
    )


COLUMN_TYPES = [  # the first that holds is taken
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
        lambda series: (
            str(series.dtype).startswith("datetime64") and "," not in str(series.dtype)
        ),
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

    Numbers and booleans are kept, and their gaps filled with the median; a column with gaps in at
    least 1 of 10 rows, and in at least 10 rows, gets an indicator column. Categories become columns
    of 0 and 1, one for each but the most frequent; rare categories are pooled, and unknown ones
    have no influence. Dates become year, month and weekday, as far as these vary. All this is
    learned by ``fit``, so that it can be done inside a fold. Features are named after the columns
    of the table: "color = red", "age is empty", "visit month".

    Parameters
    ----------
    features : DataFrame
        The table, without its target. Kinds and names of columns are taken from it; nothing that
        is learned from it is kept.

    Returns
    -------
    transformer : ColumnTransformer
        Takes frames with these columns, in any order, and gives frames of numbers.
    """
    columns: dict[str, list[str]] = {}  # by step
    for name, kind in kinds_of(features).items():
        columns.setdefault(type_named(kind).step, []).append(name)
    encoders = {each.step: each.encoder for each in COLUMN_TYPES}
    steps = [
        (step, clone(encoder), columns[step])
        for step, encoder in encoders.items()
        if step in columns
    ]
    transformer = ColumnTransformer(steps, verbose_feature_names_out=False)
    return transformer.set_output(transform="pandas")


def pipeline(encoder: Any, estimator: Any, *, scale: bool | None = None) -> Pipeline:
    """Make a pipeline of encoder and classifier, in which None marks unlabeled rows.

    Parameters
    ----------
    encoder : transformer or None
        As ``preprocessing`` returns it. None: the rows are numbers, to be used as they are.
    estimator : classifier
        It is cloned, and ``unlabeled`` of the clone is None, the mark that tables use.
    scale : bool, default=None
        Whether columns are divided by their standard deviation. Without shrinkage that changes
        nothing; None scales if there is shrinkage, so that it affects all columns equally. 64 or
        more numbered columns, such as embedding_0 and so on, are divided by one number.

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
    """Name of the type of every column; ColumnError, with the way out, for those without one."""
    kinds, reasons = kinds_and_reasons(features)
    if reasons:
        names = list(reasons)[:_MOST_DESCRIBED]
        held = " ".join(f"Column {name!r} holds {reasons[name]}." for name in names)
        n_more = len(reasons) - len(names)
        text = say(
            "{held}{more} Or leave out {what}: {drop}.",
            held=held,
            more=f" {n_more} more columns cannot be used." if n_more else "",
            what="all such columns" if len(reasons) > 1 else "the column",
            drop=Hint("drop_unusable", True)
            if len(reasons) > 1
            else Hint("drop", names),
        )
        raise ColumnError(text, column=names[0])
    return kinds


def kinds_and_reasons(features: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Types of the usable columns; of the others, what each holds and what to do about that."""
    if not hasattr(features, "iloc"):
        raise TypeError(
            f"features must be a pandas frame, got {type(features).__module__}."
            f"{type(features).__name__}: read_table gives one, and to_pandas() of other frames."
        )
    kinds, reasons = {}, {}
    for name, count in Counter(features.columns).items():
        if count > 1 or not isinstance(name, str):
            raise ColumnError(
                f"Column names must be text and occur once, got {name!r}: rename it, for example "
                "by features.columns = features.columns.astype(str).",
                column=name,
            )
        kind = next(
            (each.name for each in COLUMN_TYPES if each.holds(features[name])), None
        )
        if kind is None:
            reasons[name] = (
                _reason_against(features[name]) or "no values that can be used"
            )
        else:
            kinds[name] = kind
    return kinds, reasons


def _reason_against(series: Any) -> str | None:
    """What a column holds that cannot be learned from, and what to do; None if it can be."""
    present = series.dropna()
    usable = (str, bool, int, float, np.bool_, np.integer, np.floating)
    odd = next((value for value in present if not isinstance(value, usable)), None)
    if odd is not None:
        return (
            f"values that are neither numbers nor text nor dates without a time zone, for example "
            f"{odd}: write dates as 2020-03-12, and times as numbers, for example of hours"
        )
    values = [text for text in texts_of(present) if text is not None]
    unique = set(values)
    odd_texts = [value for value in values if number_in(value) is None]
    if values and len(odd_texts) <= len(values) / 2:
        return (
            f"numbers, but text in {len(odd_texts)} of {len(values)} rows, for example "
            f"{(odd_texts or values)[0]!r}: empty these cells if the number is unknown, or write "
            "it with digits and a decimal point alone"
        )
    if len(unique) > max(_FEW_TEXTS, len(values) / 2) or 2 < len(unique) == len(values):
        return (
            f"{len(unique)} different texts in {len(values)} rows, for example {values[0]!r}: "
            "nothing can be learned from names, ids or free text; group them into categories, "
            "write numbers with digits and a decimal point alone and dates as 2020-03-12"
        )
    return None


def number_in(text: str) -> float | None:
    """The number that a cell is read as, if it is read as one."""
    if "_" in text or text.startswith("+") or not text.isascii():
        return None  # numbers to Python only
    try:
        return float(text)
    except ValueError:
        return None


def _refuse_extremes(numbers: Array, names: Sequence[str]) -> None:
    """Refuse infinity, and a column whose variance overflows."""
    sizes = np.fmax.reduce(np.abs(numbers), axis=0, initial=0)
    for k in np.flatnonzero(sizes > _LARGEST).tolist():
        raise ColumnError(
            f"Column {names[k]!r} holds numbers up to {sizes[k]:.3g} in size, and nothing above "
            "1e150 can be computed with: empty such cells, or rescale the column.",
            column=names[k],
        )


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


def _worth_flagging(is_gap: Any) -> list[str]:
    """Columns with gaps in some share of the rows; the first of those with the same gaps."""
    n_gaps = is_gap.sum()
    n_gaps = n_gaps.where(2 * n_gaps <= len(is_gap), len(is_gap) - n_gaps)
    flagged: dict[bytes, str] = {}
    for name in is_gap.columns[n_gaps >= max(_LEAST_GAPS, _LEAST_SHARE * len(is_gap))]:
        flagged.setdefault(is_gap[name].to_numpy().tobytes(), name)
    return list(flagged.values())


def _coding(name: str, texts: AnyArray) -> dict[str, Any]:
    """Codes of the categories of a column, most frequent first, and their names and shares.

    Plain lists and dicts, so that a model file needs no type of ours for it.
    """
    counts = Counter(texts.tolist())
    least = max(
        2, min(5, len(texts) // 10), len(texts) // 100
    )  # rows of a category of its own
    n_empty = counts.pop(None, 0)
    levels = [(count, "=", text) for text, count in counts.items() if count >= least]
    n_rare = sum(count for count in counts.values() if count < least)
    levels += [
        (n, kind, "")
        for n, kind in ((n_rare, "rare"), (n_empty, "empty"))
        if n >= least
    ]
    levels.sort(key=lambda level: (-level[0], level[1], level[2]))
    places = {level[1:]: code for code, level in enumerate(levels)}
    total = max(sum(level[0] for level in levels), 1)
    texts_by_kind = {"rare": "any other", "empty": None}
    return {
        "codes": {text: code for (kind, text), code in places.items() if kind == "="},
        "rare": places.get(("rare", ""), _NEUTRAL),
        "empty": places.get(("empty", ""), _NEUTRAL),
        "names": [
            _level_name(name, texts_by_kind.get(kind, text)) for _, kind, text in levels
        ],
        "shares": [level[0] / total for level in levels],
    }


def _indicators(coding: dict[str, Any], texts: AnyArray) -> Array:
    codes = {None: coding["empty"], **coding["codes"]}
    numbers = np.array([codes.get(text, coding["rare"]) for text in texts], dtype=int)
    shares = np.array(coding["shares"], dtype=np.float64)
    # The last row stands for codes of -1.
    table = np.vstack([np.eye(len(shares)), shares[None, :]])
    return table[numbers][:, 1:]


def _level_name(name: str, text: str | None) -> str:
    """Name of the column of 0 and 1 for a category; None stands for gaps."""
    return f"{name} is empty" if text is None else f"{name} = {text}"
