"""What readers of rows have in common, whether the rows are in a file or a frame.

A `DataReader` knows the names of its columns before it reads any row. ``read`` and
``column`` return Arrow data; ``batches`` yields blocks of bounded size, so that a file
of any size can be predicted; ``sha256`` tells whether two readers have the same rows.

    file = open_data(Path("customers.csv"))
    require_columns(file, ["age", "kind"])
    file.hold(["age"], texts=["kind"])
    ages = file.column("age")
    kinds = file.column("kind")

Here are also the errors that all readers raise: for columns that a file does not have,
and for files that cannot be read.
"""

from __future__ import annotations

import csv
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from .._messages import ColumnError, quoted_list, say
from .._rows.checks import refuse_repeated
from .cells import require_for_tables
from .column_types import COLUMN_TYPES

# Bytes of a file that are read at once.
BLOCK_BYTES = 1 << 20
# Rows of a batch of files that store rows or columns of known length.
BATCH_ROWS = 1 << 14
# Columns that an error lists.
MAX_LISTED_COLUMNS = 12
# Names are suggested that are at least this similar, from 0 to 1. The default of
# difflib, 0.6, suggests unrelated names.
_MIN_SIMILARITY = 0.75


@dataclass(frozen=True)
class Source:
    """A file that rows came from."""

    path: str
    sha256: str
    n_rows: int


class DataReader:
    """Rows with named columns.

    Attributes
    ----------
    path : Path
        What holds the rows, and what messages call it.
    columns : tuple of str
        Names of all columns.
    lists : mapping of str to list of str
        Columns that were made of a column of lists, by the name of that column.
    """

    lists: Mapping[str, list[str]]
    # What messages call the first row: the names of the columns are row 1, as in a
    # spreadsheet. So it is in a Parquet file, too, where a row keeps the number that it
    # has in a CSV file of the same table.
    first_row_number = 2

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        for name in columns:
            # NumPy drops zero bytes from the end of names.
            if "\0" in name:
                raise ValueError(
                    f"{path}: the column {name!r} holds a zero byte: rename it."
                )
        refuse_repeated(self.columns, str(path))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        raise NotImplementedError

    def read(self, columns: Sequence[str]) -> Any:
        """Return all rows as an Arrow table of these columns."""
        raise NotImplementedError

    def column(self, name: str) -> Any:
        """Return one column as an Arrow column."""
        return self.read([name])[name]

    def hold(self, columns: Iterable[str], texts: Iterable[str]) -> None:
        """Read columns at once for later calls of ``read`` and ``column``.

        Those in ``texts`` stay text in a CSV file, whatever their cells look like.
        Readers of rows in memory have nothing to do.
        """

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types`` and the share read so far."""
        raise NotImplementedError

    def sha256(self) -> str:
        """Return the checksum of the rows."""
        raise NotImplementedError

    def source(self) -> Source:
        """Describe where the rows come from."""
        return self._source

    @cached_property
    def _source(self) -> Source:
        # A checksum reads the whole file: it is computed once.
        return Source(str(self.path), self.sha256(), self.n_rows)


class TableReader(DataReader):
    """A file of columns, which is read again with every call unless these are held.

    Subclasses supply ``_read``.
    """

    _held: Any = None

    def hold(self, columns: Iterable[str], texts: Iterable[str]) -> None:
        wanted = {*columns, *texts}
        # Names that the file does not have are passed over: callers check those that
        # they need.
        names = [name for name in self.columns if name in wanted]
        held_as_text = [name for name in texts if name in names]
        self._held = self._read(names, held_as_text)

    def read(self, columns: Sequence[str]) -> Any:
        if self._held is None or not {*columns} <= {*self._held.column_names}:
            return self._read(columns, ())
        return self._held.select(columns)

    def column(self, name: str) -> Any:
        """Return one column as an Arrow column, of a CSV file as text."""
        if self._held is not None:
            return self._held[name]
        return self._read([name], [name])[name]

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        """Read all rows as an Arrow table; those in ``texts`` as text, if possible."""
        raise NotImplementedError


def require_columns(file: DataReader, names: Iterable[str], purpose: str = "") -> None:
    """Raise a ColumnError unless a file has columns of these names.

    The error suggests columns with similar names.
    """
    lacking = [name for name in names if name not in file.columns]
    if not lacking:
        return
    unused = [name for name in file.columns if name not in names]
    name_by_folded = {name.strip().casefold(): name for name in unused}
    # A name in another case, with blanks or with a typing error: "'Age' for 'age'".
    suggestions = []
    for name in lacking:
        folded = str(name).strip().casefold()
        close = get_close_matches(folded, name_by_folded, 1, _MIN_SIMILARITY)
        suggestions += [f"{name_by_folded[match]!r} for {name!r}" for match in close]
    hint = f" Did you mean {', '.join(suggestions[:3])}?" if suggestions else ""
    if _is_unseparated(file.columns, lacking[0]):
        hint = (
            " It has a single column, because its names are separated by blanks: "
            "separate cells by commas, semicolons, tabs or vertical bars."
        )
    text = say(
        "{path} has no {columns_word} {lacking}{purpose}.{hint} Its columns are "
        "{columns}.",
        path=file.path,
        columns_word="column" if len(lacking) == 1 else "columns",
        lacking=quoted_list(lacking, MAX_LISTED_COLUMNS),
        purpose=purpose,
        hint=hint,
        columns=listed_columns(file.columns),
    )
    raise ColumnError(text, column=lacking[0])


def _is_unseparated(columns: Sequence[str], name: str) -> bool:
    """Return whether the only column has a name that holds this one as a word."""
    return len(columns) == 1 and str(name) in str(columns[0]).split()


def listed_columns(names: Sequence[str]) -> str:
    """Quote names of columns: if there are many, the first and the last ones.

    The target is often the last column.
    """
    n_hidden = len(names) - MAX_LISTED_COLUMNS
    if n_hidden <= 0:
        return quoted_list(names, MAX_LISTED_COLUMNS)
    n_shown = MAX_LISTED_COLUMNS // 2
    first = quoted_list(names[:n_shown], n_shown)
    last = quoted_list(names[-n_shown:], n_shown)
    return f"{first}, {n_hidden:,} more, {last}"


@contextmanager
def explained_errors(path: Path, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of readers into a ValueError that names the file, row and column."""
    arrow = require_for_tables("pyarrow")
    try:
        yield
    # Some errors of pyarrow are derived from these, but are ArrowExceptions as well.
    except (KeyboardInterrupt, MemoryError):
        raise
    except (
        arrow.ArrowException,
        csv.Error,
        EOFError,
        zlib.error,
        OSError,
        UnicodeError,
    ) as error:
        # The file cannot be opened: the error says so and names it.
        if getattr(error, "filename", None):
            raise
        message = str(error).splitlines()[0]
        # Without memory for its stack a thread does not start.
        if "launch worker thread" in message:
            raise MemoryError(
                f"{path} is read by a thread, which could not be started"
            ) from error
        problem = _explain(message, columns)
        raise ValueError(f"{path} cannot be read: {problem}.") from error


