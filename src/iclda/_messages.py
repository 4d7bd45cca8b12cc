"""Errors, warnings, messages with parameters and columns as values, and phrases for messages."""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from string import Formatter
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Hint:
    """A parameter that a message mentions, as a rule to keep or as a way out.

    In Python it reads ``name`` or ``name=value``; the command line words it as an option
    (``iclda.cli``).
    """

    parameter: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.parameter
        value = str(self.value) if isinstance(self.value, PurePath) else self.value
        return f"{self.parameter}={value!r}"


@dataclass(frozen=True)
class Column:
    """A column of X: its number, and its name where that is known."""

    number: int
    name: str | None = None

    @property
    def label(self) -> str | int:
        """Its name, or its number where it has none."""
        return self.number if self.name is None else self.name

    def __str__(self) -> str:
        return f"column {self.label!r}"


class Text(str):
    """A message made of parts: words, hints and columns. As a string it is worded for Python."""

    parts: tuple[str | Hint | Column, ...]

    def __new__(cls, *parts: str | Hint | Column) -> Text:
        """Join parts; those of texts among them are kept."""
        text = super().__new__(cls, "".join(map(str, parts)))
        text.parts = tuple(
            inner
            for part in parts
            for inner in (part.parts if isinstance(part, Text) else (part,))
        )
        return text

    def to_json(self) -> list[Any]:
        """Parts as values that JSON has, with the parameters still to be worded."""
        return [
            vars(part) if isinstance(part, Hint) else str(part) for part in self.parts
        ]

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Text:
        """Inverse of ``to_json``."""
        return cls(*(part if isinstance(part, str) else Hint(**part) for part in parts))

    def with_names(self, names: Sequence[str]) -> Text:
        """The same message with the names of columns, for X without names."""
        named = (
            replace(p, name=names[p.number]) if isinstance(p, Column) else p
            for p in self.parts
        )
        return Text(*named)


def say(sentence: str, /, **values: Any) -> Text:
    """Fill the fields of a sentence.

    ``{name}`` is a value, ``{@name}`` a parameter, and ``{@name=value}`` a parameter with the value
    to pass, which the reader's interface words.
    """
    parts: list[str | Hint | Column] = []
    for words, name, form, conversion in Formatter().parse(sentence):
        parts.append(words)
        if name is None:
            continue
        if name.startswith("@"):
            parameter, _, given = name[1:].partition("=")
            parts.append(Hint(parameter, given or None))
            continue
        value = Formatter().convert_field(values[name], conversion)
        parts.append(
            value
            if isinstance(value, Hint | Text | Column)
            else format(value, form or "")
        )
    return Text(*parts)


class ParameterError(ValueError):
    """A parameter has a value that it must not have: ``parameter``, ``value``."""

    def __init__(
        self, message: str, *, parameter: str | None = None, value: Any = None
    ) -> None:
        super().__init__(message)
        self.parameter, self.value = parameter, value


class ColumnError(ValueError):
    """A column holds what cannot be computed with: ``column``, its name, or its number in X."""

    def __init__(self, message: str, *, column: str | int | None = None) -> None:
        super().__init__(message)
        self.column = column


class NoUnlabeledRowsWarning(UserWarning):
    """A semi-supervised classifier got labeled rows only: ``estimator``, the name of its class."""

    def __init__(self, message: str, *, estimator: str | None = None) -> None:
        super().__init__(message)
        self.estimator = estimator


class DegenerateFitWarning(UserWarning):
    """A fit gives hardly any unlabeled row to a class of many labels: ``label``, ``share``."""

    def __init__(
        self, message: str, *, label: Any = None, share: float | None = None
    ) -> None:
        super().__init__(message)
        self.label, self.share = label, share


class NothingLearnedWarning(UserWarning):
    """A fit is no better than the most frequent class for all rows: ``majority``, ``base_rate``."""

    def __init__(
        self, message: str, *, majority: Any = None, base_rate: float = 1.0
    ) -> None:
        super().__init__(message)
        self.majority, self.base_rate = majority, base_rate


def warn(*found: Warning | str) -> None:
    """Warn at the line that called ``fit``."""
    for warning in found:
        warnings.warn(warning, stacklevel=_frames_to_user())


def _frames_to_user() -> int:
    """The stack level of the first caller outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("iclda.", "sklearn.base")
    ):
        level, frame = level + 1, frame.f_back
    return level


def message_of(raised: BaseException) -> str:
    """The message of an error or a warning: a ``Text`` where it was raised with one."""
    first = raised.args[0] if len(raised.args) == 1 else None
    return first if isinstance(first, Text) else str(raised)


def and_list(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def quoted_list(names: Sequence[str], most: int) -> str:
    """The first names in quotes, and how many more there are: 'a', 'b' and 3 more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count and its noun: 1 fit, 2 fits."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def printable(text: str) -> str:
    """Text with control characters escaped, which a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most so many characters; a number and its percent sign stay together."""
    lines = textwrap.wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), width)
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]


def is_formula(cell: object) -> bool:
    """Whether a spreadsheet that opens a CSV file would run a cell instead of showing it."""
    if not isinstance(cell, str) or len(cell) < 2 or cell[0] not in "=+-@\t\r":
        return False
    return _NUMBER.fullmatch(cell) is None
