"""Columns of lists of numbers, as Parquet files and frames may have them.

A column of lists, all of one length, becomes a column for each number: ``at``, with
lists of two numbers, becomes ``at_0`` and ``at_1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .cells import require_for_tables


def columns_of_lists(name: str, kind: Any, chunks: Iterable[Any]) -> list[str] | None:
    """Return the names of the columns that a column of lists becomes.

    None if ``kind``, its Arrow type, is not one of lists of numbers, or if no cell has
    a list. ``chunks`` are its cells; they are read up to the first list, which tells
    how many numbers there are.
    """
    if not _is_lists_of_numbers(kind):
        return None
    for chunk in chunks:
        lists = chunk.drop_null()
        if len(lists):
            n_numbers = len(lists[0])
            return [f"{name}_{k}" for k in range(n_numbers)]
    return None


def _is_lists_of_numbers(kind: Any) -> bool:
    types = require_for_tables("pyarrow").types
    is_list = (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
    if not is_list:
        return False
    return types.is_floating(kind.value_type) or types.is_integer(kind.value_type)


def without_lists(
    rows: Any, lists: Mapping[str, Sequence[str]], path: Path, first_row: int
) -> Any:
    """Replace the columns of lists of an Arrow table or batch by columns of numbers.

    ``lists`` has the new names by the name of the column, ``path`` is what messages
    call the rows, and ``first_row`` is what they call the first of these.
    """
    columns: dict[str, Any] = {}
    for name in rows.schema.names:
        if name in lists:
            where = f"{path}, column {name!r}"
            numbers = _numbers_of(rows[name], len(lists[name]), where, first_row)
            columns |= zip(lists[name], numbers, strict=True)
        else:
            columns[name] = rows[name]
    return type(rows).from_pydict(columns)


def _numbers_of(column: Any, width: int, where: str, first_row: int) -> AnyArray:
    """Return the numbers of the lists of a column, (width, rows).

    ValueError unless every list holds ``width`` finite numbers.
    """
    compute = require_for_tables("pyarrow.compute")
    # An empty cell has no numbers.
    lengths = compute.list_value_length(column).fill_null(0).to_numpy()
    has_other_length = lengths != width
    if has_other_length.any():
        row = int(has_other_length.argmax())
        content = f"{lengths[row] or 'no'} numbers"
        raise _list_error(where, first_row + row, width, content)

    # Columns of a table consist of chunks, columns of a batch do not.
    lists = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    all_numbers = lists.flatten().to_numpy(zero_copy_only=False)
    numbers = all_numbers.reshape(len(column), width)
    is_finite = np.isfinite(numbers).all(axis=1)
    if not is_finite.all():
        row = int(is_finite.argmin())
        content = "NaN, infinity or an empty entry"
        raise _list_error(where, first_row + row, width, content)
    return np.ascontiguousarray(numbers.T)


def _list_error(where: str, row: int, width: int, content: str) -> ValueError:
    return ValueError(
        f"{where}, row {row} must hold a list of {width} numbers, as the first one "
        f"does, and holds {content}. Leave the row or the column out, or compute its "
        "features again."
    )
