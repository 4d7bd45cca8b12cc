"""How long a comparison will take, from the time of one split."""

from __future__ import annotations

from dataclasses import dataclass

from ..page import duration

_START = 2.0  # seconds, of worker processes
_LEAST = 5.0  # seconds, below which nothing is worth saying


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds of one split, and the splits that are left."""

    seconds: float
    n_compared: int
    n_on_curves: int
    jobs: int

    def total(self, n_splits: int) -> float:
        """Seconds of so many splits, side by side."""
        n_together = max(1, min(self.jobs, n_splits))
        start = _START if n_together > 1 else 0.0
        return self.seconds * n_splits / n_together + start

    @property
    def sentence(self) -> str:
        """An empty text where it takes no time worth saying."""
        answer, curves = self.total(self.n_compared), self.total(self.n_on_curves)
        if answer + curves * bool(self.n_on_curves) < _LEAST:
            return ""
        text = f"About {_rounded(answer)} to the answer"
        if self.n_on_curves:
            text += f", and {_rounded(curves)} more for the learning curves"
        return f"{text}: the first split took {duration(self.seconds)}."


def _rounded(seconds: float) -> str:
    """Seconds as one guesses them: 10 s, 2 min, 1 h 20 min."""
    if seconds < 60:
        return f"{max(5 * round(seconds / 5), 5)} s"
    minutes = max(round(seconds / 60), 1)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
