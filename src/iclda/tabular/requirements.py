"""What tables need beyond the package itself."""

from __future__ import annotations

from typing import Any

from .. import _packages


def require(module: str) -> Any:
    """The module, or an ImportError that names the extra for tables."""
    return _packages.require(module, "reading tables", "data")
