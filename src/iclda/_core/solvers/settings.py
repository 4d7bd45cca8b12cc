"""Settings of the search, which trade accuracy for time, in one place.

The effect of each field of ``Settings``, halved and doubled, is in docs/solvers.md;
``benchmarks/bench_search.py settings`` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of the search. Heights of tau are shares of the spread of the gradient over rows."""

    # Starts (``starts``)
    screened_rows: int = 2_000  # rows on which starts are annealed first
    most_work: float = 5e8  # numbers read in one annealing: starts x steps x rows x classes x width
    heights: tuple[float, ...] = (0.2, 0.07, 0.025)  # values of tau at which starts join
    coolest: float = 0.002  # tau at which candidates are compared
    cooling: float = 0.9  # factor of tau from step to step
    near: float = 0.1  # distance of points within which one may be on its way to the other
    alike: float = 0.003  # distance of points that count as the same
    idle_rounds: int = 4  # rounds without gain after which no more starts are drawn
    n_parents: int = 4  # candidates that are changed
    n_followed: int = 4  # candidates that are followed to the end
    # Continuation
    held_entries: int = 2_000_000  # numbers of the rows held in memory: 16 MB
    fall: float = 0.1  # smallest factor of tau from level to level
    centered: float = 1e-2  # predicted ascent, over tau x entropy, at which a level ends
    accuracy: float = 0.1  # residual at which conjugate gradients stop, over the first residual
    # All rows
    deepest: float = 0.03  # smallest factor of tau between two passes


SETTINGS = Settings()

# Rows and numbers held in memory.
HELD_ROWS = 20_000  # unlabeled rows, at most
HELD_SHARES = 2**25  # shares of held rows in many classes: 256 MB
ROWS_WHITENED_AT_ONCE = 4096
NUMBERS_WORTH_MOVING = 100_000  # numbers of held rows from which a device holds them

# Unknowns: (K - 1) (1 + rank).
DENSE_UNKNOWNS = 128  # up to this many, Newton systems are solved by a factor
FINISHED_UNKNOWNS = 256  # up to this many, the limit of a path is sought, by dense systems
ROWS_PER_UNKNOWN = 10  # rows near boundaries with which a path is followed

# Gaps, per unit of the objective's weight.
LIKELIHOOD_GAP = 1e-9  # aimed at with all rows in memory and few unknowns: costs next to nothing
CONVEX_GAP = 1e-10  # the same for a convex function
ROUGH_GAP = 1e-3  # candidates are compared and samples followed to this gap
AIMED_SHARE = 0.3  # share of the tolerance that the rows near boundaries are solved to

# Levels of tau, per unit of the objective's weight unless noted.
SOFT_TAU = 0.02  # first tau on all rows
SOFTEST_TAU = 10 * SOFT_TAU  # first tau on a sample of them
FIRST_TAU = 0.3  # first tau of a convex function, over the spread of its gradient
REHEATING = 10  # factor of tau where candidates of a sample go on on more rows
SMALLEST_TAU = 1e-9

# Work.
STEPS_OF_STARTS = 1_000  # steps, for the number of rows that the work of annealing allows
LEAST_READ = 1.5e7  # numbers that a step may read; in all steps together as many as rows have
PASSES = 30  # passes over all rows that step forward
STEPS_BETWEEN_PASSES = 5  # steps on rows near boundaries, over the iterations allowed

# Comparisons.
SAMPLING_ERROR = 5.0  # of values per unit of weight, times the root of the number of rows sampled
ROUNDING_OF_LIMIT = 1e-12  # of the value: rounding between a limit and the path to it
SMALL_GAIN = 1e-2  # of merit in a step, over the gap that is left, at which a level is reached
SHORTER_STEPS = (1.0, 0.3, 0.1, 0.03)  # shares of a step that are tried until the merit rises
