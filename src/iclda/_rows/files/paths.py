"""Which files a path, folder, pattern or list of them means, and whether they changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

FORMATS = {".npy": "npy", ".parquet": "parquet", ".pq": "parquet"}


def files_of(X: Any, name: str) -> tuple[str, list[Path]]:
    """Format and files, in order of their names within a folder or pattern."""
    given = [X] if isinstance(X, (str, os.PathLike)) else list(X)
    files = [file for path in given for file in _expanded(os.fspath(path), name)]
    formats = {FORMATS.get(file.suffix.lower(), "") for file in files}
    if len(formats) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(f"{name} mixes files of several formats ({shown}): pass those of one.")
    found = formats.pop()
    if not found:
        raise ValueError(
            f"{name}: cannot tell the format of {files[0]}. Files that end in "
            f"{', '.join(FORMATS)} are read; for others pass a pyarrow dataset, a polars "
            "LazyFrame, or iclda.rows.from_batches."
        )
    return found, files


def _expanded(path: str, name: str) -> list[Path]:
    path = path if os.path.exists(path) else os.path.expanduser(path)
    if os.path.isdir(path):
        found = [file for file in sorted(Path(path).rglob("*")) if _is_data(file, Path(path))]
        rule = f"no file that ends in {', '.join(FORMATS)}"
    elif os.path.exists(path):
        return [Path(path)]
    elif not has_magic(path):
        raise FileNotFoundError(f"{name}: there is no file {path}.")
    else:
        every = [Path(file) for file in sorted(glob(path, recursive=True)) if os.path.isfile(file)]
        found = [file for file in every if not _is_hidden(file, Path(path))]
        rule = "no file of that pattern (names that begin with _ or . are left out)"
    if not found:
        raise FileNotFoundError(f"{name}: {path} holds {rule}.")
    return found


def _is_data(file: Path, folder: Path) -> bool:
    """Not what engines leave beside their data: _SUCCESS, _metadata, hidden and temporary files."""
    is_hidden = _begins_hidden(file.relative_to(folder).parts)
    return file.suffix.lower() in FORMATS and not is_hidden and file.is_file()


def _is_hidden(file: Path, pattern: Path) -> bool:
    """Whether wildcards found a name that begins with _ or ., and the pattern does not say so."""
    parts = pattern.parts
    n_fixed = next(i for i, part in enumerate(parts) if has_magic(part))
    return _begins_hidden(file.parts[n_fixed:]) and not _begins_hidden(parts[n_fixed:])


def _begins_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)
