"""Files of rows: CSV, Parquet, arrays, whose features have no names, and answers of a person.

They are read at once or in blocks of constant size; tables are written in blocks.
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
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray
from .._messages import plural, quoted_list
from .._rows.backends import check_finite, refuse_repeated
from .._rows.readers import Reader, reader_of
from .._system import atomic_write
from .encoders import COLUMN_TYPES, EMPTY_WORDS, require_for_tables

WRITTEN_SUFFIXES = (".csv", ".parquet")

# Columns of a file of rows that a person labels.
ROW, LABEL = "row", "label"  # columns of ids and classes without a name
CHOSEN, RANDOM = (
    "chosen",
    "random",
)  # how a row was drawn: for its worth, or for a fair test
HOW, _ROUND, _GUESS = "how", "round", "guess"
OWN_COLUMNS = (HOW, _ROUND, _GUESS)  # beside the id and the class

_Texts = str | Sequence[str]  # the same for all rows, or one a row
_Cells = Mapping[str, Sequence[str]]  # by column

_BLOCK_BYTES, _BATCH_ROWS = 1 << 20, 1 << 14
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile("[0-9]+")
_COMMA_NUMBER, _POINT_NUMBER = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


def open_data(path: Path, ids: Sequence[str] = ()) -> DataReader:
    """Open a table or an array file; ``ids`` name columns that identify the rows."""
    is_array = path.is_dir() or path.suffix.lower() in (".npy", ".npz")
    return FeatureFile(path, ids) if is_array else open_table(path)


def open_table(path: Path) -> TableReader:
    """Open a file; ValueError if it cannot be read as a table."""
    with _explained_errors(path), path.open("rb") as opened:
        if opened.read(4) == b"PAR1":
            return ParquetReader(path, path)
        return CsvReader(path, path)


class _NamedColumns:
    """A file with named columns; ``path`` is what messages call it, ``file`` holds the rows."""

    lists: dict[str, list[str]] = {}  # noqa: RUF012 - columns made of a column of lists, by its name

    def __init__(self, path: Path, file: Path) -> None:
        self.path, self.file = path, file
        self.columns = tuple(self._read_names())
        for name in self.columns:
            if "\0" in name:  # NumPy drops it from the end of names
                raise ValueError(
                    f"{path}: the column {name!r} holds a zero byte: rename it."
                )
        refuse_repeated(self.columns, str(path))

    def _read_names(self) -> Sequence[str]:
        raise NotImplementedError

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        raise NotImplementedError

    def column(self, name: str) -> Any:
        """Read one column as an Arrow column, of a CSV file as text."""
        arrow = require_for_tables("pyarrow")
        blocks = self.batches({name: arrow.string()})
        return arrow.chunked_array([batch.column(name) for batch, _ in blocks])

    @property
    def n_rows(self) -> int:
        """Number of rows, which are read to be counted."""
        return len(self.column(self.columns[0]))

    def sha256(self) -> str:
        """Checksum of the bytes of the file."""
        return sha256_of([self.file])


class ParquetReader(_NamedColumns):
    """Columns with types, as pandas, polars or Arrow write them; they keep their types.

    A column of lists of numbers, all of one length, is a column a number: NAME_0, NAME_1, ...
    """

    def _read_names(self) -> Sequence[str]:
        self.lists = {}
        with self._opened() as opened:
            for field in opened.schema_arrow:
                if (width := _list_width(opened, field)) is not None:
                    self.lists[field.name] = [f"{field.name}_{k}" for k in range(width)]
            names = opened.schema_arrow.names
        return [column for name in names for column in self.lists.get(name, [name])]

    def read(self, columns: Sequence[str]) -> Any:
        """Read all rows as an Arrow table of these columns."""
        with _explained_errors(self.path), self._opened() as file:
            return self._without_lists(file.read(self._stored(columns)), 0).select(
                columns
            )

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types``, and the share of the file so far."""
        done, names = 0, self._stored(types)
        with _explained_errors(self.path), self._opened() as file:
            n_rows = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(
                _BATCH_ROWS, columns=names, use_threads=False
            ):
                yield self._without_lists(batch, done), (done + batch.num_rows) / n_rows
                done += batch.num_rows

    def _stored(self, columns: Iterable[str]) -> list[str]:
        """Names in the file of columns, which may be made of lists."""
        stored = {column: name for name, made in self.lists.items() for column in made}
        return list(dict.fromkeys(stored.get(column, column) for column in columns))

    def _without_lists(self, rows: Any, start: int) -> Any:
        """Replace every column of lists by columns of numbers; ``start`` rows are before these."""
        columns: dict[str, Any] = {}
        for name in rows.schema.names:
            column, made = rows[name], self.lists.get(name, [name])
            if name in self.lists:
                column = _entries(
                    column, len(made), f"{self.path}, column {name!r}", start
                )
            columns |= zip(
                made, column if name in self.lists else [column], strict=True
            )
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

    def _read_names(self) -> Sequence[str]:
        with self.file.open("rb") as raw:
            self.is_packed = raw.read(2) == b"\x1f\x8b"
        # A character cut in two by the end of the block is left out; an invalid one is an error.
        decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        try:
            with self._opened() as opened:
                text = decode(opened.read(_BLOCK_BYTES))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path} is no UTF-8 text: byte {error.start} cannot be read. Save it as "
                "UTF-8 (in a spreadsheet: 'CSV UTF-8')."
            ) from error
        if len(text.strip().splitlines()) < 2:
            raise ValueError(
                f"{self.path} holds no rows below the names of its columns in row 1, or no end of "
                "row 1 in its first megabyte: fill it, name another file, or delete it if it is to "
                "be made."
            )
        self.delimiter = _most_frequent_delimiter(text)
        self.decimal = _decimal_sign(text, self.delimiter)
        self._refuse_open_quote()
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        self.n_header_rows, names = next(
            (n, row) for n, row in enumerate(rows, 1) if row
        )
        return [
            name.strip() or f"(column {number})" for number, name in enumerate(names, 1)
        ]

    def read(self, columns: Sequence[str]) -> Any:
        """Read all rows; columns are numbers, booleans, dates or text by what their cells hold."""
        with self._streamed() as (file, _):
            options = self._options({}, columns)
            return require_for_tables("pyarrow.csv").read_csv(file, **options)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield blocks of a megabyte of text each; pyarrow reads some tens of them ahead."""
        csv, options = require_for_tables("pyarrow.csv"), self._options(types, types)
        size, done = max(self.file.stat().st_size, 1), 0
        with self._streamed() as (file, raw), csv.open_csv(file, **options) as reader:
            for batch in reader:
                done = raw.tell() if self.is_packed else done + _BLOCK_BYTES
                yield batch, min(done / size, 1.0)

    def _opened(self) -> Any:
        return gzip.GzipFile(self.file) if self.is_packed else self.file.open("rb")

    @contextmanager
    def _streamed(self) -> Iterator[tuple[Any, Any]]:
        """Yield the text and the bytes of the file, as streams of pyarrow.

        Its threads read ahead: a file of Python under them would need the interpreter, which may
        be shutting down after an interruption.
        """
        arrow = require_for_tables("pyarrow")
        with (
            _explained_errors(self.path, self.columns),
            arrow.OSFile(str(self.file)) as raw,
        ):
            yield (
                arrow.CompressedInputStream(raw, "gzip") if self.is_packed else raw,
                raw,
            )

    def _refuse_open_quote(self) -> None:
        """Refuse a quote that is never closed: pyarrow would take all that follows as one cell."""
        with self._opened() as file:
            blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
            if sum(block.count(b'"') for block in blocks) % 2 == 0:
                return
            file.seek(0)
            text = io.TextIOWrapper(
                file, errors="replace", encoding="utf-8", newline=""
            )
            n_rows = 0
            try:
                for _ in csv.reader(text, delimiter=self.delimiter, strict=True):
                    n_rows += 1
            except csv.Error as error:
                raise ValueError(
                    f"{self.path}, row {n_rows + 1}: a cell has a quote that is never closed "
                    f"({error}). Write a quote inside a cell twice, and the whole cell in quotes."
                ) from error

    def _options(
        self, types: Mapping[str, Any], columns: Iterable[str]
    ) -> dict[str, Any]:
        csv = require_for_tables("pyarrow.csv")
        return {
            "read_options": csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
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


def feature_names(n_features: int) -> list[str]:
    """Names of features that have none."""
    return [f"feature_{k}" for k in range(n_features)]


class FeatureFile:
    """Rows of an array, with columns feature_0, feature_1, ...

    Arrays of an .npz file with one entry a row are columns, too. Names in ``ids`` that the file
    does not have are columns that number the rows from 0.
    """

    def __init__(self, path: Path, ids: Sequence[str] = ()) -> None:
        self.path = self.file = path
        self._files = _shards(path) if path.is_dir() else [path]
        self.rows, beside = _open_arrays(path, self._files)
        self.rows.name = str(path)
        self.n_rows = int(self.rows.n_rows or 0)
        self.features = feature_names(self.rows.n_features)
        self.lists = {"features": self.features}
        self._beside = {**dict.fromkeys(ids, np.arange(self.n_rows)), **beside}
        self.columns = (*self._beside, *self.features)

    def column(self, name: str) -> Any:
        """Return the entries of an array beside the features, as an Arrow column."""
        return require_for_tables("pyarrow").chunked_array(
            [self._beside[name].tolist()]
        )

    def read(self, names: Sequence[str]) -> Any:
        """Return arrays beside the features as an Arrow table."""
        return require_for_tables("pyarrow").table(
            {name: self.column(name) for name in names}
        )

    def take(self, is_taken: AnyArray) -> Any:
        """Return the features of some rows as a pandas frame, whose index has their positions."""
        index = np.flatnonzero(is_taken)
        values = self.rows.read_rows(index).astype(np.float64, copy=False)
        return require_for_tables("pandas").DataFrame(values, index, self.features)

    def batches(self, types: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of the columns in ``types``, and the share of the rows so far."""
        arrow, names = require_for_tables("pyarrow"), self.features
        for span in self.rows.spans(_BATCH_ROWS):
            block = np.empty((span.n_rows, len(names)), order="F")
            span.read(block, 0)
            check_finite(block, span.where, names, index=range(span.start, span.stop))
            columns = dict(zip(names, block.T, strict=True))
            part = slice(span.start, span.stop)
            columns |= {
                name: each[part].astype(str) for name, each in self._beside.items()
            }
            chosen = {
                name: arrow.array(columns[name], kind) for name, kind in types.items()
            }
            yield arrow.RecordBatch.from_pydict(chosen), span.stop / self.n_rows

    def sha256(self) -> str:
        """Checksum of the bytes of all files."""
        return sha256_of(self._files)


