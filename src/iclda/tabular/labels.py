"""The target column: class names as text, None where a row is unlabeled."""

from __future__ import annotations

from collections import Counter
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._messages import Hint, Text, plural, quoted_list
from .cells import number_in, texts_of, without_fraction
from .dialect import EMPTY_WORDS

_SURELY_CLASSES = 50
_WORDS_FOR_NOTHING = {word.casefold() for word in EMPTY_WORDS} | {
    "none",
    "-",
    "--",
    "missing",
    "unknown",
    "unlabeled",
    "unlabelled",
}


def labels_of(column: Any, path: Path, target: str, unlabeled: str | None) -> AnyArray:
    """Class names of a column of an Arrow table; ValueError unless there are two classes."""
    _refuse_type(column, path, target)
    # Of numbers a cell with NA is a gap. Among classes it may be one: Namibia, North America.
    texts = texts_of(column.to_pylist(), empty=("",))
    labels = _in_one_spelling(texts)
    if unlabeled is not None:
        labels = _unmarked(labels, column, path, target, unlabeled)
    _require_labels(labels, path, target, unlabeled)
    _refuse_measurements(labels, path, target)
    return labels


def _refuse_type(column: Any, path: Path, target: str) -> None:
    from .requirements import require

    types = require("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_fine = (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_null(kind)
    )
    if not is_fine:
        raise ValueError(
            f"{path}: column {target!r} holds values of type {column.type}, and the target must "
            "hold classes: text, whole numbers, or true and false."
        )


def _in_one_spelling(texts: AnyArray) -> AnyArray:
    """Where all labels are numbers, 1 and 1.0 are one class."""
    names = {text for text in texts if text is not None and not _may_mean_nothing(text)}
    if any(number_in(name) is None for name in names):
        return texts
    return np.array([None if t is None else without_fraction(t) for t in texts], dtype=object)


def _may_mean_nothing(text: str) -> bool:
    """Whether a label is a word that stands for an unknown one in many tables."""
    return text.casefold() in _WORDS_FOR_NOTHING


def _unmarked(labels: AnyArray, column: Any, path: Path, target: str, unlabeled: str) -> AnyArray:
    """Labels with None for the marker, which may be the empty text too."""
    mark = unlabeled.strip()
    is_marker = (labels == mark) | (labels == without_fraction(mark))
    if not is_marker.any() and mark not in {str(value).strip() for value in column.to_pylist()}:
        raise ValueError(
            f"{path}: no row has the unlabeled value {unlabeled!r} in column {target!r}, which "
            f"holds {_named(labels)}. Leave it out if empty cells mark the unlabeled rows."
        )
    labels[is_marker] = None
    return labels


def _require_labels(labels: AnyArray, path: Path, target: str, unlabeled: str | None) -> None:
    counts = Counter(label for label in labels if label is not None)
    marks = "empty" if unlabeled is None else f"empty or {unlabeled!r}"
    if not counts:
        raise ValueError(
            f"{path}: column {target!r} labels no row, all {len(labels)} cells are {marks}. Label "
            "at least one row of each of 2 classes."
        )
    if len(counts) == 1:
        way_out = (
            "Label rows of another class."
            if unlabeled is None
            else f"{unlabeled!r} marks unlabeled rows: leave that out if it is one of your classes."
        )
        (name,) = counts
        if _may_mean_nothing(name):
            way_out = f"If {name!r} means that the class is unknown, no row is labeled."
        raise ValueError(
            f"{path}: column {target!r} must label rows of at least 2 classes, got 1 class "
            f"({name!r}) in {plural(counts.total(), 'labeled row')}; "
            f"{plural(len(labels), 'cell')} in all. {way_out}"
        )


def _refuse_measurements(labels: AnyArray, path: Path, target: str) -> None:
    """Numbers with fractions, or nearly as many different values as rows, are no classes."""
    names = Counter(label for label in labels if label is not None)
    numbers = {name: number_in(name) for name in names if not _may_mean_nothing(name)}
    if None not in numbers.values():
        endless = [name for name, number in numbers.items() if isinf(number or 0)]
        if endless:
            raise ValueError(
                f"{path}: column {target!r} holds infinity ({endless[0]}), which is no class: "
                "empty these cells if the class is unknown, or give it a name."
            )
        broken = [name for name, number in numbers.items() if not float(number or 0).is_integer()]
        if broken:
            raise ValueError(
                f"{path}: column {target!r} holds numbers with fractions, for example {broken[0]}, "
                "and must hold classes. Make classes of them first, for example 'low' and 'high'."
            )
    if len(names) > max(_SURELY_CLASSES, names.total() / 2):
        raise ValueError(
            f"{path}: column {target!r} holds {len(names)} different values in {names.total()} "
            f"labeled rows, for example {_named(labels)}: these are no classes. Name the column "
            "that holds them."
        )


def _named(labels: AnyArray) -> str:
    names = sorted({label for label in labels if label is not None})
    return quoted_list(names, 5) if names else "empty cells only"


def notes_on_marks(labels: AnyArray, target: str) -> list[str]:
    """Classes that mark unlabeled rows in other tables; in this one they do if told so only.

    -1 among two classes, or beside empty cells, hardly marks any.
    """
    names = Counter(labels)
    doubtful = sorted(name for name in names if name is not None and _may_mean_nothing(name))
    if names["-1"] and None not in names and len(names) > 2:
        doubtful.append("-1")
    return [
        Text(
            f"{name!r} in column {target!r} counts as a class, of {plural(names[name], 'row')}: "
            "pass ",
            Hint("unlabeled", name),
            " if it marks unlabeled rows.",
        )
        for name in doubtful
    ]
