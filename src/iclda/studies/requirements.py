"""What figures and reports need beyond the package itself."""

from __future__ import annotations

from typing import Any

from .. import _packages

_USE, _EXTRA = "figures and reports", "experiments"


def require(module: str) -> Any:
    """The module, or an ImportError that names the extra of the experiments."""
    return _packages.require(module, _USE, _EXTRA)


def check_can_report() -> None:
    """ImportError before anything is computed, if what is computed could not be shown."""
    _packages.check_installed(("jinja2", "markupsafe", "matplotlib"), _USE, _EXTRA)
