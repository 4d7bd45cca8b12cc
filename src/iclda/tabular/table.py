"""Tables with their labels, read from one file or two.

`read_table` opens the file of the rows and, if there is one, the file of their labels.
It finds the column of classes, reads both files, matches labels with rows by their
order or by a column of ids, and leaves out columns that cannot be learned from. The
result is a `Table`: features, labels, and remarks for a person.
"""

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
from .._error_estimate import MIN_TESTED_ROWS
from .._messages import ColumnError, Hint, plural, quoted_list, say
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

# Columns that an error lists.
_MAX_LISTED_COLUMNS = 12
# Up to 50 distinct labels are accepted as classes in any file ...
_CLASSES_IN_ANY_FILE = 50
# ... and more than these if there is at most one for each 20 rows of the file.
_MIN_ROWS_PER_CLASS = 20
# Numbers of an array file, rows times features, that a frame may have.
_MAX_FRAME_ENTRIES = 5_000_000
# Unlabeled rows of an array file that a frame may have in any case.
_MIN_FRAME_ROWS = 1_000
# Labels that stand for an unknown class in many tables.
_WORDS_FOR_NOTHING = {
    *(word.casefold() for word in EMPTY_WORDS),
    *("none", "-", "--", "missing", "unknown", "unlabeled", "unlabelled"),
}
_WHICH_TARGET = (
    "{@target} must name the column of {path} that holds the classes, out of {names}. "
    "{@labels} names another file of them, and {@id} a column that identifies the rows."
)
_NO_LABELS = (
    "{path} holds features and no classes: name a file that holds them by {@labels}, "
    "with a row for each row of features, or with a column of ids that {@id} names."
)
_OTHER_LENGTH = (
    "{labels} has {n:,} rows, and {path} {n_rows:,}: a label belongs to the row of the "
    "features at the same place. Write a row for each, with an empty cell where the "
    "class is unknown, or name a column of ids by {@id}."
)
_FOR_TABLES = (
    "{given} is for tables, and {path} is an array: save the array of features that "
    "you mean, or put files of the same features into one folder."
)
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
# Names that readers and pandas give to columns without a name.
_MADE_UP_NAME = re.compile(r"\(column \d+\)|__index_level_\d+__")


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
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(self).items()
        }


