"""Benchmark sets at hand: in a data directory, in the cache, or inside scikit-learn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .registry import Benchmark, get_benchmark
from .table import Table, read_table

_IN_SCIKIT_LEARN = "WDBC"
_SCIKIT_LEARN = "scikit-learn, without the first row"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and classes of one set, and in words where they came from."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.str_]
    feature_names: tuple[str, ...]
    origin: str
    sha256: str


def load_benchmark(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """A benchmark set as the paper used it; nothing is downloaded.

    Looked for in ``data_dir`` (or the directory ICLDA_DATA names) as ``<name>.csv``, then among
    the sets fetched before, then inside scikit-learn. A file in ``data_dir`` may differ from the
    paper's set, and ``origin`` then says so; a cached one may not.

    Raises
    ------
    FileNotFoundError
        If the set is not at hand.
    ValueError
        If a file cannot be read, or a cached one is not the paper's set.
    """
    benchmark = get_benchmark(name)
    own = _file_in(data_directory(data_dir), name)
    if own is not None:
        table = read_table(own)
        return _dataset(benchmark, table, _words_for_own(own, benchmark, table))
    cached = _file_in(cache_directory(), name)
    if cached is not None:
        return _dataset(benchmark, read_cached(cached, benchmark), _words_for_cached(cached))
    if name == _IN_SCIKIT_LEARN:
        return _dataset(benchmark, _wdbc_of_scikit_learn(benchmark), _SCIKIT_LEARN)
    raise FileNotFoundError(f"{name} is not at hand: {_how_to_get(benchmark)}.")


def find_benchmark(name: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """Where ``load_benchmark`` would find a set, in words, or None; no file is opened."""
    benchmark = get_benchmark(name)
    own = _file_in(data_directory(data_dir), benchmark.name)
    if own is not None:
        return f"data directory ({own})"
    cached = _file_in(cache_directory(), benchmark.name)
    if cached is not None:
        return _words_for_cached(cached)
    return _SCIKIT_LEARN if name == _IN_SCIKIT_LEARN else None


def data_directory(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The directory of the user's own files: the argument, else ICLDA_DATA, else None."""
    given, called = data_dir, "data_dir"
    if given is None:
        given, called = os.environ.get("ICLDA_DATA") or None, "ICLDA_DATA"
    if given is None:
        return None
    directory = Path(given).expanduser()
    if not directory.is_dir():
        raise NotADirectoryError(f"{called} must be a directory of CSV files, got {str(given)!r}.")
    return directory


def cache_directory() -> Path:
    """Where fetched sets are kept: ICLDA_CACHE, else the user's cache."""
    own = os.environ.get("ICLDA_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "iclda"


def read_cached(path: Path, benchmark: Benchmark) -> Table:
    """A file of the cache, or ValueError if it is not the paper's set."""
    way_out = f"Delete it, or run `iclda datasets fetch {benchmark.name}` to replace it"
    try:
        table = read_table(path)
    except ValueError as error:
        raise ValueError(f"{error} {way_out}.") from error
    if table.sha256 != benchmark.sha256:
        raise ValueError(
            f"{path} has changed since it was fetched: sha256 {benchmark.sha256} is expected, got "
            f"{table.sha256}. {way_out}."
        )
    return table


def _wdbc_of_scikit_learn(benchmark: Benchmark) -> Table:
    from sklearn.datasets import load_breast_cancer

    original = load_breast_cancer()
    classes = np.array([name[0].upper() for name in original.target_names.tolist()])
    table = Table(
        original.data[1:].copy(),
        classes[original.target[1:]],
        tuple(original.feature_names.tolist()),
    )
    if table.sha256 != benchmark.sha256:
        raise ValueError(
            f"{benchmark.name} of this scikit-learn is not the paper's set: sha256 "
            f"{benchmark.sha256} is expected, got {table.sha256}. Pass a directory that holds "
            f"{benchmark.name}.csv: set ICLDA_DATA."
        )
    return table


def _file_in(directory: Path | None, name: str) -> Path | None:
    path = None if directory is None else directory / f"{name}.csv"
    return path if path is not None and path.is_file() else None


def _dataset(benchmark: Benchmark, table: Table, origin: str) -> Dataset:
    return Dataset(benchmark.name, table.X, table.y, table.feature_names, origin, table.sha256)


def _words_for_own(path: Path, benchmark: Benchmark, table: Table) -> str:
    words = f"data directory ({path})"
    if table.sha256 == benchmark.sha256:
        return words
    return (
        f"{words}, which is not the paper's set: sha256 {table.sha256} instead of "
        f"{benchmark.sha256}"
    )


def _words_for_cached(path: Path) -> str:
    return f"cache ({path})"


def _how_to_get(benchmark: Benchmark) -> str:
    own = f"set ICLDA_DATA to a directory that holds {benchmark.name}.csv"
    if benchmark.openml_id is None:
        return f"{own} (it cannot be fetched; source: {benchmark.source})"
    return f"run `iclda datasets fetch {benchmark.name}`, or {own}"
