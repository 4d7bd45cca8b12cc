"""Read a table and its labels from one file, or from two."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._messages import ColumnError, Hint, Text, quoted_list
from .files import TableFile, digest_of, open_table
from .frames import (
    frame_of,
    notes_on_numbers,
    refuse_infinity,
    stacked,
    without_empty_columns,
    without_row_numbers,
)
from .labels import labels_of, notes_on_marks

_MOST_NAMES = 12


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
    """

    features: Any
    labels: AnyArray
    target: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()

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
) -> Table:
    """Read a CSV or Parquet file of labeled and unlabeled rows.

    Labels are text. Numbers among them are written the short way if all are numbers: 1, 1.0 and
    "1" are one class, "1". Blanks around a label do not count. A row is unlabeled where its target
    is empty, or ``unlabeled``. Words such as NA and ? are empty cells in the other columns and
    classes in this one, with a note that says so.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv or .txt file (also .gz) or a .parquet file.
    target : str
        Name of the column that holds the classes.
    unlabeled : str, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        Another file with the same columns, all of whose rows count as unlabeled.
    drop : sequence of str, default=()
        Columns to leave out.

    Returns
    -------
    table : Table
        Features, labels, and where they came from.
    """
    file = open_table(Path(path))
    _require_columns(file, [target, *drop])
    if target in drop:
        raise ValueError(f"Column {target!r} is the target and cannot be dropped.")
    rows = file.read(as_text=[target])
    if not rows.num_rows:
        raise ValueError(f"{path} holds no rows below the names of its columns.")
    labels = labels_of(rows[target], file.path, target, unlabeled)
    features = frame_of(rows.drop_columns([target, *dict.fromkeys(drop)]))
    refuse_infinity(features, file)
    notes = notes_on_marks(labels, target)
    features, more_notes = without_row_numbers(features)
    notes += [*more_notes, *notes_on_numbers(features, file)]
    sources = [Source(str(path), digest_of(file.path), len(features))]
    if unlabeled_file is not None:
        more = _read_unlabeled(open_table(Path(unlabeled_file)), features, file.path)
        features = stacked(features, more, file.path, Path(unlabeled_file))
        sources.append(Source(str(unlabeled_file), digest_of(Path(unlabeled_file)), len(more)))
        labels = np.concatenate([labels, np.full(len(more), None)])
    features, more_notes = without_empty_columns(features, file.path)
    return Table(features, labels, target, tuple(sources), (*notes, *more_notes))


def _read_unlabeled(file: TableFile, features: Any, first: Path) -> Any:
    """The columns of the first file from a second one."""
    lacking = [name for name in features.columns if name not in file.columns]
    if lacking:
        raise ColumnError(
            Text(
                f"{file.path} lacks {quoted_list(lacking, _MOST_NAMES)} of {first}: the unlabeled "
                "rows need the same columns, in any order. Leave a column out of both by ",
                Hint("drop"),
                ".",
            ),
            column=lacking[0],
        )
    frame = frame_of(file.read(as_text=[]).select(list(features.columns)))
    if frame.empty:
        raise ValueError(f"{file.path} holds no rows below the names of its columns.")
    refuse_infinity(frame, file)
    return frame


def _require_columns(file: TableFile, names: Sequence[str]) -> None:
    for name in names:
        if name not in file.columns:
            alike = [each for each in file.columns if each.casefold() == name.strip().casefold()]
            close = alike or difflib.get_close_matches(name, file.columns, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ColumnError(
                f"{file.path} has no column {name!r}.{hint} Its columns are "
                f"{quoted_list(file.columns, _MOST_NAMES)}.",
                column=name,
            )
