"""Tables from pandas frames: a frame is read like a Parquet file, without writing one.

`read_frame` makes a ``Table`` of a frame. The frame becomes an Arrow table in memory,
so that it goes through the same checks as a file, and columns of lists of numbers
become a column for each number.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .._rows.checks import refuse_repeated
from .encoders import require_for_tables
from .table import ReadOptions, Table, read_opened
from .table_files import _entries

# What messages and reports call a frame, which has no path.
_FRAME_NAME = Path("The table")


def read_frame(frame: Any, options: ReadOptions) -> Table:
    """Read a pandas frame; its index is ignored, names of columns become text."""
    reader: Any = _FrameReader(_to_arrow(frame))
    return read_opened(reader, options)


class _FrameReader:
    """Rows of a frame with what ``read_opened`` asks of an opened table file.

    Attributes
    ----------
    path : Path
        What messages call the frame.
    columns : tuple of str
        Names of all columns.
    lists : dict of str to list of str
        Columns that were made of a column of lists, by the name of that column.
    n_rows : int
        Number of rows.
    """

    def __init__(self, rows: Any) -> None:
        self.path = _FRAME_NAME
        self.lists: dict[str, list[str]] = {}
        self._rows = self._without_lists(rows)
        self.columns = tuple(self._rows.column_names)
        self.n_rows = self._rows.num_rows

    def read(self, columns: Sequence[str]) -> Any:
        """Return an Arrow table of these columns."""
        return self._rows.select(columns)

    def column(self, name: str) -> Any:
        """Return one Arrow column."""
        return self._rows[name]

    def hold(self, columns: Iterable[str], texts: Iterable[str]) -> None:
        """Do nothing: the rows are in memory already."""

    def sha256(self) -> str:
        """Checksum of the cells, which tells whether a stored comparison is of them."""
        digest = _Digest()
        ipc = require_for_tables("pyarrow.ipc")
        with ipc.new_stream(digest, self._rows.schema) as stream:
            stream.write_table(self._rows)
        return digest.sha256.hexdigest()

    def _without_lists(self, rows: Any) -> Any:
        """Replace every column of lists by columns of numbers."""
        names: list[str] = []
        cells: list[Any] = []
        for name in rows.column_names:
            # NumPy drops zero bytes from the end of names.
            if "\0" in name:
                raise ValueError(
                    f"{self.path}: the column {name!r} holds a zero byte: rename it."
                )
            column = rows[name]
            width = _list_width(column)
            if width is None:
                names.append(name)
                cells.append(_decoded(column))
                continue
            self.lists[name] = [f"{name}_{k}" for k in range(width)]
            names += self.lists[name]
            cells += list(_entries(column, width, f"{self.path}, column {name!r}", 0))
        refuse_repeated(tuple(names), str(self.path))
        return require_for_tables("pyarrow").table(cells, names=names)


class _Digest(io.RawIOBase):
    """A stream that keeps only the checksum of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return memoryview(data).nbytes


def _to_arrow(frame: Any) -> Any:
    """Return a frame as an Arrow table; TypeError if it is not a frame."""
    pandas = require_for_tables("pandas")
    arrow = require_for_tables("pyarrow")
    if not isinstance(frame, pandas.DataFrame):
        raise TypeError(
            "table must be a pandas DataFrame or the path of a file, got "
            f"{type(frame).__name__}: for arrays make a frame, "
            "pandas.DataFrame(X).assign(y=y)."
        )
    frame = frame.rename(columns=str).reset_index(drop=True)
    try:
        rows = arrow.Table.from_pandas(frame, preserve_index=False)
    # Arrow raises errors of many classes for what it has no type for.
    except Exception as error:
        problem = ". ".join(map(str, error.args))
        raise ValueError(
            f"A column of the table cannot be read: {problem}. Make all its values "
            "numbers or all of them text, give no two columns the same name, or drop "
            "the column."
        ) from error
    # The metadata hold versions of packages, which must not change the checksum.
    return rows.replace_schema_metadata(None)


def _list_width(column: Any) -> int | None:
    """Count the numbers of the first list of a column; None if it holds no lists."""
    types = require_for_tables("pyarrow").types
    kind = column.type
    is_list = (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
    if not is_list:
        return None
    if not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        return None
    known = column.drop_null()
    return len(known[0]) if len(known) else None


def _decoded(column: Any) -> Any:
    """Return categories that are not text as their values, as a Parquet file would."""
    types = require_for_tables("pyarrow").types
    kind = column.type
    if not types.is_dictionary(kind):
        return column
    is_text = types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
    return column if is_text else column.cast(kind.value_type)
