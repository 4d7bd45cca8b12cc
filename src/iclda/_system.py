"""Optional packages, imports, versions, BLAS threads, and atomic writes of files."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

_NUMERICAL_PACKAGES = ("numpy", "scipy", "scikit-learn")

# With up to this many features many fits are faster on one BLAS thread: a matrix of
# 384 columns was solved in 8 ms on one, and in 740 ms on two threads of busy cores.
_MAX_ONE_THREAD_FEATURES = 1_000


def require(module: str, use: str, extra: str) -> Any:
    """Import a module, or raise an ImportError that says what to install.

    ``use`` completes the sentence "... is needed for"; ``extra`` is the extra that
    installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        missing = (error.name or package).partition(".")[0]
        if missing != package:
            # The package is installed, but one of its own requirements is not.
            raise
        raise _missing_package(package, use, extra) from error


@contextmanager
def without_packages(*names: str) -> Iterator[None]:
    """Let imports of packages fail as if these were not installed.

    It holds for all threads of a process: only a program of one thread may enter it.
    Packages that have been imported already are not affected.
    """
    blocker = _Blocker(frozenset(names))
    sys.meta_path.insert(0, blocker)
    try:
        yield
    finally:
        sys.meta_path.remove(blocker)


@dataclass(frozen=True)
class _Blocker:
    """A finder of modules that refuses some packages and leaves others to the next."""

    names: frozenset[str]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def check_installed(packages: Iterable[str], use: str, extra: str) -> None:
    """Raise an ImportError for the first missing package, without importing any."""
    for package in packages:
        if find_spec(package) is None:
            raise _missing_package(package, use, extra)


def _missing_package(package: str, use: str, extra: str) -> ImportError:
    return ImportError(
        f"{package} is needed for {use} and is not installed: "
        f"pip install 'iclda[{extra}]'."
    )


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports names when used.

    ``homes`` maps every name to its module, relative to the package. A name whose
    module has the same name stands for that module itself.
    """

    def get_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name], package)
        value = module if homes[name] == f".{name}" else getattr(module, name)
        # Python does not call __getattr__ again for a name that the module has.
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get_name, list_names


class _Collector:
    """What this package has done to the garbage collector of this process."""

    is_paused = False


def pause_collector() -> None:
    """Stop the garbage collector until ``resume_collector``, after the imports.

    Only a program that imports first, and then ends after some work, may call it. What
    imports make stays until the end. Looking through it for garbage, again and again,
    took a fifth of the processor time of a small fit.
    """
    # A user may have stopped the collector for good.
    if gc.isenabled():
        gc.disable()
        _Collector.is_paused = True


def resume_collector() -> None:
    """Start the collector again after ``pause_collector``, without what exists by now.

    It does nothing in a process that has not called ``pause_collector``, such as one of
    the user that calls functions of this package.
    """
    if _Collector.is_paused:
        _Collector.is_paused = False
        gc.freeze()
        gc.enable()


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, iclda and the numerical packages."""
    from importlib.metadata import version

    found = {
        "python": sys.version.split()[0],
        "iclda": sys.modules["iclda"].__version__,
    }
    for name in _NUMERICAL_PACKAGES:
        found[name] = version(name)
    return found


@cache
def versions_text() -> str:
    """Return all versions in one line, as stored in every row of results."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())


def one_blas_thread() -> Any:
    """Return a context in which BLAS has one thread, for blocks summed in threads.

    Enter it once around a thread pool, not in its threads: overlapping contexts would
    restore each other's limit.
    """
    return _blas_threads().limit(limits=1, user_api="blas")


def one_thread_if_small(n_features: int) -> Any:
    """Return a context for many fits: BLAS threads slow small matrices down.

    The limit holds for all threads of a process, so that only the main thread sets it.
    """
    is_main = current_thread() is main_thread()
    if n_features <= _MAX_ONE_THREAD_FEATURES and is_main:
        return one_blas_thread()
    return nullcontext()


@cache
def _blas_threads() -> Any:
    # The controller inspects all loaded libraries, which is worth doing once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# Inodes of the files that ``atomic_write`` puts into place.
file_numbers: dict[Path, int] = {}


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which is renamed at the end and removed on failure.

    It is in the folder of ``path``. What a killed process left there is overwritten.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        file_numbers[path] = unfinished.stat().st_ino
        os.replace(unfinished, path)
    except OSError as error:
        # The error of a full disk names no file, and the user does not know the name of
        # the unfinished one: name the file that was to be written.
        if error.filename in (None, str(unfinished), unfinished):
            reason = error.strerror or str(error)
            raise OSError(error.errno, reason, str(path)) from error
        raise
    finally:
        # A name that is too long for the file system raises here as well.
        with suppress(OSError):
            unfinished.unlink()


def written_files() -> list[Path]:
    """Return the files that were written completely.

    An interruption may come between the renaming and the next statement: a file is
    complete if the inode of the unfinished file is now found under its final name.
    """
    return [
        path
        for path, number in file_numbers.items()
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
