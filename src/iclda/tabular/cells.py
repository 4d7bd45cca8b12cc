"""Cells as text and as numbers: the same rules for every file and every column.

>>> text_of(1.0), text_of(" red "), text_of("NA"), text_of(None)
('1', 'red', None, None)
>>> number_in("2.50"), number_in("1_000")
(2.5, None)
"""

from __future__ import annotations

import math
from collections.abc import Container
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._core import AnyArray
from .._estimators.labels import is_missing
from .._system import require

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
    @lru_cache(maxsize=None, typed=True)
    def convert(value: Any) -> str | None:
        return text_of(value, empty)

    texts = [convert(value) for value in values]
    return np.array(texts, dtype=object)


def number_in(text: str) -> float | None:
    """Return the number that a cell is read as; None if it is read as text."""
    # Python reads 1_000, +1 and digits of other scripts as numbers; readers of files do
    # not.
    if "_" in text or text.startswith("+") or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def value_types(series: Any) -> set[type]:
    """Return the types of the values of a column of objects, none for other dtypes."""
    # A column of categories has the kind of objects, too.
    holds_objects = series.dtype.kind == "O" and str(series.dtype) != "category"
    if not holds_objects:
        return set()
    return {type(value) for value in series.dropna()}


def is_boolean(series: Any) -> bool:
    """Return whether a column holds true and false, perhaps with gaps."""
    if series.dtype.kind == "b":
        return True
    types = value_types(series)
    return bool(types) and types <= {bool, np.bool_}


def count_gaps(features: Any) -> dict[str, int]:
    """Return the number of empty cells of every column of a frame that has any."""
    n_gaps_by_column = features.isna().sum()
    return {name: int(n_gaps) for name, n_gaps in n_gaps_by_column.items() if n_gaps}
