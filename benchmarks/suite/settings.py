"""Settings of a run: all cases, more samples, or a quick check."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .data import Size

_QUICK_ROWS = 3_000


@dataclass(frozen=True)
class Settings:
    """``seconds`` is the time for all cases, to which each may add a sample.

    None: no limit.
    """

    n_seeds: int = 8
    seconds: float | None = 480.0
    is_quick: bool = False
    is_everything: bool = False

    def scaled(self, size: Size) -> Size:
        """A size as it is, or cut down for a quick look."""
        if not self.is_quick:
            return size
        return replace(size, n_unlabeled=min(size.n_unlabeled, _QUICK_ROWS))

    def steps(self, steps: tuple[int, ...]) -> tuple[int, ...]:
        """Numbers of rows of a series, or the first few."""
        if not self.is_quick:
            return steps
        return tuple(n for n in steps if n <= _QUICK_ROWS) or (
            _QUICK_ROWS // 3,
            _QUICK_ROWS,
        )
