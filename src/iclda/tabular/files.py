"""Table files: which kind, which columns, and their rows, at once or in blocks of constant size."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .._paths import check_readable
from .dialect import EMPTY_WORDS, Dialect, find_dialect, refuse_open_quote, refuse_repeated_names
from .requirements import require

_CSV_SUFFIXES, _PARQUET_SUFFIXES = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
_BLOCK_BYTES, _BATCH_ROWS = 1 << 20, 1 << 14
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_KINDS = {"double": "a number", "bool": "true or false", "string": "UTF-8 text"}


class TableFile(Protocol):
    """A file with named columns."""

    path: Path
    columns: tuple[str, ...]
    first_row: int  # the number of the first row of data, as a person counts
    zero_padded: tuple[str, ...]  # columns with codes such as 01004, as far as was looked
    index: tuple[str, ...]  # columns that were the index of a frame

    def read(self, as_text: Sequence[str]) -> Any:
        """All rows as an Arrow table; the columns named are text as it stands in the file."""

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Blocks of rows of some columns in these Arrow types, each with the share read so far."""


def open_table(path: Path) -> TableFile:
    """A file by its suffix; ValueError if it is none that can be read."""
    path = Path(path)
    check_readable(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    last = suffixes[-2] if is_packed and len(suffixes) > 1 else "".join(suffixes[-1:])
    with _explained(path):
        if last in _CSV_SUFFIXES:
            return CsvFile(path, is_packed, "\t" if last == ".tsv" else None)
        if last in _PARQUET_SUFFIXES and not is_packed:
            return ParquetFile(path)
    raise ValueError(
        f"{path}: tables are read from .csv, .tsv and .txt files (also .gz) and from .parquet "
        f"files, got {''.join(suffixes) or 'no suffix'!r}. Save the table as CSV."
    )


def digest_of(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class CsvFile:
    """Text with a delimiter; the first row names the columns."""

    first_row = 2

    def __init__(self, path: Path, is_packed: bool, delimiter: str | None) -> None:
        self.path, self.is_packed = path, is_packed
        with self._opened() as file:
            self.dialect: Dialect = find_dialect(path, file, delimiter)
        self.columns = self.dialect.columns
        self.zero_padded = self.dialect.zero_padded
        self.index: tuple[str, ...] = ()

    def read(self, as_text: Sequence[str]) -> Any:
        """All rows; columns are numbers, booleans, dates or text by what all their cells hold."""
        csv, text = require("pyarrow.csv"), require("pyarrow").string()
        refuse_open_quote(self.path, self._opened, self.dialect)
        with _explained(self.path, self.columns), self._streamed() as (file, _):
            options = self._options(column_types=dict.fromkeys(as_text, text))
            return csv.read_csv(file, **options)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Blocks of a megabyte of text each; of those, pyarrow reads some tens ahead."""
        size, done = max(self.path.stat().st_size, 1), 0
        refuse_open_quote(self.path, self._opened, self.dialect)
        with _explained(self.path, self.columns), self._streamed() as (file, raw):
            options = self._options(include_columns=list(types), column_types=dict(types))
            with require("pyarrow.csv").open_csv(file, **options) as reader:
                for batch in reader:
                    done = raw.tell() if self.is_packed else done + _BLOCK_BYTES
                    yield batch, min(done / size, 1.0)

    def _opened(self) -> Any:
        return gzip.GzipFile(self.path) if self.is_packed else self.path.open("rb")

    @contextmanager
    def _streamed(self) -> Iterator[tuple[Any, Any]]:
        """The text and the bytes of the file, as streams of pyarrow.

        Its threads read ahead: a file of Python under them would need the interpreter, which may
        be on its way out after an interruption.
        """
        arrow = require("pyarrow")
        with arrow.OSFile(str(self.path)) as raw:
            yield arrow.CompressedInputStream(raw, "gzip") if self.is_packed else raw, raw

    def _options(self, **conversion: Any) -> dict[str, Any]:
        csv = require("pyarrow.csv")
        return {
            "read_options": csv.ReadOptions(
                use_threads=False,  # rows are numbered in errors by one thread only
                block_size=_BLOCK_BYTES,
                encoding=self.dialect.encoding,
                column_names=list(self.columns),
                skip_rows_after_names=self.dialect.n_header_rows,
            ),
            "parse_options": csv.ParseOptions(
                delimiter=self.dialect.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.columns) > 1,
            ),
            "convert_options": csv.ConvertOptions(
                decimal_point=self.dialect.decimal,
                null_values=list(EMPTY_WORDS),
                **conversion,
            ),
        }


class ParquetFile:
    """Columns with types, as pandas, polars or Arrow write them."""

    first_row = 1

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as file:
            self.schema = file.schema_arrow
        self.columns = tuple(self.schema.names)
        refuse_repeated_names(str(path), self.columns)
        self.zero_padded: tuple[str, ...] = ()
        written = (self.schema.pandas_metadata or {}).get("index_columns", ())
        self.index = tuple(name for name in written if name in self.columns)

    def read(self, as_text: Sequence[str]) -> Any:
        """All rows; columns have types in the file, and stay what they are."""
        with _explained(self.path), self._opened() as file:
            return file.read()

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Blocks of rows in the types of the file."""
        done = 0
        with _explained(self.path), self._opened() as file:
            n_rows = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(types), use_threads=False):
                done += batch.num_rows
                yield batch, done / n_rows

    def _opened(self) -> Any:
        # Buffered: a row group is read page by page, not held as a whole.
        return require("pyarrow.parquet").ParquetFile(
            self.path, buffer_size=_BLOCK_BYTES, pre_buffer=False
        )


@contextmanager
def _explained(path: Path, columns: Sequence[str] = ()) -> Iterator[None]:
    """Errors of readers in the words of the user: file, row and column."""
    arrow = require("pyarrow")
    try:
        yield
    except (KeyboardInterrupt, PermissionError):  # pyarrow's own interrupt is an error of it too
        raise
    except (arrow.ArrowException, EOFError, zlib.error, UnicodeError, OSError) as error:
        raise ValueError(f"{path}{_reason(str(error), columns)}") from error


def _reason(message: str, columns: Sequence[str]) -> str:
    if match := _BAD_CELL.search(message):
        column, row, wanted, found = match.groups()
        found = found.removeprefix("invalid value ")
        name, kind = columns[int(column)], _KINDS.get(wanted, wanted)
        return f", row {row}, column {name!r}: must hold {kind}, got {found}."
    if match := _RAGGED.search(message):
        row, expected, got = match.groups()
        return f", row {row}: {expected} columns are named in row 1, got {got} cells."
    if "straddling" in message:
        return ": a row is over a megabyte of text."
    if "utf8" in message.lower() or "decode" in message:
        return ": cannot be read as text, save it as UTF-8."
    return f" cannot be read: it is damaged or no such table ({message.splitlines()[0]})."
