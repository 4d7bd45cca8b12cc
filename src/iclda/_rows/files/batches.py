"""Rows that come in batches, from the start every time: whatever can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import count
from typing import Any

import numpy as np

from ..._core.types import AnyArray
from ..base import check_names
from .arrays import check_dtype
from .reader import ArrayChunk, Chunk, Reader, TableChunk
from .tables import Columns, table_columns, table_dtypes

# A new iterator over batches; of the columns of these names, of about so many rows, if it can.
Factory = Callable[["list[str] | None", int], Iterable[Any]]

_HEAD = 16  # first rows that must come first every time


def open_batches(
    make: Callable[[], Iterable[Any]],
    name: str,
    *,
    n_rows: int | None = None,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Reader:
    """A reader of arrays or of tables: the first batch that holds rows tells which."""
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
    reader.remember(first)
    if feature_names is not None:
        reader = reader.with_names(feature_names)
    if n_features not in (None, reader.n_features):
        raise ValueError(
            f"{name}: batches have {reader.n_features} columns, but n_features={n_features}."
        )
    return reader


def _first_batch(make: Callable[[], Iterable[Any]], name: str) -> Any:
    """The first batch that holds rows; TypeError if the batches can be read only once."""
    batches = _made(make, name)
    iterator = _iterator(batches, name)
    if iterator is _iterator(batches if iterator is not batches else _made(make, name), name):
        raise TypeError(
            f"{name} can be read only once: its factory returned the same iterator twice. Every "
            "call must return a new one that starts from the first row."
        )
    return next((batch for batch in _each(iterator, name) if _length(batch) > 0), None)


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

    def __init__(self, factory: Factory, name: str, n_rows: int | None) -> None:
        super().__init__(name)
        self._factory = factory
        self.n_rows = n_rows
        self._heads: dict[str | int, AnyArray] = {}  # first entries of every column read so far

    def with_names(self, names: Sequence[str]) -> _Batches:
        """The same rows: arrays whose columns have these names, or these columns of tables."""
        raise NotImplementedError

    def remember(self, first: Any) -> None:
        """Take a batch for the first one: every later read must begin with the same rows."""
        raise NotImplementedError

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        begin = 0
        for number, batch in enumerate(_each(self._batches(n_rows), self.name)):
            if _length(batch) == 0:
                continue
            chunk = self._chunk(batch, f"batch {number}", begin)
            if begin == 0:
                self._check_head(chunk)
            yield chunk
            begin += len(chunk)
            if wanted is not None and begin > wanted[-1]:
                break
        if begin == 0 and self._heads:
            raise ValueError(
                f"{self.name} changed between two passes: block 0 and all others were missing, it "
                "gave its rows only once. Every call of the factory must return a new iterator "
                "that starts from the first row."
            )

    def _check_head(self, chunk: Chunk) -> None:
        """ValueError if another read began with other rows: a shuffle, or one that went on."""
        rows = np.empty((min(_HEAD, len(chunk)), self.n_features), self.dtype)
        chunk.fill(rows, 0)
        for column, now in zip(self._head_columns, rows.T, strict=True):
            first = self._heads.setdefault(column, now)
            n_both = min(len(first), len(now))
            if not np.array_equal(first[:n_both], now[:n_both], equal_nan=True):
                raise ValueError(
                    f"{self.name} changed between two passes: {chunk.where} (block 0) begins with "
                    "other rows than before. Every call of the factory must start from the first "
                    "row, and give the rows in the same order."
                )

    @property
    def _head_columns(self) -> Sequence[str | int]:
        return range(self.n_features)

    def _batches(self, n_rows: int) -> Iterable[Any]:
        return _made(lambda: self._factory(None, n_rows), self.name)

    def _chunk(self, batch: Any, where: str, begin: int) -> Chunk:
        raise NotImplementedError


class ArrayBatches(_Batches):
    """Batches that are arrays."""

    kind = "batches of arrays"

    def __init__(self, factory: Factory, name: str, first: Any, n_rows: int | None) -> None:
        super().__init__(factory, name, n_rows)
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

    def remember(self, first: Any) -> None:
        self._heads.update(enumerate(_array(first, self.name)[:_HEAD].T.copy()))

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
        super().__init__(factory, name, n_rows)
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

    def remember(self, first: Any) -> None:
        head = first.slice(0, _HEAD) if hasattr(first, "num_rows") else first[:_HEAD]
        for column in self._columns.names:
            # Columns that cannot be read need not be: which are is not decided yet.
            with suppress(TypeError, ValueError):
                (values,) = table_columns(head, [column], self.name, 0)
                self._heads[column] = values.copy()

    @property
    def _head_columns(self) -> Sequence[str | int]:
        return self._columns.names

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
