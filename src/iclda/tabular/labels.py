"""The class of every row: from the file of the rows, or from a file of labels.

A file of labels has a row for each row of the data, in the same order, or a column of
ids that both files have. Or it is a file of answers (``answer_files``), in which a
person labels rows that ``iclda ask`` chose; it also says which rows were chosen.

`find_labels` opens the file of the labels, and its ``read`` gives the classes::

    options = ReadOptions("kind", labels="labels.csv")
    classes = find_labels(open_data(path), options).read()
    classes.cells  # an Arrow column, null where the class is unknown
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import Hint, quoted_list, say
from .answer_files import (
    CHOSEN,
    HOW,
    NONE_OF_THESE,
    OWN_COLUMNS,
    RANDOM,
    are_answers,
    check_spelling,
    read_answers,
)
from .array_files import FeatureFile
from .asked_rows import check_same_rows
from .cells import require_for_tables, texts_of
from .files import open_table
from .frames import to_pandas_frame
from .read_options import FILE_ROW, ROW, ReadOptions
from .readers import DataReader, Source, listed_columns, require_columns

_WHICH_TARGET = (
    "{@target} must name the column of {path} that holds the classes, one of {names}. "
    "If another file holds them, set {@labels} to that file, and {@id} to a column "
    "that identifies the rows."
)
_TARGET_IS_ID = (
    "Column {target!r} holds the classes and cannot identify the rows, too: name "
    "another column in {@id}, or leave {@id} out."
)
_NO_LABELS = (
    "{path} holds features and no classes: set {@labels} to a file of the "
    "classes. It needs a row for each row of features, or a column of ids: set {@id} "
    "to its name."
)
_OTHER_LENGTH = (
    "{labels} has {n:,} rows, and {path} has {n_rows:,}: without ids, the first label "
    "belongs to the first row, and so on. Write a label for every row, with an empty "
    "cell where the class is unknown, or set {@id} to a column of ids."
)


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
    is_chosen, is_random : ndarray of bool or None
        Which rows were chosen to be labeled, as in `Table`, and which were drawn at
        random to be labeled.
    is_none : ndarray of bool or None
        Which rows are of none of the classes, as in `Table`.
    """

    target: str
    cells: Any
    sources: tuple[Source, ...] = ()
    is_chosen: AnyArray | None = None
    is_none: AnyArray | None = None
    is_random: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class LabelSource:
    """The file and the column that hold the classes of the rows of a data file.

    Attributes
    ----------
    data : DataReader
        The file of the rows.
    file : DataReader
        The file of the classes; it may be ``data``.
    target : str
        The column of the classes.
    id : str or None
        A column of both files by which they are joined. None: the order of the rows.
    """

    data: DataReader
    file: DataReader
    target: str
    id: str | None

    def read(self) -> Classes:
        """Read the classes and match them with the rows."""
        if self.file is self.data:
            return Classes(self.target, self.data.column(self.target))
        if are_answers(self.file.columns):
            return self._read_answers()
        ids = [] if self.id is None else [self.id]
        self.file.hold([], texts=[self.target, *ids])
        cells = self.file.column(self.target)
        if self.id is not None:
            cells = self._in_order_of_rows(cells, self.id)
        elif len(cells) != self.data.n_rows:
            text = say(
                _OTHER_LENGTH,
                labels=self.file.path,
                n=len(cells),
                path=self.data.path,
                n_rows=self.data.n_rows,
            )
            raise ValueError(text)
        return Classes(self.target, cells, (self.file.source(),))

    def _in_order_of_rows(self, cells: Any, id: str) -> Any:
        """Return a cell for each row of the data, null for a row without a class."""
        ids = row_ids(self.file, id)
        positions = RowPositions(self.data, id)
        labeled_rows = positions.rows_of(ids, self.file.path)
        # Which cell is the class of each row; -1 where none is.
        cell_of_row = np.full(self.data.n_rows, -1)
        cell_of_row[labeled_rows] = np.arange(len(labeled_rows))
        # Arrow returns a null where an index is masked.
        arrow = require_for_tables("pyarrow")
        indices = arrow.array(cell_of_row, mask=cell_of_row < 0)
        return cells.take(indices)

    def _read_answers(self) -> Classes:
        """Read the classes that a person gave.

        Rows without an answer have the class that their own file gives them, if any.
        """
        # Without ids, find_labels refuses a file of answers.
        assert self.id is not None
        answers = read_answers(self.file, self.id, self.target)
        positions = RowPositions(self.data, self.id)
        asked_rows = positions.rows_of(answers[self.id], self.file.path)
        self._check_same_rows(answers, asked_rows)
        is_chosen = np.zeros(len(positions), dtype=bool)
        is_chosen[asked_rows] = answers[HOW] == CHOSEN
        is_random = np.zeros(len(positions), dtype=bool)
        is_random[asked_rows] = answers[HOW] == RANDOM
        is_none = np.zeros(len(positions), dtype=bool)
        is_none[asked_rows] = answers[self.target] == NONE_OF_THESE

        label_by_id = self._own_labels(positions)
        has_answer = answers[self.target] != ""
        answered = answers[has_answer]
        label_by_id |= zip(answered[self.id], answered[self.target], strict=True)
        label_by_id = {
            row_id: label
            for row_id, label in label_by_id.items()
            if not is_none[positions[row_id]]
        }
        check_spelling(label_by_id.values(), self.target, self.file.path, self.data)

        labels = [label_by_id.get(row_id) for row_id in positions]
        cells = require_for_tables("pyarrow").array(labels, "string")
        return Classes(
            self.target,
            cells,
            (self.file.source(),),
            is_chosen,
            is_none if is_none.any() else None,
            is_random,
        )

    def _check_same_rows(self, answers: Any, rows: AnyArray) -> None:
        """Raise a ValueError if rows of the data have changed since they were asked."""
        assert self.id is not None
        own = {self.id, self.target, *OWN_COLUMNS}
        names = [
            name
            for name in answers.columns
            if name in self.data.columns and name not in own
        ]
        if not names:
            return
        current = to_pandas_frame(self.data.read(names))
        are_numbered = is_row_number(self.data, self.id)
        check_same_rows(
            answers,
            self.file.path,
            current,
            self.data.path,
            rows,
            are_numbered=are_numbered,
        )

    def _own_labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the classes in the data file itself, by the ids of its rows."""
        if self.target not in self.data.columns:
            return {}
        cells = self.data.column(self.target).to_pylist()
        labels = texts_of(cells, empty=("",))
        pairs = zip(ids, labels, strict=True)
        return {row_id: label for row_id, label in pairs if label is not None}


def find_labels(
    data: DataReader, options: ReadOptions, default_target: str | None = None
) -> LabelSource:
    """Find the file and the column of the classes, without reading them.

    ``default_target`` is taken if the options name no target, except from a file of
    labels without such a column, whose only column besides the ids is taken. ValueError
    if a column that is needed is missing.
    """
    file: DataReader = data
    if options.labels is not None:
        file = open_table(Path(options.labels))
    has_answers = file is not data and are_answers(file.columns)
    if has_answers and options.id is None:
        sentence = "{path} is a file of rows to label: pass its column of ids, {id}."
        # The column of ids comes first; a person may have put it elsewhere.
        names = [FILE_ROW, ROW, file.columns[0]]
        id = next(name for name in names if name in file.columns)
        raise ValueError(say(sentence, path=file.path, id=Hint("id", id)))

    target = options.target
    if target is None:
        target = _unnamed_target(data, file, options, default_target)
    # The target of an array file is an array that it names, or it has none.
    candidates = _columns_but_ids(file, options)
    is_array = isinstance(file, FeatureFile)
    if target is None or (is_array and target not in candidates):
        raise _no_target_error(file, candidates)
    if target == options.id:
        raise ValueError(say(_TARGET_IS_ID, target=target))
    purpose = say(
        ", which should hold the classes: set {@target} to the column that does"
    )
    require_columns(file, [target], purpose)
    # Answers may name rows by their numbers, which need no column in the data file.
    files_with_ids = [file] if has_answers else [file, data]
    for each in files_with_ids:
        require_columns(each, options.ids, say(", which {@id} names"))
    return LabelSource(data, file, target, options.id)


def _unnamed_target(
    data: DataReader, file: DataReader, options: ReadOptions, default: str | None
) -> str | None:
    """Return the column of classes where none was named; None if that is not clear."""
    if file is data or default in file.columns:
        return default
    candidates = [name for name in file.columns if name != options.id]
    # In a file of answers the columns from HOW on are not the person's answers.
    if are_answers(file.columns):
        candidates = candidates[: candidates.index(HOW)]
    return candidates[0] if len(candidates) == 1 else None


def _columns_but_ids(file: DataReader, options: ReadOptions) -> list[str]:
    """Return the columns that may hold the classes; no feature of an array does."""
    features = file.features if isinstance(file, FeatureFile) else []
    return [name for name in file.columns if name not in {*options.ids, *features}]


def _no_target_error(file: DataReader, candidates: Sequence[str]) -> ValueError:
    """Make the error for a file in which no column is known to hold the classes."""
    # Nothing but features: the classes must be in another file.
    sentence = _WHICH_TARGET if candidates else _NO_LABELS
    names = listed_columns(candidates)
    return ValueError(say(sentence, path=file.path, names=names))


def row_ids(file: DataReader, id: str) -> AnyArray:
    """Return the ids of rows as text.

    Two names stand for the number of a row if a table has no such column: `FILE_ROW`
    counts as the file does, `ROW` from 0.
    """
    if is_row_number(file, id):
        first = file.first_row_number if id == FILE_ROW else 0
        return texts_of(range(first, first + file.n_rows))
    require_columns(file, [id], say(", which {@id} names"))
    cells = file.column(id).to_pylist()
    return texts_of(cells)


def is_row_number(file: DataReader, id: str) -> bool:
    """Return whether ids are the numbers of rows, because no column has their name."""
    return id in (ROW, FILE_ROW) and id not in file.columns


def shown_ids(file: DataReader, id: str | None) -> AnyArray | None:
    """Return the ids by which messages name rows; None if they name their numbers."""
    if id is None or is_row_number(file, id):
        return None
    return row_ids(file, id)


class RowPositions(dict[str, int]):
    """Position of the row of every id of a file; ValueError if two rows share an id."""

    def __init__(self, file: DataReader, id: str) -> None:
        self.path = file.path
        self.id = id
        ids = row_ids(file, id)
        super().__init__(_positions(ids, file.path, id))

    def rows_of(self, ids: Iterable[str], path: Path) -> AnyArray:
        """Return the positions of the rows with the ids of another file.

        ValueError for an id that no row has.
        """
        # Each id of the other file is checked to occur there once.
        wanted = _positions(ids, path, self.id)
        unknown = [text for text in wanted if text not in self]
        if unknown:
            raise ValueError(
                f"{path}: no row of {self.path} has the {self.id!r} "
                f"{quoted_list(unknown, 3)}. Its {len(self):,} rows have ids such as "
                f"{quoted_list(list(self), 3)}: remove these labels, or name another "
                "column of ids."
            )
        return np.array([self[text] for text in wanted], dtype=int)


def _positions(ids: Iterable[str | None], path: Path, id: str) -> dict[str, int]:
    """Return the position of every id.

    ValueError for one that occurs twice or is empty.
    """
    counts = Counter(ids)
    problem = ""
    if None in counts:
        problem = "but a cell is empty. Fill it in"
    for text, count in counts.most_common(1):
        if text is not None and count > 1:
            problem = f"but {text!r} occurs {count} times. Keep one of these rows"
    if problem:
        raise ValueError(
            f"{path}: column {id!r} must identify the rows, {problem}, or name another "
            "column of ids."
        )
    # A counter keeps the order of the ids, each of which occurs once here.
    return {text: k for k, text in enumerate(counts) if text is not None}
