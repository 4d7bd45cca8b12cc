"""Errors, warnings, and messages whose parameters and columns stay values.

A message often names a parameter as the way out: "pass shrinkage='auto'". Somebody who
uses the command line has to pass an option instead. Messages are therefore made of
parts, and the interface in front of the reader words them:

>>> text = say("{n:,} rows: pass {@shrinkage=auto}.", n=1200)
>>> str(text)
"1,200 rows: pass shrinkage='auto'."
>>> text.parts[-2]
Hint(parameter='shrinkage', value='auto')
"""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from string import Formatter
from typing import Any, NamedTuple

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

# A cell that begins with one of these may be a formula to a spreadsheet.
_FORMULA_STARTS = "=+-@\t\r"

# Numbers that a message on broken cells shows; further ones are counted.
_MAX_NAMED_CELLS = 4

_PERCENT_SIGN = " %"
_UNBREAKABLE_PERCENT_SIGN = "\N{NO-BREAK SPACE}%"


@dataclass(frozen=True)
class Hint:
    """A parameter that a message mentions, as a rule to keep or as a way out.

    In Python it reads ``name`` or ``name=value``; the command line words it as an
    option (``iclda.cli``).
    """

    parameter: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.parameter
        value = self.value
        if isinstance(value, PurePath):
            value = str(value)
        return f"{self.parameter}={value!r}"


@dataclass(frozen=True)
class Column:
    """A column of X: its number, and its name where that is known."""

    number: int
    name: str | None = None

    @property
    def label(self) -> str | int:
        """The name of the column, or its number if it has no name."""
        return self.number if self.name is None else self.name

    def __str__(self) -> str:
        return f"column {self.label!r}"


class Text(str):
    """A message of words, hints and columns; as a string it is worded for Python."""

    parts: tuple[str | Hint | Column, ...]

    def __new__(cls, *parts: str | Hint | Column) -> Text:
        """Join parts; a text among them contributes its own parts."""
        text = super().__new__(cls, "".join(str(part) for part in parts))
        # A text in a text would hide its hints from the interface.
        flat: list[str | Hint | Column] = []
        for part in parts:
            if isinstance(part, Text):
                flat.extend(part.parts)
            else:
                flat.append(part)
        text.parts = tuple(flat)
        return text

    def to_json(self) -> list[Any]:
        """Return the parts as JSON values; parameters are still to be worded."""
        return [
            vars(part) if isinstance(part, Hint) else str(part) for part in self.parts
        ]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> Text:
        """Restore a text from what ``to_json`` returned."""
        parts = [value if isinstance(value, str) else Hint(**value) for value in values]
        return cls(*parts)

    def with_names(self, names: Sequence[str]) -> Text:
        """Return the message with the names of columns, for X that has none itself."""
        parts: list[str | Hint | Column] = []
        for part in self.parts:
            if isinstance(part, Column):
                part = replace(part, name=names[part.number])
            parts.append(part)
        return Text(*parts)


def say(sentence: str, /, **values: Any) -> Text:
    """Fill the fields of a sentence.

    ``{name}`` is a value, ``{@name}`` a parameter, and ``{@name=value}`` a parameter
    with the value to pass, which the reader's interface words.
    """
    formatter = Formatter()
    parts: list[str | Hint | Column] = []
    for words, field, form, conversion in formatter.parse(sentence):
        parts.append(words)
        # The words after the last field have none.
        if field is None:
            continue
        if field.startswith("@"):
            parameter, _, suggested = field[1:].partition("=")
            parts.append(Hint(parameter, suggested or None))
            continue
        value = formatter.convert_field(values[field], conversion)
        # These are worded by the reader's interface, not here.
        if not isinstance(value, Hint | Text | Column):
            value = format(value, form or "")
        parts.append(value)
    return Text(*parts)


class ParameterError(ValueError):
    """A parameter has a value that it must not have: ``parameter``, ``value``."""

    def __init__(
        self, message: str, *, parameter: str | None = None, value: Any = None
    ) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.value = value


class FitError(ValueError):
    """A classifier cannot be fitted to the rows: labels are too few, or rows too alike.

    A fit raises it, or a subclass, on purpose. Whoever tries several classifiers may
    catch it and go on; any other error of a fit is a mistake, of the caller or ours.
    """


