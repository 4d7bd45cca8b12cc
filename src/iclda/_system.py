"""Optional packages and names, imported when used; versions; threads; atomic writes of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

_NUMERICAL = ("numpy", "scipy", "scikit-learn")
_SMALL = 1_000  # features: a matrix of 384 was solved in 8 ms, on two threads of busy cores in 740


def require(module: str, use: str, extra: str) -> Any:
    """Import a module, or raise an ImportError that says what to install.

    ``use`` completes the sentence "... is needed for"; ``extra`` is the extra that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:
            raise  # the package is installed, but one of its own requirements is not
        raise _missing(package, use, extra) from error


def check_installed(packages: Iterable[str], use: str, extra: str) -> None:
    """Raise an ImportError for the first package that is missing, without importing any."""
    for package in packages:
        if find_spec(package) is None:
            raise _missing(package, use, extra)


def _missing(package: str, use: str, extra: str) -> ImportError:
    return ImportError(
        f"{package} is needed for {use} and is not installed: pip install 'iclda[{extra}]'."
    )


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports a module when a name is used.

    ``homes`` has the module of every name; a module by its own name is itself what is meant.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name], package)
        value = module if homes[name] == f".{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})


@cache
def versions() -> dict[str, str]:
    from importlib.metadata import version

    own = {"python": sys.version.split()[0], "iclda": sys.modules["iclda"].__version__}
    return {**own, **{name: version(name) for name in _NUMERICAL}}


@cache
def versions_text() -> str:
    """All versions in one line, as stored in every row of results."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())


def one_blas_thread() -> Any:
    """Return a context in which BLAS has one thread: blocks are summed by threads already.

    Whoever starts threads opens it around them: the last one to leave must not leave it changed.
    """
    return _blas_threads().limit(limits=1, user_api="blas")


def one_thread_if_small(n_features: int) -> Any:
    """Return a context for many fits: small matrices take longer on several BLAS threads.

    Limits of BLAS hold for all threads of a process, so that only the main thread sets them.
    """
    is_limited = n_features <= _SMALL and current_thread() is main_thread()
    return one_blas_thread() if is_limited else nullcontext()


@cache
def _blas_threads() -> Any:
    from threadpoolctl import (
        ThreadpoolController,
    )  # inspects all loaded libraries: once

    return ThreadpoolController()


file_numbers: dict[Path, int] = {}  # of the files that ``atomic_write`` puts into place


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path beside this one to write to; rename it at the end, remove it on failure.

    What a process that was killed left there is overwritten.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        file_numbers[path] = unfinished.stat().st_ino
        os.replace(unfinished, path)
    except OSError as error:
        # The error of a full disk names no file, and the name of the unfinished one is of no use.
        if error.filename in (None, str(unfinished), unfinished):
            raise OSError(
                error.errno, error.strerror or str(error), str(path)
            ) from error
        raise
    finally:
        with suppress(OSError):  # a name that is too long is no file to remove
            unfinished.unlink()


def written_files() -> list[Path]:
    """Return the files that are in their places, also if the process was interrupted just then."""
    numbers = file_numbers.items()
    return [
        path
        for path, number in numbers
        if path.exists() and path.stat().st_ino == number
    ]


def check_writable(path: Path) -> None:
    """Raise an OSError before any work is done if a file cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} for {path.name}: make it."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"The folder {path.parent} cannot be written to: name another one."
        )
