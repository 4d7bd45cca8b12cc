"""The format of a file of answers: a CSV file in which a person labels rows.

``iclda ask`` and ``iclda label`` write such a file (``iclda.labeling``), a person or a
spreadsheet edits it, and fits and comparisons read it as a file of labels::

    file_row,label,how,round,guess,remark
    17,good,chosen,1,,"arrived early"
    4,,random,2,good,

It has a line for each row to label: its id, its class, empty until a person has filled
it in, or "none of these" for a row that belongs to no class, how the row was drawn, in
which round, the guess of a model, and columns that help to decide.

Where no column identifies the rows, their numbers are the ids: those of an array stand
in a column ``row`` and count from 0, those of a table in a column ``file_row`` and
count as a spreadsheet does. Files of earlier versions number the rows of a table in a
column ``row``, from 0, which is still what it means.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .._messages import quoted_list
from .readers import DataReader

# The column of classes, unless the user names another.
LABEL = "label"
# Columns of every file of answers.
HOW = "how"
ROUND = "round"
GUESS = "guess"
OWN_COLUMNS = (HOW, ROUND, GUESS)
# How a row was drawn: chosen because its label is informative, or at random, so that
# its label measures the error.
CHOSEN = "chosen"
RANDOM = "random"
# The answer for a row that belongs to none of the classes. It is no class itself, and
# the row does not count as unlabeled.
NONE_OF_THESE = "none of these"


def has_content(path: Path) -> bool:
    """Return whether there is a file of answers that is not empty."""
    return path.exists() and path.stat().st_size > 0


def are_answers(columns: Sequence[str]) -> bool:
    """Return whether a file with these columns is a file of answers."""
    return {*OWN_COLUMNS} <= {*columns}


def read_answers(file: DataReader, id: str, target: str) -> Any:
    """Read a file of answers as a frame of text, without empty lines.

    ``id`` and ``target`` name its columns of ids and classes. ValueError if it is not a
    file of answers.
    """
    needed = [id, target, *OWN_COLUMNS]
    lacking = [name for name in needed if name not in file.columns]
    if lacking:
        raise ValueError(
            f"{file.path} has no column {quoted_list(lacking, 5)}, so it is not a "
            "file of rows to label. Restore the column, or name another file, which "
            "will be created."
        )
    file.hold(file.columns, texts=file.columns)
    frame = file.read(file.columns).to_pandas().fillna("").astype(str)
    # A spreadsheet may add lines of empty cells.
    is_filled = (frame != "").any(axis=1)
    frame = frame[is_filled].reset_index(drop=True)
    unknown = sorted(set(frame[HOW]) - {CHOSEN, RANDOM})
    if unknown:
        raise ValueError(
            f"{file.path}: column {HOW!r} must say {CHOSEN} or {RANDOM}, got "
            f"{quoted_list(unknown, 3)}. It tells which labels measure the error: "
            "undo the change."
        )
    frame[target] = frame[target].str.strip()
    is_none = frame[target].map(spelling_of) == spelling_of(NONE_OF_THESE)
    frame.loc[is_none, target] = NONE_OF_THESE
    return frame


def check_spelling(
    names: Iterable[str], target: str, path: Path, rows: DataReader
) -> None:
    """Raise a ValueError if names of classes differ by case or blanks only.

    ``path`` is the file of answers, and ``rows`` the file of the rows, where some of
    the names may come from.
    """
    names_by_spelling = defaultdict(set)
    for name in names:
        names_by_spelling[spelling_of(name)].add(name)
    for spelled in names_by_spelling.values():
        if len(spelled) > 1:
            where = f"{path} or {rows.path}" if target in rows.columns else str(path)
            raise ValueError(
                f"{where}: column {target!r} spells a class in {len(spelled)} ways, "
                f"{quoted_list(sorted(spelled), 5)}: use one spelling everywhere."
            )


def spelling_of(name: str) -> str:
    """Return the name of a class without what often differs by mistake."""
    return "".join(name.casefold().split())
