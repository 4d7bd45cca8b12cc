"""Which reader a source gets."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .arrays import MappedArray, NumpyFiles
from .batches import TableBatches
from .parquet import ParquetFiles
from .paths import files_of
from .reader import Reader


def reader_of(X: Any, name: str) -> Reader:
    """A reader of paths, a memory map, or what pyarrow and polars offer."""
    if isinstance(X, np.ndarray):
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
    if kind == ("pyarrow", "Table"):
        return TableBatches(lambda names, size: X.to_batches(size), name, X.slice(0, 0), len(X))
    if kind[0] == "pyarrow":
        return _dataset(X, name)
    format_, files = files_of(X, name)
    return NumpyFiles(files, name) if format_ == "npy" else ParquetFiles(files, name)


class _Counted(TableBatches):
    """Batches of a table that knows a quick way to count its rows."""

    def __init__(self, factory: Any, name: str, first: Any, count: Any) -> None:
        super().__init__(factory, name, first, None)
        self._count = count

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

    return _Counted(batches, name, dataset.schema.empty_table(), dataset.count_rows)


def _careful_options(dataset: Any) -> Any:
    """Of Parquet: hold no row group whole."""
    module = import_module("pyarrow.dataset")
    if not isinstance(getattr(dataset, "format", None), module.ParquetFileFormat):
        return None
    return module.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)


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
        found = chosen.collect_batches(chunk_size=size, maintain_order=True)
        try:
            yield from found
        finally:
            # A query runs to its end unless it is told that nobody listens any more.
            getattr(found, "stop", lambda: None)()

    first = polars.DataFrame(schema=frame.collect_schema())
    return _Counted(batches, name, first, lambda: frame.select(polars.len()).collect().item())
