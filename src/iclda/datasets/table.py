"""Data sets as CSV files: feature columns, then ``class``."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

CLASS_COLUMN = "class"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, their classes, and what the columns are called."""

    X: NDArray[np.float64]
    y: NDArray[np.str_]
    feature_names: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Checksum of the numbers and classes, whatever the columns are called."""
        # Adding 0.0 makes -0.0 a 0.0: files differ in how they write a small negative number.
        values = np.ascontiguousarray(self.X + 0.0, dtype="<f8")
        return hashlib.sha256(values.tobytes() + "\n".join(self.y).encode()).hexdigest()


def read_table(path: Path) -> Table:
    """A CSV file; rows in messages are lines of the file, the header is row 1."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return parse_table(file, str(path))


def parse_table(file: TextIO, name: str) -> Table:
    """The text of a CSV file, opened with ``newline=""``; ``name`` is what messages call it."""
    try:
        lines = _numbered_lines(file)
        header = next(lines, (1, []))[1]
        _check_header(name, header)
        rows = [_parse_row(name, number, cells, header) for number, cells in lines]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 text: byte {error.start} cannot be read.") from error
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}.") from error
    if not rows:
        raise ValueError(f"{name} holds no rows below its header (row 1).")
    X = np.array([features for features, _ in rows], dtype=np.float64)
    return Table(X, np.array([label for _, label in rows]), tuple(header[:-1]))


def _numbered_lines(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, with their numbers."""
    reader = csv.reader(file, strict=True)
    return ((reader.line_num, cells) for cells in reader if cells)


def _check_header(file: str, header: Sequence[str]) -> None:
    if not header:
        raise ValueError(
            f"{file} is empty: row 1 must name the feature columns, then {CLASS_COLUMN!r}."
        )
    if header[-1] != CLASS_COLUMN:
        raise ValueError(
            f"{file}, row 1: the last column must be named {CLASS_COLUMN!r}, got {header[-1]!r} in "
            f"column {len(header)}."
        )
    if len(header) == 1:
        raise ValueError(f"{file}, row 1: there is no feature column before {CLASS_COLUMN!r}.")


def _parse_row(
    file: str, number: int, cells: Sequence[str], header: Sequence[str]
) -> tuple[list[float], str]:
    if len(cells) != len(header):
        raise ValueError(
            f"{file}, row {number}: {len(header)} columns are named in row 1, got {len(cells)}."
        )
    *features, label = cells
    if not label:
        raise ValueError(f"{file}, row {number}, column {CLASS_COLUMN!r}: the class is missing.")
    named = zip(header, features, strict=False)  # the header has one more: the class
    return [_parse_number(file, number, name, text) for name, text in named], label


def _parse_number(file: str, number: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{file}, row {number}, column {name!r}: features must be finite numbers, got {text!r}."
        )
    return value
