"""Messages of the library in the words of the command line: options for parameters."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._messages import Hint

# Options that are not called like the parameter.
_NAMES = {
    "data_dir": "data",
    "n_labeled": "labeled",
    "priors": "prior",
    "shrinkages": "shrinkage",
}

# Phrases by parameter and kind of hint, where an option in place of the parameter would not do.
_PHRASES = {
    ("drop", "column"): "leave the column out by --drop",
    ("drop", "columns"): "leave columns out by --drop",
    ("drop", "or column"): " or leave it out by --drop",
    ("drop", "rows or column"): "leave the rows out, or the column by --drop",
    ("missing", "rows"): "Mend the table",
    ("priors", "lacking"): "pass a --prior for each, or none at all",
    ("priors", "shares"): "The shares of --prior",
    ("unlabeled", "any"): "--unlabeled VALUE",
    ("y", "classes"): "the classes",
    ("y", "every class"): "every class",
}


def in_options(message: str) -> str:
    """A message that names options for parameters."""
    from .._messages import Hint, Text

    if not isinstance(message, Text):
        return message
    return "".join(option(part) if isinstance(part, Hint) else str(part) for part in message.parts)


def option(hint: Hint) -> str:
    """A hint as options, or as the phrase for it."""
    phrase = _PHRASES.get((hint.parameter, hint.kind))
    if phrase is not None:
        return phrase if hint.value is None else f"{phrase} {hint.value!r}"
    name = f"--{_NAMES.get(hint.parameter, hint.parameter).replace('_', '-')}"
    if hint.value is None:
        return name
    values = hint.value if isinstance(hint.value, (list, tuple)) else [hint.value]
    return " ".join(f"{name} {shlex.quote(str(value))}" for value in values)


def all_in_options(value: Any) -> Any:
    """Lists and dictionaries with every message in them worded."""
    if isinstance(value, dict):
        return {name: all_in_options(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_in_options(each) for each in value]
    return in_options(value) if isinstance(value, str) else value
