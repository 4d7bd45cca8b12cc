"""What must be true of rows, whatever reads them, and the errors if it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import Column, ColumnError, Text

# Names of columns; None: they have none.
Names = Sequence[str] | AnyArray | None
# Indices of rows.
Index = Sequence[int] | AnyArray | None

_IMPUTE = "Impute missing values or drop these rows"
_REPLACE = "Replace infinity or values too large for its dtype, or drop these rows"


class BadRowsError(ValueError):
    """Rows that are not what they must be."""


class BadColumnError(BadRowsError, ColumnError):
    """Rows with a column that cannot be used."""


def column_of(column: int, names: Names) -> Column:
    """Return a column as messages show it."""
    return Column(column, None if names is None else str(names[column]))


def check_shape(array: Any, where: str) -> None:
    """Raise BadRowsError unless an array of any library is 2-d."""
    if len(array.shape) != 2:
        raise BadRowsError(
            f"{where} must be 2-d, rows x features, got shape {tuple(array.shape)}: "
            "reshape it, for example by X.reshape(len(X), -1)."
        )


def check_rows(array: Any, where: str) -> None:
    """Raise BadRowsError unless an array is 2-d and holds real numbers."""
    check_shape(array, where)
    if array.dtype.kind not in "biuf":
        raise BadRowsError(
            f"{where} holds {array.dtype}, and must hold real numbers: convert it to a "
            "dtype of numbers, or leave out the columns that hold none."
        )


def check_finite(
    rows: AnyArray,
    name: str,
    names: Names = None,
    *,
    index: Index = None,
    where: str = "",
) -> None:
    """Raise ``not_finite_error`` for the first NaN or infinity.

    ``index`` has the indices of the rows; ``where`` says where they come from.
    """
    if rows.dtype.kind != "f":
        return
    # NaN and infinity show in the sum, which is cheap. It may also have overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    is_finite = np.isfinite(rows)
    if is_finite.all():
        return
    row, column = np.argwhere(~is_finite)[0].tolist()
    value = "NaN" if np.isnan(rows[row, column]) else "infinity"
    row_index = row if index is None else int(index[row])
    raise not_finite_error(
        value, name, row_index, column_of(column, names), where=where
    )


def not_finite_error(
    value: str, name: str, row: int, column: Column, *, where: str = ""
) -> BadColumnError:
    """Return the error for NaN, infinity or a missing value, with the way out."""
    begin = f"Input {name} contains {value}, first in row {row}, "
    way_out = _REPLACE if value == "infinity" else _IMPUTE
    message = Text(begin, column, f"{where}. ", way_out, ".")
    return BadColumnError(message, column=column.label)


def names_of_table(table: Any) -> list[str] | None:
    """Return the names of the columns of a table; None if there are none."""
    # pyarrow keeps them in the schema, pandas and polars in ``columns``.
    names = getattr(getattr(table, "schema", None), "names", None)
    if not isinstance(names, list):
        columns = getattr(table, "columns", None)
        if columns is None:
            return None
        names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def refuse_repeated(names: Sequence[Any], where: str) -> None:
    """Raise ValueError for a name that occurs more than once."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ValueError(
                f"{where} has {count} columns called {str(name)!r}, and names of "
                "features must differ: rename or drop all but one."
            )


def changed_error(name: str, difference: str) -> BadRowsError:
    """Return the error for a source that changed after it was opened."""
    return BadRowsError(
        f"{name} changed between two passes: {difference}. Rows are read several "
        "times, and must be the same every time: open the source again, or fit to a "
        "copy that nothing writes to."
    )
