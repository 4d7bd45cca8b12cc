"""Files of rows: CSV, Parquet, arrays whose features have no names, files of answers.

`open_data` returns a reader of a file. All readers have the same methods: ``read`` and
``column`` return rows as Arrow tables and columns, ``batches`` yields blocks of
constant size, so that a file of any size can be predicted. Tables are written block by
block with `appending`.

A CSV file is opened twice, however many of its columns are asked for. Opening the
reader makes one pass over the bytes, which gives the checksum, the delimiter and the
names; `hold` parses the cells in a second pass and keeps them for ``read`` and
``column``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._core import AnyArray
from .._messages import plural, quoted_list
from .._rows.checks import check_finite, refuse_repeated
from .._rows.kinds import reader_of
from .._rows.readers import Reader
from .._system import atomic_write
from .encoders import COLUMN_TYPES, EMPTY_WORDS, require_for_tables

WRITTEN_SUFFIXES = (".csv", ".parquet")

# Columns of ids and of classes in a file of answers, unless the user names others.
ROW = "row"
LABEL = "label"
# How a row was drawn: chosen because its label is informative, or at random, so that
# its label measures the error.
CHOSEN = "chosen"
RANDOM = "random"
# Further columns of a file of answers.
HOW = "how"
_ROUND = "round"
_GUESS = "guess"
OWN_COLUMNS = (HOW, _ROUND, _GUESS)

# The same text for all rows, or a text for each row.
_Texts = str | Sequence[str]
# Texts of some rows, by column.
_Cells = Mapping[str, Sequence[str]]

_BLOCK_BYTES = 1 << 20
_BATCH_ROWS = 1 << 14
_DELIMITERS = (",", ";", "\t", "|")
_DIGITS = re.compile("[0-9]+")
_COMMA_NUMBER = re.compile(r"-?\d+,\d+")
_POINT_NUMBER = re.compile(r"-?\d+\.\d+")
# The first bytes of files.
_PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC = b"\x1f\x8b"


def open_data(path: Path, ids: Sequence[str] = ()) -> DataReader:
    """Open a table or an array file; ``ids`` name columns that identify the rows."""
    is_array = path.is_dir() or path.suffix.lower() in (".npy", ".npz")
    return FeatureFile(path, ids) if is_array else open_table(path)


def open_table(path: Path) -> TableReader:
    """Open a file; ValueError if it cannot be read as a table."""
    with _explained_errors(path), path.open("rb") as opened:
        if opened.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return ParquetReader(path, path)
        return CsvReader(path, opened)


class _NamedColumns:
    """A file with named columns.

    Attributes
    ----------
    path : Path
        What messages call the file.
    file : Path
        The file that holds the rows.
    columns : tuple of str
        Names of all columns.
    lists : dict of str to list of str
        Columns that were made of a column of lists, by the name of that column.
    """

    lists: Mapping[str, list[str]]

    def __init__(self, path: Path, file: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.file = file
        self.columns = tuple(columns)
        self._held: Any = None
        for name in columns:
            # NumPy drops zero bytes from the end of names.
            if "\0" in name:
                raise ValueError(
                    f"{path}: the column {name!r} holds a zero byte: rename it."
                )
        refuse_repeated(self.columns, str(path))

    def read(self, columns: Sequence[str]) -> Any:
        """Read all rows as an Arrow table of these columns."""
        if self._held is not None:
            return self._held.select(columns)
        return self._read(columns, ())

    def hold(self, columns: Iterable[str], texts: Iterable[str]) -> None:
        """Read columns and keep them for ``read`` and ``column``.

        Those in ``texts`` stay text in a CSV file, whatever their cells look like.
        """
        wanted = {*columns, *texts}
        names = [name for name in self.columns if name in wanted]
        self._held = self._read(names, [name for name in texts if name in names])

    def column(self, name: str) -> Any:
        """Read one column as an Arrow column, of a CSV file as text."""
        if self._held is not None:
            return self._held[name]
        return self._read([name], [name])[name]

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        raise NotImplementedError


class ParquetReader(_NamedColumns):
    """Columns with types, as pandas, polars or Arrow write them; they keep their types.

    A column of lists of numbers, all of one length, becomes a column for each number:
    NAME_0, NAME_1, ...
    """

    def __init__(self, path: Path, file: Path) -> None:
        self.file = file
        self.lists = {}
        names: list[str] = []
        with self._opened() as opened:
            self.n_rows = opened.metadata.num_rows
            for field in opened.schema_arrow:
                width = _list_width(opened, field)
                if width is None:
                    names.append(field.name)
                else:
                    self.lists[field.name] = [f"{field.name}_{k}" for k in range(width)]
                    names += self.lists[field.name]
        super().__init__(path, file, names)

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        with _explained_errors(self.path), self._opened() as file:
            rows = file.read(self._stored_names(columns))
            return self._without_lists(rows, 0).select(columns)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types`` and the share read so far."""
        names = self._stored_names(types)
        n_read = 0
        with _explained_errors(self.path), self._opened() as file:
            for batch in file.iter_batches(
                _BATCH_ROWS, columns=names, use_threads=False
            ):
                rows = self._without_lists(batch, n_read)
                n_read += batch.num_rows
                yield rows, n_read / max(self.n_rows, 1)

    def sha256(self) -> str:
        """Checksum of the bytes of the file."""
        return sha256_of([self.file])

    def _stored_names(self, columns: Iterable[str]) -> list[str]:
        """Names in the file of the columns, each once."""
        stored = {column: name for name, made in self.lists.items() for column in made}
        return list(dict.fromkeys(stored.get(column, column) for column in columns))

    def _without_lists(self, rows: Any, n_before: int) -> Any:
        """Replace every column of lists by columns of numbers.

        ``n_before`` is the number of rows of the file before the first one, for
        messages.
        """
        columns: dict[str, Any] = {}
        for name in rows.schema.names:
            if name in self.lists:
                made = self.lists[name]
                where = f"{self.path}, column {name!r}"
                numbers = _entries(rows[name], len(made), where, n_before)
                columns |= zip(made, numbers, strict=True)
            else:
                columns[name] = rows[name]
        return type(rows).from_pydict(columns)

    def _opened(self) -> Any:
        # Buffered: a row group is read page by page, not held as a whole.
        return require_for_tables("pyarrow.parquet").ParquetFile(
            self.file, buffer_size=_BLOCK_BYTES, pre_buffer=False
        )


