"""Array files: .npy and .npz files and folders of .npy files, whose features have no names."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._rows.backends import check_finite
from .._rows.readers import Reader, reader_of
from .encoders import require_for_tables

_BATCH_ROWS = 1 << 14
_NUMBER = re.compile("[0-9]+")


def feature_names(n_features: int) -> list[str]:
    """Names of features that have none."""
    return [f"feature_{k}" for k in range(n_features)]


class FeatureFile:
    """Rows of an array, with columns feature_0, feature_1, ...

    Arrays of an .npz file with one entry a row are columns, too. Names in ``ids`` that the file
    does not have are columns that number the rows from 0.
    """

    def __init__(self, path: Path, ids: Sequence[str] = ()) -> None:
        self.path = self.file = path
        self._files = _shards(path) if path.is_dir() else [path]
        self.rows, beside = _open(path, self._files)
        self.rows.name = str(path)
        self.n_rows = int(self.rows.n_rows or 0)
        self.features = feature_names(self.rows.n_features)
        self.lists = {"features": self.features}
        self._beside = {**dict.fromkeys(ids, np.arange(self.n_rows)), **beside}
        self.columns = (*self._beside, *self.features)

    def column(self, name: str) -> Any:
        """Return the entries of an array beside the features, as an Arrow column."""
        return require_for_tables("pyarrow").chunked_array([self._beside[name].tolist()])

    def read(self, names: Sequence[str]) -> Any:
        """Return arrays beside the features as an Arrow table."""
        return require_for_tables("pyarrow").table({name: self.column(name) for name in names})

    def take(self, is_taken: AnyArray) -> Any:
        """Return the features of some rows as a pandas frame, whose index has their positions."""
        index = np.flatnonzero(is_taken)
        values = self.rows.read_rows(index).astype(np.float64, copy=False)
        return require_for_tables("pandas").DataFrame(values, index, self.features)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types``, and the share of the rows so far."""
        arrow, names = require_for_tables("pyarrow"), self.features
        for span in self.rows.spans(_BATCH_ROWS):
            block = np.empty((span.n_rows, len(names)), order="F")
            span.read(block, 0)
            check_finite(block, span.where, names, index=range(span.start, span.stop))
            columns = dict(zip(names, block.T, strict=True))
            part = slice(span.start, span.stop)
            columns |= {name: each[part].astype(str) for name, each in self._beside.items()}
            chosen = {name: arrow.array(columns[name], kind) for name, kind in types.items()}
            yield arrow.RecordBatch.from_pydict(chosen), span.stop / self.n_rows

    def sha256(self) -> str:
        """Checksum of the bytes of all files."""
        return sha256_of(self._files)


def sha256_of(files: Sequence[Path]) -> str:
    """Return the checksum of the bytes of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return digest.hexdigest()


def _shards(folder: Path) -> list[Path]:
    """Return the .npy files of a folder in the order of their names.

    A ValueError if numbers in names that are alike otherwise have another order: rows and labels
    might not match.
    """
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise ValueError(
            f"{folder} is a folder without .npy files: name one that has some, or a file."
        )
    keys = [(_NUMBER.sub("", f.name), [*map(int, _NUMBER.findall(f.name))]) for f in files]
    for k in range(1, len(files)):
        if keys[k - 1][0] == keys[k][0] and keys[k - 1] > keys[k]:
            raise ValueError(
                f"{folder} is read in the order of names, and {files[k - 1].name} comes before "
                f"{files[k].name}: write numbers with leading zeros, so that rows and labels match."
            )
    return files


def _open(path: Path, files: Sequence[Path]) -> tuple[Reader, dict[str, AnyArray]]:
    """Return a reader of the rows, and the arrays with one entry a row beside them."""
    if path.suffix.lower() != ".npz":
        return reader_of(list(files), "Features"), {}
    try:
        with np.load(path, allow_pickle=False) as opened:
            arrays = dict(opened)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        way_out = "save it again, with arrays of numbers and text alone"
        raise ValueError(f"{path} cannot be read ({error}): {way_out}.") from error
    names = [name for name, array in arrays.items() if array.ndim == 2]
    if len(names) != 1:
        held = ", ".join(f"{name!r} of shape {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"{path} must hold one array of rows x features, got {len(names)} ({held}): save the "
            "features alone, by numpy.save."
        )
    rows = arrays.pop(names[0])
    beside = {name: array for name, array in arrays.items() if array.shape == (len(rows),)}
    return reader_of(rows, f"{path}, array {names[0]!r}"), beside
