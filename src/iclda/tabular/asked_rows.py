"""What a person sees of rows to label, and whether answers still name these rows.

A file of answers repeats some cells of every row that it asks for. If rows were added
to the file of the rows since, removed or put in another order, these cells show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .cells import require_for_tables, texts_of

# Numbers count as equal up to this relative difference, since a spreadsheet may round.
_SPREADSHEET_PRECISION = 1e-3


def shown_cells(frame: Any, rows: AnyArray | Sequence[int]) -> dict[str, list[str]]:
    """Return what a person sees of some rows: the texts of every column of a frame.

    ``frame`` has all rows of the file.
    """
    cells: dict[str, list[str]] = {}
    for name in frame.columns:
        column = _without_midnights(frame[name], frame[name].iloc[rows])
        texts = texts_of(column, empty=("",))
        cells[name] = ["" if text is None else text for text in texts]
    return cells


def check_same_rows(
    asked: Any,
    answers_path: Path,
    current: Any,
    current_path: Path,
    rows: AnyArray,
    *,
    are_numbered: bool,
) -> None:
    """Raise a ValueError if a file of answers no longer names the rows it asked for.

    Parameters
    ----------
    asked : DataFrame
        The file of answers, as text.
    answers_path, current_path : Path
        What messages call the file of answers and the file of the rows.
    current : DataFrame
        Cells of all rows as they are now, perhaps with other columns.
    rows : ndarray of int
        The row that each line of ``asked`` names.
    are_numbered : bool
        Whether rows are known by their numbers alone. Then no row may have become
        another one, which most of its cells show. Otherwise at most half of the rows
        may have changed: more of them are those of another file.
    """
    columns = [name for name in asked.columns if _is_comparable(current, name)]
    if not columns:
        return
    pandas = require_for_tables("pandas")
    texts = shown_cells(current[columns], rows)
    now = pandas.DataFrame(texts, columns=columns, index=asked.index)

    # A spreadsheet may have rewritten 0.5 as 0,5, or rounded it: what can be read as a
    # number is compared as one.
    asked_numbers = _to_numbers(asked[columns].replace(",", ".", regex=True))
    is_same_number = np.isclose(
        _to_numbers(now), asked_numbers, rtol=_SPREADSHEET_PRECISION
    )
    is_same = (is_same_number | (now == asked[columns])).to_numpy()
    is_changed = ~is_same.all(axis=1)
    is_other_row = 2 * is_same.sum(axis=1) < len(columns)
    has_other_row = are_numbered and is_other_row.any()
    n_changed = int(is_changed.sum())
    if has_other_row or 2 * n_changed > len(rows):
        look = "looks" if n_changed == 1 else "look"
        raise ValueError(
            f"{answers_path} does not match {current_path}: {n_changed} of "
            f"{len(rows)} rows {look} different. Restore the file that they were taken "
            f"from. If you corrected its cells, correct them in {answers_path}, too. "
            "If rows were added, removed or sorted, name another file of rows to "
            "label, which `iclda ask` creates."
        )


def _is_comparable(frame: Any, name: str) -> bool:
    """Return whether a column exists and holds text or numbers.

    Others, such as dates and truth values, may look different after a spreadsheet.
    """
    return name in frame and frame[name].dtype.kind in "Oiuf"


def _without_midnights(whole_column: Any, cells: Any) -> Any:
    """Return cells as dates if their whole column holds dates without a time of day."""
    if whole_column.dtype.kind != "M":
        return cells
    days = whole_column.dropna()
    has_times = (days != days.dt.normalize()).any()
    return cells if has_times else cells.dt.date


def _to_numbers(frame: Any) -> Any:
    """Return the numbers in a frame of text, NaN for other text."""
    pandas = require_for_tables("pandas")
    return frame.apply(pandas.to_numeric, errors="coerce")
