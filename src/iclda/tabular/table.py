"""Tables with their labels, read from one file or two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import check_ids, check_leaks, numbers_rows
from .._core import AnyArray
from .._messages import ColumnError, Hint, plural, quoted_list, say
from .._statistics import LEAST_TESTED
from .encoders import (
    EMPTY_WORDS,
    kinds_and_reasons,
    number_in,
    require_for_tables,
    texts_of,
)
from .table_files import (
    CHOSEN,
    HOW,
    ROW,
    Answers,
    DataReader,
    FeatureFile,
    TableReader,
    are_answers,
    open_data,
    open_table,
)

_MOST_NAMES = 12  # columns that an error lists
_SURELY_CLASSES = 50  # so many distinct labels are classes, however few the rows
_ROWS_OF_CLASS = (
    20  # and so are labels of which there is one for so many rows of a file
)
_MOST_NUMBERS = 5_000_000  # of an array file, in rows of a frame
_WORDS_FOR_NOTHING = {word.casefold() for word in EMPTY_WORDS} | {
    *("none", "-", "--", "missing", "unknown", "unlabeled", "unlabelled")
}
_WHICH_TARGET = (
    "{@target} must name the column of {path} that holds the classes, out of {names}. {@labels} "
    "names another file of them, and {@id} a column that identifies the rows."
)
_NO_LABELS = (
    "{path} holds features and no classes: name a file that holds them by {@labels}, with a row "
    "for each row of features, or with a column of ids that {@id} names."
)
_OTHER_LENGTH = (
    "{labels} has {n:,} rows, and {path} {n_rows:,}: a label belongs to the row of the features at "
    "the same place. Write a row for each, with an empty cell where the class is unknown, or name "
    "a column of ids by {@id}."
)
_WHOLE = re.compile(r"[+-]?\d+")
_NAMELESS = re.compile(r"\(column \d+\)|__index_level_\d+__")


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read. The fields are parameters of ``read_table``."""

    target: str | None
    unlabeled: str | float | None = None
    unlabeled_file: str | Path | None = None
    drop: str | Sequence[str] | None = ()
    keep: str | Sequence[str] | None = None
    drop_unusable: bool = False
    labels: str | Path | None = None
    id: str | None = None

    @property
    def ids(self) -> list[str]:
        """The column of ids, if there is one."""
        return [] if self.id is None else [self.id]

    def to_json(self) -> dict[str, Any]:
        """Return the options that a stored comparison repeats."""
        return {
            name: str(v) if isinstance(v, Path) else v for name, v in vars(self).items()
        }


