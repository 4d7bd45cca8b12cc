"""The sentences of a comparison, which are in ``sentences.toml``, filled in."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from ..._messages import Hint, ParameterError, say

SENTENCES = tomllib.loads(files(__package__).joinpath("sentences.toml").read_text("utf-8"))


def bad_parameter(name: str, given: Hint, /, **values: Any) -> ParameterError:
    """An error of that name, about a parameter and the value that it has."""
    text = say(SENTENCES["errors"][name], given=given, **values)
    return ParameterError(text, parameter=given.parameter, value=given.value)