class ColumnError(FitError):
    """A column cannot be used in a fit: ``column``, its name, or its number in X."""

    def __init__(self, message: str, *, column: str | int | None = None) -> None:
        super().__init__(message)
        self.column = column


class NoUnlabeledRowsWarning(UserWarning):
    """A semi-supervised classifier got labeled rows only: ``estimator``, its class."""

    def __init__(self, message: str, *, estimator: str | None = None) -> None:
        super().__init__(message)
        self.estimator = estimator


class DegenerateFitWarning(UserWarning):
    """A fit assigns hardly any unlabeled row to a class: ``label``, ``share``."""

    def __init__(
        self, message: str, *, label: Any = None, share: float | None = None
    ) -> None:
        super().__init__(message)
        self.label = label
        self.share = share


class NothingLearnedWarning(UserWarning):
    """A fit does not beat the most frequent class: ``majority``, ``base_rate``."""

    def __init__(
        self, message: str, *, majority: Any = None, base_rate: float = 1.0
    ) -> None:
        super().__init__(message)
        self.majority = majority
        self.base_rate = base_rate


class BrokenCellWarning(UserWarning):
    """Numbers lie far outside of their columns, and were moved to usual ones."""


class BrokenCell(NamedTuple):
    """A number far outside of its column; ``row`` is how a message names its row."""

    row: str
    column: Column
    value: float


def describe_broken(cells: Sequence[BrokenCell]) -> Text:
    """Name the first numbers that are far outside of their columns, and the way out."""
    parts: list[str | Column] = []
    for cell in cells[:_MAX_NAMED_CELLS]:
        separator = "; " if parts else ""
        parts += [f"{separator}{cell.value:.10g} in {cell.row}, ", cell.column]
    n_more = len(cells) - _MAX_NAMED_CELLS
    more = f"; and {plural(n_more, 'more number')}" if n_more > 0 else ""
    if len(cells) == 1:
        finding = "lies far outside of its column, and counts as a usual number"
        way_out = "Correct it if it is an error"
    else:
        finding = "lie far outside of their columns, and count as usual numbers"
        way_out = "Correct those that are errors"
    return Text(*parts, f"{more} {finding}. {way_out}.")


def warn(*found: Warning | str) -> None:
    """Warn at the line that called ``fit``."""
    for warning in found:
        warnings.warn(warning, stacklevel=_frames_to_user())


def _frames_to_user() -> int:
    """Return the stack level of the first caller outside of this package."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        # The method ``fit`` is wrapped by a decorator of scikit-learn.
        if not module.startswith(("iclda.", "sklearn.base")):
            break
        level += 1
        frame = frame.f_back
    return level


def message_of(raised: BaseException) -> str:
    """Return the message of an error or a warning, as a ``Text`` if it has one."""
    if len(raised.args) == 1 and isinstance(raised.args[0], Text):
        return raised.args[0]
    return str(raised)


def and_list(names: Sequence[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def quoted_list(names: Sequence[str], most: int) -> str:
    """Quote the first ``most`` names and count the others: 'a', 'b' and 3 more."""
    quoted = ", ".join(repr(name) for name in names[:most])
    if len(names) <= most:
        return quoted
    return f"{quoted} and {len(names) - most:,} more"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Write a count with its noun: 1 fit, 2 fits."""
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {nouns or f'{noun}s'}"


def percent_text(share: float) -> str:
    """Write a share in percent with the digits that few rows support: 4.2 %, 14 %."""
    # 9.95 % and more would be rounded to 10.0 %, which is one digit too many.
    is_whole = share == 0 or share >= 0.0995
    return f"{100 * share:.{0 if is_whole else 1}f} %"


def printable(text: str) -> str:
    """Escape the control characters of a text, which a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines, but never between a number and its percent sign."""
    unbreakable = text.replace(_PERCENT_SIGN, _UNBREAKABLE_PERCENT_SIGN)
    lines = textwrap.wrap(unbreakable, width)
    return [line.replace(_UNBREAKABLE_PERCENT_SIGN, _PERCENT_SIGN) for line in lines]


def is_formula(cell: object) -> bool:
    """Return whether a spreadsheet that opens a CSV file would run a cell."""
    if not isinstance(cell, str) or len(cell) < 2:
        return False
    return cell[0] in _FORMULA_STARTS and _NUMBER.fullmatch(cell) is None
