"""Frames of pandas and polars.

`FrameReader` reads a frame like a Parquet file, without writing one: the frame becomes
an Arrow table in memory, so that it passes the same checks as a file, and columns of
lists of numbers become a column for each number. `to_pandas_frame` makes a frame of
what any reader has read.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._messages import ColumnError
from .._rows.kinds import package_and_type
from .cells import require_for_tables, texts_of
from .list_columns import columns_of_lists, without_lists
from .readers import DataReader

# What messages and reports call a frame, which has no path.
_FRAME_NAME = Path("The table")


class FrameReader(DataReader):
    """The rows of a frame. Its index is ignored, and names of columns become text."""

    first_row_number = 0

    def __init__(self, frame: Any) -> None:
        rows = _to_arrow(frame)
        self.lists = {}
        columns: list[str] = []
        for name in rows.column_names:
            column = rows[name]
            made_of_lists = columns_of_lists(name, column.type, column.chunks)
            if made_of_lists is None:
                columns.append(name)
            else:
                self.lists[name] = made_of_lists
                columns += made_of_lists
        super().__init__(_FRAME_NAME, columns)
        rows = without_lists(rows, self.lists, self.path, self.first_row_number)
        self._rows = _decoded(rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._rows.num_rows)

    def read(self, columns: Sequence[str]) -> Any:
        """Return all rows as an Arrow table of these columns."""
        return self._rows.select(columns)

    def sha256(self) -> str:
        """Return the checksum of the cells; it does not depend on the index."""
        digest = _Digest()
        ipc = require_for_tables("pyarrow.ipc")
        with ipc.new_stream(digest, self._rows.schema) as stream:
            stream.write_table(self._rows)
        return digest.sha256.hexdigest()


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


def is_frame(table: Any) -> bool:
    """Return whether a table is a frame of pandas or polars."""
    is_pandas = isinstance(table, require_for_tables("pandas").DataFrame)
    return is_pandas or package_and_type(table) == ("polars", "DataFrame")


def _to_arrow(frame: Any) -> Any:
    """Return a frame as an Arrow table; TypeError if it is not a frame."""
    pandas = require_for_tables("pandas")
    arrow = require_for_tables("pyarrow")
    if not is_frame(frame):
        raise TypeError(
            "table must be a pandas or polars DataFrame or the path of a file, got "
            f"{type(frame).__name__}: for arrays make a frame, "
            "pandas.DataFrame(X).assign(y=y)."
        )
    try:
        if isinstance(frame, pandas.DataFrame):
            frame = frame.rename(columns=str).reset_index(drop=True)
            rows = arrow.Table.from_pandas(frame, preserve_index=False)
        else:
            rows = frame.to_arrow()
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


def _decoded(rows: Any) -> Any:
    """Return categories that are not text as their values, as a Parquet file would."""
    types = require_for_tables("pyarrow").types
    for position, field in enumerate(rows.schema):
        if not types.is_dictionary(field.type):
            continue
        kind = field.type.value_type
        if not (types.is_string(kind) or types.is_large_string(kind)):
            values = rows.column(position).cast(kind)
            rows = rows.set_column(position, field.name, values)
    return rows


def to_pandas_frame(rows: Any) -> Any:
    """Return a frame of an Arrow table: numbers, booleans, dates, or text with gaps."""
    pandas = require_for_tables("pandas")
    columns = {name: _series(name, rows[name]) for name in rows.column_names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(rows.num_rows))


def _series(name: str, column: Any) -> Any:
    """Return an Arrow column as a pandas column."""
    arrow = require_for_tables("pyarrow")
    pandas = require_for_tables("pandas")
    types = arrow.types
    kind = column.type
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_dictionary(kind)
    ):
        return _text_series(name, column)
    if types.is_boolean(kind) and column.null_count:
        # A column of NumPy has no truth value for a gap.
        return pandas.Series(column.to_pylist(), dtype="boolean")
    # Types that pandas would make objects of, or numbers of few digits.
    if types.is_decimal(kind) or types.is_null(kind) or types.is_float16(kind):
        column = column.cast(arrow.float64())
    return column.to_pandas(date_as_object=False)


def _text_series(name: str, column: Any) -> Any:
    """Return a column of text as a pandas column, None for empty cells."""
    arrow = require_for_tables("pyarrow")
    try:
        # Encoded as a dictionary, so that each distinct value becomes text once.
        values = column.dictionary_encode().to_pandas().array
    except arrow.ArrowException:
        raise ColumnError(
            f"Column {name!r} holds text that is not UTF-8: save the file as UTF-8.",
            column=name,
        ) from None
    # Empty cells have the code -1, which selects the last of the texts: None.
    texts = texts_of([*values.categories, None])
    return require_for_tables("pandas").Series(texts[values.codes], dtype=object)
