"""Optional packages: imported when used, and named with their extra when missing."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
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
        raise _missing(package, use, extra) from error


def check_installed(packages: Iterable[str], use: str, extra: str) -> None:
    """ImportError for the first of some packages that is missing; none of them is imported."""
    for package in packages:
        if find_spec(package) is None:
            raise _missing(package, use, extra)


def _missing(package: str, use: str, extra: str) -> ImportError:
    return ImportError(
        f"{package} is needed for {use} and is not installed: pip install 'iclda[{extra}]'."
    )
