"""Results in an SQLite file, where every row is stored as soon as it is computed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

from .._messages import Hint, say

STORE = "rows.sqlite"  # in the folder of a study
PAPER_FORMAT = 1
COMPARISON_FORMAT = (
    2  # in format 1 methods had other names, and self-training another meaning
)
_FIRST_KIND = "paper"  # early versions did not store it
_KEY = ("experiment", "dataset", "repeat", "part", "method")
_FORMER_SETTING, _FORMER_COLUMNS = (
    "checksum",
    ("checksum", "remarks"),
)  # of earlier versions
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_CLOSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


@dataclass(frozen=True, order=True)
class Cell:
    """One split of one data set, on which every method is fitted once.

    ``part`` is the fold of a cross-validation, or the number of rows that varies on a curve.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int


def cells_of(
    experiment: str, parts: Mapping[str, Iterable[int]], n_repeats: int
) -> list[Cell]:
    """Return the cells of all repeats and parts; ``parts`` has those of every data set."""
    return [
        Cell(experiment, dataset, repeat, part)
        for dataset, theirs in parts.items()
        for repeat, part in product(range(n_repeats), theirs)
    ]


@dataclass(frozen=True)
class FitResult:
    """One fit, a row of the store: its inputs and measures, or the reason of its failure.

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


class StoreError(ValueError):
    """A store that cannot be used, with the way out."""


def stored_kind(out: Path) -> str:
    """The study whose rows a folder holds."""
    with closing(Store(out / STORE, read_only=True)) as store:
        return str(store.settings().get("kind", _FIRST_KIND))


class Store:
    """Results of one folder.

    ``kind`` names the study; StoreError if the folder holds another one. A writer locks the folder,
    so that two runs never compute the same rows. A measure gets a column when it is first stored.
    """

    def __init__(
        self, path: Path, *, kind: str | None = None, read_only: bool = False
    ) -> None:
        self.path = path
        self._lock: Any = None
        self._connection: Any = None
        if read_only and not path.exists():
            out = Hint("out", path.parent)
            sentence = "{path} does not exist: run an experiment with {out} first."
            raise StoreError(say(sentence, path=path, out=out))
        try:
            with _explained_errors(path):
                if not read_only:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self._lock = _lock(path.with_suffix(".lock"))
                self._connection = sqlite3.connect(path, isolation_level=None)
                self._open_tables(read_only)
            self._check_kind(kind)
        except StoreError:
            self.close()
            raise

    def _open_tables(self, read_only: bool) -> None:
        run, key = self._connection.execute, ", ".join(_KEY)
        # SQLite takes a file of a few bytes for a new one, and reads zeros where one is cut off.
        if self.path.stat().st_size % run("PRAGMA page_size").fetchone()[0]:
            raise ValueError("its last page is incomplete")
        if not read_only:
            run("PRAGMA journal_mode=WAL")
            run("PRAGMA synchronous=NORMAL")
        # A run that was killed at its very start leaves no tables: a reader gets empty ones.
        if not read_only or not run("SELECT name FROM sqlite_master").fetchall():
            table = f"CREATE {'TEMP ' if read_only else ''}TABLE IF NOT EXISTS"
            run("BEGIN")  # both or none
            run(f"{table} settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            run(
                f"{table} rows ({', '.join(_FIELDS)}, PRIMARY KEY ({key})) WITHOUT ROWID"
            )
            run("COMMIT")
        run(f"SELECT {key}, failure FROM rows LIMIT 1")
        problem = run("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":  # SQLite may skip rows silently
            raise ValueError(problem)

    def _check_kind(self, kind: str | None) -> None:
        settings = self.settings()
        found = settings.get("kind", _FIRST_KIND if settings else kind)
        if kind is not None and found != kind:
            sentence = (
                "{path} is a store of another study ({found}): use another {@out}."
            )
            raise StoreError(say(sentence, path=self.path, found=found))
        known = COMPARISON_FORMAT if found == "comparison" else PAPER_FORMAT
        if (stored := settings.get("format", known)) != known:
            sentence = (
                "{path} has format {stored}, and this version reads {known}: use the version of "
                "iclda that wrote it, or another {@out}."
            )
            raise StoreError(say(sentence, path=self.path, stored=stored, known=known))

    def settings(self) -> dict[str, Any]:
        """Settings that the rows depend on, and notes about the runs that made them."""
        with _explained_errors(self.path):
            stored = self._connection.execute(
                "SELECT name, value FROM settings"
            ).fetchall()
            return {
                name: json.loads(value)
                for name, value in stored
                if name != _FORMER_SETTING
            }

    def note(self, **values: Any) -> None:
        """Write settings, replacing those of the same name."""
        pairs = [(name, json.dumps(value)) for name, value in values.items()]
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", pairs)

    def merge_settings(self, **values: Any) -> dict[str, Any]:
        """Settings joined with those that rows were made with; StoreError if they differ."""
        stored, folder = self.settings(), self.path.parent
        for name, value in values.items():
            if isinstance(value, dict) and isinstance(stored.get(name), dict):
                both = value.keys() & stored[name].keys()
                changed = ", ".join(
                    sorted(k for k in both if value[k] != stored[name][k])
                )
                if changed:
                    sentence = (
                        "{folder} holds rows of other data for {changed}: use another {@out}, or "
                        "remove the folder."
                    )
                    raise StoreError(say(sentence, folder=folder, changed=changed))
                values[name] = {**stored[name], **value}
            elif name in stored and stored[name] != value:
                sentence = (
                    "{folder} holds rows made with {name} {stored}, and this run asks for {name} "
                    "{value}: use another {@out}, or {setting}."
                )
                known = {"name": name, "stored": stored[name], "value": value}
                setting = Hint(name, stored[name])
                raise StoreError(say(sentence, folder=folder, setting=setting, **known))
        return values

    def add(self, rows: Iterable[FitResult]) -> None:
        """Store rows, all or none of them."""
        entries = [
            {**{name: getattr(row, name) for name in _FIELDS}, **row.values}
            for row in rows
        ]
        columns = list(
            dict.fromkeys((*_FIELDS, *(name for entry in entries for name in entry)))
        )
        known = {each["name"] for each in self.query("PRAGMA table_info(rows)")}
        for column in columns:
            if column not in known:
                self._write(f'ALTER TABLE rows ADD COLUMN "{column}"', [()])
        names = ", ".join(f'"{column}"' for column in columns)
        self._write(
            f"INSERT OR REPLACE INTO rows ({names}) VALUES ({', '.join('?' * len(columns))})",
            [tuple(entry.get(column) for column in columns) for entry in entries],
        )

    def _write(self, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        with _explained_errors(self.path), self._connection:
            self._connection.execute("BEGIN")
            for each in values:
                self._connection.execute(statement, each)

    def rows(self, experiment: str) -> list[FitResult]:
        """All rows of an experiment, in the order of their keys."""
        results = []
        statement = (
            f"SELECT * FROM rows WHERE experiment = ? ORDER BY {', '.join(_KEY)}"
        )
        for entry in self.query(statement, experiment):
            values = {
                k: v
                for k, v in entry.items()
                if v is not None and k not in _FORMER_COLUMNS
            }
            known = {name: values.pop(name) for name in _FIELDS if name in values}
            results.append(FitResult(**known, values=values))
        return results

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Answer a query of the table ``rows``."""
        with _explained_errors(self.path):
            answered = self._connection.execute(sql, values)
            names = [column[0] for column in answered.description]
            return [dict(zip(names, entry, strict=True)) for entry in answered]

    def missing(
        self, cells: Sequence[Cell], methods: Sequence[str]
    ) -> list[tuple[Cell, tuple[str, ...]]]:
        """Cells with the methods that have no row yet; a failed fit is a row."""
        with _explained_errors(self.path):
            done = set(self._connection.execute(f"SELECT {', '.join(_KEY)} FROM rows"))
        left = (
            (cell, tuple(m for m in methods if (*vars(cell).values(), m) not in done))
            for cell in cells
        )
        return [(cell, lacking) for cell, lacking in left if lacking]

    def close(self) -> None:
        """Close the file and release the lock."""
        for held in (self._connection, self._lock):
            if held is not None:
                held.close()


def _lock(path: Path) -> Any:
    """Lock the folder until the process ends, however it ends."""
    try:
        import fcntl
    except (
        ImportError
    ):  # no such locks on this system; SQLite still keeps single rows whole
        return None
    file = path.open("w")
    try:
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
    """Raise errors of SQLite and of the file system as StoreError, with the way out."""
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
        # The lowest byte is the kind of the error; the rest says where it occurred.
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        sentence = (
            "{path} is no store of this version of iclda, or it is damaged ({problem}): restore it "
            "from a copy, or use another {@out}."
        )
        if code in (*_FULL, *_CLOSED):
            way_out = "make room" if code in _FULL else "make it writable"
            sentence = (
                "Cannot write to {path}: {problem}. What is stored there is intact: "
                f"{way_out} and run again, or use another {{@out}}."
            )
        raise StoreError(say(sentence, path=path, problem=error)) from error