@dataclass(frozen=True)
class Source:
    """A file that rows came from."""

    path: str
    sha256: str
    n_rows: int


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of all rows of a file, and where they come from."""

    target: str
    cells: Any  # Arrow column
    sources: tuple[Source, ...] = ()  # another file that holds them
    is_chosen: AnyArray | None = None  # as that of Table


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one file or two, with their labels.

    Attributes
    ----------
    features : DataFrame or FeatureFile
        All columns but the target and those dropped, in the order of the file; the opened file
        if it is an array file.
    labels : ndarray of object
        Class names as text, None where a row is unlabeled.
    target : str
        Name of the target column.
    sources : tuple of Source
        The files.
    notes : tuple of str
        What was done to the columns that a person should know.
    dropped : tuple of str
        Columns that were left out.
    warnings : tuple of str
        What may spoil a fit: columns that give the class away, marks of unknown classes.
    is_chosen : ndarray of bool or None
        Which rows were chosen to be labeled; the others with a label were drawn at random. None:
        nothing is known of that, and labels are taken for a random sample.
    """

    features: Any
    labels: AnyArray
    target: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_chosen: AnyArray | None = None

    @property
    def is_random(self) -> AnyArray:
        """Which rows have a class and were drawn at random."""
        return (
            self.is_labeled
            if self.is_chosen is None
            else self.is_labeled & ~self.is_chosen
        )

    @property
    def n_chosen(self) -> int:
        """Number of labels of rows that were chosen."""
        return int((self.is_labeled & ~self.is_random).sum())

    @cached_property
    def is_labeled(self) -> AnyArray:
        """Which rows have a class."""
        return np.array([label is not None for label in self.labels], dtype=bool)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, sorted."""
        return tuple(sorted({label for label in self.labels if label is not None}))

    def framed(self, n_most: int | None = None) -> Table:
        """Return the table with features as a frame, whose index has the positions of the rows.

        Of more than ``n_most`` unlabeled rows it has a sample; None: of those of an array file
        that would make a large frame.
        """
        is_array = isinstance(self.features, FeatureFile)
        unlabeled = np.flatnonzero(~self.is_labeled)
        if n_most is None and is_array:
            n_most = max(1_000, _MOST_NUMBERS // self.features.rows.n_features)
        is_sampled = n_most is not None and len(unlabeled) > n_most
        if not is_array and not is_sampled:
            return self
        is_taken, notes = np.ones(len(self.labels), dtype=bool), self.notes
        if is_sampled:
            is_taken[np.random.default_rng(0).permutation(unlabeled)[n_most:]] = False
            text = f"{n_most:,} of the {len(unlabeled):,} unlabeled rows are used, drawn at random."
            notes = (*notes, text)
        return replace(
            self,
            features=self.features.take(is_taken)
            if is_array
            else self.features[is_taken],
            labels=self.labels[is_taken],
            notes=notes,
            is_chosen=None if self.is_chosen is None else self.is_chosen[is_taken],
        )


def read_table(
    path: str | Path,
    *,
    target: str | None = None,
    labels: str | Path | None = None,
    id: str | None = None,
    unlabeled: str | float | None = None,
    unlabeled_file: str | Path | None = None,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] | None = None,
    drop_unusable: bool = False,
) -> Table:
    """Read a file of labeled and unlabeled rows: CSV, Parquet, or an array of features.

    Labels are text. If all labels are numbers, they are written in the shortest form: 1, 1.0 and
    "1" are one class, "1". Blanks around a label are removed. A row is unlabeled if its target is
    empty or equals ``unlabeled``. Words such as NA and ? are empty cells in the other columns and
    classes in the target, with a warning that says so.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also .gz) or a .parquet file; or a
        .npy or .npz file, or a folder of .npy files, in the order of their names. Lists of numbers
        in a column of a Parquet file are one feature a number.
    target : str, default=None
        Name of the column that holds the classes; None for the only one of ``labels``.
    labels : str or Path, default=None
        A CSV or Parquet file that holds the target: one row for each row, in the same order, or
        joined by ``id``. None: it is in the file itself.
    id : str, default=None
        Name of a column of both files that identifies the rows, in any order; rows without one in
        ``labels`` are unlabeled. Rows of an array file are numbered from 0, unless it is an .npz
        file with an array of this name.
    unlabeled : str or number, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        Another file with the same columns, all of whose rows count as unlabeled.
    drop : str or sequence of str, default=()
        Columns to leave out. "a,b" names both, unless a column is called so.
    keep : str or sequence of str, default=None
        Columns to use besides the target, and no others; None uses all.
    drop_unusable : bool, default=False
        Whether columns that nothing can be learned from, such as names or remarks, are left out
        with a note; they are an error of ``preprocessing`` otherwise.

    Returns
    -------
    table : Table
        Features, labels, and where they came from.
    """
    options = ReadOptions(
        target, unlabeled, unlabeled_file, drop, keep, drop_unusable, labels, id
    )
    return read_file(Path(path), options)


def read_file(path: Path, options: ReadOptions) -> Table:
    """Read a table or an array file."""
    return read_opened(open_data(path, options.ids), options)


def read_opened(
    file: DataReader, options: ReadOptions, classes: Classes | None = None
) -> Table:
    """Read an opened file.

    ``classes`` may have any number of classes, and the file no column to learn from; None: they
    are read, and there must be two.
    """
    for name in (
        ("drop", "keep", "unlabeled_file") if isinstance(file, FeatureFile) else ()
    ):
        if getattr(options, name):
            sentence = "{given} is for tables, and {path} is an array: save the array of features "
            sentence += (
                "that you mean, or put files of the same features into one folder."
            )
            raise ValueError(say(sentence, given=Hint(name), path=file.path))
    known = classes or read_classes(file, options)
    if not len(known.cells):
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")
    place, least = options.labels or file.path, 2 if classes is None else 0
    labels = labels_of(known.cells, place, known.target, options.unlabeled, least)
    table = Table(
        file,
        labels,
        known.target,
        (Source(str(file.path), file.sha256(), len(labels)), *known.sources),
        warnings=tuple(_warnings_on_marks(labels, known.target)),
        is_chosen=known.is_chosen,
    )
    if isinstance(file, FeatureFile):
        return table
    table = _with_columns(table, file, options)
    if least:
        _refuse_no_columns(table.features.columns, file)
    return table


def _with_columns(table: Table, file: TableReader, options: ReadOptions) -> Table:
    """Add the features of a table file and its further rows."""
    own = {table.target, *options.ids}
    unused = {*own, *_columns_to_drop(file, options)}
    used = [name for name in file.columns if name not in unused]
    _refuse_no_columns(used, file)
    features = to_pandas_frame(file.read(used))
    left_out = {
        name: "has no name and numbers the rows"
        for name in features.columns
        if _NAMELESS.fullmatch(name) and numbers_rows(features[name])
    }
    table = replace(table, features=features.drop(columns=list(left_out)))
    if (
        len(table.sources) > 1
        and table.target in file.columns
        and table.is_chosen is None
    ):
        left_out[table.target] = (
            f"holds the target, which is taken from {options.labels}"
        )
    if options.unlabeled_file is not None:
        table = _stacked(table, Path(options.unlabeled_file))
    features = table.features
    left_out |= dict.fromkeys(
        features.columns[features.isna().all()], "is empty in all rows"
    )
    if options.drop_unusable:
        reasons = kinds_and_reasons(features.drop(columns=left_out, errors="ignore"))[1]
        left_out |= {
            name: f"holds {why.partition(':')[0]}" for name, why in reasons.items()
        }
    features = features.drop(columns=left_out, errors="ignore")
    dropped = [name for name in file.columns if name not in {*own, *features.columns}]
    named = np.array(
        [None if x is None or may_mean_nothing(x) else x for x in table.labels]
    )
    notes = [
        f"Column {name!r} {why}: it was left out." for name, why in left_out.items()
    ]
    return replace(
        table,
        features=features,
        notes=(*notes, *(remark.text for remark in check_ids(features))),
        dropped=tuple(dropped),
        warnings=(
            *table.warnings,
            *(remark.text for remark in check_leaks(features, named)),
        ),
    )


def _refuse_no_columns(names: Sequence[str], file: TableReader) -> None:
    if not len(names):
        raise ValueError(f"{file.path} has no column to learn from besides the target.")


def _columns_to_drop(file: TableReader, options: ReadOptions) -> list[str]:
    """Columns to leave out."""
    dropped, kept = (
        _column_names(file, names or ()) for names in (options.drop, options.keep)
    )
    if options.target in dropped:
        raise ValueError(
            f"Column {options.target!r} is the target and cannot be dropped."
        )
    if options.keep is not None:
        used = {options.target, options.id, *kept}
        dropped += [name for name in file.columns if name not in used]
    return dropped


def _column_names(file: TableReader, given: str | Sequence[str]) -> list[str]:
    """Names of columns; a text that is no column may be several names separated by commas."""
    names: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        names += [text] if text in file.columns or not parts else parts
    names = [column for name in names for column in file.lists.get(name, [name])]
    require_columns(file, names)
    return names


def require_columns(file: DataReader, names: Iterable[str], purpose: str = "") -> None:
    """Raise a ColumnError unless a file has columns of these names; it suggests similar ones."""
    if lacking := [name for name in names if name not in file.columns]:
        unused = [name for name in file.columns if name not in names]
        known = {name.strip().casefold(): name for name in unused}
        close = [
            (n, get_close_matches(str(n).strip().casefold(), known, n=1))
            for n in lacking
        ]
        pairs = [f"{known[found[0]]!r} for {name!r}" for name, found in close if found]
        hint = f" Did you mean {', '.join(pairs[:3])}?" if pairs else ""
        text = say(
            "{path} has no column {lacking}{purpose}.{hint} Its columns are {columns}.",
            path=file.path,
            lacking=quoted_list(lacking, _MOST_NAMES),
            purpose=purpose,
            hint=hint,
            columns=quoted_list(file.columns, _MOST_NAMES),
        )
        raise ColumnError(text, column=lacking[0])


def to_pandas_frame(rows: Any) -> Any:
    """A pandas frame of an Arrow table: numbers, booleans, dates, or text with gaps."""
    pandas = require_for_tables("pandas")
    columns = {name: _series(name, rows[name]) for name in rows.column_names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(rows.num_rows))


def _series(name: str, column: Any) -> Any:
    arrow, pandas = require_for_tables("pyarrow"), require_for_tables("pandas")
    types, kind = arrow.types, column.type
    texts = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_dictionary,
    )
    if any(is_kind(kind) for is_kind in texts):
        try:
            values = (
                column.dictionary_encode().to_pandas().array
            )  # each value becomes text once
        except arrow.ArrowException:
            message = (
                f"Column {name!r} holds text that is not UTF-8: write the file anew."
            )
            raise ColumnError(message, column=name) from None
        return pandas.Series(
            texts_of([*values.categories, None])[values.codes], dtype=object
        )
    if types.is_boolean(kind) and column.null_count:
        return pandas.Series(column.to_pylist(), dtype="boolean")
    if types.is_decimal(kind) or types.is_null(kind) or types.is_float16(kind):
        column = column.cast(arrow.float64())
    return column.to_pandas(date_as_object=False)


def _stacked(table: Table, path: Path) -> Table:
    """Add the rows of another file, which are unlabeled and must have the same columns."""
    first, other = table.features, open_table(path)
    require_columns(other, list(first.columns), f", which {table.sources[0].path} has")
    second = to_pandas_frame(other.read(list(first.columns)))
    # A column without values takes the kind of the other part.
    parts = [part.dropna(axis=1, how="all") for part in (first, second)]
    for name in parts[0].columns.intersection(parts[1].columns):
        kinds = [
            "f" if part[name].dtype.kind in "iuf" else part[name].dtype.kind
            for part in parts
        ]
        if kinds[0] != kinds[1]:
            raise ColumnError(
                f"Column {name!r} holds other kinds of values in {table.sources[0].path} and "
                f"{path}, for example {second[name].dropna().iloc[0]!r}.",
                column=name,
            )
    stacked = require_for_tables("pandas").concat(parts, ignore_index=True)
    is_chosen = table.is_chosen
    return replace(
        table,
        features=stacked.reindex(columns=first.columns),
        labels=np.concatenate([table.labels, np.full(len(second), None)]),
        sources=(*table.sources, Source(str(path), other.sha256(), len(second))),
        is_chosen=None if is_chosen is None else np.pad(is_chosen, (0, len(second))),
    )


def read_classes(file: DataReader, options: ReadOptions) -> Classes:
    """Read the class of every row.

    If another file holds them that is one of rows that a person labels, rows without an answer
    have the class in the file of the rows, if there is one.
    """
    other = file if options.labels is None else open_table(Path(options.labels))
    target, is_answered = (
        options.target,
        other is not file and are_answers(other.columns),
    )
    if is_answered and options.id is None:
        sentence = "{path} is a file of rows to label: name its column of ids, such as {@id=row}."
        raise ValueError(say(sentence, path=other.path))
    if target is None and other is not file:
        others = [name for name in other.columns if name != options.id]
        if is_answered:  # the columns that help a person to decide are last
            others = others[: others.index(HOW)]
        target = others[0] if len(others) == 1 else None
    if target is None or (
        isinstance(other, FeatureFile) and target not in other.columns
    ):
        has_names = not isinstance(other, FeatureFile) or len(other.columns) > len(
            other.features
        )
        names = quoted_list(other.columns, _MOST_NAMES)
        sentence = _WHICH_TARGET if has_names else _NO_LABELS
        raise ValueError(say(sentence, path=other.path, names=names))
    require_columns(
        other, [target], say(", which should hold the classes: name it by {@target}")
    )
    for each in (other,) if is_answered else (other, file):
        require_columns(each, options.ids, say(", which {@id} names"))
    cells = other.column(target)
    if other is file:
        return Classes(target, cells)
    sources, n_rows = (
        (Source(str(other.path), other.sha256(), len(cells)),),
        file.n_rows,
    )
    if options.id is None:
        if len(cells) != n_rows:
            values = {
                "labels": other.path,
                "n": len(cells),
                "path": file.path,
                "n_rows": n_rows,
            }
            raise ValueError(say(_OTHER_LENGTH, **values))
        return Classes(target, cells, sources)
    return _joined(Classes(target, cells, sources), file, other, options.id)


def _joined(known: Classes, file: DataReader, other: DataReader, id: str) -> Classes:
    """Classes of another file in the order of the rows of this one, null where there is none."""
    if are_answers(other.columns):
        return _answered(known, file, Answers.of(other, id, known.target))
    arrow, order = require_for_tables("pyarrow"), np.full(file.n_rows, -1)
    rows = RowIds(file, id).rows_of(row_ids(other, id), other.path)
    order[rows] = np.arange(len(rows))
    return replace(known, cells=known.cells.take(arrow.array(order, mask=order < 0)))


def _answered(known: Classes, file: DataReader, answers: Answers) -> Classes:
    """Classes that a person gave, and else those of the file itself."""
    ids, target = RowIds(file, answers.id), known.target
    is_chosen = np.zeros(len(ids), dtype=bool)
    is_chosen[ids.rows_of(answers.ids(), answers.path)] = answers.frame[HOW] == CHOSEN
    own = (
        texts_of(file.column(target).to_pylist(), ("",))
        if target in file.columns
        else ()
    )
    labels = {
        id: text for id, text in zip(ids, own, strict=False) if text
    } | answers.labels
    answers.check_spelling(labels.values(), file)
    cells = require_for_tables("pyarrow").array(
        [labels.get(id) for id in ids], "string"
    )
    return replace(known, cells=cells, is_chosen=is_chosen)


def why_withheld(table: Table) -> str:
    """Return why labels drawn at random do not show the error; empty if they do."""
    n_random, n_labels = int(table.is_random.sum()), int(table.is_labeled.sum())
    if n_random >= LEAST_TESTED:
        return ""
    return (
        f"it is measured by at least {LEAST_TESTED} labels of rows drawn at random, and there are "
        f"{n_random} among {plural(n_labels, 'label')}. `iclda ask` draws such "
        "rows by its option test"
    )


def row_ids(file: DataReader, id: str) -> AnyArray:
    """Ids of the rows as text; numbers from 0 if the file has no column ``row``."""
    if id == ROW and ROW not in file.columns:
        return texts_of(range(file.n_rows))
    require_columns(file, [id], say(", which {@id} names"))
    return texts_of(file.column(id).to_pylist())


class RowIds(dict[str, int]):
    """Position of the row of every id of a file; ValueError if ids do not identify rows."""

    def __init__(self, file: DataReader, id: str) -> None:
        self.path, self.id = file.path, id
        super().__init__(_positions(row_ids(file, id), file.path, id))

    def rows_of(self, ids: Iterable[str], path: Path) -> AnyArray:
        """Positions of the rows with the ids of another file, each of which must be known."""
        others = _positions(ids, path, self.id)
        if unknown := [text for text in others if text not in self]:
            raise ValueError(
                f"{path}: no row of {self.path} has the {self.id!r} {quoted_list(unknown, 3)}. Its "
                f"{len(self):,} rows have ids such as {quoted_list(list(self), 3)}: remove these "
                "labels, or name another column of ids."
            )
        return np.array([self[text] for text in others], dtype=int)


def _positions(ids: Iterable[str | None], path: Path, id: str) -> dict[str, int]:
    """Position of every id; ValueError for one that occurs twice or is empty."""
    counts = Counter(ids)
    for text, count in counts.most_common(1):
        if count > 1 or None in counts:
            found = f"{text!r} occurs {count} times" if count > 1 else "a cell is empty"
            raise ValueError(
                f"{path}: column {id!r} must identify the rows, and {found}. Remove the others, or "
                "name another column of ids."
            )
    return {text: k for k, text in enumerate(counts) if text is not None}


def labels_of(
    column: Any,
    path: Path | str,
    target: str,
    unlabeled: str | float | None,
    least: int,
) -> AnyArray:
    """Class names of an Arrow column; ValueError for fewer than ``least`` classes."""
    place = f"{path}: column {target!r}"
    if require_for_tables("pyarrow").types.is_nested(column.type):
        raise ValueError(
            f"{place} holds {column.type} cells, and must hold classes: write text."
        )
    # In a column of numbers NA is a gap. Among classes it may be one: Namibia, North America.
    labels = texts_of(column.to_pylist(), empty=("",))
    named = {
        label for label in labels if label is not None and not may_mean_nothing(label)
    }
    if all(number_in(name) is not None for name in named):
        labels = np.array(
            [None if x is None else short_number(x) for x in labels], dtype=object
        )
    if unlabeled is not None:
        mark = str(unlabeled).strip()
        is_marker = (labels == mark) | (labels == short_number(mark))
        if mark and not is_marker.any():
            raise ValueError(
                f"{path}: no row has the unlabeled value {mark!r} in column {target!r}, "
                f"which holds {_named(labels)}. Leave it out if empty cells mark the unlabeled "
                "rows."
            )
        labels[is_marker] = None
    counts = Counter(label for label in labels if label is not None)
    _refuse_other_than_classes(counts, len(labels), place, least)
    return labels


def short_number(text: str) -> str:
    """Write a whole number the short way: "1.0" and "1e0" become "1"; any other text stays."""
    number = None if _WHOLE.fullmatch(text) else number_in(text)
    return str(int(number)) if number is not None and number.is_integer() else text


def may_mean_nothing(text: str) -> bool:
    """Whether a label is a word that stands for an unknown one in many tables."""
    return text.casefold() in _WORDS_FOR_NOTHING


def _refuse_other_than_classes(
    counts: Counter[str], n_rows: int, place: str, least: int
) -> None:
    """Refuse fewer than ``least`` classes, numbers with fractions, and as many values as rows."""
    rows = plural(counts.total(), "labeled row")
    if len(counts) < least:
        raise ValueError(
            f"{place} must label rows of at least 2 classes, got {_named(counts)} ({rows}). Label "
            "rows of each class, for example those that `iclda ask` chooses; empty cells and the "
            "unlabeled value are no labels."
        )
    numbers = {name: number_in(name) for name in counts if not may_mean_nothing(name)}
    fractions = [
        n for n, number in numbers.items() if number is not None and number % 1 != 0
    ]
    if fractions and None not in numbers.values():
        raise ValueError(
            f"{place} holds numbers with fractions or infinity, for example {fractions[0]}, and "
            "must hold classes. Make classes of them first, for example 'low' and 'high'."
        )
    if len(counts) > max(_SURELY_CLASSES, counts.total() / 2, n_rows / _ROWS_OF_CLASS):
        raise ValueError(
            f"{place} holds {len(counts)} different values in {rows}, for example "
            f"{_named(counts)}: these are no classes. Name the column that holds them."
        )


def _named(labels: Iterable[str | None]) -> str:
    names = sorted({label for label in labels if label is not None})
    return quoted_list(names, 5) if names else "empty cells only"


def _warnings_on_marks(labels: AnyArray, target: str) -> list[str]:
    """Warnings of classes that mark unlabeled rows in other tables.

    -1 among two classes, or beside empty cells, hardly marks any.
    """
    counts = Counter(labels)
    doubtful = sorted(
        name for name in counts if name is not None and may_mean_nothing(name)
    )
    if counts["-1"] and None not in counts and len(counts) > 2:
        doubtful.append("-1")
    sentence = (
        "{mark!r} in {target!r} is a class: pass {way_out} if it marks unlabeled rows."
    )
    return [
        say(sentence, mark=mark, target=target, way_out=Hint("unlabeled", mark))
        for mark in doubtful
    ]
