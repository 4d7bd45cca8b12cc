"""Times that can be compared: fits and their unit take turns, on one BLAS thread."""

from __future__ import annotations

import statistics
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_LEAST_UNITS = 3


@dataclass
class Timing:
    """Seconds of every run of a function, and what the last one returned or raised."""

    runs: list[float] = field(default_factory=list)
    result: Any = None
    failure: str | None = None

    @property
    def seconds(self) -> float | None:
        """Median of the runs."""
        return (
            statistics.median(self.runs) if self.runs and self.failure is None else None
        )


@dataclass
class Clock:
    """Time granted to a case: further seeds are left out once it is spent."""

    granted: float | None
    began: float = field(default_factory=time.perf_counter)

    @property
    def is_spent(self) -> bool:
        return (
            self.granted is not None and time.perf_counter() - self.began > self.granted
        )


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock seconds of one call, and what it returned."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def take_turns(
    functions: Mapping[str, Callable[[], Any]],
    unit: Callable[[], Any],
    *,
    most: int = 5,
    patience: float = 1.0,
) -> tuple[dict[str, Timing], float]:
    """Timings of all functions, and the median seconds of the unit.

    A run of the unit comes before every run of a function: whatever slows down the
    machine slows down both. A function is run until it has had ``most`` runs or
    ``patience`` seconds.
    """
    unit()
    units = [seconds_of(unit)[0] for _ in range(_LEAST_UNITS)]
    timings = {name: Timing() for name in functions}
    with warnings.catch_warnings():
        # Rows say whether a fit converged.
        warnings.simplefilter("ignore")
        while waiting := [
            name for name in functions if _wants_more(timings[name], most, patience)
        ]:
            for name in waiting:
                units.append(seconds_of(unit)[0])
                _run(functions[name], timings[name])
    return timings, statistics.median(units)


def _wants_more(timing: Timing, most: int, patience: float) -> bool:
    if timing.failure is not None:
        return False
    return not timing.runs or (len(timing.runs) < most and sum(timing.runs) < patience)


def _run(function: Callable[[], Any], timing: Timing) -> None:
    # Two results at once would be memory that no user spends.
    timing.result = None
    try:
        seconds, timing.result = seconds_of(function)
        timing.runs.append(seconds)
    # A failed fit is a row with its traceback: the others go on.
    except Exception:
        timing.failure = traceback.format_exc()
