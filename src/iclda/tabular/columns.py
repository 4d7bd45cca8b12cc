"""Column types in one table: how each is recognized, read and encoded; the pipeline they make.

Columns that no linear model can learn from are refused with the way out.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .._messages import ColumnError, Hint, Text, quoted_list, say
from .encoders import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    check_missing,
    is_boolean,
    texts_of,
    value_types,
)

_MOST_DESCRIBED = 5  # columns that an error describes; further ones are counted
_FEW_TEXTS = 20  # so many different texts are categories, however few the rows
_DATE = re.compile(
    r"\d{4}[-/]\d\d?[-/]\d\d?([ T].*)?"
    r"|\d\d?[./]\d\d?[./]\d{2,4}( .*)?"
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)
_DATES = (
    "dates or times, for example {}: write dates as 2020-03-12, without a time zone, and times as "
    "numbers, for example of hours"
)
_SHARE_OF_DATES = 0.9  # of the different texts of a column of dates: some cells are odd


@dataclass(frozen=True)
class ColumnType:
    """A type of column. A new one is a row of ``COLUMN_TYPES`` and, as a rule, an encoder."""

    name: str  # in model files
    holds: Callable[[Any], bool]  # whether a pandas column is of this type
    step: str  # of the ColumnTransformer; types of one step share an encoder
    encoder: Any  # unfitted, with a parameter ``missing``
    arrow: str  # Arrow type, as Arrow writes it, of cells of a CSV file for prediction
    dtypes: str  # kinds of NumPy dtypes that prediction accepts
    cells: str  # as in "must hold numbers"
    columns: str  # as in "2 of numbers"


def _is_number(series: Any) -> bool:
    types = value_types(series) - {bool, np.bool_}
    is_numbers = bool(types) and all(issubclass(kind, (int, float, np.number)) for kind in types)
    return series.dtype.kind in "iuf" or is_numbers


def _is_category(series: Any) -> bool:
    is_text = series.dtype.kind == "O" and not (is_boolean(series) or _is_number(series))
    return str(series.dtype) == "category" or (is_text and _reason_against(series) is None)


COLUMN_TYPES = [  # the first that holds is taken
    ColumnType(
        NUMBER,
        _is_number,
        step="numbers",
        encoder=NumberEncoder(flagged="auto"),
        arrow="double",
        dtypes="biuf",
        cells="numbers",
        columns="numbers",
    ),
    ColumnType(
        BOOLEAN,
        is_boolean,
        step="numbers",
        encoder=NumberEncoder(flagged="auto"),
        arrow="bool",
        dtypes="biuf",
        cells="true or false",
        columns="true or false",
    ),
    ColumnType(
        CATEGORY,
        _is_category,
        step="categories",
        encoder=CategoryEncoder(),
        arrow="string",
        dtypes="biufO",
        cells="text",
        columns="categories",
    ),
    ColumnType(
        DATE,
        lambda series: str(series.dtype).startswith("datetime64") and "," not in str(series.dtype),
        step="dates",
        encoder=DateEncoder(),
        arrow="timestamp[us]",
        dtypes="M",
        cells="dates such as 2020-03-12",
        columns="dates",
    ),
]


def type_named(name: str) -> ColumnType:
    return next(each for each in COLUMN_TYPES if each.name == name)


def preprocessing(features: Any, *, missing: str = "impute") -> ColumnTransformer:
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
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are filled or an error.

    Returns
    -------
    transformer : ColumnTransformer
        Takes frames with these columns, in any order, and gives frames of numbers.
    """
    check_missing(missing)
    kinds = kinds_of(features)
    steps = []
    for step in dict.fromkeys(each.step for each in COLUMN_TYPES):
        types = [each for each in COLUMN_TYPES if each.step == step]
        names = [name for name, kind in kinds.items() if kind in {each.name for each in types}]
        if names:
            steps.append((step, clone(types[0].encoder).set_params(missing=missing), names))
    _check_names_of_features(features, steps)
    transformer = ColumnTransformer(steps, verbose_feature_names_out=False)
    return transformer.set_output(transform="pandas")


def _check_names_of_features(features: Any, steps: Sequence[tuple[str, Any, list[str]]]) -> None:
    """Raise a ValueError if the encoders make no feature, or two of the same name."""
    made: Counter[str] = Counter()
    for _, encoder, names in steps:
        made.update(clone(encoder).fit(features[names]).get_feature_names_out())
    if not made:
        raise ValueError(
            f"All columns are constant: {quoted_list(list(features.columns), 5)} hold one value "
            "each, or none that is common enough. Add columns to learn from."
        )
    name, count = made.most_common(1)[0]
    if count > 1:
        text = say(
            "Two columns would both become a feature named {name!r}: rename one of them, or leave "
            "it out by {@drop}.",
            name=name,
        )
        raise ColumnError(text, column=name)


