"""Versions of Python and of the packages that decide the numbers."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version

_PACKAGES = ("iclda", "numpy", "scipy", "scikit-learn")


@cache
def versions() -> dict[str, str]:
    """Name to version."""
    return {"python": sys.version.split()[0], **{name: version(name) for name in _PACKAGES}}


def version_of(package: str) -> str:
    """Version of an installed package."""
    return version(package)


@cache
def versions_text() -> str:
    """All of them in one line, as every row carries it."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())
