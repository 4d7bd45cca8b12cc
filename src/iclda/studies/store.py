"""Rows of results in an SQLite file.

A row is one fit: its cell, its method, and the measures on the test rows. A study adds
rows as soon as they are computed, so that an interruption loses nothing, and asks for
the cells that are ``missing``. The settings that the rows depend on are stored with
them. One study refuses a run with other settings (``merge_settings``), the other stores
its rows under another name of the data set.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from itertools import chain, product
from math import isfinite
from pathlib import Path
from typing import Any

from .._messages import Hint, say

# Name of the file in the folder of a study.
STORE = "rows.sqlite"
# With this the failure of a fit begins that the rows do not allow.
IMPOSSIBLE = "FitError: "
# Raised when stores of an earlier format could not be read.
_FORMAT = 7
# Columns that identify a row.
_KEY = ("experiment", "dataset", "repeat", "part", "method")
_KEY_NAMES = ", ".join(_KEY)
# What helps after an error of SQLite, by its code. Other errors mean that the file is
# damaged, or not a store.
_WAYS_OUT = {
    sqlite3.SQLITE_FULL: "make room",
    sqlite3.SQLITE_IOERR: "make room",
    sqlite3.SQLITE_READONLY: "make it writable",
    sqlite3.SQLITE_CANTOPEN: "make it writable",
}
# SQLite extends some codes by further bytes: the lowest one is the code itself.
_CODE_BYTE = 0xFF


@dataclass(frozen=True, order=True)
class Cell:
    """One split of one data set, on which every method is fitted once.

    ``part`` is the fold of a cross-validation, or the number of rows that varies along
    a curve.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int


def cells_of(
    experiment: str, parts: Mapping[str, Iterable[int]], n_repeats: int
) -> list[Cell]:
    """Return the cells of all repeats and parts; ``parts`` is by data set."""
    return [
        Cell(experiment, dataset, repeat, part)
        for dataset, parts_of_set in parts.items()
        for repeat, part in product(range(n_repeats), parts_of_set)
    ]