def pipeline(encoder: Any, estimator: Any, *, scale: bool | None = None) -> Pipeline:
    """Make a pipeline of encoder and classifier, in which None marks unlabeled rows.

    Parameters
    ----------
    encoder : transformer
        As ``preprocessing`` returns it.
    estimator : classifier
        It is cloned, and ``unlabeled`` of the clone is None, the mark that tables use.
    scale : bool, default=None
        Whether columns are divided by their standard deviation. Without shrinkage that changes
        nothing; None scales if there is shrinkage, so that it affects all columns equally.

    Returns
    -------
    pipeline : Pipeline
        Unfitted.
    """
    estimator = clone(estimator)
    parameters = estimator.get_params()
    if "unlabeled" in parameters:
        estimator.set_params(unlabeled=None)
    if scale is None:
        scale = parameters.get("shrinkage") is not None
    scaler = [("scale", StandardScaler().set_output(transform="pandas"))] if scale else []
    return Pipeline([("encode", clone(encoder)), *scaler, ("classify", estimator)])


def kinds_of(features: Any) -> dict[str, str]:
    """Name of the type of every column; ColumnError, with the way out, for those without one."""
    kinds, reasons = _kinds_and_reasons(features)
    if not reasons:
        return kinds
    texts = [
        say(
            "Column {name!r} holds {reason}, or leave it out by {drop}. ",
            name=name,
            reason=reason,
            drop=Hint("drop", [name]),
        )
        for name, reason in list(reasons.items())[:_MOST_DESCRIBED]
    ]
    if len(reasons) > _MOST_DESCRIBED:
        texts.append(Text(f"{len(reasons) - _MOST_DESCRIBED} more columns cannot be used. "))
    if len(reasons) > 1:
        way_out = Hint("drop_unusable", True)
        texts.append(say("To leave out all such columns: {way_out}.", way_out=way_out))
    raise ColumnError(*texts, column=next(iter(reasons)))


def unusable_columns(features: Any) -> dict[str, str]:
    """Columns that no type suits, each with what it holds and what to do about that."""
    return _kinds_and_reasons(features)[1]


def _kinds_and_reasons(features: Any) -> tuple[dict[str, str], dict[str, str]]:
    _check_names(features)
    kinds, reasons = {}, {}
    for name in features.columns:
        kind = next((each.name for each in COLUMN_TYPES if each.holds(features[name])), None)
        if kind is None:
            reasons[name] = _reason_against(features[name]) or "no values that can be used"
        else:
            kinds[name] = kind
    return kinds, reasons


def _check_names(features: Any) -> None:
    if not hasattr(features, "iloc"):
        raise TypeError(
            f"features must be a pandas frame, got {type(features).__module__}."
            f"{type(features).__name__}: read_table gives one, and to_pandas() of other frames."
        )
    for name in features.columns:
        if not isinstance(name, str):
            raise ColumnError(
                f"Column names must be text, got {name!r}: rename it, for example by "
                "features.columns = features.columns.astype(str).",
                column=name,
            )
    twice = features.columns[features.columns.duplicated()]
    if len(twice):
        raise ColumnError(
            f"The column name {twice[0]!r} occurs twice: rename one of them.",
            column=twice[0],
        )


def _reason_against(series: Any) -> str | None:
    """What a column holds that cannot be learned from, and what to do; None if it can be."""
    if series.dtype.kind == "c":
        return "complex numbers: split it into two columns"
    present, usable = series.dropna(), (str, bool, int, float, np.generic)
    odd = next((value for value in present if not isinstance(value, usable)), None)
    if isinstance(odd, (datetime.date, datetime.time, datetime.timedelta)):
        return _DATES.format(odd)
    if odd is not None:
        return f"values that are neither numbers nor text, for example {odd!r}: write them as such"
    return _reason_against_texts([text for text in texts_of(present) if text is not None])


def _reason_against_texts(values: Sequence[str]) -> str | None:
    unique = sorted(set(values))
    odd = [value for value in values if number_in(value) is None]
    if values and len(odd) <= len(values) / 2:
        return (
            f"numbers, but text in {len(odd)} of {len(values)} rows, for example "
            f"{(odd or values)[0]!r}: empty these cells if the number is unknown, or write it with "
            "digits and a decimal point alone"
        )
    n_dates = sum(_DATE.fullmatch(text) is not None for text in unique)
    if unique and n_dates >= _SHARE_OF_DATES * len(unique):
        return _DATES.format(unique[0])
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
