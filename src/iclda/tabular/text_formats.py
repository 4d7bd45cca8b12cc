"""Files that are not UTF-8 text, as UTF-8 text: Excel sheets, and other encodings.

A byte order mark tells UTF-16 and UTF-32. Other encodings cannot be told apart safely:
`format_of` names what a file seems to be, and how to convert it.
"""

from __future__ import annotations

import codecs
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._system import check_installed
from .cells import require_for_tables

# Bytes that an error shows before and after one that cannot be read.
_N_SHOWN_BYTES = 20
EXCEL_SUFFIXES = (".xlsx", ".xlsm")
# The longer marks of UTF-32 begin like those of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_AS_CSV = "Save it as a .csv or .parquet file"
# What files begin with, what they are, and the way out.
_KNOWN_STARTS = (
    (b"PK\x03\x04", "a zip archive", "Unpack it, or save the table as .csv or .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", "Save it as .xlsx or .csv"),
    (b"SQLite format 3", "an SQLite database", _AS_CSV),
    (b"%PDF", "a PDF file", _AS_CSV),
    (b"\x89HDF", "an HDF5 file", _AS_CSV),
    (b"BZh", "a file packed by bzip2", "Unpack it, or pack it by gzip"),
    (b"\xfd7zXZ", "a file packed by xz", "Unpack it, or pack it by gzip"),
    (b"\x28\xb5\x2f\xfd", "a file packed by zstd", "Unpack it, or pack it by gzip"),
)


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a byte order mark tells; None without a mark."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    return None


def excel_text(path: Path) -> bytes:
    """Return the first sheet of an Excel file as CSV text.

    Numbers and dates are written so that they are read back as what they are.
    """
    pandas = require_for_tables("pandas")
    engine: Any = "calamine"
    if find_spec("python_calamine") is None:
        check_installed(["openpyxl"], f"reading {path}", "excel")
        engine = "openpyxl"
    sheet = pandas.read_excel(
        path, engine=engine, dtype=object, keep_default_na=False, header=None
    )
    # Rows above the names become empty lines, which are no names but count as rows.
    has_cells = ~(sheet.isna() | (sheet == "")).all(axis=1)
    n_above = int(has_cells.to_numpy().argmax()) if len(sheet) else 0
    text: str = sheet[n_above:].to_csv(index=False, header=False, lineterminator="\n")
    return b"\n" * n_above + text.encode()


def format_of(start: bytes, error: UnicodeDecodeError, path: Path) -> str:
    """Say what a file that is not UTF-8 text seems to be, and the way out."""
    for known, name, way_out in _KNOWN_STARTS:
        if start.startswith(known):
            return f"it is {name}. {way_out}"
    # Text of two bytes a letter has a zero byte in half of all places.
    if start[: error.start].count(0) or start.count(0) > len(start) / 8:
        return (
            "it seems to be UTF-16 text without a byte order mark. Save it as UTF-8 "
            "(in a spreadsheet: 'CSV UTF-8')"
        )
    line_start = start.rfind(b"\n", 0, error.start) + 1
    shown_from = max(line_start, error.start - _N_SHOWN_BYTES)
    line = start[shown_from : error.start + _N_SHOWN_BYTES].splitlines()[0]
    shown = line.decode("cp1252", errors="replace")
    command = "iconv -f WINDOWS-1252 -t UTF-8"
    # A compressed file has to be unpacked first.
    if path.suffix != ".gz":
        converted = path.with_name(f"{path.stem}-utf8{path.suffix}")
        command += f" {shlex.quote(str(path))} > {shlex.quote(str(converted))}"
    return (
        f"byte {error.start} cannot be read. If it is Latin-1 or Windows-1252 text, "
        f"{shown!r} stands there, and `{command}` converts it; in a spreadsheet save "
        "it as 'CSV UTF-8'"
    )
