"""Tables with their labels, read from one file or two."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import check_ids, check_leaks
from .._core.types import AnyArray
from .._messages import ColumnError, Hint, ParameterError, Text, plural, quoted_list
from .columns import number_in, unusable_columns
from .encoders import EMPTY_WORDS, require_for_tables, texts_of
from .table_files import CsvReader, ParquetReader, TableReader, open_table

_MOST_NAMES = 12
_SURELY_CLASSES = 50
_WORDS_FOR_NOTHING = {word.casefold() for word in EMPTY_WORDS} | {
    *("none", "-", "--", "missing", "unknown", "unlabeled", "unlabelled")
}
_WHOLE = re.compile(r"[+-]?\d+")
_NAMELESS = re.compile(r"\(column \d+\)|__index_level_\d+__")
_MAYBE = " if it is no measurement."
# By kind of NumPy dtype: what a column holds, in words, and the dtype of such a column with gaps.
_HELD = {"b": "true and false", "O": "text", "M": "dates", "m": "durations"}
_WITH_GAPS = {"b": "boolean", "i": "float64", "u": "float64"}


@dataclass(frozen=True)
class Source:
    """A file that rows came from."""

    path: str
    sha256: str
    n_rows: int


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one file or two, with their labels.

    Attributes
    ----------
    features : DataFrame
        All columns but the target and those dropped, in the order of the file.
    labels : ndarray of object
        Class names as text, None where a row is unlabeled.
    target : str
        Name of the target column.
    sources : tuple of Source
        The files.
    notes : tuple of str
        What was done to the columns that a person should know.
    dropped : tuple of str
        Columns that were left out on request.
    warnings : tuple of str
        What may spoil a fit: columns that give the class away, marks of unknown classes.
    """

    features: Any
    labels: AnyArray
    target: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def is_labeled(self) -> AnyArray:
        """Which rows have a class."""
        return np.array([label is not None for label in self.labels], dtype=bool)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, sorted."""
        return tuple(sorted({label for label in self.labels if label is not None}))

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the file; of two files, of their two checksums."""
        if len(self.sources) == 1:
            return self.sources[0].sha256
        return hashlib.sha256("".join(s.sha256 for s in self.sources).encode()).hexdigest()


def read_table(
    path: str | Path,
    *,
    target: str,
    unlabeled: str | None = None,
    unlabeled_file: str | Path | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    drop_unusable: bool = False,
) -> Table:
    """Read a CSV or Parquet file of labeled and unlabeled rows.

    Labels are text. Numbers among them are written the short way if all are numbers: 1, 1.0 and
    "1" are one class, "1". Blanks around a label do not count. A row is unlabeled where its target
    is empty, or ``unlabeled``. Words such as NA and ? are empty cells in the other columns and
    classes in this one, with a note that says so.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also .gz) or a .parquet file; "-" is the standard input.
    target : str
        Name of the column that holds the classes.
    unlabeled : str, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        Another file with the same columns, all of whose rows count as unlabeled.
    drop : sequence of str, default=()
        Columns to leave out. "a,b" names both, unless a column is called so.
    keep : sequence of str, default=None
        Columns to use besides the target, and no others; None uses all.
    drop_unusable : bool, default=False
        Whether columns that nothing can be learned from, such as names or remarks, are left out
        with a note; they are an error of ``preprocessing`` otherwise.

    Returns
    -------
    table : Table
        Features, labels, and where they came from.
    """
    return read_opened(
        open_table(Path(path)),
        target,
        unlabeled,
        unlabeled_file,
        drop=drop,
        keep=keep,
        drop_unusable=drop_unusable,
    )


def read_opened(
    file: CsvReader | ParquetReader,
    target: str,
    unlabeled: str | None = None,
    unlabeled_file: str | Path | None = None,
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    drop_unusable: bool = False,
) -> Table:
    """``read_table`` of a file that was opened."""
    _check_text(target=target, unlabeled="" if unlabeled is None else unlabeled)
    _check_names(drop=drop, keep=() if keep is None else keep)
    _require_columns(file, [target])
    dropped = _left_out(file, target, drop, keep)
    rows = file.read(as_text=[target])
    if not rows.num_rows:
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")
    labels = _labels_of(rows[target], file.path, target, unlabeled)
    features = to_pandas_frame(rows.drop_columns([target, *dropped]))
    refuse_infinity(features, file)
    features, notes = _without_row_numbers(features, file)
    sources = [_source(file, features)]
    if unlabeled_file is not None:
        other = open_table(Path(unlabeled_file))
        more = _read_unlabeled(other, features, file.path)
        features = _stack(features, more, (file.path, other.path))
        sources.append(_source(other, more))
        labels = np.concatenate([labels, np.full(len(more), None)])
    features, more_notes = _without_empty_columns(features, file.path)
    notes += more_notes
    if drop_unusable:
        features, more_notes = _without_unusable_columns(features, file.path)
        notes += more_notes
        dropped = [name for name in file.columns if name not in {target, *features.columns}]
    named = np.array([None if x is None or may_mean_nothing(x) else x for x in labels])
    notes += [remark.text for remark in check_ids(features)]
    leaks = [remark.text for remark in check_leaks(features, named)]
    doubts = [*_notes_on_marks(labels, target), *leaks]
    what = tuple(sources), tuple(notes), tuple(dropped), tuple(doubts)
    return Table(features, labels, target, *what)


