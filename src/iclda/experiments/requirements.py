"""Optional packages: imported when used, and named when missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str) -> Any:
    """The module, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is needed for figures and reports and is not installed: "
            "pip install 'iclda[experiments]'."
        ) from error
