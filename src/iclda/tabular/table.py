"""Tables with their labels, read from one file or two."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import check_ids, check_leaks, numbers_rows
from .._core.types import AnyArray
from .._messages import ColumnError, Hint, plural, quoted_list, say
from .._statistics import LEAST_TESTED
from .answers import CHOSEN, OWN_COLUMNS, are_answers
from .array_files import FeatureFile
from .encoders import (
    EMPTY_WORDS,
    kinds_and_reasons,
    number_in,
    require_for_tables,
    texts_of,
)
from .table_files import DataReader, TableReader, open_data, open_table

_MOST_NAMES = 12  # columns that an error lists
_SURELY_CLASSES = 50  # so many distinct labels are classes, however few the rows
_ROWS_OF_CLASS = 20  # and so are labels of which there is one for so many rows of a file
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
        return {name: str(v) if isinstance(v, Path) else v for name, v in vars(self).items()}


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
        Columns that were left out on request.
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
        return self.is_labeled if self.is_chosen is None else self.is_labeled & ~self.is_chosen

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

    def framed(self) -> Table:
        """The table with the features of an array file as a frame.

        Of many unlabeled rows it has a sample.
        """
        if not isinstance(self.features, FeatureFile):
            return self
        is_taken, notes = np.ones(len(self.labels), dtype=bool), self.notes
        unlabeled = np.flatnonzero(~self.is_labeled)
        n_most = max(1_000, _MOST_NUMBERS // self.features.rows.n_features)
        if len(unlabeled) > n_most:
            is_taken[np.random.default_rng(0).permutation(unlabeled)[n_most:]] = False
            text = f"{n_most:,} of the {len(unlabeled):,} unlabeled rows are used, drawn at random."
            notes = (*notes, text)
        features, labels = self.features.take(is_taken), self.labels[is_taken]
        is_chosen = None if self.is_chosen is None else self.is_chosen[is_taken]
        return replace(self, features=features, labels=labels, notes=notes, is_chosen=is_chosen)

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the file; of two files, of their two checksums."""
        if len(self.sources) == 1:
            return self.sources[0].sha256
        return hashlib.sha256("".join(s.sha256 for s in self.sources).encode()).hexdigest()


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
        A .csv, .tsv or .txt file (also .gz) or a .parquet file; "-" is the standard input; or a
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
    options = ReadOptions(target, unlabeled, unlabeled_file, drop, keep, drop_unusable, labels, id)
    return read_file(Path(path), options)


def read_file(path: Path, options: ReadOptions) -> Table:
    """Read a table or an array file."""
    return read_opened(open_data(path, options.ids), options)


def read_opened(
    file: DataReader, options: ReadOptions, classes: tuple[str, Any, list[Source]] | None = None
) -> Table:
    """Read an opened file.

    ``classes`` is what ``read_classes`` returns, with any number of classes; None: it is called,
    and there must be two.
    """
    is_array = isinstance(file, FeatureFile)
    for name in ("drop", "keep", "unlabeled_file") if is_array else ():
        if getattr(options, name):
            sentence = "{given} is for tables, and {path} is an array: save the array of features "
            sentence += "that you mean, or put files of the same features into one folder."
            raise ValueError(say(sentence, given=Hint(name), path=file.path))
    target, cells, further = classes or read_classes(file, options)
    if not len(cells):
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")
    place, least = options.labels or file.path, 2 if classes is None else 0
    labels = _labels_of(cells, place, target, options.unlabeled, least)
    is_chosen = _chosen_rows(file, options) if further else None
    sources = [Source(str(file.path), file.sha256(), len(labels)), *further]
    if isinstance(file, FeatureFile):
        warned = tuple(_warnings_on_marks(labels, target))
        return Table(file, labels, target, tuple(sources), warnings=warned, is_chosen=is_chosen)
    dropped = _columns_to_drop(file, options)
    left_out = {}
    if further and target in file.columns and is_chosen is None:
        left_out[target] = f"holds the target, which is taken from {options.labels}"
    unused = {target, *options.ids, *dropped}
    used = [name for name in file.columns if name not in unused]
    _refuse_no_columns(used, file)
    features = to_pandas_frame(file.read(used))
    nameless = [
        name
        for name in features.columns
        if _NAMELESS.fullmatch(name) and numbers_rows(features[name])
    ]
    left_out |= dict.fromkeys(nameless, "has no name and numbers the rows")
    features = features.drop(columns=nameless)
    if options.unlabeled_file is not None:
        other = open_table(Path(options.unlabeled_file))
        require_columns(other, list(features.columns), f", which {file.path} has")
        more = to_pandas_frame(other.read(list(features.columns)))
        features = _stack(features, more, (file.path, other.path))
        sources.append(Source(str(other.path), other.sha256(), len(more)))
        labels = np.concatenate([labels, np.full(len(more), None)])
        if is_chosen is not None:
            is_chosen = np.concatenate([is_chosen, np.zeros(len(more), dtype=bool)])
    empty = features.columns[features.isna().all()]
    left_out |= dict.fromkeys(empty, "is empty in all rows")
    features = features.drop(columns=empty)
    if options.drop_unusable:
        reasons = kinds_and_reasons(features)[1]
        left_out |= {name: f"holds {why.partition(':')[0]}" for name, why in reasons.items()}
        features = features.drop(columns=list(reasons))
        known = {target, *options.ids, *features.columns}
        dropped = [name for name in file.columns if name not in known]
    _refuse_no_columns(list(features.columns), file)
    named = np.array([None if x is None or may_mean_nothing(x) else x for x in labels])
    return Table(
        features,
        labels,
        target,
        tuple(sources),
        notes=(
            *(f"Column {name!r} {why}: it was left out." for name, why in left_out.items()),
            *(remark.text for remark in check_ids(features)),
        ),
        dropped=tuple(dropped),
        warnings=(
            *_warnings_on_marks(labels, target),
            *(remark.text for remark in check_leaks(features, named)),
        ),
        is_chosen=is_chosen,
    )


