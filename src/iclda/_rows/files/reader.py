"""What reads a source: files, a table, batches. It knows rows, not sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Literal, Self

import numpy as np

from ..._core.types import AnyArray
from .chunks import Chunk

DEFAULT_MEMORY = 2**28  # bytes held of the rows at a time
_COUNTED = 2**16  # rows read at once to be counted


class Reader:
    """Rows in a fixed order, to be read any number of times. Subclasses supply ``chunks``."""

    n_rows: int | None  # None: not known before all were read
    n_features: int
    feature_names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    memory = DEFAULT_MEMORY
    use_threads = False  # to decode what was read, where that takes longer than the arithmetic

    def __init__(self, name: str) -> None:
        self.name = name  # of the argument, for messages

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the blocks that rows are copied into."""
        raise NotImplementedError

    def named(self, name: str) -> Self:
        """The same rows under another name."""
        other = copy(self)
        other.name = name
        return other

    def selected(self, names: Sequence[str]) -> Reader:
        """The same rows, of these columns only; of a source without names, all columns."""
        return self

    def check_unchanged(self) -> None:
        """ValueError if it is known, before a pass, that it would not read what the first did."""

    def spread(self, n: int) -> AnyArray:
        """At most ``n`` row numbers for a first look: cheap to read, and far apart if possible."""
        return np.arange(n if self.n_rows is None else min(n, self.n_rows))

    def count(self) -> int:
        """Exact number of rows; reads them if nothing else tells."""
        if self.n_rows is not None:
            return self.n_rows
        return sum(len(chunk) for chunk in self.chunks(_COUNTED))

    def chunks(self, n_rows: int, wanted: AnyArray | None = None) -> Iterator[Chunk]:
        """All rows, about ``n_rows`` at a time; or chunks that hold the rows of wanted numbers."""
        raise NotImplementedError
