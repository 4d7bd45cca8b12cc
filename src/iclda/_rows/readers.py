"""Readers of rows that are not in memory: what they have in common, and arrays.

A reader yields spans of consecutive rows, in the same order every time; ``files``
copies them into blocks of equal length. ``batch_readers`` has the readers of tables and
batches, ``kinds`` the table that says which reader is for what.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np

from .._core import AnyArray
from .._messages import quoted_list
from .checks import changed_error, check_finite, check_rows

# Bytes of rows that are held at a time unless the user says otherwise.
DEFAULT_MEMORY = 2**28
# Names of columns that a message lists.
SHOWN_NAMES = 10
# Rows read at once where only a few are wanted.
_PIECE_ROWS = 1024
# Rows read at once to be counted.
_COUNTED_ROWS = 2**16
# A first look reads runs of rows at this many positions of an array.
_FIRST_LOOK_RUNS = 64

Paths = Iterable["str | os.PathLike[str]"]
# The dtype of every column of a table.
Columns = Mapping[str, "np.dtype[Any]"]


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a source, the first of them at index ``start``; not read yet.

    Attributes
    ----------
    where : str
        The file or batch they come from, for messages.
    part : array or list of arrays
        What holds them: an array that is sliced, or a list of columns. A slice of
        anything but an array of NumPy has to be a new array: whole blocks of it are
        used without a copy.
    skip : int
        Rows of the part before the first one of the span.
    """

    start: int
    n_rows: int
    where: str
    part: Any
    skip: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.n_rows

    def read(self, target: AnyArray, row: int) -> None:
        """Copy rows, from this one on, into an (n, d) array."""
        first = self.skip + row
        rows = slice(first, first + len(target))
        if not isinstance(self.part, list):
            target[...] = self.part[rows]
            return
        for j, values in enumerate(self.part):
            target[:, j] = values[rows]


