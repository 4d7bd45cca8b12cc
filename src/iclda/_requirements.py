"""Optional packages: imported when used, and named with their extra when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, use: str, extra: str) -> Any:
    """The module, or an ImportError that says what to install.

    ``use`` ends the sentence "... is needed for"; ``extra`` is the extra that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:
            raise  # the package is there, and lacks one of its own
        raise ImportError(
            f"{package} is needed for {use} and is not installed: pip install 'iclda[{extra}]'."
        ) from error
