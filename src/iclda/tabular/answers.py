"""The file of rows that a person labels: a CSV that a spreadsheet, ``ask`` and ``label`` write.

One line a row: its id, its class, empty until a person has filled it, how the row was drawn, in
which round, the guess of a model, and the columns that help a person to decide. Everything is text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._messages import plural, quoted_list
from .._paths import atomic_write
from .encoders import require_for_tables
from .table_files import DataReader, open_table

ROW, LABEL = "row", "label"  # columns of ids and classes without a name
CHOSEN, RANDOM = "chosen", "random"  # how a row was drawn: for its worth, or for a fair test
HOW, _ROUND, _GUESS = "how", "round", "guess"
OWN_COLUMNS = (HOW, _ROUND, _GUESS)  # beside the id and the class


def are_answers(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is one of rows that a person labels."""
    return {*OWN_COLUMNS} <= {*columns}


def spelling_of(name: str) -> str:
    """Name of a class without what often differs by mistake: case and blanks."""
    return "".join(name.casefold().split())


@dataclass(frozen=True)
class Answers:
    """Rows that were asked for, and what was answered."""

    path: Path
    id: str  # column of the ids
    target: str  # column of the classes
    frame: Any  # DataFrame of text: id, target, how, round, guess, further columns

    @classmethod
    def read(cls, path: Path, id: str, target: str) -> Answers:
        """Read a file, or begin one that does not exist."""
        if path.exists():
            return cls.of(open_table(path), id, target)
        none = dict.fromkeys([id, target, *OWN_COLUMNS], ())
        return cls(path, id, target, require_for_tables("pandas").DataFrame(none, dtype=str))

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
        how: str | Sequence[str],
        guesses: str | Sequence[str] = "",
        shown: Mapping[str, Sequence[str]] | None = None,
    ) -> Answers:
        """With further rows to label as the next round, except those that were asked for."""
        columns = {self.id: ids, self.target: "", HOW: how, _ROUND: str(self.n_rounds + 1)}
        pandas = require_for_tables("pandas")
        more = pandas.DataFrame({**columns, _GUESS: guesses, **(shown or {})}, dtype=str)
        more = more[~more[self.id].isin(self.frame[self.id])]
        frame = pandas.concat([self.frame, more], ignore_index=True).fillna("")
        return replace(self, frame=frame)

    def check_spelling(self, names: Iterable[str], file: DataReader) -> None:
        """Raise a ValueError if names of classes, here or in the file of rows, are the same one."""
        place = f"{self.path} or {file.path}" if self.target in file.columns else self.path
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
            raise ValueError(f"{self.path} does not ask for the row {self.id} = {id!r}.")

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