class Reader:
    """Rows in a fixed order, to be read repeatedly.

    A subclass supplies ``spans``, and sets ``n_features`` and ``_dtype`` if it reads
    arrays, or calls ``set_columns`` if it reads tables. It sets ``n_rows`` if that is
    known, and overrides ``spread`` or ``count`` where it has a cheaper or better way.
    Files that it passes to ``__init__`` are watched for changes.

    Attributes
    ----------
    name : str
        Name of the argument, for messages.
    words : str
        What is read, for people.
    n_rows : int or None
        Number of rows; None if it is unknown before all rows were read.
    order : str
        Memory order of the arrays that rows are copied into.
    memory : int
        Bytes of rows that may be held at a time.
    use_threads : bool
        Whether several threads decode, where decoding takes longer than the arithmetic.
    """

    _iclda_backend = "files"
    words = ""
    n_rows: int | None = None
    n_features = 0
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False
    # Of arrays; tables have a dtype for every column.
    _dtype: np.dtype[Any]
    _columns: Columns | None = None

    def __init__(self, name: str, files: Paths = ()) -> None:
        self.name = name
        self.watch(files)

    def set_columns(self, columns: Columns, names: Sequence[str]) -> None:
        """Set the columns of a table, and the names of those that are read."""
        self._columns = columns
        # Blocks of tables are filled column by column.
        self.order = "F"
        self.feature_names = [str(name) for name in names]
        self.n_features = len(names)

    def __repr__(self) -> str:
        n_rows = "?" if self.n_rows is None else self.n_rows
        return f"<{n_rows} x {self.n_features} rows of {self.words}>"

    def select(self, names: Sequence[str]) -> Reader:
        """Return a reader of the columns with these names of a table."""
        assert self._columns is not None
        check_present(names, self._columns, self.name)
        # The reader that the user holds stays as it is.
        selected = copy(self)
        selected.set_columns(self._columns, names)
        return selected

    def find_dtype(self) -> np.dtype[Any]:
        """Return one dtype that holds all columns."""
        if self._columns is None:
            return self._dtype
        if not self.feature_names:
            raise ValueError(f"{self.name} has no columns.")
        for column in self.feature_names:
            if self._columns[column].kind not in "biuf":
                raise ValueError(
                    f"{self.name}, column {column!r} does not hold real numbers: "
                    "encode it, or leave it out (iclda.rows.open(..., columns=[...]))."
                )
        dtypes = [self._columns[column] for column in self.feature_names]
        return np.result_type(*dtypes)

    def watch(self, files: Paths) -> None:
        """Note size and time of change of the files that are read."""
        self._stamps = {os.fspath(file): _stamp(file) for file in files}

    def check_unchanged(self) -> None:
        """Raise ValueError for a file whose size or time of change is not as at first.

        Called before and after every pass.
        """
        for file, first in self._stamps.items():
            current = _stamp(file)
            if current != first:
                sizes = f"{current[0]} bytes now, {first[0]} bytes at first"
                raise changed_error(self.name, f"{file} was written to ({sizes})")

    def spread(self, n: int) -> AnyArray:
        """Return at most ``n`` rows for a first look: cheap, if possible far apart."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Return the exact number of rows, reading them if it is unknown."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(span.n_rows for span in self.spans(_COUNTED_ROWS))

    def read_rows(self, index: AnyArray, *, must_exist: bool = True) -> AnyArray:
        """Return the rows at ascending indices.

        Fewer are returned if a source of unknown length ends before. It is a ValueError
        if they, or rows that are read with them, are not finite.
        """
        dtype = self.find_dtype()
        rows = np.empty((len(index), self.n_features), dtype)
        if len(index) == 0:
            return rows
        # Rows read so far.
        n_read = 0
        self.check_unchanged()
        for span in self.spans(_PIECE_ROWS, index):
            n_reached = int(np.searchsorted(index, span.stop))
            # None of the rows wanted is in this span.
            if n_reached == n_read:
                continue
            # The whole span is read, since most sources give no single rows.
            piece = np.empty((span.n_rows, self.n_features), dtype)
            span.read(piece, 0)
            self.check_finite(piece, span.start, span.where)
            positions = index[n_read:n_reached] - span.start
            rows[n_read:n_reached] = piece[positions]
            n_read = n_reached
        self.check_unchanged()
        if n_read < len(index) and (must_exist or self.n_rows is not None):
            raise changed_error(self.name, f"it ended before its row {index[n_read]}")
        return rows[:n_read]

    def check_finite(self, rows: AnyArray, start: int, where: str) -> None:
        """Raise ValueError for NaN or infinity in rows from index ``start`` on."""
        index = range(start, start + len(rows))
        check_finite(
            rows, self.name, self.feature_names, index=index, where=f" ({where})"
        )

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        """Yield all rows in order, about ``n_rows`` at a time.

        Spans may be shorter or longer, to follow the parts in which rows are stored:
        blocks of equal length are made of them. ``memory`` counts the rows of one block
        for what a reader holds. With ``wanted``, ascending indices of rows, spans
        without any of them may be left out.
        """
        raise NotImplementedError


def _stamp(file: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def check_present(names: Sequence[str], present: Collection[str], where: str) -> None:
    """Raise ValueError for columns that are not present."""
    missing = [str(column) for column in names if column not in present]
    if missing:
        raise ValueError(
            f"{where} lacks the columns {quoted_list(missing, SHOWN_NAMES)}; it has "
            f"{quoted_list(list(present), SHOWN_NAMES)}."
        )


@contextmanager
def named_errors(errors: Any, where: str) -> Iterator[None]:
    """Turn errors of other libraries into one line that says what could not be read."""
    try:
        yield
    except MemoryError:
        # Of pyarrow's it is an ArrowException, too.
        raise
    except errors as error:
        reason = str(error).strip().partition("\n")[0]
        raise OSError(
            f"{where} cannot be read ({type(error).__name__}: {reason})."
        ) from error


# Arrays in which any row can be reached.


class ArrayReader(Reader):
    """Rows of arrays that are sliced, all of one width and dtype, in order."""

    n_rows: int

    def __init__(self, arrays: Sequence[Any], name: str, files: Paths) -> None:
        super().__init__(name, files)
        self._arrays = arrays
        for array in arrays:
            check_rows(array, self._where(array))
        first = arrays[0]
        # One block may hold rows of several arrays.
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
        runs = starts[:, None] + np.arange(run_rows)
        # Runs may overlap.
        return np.unique(runs.ravel())

    def spans(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Span]:
        begin = 0
        for array in self._arrays:
            end = begin + array.shape[0]
            # Spans begin at multiples of ``n_rows``, whichever rows are wanted.
            skips = list(range(0, array.shape[0], n_rows))
            if wanted is not None:
                low, high = np.searchsorted(wanted, [begin, end])
                inside = wanted[low:high] - begin
                spans_with_any = np.unique(inside // n_rows)
                skips = (spans_with_any * n_rows).tolist()
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
        with open(self.path, "rb") as file:
            if self.is_by_rows:
                block = np.empty((n_rows, n_features), self.dtype)
                self._fill(block, file, rows.start * n_features)
                return block
            # In Fortran order the entries of a column follow each other.
            columns = np.empty((n_features, n_rows), self.dtype)
            for j, column in enumerate(columns):
                self._fill(column, file, j * n_all + rows.start)
            return columns.T

    def _fill(self, target: Any, file: BufferedReader, first: int) -> None:
        """Read entries that follow each other in the file."""
        file.seek(self._offset + first * self.dtype.itemsize)
        if file.readinto(target.view(np.uint8)) < target.nbytes:
            raise OSError(f"{self.path} ends early: it was cut short.")


class NumpyFiles(ArrayReader):
    """The rows of .npy files."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        arrays = [_NumpyFile(file, name) for file in files]
        super().__init__(arrays, name, files)
        self.order = "C" if all(array.is_by_rows for array in arrays) else "F"


class SlicedArray(ArrayReader):
    """The rows of a memory map, an HDF5 dataset, or another sliced array.

    Slices begin where blocks do. If rows are stored in compressed chunks, a chunk that
    belongs to several blocks is decoded for each of them, unless the library caches it.
    """

    def __init__(self, X: Any, name: str) -> None:
        # A memory map has a file name; an h5py dataset has a file that has one.
        owner = X if isinstance(X, np.memmap) else getattr(X, "file", None)
        file = getattr(owner, "filename", "")
        files = [file] if file and os.path.exists(file) else []
        super().__init__([X], name, files)
        # Rows are copied fastest in the order in which they are stored.
        self.order = "F" if isinstance(X, np.ndarray) and X.flags.fnc else "C"
