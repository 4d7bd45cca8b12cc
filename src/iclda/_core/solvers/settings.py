"""Settings of the search, which trade accuracy for time, in one place.

The fields of ``Settings`` are explained in docs/solvers.md; ``benchmarks/bench_search.py settings``
halves and doubles each of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of the search. Heights of tau are over the spread of the gradient (``spread``)."""

    # Starts (``implicit``)
    screened_rows: int = 4_000  # rows on which starts are annealed
    most_work: float = (
        5e8  # numbers read in one annealing: starts x steps x rows x classes x width
    )
    heights: tuple[float, ...] = (
        0.2,
        0.07,
        0.025,
    )  # values of tau at which starts join
    coolest: float = 0.002  # tau at which candidates are compared
    cooling: float = 0.95  # factor of tau from step to step
    near: float = (
        0.1  # distance of points within which one start may be on its way to another
    )
    alike: float = 0.003  # distance of points within which starts have met
    idle_rounds: int = 4  # rounds without gain after which no more starts are drawn
    n_parents: int = 4  # candidates of which variations are made
    n_followed: int = 4  # candidates that are followed to the end
    # Continuation
    held_entries: int = (
        2_000_000  # rows x dimensions of a sample that is held in memory: 16 MB
    )
    fall: float = 0.1  # smallest factor of tau from level to level
    centered: float = (
        1e-2  # predicted ascent, over tau x entropy, below which a level ends
    )
    accuracy: float = (
        0.1  # residual at which conjugate gradients stop, over the first residual
    )
    # All rows
    deepest: float = 0.03  # smallest factor of tau between two passes


SETTINGS = Settings()

# Rows and numbers held in memory.
HELD_ROWS = 20_000  # unlabeled rows, at most
LEAST_HELD_ROWS = 2_000  # whatever the dimensions
HELD_ENTRIES_OF_ALL = 8_000_000  # rows x dimensions, if these are all rows: 64 MB
HELD_SHARES = 2**25  # held rows x classes: 256 MB
ROWS_WHITENED_AT_ONCE = 1024
NUMBERS_WORTH_MOVING = 100_000  # rows x dimensions from which a device holds them

# Unknowns: (K - 1) (1 + rank).
DENSE_UNKNOWNS = 128  # up to this many, Newton systems are solved by a factor
FINISHED_UNKNOWNS = (
    256  # up to this many, the limit of a path is computed, by dense systems
)
ROWS_PER_UNKNOWN = (
    10  # smallest number of rows near boundaries on which a path is followed
)

# Gaps, per unit of the objective's weight.
LIKELIHOOD_GAP = (
    1e-9  # aimed at with all rows in memory and few unknowns, at hardly any cost
)
CONVEX_GAP = 1e-10  # the same for a convex function
ROUGH_GAP = 1e-3  # at which candidates are compared, and to which samples are followed
AIMED_SHARE = 0.3  # gap on the rows near boundaries, over the tolerance
CERTIFIED_SHARE = (
    0.5  # the same, below which the gap on all rows is computed, in a pass
)
AIMED_FALL = 0.01  # factor of that gap from pass to pass

# Levels of tau, per unit of the objective's weight unless noted.
SOFT_TAU = 0.02  # first tau on all rows
SOFTEST_TAU = 10 * SOFT_TAU  # first tau on a sample of them
FIRST_HEIGHT = 0.05  # as ``heights``, of the first round of starts
FIRST_TAU = 0.3  # first tau of a convex function, over the spread of its gradient
REHEATING = 10  # factor of tau before candidates of a sample are continued on more rows
SMALLEST_TAU = 1e-9

# Work.
STARTS_OF_MANY = 2  # starts with many unknowns
COOLING_OF_MANY = 0.9  # ``cooling`` of these
LEAST_READ = (
    1.5e7  # numbers read per iteration that is allowed, or this share of all numbers
)
READ_SHARE = 0.3
PASSES = 30  # most passes over all rows that move the point
STEPS_BETWEEN_PASSES = 5  # most Newton steps on rows near boundaries, over max_iter

# Comparisons.
SAMPLING_ERROR = (
    5.0  # error of values per unit of weight, times the root of the sample size
)
ROUNDING_OF_LIMIT = 1e-12  # relative rounding error of the value of a limit
SMALL_GAIN = (
    1e-2  # gain of merit in a step, over the gap, below which a level is reached
)
SHORTER_STEPS = (
    1.0,
    0.3,
    0.1,
    0.03,
)  # parts of a step that are tried until the merit rises

# Proofs that a maximum is global (``global_bound``).
GLOBAL_GAP = 1e-6  # tolerance per unit of labeled weight
PROVED_WIDTH = 128  # largest number of dimensions, with the one of the class weight
PROOF_WORK = 4e9  # numbers read by all Newton steps: about a second
PROOF_OVERHEAD = 1e6  # numbers that take as long to read as what a step does besides
