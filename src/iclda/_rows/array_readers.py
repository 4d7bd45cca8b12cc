"""Readers of arrays in which any row can be reached: .npy files, memory maps, HDF5."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from .._core import AnyArray
from .backends import check_rows
from .readers import Paths, Reader, Span, named_errors

# A first look reads runs of rows at this many positions of an array.
_FIRST_LOOK_RUNS = 64


class ArrayReader(Reader):
    """Rows of arrays that are sliced, all of one width and dtype, in order."""

    n_rows: int

    def __init__(self, arrays: Sequence[Any], name: str, files: Paths) -> None:
        super().__init__(name, files)
        self._arrays = arrays
        for array in arrays:
            check_rows(array, self._where(array))
        first = arrays[0]
        for other in arrays[1:]:
            if (other.shape[1], other.dtype) != (first.shape[1], first.dtype):
                raise ValueError(
                    f"{self._where(other)} holds {other.shape[1]} columns of "
                    f"{other.dtype}, but {self._where(first)} holds {first.shape[1]} "
                    f"of {first.dtype}. All must be alike: pass those that are, or "
                    "save the others again."
                )
        self.n_features = first.shape[1]
        self._dtype = first.dtype
        self.n_rows = sum(array.shape[0] for array in arrays)

    def _where(self, array: Any) -> str:
        path = getattr(array, "path", None)
        return self.name if path is None else f"{self.name}: {path}"

    def spread(self, n: int) -> AnyArray:
        """Return about ``n`` row indices, in runs that lie apart."""
        if n >= self.n_rows:
            return np.arange(self.n_rows)
        n_runs = min(_FIRST_LOOK_RUNS, n)
        run_rows = n // n_runs
        starts = np.linspace(0, self.n_rows - run_rows, n_runs).astype(np.int64)
        return np.unique((starts[:, None] + np.arange(run_rows)).ravel())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        begin = 0
        for array in self._arrays:
            end = begin + array.shape[0]
            skips = list(range(0, array.shape[0], n_rows))
            if wanted is not None:
                low, high = np.searchsorted(wanted, [begin, end])
                inside = wanted[low:high] - begin
                skips = (np.unique(inside // n_rows) * n_rows).tolist()
            for skip in skips:
                # Reading a memory map beyond the end of its file would end the process.
                if isinstance(array, np.memmap):
                    self.check_unchanged()
                start = begin + skip
                where = str(getattr(array, "path", self.name))
                yield Span(start, min(n_rows, end - start), where, array, skip)
            begin = end


class _NumpyFile:
    """A .npy file: read, not mapped, so that a file that is cut short is an error."""

    def __init__(self, path: Path, name: str) -> None:
        # The header is Python code, and a file that was cut short cannot be mapped.
        errors = (OSError, ValueError, SyntaxError, TokenError, TypeError)
        problem = f"{name}: {path} is not a complete .npy file of numbers, and"
        with named_errors(errors, problem):
            array = np.lib.format.open_memmap(path, mode="r")
        self.path = path
        self.shape = array.shape
        self.dtype = array.dtype
        self.is_by_rows = array.flags.c_contiguous
        self._offset = array.offset

    def __getitem__(self, rows: slice) -> AnyArray:
        n_all, n_features = self.shape
        n_rows = rows.stop - rows.start
        # A run is a sequence of entries that follow each other in the file: all entries
        # of the rows if the file is in C order, otherwise those of one column.
        if self.is_by_rows:
            runs = np.empty((1, n_rows * n_features), self.dtype)
            firsts = [rows.start * n_features]
        else:
            runs = np.empty((n_features, n_rows), self.dtype)
            firsts = [j * n_all + rows.start for j in range(n_features)]
        with open(self.path, "rb") as file:
            for run, first in zip(runs, firsts, strict=True):
                file.seek(self._offset + first * self.dtype.itemsize)
                if file.readinto(run.view(np.uint8)) < run.nbytes:
                    raise OSError(f"{self.path} ends early: it was cut short.")
        return runs.reshape(n_rows, n_features) if self.is_by_rows else runs.T


class NumpyFiles(ArrayReader):
    """The rows of .npy files."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        arrays = [_NumpyFile(file, name) for file in files]
        super().__init__(arrays, name, files)
        self.order = "C" if all(array.is_by_rows for array in arrays) else "F"


class SlicedArray(ArrayReader):
    """The rows of a memory map, an HDF5 dataset, or another sliced array."""

    def __init__(self, X: Any, name: str) -> None:
        # A memory map has a file name; an h5py dataset has a file that has one.
        owner = X if isinstance(X, np.memmap) else getattr(X, "file", None)
        file = getattr(owner, "filename", "")
        super().__init__([X], name, [file] if file and os.path.exists(file) else [])
        self.order = "F" if isinstance(X, np.ndarray) and X.flags.fnc else "C"
