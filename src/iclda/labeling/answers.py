"""The file in which a person labels rows, and its answers so far.

`Answers` reads the file, checks it, adds rows to ask for and labels that a person
gives, and writes it. ``tabular.answer_files`` says what the columns mean, because a fit
reads these labels, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._messages import plural
from .._system import atomic_write
from ..tabular.answer_files import (
    GUESS,
    HOW,
    NONE_OF_THESE,
    OWN_COLUMNS,
    ROUND,
    has_content,
    read_answers,
)
from ..tabular.cells import require_for_tables
from ..tabular.files import open_table

# The same text for all rows, or a text for each row.
_Texts = str | Sequence[str]
# Texts of some rows, by column.
_Cells = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Answers:
    """Rows that a person labels, as they stand in the file of answers.

    Instances do not change: `asking` and `answering` return new ones, and `write`
    writes the file.

    Attributes
    ----------
    path : Path
        The file.
    id : str
        Name of the column of ids.
    target : str
        Name of the column of classes.
    frame : DataFrame
        Columns of text: id, target, how, round, guess, then others that help to decide.
    """

    path: Path
    id: str
    target: str
    frame: Any

    @classmethod
    def read(cls, path: Path, id: str, target: str) -> Answers:
        """Read a file; without a file, or with an empty one, there are no rows yet."""
        if has_content(path):
            frame = read_answers(open_table(path), id, target)
        else:
            pandas = require_for_tables("pandas")
            no_rows = dict.fromkeys([id, target, *OWN_COLUMNS], ())
            frame = pandas.DataFrame(no_rows, dtype=str)
        return cls(path, id, target, frame)

    @property
    def labels(self) -> dict[str, str]:
        """The class of every id that has one."""
        labeled = self.frame[~self.frame[self.target].isin(["", NONE_OF_THESE])]
        return dict(zip(labeled[self.id], labeled[self.target], strict=True))

    @property
    def none_ids(self) -> list[str]:
        """Ids of rows that belong to none of the classes."""
        is_none = self.frame[self.target] == NONE_OF_THESE
        return list(self.frame[self.id][is_none])

    def ids(self, how: str | None = None) -> list[str]:
        """Return the ids of all rows asked for, or of those drawn in one way."""
        frame = self.frame
        if how is not None:
            frame = frame[frame[HOW] == how]
        return list(frame[self.id])

    @property
    def open_ids(self) -> list[str]:
        """Ids of rows without an answer, in the order of the file."""
        has_label = self.frame[self.target] != ""
        return list(self.frame[self.id][~has_label])

    @property
    def n_rounds(self) -> int:
        """Number of rounds so far."""
        return max(self.rounds.values(), default=0)

    @property
    def rounds(self) -> dict[str, int]:
        """Round of every id that was asked for; 0 for a cell without a number."""
        ids = self.frame[self.id]
        texts = self.frame[ROUND]
        return {
            row_id: int(text) if text.isdecimal() else 0
            for row_id, text in zip(ids, texts, strict=True)
        }

    def asking(
        self,
        ids: Sequence[str],
        how: _Texts,
        guesses: _Texts = "",
        shown: _Cells | None = None,
    ) -> Answers:
        """Return answers that ask for more rows too, as the next round.

        Rows that were asked for before are skipped.
        """
        pandas = require_for_tables("pandas")
        columns = {
            self.id: ids,
            self.target: "",
            HOW: how,
            ROUND: str(self.n_rounds + 1),
            GUESS: guesses,
            **(shown or {}),
        }
        added = pandas.DataFrame(columns, dtype=str)
        was_asked = added[self.id].isin(self.frame[self.id])
        frame = pandas.concat([self.frame, added[~was_asked]], ignore_index=True)
        # Columns that only one of the frames has are empty in rows of the other.
        return replace(self, frame=frame.fillna(""))

    def require_asked(self, id: str) -> None:
        """Raise a ValueError unless a row was asked for."""
        if id not in set(self.frame[self.id]):
            raise ValueError(
                f"{self.path} does not ask for a row with {self.id} = {id!r}."
            )

    def answering(self, id: str, label: str) -> Answers:
        """Return answers with this class for one row; "" takes its class back."""
        self.require_asked(id)
        frame = self.frame.copy()
        is_answered = frame[self.id] == id
        frame.loc[is_answered, self.target] = label.strip()
        return replace(self, frame=frame)

    def guess_of(self, id: str) -> str:
        """Return the class that a model guessed for a row; empty without a guess."""
        is_asked = self.frame[self.id] == id
        [guess] = self.frame[GUESS][is_asked]
        return str(guess)

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
