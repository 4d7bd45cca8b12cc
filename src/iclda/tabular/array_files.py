"""Files of arrays: features without names, in one file, or in a folder of several.

Their features are read in blocks and never held as a table, because they may be larger
than memory: `FeatureFile.rows` is what a classifier fits to, and `FeatureFile.take`
makes a frame of some rows.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import say
from .._rows.checks import BadRowsError, check_finite
from .._rows.kinds import reader_of
from .._rows.readers import Reader
from .cells import require_for_tables
from .read_options import FILE_ROW, ROW
from .readers import BATCH_ROWS, DataReader, sha256_of

_DIGITS = re.compile("[0-9]+")
_NO_FILE_ROW = (
    "{path} is an array, whose rows count from 0, and {name!r} counts those of a "
    "table, which begin with row 2: pass {@id=row}. In a file of labels, rename the "
    "column to {id!r} and subtract 2 from its numbers."
)


class FeatureFile(DataReader):
    """Rows of an array, with columns feature_0, feature_1, ...

    Arrays of an .npz file with one entry for each row are columns, too. Names in
    ``ids`` that the file does not have are columns that number the rows from 0, but for
    `FILE_ROW`, which counts the rows of a table.

    Attributes
    ----------
    rows : Reader
        The features, to be read in blocks.
    features : list of str
        Names of the columns that are features.
    """

    first_row_number = 0

    def __init__(self, path: Path, ids: Sequence[str] = ()) -> None:
        self._files = _shards(path) if path.is_dir() else [path]
        self.rows, other_arrays = _open_arrays(path, self._files)
        self.rows.name = str(path)
        self.features = feature_names(self.rows.n_features)
        # All features can be named together, like those of a column of lists.
        self.lists = {"features": self.features}
        if FILE_ROW in {*ids} - {*other_arrays}:
            sentence = _NO_FILE_ROW
            raise ValueError(say(sentence, path=path, name=FILE_ROW, id=ROW))
        row_numbers = np.arange(self.n_rows)
        numbered_ids = dict.fromkeys(ids, row_numbers)
        # An array of the file that has the name of the ids replaces the numbers.
        self._other_columns = {**numbered_ids, **other_arrays}
        super().__init__(path, [*self._other_columns, *self.features])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.n_rows or 0)

    def column(self, name: str) -> Any:
        """Return the entries of an array other than the features as an Arrow column."""
        arrow = require_for_tables("pyarrow")
        return arrow.chunked_array([self._other_columns[name].tolist()])

    def read(self, names: Sequence[str]) -> Any:
        """Return arrays other than the features as an Arrow table."""
        arrow = require_for_tables("pyarrow")
        return arrow.table({name: self.column(name) for name in names})

    def take(self, is_taken: AnyArray) -> Any:
        """Return the features of some rows as a pandas frame, indexed by position."""
        pandas = require_for_tables("pandas")
        positions = np.flatnonzero(is_taken)
        values = self.rows.read_rows(positions)
        values = values.astype(np.float64, copy=False)
        return pandas.DataFrame(values, index=positions, columns=self.features)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        arrow = require_for_tables("pyarrow")
        for span in self.rows.spans(BATCH_ROWS):
            # In the order of columns, so that Arrow need not copy them.
            block = np.empty((span.n_rows, len(self.features)), order="F")
            span.read(block, 0)
            row_numbers = range(span.start, span.stop)
            check_finite(block, span.where, self.features, index=row_numbers)
            columns = dict(zip(self.features, block.T, strict=True))
            for name, entries in self._other_columns.items():
                entries_of_span = entries[span.start : span.stop]
                columns[name] = entries_of_span.astype(str)

            converted = {}
            for name, arrow_type in types.items():
                converted[name] = arrow.array(columns[name], arrow_type)
            batch = arrow.RecordBatch.from_pydict(converted)
            yield batch, span.stop / self.n_rows

    def sha256(self) -> str:
        """Return the checksum of the bytes of all files, one after the other."""
        return sha256_of(self._files)


def feature_names(n_features: int) -> list[str]:
    """Return names for features that have none."""
    return [f"feature_{k}" for k in range(n_features)]


def _shards(folder: Path) -> list[Path]:
    """Return the .npy files of a folder in the order of their names.

    ValueError if the numbers in names that are alike otherwise have another order,
    since rows and labels might not match.
    """
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise ValueError(
            f"{folder} is a folder without .npy files: name another, or a file."
        )
    for first, second in pairwise(files):
        is_alike = _DIGITS.sub("", first.name) == _DIGITS.sub("", second.name)
        if is_alike and _numbers_in(first.name) > _numbers_in(second.name):
            raise ValueError(
                f"{folder} is read in the order of names, and {first.name} comes "
                f"before {second.name}: write numbers with leading zeros, so that rows "
                "and labels match."
            )
    return files


def _numbers_in(name: str) -> list[int]:
    return [int(digits) for digits in _DIGITS.findall(name)]


def _open_arrays(
    path: Path, files: Sequence[Path]
) -> tuple[Reader, dict[str, AnyArray]]:
    """Return a reader of the rows, and further arrays with one entry for each row."""
    if path.suffix.lower() != ".npz":
        try:
            return reader_of(list(files), "Features"), {}
        except BadRowsError:
            if path.is_dir():
                _refuse_other_shapes(path, files)
            raise
    try:
        with np.load(path, allow_pickle=False) as opened:
            arrays = dict(opened)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): save it again, with arrays of numbers "
            "and text alone."
        ) from error
    names = [name for name, array in arrays.items() if array.ndim == 2]
    if len(names) != 1:
        shapes = [f"{name!r} of shape {array.shape}" for name, array in arrays.items()]
        raise ValueError(
            f"{path} must hold one array of rows x features, got {len(names)} "
            f"({', '.join(shapes)}): save the features alone, with numpy.save."
        )
    rows = arrays.pop(names[0])
    # Arrays of other shapes, such as names of classes, do not belong to the rows.
    other_arrays = {
        name: array for name, array in arrays.items() if array.shape == (len(rows),)
    }
    return reader_of(rows, f"{path}, array {names[0]!r}"), other_arrays


def _refuse_other_shapes(folder: Path, files: Sequence[Path]) -> None:
    """Raise a ValueError if a file of a folder of features holds no features."""
    for file in files:
        shape = np.load(file, mmap_mode="r").shape
        if len(shape) != 2:
            raise ValueError(
                f"All .npy files in {folder} are read as rows x features, but "
                f"{file.name} has shape {shape}: name the file with the features, or "
                "move other files to another folder."
            )
