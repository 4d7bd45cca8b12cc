"""Atomic writes, and a check of their paths before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path beside this one to write to; rename it at the end, remove it on failure.

    What a process that was killed left there is overwritten.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        # The error of a full disk names no file, and the name of the unfinished one is of no use.
        if error.filename in (None, str(unfinished), unfinished):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    finally:
        with suppress(OSError):  # a name that is too long is no file to remove
            unfinished.unlink()


def check_writable(path: Path) -> None:
    """Raise an OSError before any work is done if a file cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {path.parent} of {path.name} does not exist: make it first."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {path.parent} cannot be written to: name another one.")
