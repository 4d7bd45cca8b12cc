"""CSV files: text, perhaps packed, whose delimiter and decimal sign are inferred.

A file is read twice, however many of its columns are asked for. Opening the reader
makes one pass over the bytes, which gives the checksum, the delimiter and the names;
``hold`` parses the cells in a second pass. Text that is not UTF-8, and sheets of Excel,
are converted in memory first.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from .cells import EMPTY_WORDS, require_for_tables
from .readers import BLOCK_BYTES, TableReader, explained_errors
from .text_formats import format_of, marked_encoding

_DELIMITERS = (",", ";", "\t", "|")
_COMMA_NUMBER = re.compile(r"-?\d+,\d+")
_POINT_NUMBER = re.compile(r"-?\d+\.\d+")
# The first bytes of a packed file.
_GZIP_MAGIC = b"\x1f\x8b"


class CsvReader(TableReader):
    """Text with a delimiter; the first row names the columns.

    Delimiter and decimal sign are inferred from the first megabyte of the file.
    ``content`` is the text of a file that holds another format.
    """

    lists: Mapping[str, list[str]] = {}

    def __init__(
        self, path: Path, opened: BinaryIO, content: bytes | None = None
    ) -> None:
        scan = _TextScan(opened)
        self._sha256 = scan.sha256
        encoding = marked_encoding(scan.first_block)
        if content is None and encoding is not None:
            content = _to_utf8(scan.rewound().read(), encoding, path)
        # Text that was converted, in memory; None if the file itself is read.
        self._content = content
        if content is not None:
            scan = _TextScan(io.BytesIO(content))
        text = _decode_start(scan.first_block, path)
        n_lines = len(text.strip().splitlines())
        if n_lines < 2:
            if n_lines and len(scan.first_block) >= BLOCK_BYTES:
                raise ValueError(
                    f"{path} has no end of row 1 in its first megabyte: write one row "
                    "on each line, the names of the columns first."
                )
            raise ValueError(
                f"{path} has no data rows: fill it, delete it, or name another file."
            )
        self.delimiter = _most_frequent_delimiter(text)
        self.decimal = _decimal_sign(text, self.delimiter)
        self.is_packed = scan.is_packed
        if scan.n_quotes % 2:
            _refuse_open_quote(scan.rewound(), self.delimiter, path)
        # Empty lines may come before the names.
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        self.n_header_rows, names = next(
            (number, row) for number, row in enumerate(rows, start=1) if row
        )
        self.first_row_number = self.n_header_rows + 1
        columns = [
            name.strip() or f"(column {number})"
            for number, name in enumerate(names, start=1)
        ]
        super().__init__(path, columns)
        if "\0" in text:
            raise ValueError(
                f"{path} is not a table of text: byte {scan.first_block.index(0)} is "
                "zero. It may be damaged, or UTF-16 text without a byte order mark: "
                "save it as UTF-8."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows; they are read to be counted unless they are held."""
        held = self._held
        return len(self.column(self.columns[0])) if held is None else held.num_rows

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        """Read all rows; the cells of a column not in ``texts`` decide on its type."""
        arrow = require_for_tables("pyarrow")
        arrow_csv = require_for_tables("pyarrow.csv")
        types = dict.fromkeys(texts, arrow.string())
        options = self._options(types, columns)
        with self._streamed() as (file, _):
            return arrow_csv.read_csv(file, **options)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield blocks of a megabyte of text, and the share of the file so far.

        pyarrow reads some tens of blocks ahead.
        """
        arrow_csv = require_for_tables("pyarrow.csv")
        options = self._options(types, types)
        n_bytes = max(self._n_bytes(), 1)
        n_read = 0
        with (
            self._streamed() as (file, raw),
            arrow_csv.open_csv(file, **options) as reader,
        ):
            for batch in reader:
                # How many bytes a block of text takes in a packed file varies.
                n_read = raw.tell() if self.is_packed else n_read + BLOCK_BYTES
                yield batch, min(n_read / n_bytes, 1.0)

    def sha256(self) -> str:
        """Return the checksum of the bytes that the file had when it was opened."""
        return self._sha256

    @contextmanager
    def _streamed(self) -> Iterator[tuple[Any, Any]]:
        """Yield the text and the bytes of the file, as streams of pyarrow.

        Its threads read ahead: a file of Python under them would need the interpreter,
        which may be shutting down after an interruption.
        """
        arrow = require_for_tables("pyarrow")
        if self._content is None:
            source = arrow.OSFile(str(self.path))
        else:
            source = arrow.BufferReader(self._content)
        with explained_errors(self.path, self.columns), source as raw:
            text = arrow.CompressedInputStream(raw, "gzip") if self.is_packed else raw
            yield text, raw

    def _n_bytes(self) -> int:
        """Return the size of what is read."""
        if self._content is not None:
            return len(self._content)
        return self.path.stat().st_size

    def _options(
        self, types: Mapping[str, Any], columns: Iterable[str]
    ) -> dict[str, Any]:
        """Return the options of pyarrow to read ``columns``, some of given types."""
        arrow_csv = require_for_tables("pyarrow.csv")
        return {
            "read_options": arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                column_names=list(self.columns),
                skip_rows_after_names=self.n_header_rows,
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                # An empty line of a file with one column is an empty cell.
                ignore_empty_lines=len(self.columns) > 1,
            ),
            "convert_options": arrow_csv.ConvertOptions(
                decimal_point=self.decimal,
                null_values=list(EMPTY_WORDS),
                column_types=dict(types),
                include_columns=list(columns),
            ),
        }


class _TextScan:
    """One pass over a CSV file, perhaps packed: its checksum, its start, its quotes."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        opened.seek(0)
        self.is_packed = opened.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        opened.seek(0)
        hashed: Any = _HashedFile(opened)
        text = gzip.GzipFile(fileobj=hashed, mode="rb") if self.is_packed else hashed
        self.first_block: bytes = text.read(BLOCK_BYTES)
        self.n_quotes = self.first_block.count(b'"')
        while block := text.read(BLOCK_BYTES):
            self.n_quotes += block.count(b'"')
        self.sha256 = hashed.digest.hexdigest()

    def rewound(self) -> Any:
        """Return the text from its start."""
        self._opened.seek(0)
        return gzip.GzipFile(fileobj=self._opened) if self.is_packed else self._opened