@dataclass(frozen=True)
class Source:
    """A file that rows came from."""

    path: str
    sha256: str
    n_rows: int


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of all rows of a file, and where they come from.

    Attributes
    ----------
    target : str
        Name of their column.
    cells : Arrow array
        A class for each row, null where it is unknown.
    sources : tuple of Source
        The file that holds them, if it is not the file of the rows.
    is_chosen : ndarray of bool or None
        That of `Table`.
    """

    target: str
    cells: Any
    sources: tuple[Source, ...] = ()
    is_chosen: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one file or two, with their labels.

    Attributes
    ----------
    features : DataFrame or FeatureFile
        All columns but the target and those dropped, in the order of the file; the
        opened file if it is an array file.
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
        What may spoil a fit: columns that give the class away, marks of unknown
        classes.
    is_chosen : ndarray of bool or None
        Which rows were chosen to be labeled; the others with a label were drawn at
        random. None: nothing is known of that, and labels are taken for a random
        sample.
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
        if self.is_chosen is None:
            return self.is_labeled
        return self.is_labeled & ~self.is_chosen

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
        """Return the table with features as a frame, indexed by position in the file.

        It has all labeled rows, and a sample of the unlabeled ones if there are more
        than ``n_most``. By default only those of an array file are sampled, if the
        frame would be large.
        """
        is_array = isinstance(self.features, FeatureFile)
        if n_most is None and is_array:
            n_affordable = _MAX_FRAME_ENTRIES // self.features.rows.n_features
            n_most = max(_MIN_FRAME_ROWS, n_affordable)
        unlabeled = np.flatnonzero(~self.is_labeled)
        is_sampled = n_most is not None and len(unlabeled) > n_most
        if not is_array and not is_sampled:
            return self

        is_taken = np.ones(len(self.labels), dtype=bool)
        notes = self.notes
        if is_sampled:
            is_taken[np.random.default_rng(0).permutation(unlabeled)[n_most:]] = False
            note = (
                f"{n_most:,} of the {len(unlabeled):,} unlabeled rows are used, drawn "
                "at random."
            )
            notes = (*notes, note)
        features = self.features
        is_chosen = self.is_chosen
        return replace(
            self,
            features=features.take(is_taken) if is_array else features[is_taken],
            labels=self.labels[is_taken],
            notes=notes,
            is_chosen=None if is_chosen is None else is_chosen[is_taken],
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

    Labels are text. If all labels are numbers, they are written in the shortest form:
    1, 1.0 and "1" are one class, "1". Blanks around a label are removed. A row is
    unlabeled if its target is empty or equals ``unlabeled``. Words such as NA and ? are
    empty cells in the other columns and classes in the target, with a warning that says
    so.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also .gz) or a .parquet file; or a .npy or .npz file,
        or a folder of .npy files, in the order of their names. Lists of numbers in a
        column of a Parquet file are one feature a number.
    target : str, default=None
        Name of the column that holds the classes; None for the only one of ``labels``.
    labels : str or Path, default=None
        A CSV or Parquet file that holds the target: one row for each row, in the same
        order, or joined by ``id``. None: it is in the file itself.
    id : str, default=None
        Name of a column of both files that identifies the rows, in any order; rows
        without one in ``labels`` are unlabeled. Rows of an array file are numbered from
        0, unless it is an .npz file with an array of this name.
    unlabeled : str or number, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        Another file with the same columns, all of whose rows count as unlabeled.
    drop : str or sequence of str, default=()
        Columns to leave out. "a,b" names both, unless a column is called so.
    keep : str or sequence of str, default=None
        Columns to use besides the target, and no others; None uses all.
    drop_unusable : bool, default=False
        Whether columns that nothing can be learned from, such as names or remarks, are
        left out with a note; they are an error of ``preprocessing`` otherwise.

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

    ``classes`` may have any number of classes, and the file no column to learn from.
    None: they are read, and there must be two.
    """
    if isinstance(file, FeatureFile):
        _refuse_table_options(file, options)
    n_classes_needed = 2 if classes is None else 0
    if classes is None:
        labels_file = _open_labels(file, options)
        target = _find_target(file, labels_file, options)
        if not isinstance(file, FeatureFile):
            used = _used_columns(file, target, options)
            file.hold(used, texts=[target, *options.ids])
        classes = _classes_in(file, labels_file, target, options)
    if not len(classes.cells):
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")

    where = options.labels or file.path
    labels = labels_of(
        classes.cells, where, classes.target, options.unlabeled, n_classes_needed
    )
    own_source = Source(str(file.path), file.sha256(), len(labels))
    table = Table(
        file,
        labels,
        classes.target,
        sources=(own_source, *classes.sources),
        warnings=tuple(_warnings_on_marks(labels, classes.target)),
        is_chosen=classes.is_chosen,
    )
    if isinstance(file, FeatureFile):
        return table
    table = _with_columns(table, file, options)
    if n_classes_needed:
        _refuse_no_columns(table.features.columns, file)
    return table


def _refuse_table_options(file: FeatureFile, options: ReadOptions) -> None:
    """Refuse options that name columns or tables, which an array file does not have."""
    for name in ("drop", "keep", "unlabeled_file"):
        if getattr(options, name):
            raise ValueError(say(_FOR_TABLES, given=Hint(name), path=file.path))


