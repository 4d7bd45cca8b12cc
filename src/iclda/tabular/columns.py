"""What kind of column each one is; columns that no linear model can learn from are refused."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._messages import ColumnError, Hint, Text, message_of
from .cells import number_in, texts_of

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"

_TOLD = 5  # columns that an error describes; of more it gives the number
_FEW_TEXTS = 20  # so many different texts are categories, however few the rows
_MONTH = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?)\.?"
)
_DATE = re.compile(
    r"\d{4}[-/]\d\d?[-/]\d\d?([ T].*)?"
    r"|\d\d?[./]\d\d?[./]\d{2,4}( .*)?"
    rf"|(\w+,? )?\d\d?(st|nd|rd|th)?[ ./-]*{_MONTH},?[ ./-]*(\d{{4}}|\d\d)([ T,].*)?"
    rf"|(\w+,? )?{_MONTH}[ ./-]\d\d?(st|nd|rd|th)?,? *\d{{4}}([ ,].*)?"
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)
_MOSTLY = 0.9  # of the texts of a column, to call it after them: some cells are odd
_NUMBER_AS_TEXT = re.compile(
    r"[-+]?[$€£¥]? ?[-+]?(\d{1,3}([., '’\u00a0\u202f]\d{3})+([.,]\d+)?|\d+([.,]\d+)?)"
    r" ?(%|‰|[$€£¥]|EUR|USD|GBP)?"
)


def kinds_of(features: Any) -> dict[str, str]:
    """Kind of every column of a pandas frame, by name.

    Raises ColumnError that names the columns and the way out for dates, ids, free text, numbers
    mixed with text, and values that are neither number nor text.
    """
    _check_names(features)
    kinds: dict[str, str] = {}
    problems: dict[str, str] = {}
    for name in features.columns:
        try:
            kinds[name] = _kind_of(features[name], name)
        except ColumnError as error:
            problems[name] = message_of(error)
    if problems:
        first, *others = list(problems.values())[:_TOLD]
        n_more = len(problems) - _TOLD
        more = f" {n_more} more columns cannot be used." if n_more > 0 else ""
        spaced = [part for other in others for part in (" ", other)]
        raise ColumnError(Text(first, *spaced, more), column=next(iter(problems)))
    return kinds


def is_boolean(series: Any) -> bool:
    """Whether a column holds true and false, perhaps with gaps."""
    if getattr(series.dtype, "kind", "O") != "O":
        return bool(series.dtype.kind == "b")
    types = {type(value) for value in series.dropna()}
    return bool(types) and types <= {bool, np.bool_}


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
            f"The column name {twice[0]!r} stands there twice: rename one of them.",
            column=twice[0],
        )


def _kind_of(series: Any, name: str) -> str:
    code = getattr(series.dtype, "kind", "O")
    if str(series.dtype) == "category":
        return CATEGORY
    if is_boolean(series):
        return BOOLEAN
    if code in "iuf":
        return NUMBER
    if code in "mM":
        raise _of_dates(name, series.dropna().iloc[0])
    if code == "c":
        raise _unusable(name, "complex numbers: split it into two columns, or ")
    return _kind_of_objects(series, name)


def _kind_of_objects(series: Any, name: str) -> str:
    present = series.dropna()
    types = {type(value) for value in present}
    odd = [value for value in present if not isinstance(value, (str, bool, int, float, np.generic))]
    if odd and isinstance(odd[0], (datetime.date, datetime.time, datetime.timedelta)):
        raise _of_dates(name, odd[0])
    if odd:
        raise _unusable(name, f"values that are neither numbers nor text, for example {odd[0]!r}: ")
    if types and all(issubclass(kind, (int, float, np.number)) for kind in types - {bool}):
        return NUMBER
    _refuse_text(texts_of(present), name)
    return CATEGORY


def _refuse_text(texts: AnyArray, name: str) -> None:
    values = [text for text in texts if text is not None]
    unique = sorted(set(values))
    odd = [value for value in values if number_in(value) is None]
    are_most_numbers = bool(values) and len(odd) <= len(values) / 2
    are_ids = len(unique) > max(_FEW_TEXTS, len(values) / 2) or 2 < len(unique) == len(values)
    if odd and (are_most_numbers or are_ids) and _are_mostly(_NUMBER_AS_TEXT, unique):
        raise _unusable(
            name,
            f"numbers written as text, for example {odd[0]!r}: write them with digits and a "
            "decimal point alone, without signs for thousands, money or percent, or ",
        )
    if are_most_numbers:
        raise _unusable(
            name,
            f"numbers, but text in {len(odd)} of {len(values)} rows, for example "
            f"{(odd or values)[0]!r}: empty these cells if the number is unknown, or ",
        )
    if _are_mostly(_DATE, unique):
        raise _of_dates(name, unique[0])
    if are_ids:
        raise _unusable(
            name,
            f"{len(unique)} different texts in {len(values)} rows, for example {values[0]!r}: "
            "nothing can be learned from names, ids or free text, so ",
        )


def _are_mostly(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    n_found = sum(pattern.fullmatch(text) is not None for text in texts)
    return bool(texts) and n_found >= _MOSTLY * len(texts)


def _of_dates(name: str, example: Any) -> ColumnError:
    return _unusable(
        name,
        f"dates or times, for example {example}: turn them into numbers, for example of days since "
        "the first one, or ",
    )


def _unusable(name: str, held: str) -> ColumnError:
    """The error of a column that holds something else, which ends in dropping the column."""
    return ColumnError(Text(f"Column {name!r} holds {held}", drop_hint(name), "."), column=name)


def drop_hint(name: str) -> Hint:
    """Drop a column of the table."""
    return Hint("drop", name, text=f"drop the column {name!r}", kind="column")
