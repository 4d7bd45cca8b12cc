"""The machine and versions of a run, without names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

_PACKAGES = ("iclda", "numpy", "scipy", "scikit-learn", "threadpoolctl")
# Fields that determine the speed of X'X relative to memory; others may differ.
_IDENTITY = ("processor", "cores", "blas")


def describe_machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": _blas(),
    }


def describe_versions() -> dict[str, str]:
    """Python and the packages that decide the numbers.

    Those not installed are left out.
    """
    found = {"python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def is_same_machine(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether times of the two can be compared."""
    return all(one.get(key) == other.get(key) for key in _IDENTITY)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    keys = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in lines)
    }
    name = keys.get("model name") or platform.processor() or platform.machine()
    numbers = [keys[key] for key in ("cpu family", "model", "stepping") if key in keys]
    # Virtual machines give several processors one name: family and model distinguish
    # them.
    return f"{name} ({'/'.join(numbers)})" if numbers else name


def _memory_gib() -> float | None:
    try:
        return round(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
        )
    except (AttributeError, ValueError, OSError):
        return None


def _blas() -> str:
    """Kind, version and kernel of the BLAS that NumPy uses."""
    import numpy  # noqa: F401 - its BLAS must be loaded to be found

    found = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    words = [
        " ".join(
            str(pool[key])
            for key in ("internal_api", "version", "architecture")
            if key in pool
        )
        for pool in found
    ]
    return ", ".join(sorted(set(words))) or "unknown"
