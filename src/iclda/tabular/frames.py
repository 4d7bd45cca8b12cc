"""Arrow columns as a pandas frame whose columns are numbers, booleans or text with gaps."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._messages import ColumnError, Hint, Text
from .cells import texts_of
from .files import TableFile
from .requirements import require

_NAMELESS = re.compile(r"\(column \d+\)|__index_level_\d+__")


def frame_of(rows: Any) -> Any:
    """A frame of an Arrow table, in its order."""
    pandas = require("pandas")
    columns = {name: _series(rows.column(name)) for name in rows.schema.names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(rows.num_rows))


def _series(column: Any) -> Any:
    arrow, pandas = require("pyarrow"), require("pandas")
    types, kind = arrow.types, column.type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if is_text or types.is_dictionary(kind):
        return pandas.Series(_texts(column), dtype=object)
    if types.is_boolean(kind) and column.null_count:
        return pandas.Series(column.to_pylist(), dtype="boolean")
    if types.is_decimal(kind) or types.is_null(kind) or types.is_float16(kind):
        column = column.cast(arrow.float64())
    return column.to_pandas(date_as_object=False)


def _texts(column: Any) -> AnyArray:
    """Text of every cell: each value that occurs is turned into text once."""
    parts = [np.empty(0, dtype=object)]
    for chunk in column.chunks if hasattr(column, "chunks") else [column]:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        texts = texts_of([*encoded.dictionary.to_pylist(), None])
        parts.append(texts[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    return np.concatenate(parts)


def refuse_infinity(features: Any, file: TableFile, n_before: int = 0) -> None:
    """ValueError that names file, row and column; so many rows came before these."""
    for name in features.columns:
        if features[name].dtype.kind == "f":
            is_infinite = np.isinf(features[name].to_numpy())
            if is_infinite.any():
                row = n_before + int(np.argmax(is_infinite)) + file.first_row
                raise ColumnError(
                    f"{file.path}, row {row}, column {name!r}: holds infinity or a number too "
                    "large to compute with. Replace it, or empty the cell.",
                    column=name,
                )


def stacked(first: Any, second: Any, first_path: Path, second_path: Path) -> Any:
    """Rows of two frames with the same columns."""
    pandas = require("pandas")
    for name in first.columns:
        kinds = [_rough_kind(frame[name]) for frame in (first, second)]
        if "nothing" not in kinds and kinds[0] != kinds[1]:
            raise ColumnError(
                Text(
                    f"Column {name!r} holds {kinds[0]} in {first_path} and {kinds[1]} in "
                    f"{second_path}, for example {_example(second[name])}. Mend it, or ",
                    *_left_out(name),
                    ".",
                ),
                column=name,
            )
    columns = {name: _joined(first[name], second[name]) for name in first.columns}
    return pandas.DataFrame(columns)


def _left_out(name: str) -> tuple[str, Hint]:
    return "leave it out by ", Hint("drop", [name])


def _rough_kind(series: Any) -> str:
    if series.isna().all():
        return "nothing"
    return {"b": "true and false", "O": "text", "M": "dates", "m": "durations"}.get(
        series.dtype.kind, "numbers"
    )


def _joined(first: Any, second: Any) -> Any:
    pandas = require("pandas")
    # A part without values takes the kind of the other: there is nothing to convert.
    if first.isna().all():
        first = pandas.Series(np.full(len(first), None), dtype=object).astype(_gapped(second))
    elif second.isna().all():
        second = pandas.Series(np.full(len(second), None), dtype=object).astype(_gapped(first))
    return pandas.concat([first, second], ignore_index=True)


def _gapped(series: Any) -> Any:
    """A dtype like that of a series that can hold gaps."""
    return {"b": "boolean", "i": "float64", "u": "float64"}.get(series.dtype.kind, series.dtype)


def _example(series: Any) -> str:
    return repr(series.dropna().iloc[0])


def without_row_numbers(features: Any) -> tuple[Any, list[str]]:
    """A frame without an index written out by accident, and what to say about row numbers."""
    notes: list[str] = []
    nameless = []
    for name in features.columns:
        if not _numbers_rows(features[name]):
            continue
        if _NAMELESS.fullmatch(name):
            notes.append(f"Column {name!r} has no name and numbers the rows: it was left out.")
            nameless.append(name)
        else:
            notes.append(
                Text(
                    f"Column {name!r} numbers the rows, which says nothing about new ones: ",
                    *_left_out(name),
                    " if it is no measurement.",
                )
            )
    return features.drop(columns=nameless), notes


def notes_on_numbers(features: Any, file: TableFile) -> list[str]:
    """What to say about columns that are read as numbers and may be none.

    Columns that number the rows have a note already.
    """
    found: list[str] = []
    for name in features.columns:
        if features[name].dtype.kind not in "iuf":
            continue
        if _is_too_long(features[name]):
            found.append(
                Text(
                    f"Column {name!r} holds numbers of more than 15 digits, which are all the same "
                    "to that precision: subtract what they have in common, or ",
                    *_left_out(name),
                    ".",
                )
            )
        elif name in file.index and not _numbers_rows(features[name]):
            found.append(
                Text(
                    f"Column {name!r} was the index of a pandas frame: ",
                    *_left_out(name),
                    " if it is no measurement.",
                )
            )
        elif name in file.zero_padded:
            found.append(
                Text(
                    f"Column {name!r} holds digits that begin with 0 and counts as a number: if "
                    "these are codes, put a letter before them to make it a category, or ",
                    *_left_out(name),
                    ".",
                )
            )
    return found


def _is_too_long(series: Any) -> bool:
    """Whether whole numbers may differ in the file, but not as floats of 53 bits."""
    numbers = series.dropna().to_numpy(dtype=np.float64)
    if numbers.size < 2 or np.ptp(numbers) > 0 or abs(numbers[0]) < 2**53:
        return False
    return bool(series.dtype.kind == "f" or series.nunique() > 1)


def without_empty_columns(features: Any, path: Path) -> tuple[Any, list[str]]:
    """A frame without columns that hold nothing, and what to say about these and constant ones."""
    empty = [name for name in features.columns if features[name].isna().all()]
    if len(empty) == len(features.columns):
        raise ValueError(f"{path} has no column to learn from besides the target.")
    notes = [f"Column {name!r} is empty in all rows: it was left out." for name in empty]
    features = features.drop(columns=empty)
    notes += [
        f"Column {name!r} holds one value in all rows, and tells nothing."
        for name in features.columns
        # Of numbers that do not vary the classifiers warn themselves.
        if features[name].dtype.kind == "O" and _holds_one_value(features[name])
    ]
    return features, notes


def _holds_one_value(series: Any) -> bool:
    """Whether a column that is not empty is constant; lists and structs are refused later."""
    if not isinstance(series.dropna().iloc[0], Hashable):
        return False
    return bool(series.nunique(dropna=False) == 1)


def _numbers_rows(series: Any) -> bool:
    if series.dtype.kind not in "iu" or len(series) < 3:
        return False
    steps = np.diff(series.to_numpy().astype(np.int64))
    return bool((steps == 1).all())
