"""Table files: CSV and Parquet, read at once or in blocks of constant size, written in blocks."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
import shutil
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from .._paths import check_readable
from .columns import COLUMN_TYPES
from .encoders import EMPTY_WORDS, require_for_tables

MOST_COLUMNS = 20_000  # of a table: each is looked at, and has a name and a type
_WAY_OUT = (
    f"tables may have at most {MOST_COLUMNS:,}: save those that matter in a file of their own, or "
    "pass the numbers as an array to a classifier in Python."
)
_TOO_LONG = "is over a megabyte of text. Shorten it, or save the table as .parquet."
_FIELD_LIMIT = "field limit"  # in the message of the csv module
STANDARD_INPUT = Path("-")
WRITTEN_SUFFIXES = (".csv", ".parquet")

_CSV_SUFFIXES, _PARQUET_SUFFIXES = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
_BLOCK_BYTES, _BATCH_ROWS = 1 << 20, 1 << 14
_DELIMITERS = (",", ";", "\t", "|")
_ZERO_PADDED = re.compile(r"0\d+")
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")

Append = Callable[[Mapping[str, Any]], None]  # columns by name: arrays of NumPy or Arrow


def open_table(path: Path) -> CsvReader | ParquetReader:
    """Open a file by its suffix, or standard input; ValueError if it cannot be read as a table."""
    if path == STANDARD_INPUT:
        return _open_standard_input()
    check_readable(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    last = suffixes[-2] if is_packed and len(suffixes) > 1 else "".join(suffixes[-1:])
    with _readable(path):
        if last in _CSV_SUFFIXES:
            return CsvReader(path, is_packed, "\t" if last == ".tsv" else None)
        if last in _PARQUET_SUFFIXES and not is_packed:
            return ParquetReader(path)
    raise ValueError(
        f"{path}: tables are read from .csv, .tsv and .txt files (also .gz) and from .parquet "
        f"files, got {''.join(suffixes) or 'no suffix'!r}. Save the table as CSV."
    )


def _open_standard_input() -> CsvReader | ParquetReader:
    """Standard input as a file of its own, which lives as long as the reader."""
    copy = Path(tempfile.mkdtemp(prefix="iclda-")) / "table"
    remove = partial(shutil.rmtree, copy.parent, ignore_errors=True)
    reader: CsvReader | ParquetReader
    with ExitStack() as unless_opened:
        unless_opened.callback(remove)
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with copy.open("rb") as file:
            start = file.read(4)
        with _readable(STANDARD_INPUT):
            if start == b"PAR1":
                reader = ParquetReader(STANDARD_INPUT, copy)
            else:
                reader = CsvReader(STANDARD_INPUT, start[:2] == b"\x1f\x8b", None, copy)
        unless_opened.pop_all()
    weakref.finalize(reader, remove)
    return reader


class TableReader:
    """A file with named columns."""

    path: Path  # as it was given, for messages
    file: Path  # that holds the rows

    first_row = 1  # of the data, as a person counts
    zero_padded: tuple[str, ...] = ()  # columns with codes such as 01004, in the rows looked at
    index: tuple[str, ...] = ()  # columns that were the index of a pandas frame

    def __init__(self, path: Path, columns: Sequence[str], place: str = "") -> None:
        self.path, self.columns = path, tuple(columns)
        if len(columns) > MOST_COLUMNS:
            raise ValueError(f"{path} has {len(columns):,} columns, and {_WAY_OUT}")
        twice = [name for name, count in Counter(columns).items() if count > 1]
        if twice:
            raise ValueError(
                f"{path}{place}: the column name {twice[0]!r} occurs "
                f"{self.columns.count(twice[0])} times: give every column a name of its own."
            )
        cut_off = [name for name in columns if "\0" in name]  # as NumPy cuts them off
        if cut_off:
            raise ValueError(
                f"{path}{place}: the column name {cut_off[0]!r} holds a NUL character: save the "
                "file as UTF-8 (in a spreadsheet: 'CSV UTF-8'), or rename the column."
            )

    def sha256(self) -> str:
        """Checksum of the bytes of the file."""
        with self.file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


class ParquetReader(TableReader):
    """Columns with types, as pandas, polars or Arrow write them; they keep their types."""

    def __init__(self, path: Path, file: Path | None = None) -> None:
        self.path, self.file = path, file or path
        with self._opened() as opened:
            schema = opened.schema_arrow
        super().__init__(path, schema.names)
        try:
            written = list((schema.pandas_metadata or {}).get("index_columns", ()))
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{path}: what pandas noted in it about its index cannot be read ({error}): the "
                "file is damaged. Write it again, or save the table as CSV."
            ) from error
        self.index = tuple(name for name in written if name in self.columns)

    def read(self, as_text: Sequence[str]) -> Any:
        with _readable(self.path), self._opened() as file:
            return file.read()

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        done = 0
        with _readable(self.path), self._opened() as file:
            n_rows = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(types), use_threads=False):
                done += batch.num_rows
                yield batch, done / n_rows

    def _opened(self) -> Any:
        # Buffered: a row group is read page by page, not held as a whole.
        return require_for_tables("pyarrow.parquet").ParquetFile(
            self.file, buffer_size=_BLOCK_BYTES, pre_buffer=False
        )


class CsvReader(TableReader):
    """Text with a delimiter; the first row names the columns.

    Encoding, delimiter and decimal sign are found in the first megabyte of the file.
    """

    first_row = 2

    def __init__(
        self, path: Path, is_packed: bool, delimiter: str | None, file: Path | None = None
    ) -> None:
        self.path, self.file, self.is_packed = path, file or path, is_packed
        with self._opened() as opened:
            start = opened.read(_BLOCK_BYTES)
        if not start.strip():
            raise ValueError(f"{path} is empty: row 1 must name the columns.")
        is_utf16 = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        self.encoding = "utf-16" if is_utf16 else "utf-8"
        text = self._decode(start)
        self.delimiter = delimiter or _commonest_delimiter(text)
        records = self._parse(text)
        n_blank = next(index for index, cells in enumerate(records) if cells)
        names, rows = [cell.strip() for cell in records[n_blank]], records[n_blank + 1 :]
        if len(start) == _BLOCK_BYTES and not rows:
            if len(text.splitlines()) > n_blank + 1:
                raise ValueError(f"{path}, row {n_blank + 2} {_TOO_LONG}")
            raise ValueError(f"{path}: row 1 is over a megabyte of text. Of columns {_WAY_OUT}")
        if not any(names):
            raise ValueError(f"{path}, row 1 must name the columns, and is empty.")
        named = [name or f"(column {number})" for number, name in enumerate(names, 1)]
        super().__init__(path, named, ", row 1")
        if len(start) < _BLOCK_BYTES and not any(rows):
            raise ValueError(f"{path} holds no rows below the names of its columns.")
        self.n_header_rows = n_blank + 1
        self.zero_padded = tuple(
            name
            for name, cells in zip(named, zip_longest(*rows, fillvalue=""), strict=False)
            if any(_ZERO_PADDED.fullmatch(cell.strip()) for cell in cells)
        )
        self.decimal = _decimal_sign(rows, self.delimiter)
        self.n_rows_read = 0

    def read(self, as_text: Sequence[str]) -> Any:
        """All rows; columns are numbers, booleans, dates or text by what all their cells hold.

        The columns named are text as it stands in the file.
        """
        types = dict.fromkeys(as_text, require_for_tables("pyarrow").string())
        with self._streamed(types) as (file, _):
            options = self._options(types, self.columns)
            return require_for_tables("pyarrow.csv").read_csv(file, **options)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Blocks of a megabyte of text each; pyarrow reads some tens of them ahead."""
        csv, options = require_for_tables("pyarrow.csv"), self._options(types, types)
        size, done = max(self.file.stat().st_size, 1), 0
        self.n_rows_read = 0
        with self._streamed(types) as (file, raw), csv.open_csv(file, **options) as reader:
            for batch in reader:
                self.n_rows_read += batch.num_rows
                done = raw.tell() if self.is_packed else done + _BLOCK_BYTES
                yield batch, min(done / size, 1.0)

    def _opened(self) -> Any:
        return gzip.GzipFile(self.file) if self.is_packed else self.file.open("rb")

    @contextmanager
    def _streamed(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """The text and the bytes of the file, as streams of pyarrow; its errors are explained.

        Its threads read ahead: a file of Python under them would need the interpreter, which may
        be shutting down after an interruption.
        """
        arrow = require_for_tables("pyarrow")
        with _readable(self.path):
            with self._opened() as file:
                blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
                if sum(block.count(b'"') for block in blocks) % 2:
                    # Readers take all that follows a quote that is never closed as one cell.
                    self._refuse_faults({})
            try:
                with arrow.OSFile(str(self.file)) as raw:
                    yield arrow.CompressedInputStream(raw, "gzip") if self.is_packed else raw, raw
            except arrow.ArrowInvalid:
                self._refuse_faults(types)
                raise

    def _options(self, types: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
        csv = require_for_tables("pyarrow.csv")
        return {
            "read_options": csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                encoding=self.encoding,
                column_names=list(self.columns),
                skip_rows_after_names=self.n_header_rows,
            ),
            "parse_options": csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.columns) > 1,
            ),
            "convert_options": csv.ConvertOptions(
                decimal_point=self.decimal,
                null_values=list(EMPTY_WORDS),
                column_types=dict(types),
                include_columns=list(columns),
            ),
        }

    def _refuse_faults(self, types: Mapping[str, Any]) -> None:
        """Parse the file anew, and raise a ValueError for the first row or cell at fault.

        Cells are checked in rows that pyarrow has not read already.
        """
        with self._opened() as file:
            if any(len(line) > _BLOCK_BYTES for line in file):
                raise ValueError(f"{self.path}: a row {_TOO_LONG}")
        row = 0
        with self._opened() as file:
            text = io.TextIOWrapper(file, self.encoding, errors="surrogateescape", newline="")
            try:
                for cells in csv.reader(text, delimiter=self.delimiter, strict=True):
                    row += 1
                    if cells and row > self.n_header_rows + self.n_rows_read:
                        self._check_row(f"{self.path}, row {row}", cells, types)
            except csv.Error as error:
                if _FIELD_LIMIT in str(error):
                    raise ValueError(
                        f"{self.path}, row {row + 1}: a cell has a quote that is never closed, or "
                        f"over {csv.field_size_limit():,} characters. Close or shorten it, or save "
                        "the table as .parquet."
                    ) from error
                raise ValueError(
                    f"{self.path}, row {row + 1}: a cell has a quote that is never closed, or more "
                    "text after it. Write a quote inside a cell twice, and the whole cell in "
                    "quotes."
                ) from error

    def _check_row(self, place: str, cells: Sequence[str], types: Mapping[str, Any]) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(
                f"{place}: {len(self.columns)} columns are named in row 1, got {len(cells)} cells."
            )
        arrow = require_for_tables("pyarrow")
        for name, cell in zip(self.columns, cells, strict=True):
            try:
                if name in types and cell not in EMPTY_WORDS:
                    arrow.scalar(cell.strip().replace(self.decimal, ".")).cast(types[name])
            except (arrow.ArrowInvalid, UnicodeEncodeError) as error:
                wanted = {each.arrow: each.cell for each in COLUMN_TYPES}[str(types[name])]
                found = cell.encode(errors="surrogateescape").decode(errors="replace")
                raise ValueError(
                    f"{place}, column {name!r}: must hold {wanted}, got {found!r}."
                ) from error

    def _decode(self, start: bytes) -> str:
        # A character cut in two by the end of the block is left out; an invalid one is an error.
        codec = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        try:
            return codecs.getincrementaldecoder(codec)().decode(start)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path} is no UTF-8 text: byte {error.start} cannot be read. Save it as "
                "UTF-8 (in a spreadsheet: 'CSV UTF-8')."
            ) from error

    def _parse(self, text: str) -> list[list[str]]:
        records: list[list[str]] = []
        try:
            records.extend(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter))
        except csv.Error as error:
            if not any(records):  # faults below the names are reported when all rows are read
                limit = f"the name of a column has over {csv.field_size_limit():,} characters"
                reason = limit if _FIELD_LIMIT in str(error) else error
                raise ValueError(
                    f"{self.path} is no CSV file: {reason}. Row 1 must name the columns."
                ) from error
        return records


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Errors of readers as one ValueError that names the file."""
    arrow = require_for_tables("pyarrow")
    try:
        yield
    except (KeyboardInterrupt, MemoryError, PermissionError):  # pyarrow's own are errors of it, too
        raise
    except UnicodeError as error:
        raise ValueError(f"{path}: cannot be read as text, save it as UTF-8.") from error
    except (arrow.ArrowException, EOFError, zlib.error, OSError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"{path} cannot be read: it is damaged or no such table ({first})."
        ) from error


def _commonest_delimiter(text: str) -> str:
    """The delimiter that is commonest in the first line, quoted cells left out."""
    unquoted = re.sub(r'"[^"]*"', "", text)
    counts = Counter(unquoted.lstrip().splitlines()[0] if unquoted.strip() else "")
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _decimal_sign(records: list[list[str]], delimiter: str) -> str:
    """A comma, where cells hold numbers with one and none with a point."""
    if delimiter == ",":
        return "."
    cells = {cell.strip() for record in records for cell in record}
    has_comma = any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    has_point = any(_POINT_NUMBER.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."


@contextmanager
def appending(path: Path, suffix: str, columns: Sequence[str]) -> Iterator[Append]:
    """A function that appends rows to a new CSV or Parquet file."""
    pandas, arrow = require_for_tables("pandas"), require_for_tables("pyarrow")
    with ExitStack() as opened:
        if suffix.lower() == ".csv":
            file = opened.enter_context(path.open("w", newline="", encoding="utf-8"))

            def append(rows: Mapping[str, Any]) -> None:
                frame = pandas.DataFrame({name: _cells(rows[name]) for name in columns})
                frame.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")
        else:
            writers: list[Any] = []  # one, once the first rows have given the types

            def append(rows: Mapping[str, Any]) -> None:
                table = arrow.table({name: rows[name] for name in columns})
                if not writers:
                    parquet = require_for_tables("pyarrow.parquet")
                    writer = parquet.ParquetWriter(path, table.schema)
                    writers.append(opened.enter_context(writer))
                writers[0].write_table(table)

        yield append


def _cells(column: Any) -> Any:
    """An array for pandas; ids with gaps stay what they are instead of becoming floats."""
    return column if isinstance(column, np.ndarray) else np.array(column.to_pylist(), dtype=object)