@dataclass(frozen=True)
class FitResult:
    """One fit: a row of the store.

    ``values`` holds the measures by name, each of which is a column of the store.
    ``failure`` is the traceback of a fit that failed or, if the rows did not allow the
    fit, ``IMPOSSIBLE`` and the reason.
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
    failure: str | None = None
    seed: int = 0
    versions: str = ""

    @property
    def cell(self) -> Cell:
        return Cell(self.experiment, self.dataset, self.repeat, self.part)

    @property
    def is_alarm(self) -> bool:
        """Whether the fit failed although the rows allowed it."""
        return self.failure is not None and not self.failure.startswith(IMPOSSIBLE)

    def number(self, measure: str) -> float | None:
        """Return the value of a measure if it is a finite number, None otherwise."""
        value = self.values.get(measure)
        return value if value is not None and isfinite(value) else None


# Columns that every store has; those of measures are added when they are needed.
_COLUMNS = [field.name for field in fields(FitResult) if field.name != "values"]


class StoreError(ValueError):
    """A store cannot be used. The message says what to do."""


def stored_kind(out: Path) -> str:
    """Return the name of the study whose rows a folder holds, "" if there are none."""
    with closing(Store(out / STORE, read_only=True)) as store:
        return str(store.settings().get("kind", ""))


class Store:
    """The rows and settings of one folder.

    ``kind`` names the study; a StoreError is raised if the folder holds another one. A
    writer locks the folder, so that two runs never compute the same rows.
    """

    def __init__(
        self, path: Path, *, kind: str | None = None, read_only: bool = False
    ) -> None:
        self.path = path
        self._lock: Any = None
        self._connection: Any = None
        if read_only and not path.exists():
            sentence = "{path} does not exist: run an experiment with {out} first."
            raise StoreError(say(sentence, path=path, out=Hint("out", path.parent)))
        try:
            with _explained_errors(path):
                if not read_only:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self._lock = _lock(path.with_suffix(".lock"))
                # Transactions begin where the code says so, not before every statement.
                self._connection = sqlite3.connect(path, isolation_level=None)
                self._connection.row_factory = sqlite3.Row
                self._open_tables(read_only)
            self._check_kind(kind)
        except StoreError:
            self.close()
            raise

    def _open_tables(self, read_only: bool) -> None:
        """Create the tables where there are none, and check the file."""
        run = self._connection.execute
        # SQLite takes a file of a few bytes for an empty one, and reads zeros where a
        # file is cut off.
        [page_size] = run("PRAGMA page_size").fetchone()
        if self.path.stat().st_size % page_size:
            raise ValueError("its last page is incomplete")
        if not read_only:
            # A killed process loses at most its last transaction, and readers of the
            # folder do not wait for the writer.
            run("PRAGMA journal_mode=WAL")
            run("PRAGMA synchronous=NORMAL")

        has_tables = bool(run("SELECT name FROM sqlite_master").fetchall())
        if not read_only:
            self._create_tables("CREATE TABLE IF NOT EXISTS")
        elif not has_tables:
            # A run that was killed at its very start leaves no tables. A reader then
            # gets empty temporary ones, which are not written to the file.
            self._create_tables("CREATE TEMP TABLE")

        # A database of another program has no such columns.
        run(f"SELECT {_KEY_NAMES}, failure FROM rows LIMIT 1")
        # Without this check SQLite may skip damaged rows silently.
        [problem] = run("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise ValueError(problem)

    def _create_tables(self, create: str) -> None:
        """Create both tables or none of them; ``create`` begins the statements."""
        run = self._connection.execute
        columns = ", ".join(_COLUMNS)
        run("BEGIN")
        run(f"{create} settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        run(f"{create} rows ({columns}, PRIMARY KEY ({_KEY_NAMES})) WITHOUT ROWID")
        run("COMMIT")

    def _check_kind(self, kind: str | None) -> None:
        """Raise a StoreError if the store is of another study or format."""
        settings = self.settings()
        stored_kind = settings.get("kind", kind)
        if kind is not None and stored_kind != kind:
            sentence = (
                "{path} is a store of another study ({stored}): use another {@out}."
            )
            raise StoreError(say(sentence, path=self.path, stored=stored_kind))
        stored_format = settings.get("format", _FORMAT)
        if stored_format != _FORMAT:
            sentence = (
                "{path} was made by another version of iclda, in format {stored} in "
                "place of {known}: run again with another {@out}, or remove the folder."
            )
            message = say(sentence, path=self.path, stored=stored_format, known=_FORMAT)
            raise StoreError(message)

    def settings(self) -> dict[str, Any]:
        """Return the settings that rows depend on, and notes about the runs."""
        settings = self.query("SELECT name, value FROM settings")
        # A value that is not JSON is damage, too.
        with _explained_errors(self.path):
            return {entry["name"]: json.loads(entry["value"]) for entry in settings}

    def note(self, **values: Any) -> None:
        """Write settings, replacing those of the same name."""
        pairs = [(name, json.dumps(value)) for name, value in values.items()]
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", pairs)

    def merge_settings(self, **values: Any) -> dict[str, Any]:
        """Return settings to store: these and the format, dictionaries also as stored.

        A StoreError is raised if the rows were made with other settings. A dictionary,
        such as the checksums of data sets, may have new entries, but the entries that
        it shares with the stored one must be the same.
        """
        values["format"] = _FORMAT
        stored = self.settings()
        for name, value in values.items():
            if isinstance(value, dict):
                entries = stored.get(name, {})
                self._check_same_data(value, entries)
                values[name] = {**entries, **value}
            elif name in stored:
                self._check_same_setting(name, value, stored[name])
        return values

    def _check_same_setting(self, name: str, value: Any, stored: Any) -> None:
        if value == stored:
            return
        sentence = (
            "{folder} holds rows made with {name} {stored}, and this run asks for "
            "{name} {value}: use another {@out}, or {setting}."
        )
        message = say(
            sentence,
            folder=self.path.parent,
            name=name,
            stored=stored,
            value=value,
            setting=Hint(name, stored),
        )
        raise StoreError(message)

    def _check_same_data(
        self, digests: Mapping[str, str], stored: Mapping[str, str]
    ) -> None:
        shared = digests.keys() & stored.keys()
        changed = sorted(name for name in shared if digests[name] != stored[name])
        if changed:
            sentence = (
                "{folder} holds rows of other data for {changed}: use another {@out}, "
                "or remove the folder."
            )
            names = ", ".join(changed)
            raise StoreError(say(sentence, folder=self.path.parent, changed=names))

    def add(self, rows: Iterable[FitResult]) -> None:
        """Store rows, all or none of them."""
        entries = []
        for row in rows:
            entry = {column: getattr(row, column) for column in _COLUMNS}
            entries.append({**entry, **row.values})
        columns = list(dict.fromkeys(chain.from_iterable(entries)))

        # A measure gets its column when it is first stored.
        existing = {column["name"] for column in self.query("PRAGMA table_info(rows)")}
        for column in columns:
            if column not in existing:
                self.query(f'ALTER TABLE rows ADD COLUMN "{column}"')
        names = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" for _ in columns)
        lines = [tuple(entry.get(column) for column in columns) for entry in entries]
        self._write(f"INSERT OR REPLACE INTO rows ({names}) VALUES ({marks})", lines)

    def _write(self, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement for each tuple of values, in one transaction."""
        with _explained_errors(self.path), self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(statement, values)

    def rows(self, experiment: str, dataset: str | None = None) -> list[FitResult]:
        """Return the rows of an experiment, or of one of its data sets, by key."""
        condition = "experiment = ?"
        values = [experiment]
        if dataset is not None:
            condition += " AND dataset = ?"
            values.append(dataset)
        statement = f"SELECT * FROM rows WHERE {condition} ORDER BY {_KEY_NAMES}"
        results = []
        for entry in self.query(statement, *values):
            # Other rows may have measures that this one lacks.
            present = {
                name: value for name, value in entry.items() if value is not None
            }
            columns = {name: present.pop(name) for name in _COLUMNS if name in present}
            # What is left are the measures.
            results.append(FitResult(**columns, values=present))
        return results

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Execute a statement of SQL; return its result, a dictionary for each line."""
        with _explained_errors(self.path):
            return [dict(line) for line in self._connection.execute(sql, values)]

    def missing(
        self, cells: Sequence[Cell], methods: Sequence[str]
    ) -> list[tuple[Cell, tuple[str, ...]]]:
        """Return cells with the methods that have no row yet; a failed fit is a row."""
        keys = self.query(f"SELECT {_KEY_NAMES} FROM rows")
        stored = {tuple(key.values()) for key in keys}
        missing = []
        for cell in cells:
            # The fields of a cell are all columns of the key but the method.
            cell_key = tuple(vars(cell).values())
            to_fit = tuple(name for name in methods if (*cell_key, name) not in stored)
            if to_fit:
                missing.append((cell, to_fit))
        return missing

    def close(self) -> None:
        """Close the file and release the lock."""
        if self._connection is not None:
            self._connection.close()
        if self._lock is not None:
            self._lock.close()


def _lock(path: Path) -> Any:
    """Lock the folder until the process ends, in whatever way."""
    try:
        import fcntl
    except ImportError:
        # Windows has no such locks. SQLite still keeps single rows whole.
        return None
    file = path.open("w")
    try:
        # Exclusive, and an error instead of a wait if another run has the lock.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        sentence = (
            "Another run is writing to {folder}: wait for it, or use another {@out}."
        )
        raise StoreError(say(sentence, folder=path.parent)) from None
    return file


@contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system into a StoreError with the way out."""
    try:
        yield
    except StoreError:
        raise
    except FileExistsError as error:
        sentence = "{@out} {folder} is a file: name a folder."
        raise StoreError(say(sentence, folder=path.parent)) from error
    except OSError as error:
        sentence = "Cannot use {folder}: {problem}: use another {@out}."
        problem = error.strerror or error
        raise StoreError(say(sentence, folder=path.parent, problem=problem)) from error
    except (sqlite3.Error, ValueError) as error:
        # Only errors of SQLite have a code; 0 is none of those with a way out.
        extended_code = getattr(error, "sqlite_errorcode", None) or 0
        way_out = _WAYS_OUT.get(extended_code & _CODE_BYTE)
        if way_out:
            sentence = (
                "Cannot write to {path}: {problem}. What is stored there is intact: "
                "{way_out} and run again, or use another {@out}."
            )
        else:
            sentence = (
                "{path} is not a store of this version of iclda, or it is damaged "
                "({problem}): restore it from a copy, or use another {@out}."
            )
        message = say(sentence, path=path, problem=error, way_out=way_out)
        raise StoreError(message) from error