def _with_columns(table: Table, file: TableReader, options: ReadOptions) -> Table:
    """Add the features of a table file, and the rows of the file of unlabeled rows."""
    used = _used_columns(file, table.target, options)
    features = to_pandas_frame(file.read(used))

    # Why columns are left out, by their names.
    left_out = {
        name: "has no name and numbers the rows"
        for name in features.columns
        if _MADE_UP_NAME.fullmatch(name) and numbers_rows(features[name])
    }
    table = replace(table, features=features.drop(columns=list(left_out)))
    # The target of the file itself is used where answers of a person leave a row open.
    has_other_target = len(table.sources) > 1 and table.target in file.columns
    if has_other_target and table.is_chosen is None:
        left_out[table.target] = (
            f"holds the target, which is taken from {options.labels}"
        )
    if options.unlabeled_file is not None:
        table = _stacked(table, Path(options.unlabeled_file))
    features = table.features
    is_empty = features.isna().all()
    left_out |= dict.fromkeys(features.columns[is_empty], "is empty in all rows")
    if options.drop_unusable:
        candidates = features.drop(columns=left_out, errors="ignore")
        _, reasons = kinds_and_reasons(candidates)
        for name, reason in reasons.items():
            left_out[name] = f"holds {reason.partition(':')[0]}"
    features = features.drop(columns=left_out, errors="ignore")

    known = {table.target, *options.ids, *features.columns}
    notes = [
        f"Column {name!r} {why}: it was left out." for name, why in left_out.items()
    ]
    notes += [remark.text for remark in check_ids(features)]
    # A column that follows a mark of unknown classes does not give a class away.
    named = [
        None if label is None or may_mean_nothing(label) else label
        for label in table.labels
    ]
    leaks = [remark.text for remark in check_leaks(features, np.array(named))]
    return replace(
        table,
        features=features,
        notes=tuple(notes),
        dropped=tuple(name for name in file.columns if name not in known),
        warnings=(*table.warnings, *leaks),
    )


def _refuse_no_columns(names: Sequence[str], file: TableReader) -> None:
    if not len(names):
        raise ValueError(f"{file.path} has no column to learn from besides the target.")


def _used_columns(file: TableReader, target: str, options: ReadOptions) -> list[str]:
    """Columns to learn from, as far as the options tell."""
    unused = {target, *options.ids, *_columns_to_drop(file, options)}
    used = [name for name in file.columns if name not in unused]
    _refuse_no_columns(used, file)
    return used


def _columns_to_drop(file: TableReader, options: ReadOptions) -> list[str]:
    """Columns that the options leave out."""
    dropped = _column_names(file, options.drop or ())
    kept = _column_names(file, options.keep or ())
    if options.target in dropped:
        raise ValueError(
            f"Column {options.target!r} is the target and cannot be dropped."
        )
    if options.keep is not None:
        used = {options.target, options.id, *kept}
        dropped += [name for name in file.columns if name not in used]
    return dropped


def _column_names(file: TableReader, given: str | Sequence[str]) -> list[str]:
    """Names of columns; text that names no column may be several names with commas."""
    names: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if text in file.columns or not parts:
            names.append(text)
        else:
            names += parts
    # The name of a column of lists stands for all columns made of it.
    names = [column for name in names for column in file.lists.get(name, [name])]
    require_columns(file, names)
    return names


def require_columns(file: DataReader, names: Iterable[str], purpose: str = "") -> None:
    """Raise a ColumnError unless a file has columns of these names.

    The error suggests columns with similar names.
    """
    lacking = [name for name in names if name not in file.columns]
    if not lacking:
        return
    unused = [name for name in file.columns if name not in names]
    name_by_folded = {name.strip().casefold(): name for name in unused}
    suggestions = []
    for name in lacking:
        folded = str(name).strip().casefold()
        close = get_close_matches(folded, name_by_folded, n=1)
        suggestions += [f"{name_by_folded[match]!r} for {name!r}" for match in close]
    hint = f" Did you mean {', '.join(suggestions[:3])}?" if suggestions else ""
    text = say(
        "{path} has no column {lacking}{purpose}.{hint} Its columns are {columns}.",
        path=file.path,
        lacking=quoted_list(lacking, _MAX_LISTED_COLUMNS),
        purpose=purpose,
        hint=hint,
        columns=quoted_list(file.columns, _MAX_LISTED_COLUMNS),
    )
    raise ColumnError(text, column=lacking[0])


def to_pandas_frame(rows: Any) -> Any:
    """A pandas frame of an Arrow table: numbers, booleans, dates, or text with gaps."""
    pandas = require_for_tables("pandas")
    columns = {name: _series(name, rows[name]) for name in rows.column_names}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(rows.num_rows))


def _series(name: str, column: Any) -> Any:
    """A pandas column of an Arrow column."""
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
        return pandas.Series(column.to_pylist(), dtype="boolean")
    if types.is_decimal(kind) or types.is_null(kind) or types.is_float16(kind):
        column = column.cast(arrow.float64())
    return column.to_pandas(date_as_object=False)