def _refuse_no_columns(names: Sequence[str], file: TableReader) -> None:
    if not names:
        raise ValueError(f"{file.path} has no column to learn from besides the target.")


def _columns_to_drop(file: TableReader, options: ReadOptions) -> list[str]:
    """Columns to leave out, in the order of the file."""
    dropped, kept = (_column_names(file, names or ()) for names in (options.drop, options.keep))
    if options.target in dropped:
        raise ValueError(f"Column {options.target!r} is the target and cannot be dropped.")
    if options.keep is not None:
        used = {options.target, options.id, *kept}
        dropped += [name for name in file.columns if name not in used]
    return [name for name in file.columns if name in dropped]


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
        close = {name: closest_name(name, unused) for name in lacking}
        pairs = [f"{known!r} for {name!r}" for name, known in close.items() if known]
        hint = f" Did you mean {', '.join(pairs[:3])}?" if pairs else ""
        text = say(
            "{path} has no column {lacking}{purpose}.{hint} Its columns are {columns}.",
            path=file.path,
            lacking=_shown(lacking),
            purpose=purpose,
            hint=hint,
            columns=_shown(file.columns),
        )
        raise ColumnError(text, column=lacking[0])


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """A name that differs in case or by a few letters, if there is one."""
    alike = [each for each in known if each.strip().casefold() == str(name).strip().casefold()]
    return next(iter(alike or difflib.get_close_matches(str(name), known, n=1)), None)


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


def _stack(first: Any, second: Any, paths: Sequence[Path]) -> Any:
    """Stack the rows of two frames with the same columns and kinds of values."""
    # A column without values takes the kind of the other part.
    parts = [part.dropna(axis=1, how="all") for part in (first, second)]
    for name in parts[0].columns.intersection(parts[1].columns):
        kinds = ["f" if part[name].dtype.kind in "iuf" else part[name].dtype.kind for part in parts]
        if kinds[0] != kinds[1]:
            raise ColumnError(
                f"Column {name!r} holds other kinds of values in {paths[0]} and {paths[1]}, for "
                f"example {second[name].dropna().iloc[0]!r}.",
                column=name,
            )
    stacked = require_for_tables("pandas").concat(parts, ignore_index=True)
    return stacked.reindex(columns=first.columns)


def read_classes(file: DataReader, options: ReadOptions) -> tuple[str, Any, list[Source]]:
    """Target, class of every row as an Arrow column, and their file if it is another one.

    If that is one of rows that a person labels, rows without an answer have the class in the file
    of the rows, if there is one.
    """
    other = file if options.labels is None else open_table(Path(options.labels))
    target, is_answered = options.target, other is not file and are_answers(other.columns)
    if is_answered and options.id is None:
        sentence = "{path} is a file of rows to label: name its column of ids, such as {@id=row}."
        raise ValueError(say(sentence, path=other.path))
    if target is None and other is not file:
        others = [name for name in other.columns if name != options.id]
        if is_answered:  # the columns that help a person to decide are last
            others = others[: others.index(OWN_COLUMNS[0])]
        target = others[0] if len(others) == 1 else None
    if target is None or (isinstance(other, FeatureFile) and target not in other.columns):
        raise _no_target(other)
    require_columns(other, [target], say(", which should hold the classes: name it by {@target}"))
    for each in (other,) if is_answered else (other, file):
        require_columns(each, options.ids, say(", which {@id} names"))
    cells = other.column(target)
    if other is file:
        return target, cells, []
    sources, n_rows = [Source(str(other.path), other.sha256(), len(cells))], file.n_rows
    if options.id is None:
        if len(cells) != n_rows:
            values = {"labels": other.path, "n": len(cells), "path": file.path, "n_rows": n_rows}
            raise ValueError(say(_OTHER_LENGTH, **values))
        return target, cells, sources
    cells = _joined(cells, file, other, options.id)
    if is_answered and target in file.columns:
        own = texts_of(file.column(target).to_pylist(), ("",))
        texts = [answer or own for answer, own in zip(cells.to_pylist(), own, strict=True)]
        cells = require_for_tables("pyarrow").chunked_array([texts], "string")
    return target, cells, sources


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


