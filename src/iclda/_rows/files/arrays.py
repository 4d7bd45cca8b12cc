"""Rows in .npy files and in memory maps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from .reader import ArrayChunk, Chunk, Reader, StoredChunk, StoredColumns

_RUNS = 64  # places that a pilot looks at
_PIECE = 1024  # rows around one that is wanted


@dataclass(frozen=True)
class _Stored:
    """What the header of a .npy file says."""

    path: Path
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    offset: int
    is_fortran: bool


class NumpyFiles(Reader):
    """The rows of .npy files, one file after the other."""

    kind = ".npy files"

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(name, files)
        self._files = [_stored(file, name) for file in files]
        first = self._files[0]
        for other in self._files[1:]:
            if (other.n_features, other.dtype) != (first.n_features, first.dtype):
                raise ValueError(
                    f"{name}: {other.path} holds {other.n_features} columns of {other.dtype}, but "
                    f"{first.path} holds {first.n_features} of {first.dtype}. All must be alike: "
                    "pass those that are, or save the others anew."
                )
        self.n_features, self._dtype = first.n_features, first.dtype
        self.n_rows = sum(file.n_rows for file in self._files)
        self.order = "F" if any(file.is_fortran for file in self._files) else "C"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def spread(self, n: int) -> AnyArray:
        assert self.n_rows is not None
        return runs(self.n_rows, n)

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for file in self._files:
            inside = pieces(wanted, begin, file.n_rows)
            if inside:
                yield from _read(file, begin, inside)
            begin += file.n_rows


def runs(n_rows: int, n: int) -> AnyArray:
    """About ``n`` of the numbers below ``n_rows``, in runs that lie apart."""
    if n >= n_rows:
        return np.arange(n_rows)
    n_runs = min(_RUNS, n)
    starts = np.linspace(0, n_rows - n // n_runs, n_runs).astype(np.int64)
    return np.unique((starts[:, None] + np.arange(n // n_runs)).ravel())


def pieces(wanted: AnyArray | None, begin: int, n_rows: int) -> list[tuple[int, int]]:
    """Ranges within a part of ``n_rows`` rows from number ``begin`` on: all of it, or pieces."""
    if n_rows == 0 or wanted is None:
        return [(0, n_rows)] if n_rows else []
    low, high = np.searchsorted(wanted, [begin, begin + n_rows])
    starts = np.unique((wanted[low:high] - begin) // _PIECE) * _PIECE
    return [(int(start), min(int(start) + _PIECE, n_rows)) for start in starts]


def _read(file: _Stored, begin: int, inside: list[tuple[int, int]]) -> Iterator[Chunk]:
    where, item = str(file.path), file.dtype.itemsize
    row_bytes = file.n_features * item
    kind: type[StoredChunk] = StoredColumns if file.is_fortran else StoredChunk
    step, span = (item, file.n_rows * item) if file.is_fortran else (row_bytes, row_bytes)
    with open(file.path, "rb", buffering=0) as opened:
        for low, high in inside:
            yield kind(begin + low, where, opened, file.offset + low * step, high - low, span)


def _stored(path: Path, name: str) -> _Stored:
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version > (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
            offset = file.tell()
    except ValueError as error:
        raise OSError(f"{name}: {path} is no .npy file that can be read ({error}).") from error
    if len(shape) != 2:
        raise ValueError(f"{name}: {path} must hold a 2-d array, rows x features, got {shape}.")
    check_dtype(dtype, f"{name}: {path}")
    needed = offset + shape[0] * shape[1] * dtype.itemsize
    size = os.path.getsize(path)
    if size < needed:
        raise OSError(
            f"{name}: {path} has {size} bytes, but {shape[0]} x {shape[1]} numbers of {dtype} take "
            f"{needed}: it was cut short."
        )
    return _Stored(path, shape[0], shape[1], dtype, offset, bool(is_fortran and shape[1] > 1))


def check_dtype(dtype: np.dtype[Any], where: str) -> None:
    """ValueError for what are no real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{where} holds {dtype}, and must hold real numbers: convert it to a dtype of numbers, "
            "or leave out the columns that hold none."
        )


class MappedArray(Reader):
    """The rows of an array, as a rule one mapped from a file larger than memory."""

    kind = "an array"

    def __init__(self, X: AnyArray, name: str) -> None:
        file = getattr(X, "filename", None)
        super().__init__(name, [file] if file and os.path.exists(file) else [])
        if X.ndim != 2:
            raise ValueError(
                f"{name} must be 2-d, rows x features, got an array of shape {X.shape}."
            )
        check_dtype(X.dtype, name)
        self._X = X
        self.n_rows = len(X)
        self.n_features = int(X.shape[1])
        self.order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    def spread(self, n: int) -> AnyArray:
        return runs(len(self._X), n)

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        for low, high in pieces(wanted, 0, len(self._X)):
            # To read what was cut off a mapped file would end the process.
            yield ArrayChunk(low, self.name, self._X[low:high], self.check_unchanged)