class CsvReader(_NamedColumns):
    """UTF-8 text with a delimiter; the first row names the columns.

    Delimiter and decimal sign are inferred from the first megabyte of the file.
    """

    lists: Mapping[str, list[str]] = {}

    def __init__(self, path: Path, opened: BinaryIO) -> None:
        scan = _TextScan(opened)
        text = _decode_start(scan.first_block, path)
        if len(text.strip().splitlines()) < 2:
            raise ValueError(
                f"{path} holds no rows below the names of its columns in row 1, or no "
                "end of row 1 in its first megabyte: fill it, name another file, or "
                "delete it if it is to be made."
            )
        self.delimiter = _most_frequent_delimiter(text)
        self.decimal = _decimal_sign(text, self.delimiter)
        self.is_packed = scan.is_packed
        self._sha256 = scan.sha256
        if scan.n_quotes % 2:
            _refuse_open_quote(scan.rewound(), self.delimiter, path)
        # Empty lines may come before the names.
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        self.n_header_rows, names = next(
            (number, row) for number, row in enumerate(rows, start=1) if row
        )
        columns = [
            name.strip() or f"(column {number})"
            for number, name in enumerate(names, start=1)
        ]
        super().__init__(path, path, columns)

    @property
    def n_rows(self) -> int:
        """Number of rows; they are read to be counted unless they are held."""
        held = self._held
        return len(self.column(self.columns[0])) if held is None else held.num_rows

    def _read(self, columns: Sequence[str], texts: Iterable[str]) -> Any:
        """Read all rows; the cells of a column not in ``texts`` decide on its type."""
        types = dict.fromkeys(texts, require_for_tables("pyarrow").string())
        with self._streamed() as (file, _):
            options = self._options(types, columns)
            return require_for_tables("pyarrow.csv").read_csv(file, **options)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield blocks of a megabyte of text, and the share of the file so far.

        pyarrow reads some tens of blocks ahead.
        """
        arrow_csv = require_for_tables("pyarrow.csv")
        options = self._options(types, types)
        n_bytes = max(self.file.stat().st_size, 1)
        n_read = 0
        with (
            self._streamed() as (file, raw),
            arrow_csv.open_csv(file, **options) as reader,
        ):
            for batch in reader:
                n_read = raw.tell() if self.is_packed else n_read + _BLOCK_BYTES
                yield batch, min(n_read / n_bytes, 1.0)

    def sha256(self) -> str:
        """Checksum of the bytes of the file when it was opened."""
        return self._sha256

    @contextmanager
    def _streamed(self) -> Iterator[tuple[Any, Any]]:
        """Yield the text and the bytes of the file, as streams of pyarrow.

        Its threads read ahead: a file of Python under them would need the interpreter,
        which may be shutting down after an interruption.
        """
        arrow = require_for_tables("pyarrow")
        with (
            _explained_errors(self.path, self.columns),
            arrow.OSFile(str(self.file)) as raw,
        ):
            text = arrow.CompressedInputStream(raw, "gzip") if self.is_packed else raw
            yield text, raw

    def _options(
        self, types: Mapping[str, Any], columns: Iterable[str]
    ) -> dict[str, Any]:
        arrow_csv = require_for_tables("pyarrow.csv")
        return {
            "read_options": arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
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
        self.first_block: bytes = text.read(_BLOCK_BYTES)
        self.n_quotes = self.first_block.count(b'"')
        while block := text.read(_BLOCK_BYTES):
            self.n_quotes += block.count(b'"')
        self.sha256 = hashed.digest.hexdigest()

    def rewound(self) -> Any:
        """The text from its start."""
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


def feature_names(n_features: int) -> list[str]:
    """Names of features that have none."""
    return [f"feature_{k}" for k in range(n_features)]


class FeatureFile:
    """Rows of an array, with columns feature_0, feature_1, ...

    Arrays of an .npz file with one entry for each row are columns, too. Names in
    ``ids`` that the file does not have are columns that number the rows from 0.
    """

    def __init__(self, path: Path, ids: Sequence[str] = ()) -> None:
        self.path = path
        self.file = path
        self._files = _shards(path) if path.is_dir() else [path]
        self.rows, other_arrays = _open_arrays(path, self._files)
        self.rows.name = str(path)
        self.n_rows = int(self.rows.n_rows or 0)
        self.features = feature_names(self.rows.n_features)
        self.lists = {"features": self.features}
        row_numbers = np.arange(self.n_rows)
        self._other_columns = {**dict.fromkeys(ids, row_numbers), **other_arrays}
        self.columns = (*self._other_columns, *self.features)

    def column(self, name: str) -> Any:
        """Return the entries of an array other than the features as an Arrow column."""
        arrow = require_for_tables("pyarrow")
        return arrow.chunked_array([self._other_columns[name].tolist()])

    def read(self, names: Sequence[str]) -> Any:
        """Return arrays other than the features as an Arrow table."""
        arrow = require_for_tables("pyarrow")
        return arrow.table({name: self.column(name) for name in names})

    def take(self, is_taken: AnyArray) -> Any:
        """Return the features of some rows as a pandas frame, indexed by position."""
        index = np.flatnonzero(is_taken)
        values = self.rows.read_rows(index).astype(np.float64, copy=False)
        return require_for_tables("pandas").DataFrame(values, index, self.features)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types`` and the share read so far."""
        arrow = require_for_tables("pyarrow")
        for span in self.rows.spans(_BATCH_ROWS):
            block = np.empty((span.n_rows, len(self.features)), order="F")
            span.read(block, 0)
            index = range(span.start, span.stop)
            check_finite(block, span.where, self.features, index=index)
            columns = dict(zip(self.features, block.T, strict=True))
            for name, entries in self._other_columns.items():
                columns[name] = entries[span.start : span.stop].astype(str)
            wanted = {
                name: arrow.array(columns[name], kind) for name, kind in types.items()
            }
            yield arrow.RecordBatch.from_pydict(wanted), span.stop / self.n_rows

    def sha256(self) -> str:
        """Checksum of the bytes of all files."""
        return sha256_of(self._files)


