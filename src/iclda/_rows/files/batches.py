"""Rows that come in batches, from the start every time: whatever can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import count
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from ..base import changed, check_names
from .readers import ArrayChunk, Chunk, Reader, TableChunk, check_dtype
from .tables import Columns, table_columns, table_dtypes

# A new iterator over batches; of the columns of these names, of about so many rows, if it can.
Factory = Callable[["list[str] | None", int], Iterable[Any]]

_COMPARED = 16  # first rows, that two calls of a factory must both begin with


def open_batches(
    make: Callable[[], Iterable[Any]],
    name: str,
    *,
    n_rows: int | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Reader:
    """A reader of arrays or of tables, as the first batch that holds rows is."""
    first = _first_batch(make, name)
    if first is None:
        if n_features is None:
            raise ValueError(f"{name} gave no rows; pass n_features if that is right.")
        first, n_rows = np.zeros((0, n_features)), 0
    elif n_rows == 0:
        raise ValueError(
            f"n_rows=0, but the first batch of {name} has {_length(first)} rows: pass how many "
            "there are in all, or None, and they are counted."
        )
    reader = _reader(lambda names, size: make(), name, first, n_rows)
    reader.n_rows_by = "" if n_rows is None else f" (n_rows={n_rows} of iclda.rows.from_batches)"
    if feature_names is not None:
        reader = reader.with_names(feature_names)
    if n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name}: batches have {reader.n_features} columns, but n_features={n_features}."
        )
    return reader


def _first_batch(make: Callable[[], Iterable[Any]], name: str) -> Any:
    """The first batch that holds rows, None if none does; an error if it comes only once."""
    one, other = (_iterator(_made(make, name), name) for _ in range(2))
    if one is other:
        raise TypeError(
            f"{name} can be read only once: its factory returned the same iterator twice. Every "
            "call must return a new one that starts from the first row."
        )
    first, again = (
        next((batch for batch in _each(batches, name) if _length(batch) > 0), None)
        for batches in (one, other)
    )
    if first is not None and (again is None or _beginning(first) != _beginning(again)):
        raise ValueError(
            f"{name} begins with other rows, or none, when its factory is called again. Every call "
            "must return a new iterator that starts from the first row, and give the rows in the "
            "same order."
        )
    return first


def _beginning(batch: Any) -> str:
    """The first rows as text, in which NaN equals NaN."""
    few = batch.slice(0, _COMPARED) if hasattr(batch, "num_rows") else batch[:_COMPARED]
    return repr(few.to_pylist() if hasattr(few, "to_pylist") else np.asarray(few).tolist())


def _reader(factory: Factory, name: str, first: Any, n_rows: int | None) -> _Batches:
    kind = ArrayBatches if table_dtypes(first, name) is None else TableBatches
    return kind(factory, name, first, n_rows)


def _made(make: Callable[[], Iterable[Any]], name: str) -> Iterable[Any]:
    try:
        return make()
    except Exception as error:
        error.add_note(f"Raised by the factory of batches that was passed for {name}.")
        raise


def _iterator(batches: Any, name: str) -> Iterator[Any]:
    try:
        return iter(batches)
    except TypeError:
        raise TypeError(
            f"{name}: the factory must return an iterable of batches, got "
            f"{type(batches).__name__}. A function may yield its batches, or return a list."
        ) from None


def _each(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """All batches; what is open is closed when the consumer stops."""
    iterator = _iterator(batches, name)
    try:
        for number in count():
            try:
                batch = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"Raised while batch {number} of {name} was made.")
                raise
            _check_batch(batch, f"{name}: batch {number}")
            yield batch
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


def _check_batch(batch: Any, where: str) -> None:
    """TypeError for what is no array and no table."""
    kind = type(batch)
    if kind.__module__.startswith("scipy.sparse"):
        raise TypeError(f"{where} is a sparse {kind.__name__}: pass batch.toarray().")
    if not hasattr(batch, "num_rows") and not hasattr(kind, "__len__"):
        raise TypeError(
            f"{where} must be a 2-d array or a table of pyarrow, polars or pandas, got "
            f"{kind.__name__}."
        )


def _length(batch: Any) -> int:
    return int(batch.num_rows if hasattr(batch, "num_rows") else len(batch))


class _Batches(Reader):
    """The rows of all batches; no row can be reached but through those before it."""

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(name)
        self._factory = factory
        self._n_first = _length(first)  # rows of the first batch, if it was read
        self.n_rows = n_rows

    def with_names(self, names: Sequence[str]) -> _Batches:
        """The same rows: arrays whose columns have these names, or these columns of tables."""
        raise NotImplementedError

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for number, batch in enumerate(_each(self._batches(n_rows), self.name)):
            if _length(batch) == 0:
                continue
            chunk = self._chunk(batch, f"batch {number}", begin)
            yield chunk
            begin += len(chunk)
            if wanted is not None and begin > wanted[-1]:
                break
        else:
            if begin < self._n_first:
                raise changed(
                    self.name, f"it gave {begin} rows, and at least {self._n_first} before"
                )

    def _batches(self, n_rows: int) -> Iterable[Any]:
        return _made(lambda: self._factory(None, n_rows), self.name)

    def _chunk(self, batch: Any, where: str, begin: int) -> Chunk:
        raise NotImplementedError


class ArrayBatches(_Batches):
    """Batches that are arrays."""

    kind = "batches of arrays"

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(factory, name, first, n_rows)
        array = _array(first, f"{name}: batch 0")
        self.n_features, self._dtype = int(array.shape[1]), array.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def with_names(self, names: Sequence[str]) -> ArrayBatches:
        if len(names) != self.n_features:
            raise ValueError(
                f"{self.name}: batches have {self.n_features} columns, but {len(names)} names "
                "were given."
            )
        other = copy(self)
        other.feature_names = [str(one) for one in names]
        return other

    def selected(self, names: Sequence[str]) -> ArrayBatches:
        """The same rows; ValueError if their columns have other names, or another order."""
        way_out = (
            "Put the columns of the batches, and feature_names, into the order of "
            "feature_names_in_."
        )
        check_names(self.feature_names or [], names, self.name, way_out)
        return self

    def _chunk(self, batch: Any, where: str, begin: int) -> Chunk:
        rows = _array(batch, f"{self.name}: {where}")
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name}: {where} (from row {begin} on) has {rows.shape[1]} columns, but the "
                f"first one has {self.n_features}: all batches must have the same columns."
            )
        if rows.dtype != self.dtype:
            raise ValueError(
                f"{self.name}: {where} (from row {begin} on) holds {rows.dtype}, but the first one "
                f"holds {self.dtype}: give all batches one dtype (astype)."
            )
        return ArrayChunk(begin, where, rows)


def _array(batch: Any, where: str) -> AnyArray:
    rows = np.asarray(batch)
    if rows.ndim != 2:
        raise ValueError(
            f"{where} must be 2-d, rows x features, got shape {rows.shape}. The factory returns a "
            "list of batches, or yields them."
        )
    check_dtype(rows.dtype, where)
    return rows


class TableBatches(_Batches):
    """Batches that are tables of pyarrow, polars or pandas."""

    kind = "batches of tables"
    order = "F"  # a table is copied column by column

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(factory, name, first, n_rows)
        self._take(Columns(table_dtypes(first, name) or {}))

    def _take(self, columns: Columns) -> None:
        self._columns = columns
        self.feature_names, self.n_features = columns.names, len(columns.names)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._columns.dtype_in(self.name)

    def selected(self, names: Sequence[str]) -> TableBatches:
        other = copy(self)
        other._take(self._columns.selected(names, self.name))
        return other

    def with_names(self, names: Sequence[str]) -> TableBatches:
        return self.selected(names)

    def _batches(self, n_rows: int) -> Iterable[Any]:
        return _made(lambda: self._factory(self._columns.names, n_rows), self.name)

    def _chunk(self, batch: Any, where: str, begin: int) -> Chunk:
        place = f"{self.name}: {where} (from row {begin} on)"
        dtypes = table_dtypes(batch, place)
        if dtypes is None:
            raise ValueError(
                f"{place} is no table with named columns, as the first one is, but "
                f"{type(batch).__name__}: give all batches the same type."
            )
        self._columns.compare(dtypes, place, "the first one")
        return TableChunk(begin, where, table_columns(batch, self._columns.names, place, begin))
