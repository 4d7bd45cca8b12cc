"""The rows of a file that a person may label: their ids, features, and cells to see."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._estimators.average import AverageLDA
from .._estimators.labels import FREE
from ..tabular.answer_files import LABEL, OWN_COLUMNS, ROW
from ..tabular.array_files import FeatureFile
from ..tabular.cells import require_for_tables, texts_of
from ..tabular.column_types import pipeline, preprocessing
from ..tabular.files import open_data
from ..tabular.frames import to_pandas_frame
from ..tabular.labels import Classes, RowPositions
from ..tabular.read_options import ReadOptions
from ..tabular.table import with_classes
from .answers import Answers

# All columns of text are shown to a person, and at most this many others.
_MAX_SHOWN_OTHER_COLUMNS = 8
# Numbers count as equal up to this relative difference, since a spreadsheet may round.
_SPREADSHEET_PRECISION = 1e-3


class Pool:
    """The rows of a file that may be labeled: their ids, features, and cells to see.

    Attributes
    ----------
    id, target : str
        Names of the columns of ids and of classes.
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
        self, path: Path, id: str = ROW, target: str = LABEL, *, strict: bool = False
    ) -> None:
        self.id = id
        self.target = target
        file = open_data(path, [id])
        file.hold(file.columns, texts=[id, target])
        self.file = file
        self.is_array = isinstance(file, FeatureFile)
        self.positions = RowPositions(file, id)
        self.ids = [*self.positions]
        if target in file.columns:
            cells = file.column(target)
        else:
            # No row has a label yet.
            cells = require_for_tables("pyarrow").nulls(file.n_rows, "string")
        # Columns of names and texts are for the person, not for the model.
        options = ReadOptions(target, strict=strict, id=id)
        self.table = with_classes(file, Classes(target, cells), options)
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
        frame = self.shown.iloc[rows]
        cells: dict[str, list[str]] = {}
        for name in frame.columns:
            texts = texts_of(frame[name], empty=("",))
            cells[name] = ["" if text is None else text for text in texts]
        return cells

    def check_unchanged(self, answers: Answers, rows: AnyArray) -> None:
        """Raise a ValueError if ids no longer name the rows that were asked for.

        The file of answers repeats some cells of every row that it asks for. If more
        than half of these rows look different now, the file of the rows was replaced.
        ``rows`` are the positions of the rows that were asked for.
        """
        asked = answers.frame
        columns = [name for name in asked.columns if self._is_text_or_number(name)]
        pandas = require_for_tables("pandas")
        current = pandas.DataFrame(self.cells(rows), columns=columns, index=asked.index)

        # A spreadsheet may have rewritten 0.5 as 0,5, or rounded it: what can be read
        # as a number is compared as one.
        asked_numbers = _to_numbers(asked[columns].replace(",", ".", regex=True))
        is_same_number = np.isclose(
            _to_numbers(current), asked_numbers, rtol=_SPREADSHEET_PRECISION
        )
        is_same = is_same_number | (current == asked[columns])
        n_changed = int((~is_same.all(axis=1)).sum())
        if 2 * n_changed > len(rows):
            raise ValueError(
                f"{answers.path} shows other rows than {self.file.path} has now: "
                f"{n_changed} of {len(rows)} differ. Bring back the file that they "
                "were taken from, or name another file of rows to label, which will "
                "be created."
            )

    def _is_text_or_number(self, name: str) -> bool:
        """Return whether a column is shown and holds text or numbers.

        Others, such as dates and truth values, may look different after a spreadsheet.
        """
        return name in self.shown and self.shown[name].dtype.kind in "Oiuf"


def _to_numbers(frame: Any) -> Any:
    """Return the numbers in a frame of text, NaN for other text."""
    pandas = require_for_tables("pandas")
    return frame.apply(pandas.to_numeric, errors="coerce")