TableReader = CsvReader | ParquetReader
DataReader = TableReader | FeatureFile


@contextmanager
def _explained_errors(path: Path, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of readers into a ValueError that names the file, row and column."""
    arrow = require_for_tables("pyarrow")
    try:
        yield
    # Some errors of pyarrow are derived from these, but are ArrowExceptions as well.
    except (KeyboardInterrupt, MemoryError):
        raise
    except (
        arrow.ArrowException,
        csv.Error,
        EOFError,
        zlib.error,
        OSError,
        UnicodeError,
    ) as error:
        # The file cannot be opened: the error says so and names it.
        if getattr(error, "filename", None):
            raise
        message = str(error).splitlines()[0]
        # Without memory for its stack a thread does not start.
        if "launch worker thread" in message:
            raise MemoryError(
                f"{path} is read by a thread, which could not be started"
            ) from error
        problem = _explain(message, columns)
        raise ValueError(f"{path} cannot be read: {problem}.") from error


def _explain(message: str, columns: Sequence[str]) -> str:
    """Put names of columns and types in place of the numbers and types of pyarrow."""
    if "straddling" in message:
        return (
            "a row is over a megabyte of text. Shorten it, or save the table as "
            ".parquet"
        )
    for column_type in COLUMN_TYPES:
        message = message.replace(
            f"CSV conversion error to {column_type.arrow}",
            f"must hold {column_type.cells}",
        )
    message = message.replace(
        "invalid UTF8 data", "it is not UTF-8 text, save the file as UTF-8"
    )
    return re.sub(
        r"In CSV column #(\d+): Row #(\d+)",
        lambda match: f"row {match[2]}, column {columns[int(match[1])]!r}",
        message,
    )


def _decode_start(block: bytes, path: Path) -> str:
    """Decode the first block of a CSV file."""
    # An incremental decoder omits a character that the end of the block cuts in two,
    # and raises an error for an invalid one.
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(block)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text: byte {error.start} cannot be read. Save it as "
            "UTF-8 (in a spreadsheet: 'CSV UTF-8')."
        ) from error


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
    lines = re.sub(r'"[^"]*"', "", text).lstrip().splitlines()
    counts = Counter(lines[0] if lines else "")
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _decimal_sign(text: str, delimiter: str) -> str:
    """Return a comma if cells hold numbers with a comma and none with a point."""
    if delimiter == ",":
        return "."
    cells = {cell.strip(' "') for cell in re.split(f"[{delimiter}\r\n]", text)}
    has_comma = any(_COMMA_NUMBER.fullmatch(cell) for cell in cells)
    has_point = any(_POINT_NUMBER.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."


def _list_width(file: Any, field: Any) -> int | None:
    """Length of the first list in a column of a Parquet file.

    None if the column does not hold lists of numbers.
    """
    types = require_for_tables("pyarrow").types
    kind = field.type
    is_list = (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
    if not is_list:
        return None
    if not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        return None
    for batch in file.iter_batches(
        _BATCH_ROWS, columns=[field.name], use_threads=False
    ):
        lists = batch.column(0).drop_null()
        if len(lists):
            return len(lists[0])
    return None


def _entries(column: Any, width: int, where: str, n_before: int) -> AnyArray:
    """Numbers of the lists of a column, (width, rows).

    ValueError unless every list holds ``width`` finite numbers; it names the row,
    counted from ``n_before``.
    """
    compute = require_for_tables("pyarrow.compute")
    lengths = compute.list_value_length(column).fill_null(0).to_numpy()
    has_other_length = lengths != width
    if has_other_length.any():
        row = int(has_other_length.argmax())
        content = f"{lengths[row] or 'no'} numbers"
        raise _list_error(where, n_before + row + 1, width, content)

    # Columns of a table consist of chunks, columns of a batch do not.
    flat = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    numbers = flat.flatten().to_numpy(zero_copy_only=False).reshape(len(column), width)
    is_finite = np.isfinite(numbers).all(axis=1)
    if not is_finite.all():
        row = int(is_finite.argmin())
        content = "NaN, infinity or an empty entry"
        raise _list_error(where, n_before + row + 1, width, content)
    return np.ascontiguousarray(numbers.T)


def _list_error(where: str, row: int, width: int, content: str) -> ValueError:
    return ValueError(
        f"{where}, row {row} must hold a list of {width} numbers, as the first one "
        f"does, and holds {content}. Leave the row or the column out, or compute its "
        "features again."
    )


@contextmanager
def appending(path: Path, suffix: str) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends Arrow tables to a new CSV or Parquet file."""
    with ExitStack() as opened:
        if suffix.lower() == ".csv":
            file = opened.enter_context(path.open("w", newline="", encoding="utf-8"))

            def append(rows: Any) -> None:
                # Integers with gaps, such as ids, are not turned into floats.
                frame = rows.to_pandas(integer_object_nulls=True)
                has_header = file.tell() > 0
                frame.to_csv(
                    file, index=False, header=not has_header, lineterminator="\n"
                )
        else:
            # Empty until the first rows have given the types.
            writers: list[Any] = []

            def append(rows: Any) -> None:
                if not writers:
                    parquet = require_for_tables("pyarrow.parquet")
                    writer = parquet.ParquetWriter(path, rows.schema)
                    writers.append(opened.enter_context(writer))
                writers[0].write_table(rows)

        yield append


def sha256_of(files: Sequence[Path]) -> str:
    """Return the checksum of the bytes of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return digest.hexdigest()


def _shards(folder: Path) -> list[Path]:
    """Return the .npy files of a folder in the order of their names.

    ValueError if the numbers in names that are alike otherwise have another order,
    since rows and labels might not match.
    """
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise ValueError(
            f"{folder} is a folder without .npy files: name another, or a file."
        )
    for first, second in pairwise(files):
        is_alike = _DIGITS.sub("", first.name) == _DIGITS.sub("", second.name)
        if is_alike and _numbers_in(first.name) > _numbers_in(second.name):
            raise ValueError(
                f"{folder} is read in the order of names, and {first.name} comes "
                f"before {second.name}: write numbers with leading zeros, so that rows "
                "and labels match."
            )
    return files


def _numbers_in(name: str) -> list[int]:
    return [int(digits) for digits in _DIGITS.findall(name)]


def _open_arrays(
    path: Path, files: Sequence[Path]
) -> tuple[Reader, dict[str, AnyArray]]:
    """Return a reader of the rows, and further arrays with one entry for each row."""
    if path.suffix.lower() != ".npz":
        return reader_of(list(files), "Features"), {}
    try:
        with np.load(path, allow_pickle=False) as opened:
            arrays = dict(opened)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): save it again, with arrays of numbers "
            "and text alone."
        ) from error
    names = [name for name, array in arrays.items() if array.ndim == 2]
    if len(names) != 1:
        shapes = [f"{name!r} of shape {array.shape}" for name, array in arrays.items()]
        raise ValueError(
            f"{path} must hold one array of rows x features, got {len(names)} "
            f"({', '.join(shapes)}): save the features alone, by numpy.save."
        )
    rows = arrays.pop(names[0])
    other_arrays = {
        name: array for name, array in arrays.items() if array.shape == (len(rows),)
    }
    return reader_of(rows, f"{path}, array {names[0]!r}"), other_arrays


def are_answers(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is one of rows that a person labels."""
    return {*OWN_COLUMNS} <= {*columns}


def spelling_of(name: str) -> str:
    """Name of a class without what often differs by mistake: case and blanks."""
    return "".join(name.casefold().split())


@dataclass(frozen=True)
class Answers:
    """The file of rows that a person labels: a CSV file, also edited in a spreadsheet.

    It has a line for each row: its id, its class, empty until a person has filled it
    in, how the row was drawn, in which round, the guess of a model, and the columns
    that help to decide. Every cell is text. Instances do not change: `asking` and
    `answering` return new ones, and `write` writes the file.

    Attributes
    ----------
    path : Path
        The file.
    id : str
        Name of the column of ids.
    target : str
        Name of the column of classes.
    frame : DataFrame
        Text: id, target, how, round, guess, then further columns.
    """

    path: Path
    id: str
    target: str
    frame: Any

    @classmethod
    def read(cls, path: Path, id: str, target: str) -> Answers:
        """Read a file, or begin one that does not exist or is empty."""
        if path.exists() and path.stat().st_size:
            return cls.of(open_table(path), id, target)
        no_rows = dict.fromkeys([id, target, *OWN_COLUMNS], ())
        frame = require_for_tables("pandas").DataFrame(no_rows, dtype=str)
        return cls(path, id, target, frame)

    @classmethod
    def of(cls, file: TableReader, id: str, target: str) -> Answers:
        """Read an open file, without the empty lines that a spreadsheet may add."""
        needed = [id, target, *OWN_COLUMNS]
        lacking = [name for name in needed if name not in file.columns]
        if lacking:
            raise ValueError(
                f"{file.path} has no column {quoted_list(lacking, 5)}, and is not a "
                "file of rows to label without it: bring it back, or name another "
                "file, which will be made."
            )
        file.hold(file.columns, texts=file.columns)
        frame = file.read(file.columns).to_pandas().fillna("").astype(str)
        is_filled = (frame != "").any(axis=1)
        frame = frame[is_filled].reset_index(drop=True)
        unknown = sorted(set(frame[HOW]) - {CHOSEN, RANDOM})
        if unknown:
            raise ValueError(
                f"{file.path}: column {HOW!r} must say {CHOSEN} or {RANDOM}, got "
                f"{quoted_list(unknown, 3)}. It says which labels measure the error: "
                "undo the change."
            )
        frame[target] = frame[target].str.strip()
        return cls(file.path, id, target, frame)

    @property
    def labels(self) -> dict[str, str]:
        """Class of every id that has one."""
        frame = self.frame[self.frame[self.target] != ""]
        return dict(zip(frame[self.id], frame[self.target], strict=True))

    def ids(self, how: str | None = None) -> list[str]:
        """Ids that were asked for; with ``how``, those of rows drawn in this way."""
        frame = self.frame if how is None else self.frame[self.frame[HOW] == how]
        return list(frame[self.id])

    @property
    def open_ids(self) -> list[str]:
        """Ids that are not answered yet, in the order of the file."""
        return list(self.frame[self.id][self.frame[self.target] == ""])

    @property
    def n_rounds(self) -> int:
        """Number of rounds so far."""
        return max(self.rounds.values(), default=0)

    @property
    def rounds(self) -> dict[str, int]:
        """Round of every id that was asked for; 0 for a cell without a number."""
        numbers = [int(text) if text.isdecimal() else 0 for text in self.frame[_ROUND]]
        return dict(zip(self.frame[self.id], numbers, strict=True))

    def asking(
        self,
        ids: Sequence[str],
        how: _Texts,
        guesses: _Texts = "",
        shown: _Cells | None = None,
    ) -> Answers:
        """Add rows to label as the next round, except those that were asked for."""
        pandas = require_for_tables("pandas")
        columns = {
            self.id: ids,
            self.target: "",
            HOW: how,
            _ROUND: str(self.n_rounds + 1),
            _GUESS: guesses,
            **(shown or {}),
        }
        added = pandas.DataFrame(columns, dtype=str)
        added = added[~added[self.id].isin(self.frame[self.id])]
        frame = pandas.concat([self.frame, added], ignore_index=True).fillna("")
        return replace(self, frame=frame)

    def check_spelling(self, names: Iterable[str], file: DataReader) -> None:
        """Raise a ValueError if names of classes differ by case or blanks only.

        ``file`` is the file of the rows, where some of the names may come from.
        """
        names_by_spelling = defaultdict(set)
        for name in names:
            names_by_spelling[spelling_of(name)].add(name)
        for spelled in names_by_spelling.values():
            if len(spelled) > 1:
                where = str(self.path)
                if self.target in file.columns:
                    where += f" or {file.path}"
                raise ValueError(
                    f"{where}: column {self.target!r} spells a class in "
                    f"{len(spelled)} ways, {quoted_list(sorted(spelled), 5)}: write it "
                    "in one way everywhere."
                )

    def require(self, id: str) -> None:
        """Raise a ValueError unless a row was asked for."""
        if id not in set(self.frame[self.id]):
            raise ValueError(
                f"{self.path} does not ask for the row {self.id} = {id!r}."
            )

    def answering(self, id: str, label: str) -> Answers:
        """Set the class of one row; "" takes it back."""
        self.require(id)
        frame = self.frame.copy()
        frame.loc[frame[self.id] == id, self.target] = label.strip()
        return replace(self, frame=frame)

    def guess_of(self, id: str) -> str:
        """Return the guess of a model for a row; empty if there is none."""
        return str(self.frame[_GUESS][self.frame[self.id] == id].iloc[0])

    def write(self) -> None:
        """Write the file; the old one stays until the new one is complete."""
        with atomic_write(self.path) as path:
            self.frame.to_csv(path, index=False)

    def __str__(self) -> str:
        n_open = plural(len(self.open_ids), "row")
        return (
            f"{plural(len(self.labels), 'label')} in {self.path}, {n_open} still to "
            "label"
        )