class _HashedFile:
    """A binary file that adds all that is read to a checksum."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        self.digest = hashlib.sha256()

    def read(self, n_bytes: int = -1) -> bytes:
        block = self._opened.read(n_bytes)
        self.digest.update(block)
        return block


def _to_utf8(content: bytes, encoding: str, path: Path) -> bytes:
    """Convert the text of a file whose byte order mark tells the encoding."""
    try:
        return content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} begins like {encoding.upper()} text, but its end is cut off or "
            f"byte {error.start} is damaged: save it again, as UTF-8."
        ) from error


def _decode_start(block: bytes, path: Path) -> str:
    """Decode the first block of a CSV file."""
    # An incremental decoder omits a character that the end of the block cuts in two,
    # and raises an error for an invalid one.
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(block)
    except UnicodeDecodeError as error:
        problem = format_of(block, error, path)
        raise ValueError(f"{path} is not UTF-8 text: {problem}.") from error


def _refuse_open_quote(file: Any, delimiter: str, path: Path) -> None:
    """Refuse a quote that is never closed: pyarrow would read the rest as one cell."""
    text = io.TextIOWrapper(file, errors="replace", encoding="utf-8", newline="")
    n_rows = 0
    try:
        for _ in csv.reader(text, delimiter=delimiter, strict=True):
            n_rows += 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, row {n_rows + 1}: a cell has a quote that is never closed "
            f"({error}). Write a quote inside a cell twice, and the whole cell in "
            "quotes."
        ) from error
    finally:
        # Otherwise the wrapper would close the file that the caller has opened.
        text.detach()


def _most_frequent_delimiter(text: str) -> str:
    """Return the delimiter most frequent in the first line outside of quoted cells."""
    unquoted = re.sub(r'"[^"]*"', "", text)
    lines = unquoted.lstrip().splitlines()
    first_line = lines[0] if lines else ""
    counts = Counter(first_line)
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _decimal_sign(text: str, delimiter: str) -> str:
    """Return a comma if cells hold numbers with a comma and none with a point."""
    if delimiter == ",":
        return "."
    raw_cells = re.split(f"[{delimiter}\r\n]", text)
    cells = {cell.strip(' "') for cell in raw_cells}
    has_comma = any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    has_point = any(_POINT_NUMBER.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."
