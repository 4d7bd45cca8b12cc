"""Results in an SQLite file, where every row is stored as soon as it is computed."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from .._messages import Hint, Text

_KEY = ("experiment", "dataset", "repeat", "part", "method")
STORE = "rows.sqlite"  # in the folder of a study
FORMAT = 1
COMPARISON_FORMAT = 2  # in format 1 methods had other names, and self-training another meaning
_CHECKSUM = "checksum"  # of a row, and of all settings; earlier versions stored none
_SEALED = 1  # user_version of a file in which every row has one
_OUT = Hint("out")
T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Cell:
    """One split of one data set, on which every method is fitted once.

    ``part`` is the fold of a cross-validation, or the number of rows that varies on a curve.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int


def cells_of(experiment: str, parts: Mapping[str, Iterable[int]], n_repeats: int) -> list[Cell]:
    """Every part of every repeat of every data set, by its name."""
    return [
        Cell(experiment, dataset, repeat, part)
        for dataset, theirs in parts.items()
        for repeat, part in product(range(n_repeats), theirs)
    ]


@dataclass(frozen=True)
class FitResult:
    """One fit, a row of the store: what it was given and how it did, or why it failed.

    ``values`` holds the measures that the fit has, by their names; each is a column of the store.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int
    method: str
    n_labeled: int = 0
    n_unlabeled: int = 0
    n_test: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    remarks: str = ""  # warnings of the fit, one a line
    failure: str | None = None  # traceback of a fit that failed
    seed: int = 0
    versions: str = ""

    @property
    def cell(self) -> Cell:
        return Cell(self.experiment, self.dataset, self.repeat, self.part)

    def number(self, measure: str) -> float | None:
        """The value of a measure if it is a finite number."""
        value = self.values.get(measure)
        return value if value is not None and isfinite(value) else None


_FIELDS = [each.name for each in fields(FitResult) if each.name != "values"]


class StoreError(Exception):
    """A store that cannot be used, with the way out."""


def _error(*parts: str | Hint) -> StoreError:
    return StoreError(Text(*parts))


class Store:
    """Results of one folder. A writer takes a lock: two runs never write the same rows twice.

    ``kind`` names the study; StoreError if the folder holds another one. Measures that a file of
    an earlier version has no column for are added when they are first stored.
    """

    def __init__(self, path: Path, *, kind: str | None = None, read_only: bool = False) -> None:
        self.path = path
        self._lock: Any = None
        self._connection: Any = None
        self._is_sealed = False
        if read_only and not path.exists():
            out = Hint("out", path.parent)
            raise _error(f"{path} does not exist: run an experiment with ", out, " first.")
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(path.with_suffix(".lock"))
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._prepare(kind, read_only=read_only)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            self.close()
            raise StoreError(_explain(path, error)) from error
        except StoreError:
            self.close()
            raise

    def _prepare(self, kind: str | None, *, read_only: bool) -> None:
        run, key = self._connection.execute, ", ".join(_KEY)
        # SQLite takes a file of a few bytes for a new one, and what is cut off a page for zeros.
        if self.path.stat().st_size % run("PRAGMA page_size").fetchone()[0]:
            raise StoreError(_no_store(self.path))
        if not read_only:
            run("PRAGMA journal_mode=WAL")
            run("PRAGMA synchronous=NORMAL")
        # A run that was killed at its very start leaves no tables: to a reader they are empty.
        if not read_only or not run("SELECT name FROM sqlite_master").fetchall():
            table = f"CREATE {'TEMP ' if read_only else ''}TABLE IF NOT EXISTS"
            run("BEGIN")  # both or none
            run(f"{table} settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            run(f"{table} rows ({', '.join(_FIELDS)}, PRIMARY KEY ({key})) WITHOUT ROWID")
            run("COMMIT")
        run(f"SELECT {key}, failure FROM rows LIMIT 1")
        if run("PRAGMA quick_check(1)").fetchone() != ("ok",):  # rows may be skipped silently
            raise StoreError(_damaged(self.path))
        self._is_sealed = (
            run("PRAGMA user_version").fetchone() != (0,)
            or _CHECKSUM in self._columns()
            or run("SELECT 1 FROM settings WHERE name = ?", [_CHECKSUM]).fetchone() is not None
        )
        settings = self.settings()
        # The experiments of the paper did not always store their kind.
        found = settings.get("kind", "paper" if settings else kind)
        if kind is not None and found != kind:
            problem = f"{self.path} is a store of another study ({found})"
            raise _error(f"{problem}: use another ", _OUT, ".")
        expected = COMPARISON_FORMAT if found == "comparison" else FORMAT
        if (given := settings.get("format", expected)) != expected:
            problem = f"{self.path} has format {given}, and this version reads {expected}"
            ways = "use the version of iclda that wrote it, or run again with another "
            raise _error(f"{problem}: {ways}", _OUT, ".")
        if not read_only and not self._is_sealed:
            self._seal()

    def _seal(self) -> None:
        """Give a new store, or one of an earlier version, checksums, which it must have then."""
        entries = list(self._entries())
        same_key = " AND ".join(f"{name} = ?" for name in _KEY)
        texts = dict(self._read("SELECT name, value FROM settings"))
        with self._connection as connection:  # all or nothing
            connection.execute("BEGIN")
            connection.execute(f"ALTER TABLE rows ADD COLUMN {_CHECKSUM}")
            connection.executemany(
                f"UPDATE rows SET {_CHECKSUM} = ? WHERE {same_key}",
                [(str(_checksum(each)), *(each[name] for name in _KEY)) for each in entries],
            )
            if texts:
                pair = _CHECKSUM, str(_checksum(texts))
                connection.execute("INSERT INTO settings VALUES (?, ?)", pair)
            connection.execute(f"PRAGMA user_version = {_SEALED}")
        self._is_sealed = True

    def settings(self) -> dict[str, Any]:
        """Settings that the rows depend on, and notes about the runs that made them."""
        found = self._verified(dict(self._read("SELECT name, value FROM settings")), "settings")
        try:
            return {name: json.loads(value) for name, value in found.items()}
        except ValueError as error:
            raise StoreError(_damaged(self.path, " (settings are no JSON)")) from error

    def read_settings(self, kind: type[T]) -> T:
        """Settings as a dataclass; what is not stored has its default."""
        stored, names = self.settings(), [each.name for each in fields(kind)]  # type: ignore[arg-type]
        return kind(**{name: stored[name] for name in names if name in stored})

    def note(self, **values: Any) -> None:
        """Write settings, replacing those of the same name."""
        every = {**self.settings(), **values}
        texts = {name: json.dumps(value) for name, value in every.items()}
        pairs = [*texts.items(), (_CHECKSUM, str(_checksum(texts)))]
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", pairs)

    def agree(self, **values: Any) -> None:
        """Write settings on which rows depend, or refuse if rows were made with others."""
        self.note(**self.merge_settings(**values))

    def merge_settings(self, **values: Any) -> dict[str, Any]:
        """Settings joined with those that rows were made with; StoreError if they differ."""
        stored = self.settings()
        for name, value in values.items():
            if isinstance(value, dict) and isinstance(stored.get(name), dict):
                both = value.keys() & stored[name].keys()
                changed = sorted(key for key in both if value[key] != stored[name][key])
                if changed:
                    problem = f"{self.path.parent} holds rows of other data for "
                    way_out = ": use another ", _OUT, ", or remove the folder."
                    raise _error(problem, ", ".join(changed), *way_out)
                values[name] = {**stored[name], **value}
            elif name in stored and stored[name] != value:
                raise other_setting(self.path.parent, name, stored[name], value)
        return values

    def add(self, rows: Iterable[FitResult]) -> None:
        """Store rows, all or none of them."""
        entries = [{**{name: getattr(row, name) for name in _FIELDS}, **row.values} for row in rows]
        entries = [{**entry, _CHECKSUM: str(_checksum(entry))} for entry in entries]
        columns = list(dict.fromkeys((*_FIELDS, *(name for entry in entries for name in entry))))
        known = self._columns()
        for column in columns:
            if column not in known:
                self._read(f'ALTER TABLE rows ADD COLUMN "{column}"')
        names = ", ".join(f'"{column}"' for column in columns)
        self._write(
            f"INSERT OR REPLACE INTO rows ({names}) VALUES ({', '.join('?' * len(columns))})",
            [tuple(entry.get(column) for column in columns) for entry in entries],
        )

    def _columns(self) -> list[str]:
        return [name for _, name, *_ in self._read("PRAGMA table_info(rows)")]

    def _write(self, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
        try:
            with self._connection:
                self._connection.execute("BEGIN")
                self._connection.executemany(statement, values)
        except sqlite3.Error as error:
            raise StoreError(_explain(self.path, error)) from error

    def rows(self, experiment: str) -> list[FitResult]:
        """All rows of an experiment, in the order of their keys."""
        found = []
        for given in self._entries():
            if given.get("experiment") == experiment:
                known = {name: given.pop(name) for name in _FIELDS if name in given}
                found.append(FitResult(**known, values=given))
        return found

    def _entries(self) -> Iterator[dict[str, Any]]:
        """All rows, verified: one whose key was changed would else be one that is missing."""
        columns, order = self._columns(), ", ".join(_KEY)
        for entry in self._read(f"SELECT * FROM rows ORDER BY {order}"):
            given = dict(zip(columns, entry, strict=True))
            present = {name: value for name, value in given.items() if value is not None}
            yield self._verified(present, f"the row {entry[: len(_KEY)]}")

    def _verified(self, values: dict[str, Any], what: str) -> dict[str, Any]:
        """Values without their checksum; StoreError if they do not have it."""
        stored = values.pop(_CHECKSUM, None)
        if stored is None and values and self._is_sealed:
            raise StoreError(_damaged(self.path, f" ({what} has no checksum)"))
        if stored is not None and stored != str(_checksum(values)):
            raise StoreError(_damaged(self.path, f" ({what} has another checksum)"))
        return values

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query).fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise StoreError(_explain(self.path, error)) from error

    def missing(
        self, cells: Sequence[Cell], methods: Sequence[str]
    ) -> list[tuple[Cell, tuple[str, ...]]]:
        """Cells with the methods that have no row yet; a failed fit is a row."""
        done = {(Cell(*(row[name] for name in _KEY[:4])), row["method"]) for row in self._entries()}
        left = ((cell, tuple(m for m in methods if (cell, m) not in done)) for cell in cells)
        return [(cell, lacking) for cell, lacking in left if lacking]

    def close(self) -> None:
        """Give up the file and the lock."""
        for held in (self._connection, self._lock):
            if held is not None:
                held.close()


def _lock(path: Path) -> Any:
    """A lock on the folder that the system drops with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system; SQLite still keeps single rows whole
        return None
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        problem = f"Another run is writing to {path.parent}: wait for it, or use another "
        raise _error(problem, _OUT, ".") from None
    return file


