"""Cells of a benchmark in a file, written as they come."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
# What tells cells apart: the part of the benchmark, the table, labels, and the draw.
Key = tuple[str, str, int, int]


def key_of(cell: Cell) -> Key:
    return cell["part"], cell["table"], cell["labels"], cell["draw"]


class CellStore:
    """The cells measured so far; without a path they are kept in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._cells: dict[Key, Cell] = {}
        if path is not None and path.exists():
            self._cells = {key_of(cell): cell for cell in json.loads(path.read_text())}

    def __contains__(self, key: Key) -> bool:
        return key in self._cells

    def __getitem__(self, key: Key) -> Cell:
        return self._cells[key]

    def add(self, cell: Cell) -> None:
        """Keep a cell. An interruption leaves the file as it was or with the cell."""
        self._cells[key_of(cell)] = cell
        if self._path is None:
            return
        unfinished = self._path.with_name(self._path.name + ".part")
        unfinished.write_text(json.dumps(list(self._cells.values())))
        os.replace(unfinished, self._path)
