"""How a table is read: the parameters of ``read_table`` as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Ids by which rows are known where no column of the file has these names: the number of
# a row from 0, ...
ROW = "row"
# ... and the number that messages and spreadsheets give a row of a table.
FILE_ROW = "file_row"


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read. The fields are parameters of ``read_table``."""

    target: str | None
    unlabeled: str | float | None = None
    unlabeled_file: str | Path | None = None
    drop: str | Sequence[str] | None = ()
    keep: str | Sequence[str] | None = None
    strict: bool = False
    labels: str | Path | None = None
    id: str | None = None

    @property
    def ids(self) -> list[str]:
        """The column of ids, if there is one."""
        return [] if self.id is None else [self.id]

    def to_json(self) -> dict[str, Any]:
        """Return the options that a stored comparison repeats."""
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(self).items()
        }