def other_setting(folder: Path, name: str, stored: Any, asked: Any) -> StoreError:
    """The error of a folder whose rows were made with another value of a parameter."""
    problem = f"{folder} holds rows made with {name} {stored}, and this run asks for {name} {asked}"
    return _error(f"{problem}: use another ", _OUT, ", or ", Hint(name, stored), ".")


def _checksum(values: Mapping[str, Any]) -> int:
    """Of what SQLite gives back: it stores no NaN, and True as 1."""
    stored = sorted(
        (name, int(value) if isinstance(value, bool) else value)
        for name, value in values.items()
        if value is not None and value == value
    )
    return zlib.crc32(json.dumps(stored, default=repr).encode())


def _damaged(path: Path, what: str = "") -> str:
    return f"{path} is damaged{what}: restore it from a copy, or remove it and run again."


def _no_store(path: Path) -> Text:
    problem = f"{path} is no store of iclda, or it is damaged"
    return Text(f"{problem}: use another ", _OUT, ", or remove it.")


def _explain(path: Path, error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_ERROR:  # our statements are fixed: a table or column is missing
        problem = f"{path} is no store of this version of iclda ({error})"
        return Text(f"{problem}: use another ", _OUT, ".")
    if code == sqlite3.SQLITE_NOTADB:
        return _no_store(path)
    is_corrupt = code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT  # the rest says where
    # Python's own error for text that is no UTF-8 has no code.
    is_no_text = isinstance(error, sqlite3.OperationalError) and code is None
    if is_corrupt or is_no_text or isinstance(error, UnicodeError):
        return _damaged(path)
    if code is not None and code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        problem = f"Cannot write to {path}: {error}. What is stored there is intact"
        return Text(f"{problem}: make room and run again, or use another ", _OUT, ".")
    if code is not None and code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        problem = f"Cannot write to {path.parent}: {error}"
        return Text(f"{problem}: make it writable, or use another ", _OUT, ".")
    if isinstance(error, FileExistsError):
        return Text(_OUT, f" {path.parent} is a file: name a folder.")
    if isinstance(error, OSError) and error.strerror:
        return Text(f"Cannot use {path.parent}: {error.strerror}: use another ", _OUT, ".")
    return f"Cannot use {path}: {error}."
