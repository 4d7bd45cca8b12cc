"""What the user passes: which files it means, and which reader it gets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..open import is_path
from .batches import TableBatches
from .readers import DEFAULT_MEMORY, MappedArray, NumpyFiles, Reader
from .tables import ParquetFiles

FORMATS = {".npy": "npy", ".parquet": "parquet", ".pq": "parquet"}


def files_of(X: Any, name: str) -> tuple[str, list[Path]]:
    """Format and files, in order of their names within a folder or pattern."""
    given = [X] if isinstance(X, (str, os.PathLike)) else list(X)
    files = [file for path in given for file in _expanded(os.fspath(path), name)]
    formats = {FORMATS.get(file.suffix.lower(), "") for file in files}
    if len(formats) > 1:
        shown = ", ".join(str(file) for file in files[:3])
        raise ValueError(f"{name} mixes files of several formats ({shown}): pass those of one.")
    found = formats.pop()
    if not found:
        raise ValueError(
            f"{name}: unknown format of {files[0]}. Files that end in "
            f"{', '.join(FORMATS)} are read; for others pass a pyarrow dataset, a polars "
            "LazyFrame, or iclda.rows.from_batches."
        )
    return found, files


def _expanded(path: str, name: str) -> list[Path]:
    path = path if os.path.exists(path) else os.path.expanduser(path)
    if os.path.isdir(path):
        found = [file for file in sorted(Path(path).rglob("*")) if _is_data(file, Path(path))]
        rule = f"no file that ends in {', '.join(FORMATS)}"
    elif os.path.exists(path):
        return [Path(path)]
    elif not has_magic(path):
        raise FileNotFoundError(f"{name}: there is no file {path}.")
    else:
        every = [Path(file) for file in sorted(glob(path, recursive=True)) if os.path.isfile(file)]
        found = [file for file in every if not _is_hidden(file, Path(path))]
        rule = "no file of that pattern (names that begin with _ or . are left out)"
    if not found:
        raise FileNotFoundError(f"{name}: {path} holds {rule}.")
    return found


def _is_data(file: Path, folder: Path) -> bool:
    """Not what engines leave beside their data: _SUCCESS, _metadata, hidden and temporary files."""
    is_hidden = _begins_hidden(file.relative_to(folder).parts)
    return file.suffix.lower() in FORMATS and not is_hidden and file.is_file()


def _is_hidden(file: Path, pattern: Path) -> bool:
    """Whether wildcards found a name that begins with _ or ., and the pattern does not say so."""
    parts = pattern.parts
    n_fixed = next(i for i, part in enumerate(parts) if has_magic(part))
    return _begins_hidden(file.parts[n_fixed:]) and not _begins_hidden(parts[n_fixed:])


def _begins_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)


@dataclass(frozen=True, repr=False)
class FileSource:
    """Rows that a classifier takes in place of an array."""

    reader: Reader
    memory: int = DEFAULT_MEMORY

    _iclda_backend = "files"

    def __repr__(self) -> str:
        n_rows = "?" if self.reader.n_rows is None else self.reader.n_rows
        return f"<{n_rows} x {self.reader.n_features} rows of {self.reader.kind}>"


def source_of(X: Any, name: str) -> FileSource:
    """X as a source; one that is a source already stays what it is."""
    return X if isinstance(X, FileSource) else FileSource(reader_of(X, name))


def is_table(X: Any) -> bool:
    """Whether it is a table of pyarrow in memory."""
    return (type(X).__module__.partition(".")[0], type(X).__name__) == ("pyarrow", "Table")


def reader_of(X: Any, name: str) -> Reader:
    """A reader of paths, a memory map, or what pyarrow and polars offer."""
    if isinstance(X, np.ndarray) and not (X.ndim == 1 and X.dtype.kind in "OTU"):
        return MappedArray(X, name)
    kind = (type(X).__module__.partition(".")[0], type(X).__name__)
    if kind == ("polars", "LazyFrame"):
        return _lazy_frame(X, name)
    if kind == ("pyarrow", "RecordBatchReader"):
        raise TypeError(
            f"{name} is a RecordBatchReader, which can be read only once, and rows are read "
            "several times: pass the dataset or table it came from, or "
            "iclda.rows.from_batches(function that makes a new one)."
        )
    if is_table(X):
        table = TableBatches(lambda names, size: X.to_batches(size), name, X.slice(0, 0), len(X))
        table.kind = "a pyarrow table"
        return table
    if kind[0] == "pyarrow" and hasattr(X, "scanner"):
        return _dataset(X, name)
    _check_paths(X, name)
    format_, files = files_of(X, name)
    return NumpyFiles(files, name) if format_ == "npy" else ParquetFiles(files, name)


def _check_paths(X: Any, name: str) -> None:
    """TypeError for what nothing here reads, with what is read."""
    if is_path(X):
        return
    is_column = len(getattr(X, "shape", ())) == 1
    if is_column or isinstance(X, (set, frozenset, Iterator)):
        raise TypeError(
            f"{name} is of type {type(X).__name__}: if it holds paths, pass list({name}), in the "
            "order in which they are to be read. Rows are 2-d; batches of rows come from "
            "iclda.rows.from_batches(function that makes a new iterator)."
        )
    if not isinstance(X, (list, tuple)):
        raise TypeError(
            f"{name} must be a path, a list of paths, a NumPy memory map, a pyarrow dataset or "
            f"table, or a polars LazyFrame, got {type(X).__name__}. Other arrays and tables, and "
            "what functions of iclda.rows return, are passed to a classifier as they are; for "
            "anything else that can be read again there is iclda.rows.from_batches."
        )
    if len(X) == 0:
        raise ValueError(f"{name} is an empty list: pass the path of at least one file.")
    if not any(map(is_path, X)):
        raise TypeError(
            f"{name} is a list of {type(X[0]).__name__}, and must be one of paths. For a list of "
            "arrays or tables pass iclda.rows.from_batches(lambda: the_list)."
        )
    other = next((i for i, path in enumerate(X) if not is_path(path)), None)
    if other is not None:
        raise TypeError(
            f"{name} is a list with paths in it, and must hold nothing else: entry {other} is of "
            f"type {type(X[other]).__name__}. Save it beside the others, or pass "
            "iclda.rows.from_batches(function that yields all parts)."
        )


class _Counted(TableBatches):
    """Batches of a table that knows a quick way to count its rows."""

    def __init__(self, factory: Any, name: str, first: Any, count: Any, kind: str) -> None:
        super().__init__(factory, name, first, None)
        self._count, self.kind = count, kind

    def count(self) -> int:
        return int(self._count())


def _dataset(dataset: Any, name: str) -> Reader:
    pyarrow = import_module("pyarrow")
    options = _careful_options(dataset)

    def batches(names: list[str] | None, size: int) -> Iterator[Any]:
        scanner = dataset.scanner(
            columns=names,
            batch_size=size,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=options,
        )
        try:
            yield from scanner.to_batches()
        except (OSError, pyarrow.ArrowException) as error:
            raise OSError(f"{name}: the dataset cannot be read ({error}).") from error

    schema = dataset.schema.empty_table()
    reader = _Counted(batches, name, schema, dataset.count_rows, "a pyarrow dataset")
    reader.watch([file for file in getattr(dataset, "files", ()) if os.path.exists(file)])
    return reader


def _careful_options(dataset: Any) -> Any:
    """Options for Parquet: hold no row group whole, verify checksums of pages."""
    module = import_module("pyarrow.dataset")
    if not isinstance(getattr(dataset, "format", None), module.ParquetFileFormat):
        return None
    return module.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False, page_checksum_verification=True
    )


def _lazy_frame(frame: Any, name: str) -> Reader:
    polars = import_module("polars")
    if not hasattr(frame, "collect_batches"):
        raise TypeError(
            f"{name} is a polars LazyFrame, and polars {polars.__version__} has no collect_batches "
            "to read it in parts: update polars, or write it to a file (sink_parquet) and pass "
            "its path."
        )

    def batches(names: list[str] | None, size: int) -> Iterator[Any]:
        chosen = frame if names is None else frame.select(names)
        with _polars_in_words(polars, name):
            found = chosen.collect_batches(chunk_size=size, maintain_order=True)
            try:
                yield from found
            finally:
                # A query runs to its end unless it is stopped.
                getattr(found, "stop", lambda: None)()

    def count() -> int:
        with _polars_in_words(polars, name):
            return int(frame.select(polars.len()).collect().item())

    with _polars_in_words(polars, name):
        first = polars.DataFrame(schema=frame.collect_schema())
    return _Counted(batches, name, first, count, "a polars LazyFrame")


@contextmanager
def _polars_in_words(polars: Any, name: str) -> Iterator[None]:
    """Errors of a query with the name of the argument, and without the plan of the query."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name}: the LazyFrame reads a file: {error}.") from error
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = str(error).strip().partition("\n")[0]
        is_of_file = isinstance(error, (OSError, polars.exceptions.ComputeError))
        kind = OSError if is_of_file else ValueError
        raise kind(
            f"{name}: the LazyFrame cannot be read ({type(error).__name__}: {reason}). "
            f"{name}.head().collect() shows the underlying error."
        ) from error
