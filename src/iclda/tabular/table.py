"""Tables with their labels, read from one file or two, or from a frame.

`read_table` opens the file of the rows and, if there is one, the file of their labels.
It finds the column of classes, reads both files, matches labels with rows, and leaves
out columns that cannot be learned from. The result is a `Table`: features, labels, and
remarks for a person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import ColumnError, Hint, Text, plural, say
from .array_files import FeatureFile
from .cells import require_for_tables
from .checks import (
    check_broken,
    check_ids,
    check_leaks,
    check_texts,
    check_written,
    numbers_rows,
)
from .class_names import (
    labels_of,
    may_mean_nothing,
    warnings_on_marks,
    warnings_on_spelling,
)
from .column_types import kinds_and_reasons, kinds_of
from .files import open_data, open_table
from .frames import FrameReader, to_pandas_frame
from .labels import Classes, find_labels, shown_ids
from .read_options import ReadOptions
from .readers import DataReader, Source, require_columns

# How many numbers, unlabeled rows times features, a frame takes from an array file ...
_MAX_FRAME_ENTRIES = 5_000_000
# ... but this many unlabeled rows in any case.
_MIN_FRAME_ROWS = 1_000
_FOR_TABLES = (
    "{given} is for tables, and {path} is an array: save the array of features that "
    "you mean, or put files of the same features into one folder."
)
_ENCODE_TEXTS = (
    "Names and ids say nothing about other rows. If a text does, make numbers of it "
    "first, for example with StringEncoder of skrub."
)
_ONLY_AN_ID = (
    "Column {name!r} identifies the rows, because {id} names it: it is not a feature."
)
# Names that readers and pandas give to columns without a name.
_MADE_UP_NAME = re.compile(r"\(column \d+\)|__index_level_\d+__")


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
        Remarks for a person, such as which columns were left out and why.
    dropped : tuple of str
        Columns that were left out.
    warnings : tuple of str
        What may spoil a fit: columns that give the class away, marks of unknown
        classes.
    is_chosen : ndarray of bool or None
        Which rows were chosen to be labeled; the others with a label were drawn at
        random. None: nothing is known about this, and the labels are taken for a
        random sample.
    is_none : ndarray of bool or None
        Which rows a person has put into none of the classes: they are neither labeled
        nor unlabeled. None: no row.
    first_row_number : int
        What messages call the first row.
    ids : ndarray of object or None
        The ids of the rows of the file, if a column identifies them.
    """

    features: Any
    labels: AnyArray
    target: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_chosen: AnyArray | None = None
    is_none: AnyArray | None = None
    first_row_number: int = 0
    ids: AnyArray | None = None

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
    def n_unlabeled(self) -> int:
        """Number of rows whose class is unknown."""
        n_none = 0 if self.is_none is None else int(self.is_none.sum())
        return int((~self.is_labeled).sum()) - n_none

    @property
    def class_counts(self) -> dict[str, int]:
        """Number of labeled rows of every class, sorted by name."""
        counts = Counter(self.labels[self.is_labeled].tolist())
        return dict(sorted(counts.items()))

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, sorted."""
        return tuple(self.class_counts)

    @property
    def notes_on_none(self) -> tuple[str, ...]:
        """The note that rows of none of the classes are left out, if there are any."""
        if self.is_none is None:
            return ()
        n_rows = int(self.is_none.sum())
        return (
            f"{plural(n_rows, 'row')} of none of the classes: left out, neither "
            "labeled nor unlabeled.",
        )

    def framed(self, max_unlabeled: int | None = None) -> Table:
        """Return the table with features as a frame, indexed by position in the file.

        Rows of none of the classes are left out, with a note. It has all labeled rows,
        and a sample of the unlabeled ones if there are more than ``max_unlabeled``. By
        default they are sampled only if they come from an array file and would make the
        frame large.
        """
        is_array = isinstance(self.features, FeatureFile)
        if max_unlabeled is None and is_array:
            n_affordable = _MAX_FRAME_ENTRIES // self.features.rows.n_features
            max_unlabeled = max(_MIN_FRAME_ROWS, n_affordable)
        is_kept = np.ones(len(self.labels), dtype=bool)
        if self.is_none is not None:
            is_kept = ~self.is_none
        unlabeled = np.flatnonzero(is_kept & ~self.is_labeled)
        is_sampled = max_unlabeled is not None and len(unlabeled) > max_unlabeled
        if not is_array and not is_sampled and self.is_none is None:
            return self

        notes = (*self.notes, *self.notes_on_none)
        if is_sampled:
            # A fixed seed: the same file gives the same sample.
            shuffled = np.random.default_rng(0).permutation(unlabeled)
            is_kept[shuffled[max_unlabeled:]] = False
            note = (
                f"{max_unlabeled:,} of the {len(unlabeled):,} unlabeled rows are used, "
                "drawn at random."
            )
            notes = (*notes, note)
        features = self.features
        is_chosen = self.is_chosen
        ids = self.ids
        return replace(
            self,
            # Features of an array become a frame here.
            features=features.take(is_kept) if is_array else features[is_kept],
            labels=self.labels[is_kept],
            notes=notes,
            is_chosen=None if is_chosen is None else is_chosen[is_kept],
            is_none=None,
            # Rows of the file of unlabeled rows, which come last, have no ids.
            ids=None if ids is None else ids[is_kept[: len(ids)]],
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
    strict: bool = False,
) -> Table:
    """Read a file of labeled and unlabeled rows: CSV, Parquet, or an array of features.

    Labels are text. If all labels are numbers, they are written in the shortest form:
    1, 1.0 and "1" are one class, "1". Blanks around a label are removed. A row is
    unlabeled if its target is empty or equals ``unlabeled``. Words such as NA and ?
    count as empty cells in the other columns, but as classes in the target, with a
    warning that says so.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also .gz) or a .parquet file; or a .npy or .npz file,
        or a folder of .npy files, in the order of their names. A Parquet column of
        lists of numbers becomes one feature per number.
    target : str, default=None
        Name of the column that holds the classes; None takes the only column of
        ``labels``.
    labels : str or Path, default=None
        A CSV or Parquet file that holds the target: one row for each row, in the same
        order, or joined by ``id``. None: the target is in the file itself.
    id : str, default=None
        Name of a column of both files by which their rows are matched, in any order;
        rows whose id ``labels`` does not have are unlabeled. Rows of an array file are
        numbered from 0, unless it is an .npz file with an array of this name.
    unlabeled : str or number, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        Another file with the same columns, all of whose rows count as unlabeled.
    drop : str or sequence of str, default=()
        Columns to leave out. "a,b" names both a and b, unless a column has that name.
    keep : str or sequence of str, default=None
        Columns to use besides the target, and no others; None uses all.
    strict : bool, default=False
        Whether columns that nothing can be learned from, such as names or remarks, are
        an error. Otherwise they are left out, and a note lists them.

    Returns
    -------
    table : Table
        Features, labels, and where they came from.
    """
    options = ReadOptions(
        target, unlabeled, unlabeled_file, drop, keep, strict, labels, id
    )
    return read_file(Path(path), options)


def read_file(path: Path, options: ReadOptions) -> Table:
    """Read a table or an array file."""
    return read_opened(open_data(path, options.ids), options)


def read_frame(frame: Any, options: ReadOptions) -> Table:
    """Read a pandas frame; its index is ignored, and column names become text."""
    return read_opened(FrameReader(frame), options)


def read_opened(file: DataReader, options: ReadOptions) -> Table:
    """Read an opened file; it must have two classes and a column to learn from."""
    label_source = find_labels(file, options)
    if not isinstance(file, FeatureFile):
        # One pass over the file reads the columns for everything below.
        used = _used_columns(file, label_source.target, options)
        file.hold(used, texts=[label_source.target, *options.ids])
    table = with_classes(file, label_source.read(), options, n_classes_needed=2)
    if not isinstance(file, FeatureFile):
        names = table.features.columns
        reasons = [*table.notes, *table.warnings]
        _refuse_no_columns(names, file, options, reasons)
        # With a file of labels, everybody expects that the ids join the two.
        is_used = options.id in {*file.columns} - {*_columns_to_drop(file, options)}
        if is_used and options.labels is None:
            note = say(_ONLY_AN_ID, name=options.id, id=Hint("id"))
            table = replace(table, notes=(*table.notes, note))
    return table


def with_classes(
    file: DataReader,
    classes: Classes,
    options: ReadOptions,
    *,
    n_classes_needed: int = 0,
) -> Table:
    """Make a table of the columns of an opened file and the classes of its rows."""
    if not len(classes.cells):
        raise ValueError(f"{file.path} has no data rows.")

    # 1. The cells of the target become labels, whatever the file.
    target = classes.target
    where = options.labels or file.path
    labels = labels_of(
        classes.cells, where, target, options.unlabeled, n_classes_needed
    )
    table = Table(
        file,
        labels,
        target,
        sources=(file.source(), *classes.sources),
        warnings=(
            *warnings_on_marks(labels, target),
            *warnings_on_spelling(labels, target),
        ),
        is_chosen=classes.is_chosen,
        is_none=classes.is_none,
        first_row_number=file.first_row_number,
        ids=shown_ids(file, options.id),
    )

    # 2. The columns of a table are chosen; those of an array are features as they are.
    if isinstance(file, FeatureFile):
        _refuse_table_options(file.path, options)
        return table
    return _with_features(table, file, options)


def _refuse_table_options(path: Path, options: ReadOptions) -> None:
    """Refuse options that name columns or tables, which an array file does not have."""
    for name in ("drop", "keep", "unlabeled_file"):
        if getattr(options, name):
            text = say(_FOR_TABLES, given=Hint(name), path=path)
            raise ValueError(text)


def _with_features(table: Table, file: DataReader, options: ReadOptions) -> Table:
    """Add the columns to learn from, and the rows of the file of unlabeled rows."""
    # 1. Read the columns that the options leave. Those left out below are named with
    # the reason.
    names = _used_columns(file, table.target, options)
    features = to_pandas_frame(file.read(names))
    reasons = {
        name: "has no name and numbers the rows"
        for name in features.columns
        if _MADE_UP_NAME.fullmatch(name) and numbers_rows(features[name])
    }
    features = features.drop(columns=list(reasons))
    if _has_unused_target(table, file):
        reasons[table.target] = (
            f"holds the target, which is taken from {options.labels}"
        )

    # 2. Add the rows of the other file: what columns hold is judged by all rows.
    table = replace(table, features=features)
    if options.unlabeled_file is not None:
        table = _with_unlabeled_rows(table, Path(options.unlabeled_file))

    # 3. Leave out columns from which nothing can be learned.
    is_empty = table.features.isna().all()
    features = table.features.loc[:, ~is_empty]
    for name in is_empty.index[is_empty]:
        reasons[name] = "is empty in all rows"
    if options.strict:
        # It raises the error that names all columns which cannot be used.
        kinds_of(features)
    _, unusable = kinds_and_reasons(features)
    features = features.drop(columns=list(unusable))
    lost_numbers: dict[str, str] = {}
    for name, reason in unusable.items():
        listed = lost_numbers if reason.is_number else reasons
        listed[name] = reason.in_note()

    # 4. Say what was left out and why, and what looks odd in the columns that remain.
    kept = {table.target, *options.ids, *features.columns}
    dropped = tuple(name for name in file.columns if name not in kept)
    has_texts = any(reason.is_text for reason in unusable.values())
    notes = _notes_on_dropped(reasons, has_texts=has_texts)
    # A column of numbers is lost by a few cells: that is to be mended before a fit.
    losses = _notes_on_dropped(lost_numbers, has_texts=False)
    table = replace(
        table,
        features=features,
        dropped=dropped,
        notes=notes,
        warnings=(*table.warnings, *losses),
    )
    return _with_remarks(table)


def _notes_on_dropped(reasons: dict[str, str], *, has_texts: bool) -> tuple[str, ...]:
    """Return the note that lists all columns which were left out, if there are any."""
    if not reasons:
        return ()
    listed = "; ".join(f"{name!r} {reason}" for name, reason in reasons.items())
    if len(reasons) == 1:
        note = f"Column {listed}: it was left out."
    else:
        note = f"{len(reasons)} columns were left out: {listed}."
    advice = f" {_ENCODE_TEXTS}" if has_texts else ""
    return (f"{note}{advice}",)


def _has_unused_target(table: Table, file: DataReader) -> bool:
    """Return whether a file has a target, but the classes come from another file.

    A file of answers does not count: rows without an answer have the class that their
    own file gives them.
    """
    has_file_of_labels = len(table.sources) > 1
    has_file_of_answers = table.is_chosen is not None
    is_unused = has_file_of_labels and not has_file_of_answers
    return is_unused and table.target in file.columns


def _with_remarks(table: Table) -> Table:
    """Note columns that look like ids, and warn of those that give the class away."""
    features = table.features
    remarks = [
        *check_written(features),
        *check_texts(features),
        *check_ids(features),
        *check_broken(features, partial(_name_of_row, table)),
    ]
    notes = [remark.text for remark in remarks]
    leaks = _leak_warnings(table)
    return replace(
        table, notes=(*table.notes, *notes), warnings=(*table.warnings, *leaks)
    )


def _name_of_row(table: Table, position: int) -> str:
    """Return what a message calls a row of a table."""
    n_own = table.sources[0].n_rows
    if position >= n_own:
        row = position - n_own + table.first_row_number
        return f"row {row} of {table.sources[-1].path}"
    if table.ids is not None:
        return f"row {table.ids[position]}"
    return f"row {position + table.first_row_number}"


def _leak_warnings(table: Table) -> list[str]:
    """Warn of columns of a table that give the class away.

    The features of an array file have no names, and are not checked.
    """
    if isinstance(table.features, FeatureFile):
        return []
    # A mark such as "NA" may mean that the class is unknown: a column that predicts
    # nothing but the mark gives no class away.
    labels = [
        None if label is None or may_mean_nothing(label) else label
        for label in table.labels
    ]
    remarks = check_leaks(table.features, np.array(labels, dtype=object))
    return [remark.text for remark in remarks]


def _refuse_no_columns(
    names: Sequence[str],
    file: DataReader,
    options: ReadOptions,
    reasons: Sequence[str] = (),
) -> None:
    """Raise a ValueError if no column is left to learn from, with the reasons."""
    if len(names):
        return
    if options.keep is not None:
        way_out = say("name other columns in {@keep}, got {keep!r}", keep=options.keep)
    elif options.drop:
        way_out = say("name fewer columns in {@drop}, got {drop!r}", drop=options.drop)
    else:
        way_out = Text("add a column of numbers, of categories or of dates")
    sentence = "{path} has no column to learn from besides the target: {way_out}."
    text = say(sentence, path=file.path, way_out=way_out)
    raise ValueError(Text(text, *(f" {reason}" for reason in reasons)))


def _used_columns(file: DataReader, target: str, options: ReadOptions) -> list[str]:
    """Return the columns to learn from, as far as the options tell."""
    dropped = _columns_to_drop(file, options)
    unused = {target, *options.ids, *dropped}
    used = [name for name in file.columns if name not in unused]
    _refuse_no_columns(used, file, options)
    return used


def _columns_to_drop(file: DataReader, options: ReadOptions) -> list[str]:
    """Return the columns that the options leave out."""
    dropped = _column_names(file, options.drop or ())
    kept = _column_names(file, options.keep or ())
    if options.target in dropped:
        raise ValueError(
            f"Column {options.target!r} is the target and cannot be dropped."
        )
    if options.keep is not None:
        # An empty list keeps no column: it is not the same as None.
        used = {options.target, *kept}
        dropped += [name for name in file.columns if name not in used]
    return dropped


def _column_names(file: DataReader, given: str | Sequence[str]) -> list[str]:
    """Return the columns that are meant; "a,b" names both unless it is a column."""
    texts = [given] if isinstance(given, str) else given
    names: list[str] = []
    for text in texts:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if text in file.columns or not parts:
            names.append(text)
        else:
            names += parts

    columns: list[str] = []
    for name in names:
        # The name of a column of lists stands for all columns made of it.
        columns += file.lists.get(name, [name])
    require_columns(file, columns)
    return columns


def _with_unlabeled_rows(table: Table, path: Path) -> Table:
    """Add the rows of another file with the same columns, all of them unlabeled."""
    own_path = table.sources[0].path
    own = table.features
    names = list(own.columns)
    file = open_table(path)
    require_columns(file, names, f", which {own_path} has")
    added = to_pandas_frame(file.read(names))
    n_added = len(added)

    # A column that is empty in one file takes its kind from the other file.
    own_filled = own.dropna(axis=1, how="all")
    added_filled = added.dropna(axis=1, how="all")
    for name in own_filled.columns.intersection(added_filled.columns):
        if _coarse_kind(own_filled[name]) != _coarse_kind(added_filled[name]):
            example = added[name].dropna().iloc[0]
            raise ColumnError(
                f"Column {name!r} holds values of another kind in {path} than in "
                f"{own_path}, for example {example!r}.",
                column=name,
            )
    pandas = require_for_tables("pandas")
    stacked = pandas.concat([own_filled, added_filled], ignore_index=True)
    # Columns that are empty in both files come back, and all have their old order.
    features = stacked.reindex(columns=names)

    no_labels = np.full(n_added, None)
    is_chosen, is_none = (
        None if mask is None else np.append(mask, np.zeros(n_added, dtype=bool))
        for mask in (table.is_chosen, table.is_none)
    )
    source = Source(str(path), file.sha256(), n_added)
    return replace(
        table,
        features=features,
        labels=np.concatenate([table.labels, no_labels]),
        sources=(*table.sources, source),
        is_chosen=is_chosen,
        is_none=is_none,
    )


def _coarse_kind(series: Any) -> str:
    """Return the NumPy kind of a column, "f" for integers and floats alike."""
    kind: str = series.dtype.kind
    return "f" if kind in "iuf" else kind
