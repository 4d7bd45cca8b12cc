"""The cells of a target as names of classes: text, None where a row is unlabeled.

Numbers are written the short way, so that 1, 1.0, 1,0 and "1" are one class. Words such
as NA, which are empty cells elsewhere, are classes here unless the user says otherwise,
because they may be: Namibia, North America. Targets that hold measurements or free text
are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import Hint, plural, quoted_list, say
from .answer_files import spelling_of
from .cells import EMPTY_WORDS, number_in, require_for_tables, texts_of

# Up to 50 distinct labels are accepted as classes in any file ...
_CLASSES_IN_ANY_FILE = 50
# ... and more than these if there is at most one for each 20 rows of the file.
_MIN_ROWS_PER_CLASS = 20
# Labels that stand for an unknown class in many tables.
_WORDS_FOR_NOTHING = {
    *(word.casefold() for word in EMPTY_WORDS),
    *("none", "-", "--", "missing", "unknown", "unlabeled", "unlabelled"),
}
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_COMMA_NUMBER = re.compile(r"-?\d+,\d+")


def labels_of(
    column: Any,
    path: Path | str,
    target: str,
    unlabeled: str | float | None,
    n_classes_needed: int,
) -> AnyArray:
    """Return the class names of an Arrow column, None for unlabeled rows.

    ``unlabeled`` is a cell that marks unlabeled rows, besides empty cells. ValueError,
    which names ``path`` and ``target``, for fewer classes than are needed.
    """
    where = f"{path}: column {target!r}"
    if require_for_tables("pyarrow").types.is_nested(column.type):
        raise ValueError(
            f"{where} holds {column.type} cells, and must hold classes: write text."
        )
    labels = texts_of(column.to_pylist(), empty=("",))
    # Words such as NA do not make text of a column of numbers.
    names = {label for label in labels if label is not None}
    names = {name for name in names if not may_mean_nothing(name)}
    if all(_number_of(name) is not None for name in names):
        short = [None if label is None else short_number(label) for label in labels]
        labels = np.array(short, dtype=object)

    if unlabeled is not None:
        # A mark 1.0 also matches cells that read 1.
        mark = str(unlabeled).strip()
        is_marked = (labels == mark) | (labels == short_number(mark))
        if mark and not is_marked.any():
            raise ValueError(
                f"{path}: no row has the unlabeled value {mark!r} in column "
                f"{target!r}, which holds {_named(labels)}. Leave it out if empty "
                "cells mark the unlabeled rows."
            )
        labels[is_marked] = None
    counts = Counter(label for label in labels if label is not None)
    _refuse_other_than_classes(counts, len(labels), where, n_classes_needed)
    return labels


def _number_of(text: str) -> float | None:
    """Return the number that a label is read as, also with a decimal comma."""
    if _COMMA_NUMBER.fullmatch(text):
        text = text.replace(",", ".")
    return number_in(text)


def short_number(text: str) -> str:
    """Write a whole number the short way, "1" for "1.0" and "1,0"; keep other text."""
    # Integers stay as they are: floating point would round long ones.
    if _WHOLE_NUMBER.fullmatch(text):
        return text
    number = _number_of(text)
    return str(int(number)) if number is not None and number.is_integer() else text


def may_mean_nothing(text: str) -> bool:
    """Return whether a label is a word that means an unknown one in many tables."""
    return text.casefold() in _WORDS_FOR_NOTHING


def _refuse_other_than_classes(
    counts: Counter[str], n_rows: int, where: str, n_classes_needed: int
) -> None:
    """Refuse too few classes, numbers with fractions, and too many values."""
    rows = plural(counts.total(), "labeled row")
    if len(counts) < n_classes_needed:
        raise ValueError(
            f"{where} must label rows of at least 2 classes, got {_named(counts)} "
            f"({rows}). Label rows of each class; `iclda ask` chooses rows to label. "
            "Empty cells and the unlabeled value do not count."
        )

    numbers = {name: _number_of(name) for name in counts if not may_mean_nothing(name)}
    fractions = [
        name
        for name, number in numbers.items()
        if number is not None and number % 1 != 0
    ]
    if fractions and None not in numbers.values():
        raise ValueError(
            f"{where} holds numbers with fractions or infinity, for example "
            f"{fractions[0]}, and must hold classes. Make classes of them first, for "
            "example 'low' and 'high'."
        )

    n_plausible = max(
        _CLASSES_IN_ANY_FILE, counts.total() / 2, n_rows / _MIN_ROWS_PER_CLASS
    )
    if len(counts) > n_plausible:
        raise ValueError(
            f"{where} holds {len(counts)} different values in {rows}, for example "
            f"{_named(counts)}: these are not classes. Name the column that holds them."
        )


def _named(labels: Iterable[str | None]) -> str:
    names = sorted({label for label in labels if label is not None})
    return quoted_list(names, 5) if names else "empty cells only"


def warnings_on_marks(labels: AnyArray, target: str) -> list[str]:
    """Return warnings of classes that mark unlabeled rows in other tables.

    -1 hardly is such a mark if it is one of two classes, or if there are empty cells.
    """
    counts = Counter(labels)
    marks = sorted(
        name for name in counts if name is not None and may_mean_nothing(name)
    )
    if counts["-1"] and None not in counts and len(counts) > 2:
        marks.append("-1")
    sentence = (
        "{mark!r} in {target!r} is a class: pass {way_out} if it marks unlabeled rows."
    )
    return [
        say(sentence, mark=mark, target=target, way_out=Hint("unlabeled", mark))
        for mark in marks
    ]


def warnings_on_spelling(labels: AnyArray, target: str) -> list[str]:
    """Return warnings of classes whose names differ by case and blanks only."""
    names_by_spelling: dict[str, list[str]] = {}
    for name in sorted({label for label in labels if label is not None}):
        names_by_spelling.setdefault(spelling_of(name), []).append(name)
    return [
        f"{quoted_list(names, 5)} in {target!r} are {len(names)} classes, whose names "
        "differ by case or blanks only: write them in one way if they are one class."
        for names in names_by_spelling.values()
        if len(names) > 1
    ]
