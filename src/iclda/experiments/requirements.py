"""What figures and reports need beyond the package itself."""

from __future__ import annotations

from typing import Any

from .. import _requirements


def require(module: str) -> Any:
    """The module, or an ImportError that names the extra of the experiments."""
    return _requirements.require(module, "figures and reports", "experiments")