def _left_out(
    file: TableReader, target: str, drop: Sequence[str], keep: Sequence[str] | None
) -> list[str]:
    """Columns to leave out, in the order of the file."""
    dropped, kept = _column_names(file, drop), _column_names(file, () if keep is None else keep)
    if target in dropped:
        raise ValueError(f"Column {target!r} is the target and cannot be dropped.")
    if both := [name for name in kept if name in dropped]:
        raise ValueError(
            Text(f"Column {both[0]!r} is named by both ", Hint("drop"), " and ", Hint("keep"), ".")
        )
    if keep is not None:
        dropped = [name for name in file.columns if name not in {target, *kept}]
    return [name for name in file.columns if name in dropped]


def _column_names(file: TableReader, given: Sequence[str]) -> list[str]:
    """Names of columns; what is no column may be several names separated by commas."""
    names: list[str] = []
    for text in given:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        names += [text] if text in file.columns or not parts else parts
    _require_columns(file, names)
    return names


def _check_text(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            text = f" must be text, as cells are read, got {value!r}: pass {str(value)!r}."
            raise ParameterError(Hint(name), text, parameter=name, value=value)


def _check_names(**given: Any) -> None:
    for name, value in given.items():
        is_list = hasattr(value, "__len__") and not isinstance(value, (str, bytes))
        if not is_list or not all(isinstance(each, str) for each in value):
            text = f" must be a list of names of columns, got {value!r}."
            raise ParameterError(Hint(name), text, parameter=name, value=value)


def _source(file: TableReader, features: Any) -> Source:
    return Source(str(file.path), file.sha256(), len(features))


def _read_unlabeled(file: Any, features: Any, first: Path) -> Any:
    """The columns of the first file from a second one."""
    path = file.path
    lacking = [name for name in features.columns if name not in file.columns]
    if lacking:
        raise ColumnError(
            f"{path} lacks {quoted_list(lacking, _MOST_NAMES)} of {first}: the unlabeled rows need "
            "the same columns, in any order. Leave a column out of both by ",
            Hint("drop"),
            ".",
            column=lacking[0],
        )
    frame = to_pandas_frame(file.read(as_text=[]).select(list(features.columns)))
    if frame.empty:
        raise ValueError(f"{path} holds no rows below the names of its columns.")
    refuse_infinity(frame, file)
    return frame


def _require_columns(file: TableReader, names: Sequence[str]) -> None:
    for name in names:
        if name not in file.columns:
            close = closest_name(name, file.columns)
            hint = f" Did you mean {close!r}?" if close else ""
            raise ColumnError(
                f"{file.path} has no column {name!r}.{hint} Its columns are "
                f"{quoted_list(file.columns, _MOST_NAMES)}.",
                column=name,
            )


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """A name that differs in case or by a few letters, if there is one."""
    alike = [each for each in known if each.strip().casefold() == name.strip().casefold()]
    return next(iter(alike or difflib.get_close_matches(name, known, n=1)), None)


def to_pandas_frame(rows: Any) -> Any:
    """A pandas frame of an Arrow table: numbers, booleans, dates, or text with gaps."""
    pandas = require_for_tables("pandas")
    columns = {name: _series(rows[name]) for name in rows.column_names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(rows.num_rows))


def _series(column: Any) -> Any:
    arrow, pandas = require_for_tables("pyarrow"), require_for_tables("pandas")
    types, kind = arrow.types, column.type
    if _is_text(kind) or types.is_dictionary(kind):
        values = column.dictionary_encode().to_pandas().array  # each value becomes text once
        return pandas.Series(texts_of([*values.categories, None])[values.codes], dtype=object)
    if types.is_boolean(kind) and column.null_count:
        return pandas.Series(column.to_pylist(), dtype="boolean")
    if types.is_decimal(kind) or types.is_null(kind) or types.is_float16(kind):
        column = column.cast(arrow.float64())
    return column.to_pandas(date_as_object=False)


def _is_text(kind: Any) -> bool:
    types = require_for_tables("pyarrow").types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def refuse_infinity(features: Any, file: TableReader, n_before: int = 0) -> None:
    """Refuse infinity with file, row and column; ``n_before`` rows came before these."""
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


def _stack(first: Any, second: Any, paths: Sequence[Path]) -> Any:
    """Rows of two frames with the same columns; a part without values takes the other's dtype."""
    pandas = require_for_tables("pandas")
    columns = {}
    for name in first.columns:
        parts = [first[name], second[name]]
        known = [part for part in parts if part.notna().any()]
        held = [_HELD.get(part.dtype.kind, "numbers") for part in known]
        if len(set(held)) > 1:
            raise ColumnError(
                f"Column {name!r} holds {held[0]} in {paths[0]} and {held[1]} in {paths[1]}, for "
                f"example {second[name].dropna().iloc[0]!r}. Mend it, or leave it out by ",
                Hint("drop", [name]),
                ".",
                column=name,
            )
        if len(known) < 2:
            dtype = _WITH_GAPS.get(known[0].dtype.kind, known[0].dtype) if known else object
            gaps = [pandas.Series([None] * len(part), dtype=dtype) for part in parts]
            parts = [p if p.notna().any() else gap for p, gap in zip(parts, gaps, strict=True)]
        columns[name] = pandas.concat(parts, ignore_index=True)
    return pandas.DataFrame(columns)


def _without_row_numbers(features: Any, file: TableReader) -> tuple[Any, list[str]]:
    """Leave out an index written by accident; note numbers that may be no measurements."""
    notes: list[str] = []
    nameless = []
    for name, series in features.items():
        if series.dtype.kind not in "iuf":
            continue
        numbers = series.to_numpy() if series.dtype.kind in "iu" else np.empty(0)
        numbers_rows = len(numbers) > 2 and (np.diff(numbers.astype(np.int64)) == 1).all()
        if numbers_rows and _NAMELESS.fullmatch(name):
            notes.append(f"Column {name!r} has no name and numbers the rows: it was left out.")
            nameless.append(name)
            continue
        remarks = [
            (numbers_rows, "numbers the rows, which says nothing about new ones: ", _MAYBE),
            (name in file.index and not numbers_rows, "was the index of a pandas frame: ", _MAYBE),
            (
                _is_too_long(series),
                "holds numbers of more than 15 digits, which are all the same to that precision: "
                "subtract what they have in common, or ",
                ".",
            ),
            (
                name in file.zero_padded,
                "holds digits that begin with 0 and counts as a number: if these are codes, put a "
                "letter before them to make it a category, or ",
                ".",
            ),
        ]
        notes += [
            Text(f"Column {name!r} {reason}leave it out by ", Hint("drop", [name]), end)
            for applies, reason, end in remarks
            if applies
        ]
    return features.drop(columns=nameless), notes


def _is_too_long(series: Any) -> bool:
    """Whether whole numbers may differ in the file, but not as floats of 53 bits."""
    numbers = series.dropna().to_numpy(dtype=np.float64)
    if numbers.size < 2 or np.ptp(numbers) > 0 or abs(numbers[0]) < 2**53:
        return False
    return bool(series.dtype.kind == "f" or series.nunique() > 1)


def _without_empty_columns(features: Any, path: Path) -> tuple[Any, list[str]]:
    """Leave out columns without values; note these and columns of one text."""
    empty = [name for name in features.columns if features[name].isna().all()]
    if len(empty) == len(features.columns):
        raise ValueError(f"{path} has no column to learn from besides the target.")
    notes = [f"Column {name!r} is empty in all rows: it was left out." for name in empty]
    features = features.drop(columns=empty)
    notes += [
        f"Column {name!r} holds one value in all rows: nothing can be learned from it."
        for name, series in features.items()
        # Classifiers warn of constant numbers; lists and structs are refused later.
        if series.dtype.kind == "O"
        and isinstance(series.dropna().iloc[0], Hashable)
        and series.nunique(dropna=False) == 1
    ]
    return features, notes


def _without_unusable_columns(features: Any, path: Path) -> tuple[Any, list[str]]:
    """Leave out columns that nothing can be learned from, with the reason."""
    unusable = unusable_columns(features)
    if len(unusable) == len(features.columns):
        raise ValueError(f"{path} has no column that can be used besides the target.")
    notes = [
        f"Column {name!r} was left out: it holds {reason.partition(':')[0]}."
        for name, reason in unusable.items()
    ]
    return features.drop(columns=list(unusable)), notes


def _labels_of(column: Any, path: Path, target: str, unlabeled: str | None) -> AnyArray:
    """Class names of an Arrow column; ValueError unless there are two classes."""
    place = f"{path}: column {target!r}"
    types = require_for_tables("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not (is_number or types.is_boolean(kind) or types.is_null(kind) or _is_text(kind)):
        raise ValueError(
            f"{place} holds values of type {column.type}, and the target must hold classes: text, "
            "whole numbers, or true and false."
        )
    cells = column.to_pylist()
    # In a column of numbers NA is a gap. Among classes it may be one: Namibia, North America.
    labels = texts_of(cells, empty=("",))
    named = {label for label in labels if label is not None and not may_mean_nothing(label)}
    if all(number_in(name) is not None for name in named):
        labels = np.array([None if x is None else short_number(x) for x in labels], dtype=object)
    if unlabeled is not None:
        mark = unlabeled.strip()
        is_marker = (labels == mark) | (labels == short_number(mark))
        # The mark may be the empty text, which is no label already.
        if not is_marker.any() and mark not in {str(cell).strip() for cell in cells}:
            raise ValueError(
                f"{path}: no row has the unlabeled value {unlabeled!r} in column {target!r}, which "
                f"holds {_named(labels)}. Leave it out if empty cells mark the unlabeled rows."
            )
        labels[is_marker] = None
    counts = Counter(label for label in labels if label is not None)
    _require_two_classes(counts, len(labels), place, unlabeled)
    _refuse_measurements(counts, place)
    return labels


def short_number(text: str) -> str:
    """A whole number the short way: "1.0" and "1e0" become "1"; any other text stays."""
    number = None if _WHOLE.fullmatch(text) else number_in(text)
    return str(int(number)) if number is not None and number.is_integer() else text


def may_mean_nothing(text: str) -> bool:
    """Whether a label is a word that stands for an unknown one in many tables."""
    return text.casefold() in _WORDS_FOR_NOTHING


def _require_two_classes(
    counts: Counter[str], n_rows: int, place: str, unlabeled: str | None
) -> None:
    if not counts:
        marks = "empty" if unlabeled is None else f"empty or {unlabeled!r}"
        raise ValueError(
            f"{place} labels no row, all {n_rows} cells are {marks}. Label at least one row of "
            "each of 2 classes."
        )
    if len(counts) > 1:
        return
    (name,) = counts
    way_out = "Label rows of another class."
    if unlabeled is not None:
        way_out = (
            f"{unlabeled!r} marks unlabeled rows: leave that out if it is one of your classes."
        )
    if may_mean_nothing(name):
        way_out = f"If {name!r} means that the class is unknown, no row is labeled."
    raise ValueError(
        f"{place} must label rows of at least 2 classes, got 1 class ({name!r}) in "
        f"{plural(counts.total(), 'labeled row')}; {plural(n_rows, 'cell')} in all. {way_out}"
    )


def _refuse_measurements(counts: Counter[str], place: str) -> None:
    """Refuse numbers with fractions, and nearly as many different values as rows."""
    numbers = {name: number_in(name) for name in counts if not may_mean_nothing(name)}
    known = {name: number for name, number in numbers.items() if number is not None}
    if len(known) == len(numbers):
        for name, number in known.items():
            if isinf(number):
                raise ValueError(
                    f"{place} holds infinity ({name}), which is no class: empty these cells if the "
                    "class is unknown, or give it a name."
                )
            if not number.is_integer():
                raise ValueError(
                    f"{place} holds numbers with fractions, for example {name}, and must hold "
                    "classes. Make classes of them first, for example 'low' and 'high'."
                )
    if len(counts) > max(_SURELY_CLASSES, counts.total() / 2):
        raise ValueError(
            f"{place} holds {len(counts)} different values in {counts.total()} labeled rows, for "
            f"example {_named(counts)}: these are no classes. Name the column that holds them."
        )


def _named(labels: Iterable[str | None]) -> str:
    names = sorted({label for label in labels if label is not None})
    return quoted_list(names, 5) if names else "empty cells only"


def _notes_on_marks(labels: AnyArray, target: str) -> list[str]:
    """Notes on classes that mark unlabeled rows in other tables.

    -1 among two classes, or beside empty cells, hardly marks any.
    """
    names = Counter(labels)
    doubtful = sorted(name for name in names if name is not None and may_mean_nothing(name))
    if names["-1"] and None not in names and len(names) > 2:
        doubtful.append("-1")
    return [
        Text(
            f"{name!r} in column {target!r} counts as a class, of {plural(names[name], 'row')}: "
            "pass ",
            Hint("unlabeled", name),
            " if it marks unlabeled rows.",
        )
        for name in doubtful
    ]