def _explain(message: str, columns: Sequence[str]) -> str:
    """Put names of columns and types in place of the numbers and types of pyarrow."""
    if "straddling" in message:
        return (
            "a row is over a megabyte of text. Shorten it, or save the table as "
            ".parquet"
        )
    if "Expected" in message and "columns, got" in message:
        return (
            f"{message}. Quote a cell that holds the separator itself, or give the row "
            "as many cells as there are names of columns"
        )
    words = {column_type.arrow: column_type.cells for column_type in COLUMN_TYPES}
    # Several column types may be read as text, and so are ids and the target: that a
    # cell is not text is all that Arrow can say of it.
    words["string"] = "text"
    for arrow_type, cells in words.items():
        message = message.replace(
            f"CSV conversion error to {arrow_type}", f"must hold {cells}"
        )
    message = message.replace(
        "invalid UTF8 data", "it is not UTF-8 text, save the file as UTF-8"
    )
    message = re.sub(
        r"In CSV column #(\d+): Row #(\d+):",
        lambda match: f"row {match[2]}, column {columns[int(match[1])]!r}",
        message,
    )
    if ": invalid value " not in message:
        return message
    cell = message.replace(": invalid value ", ", got ")
    return f"{cell}. Empty the cell if its value is unknown"


def sha256_of(files: Sequence[Path]) -> str:
    """Return the checksum of the bytes of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return digest.hexdigest()