def _text_series(name: str, column: Any) -> Any:
    """A pandas column of text, None for empty cells."""
    arrow = require_for_tables("pyarrow")
    try:
        # Encoded as a dictionary, so that each distinct value becomes text once.
        values = column.dictionary_encode().to_pandas().array
    except arrow.ArrowException:
        message = f"Column {name!r} holds text that is not UTF-8: write the file anew."
        raise ColumnError(message, column=name) from None
    # Empty cells have the code -1: None is the last of the texts.
    texts = texts_of([*values.categories, None])
    return require_for_tables("pandas").Series(texts[values.codes], dtype=object)


def _stacked(table: Table, path: Path) -> Table:
    """Add the rows of another file with the same columns, all of them unlabeled."""
    own_path = table.sources[0].path
    first = table.features
    other = open_table(path)
    require_columns(other, list(first.columns), f", which {own_path} has")
    second = to_pandas_frame(other.read(list(first.columns)))

    # A column without values takes the kind of the other part.
    first_filled = first.dropna(axis=1, how="all")
    second_filled = second.dropna(axis=1, how="all")
    for name in first_filled.columns.intersection(second_filled.columns):
        if _coarse_kind(first_filled[name]) != _coarse_kind(second_filled[name]):
            raise ColumnError(
                f"Column {name!r} holds other kinds of values in {own_path} and "
                f"{path}, for example {second[name].dropna().iloc[0]!r}.",
                column=name,
            )

    stacked = require_for_tables("pandas").concat(
        [first_filled, second_filled], ignore_index=True
    )
    is_chosen = table.is_chosen
    return replace(
        table,
        features=stacked.reindex(columns=first.columns),
        labels=np.concatenate([table.labels, np.full(len(second), None)]),
        sources=(*table.sources, Source(str(path), other.sha256(), len(second))),
        is_chosen=None if is_chosen is None else np.pad(is_chosen, (0, len(second))),
    )


def _coarse_kind(series: Any) -> str:
    """Kind of a dtype, the same for all real numbers."""
    kind: str = series.dtype.kind
    return "f" if kind in "iuf" else kind


def read_classes(file: DataReader, options: ReadOptions) -> Classes:
    """Read the class of every row, from the file itself or from that of the labels.

    If a person has answered questions in the file of the labels, rows without an answer
    have the class that the file of the rows gives them, if any.
    """
    labels_file = _open_labels(file, options)
    target = _find_target(file, labels_file, options)
    return _classes_in(file, labels_file, target, options)


def _open_labels(file: DataReader, options: ReadOptions) -> DataReader:
    """Open the file of the labels; it may be the file of the rows."""
    return file if options.labels is None else open_table(Path(options.labels))


def _find_target(
    file: DataReader, labels_file: DataReader, options: ReadOptions
) -> str:
    """Name of the column of classes; ValueError if a column that is needed lacks."""
    is_answered = labels_file is not file and are_answers(labels_file.columns)
    if is_answered and options.id is None:
        sentence = (
            "{path} is a file of rows to label: name its column of ids, such as "
            "{@id=row}."
        )
        raise ValueError(say(sentence, path=labels_file.path))

    target = options.target
    if target is None and labels_file is not file:
        candidates = [name for name in labels_file.columns if name != options.id]
        # The columns that help a person to decide are last in a file of answers.
        if is_answered:
            candidates = candidates[: candidates.index(HOW)]
        target = candidates[0] if len(candidates) == 1 else None
    is_array = isinstance(labels_file, FeatureFile)
    if target is None or (is_array and target not in labels_file.columns):
        names = quoted_list(labels_file.columns, _MAX_LISTED_COLUMNS)
        has_named = {*labels_file.columns} != {*_unnamed_columns(labels_file)}
        sentence = _WHICH_TARGET if has_named else _NO_LABELS
        raise ValueError(say(sentence, path=labels_file.path, names=names))

    purpose = say(", which should hold the classes: name it by {@target}")
    require_columns(labels_file, [target], purpose)
    # Answers may name the rows by their numbers, for which a file needs no column.
    for with_ids in (labels_file,) if is_answered else (labels_file, file):
        require_columns(with_ids, options.ids, say(", which {@id} names"))
    return target


def _unnamed_columns(file: DataReader) -> list[str]:
    """Columns of an array, whose names were made up."""
    return file.features if isinstance(file, FeatureFile) else []


