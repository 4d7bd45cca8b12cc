"""The rows of a file that a person may label: their ids, features, and cells to see."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from .._core import AnyArray
from .._estimators.average import AverageLDA
from .._estimators.labels import FREE
from .._messages import quoted_list, say
from ..tabular.answer_files import LABEL, OWN_COLUMNS, has_content
from ..tabular.array_files import FeatureFile
from ..tabular.asked_rows import check_same_rows, shown_cells
from ..tabular.cells import require_for_tables
from ..tabular.column_types import pipeline, preprocessing
from ..tabular.files import open_data, open_table
from ..tabular.frames import to_pandas_frame
from ..tabular.labels import Classes, RowPositions, is_row_number
from ..tabular.read_options import FILE_ROW, ROW, ReadOptions
from ..tabular.readers import MAX_LISTED_COLUMNS, DataReader
from ..tabular.table import with_classes
from .answers import Answers

# All columns of text are shown to a person, and at most this many others.
_MAX_SHOWN_OTHER_COLUMNS = 8
# A column with at most this many different values looks like one of classes.
_MAX_PLAUSIBLE_CLASSES = 20
# A new target must be less similar to the name of any column, from 0 to 1.
_MIN_SIMILARITY = 0.75

_WHICH_TARGET = (
    "{path} has no column 'label': name the column that holds the classes with "
    "{@target}. Its columns are {names}. If no row has a class yet, pass "
    "{@target=label}."
)
_SIMILAR_TARGET = (
    "{path} has no column {target!r}. Did you mean {similar!r}? If you want a new "
    "column, pass a {@target} that is less like this name."
)
_NEW_TARGET = (
    "{path} has no column {target!r}, so no row has a class yet. If a column holds the "
    "classes, name it with {@target}; {names} may."
)


class Pool:
    """The rows of a file that may be labeled: their ids, features, and cells to see.

    Without ``id``, the column of ids is that of the file of ``answers`` or, if there is
    none yet, `ROW` or `FILE_ROW`. The other parameters are those of `ReadOptions`.

    Attributes
    ----------
    id, target : str
        Names of the columns of ids and of classes.
    options : ReadOptions
        How the file is read.
    file : DataReader
        The file.
    is_array : bool
        Whether it is an array file, not a table.
    positions : RowPositions
        Position of the row of every id.
    ids : list of str
        Ids in the order of the file.
    table : Table
        Features, and the labels that the file itself has.
    labels : dict of str to str
        The same labels, by id.
    has_features : bool
        Whether there is a column that a model can learn from.
    """

    def __init__(
        self,
        path: Path,
        id: str | None = None,
        target: str | None = None,
        *,
        answers: Path | None = None,
        unlabeled: str | float | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] | None = None,
        strict: bool = False,
    ) -> None:
        file = open_data(path, [id or ROW])
        id = id or _default_id(file, answers)
        target = _find_target(file, id, target)
        file.hold(file.columns, texts=[id, target])
        self.id = id
        self.target = target
        self.file = file
        self.is_array = isinstance(file, FeatureFile)
        # Columns of names and texts are for the person, not for the model.
        self.options = ReadOptions(
            target, unlabeled, drop=drop, keep=keep, strict=strict, id=id
        )
        self.positions = RowPositions(file, id)
        self.ids = [*self.positions]
        if target in file.columns:
            cells = file.column(target)
        else:
            # No row has a label yet.
            cells = require_for_tables("pyarrow").nulls(file.n_rows, "string")
        self.table = with_classes(file, Classes(target, cells), self.options)
        self.labels = {
            row_id: label
            for row_id, label in zip(self.ids, self.table.labels, strict=True)
            if label is not None
        }
        self.has_features = self.is_array or len(self.table.features.columns) > 0

    @cached_property
    def model(self) -> Any:
        """The unfitted model whose fits guess classes, and whose error is estimated."""
        encoder = None if self.is_array else preprocessing(self.table.features)
        return pipeline(encoder, AverageLDA(proportions=FREE))

    def notes_on_target(self) -> list[str]:
        """Note that the target is a new column if an existing one may hold classes."""
        likely = _columns_like_classes(self.file, self.id)
        if self.target in self.file.columns or not likely:
            return []
        path = self.file.path
        names = quoted_list(likely, MAX_LISTED_COLUMNS)
        return [say(_NEW_TARGET, path=path, target=self.target, names=names)]

    def name_of(self, position: int) -> str:
        """Return what a person knows a row by: its id, or its number in the file."""
        if is_row_number(self.file, self.id):
            return str(position + self.file.first_row_number)
        return self.ids[position]

    @property
    def numbered_file(self) -> str:
        """Name of the table whose rows are known by their numbers; empty with ids."""
        return self.file.path.name if is_row_number(self.file, self.id) else ""

    @property
    def how_answers_count(self) -> str:
        """Say how a file of answers numbers the rows of a table; empty with ids."""
        if not is_row_number(self.file, self.id):
            return ""
        first = self.file.first_row_number
        if self.id == FILE_ROW:
            return (
                f"Its column {FILE_ROW!r} counts as a spreadsheet does: the header of "
                f"{self.file.path} is row {first - 1}."
            )
        return (
            f"Its column {ROW!r} counts the rows of {self.file.path} from 0, as in "
            f"earlier versions: 0 is row {first} of the file."
        )

    @cached_property
    def shown(self) -> Any:
        """Frame of the columns that a person sees: all of text, and some others."""
        columns_of_lists = chain(*self.file.lists.values())
        hidden = {self.id, self.target, *OWN_COLUMNS, *columns_of_lists}
        names = [name for name in self.file.columns if name not in hidden]
        if not names:
            # Arrow cannot tell the number of rows of no columns.
            pandas = require_for_tables("pandas")
            return pandas.DataFrame(index=range(len(self.ids)))
        frame = to_pandas_frame(self.file.read(names))
        others = [name for name in names if frame[name].dtype.kind != "O"]
        not_shown = others[_MAX_SHOWN_OTHER_COLUMNS:]
        return frame.drop(columns=not_shown)

    def cells(self, rows: AnyArray | Sequence[int]) -> dict[str, list[str]]:
        """Return what a person sees of some rows: the texts of every shown column."""
        return shown_cells(self.shown, rows)

    def check_unchanged(self, answers: Answers, rows: AnyArray) -> None:
        """Raise a ValueError if ids no longer name the rows that were asked for.

        ``rows`` are the positions of the rows that were asked for.
        """
        check_same_rows(
            answers.frame,
            answers.path,
            self.shown,
            self.file.path,
            rows,
            are_numbered=is_row_number(self.file, self.id),
        )


def _default_id(file: DataReader, answers: Path | None) -> str:
    """Return the column of ids of a file for which none was named."""
    if isinstance(file, FeatureFile) or ROW in file.columns:
        return ROW
    # Files of answers that an earlier version began number the rows of a table from 0.
    if answers is not None and has_content(answers):
        columns = open_table(answers).columns
        if ROW in columns and FILE_ROW not in columns:
            return ROW
    return FILE_ROW


def _find_target(file: DataReader, id: str, target: str | None) -> str:
    """Return the column of classes; ValueError if it is not clear which one is meant.

    A target that the file does not have is a new column, as long as its name is not
    like that of a column, which is more likely a typing error.
    """
    if _has_only_features(file, id):
        return target or LABEL
    if target is None and LABEL not in file.columns:
        likely = _columns_like_classes(file, id)
        others = [name for name in file.columns if name not in (id, *likely)]
        names = quoted_list([*likely, *others], MAX_LISTED_COLUMNS)
        raise ValueError(say(_WHICH_TARGET, path=file.path, names=names))
    if target is None or target in file.columns:
        return target or LABEL

    name_by_folded = {name.strip().casefold(): name for name in file.columns}
    folded = target.strip().casefold()
    for match in get_close_matches(folded, name_by_folded, 1, _MIN_SIMILARITY):
        similar = name_by_folded[match]
        sentence = _SIMILAR_TARGET
        raise ValueError(say(sentence, path=file.path, target=target, similar=similar))
    return target


def _has_only_features(file: DataReader, id: str) -> bool:
    """Return whether a file is an array without a column that could hold classes."""
    if not isinstance(file, FeatureFile):
        return False
    return {*file.columns} <= {id, *file.features}


def _columns_like_classes(file: DataReader, id: str) -> list[str]:
    """Return the columns of a file that look like classes, the likeliest first.

    These have few different values, which are not numbers with fractions. The emptiest
    column comes first, because labels are few, and then that with the fewest values.
    """
    lists = {*chain(*file.lists.values())}
    names = [name for name in file.columns if name != id and name not in lists]
    rows = file.read(names)
    is_nested = require_for_tables("pyarrow").types.is_nested
    counts = {}
    for name in names:
        if is_nested(rows.schema.field(name).type):
            continue
        cells = to_pandas_frame(rows.select([name]))[name].dropna()
        values = cells.unique()
        has_fractions = cells.dtype.kind == "f" and (cells % 1 != 0).any()
        if 2 <= len(values) <= _MAX_PLAUSIBLE_CLASSES and not has_fractions:
            counts[name] = (len(cells), len(values))
    return sorted(counts, key=counts.__getitem__)
