"""Files that are there complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path beside this one to write to; renamed at the end, removed if the writing fails."""
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        # A full disk does not say of which file; the name of the unfinished one says nothing.
        if error.filename in (None, str(unfinished), unfinished):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def require_file(path: Path) -> None:
    """ValueError unless there is a file to read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it.")
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check its name and its folder.")


def check_writable(path: Path) -> None:
    """OSError before any work is done if the folder of a file to be is not there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {path.parent} of {path.name} does not exist: make it first."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {path.parent} cannot be written to: name another one.")