def _classes_in(
    file: DataReader, labels_file: DataReader, target: str, options: ReadOptions
) -> Classes:
    """Read the column of classes, and match it with the rows of a file."""
    if isinstance(labels_file, FeatureFile) or labels_file is file:
        return Classes(target, labels_file.column(target))
    if are_answers(labels_file.columns):
        return _answered_classes(file, labels_file, target, options)
    labels_file.hold([], texts=[target, *options.ids])
    cells = labels_file.column(target)
    source = Source(str(labels_file.path), labels_file.sha256(), len(cells))
    if options.id is not None:
        arrow = require_for_tables("pyarrow")
        order = np.full(file.n_rows, -1)
        ids = row_ids(labels_file, options.id)
        rows = RowIds(file, options.id).rows_of(ids, labels_file.path)
        order[rows] = np.arange(len(rows))
        # Masked entries of the order become null: their rows are unlabeled.
        cells = cells.take(arrow.array(order, mask=order < 0))
    elif len(cells) != file.n_rows:
        text = say(
            _OTHER_LENGTH,
            labels=labels_file.path,
            n=len(cells),
            path=file.path,
            n_rows=file.n_rows,
        )
        raise ValueError(text)
    return Classes(target, cells, (source,))


def _answered_classes(
    file: DataReader, labels_file: TableReader, target: str, options: ReadOptions
) -> Classes:
    """Classes that a person gave, or else those of the file of the rows."""
    assert options.id is not None
    answers = Answers.of(labels_file, options.id, target)
    source = Source(str(labels_file.path), labels_file.sha256(), labels_file.n_rows)
    ids = RowIds(file, options.id)
    is_chosen = np.zeros(len(ids), dtype=bool)
    is_chosen[ids.rows_of(answers.ids(), answers.path)] = answers.frame[HOW] == CHOSEN

    labels: dict[str, str] = {}
    if target in file.columns:
        own = texts_of(file.column(target).to_pylist(), empty=("",))
        labels = {id: text for id, text in zip(ids, own, strict=True) if text}
    labels |= answers.labels
    answers.check_spelling(labels.values(), file)
    cells = require_for_tables("pyarrow").array(
        [labels.get(id) for id in ids], "string"
    )
    return Classes(target, cells, (source,), is_chosen)


def why_withheld(table: Table) -> str:
    """Return why labels drawn at random do not show the error; empty if they do."""
    n_random = int(table.is_random.sum())
    if n_random >= MIN_TESTED_ROWS:
        return ""
    n_labels = int(table.is_labeled.sum())
    return (
        f"it is measured by at least {MIN_TESTED_ROWS} labels of rows drawn at random, "
        f"and there are {n_random} among {plural(n_labels, 'label')}. `iclda ask` "
        "draws such rows by its option test"
    )


def row_ids(file: DataReader, id: str) -> AnyArray:
    """Ids of the rows as text; numbers from 0 if the file has no column ``row``."""
    if id == ROW and ROW not in file.columns:
        return texts_of(range(file.n_rows))
    require_columns(file, [id], say(", which {@id} names"))
    return texts_of(file.column(id).to_pylist())


class RowIds(dict[str, int]):
    """Position of the row of every id of a file; ValueError if two rows share an id."""

    def __init__(self, file: DataReader, id: str) -> None:
        self.path = file.path
        self.id = id
        super().__init__(_positions(row_ids(file, id), file.path, id))

    def rows_of(self, ids: Iterable[str], path: Path) -> AnyArray:
        """Positions of the rows with the ids of another file, which must be known."""
        others = _positions(ids, path, self.id)
        unknown = [text for text in others if text not in self]
        if unknown:
            raise ValueError(
                f"{path}: no row of {self.path} has the {self.id!r} "
                f"{quoted_list(unknown, 3)}. Its {len(self):,} rows have ids such as "
                f"{quoted_list(list(self), 3)}: remove these labels, or name another "
                "column of ids."
            )
        return np.array([self[text] for text in others], dtype=int)


def _positions(ids: Iterable[str | None], path: Path, id: str) -> dict[str, int]:
    """Position of every id; ValueError for one that occurs twice or is empty."""
    counts = Counter(ids)
    for text, count in counts.most_common(1):
        if count > 1 or None in counts:
            problem = "a cell is empty"
            if count > 1:
                problem = f"{text!r} occurs {count} times"
            raise ValueError(
                f"{path}: column {id!r} must identify the rows, and {problem}. Remove "
                "the others, or name another column of ids."
            )
    return {text: k for k, text in enumerate(counts) if text is not None}