TableReader = CsvReader | ParquetReader
DataReader = TableReader | FeatureFile


@contextmanager
def _explained_errors(path: Path, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of readers into one ValueError that names the file, row and column."""
    arrow = require_for_tables("pyarrow")
    try:
        yield
    except (KeyboardInterrupt, MemoryError):  # pyarrow derives its own from these
        raise
    except (
        arrow.ArrowException,
        csv.Error,
        EOFError,
        zlib.error,
        OSError,
        UnicodeError,
    ) as error:
        if getattr(error, "filename", None):  # the file cannot be opened
            raise
        message = str(error).splitlines()[0]
        if "launch worker thread" in message:  # memory is what it was refused
            raise MemoryError(
                f"{path} is read by a thread, which could not be started"
            ) from error
        problem = _explain(message, columns)
        raise ValueError(f"{path} cannot be read: {problem}.") from error


def _explain(message: str, columns: Sequence[str]) -> str:
    """Name the column and its type where a message of pyarrow has a number and an Arrow type."""
    if "straddling" in message:
        return "a row is over a megabyte of text. Shorten it, or save the table as .parquet"
    for each in COLUMN_TYPES:
        its_words = f"CSV conversion error to {each.arrow}"
        message = message.replace(its_words, f"must hold {each.cells}")
    message = message.replace(
        "invalid UTF8 data", "it is no UTF-8 text, save the file as UTF-8"
    )
    return re.sub(
        r"In CSV column #(\d+): Row #(\d+)",
        lambda place: f"row {place[2]}, column {columns[int(place[1])]!r}",
        message,
    )


def _most_frequent_delimiter(text: str) -> str:
    """Return the delimiter that is most frequent in the first line, quoted cells left out."""
    unquoted = re.sub(r'"[^"]*"', "", text)
    counts = Counter(unquoted.lstrip().splitlines()[0] if unquoted.strip() else "")
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _list_width(file: Any, field: Any) -> int | None:
    """Numbers of the first list in a column of a Parquet file; None if it holds no such lists."""
    types, kind = require_for_tables("pyarrow").types, field.type
    is_list = (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
    if not is_list or not (
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    ):
        return None
    batches = file.iter_batches(_BATCH_ROWS, columns=[field.name], use_threads=False)
    lists = (batch.column(0).drop_null() for batch in batches)
    return next((len(each[0]) for each in lists if len(each)), None)


def _entries(column: Any, width: int, place: str, start: int) -> AnyArray:
    """Numbers of all lists of a column, (width, rows); ValueError unless each has so many."""
    lengths = require_for_tables("pyarrow.compute").list_value_length(column)
    is_bad, held = lengths.fill_null(0).to_numpy() != width, "{} numbers"
    if not is_bad.any():
        flat = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        numbers = (
            flat.flatten().to_numpy(zero_copy_only=False).reshape(len(column), width)
        )
        is_bad, held = (
            ~np.isfinite(numbers).all(axis=1),
            "NaN, infinity or an empty entry",
        )
    if is_bad.any():
        row = int(is_bad.argmax())
        raise ValueError(
            f"{place}, row {start + row + 1} must hold a list of {width} numbers, as the first one "
            f"does, and holds {held.format(lengths[row].as_py() or 'no')}. Leave the row or "
            "the column out, or compute its features again."
        )
    return np.ascontiguousarray(numbers.T)


def _decimal_sign(text: str, delimiter: str) -> str:
    """Return a comma if cells hold numbers with a comma and none with a point."""
    if delimiter == ",":
        return "."
    cells = {cell.strip(' "') for cell in re.split(f"[{delimiter}\r\n]", text)}
    has_comma = any(map(_COMMA_NUMBER.fullmatch, cells))
    has_point = any(map(_POINT_NUMBER.fullmatch, cells))
    return "," if has_comma and not has_point else "."


@contextmanager
def appending(path: Path, suffix: str) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends Arrow tables to a new CSV or Parquet file."""
    with ExitStack() as opened:
        if suffix.lower() == ".csv":
            file = opened.enter_context(path.open("w", newline="", encoding="utf-8"))

            def append(rows: Any) -> None:
                frame = rows.to_pandas(
                    integer_object_nulls=True
                )  # ids with gaps stay integers
                frame.to_csv(
                    file, index=False, header=not file.tell(), lineterminator="\n"
                )
        else:
            writers: list[Any] = []  # one, once the first rows have given the types

            def append(rows: Any) -> None:
                if not writers:
                    parquet = require_for_tables("pyarrow.parquet")
                    writers.append(
                        opened.enter_context(parquet.ParquetWriter(path, rows.schema))
                    )
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

    A ValueError if numbers in names that are alike otherwise have another order: rows and labels
    might not match.
    """
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise ValueError(
            f"{folder} is a folder without .npy files: name another, or a file."
        )
    keys = [
        (_NUMBER.sub("", f.name), [*map(int, _NUMBER.findall(f.name))]) for f in files
    ]
    for k in range(1, len(files)):
        if keys[k - 1][0] == keys[k][0] and keys[k - 1] > keys[k]:
            raise ValueError(
                f"{folder} is read in the order of names, and {files[k - 1].name} comes before "
                f"{files[k].name}: write numbers with leading zeros, so that rows and labels match."
            )
    return files


def _open_arrays(
    path: Path, files: Sequence[Path]
) -> tuple[Reader, dict[str, AnyArray]]:
    """Return a reader of the rows, and the arrays with one entry a row beside them."""
    if path.suffix.lower() != ".npz":
        return reader_of(list(files), "Features"), {}
    try:
        with np.load(path, allow_pickle=False) as opened:
            arrays = dict(opened)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        way_out = "save it again, with arrays of numbers and text alone"
        raise ValueError(f"{path} cannot be read ({error}): {way_out}.") from error
    names = [name for name, array in arrays.items() if array.ndim == 2]
    if len(names) != 1:
        held = ", ".join(
            f"{name!r} of shape {array.shape}" for name, array in arrays.items()
        )
        raise ValueError(
            f"{path} must hold one array of rows x features, got {len(names)} ({held}): save the "
            "features alone, by numpy.save."
        )
    rows = arrays.pop(names[0])
    beside = {
        name: array for name, array in arrays.items() if array.shape == (len(rows),)
    }
    return reader_of(rows, f"{path}, array {names[0]!r}"), beside


def are_answers(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is one of rows that a person labels."""
    return {*OWN_COLUMNS} <= {*columns}


def spelling_of(name: str) -> str:
    """Name of a class without what often differs by mistake: case and blanks."""
    return "".join(name.casefold().split())


@dataclass(frozen=True)
class Answers:
    """The file of rows that a person labels: a CSV that a spreadsheet, ``ask`` and ``label`` write.

    One line a row: its id, its class, empty until a person has filled it, how the row was drawn,
    in which round, the guess of a model, and the columns that help to decide. All is text.
    """

    path: Path
    id: str  # column of the ids
    target: str  # column of the classes
    frame: Any  # DataFrame of text: id, target, how, round, guess, further columns

    @classmethod
    def read(cls, path: Path, id: str, target: str) -> Answers:
        """Read a file, or begin one that does not exist or is empty."""
        if path.exists() and path.stat().st_size:
            return cls.of(open_table(path), id, target)
        none = dict.fromkeys([id, target, *OWN_COLUMNS], ())
        return cls(
            path, id, target, require_for_tables("pandas").DataFrame(none, dtype=str)
        )

    @classmethod
    def of(cls, file: DataReader, id: str, target: str) -> Answers:
        """Read an open file, without the empty lines that a spreadsheet may add."""
        path, arrow = file.path, require_for_tables("pyarrow")
        needed = [id, target, *OWN_COLUMNS]
        if lacking := [name for name in needed if name not in file.columns]:
            raise ValueError(
                f"{path} has no column {quoted_list(lacking, 5)}, and is no file of rows to label "
                "without it: bring it back, or name another file, which will be made."
            )
        batches = file.batches(dict.fromkeys(file.columns, arrow.string()))
        cells = arrow.Table.from_batches([batch for batch, _ in batches])
        frame = cells.to_pandas().fillna("").astype(str)
        frame = frame[(frame != "").any(axis=1)].reset_index(drop=True)
        if unknown := sorted(set(frame[HOW]) - {CHOSEN, RANDOM}):
            raise ValueError(
                f"{path}: column {HOW!r} must say {CHOSEN} or {RANDOM}, got "
                f"{quoted_list(unknown, 3)}. It says which labels measure the error: undo the "
                "change."
            )
        frame[target] = frame[target].str.strip()
        return cls(path, id, target, frame)

    @property
    def labels(self) -> dict[str, str]:
        """Class of every id that has one."""
        frame = self.frame[self.frame[self.target] != ""]
        return dict(zip(frame[self.id], frame[self.target], strict=True))

    def ids(self, how: str | None = None) -> list[str]:
        """Ids that were asked for, in this way if it is given."""
        frame = self.frame if how is None else self.frame[self.frame[HOW] == how]
        return list(frame[self.id])

    @property
    def open_ids(self) -> list[str]:
        """Ids that are not answered yet, in the order of the file."""
        return list(self.frame[self.id][self.frame[self.target] == ""])

    @property
    def n_rounds(self) -> int:
        return max(self.rounds.values(), default=0)

    @property
    def rounds(self) -> dict[str, int]:
        """Round of every id that was asked for."""
        numbers = [int(text) if text.isdecimal() else 0 for text in self.frame[_ROUND]]
        return dict(zip(self.frame[self.id], numbers, strict=True))

    def asking(
        self,
        ids: Sequence[str],
        how: _Texts,
        guesses: _Texts = "",
        shown: _Cells | None = None,
    ) -> Answers:
        """With further rows to label as the next round, except those that were asked for."""
        columns = {
            self.id: ids,
            self.target: "",
            HOW: how,
            _ROUND: str(self.n_rounds + 1),
        }
        pandas = require_for_tables("pandas")
        more = pandas.DataFrame(
            {**columns, _GUESS: guesses, **(shown or {})}, dtype=str
        )
        more = more[~more[self.id].isin(self.frame[self.id])]
        frame = pandas.concat([self.frame, more], ignore_index=True).fillna("")
        return replace(self, frame=frame)

    def check_spelling(self, names: Iterable[str], file: DataReader) -> None:
        """Raise a ValueError if names of classes, here or in the file of rows, are the same one."""
        place = (
            f"{self.path} or {file.path}" if self.target in file.columns else self.path
        )
        spellings = defaultdict(set)
        for name in names:
            spellings[spelling_of(name)].add(name)
        for alike in spellings.values():
            if len(alike) > 1:
                raise ValueError(
                    f"{place}: column {self.target!r} spells a class in {len(alike)} ways, "
                    f"{quoted_list(sorted(alike), 5)}: write it in one way everywhere."
                )

    def require(self, id: str) -> None:
        """Raise a ValueError unless a row was asked for."""
        if id not in set(self.frame[self.id]):
            raise ValueError(
                f"{self.path} does not ask for the row {self.id} = {id!r}."
            )

    def answering(self, id: str, label: str) -> Answers:
        """With the class of one row; "" takes it back."""
        self.require(id)
        frame = self.frame.copy()
        frame.loc[frame[self.id] == id, self.target] = label.strip()
        return replace(self, frame=frame)

    def guess_of(self, id: str) -> str:
        """Guess of a model for a row; empty if there is none."""
        return str(self.frame[_GUESS][self.frame[self.id] == id].iloc[0])

    def write(self) -> None:
        """Write the file; the old one stays until the new one is whole."""
        with atomic_write(self.path) as path:
            self.frame.to_csv(path, index=False)

    def __str__(self) -> str:
        n_open = plural(len(self.open_ids), "row")
        return f"{plural(len(self.labels), 'label')} in {self.path}, {n_open} still to label"
