"""How a text file writes its table: encoding, delimiter, decimal point, names of columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

# A cell with one of these and nothing else is empty.
EMPTY_WORDS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A", "?")

_PEEKED_BYTES = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")
_BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PADDED = re.compile(r"0\d+")
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True)
class Dialect:
    """What a reader must be told."""

    encoding: str
    delimiter: str
    decimal: str
    columns: tuple[str, ...]
    n_header_rows: int  # the names, and blank lines above them
    zero_padded: tuple[str, ...] = ()  # columns with codes such as 01004 in the rows looked at


def find_dialect(path: Path, file: IO[bytes], delimiter: str | None = None) -> Dialect:
    """Look at the beginning of a file; ValueError if it names no columns."""
    start = file.read(_PEEKED_BYTES)
    if not start.strip():
        raise ValueError(f"{path} is empty: row 1 must name the columns.")
    encoding = _BYTE_ORDER_MARKS.get(start[:2], "utf-8")
    text = _decoded(path, start, encoding)
    delimiter = delimiter or _commonest_delimiter(text)
    records = _records(path, text, delimiter)
    n_blank = next(number for number, cells in enumerate(records) if cells)
    columns = _columns(path, [cell.strip() for cell in records[n_blank]])
    if len(start) < _PEEKED_BYTES and not any(records[n_blank + 1 :]):
        raise ValueError(f"{path} holds no rows below the names of its columns.")
    rows = records[n_blank + 1 :]
    decimal, padded = _decimal(rows, delimiter), _zero_padded(rows, columns)
    return Dialect(encoding, delimiter, decimal, columns, n_blank + 1, padded)


def refuse_open_quote(path: Path, open_file: Callable[[], Any], dialect: Dialect) -> None:
    """ValueError for a quote that is never closed: readers take the rest of the file as one cell.

    Closed quotes come in pairs. Only a file with an odd number of them is read with care.
    """
    with open_file() as file:
        blocks = iter(lambda: file.read(_PEEKED_BYTES), b"")
        if sum(block.count(b'"') for block in blocks) % 2 == 0:
            return
    row = 1
    with open_file() as file:
        text = io.TextIOWrapper(file, encoding=dialect.encoding, newline="")
        try:
            for _ in _reader(text, dialect.delimiter, strict=True):
                row += 1
        except csv.Error as error:
            raise ValueError(
                f"{path}, row {row}: a cell has a quote that is never closed, or more text after "
                "it. Write a quote inside a cell twice, and the whole cell in quotes."
            ) from error


def _reader(text: Iterable[str], delimiter: str, *, strict: bool = False) -> Any:
    return csv.reader(text, delimiter=delimiter, strict=strict)


def _decoded(path: Path, start: bytes, encoding: str) -> str:
    # A character cut in two by the end of the peek is left out; one that is wrong is not.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        return decoder.decode(start)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no UTF-8 text: byte {error.start} cannot be read. Save it as UTF-8 (in a "
            "spreadsheet: 'CSV UTF-8')."
        ) from error


def _commonest_delimiter(text: str) -> str:
    unquoted = re.sub(r'"[^"]*"', "", text)
    counts = Counter(unquoted.lstrip().splitlines()[0] if unquoted.strip() else "")
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _records(path: Path, text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        records.extend(_reader(io.StringIO(text, newline=""), delimiter))
    except csv.Error as error:
        if not any(records):  # what is wrong below the names is told when it is read
            raise ValueError(f"{path} is no CSV file: {error}.") from error
    return records


def refuse_repeated_names(place: str, names: Sequence[str]) -> None:
    """ValueError for a name that several columns have; none at all is another matter."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise ValueError(
            f"{place}: the column name {twice[0]!r} stands there {names.count(twice[0])} times: "
            "give every column a name of its own."
        )


def _columns(path: Path, names: list[str]) -> tuple[str, ...]:
    refuse_repeated_names(f"{path}, row 1", names)
    if not any(names):
        raise ValueError(f"{path}, row 1 must name the columns, and is empty.")
    return tuple(name or f"(column {number})" for number, name in enumerate(names, 1))


def _zero_padded(records: list[list[str]], columns: Sequence[str]) -> tuple[str, ...]:
    """Columns with whole numbers of more digits than they need."""
    found = {
        place
        for record in records
        for place, cell in enumerate(record[: len(columns)])
        if _PADDED.fullmatch(cell.strip())
    }
    return tuple(columns[place] for place in sorted(found))


def _decimal(records: list[list[str]], delimiter: str) -> str:
    """A comma, where cells hold numbers with one and none with a point."""
    if delimiter == ",":
        return "."
    cells = {cell.strip() for record in records for cell in record}
    has_comma = any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    has_point = any(_POINT_NUMBER.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."