def labels_of(
    column: Any,
    path: Path | str,
    target: str,
    unlabeled: str | float | None,
    n_classes_needed: int,
) -> AnyArray:
    """Class names of an Arrow column; ValueError for fewer classes than are needed."""
    where = f"{path}: column {target!r}"
    if require_for_tables("pyarrow").types.is_nested(column.type):
        raise ValueError(
            f"{where} holds {column.type} cells, and must hold classes: write text."
        )
    # NA is a gap in a column of numbers. Among classes it may be one of them: Namibia,
    # North America.
    labels = texts_of(column.to_pylist(), empty=("",))
    names = {label for label in labels if label is not None}
    names = {name for name in names if not may_mean_nothing(name)}
    if all(number_in(name) is not None for name in names):
        short = [None if label is None else short_number(label) for label in labels]
        labels = np.array(short, dtype=object)

    if unlabeled is not None:
        mark = str(unlabeled).strip()
        is_marked = (labels == mark) | (labels == short_number(mark))
        if mark and not is_marked.any():
            raise ValueError(
                f"{path}: no row has the unlabeled value {mark!r} in column "
                f"{target!r}, which holds {_named(labels)}. Leave it out if empty "
                "cells mark the unlabeled rows."
            )
        labels[is_marked] = None
    counts = Counter(label for label in labels if label is not None)
    _refuse_other_than_classes(counts, len(labels), where, n_classes_needed)
    return labels


def short_number(text: str) -> str:
    """Write a whole number the short way, "1" for "1.0" and "1e0"; keep other text."""
    # Integers stay as they are: floating point would round long ones.
    if _WHOLE_NUMBER.fullmatch(text):
        return text
    number = number_in(text)
    return str(int(number)) if number is not None and number.is_integer() else text


def may_mean_nothing(text: str) -> bool:
    """Whether a label is a word that stands for an unknown one in many tables."""
    return text.casefold() in _WORDS_FOR_NOTHING


def _refuse_other_than_classes(
    counts: Counter[str], n_rows: int, where: str, n_classes_needed: int
) -> None:
    """Refuse too few classes, numbers with fractions, and too many values."""
    rows = plural(counts.total(), "labeled row")
    if len(counts) < n_classes_needed:
        raise ValueError(
            f"{where} must label rows of at least 2 classes, got {_named(counts)} "
            f"({rows}). Label rows of each class, for example those that `iclda ask` "
            "chooses; empty cells and the unlabeled value are no labels."
        )

    numbers = {name: number_in(name) for name in counts if not may_mean_nothing(name)}
    fractions = [
        name
        for name, number in numbers.items()
        if number is not None and number % 1 != 0
    ]
    if fractions and None not in numbers.values():
        raise ValueError(
            f"{where} holds numbers with fractions or infinity, for example "
            f"{fractions[0]}, and must hold classes. Make classes of them first, for "
            "example 'low' and 'high'."
        )

    n_plausible = max(
        _CLASSES_IN_ANY_FILE, counts.total() / 2, n_rows / _MIN_ROWS_PER_CLASS
    )
    if len(counts) > n_plausible:
        raise ValueError(
            f"{where} holds {len(counts)} different values in {rows}, for example "
            f"{_named(counts)}: these are no classes. Name the column that holds them."
        )


def _named(labels: Iterable[str | None]) -> str:
    names = sorted({label for label in labels if label is not None})
    return quoted_list(names, 5) if names else "empty cells only"


def _warnings_on_marks(labels: AnyArray, target: str) -> list[str]:
    """Warnings of classes that mark unlabeled rows in other tables.

    -1 hardly is such a mark if it is one of two classes, or if there are empty cells.
    """
    counts = Counter(labels)
    marks = sorted(
        name for name in counts if name is not None and may_mean_nothing(name)
    )
    if counts["-1"] and None not in counts and len(counts) > 2:
        marks.append("-1")
    sentence = (
        "{mark!r} in {target!r} is a class: pass {way_out} if it marks unlabeled rows."
    )
    return [
        say(sentence, mark=mark, target=target, way_out=Hint("unlabeled", mark))
        for mark in marks
    ]