def _no_target(file: DataReader) -> ValueError:
    """The error of a file whose column of classes is not named."""
    if isinstance(file, FeatureFile) and len(file.columns) == len(file.features):
        return ValueError(say(_NO_LABELS, path=file.path))
    return ValueError(say(_WHICH_TARGET, path=file.path, names=_shown(file.columns)))


def _joined(cells: Any, file: DataReader, other: DataReader, id: str) -> Any:
    """Cells of another file in the order of the rows of this one, null where there is none."""
    places = places_of(row_ids(other, id), other.path, id)
    known = places_of(row_ids(file, id), file.path, id)
    if unknown := [text for text in places if text not in known]:
        raise ValueError(
            f"{other.path}: no row of {file.path} has the {id!r} {quoted_list(unknown, 3)}. Its "
            f"{len(known):,} rows have ids such as {quoted_list(list(known), 3)}: remove these "
            "labels, or name another column of ids."
        )
    wanted = [places.get(text) for text in known]
    return cells.take(require_for_tables("pyarrow").array(wanted, "int64"))


def row_ids(file: DataReader, id: str) -> AnyArray:
    """Ids of the rows as text; numbers from 0 if the file has no column of this name."""
    if id in file.columns:
        return texts_of(file.column(id).to_pylist())
    return texts_of(range(file.n_rows))


def _chosen_rows(file: DataReader, options: ReadOptions) -> AnyArray | None:
    """Which rows were chosen to be labeled; None if the file of the labels does not say that."""
    other = open_table(Path(options.labels or ""))
    if options.id is None or not are_answers(other.columns):
        return None
    drawn = texts_of(other.column(OWN_COLUMNS[0]).to_pylist())
    how = dict(zip(row_ids(other, options.id), drawn, strict=True))
    return np.array([how.get(text) == CHOSEN for text in row_ids(file, options.id)], dtype=bool)


def places_of(texts: AnyArray, path: Path, id: str) -> dict[str, int]:
    """Place of every id; ValueError for one that occurs twice or is empty."""
    places = {text: place for place, text in enumerate(texts)}
    if len(places) < len(texts) or None in places:
        text, count = Counter(texts).most_common(1)[0]
        found = f"{text!r} occurs {count} times" if count > 1 else "a cell is empty"
        raise ValueError(
            f"{path}: column {id!r} must identify the rows, and {found}. Remove the others, or "
            "name another column of ids."
        )
    return places


def _shown(names: Sequence[str]) -> str:
    return quoted_list(names, _MOST_NAMES)


def _labels_of(
    column: Any, path: Path | str, target: str, unlabeled: str | float | None, least: int
) -> AnyArray:
    """Class names of an Arrow column; ValueError for fewer than ``least`` classes."""
    place = f"{path}: column {target!r}"
    if require_for_tables("pyarrow").types.is_nested(column.type):
        raise ValueError(f"{place} holds {column.type} cells, and must hold classes: write text.")
    # In a column of numbers NA is a gap. Among classes it may be one: Namibia, North America.
    labels = texts_of(column.to_pylist(), empty=("",))
    named = {label for label in labels if label is not None and not may_mean_nothing(label)}
    if all(number_in(name) is not None for name in named):
        labels = np.array([None if x is None else short_number(x) for x in labels], dtype=object)
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


def _refuse_other_than_classes(counts: Counter[str], n_rows: int, place: str, least: int) -> None:
    """Refuse fewer than ``least`` classes, numbers with fractions, and as many values as rows."""
    rows = plural(counts.total(), "labeled row")
    if len(counts) < least:
        raise ValueError(
            f"{place} must label rows of at least 2 classes, got {_named(counts)} in {rows}. Label "
            "rows of each class; empty cells and the unlabeled value are no labels."
        )
    numbers = {name: number_in(name) for name in counts if not may_mean_nothing(name)}
    fractions = [n for n, number in numbers.items() if number is not None and number % 1 != 0]
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
    doubtful = sorted(name for name in counts if name is not None and may_mean_nothing(name))
    if counts["-1"] and None not in counts and len(counts) > 2:
        doubtful.append("-1")
    sentence = "{mark!r} in {target!r} is a class: pass {way_out} if it marks unlabeled rows."
    return [
        say(sentence, mark=mark, target=target, way_out=Hint("unlabeled", mark))
        for mark in doubtful
    ]
