"""Columns that may be no measurements: ids, and columns that give the class away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._messages import Hint, Text
from .encoders import texts_of

_ID_NAME = re.compile(
    r"(^|[\W_])(ids?|uuid|guid|key|index|idx|nr|no|number|code|row)$|^(id|uuid|guid)[\W_\d]",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Key|No|Nr)$")
_MOSTLY = 0.95  # of the values of an id are distinct: some rows were entered twice
_LEAST_ROWS = 10  # below, distinct values are no sign of anything
_LEAST_INCREASING = 20  # rows; sorted by chance so many are not
_LEAST_LABELS = 3  # of a class, to say that a column goes with it
_BY_CHANCE = 1e-3  # probability that only rows of some classes are filled in


def notes_on_ids(features: Any) -> list[str]:
    """Notes on columns of whole numbers that may be ids, with the way out."""
    return [
        Text(
            f"Column {name!r} looks like an id: whole numbers, nearly all different. It is used "
            "like a measurement; leave it out by ",
            Hint("drop", [name]),
            " if it is none.",
        )
        for name, series in features.items()
        if is_id(str(name), series)
    ]


def is_id(name: str, series: Any) -> bool:
    """Whether whole numbers are nearly all distinct, and named like an id or sorted like one.

    Row numbers in their order are noted elsewhere; texts that are all different are refused.
    """
    if series.dtype.kind not in "iuf":
        return False
    numbers = series.dropna().to_numpy(dtype=np.float64)
    if len(numbers) < _LEAST_ROWS or (numbers != np.round(numbers)).any():
        return False
    steps = np.diff(numbers)
    if (steps == 1).all() or len(np.unique(numbers)) < _MOSTLY * len(numbers):
        return False
    is_named = bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
    return is_named or (len(numbers) >= _LEAST_INCREASING and bool((steps > 0).all()))


def filled_by_class(features: Any, labels: AnyArray) -> list[str]:
    """Warnings of columns that are filled in where rows have certain classes, and only there."""
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    known, found = labels[is_labeled], []
    for name, series in features.items():
        is_filled = series.notna().to_numpy(dtype=bool)[is_labeled]
        filled, empty = (set(known[each].tolist()) for each in (is_filled, ~is_filled))
        if not empty:
            continue
        share = np.isin(known.astype(str), sorted(filled)).mean()
        if share ** is_filled.sum() > _BY_CHANCE:
            continue
        how = "only" if filled & empty else "exactly"
        found.append(
            Text(
                f"Column {name!r} is filled in {how} where the class is "
                f"{' or '.join(map(repr, sorted(filled)))}, in all labeled rows: it may have been "
                "entered once the class was known, and gives it away. Leave it out by ",
                Hint("drop", [name]),
                " unless new rows have it before their class is known.",
            )
        )
    return list(found)


def one_value_by_class(features: Any, labels: AnyArray) -> list[str]:
    """Warnings of columns that hold one value in each class, other values in other classes."""
    columns = {
        name: texts_of(series.to_numpy(dtype=object, na_value=None))
        for name, series in features.items()
        if series.dtype.kind in "biufO" and not series.isna().any()
    }
    return [
        Text(
            f"Column {name!r} is "
            f"{', '.join(f'{value} for {each}' for each, value in list(values.items())[:4])} in "
            "all labeled rows: if it is made from the class, leave it out by ",
            Hint("drop", [name]),
            ".",
        )
        for name, values in _by_class(columns, labels)
    ]


def _by_class(columns: Any, labels: AnyArray) -> Iterator[tuple[str, dict[str, Any]]]:
    """Columns with one value in every class that has enough labels, and not the same in all."""
    is_labeled = np.array([label is not None for label in labels], dtype=bool)
    known = labels[is_labeled]
    classes = sorted(set(known.tolist()))
    if min((known == each).sum() for each in classes) < _LEAST_LABELS:
        return
    for name, column in columns.items():
        values = {each: set(column[is_labeled][known == each].tolist()) for each in classes}
        if all(len(found) == 1 for found in values.values()):
            single = {each: next(iter(found)) for each, found in values.items()}
            if len(set(single.values())) > 1:
                yield name, single
