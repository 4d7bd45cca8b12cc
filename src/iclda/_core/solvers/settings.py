"""What the search trades accuracy for time with, in one place.

The effect of each setting, halved and doubled, is in docs/architecture.md;
``benchmarks/bench_search.py settings`` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of the search. Heights of tau are shares of the spread of the gradient over rows."""

    # Starts (``starts``)
    screened_rows: int = 2_000  # on which starts are annealed first
    most_work: float = 5e8  # numbers read in one annealing: starts x steps x rows x classes x width
    heights: tuple[float, ...] = (0.2, 0.07, 0.025)  # of tau, where starts join
    coolest: float = 0.002  # tau at which candidates are compared
    cooling: float = 0.9  # factor of tau from step to step
    near: float = 0.1  # distance of points within which one may be on its way to the other
    alike: float = 0.003  # distance of points that are the same
    idle_rounds: int = 4  # without gain, after which no more starts are drawn
    n_parents: int = 4  # candidates that are changed
    n_followed: int = 4  # candidates that are followed to the end
    # Continuation
    held_entries: int = 2_000_000  # numbers of the rows held in memory: 16 MB
    fall: float = 0.1  # smallest factor of tau from level to level
    centered: float = 1e-2  # predicted ascent, over tau x entropy, at which a level ends
    accuracy: float = 0.1  # of conjugate gradients, over the first residual
    # All rows
    deepest: float = 0.03  # smallest factor of tau between two passes


SETTINGS = Settings()
