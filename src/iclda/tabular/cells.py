"""What a cell means: when it is empty, and how values of any kind become text."""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._estimators.labels import is_missing
from .dialect import EMPTY_WORDS

_WHOLE = re.compile(r"[+-]?\d+")


def text_of(value: Any, empty: Container[str] = EMPTY_WORDS) -> str | None:
    """A value as text, without blanks around it; None for an empty cell. 1.0 becomes "1"."""
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    text = str(value).strip()
    return None if text in empty else text


def texts_of(values: Any, empty: Container[str] = EMPTY_WORDS) -> AnyArray:
    """Text of every value of a column: an object array of str and None, for ``empty`` ones."""
    unique: dict[Any, str | None] = {}
    texts = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        key = (type(value), value)
        if key not in unique:
            unique[key] = text_of(value, empty)
        texts[row] = unique[key]
    return texts


def number_in(text: str) -> float | None:
    """The number a text spells in the way that tables are read, if it spells one."""
    if "_" in text or text.startswith("+") or not text.isascii():
        return None  # numbers to Python only
    try:
        return float(text)
    except ValueError:
        return None


def without_fraction(text: str) -> str:
    """A whole number the short way: "1.0" and "1e0" become "1"; any other text stays."""
    number = None if _WHOLE.fullmatch(text) else number_in(text)
    if number is None or not math.isfinite(number) or number != int(number):
        return text
    return str(int(number))
