"""The sentences of a comparison, which are in ``sentences.toml``, filled in."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from string import Formatter
from typing import Any

from ..._messages import Hint, ParameterError, Text

SENTENCES = tomllib.loads(files(__package__).joinpath("sentences.toml").read_text("utf-8"))
PARAMETERS = ("drop", "methods", "missing", "out", "shrinkage")


def say(sentence: str, /, **values: Any) -> Text:
    """A sentence with its values, and with parameters that readers call by names of their own."""
    parts: list[str | Hint] = []
    for words, name, form, conversion in Formatter().parse(sentence):
        parts.append(words)
        if name in PARAMETERS:
            parts.append(Hint(name, form or None))
        elif name is not None:
            value = Formatter().convert_field(values[name], conversion)
            parts.append(value if isinstance(value, Hint | Text) else format(value, form or ""))
    return Text(*parts)


def bad_parameter(name: str, given: Hint, /, **values: Any) -> ParameterError:
    """An error of that name, about a parameter and the value that it has."""
    text = say(SENTENCES["errors"][name], given=given, **values)
    return ParameterError(text, parameter=given.parameter, value=given.value)
