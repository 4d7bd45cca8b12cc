"""Numbers and dates as people write them: $1,889.50, 12,5 %, 26/11/2007.

All cells of a column have to agree on one form, which the values decide: in 26/11/2007
the day comes first, in 11/26/2007 the month.

>>> form = date_form(["26/11/2007", "03/12/2007", None])
>>> form.format, form.is_sure
('%d/%m/%Y', True)
>>> amount_form(["$1,889.50", "$20"])
AmountForm(decimal='.', is_sure=True)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .._core import Array
from .cells import number_in, require_for_tables, texts_of

_CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
# Blanks, some of them unbreakable, and apostrophes separate thousands in any form.
_THOUSANDS = " '\u00a0\u202f\u2019"
_DECIMAL_SIGNS = (".", ",")
# A form is tried on this many different texts before it is tried on all.
_N_TRIED_FIRST = 20
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    *(f"%d{sign}%m{sign}%{year}" for sign in "/.-" for year in "Yy"),
    *(f"%m{sign}%d{sign}%{year}" for sign in "/.-" for year in "Yy"),
    *(f"%Y{sign}%m{sign}%d" for sign in "/.-"),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
)


class AmountForm(NamedTuple):
    """How numbers are written: their decimal sign, and whether the values decide it."""

    decimal: str
    is_sure: bool


class DateForm(NamedTuple):
    """How dates are written: a format, and whether the values decide it."""

    format: str
    is_sure: bool

    @property
    def order(self) -> str:
        """What comes first, in words; empty if the form shows it."""
        if self.format[:2] == "%Y" or "%b" in self.format or "%B" in self.format:
            return ""
        return "day first" if self.format.startswith("%d") else "month first"


def amount_form(texts: Iterable[str | None]) -> AmountForm | None:
    """Return the form of numbers with signs of currency, percent or thousands.

    None if some text is not such a number, or if all are plain numbers.
    """
    distinct = {text for text in texts if text is not None}
    if all(number_in(text) is not None for text in distinct):
        return None
    fitting = [
        sign
        for sign in _DECIMAL_SIGNS
        if all(_amount_pattern(sign).fullmatch(text) for text in distinct)
    ]
    if not fitting:
        return None
    readings = {
        tuple(_to_amount(text, sign) for text in sorted(distinct)) for sign in fitting
    }
    return AmountForm(fitting[0], is_sure=len(readings) == 1)


def _amount_pattern(decimal: str) -> re.Pattern[str]:
    """Return the pattern of a number with this decimal sign."""
    separators = _THOUSANDS + ("," if decimal == "." else ".")
    whole = rf"(?:\d{{1,3}}(?:[{separators}]\d{{3}})+|\d+)"
    number = rf"-?{whole}(?:[{decimal}]\d+)?"
    return re.compile(rf"-?(?:{_CURRENCY}\s?)?{number}(?:\s?(?:{_CURRENCY}|%))?")


def _to_amount(text: str, decimal: str) -> float:
    digits = re.sub(rf"[^0-9{decimal}-]", "", text)
    return float(digits.replace(decimal, "."))


def amounts(series: Any, decimal: str) -> tuple[Array, Any]:
    """Return a column of such numbers, NaN for gaps, and the first text that is none.

    The text is None if all are numbers.
    """
    if series.dtype.kind in "biuf":
        return series.to_numpy(dtype=np.float64, na_value=np.nan), None
    pandas = require_for_tables("pandas")
    pattern = _amount_pattern(decimal)
    texts = pandas.Series(texts_of(series), dtype=object)
    # Texts repeat: each is parsed once.
    numbers: dict[str, float] = {}
    for text in texts.dropna().unique():
        if not pattern.fullmatch(text):
            return np.full(len(texts), np.nan), text
        numbers[text] = _to_amount(text, decimal)
    return texts.map(numbers).to_numpy(dtype=np.float64), None


def date_form(texts: Iterable[str | None]) -> DateForm | None:
    """Return the form of dates; None if some text is not a date of one form.

    If the values leave open whether day or month comes first, the day does.
    """
    distinct = sorted({text for text in texts if text is not None})
    if not distinct or not all(text[:1].isalnum() for text in distinct):
        return None
    first = distinct[:_N_TRIED_FIRST]
    fitting = [
        day + time for day in _DAYS for time in _TIMES if _are_dates(first, day + time)
    ]
    fitting = [each for each in fitting if _are_dates(distinct, each)]
    if not fitting:
        return None
    has_day_first = any(each.startswith("%d") for each in fitting)
    has_month_first = any(each.startswith("%m") for each in fitting)
    return DateForm(fitting[0], is_sure=not (has_day_first and has_month_first))


def _are_dates(texts: list[str], form: str) -> bool:
    return not dates(texts, form).isna().any()


def dates(values: Any, form: str) -> Any:
    """Return values as pandas dates, NaT for what does not have the form."""
    pandas = require_for_tables("pandas")
    if getattr(getattr(values, "dtype", None), "kind", "O") == "M":
        return values
    parsed = pandas.to_datetime(values, format=form, errors="coerce")
    return parsed
