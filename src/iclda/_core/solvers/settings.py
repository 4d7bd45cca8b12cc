"""Settings of the search: every constant that trades accuracy for time, in one place.

Each group belongs to one part of the search and is one frozen value of this module,
which tests and ``benchmarks/bench_search.py settings`` replace. Tolerances that only
absorb rounding stay where they are used. docs/solvers.md explains the method.

Numbers read, the unit of work, are entries of matrices with one row for every unlabeled
row that products go through. Unknowns are the (K - 1) (1 + rank) free scores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Holding:
    """How many unlabeled rows the search holds in whitened coordinates."""

    # Unlabeled rows held at most ...
    max_rows: int = 20_000
    # ... and rows that are held whatever the dimensions and the classes.
    min_rows: int = 2_000
    # Rows times dimensions, if these are all rows: 64 MB.
    max_entries_of_all: int = 8_000_000
    # Rows times dimensions, if these are a sample: 16 MB.
    max_entries_of_sample: int = 2_000_000
    # Rows times classes: 256 MB.
    max_shares: int = 2**25
    # Rows whitened at once.
    rows_per_block: int = 1024
    # Rows times dimensions from which a device holds them.
    min_entries_on_device: int = 100_000


@dataclass(frozen=True)
class Rounds:
    """Self-learning and EM, which label all rows in every round, and self-training."""

    # Unlabeled rows held in memory.
    max_rows: int = 4096
    # The same with quotas, in numbers (64 MB): to fill quotas of many classes takes
    # many reads.
    max_numbers_with_quotas: int = 2**23
    # An extrapolation of EM uses this many of its last steps.
    remembered_steps: int = 8
    # Least squares problems with more rows than this take the normal equations.
    max_lapack_rows: int = 20_000
    # EM extrapolates once a round raises the likelihood, per unit of weight, by no more
    # than this ...
    max_rise_before_extrapolation: float = 3e-5
    # ... and moves at most this many times as far as the step without extrapolation.
    max_move: float = 10.0
    # A step of EM that leads away from a saddle is stretched by this factor.
    saddle_stretch: float = 2.0
    # EM has converged after this many small rises of the likelihood in a row.
    small_rises_at_convergence: int = 2
    # Scores that self-training computes at once: 32 MB.
    max_scores_at_once: int = 2**22


@dataclass(frozen=True)
class Starts:
    """Paths from several starts."""

    # Rows on which paths from all starts are followed: at least this many, and this
    # many for each feature.
    screened_rows: int = 4_000
    screened_rows_per_feature: int = 10
    # First tau, high and low, over the spread of the gradient where all shares are
    # equal, which is the root mean square over rows of the range of its scores over
    # classes. Of high starts most lead to one maximum, of low ones to many.
    heights: tuple[float, float] = (0.1, 0.03)
    # Starts in a row that meet earlier ones, after which no more are tried.
    max_met_in_a_row: int = 6
    # Random labelings that are drawn for each start, and numbers that all of them take
    # at most (8 MB), as long as there is one for each start.
    drawn_for_each_start: int = 10
    max_numbers: int = 1_000_000
    # Distance of points within which starts have met on the first level.
    met_distance: float = 0.03
    # Distance of points within which paths on few rows lead to one maximum.
    near_distance: float = 0.1
    # Paths that are followed beyond the first level, and beyond few rows, at most.
    n_followed: int = 8


@dataclass(frozen=True)
class Levels:
    """Levels of a path, on each of which tau is constant."""

    # Smallest factor of tau from level to level.
    min_tau_factor: float = 0.1
    # After this factor of tau, or a larger one, a level is not repeated with a
    # larger one.
    max_repeated_tau_factor: float = 0.7
    # Where labels harden the gap is proportional to the square of tau: the next level
    # aims at this share of the gap that is aimed at.
    aimed_share_of_gap: float = 0.3
    # Smallest tau of a path, per unit of the objective's weight.
    min_tau: float = 1e-9
    # A level ends when the predicted ascent is below this share of tau x entropy. At
    # the first level, whose steps are longest, the share is multiplied by a factor. If
    # the gap is then not below that of the previous level, the share is reduced, down
    # to a smallest one.
    ascent_left: float = 1e-2
    first_ascent_factor: float = 3.0
    reduced_ascent_factor: float = 1e-3
    min_ascent_left: float = 1e-8
    # Newton steps at the first and at every other level.
    max_first_steps: int = 40
    max_steps: int = 15


@dataclass(frozen=True)
class Newton:
    """Newton steps at a level of tau."""

    # Up to this many unknowns, the linear systems are factored.
    max_factored_unknowns: int = 128
    # Products with J in one run of conjugate gradients.
    max_products: int = 100
    # Residual at which conjugate gradients stop, over the first residual.
    residual_left: float = 0.1
    # Numbers read that take as long as to form the block of J of two classes.
    reads_per_block: float = 2e4
    # The smallest gain of a step that is accepted, over the gain that its slope
    # predicts (Armijo's rule); gains from which longer, and below which only shorter
    # steps are allowed.
    sufficient_gain: float = 0.05
    good_gain: float = 0.4
    poor_gain: float = 0.1
    # Factor of a step that does not gain enough, and the smallest part that is tried.
    shortening: float = 0.3
    min_step_part: float = 1e-12
    # Largest length of a step at the beginning of a level, in the norm of J. Where
    # labels are hard J vanishes, and lengths say little: the radius has a lower limit.
    first_radius: float = 1.0
    min_radius: float = 1e-3
    # Factors of the radius after a step with a good and with a poor gain.
    good_radius_factor: float = 2.0
    poor_radius_factor: float = 0.3


@dataclass(frozen=True)
class Gaps:
    """Gaps at which paths end, per unit of the objective's weight.

    The user's tolerance is a further one; it decides whether a fit has converged.
    """

    # Aimed at with all rows in memory and few unknowns, at hardly any cost.
    aimed_of_likelihood: float = 1e-9
    aimed_of_convex: float = 1e-10
    # To which paths are followed on a sample of the rows.
    of_sample: float = 1e-3


@dataclass(frozen=True)
class Work:
    """Work that a fit may take."""

    # Numbers read for each iteration that max_iter allows: at least this many, or this
    # share of all numbers.
    min_numbers_per_iteration: float = 1.5e7
    share_of_numbers_per_iteration: float = 0.3


@dataclass(frozen=True)
class Passes:
    """The path on all rows, of which a sample is held; tau is per unit of weight."""

    # First tau on all rows, and on a sample of them.
    first_tau: float = 0.02
    first_tau_of_sample: float = 0.2
    # Passes that move the point.
    max_passes: int = 30
    # The search ends after this many passes in a row, or Newton steps over max_iter,
    # that do not halve the gap over the rows near boundaries: with fewer labels than
    # features it may go on in tiny steps.
    max_idle_passes: int = 8
    idle_steps_over_max_iter: float = 0.5
    # Fewer Newton steps say nothing: a search that may take no more ends at max_iter.
    min_idle_steps: int = 50
    # Newton steps on rows near boundaries, over max_iter.
    steps_over_max_iter: int = 5
    # Smallest factor of tau between two passes.
    min_tau_factor: float = 0.03
    # Where a pass returns only some of the rows near boundaries, tau falls less, so
    # that this many of them are left for each unknown, but at least by this factor.
    rows_per_unknown: int = 10
    max_tau_factor: float = 0.5
    # On the rows near boundaries, a path ends at this share of the tolerance, or of
    # the gap with which the pass began.
    aimed_share_of_tol: float = 0.3
    aimed_share_of_gap: float = 0.01
    # Compute the gap on all rows, which takes a pass, once that on the rows near
    # boundaries is below this share of the tolerance.
    certified_share_of_tol: float = 0.5
    # Factor of the number of rows that come back where a step was wrong.
    more_rows_factor: int = 4
    # Parts of a wrong step that are tried until the merit rises.
    shorter_steps: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03)
    # Gain of merit in a shorter step, over the gap, below which a level is reached.
    small_gain: float = 1e-2
    # Error of the values on a sample, per unit of weight, times the root of its size.
    sampling_error: float = 5.0


@dataclass(frozen=True)
class Convex:
    """The path of a convex function."""

    # First tau, over the spread of the gradient.
    first_height: float = 0.3


@dataclass(frozen=True)
class SoftSquaresNewton:
    """Newton's method for least squares with soft labels."""

    # Relative residual at which Newton's equations count as solved.
    residual_left: float = 1e-8
    # A Newton step is halved until it is shorter than this part of the whole.
    min_step_part: float = 1e-6


@dataclass(frozen=True)
class MomentMatch:
    """Newton's method for the highest likelihood under the moments of all rows."""

    # Gradient at which it ends, and the ascent that may be predicted at a maximum, per
    # unit of labeled weight.
    gradient_left: float = 1e-9
    max_ascent_left: float = 1e-10
    max_steps: int = 500
    first_trust_radius: float = 0.1
    # With this many unknowns the dense systems take some minutes.
    max_unknowns: int = 2_500
    # It starts with the distances between class means times these.
    start_mean_scales: tuple[float, ...] = (1.0, 0.1)


@dataclass(frozen=True)
class QuotaNewton:
    """Newton's method for the shifts of scores that fill quotas."""

    # Error of filled quotas, over the weight of the rows, at levels of tau above 1.
    rough_error: float = 1e-6
    # Difference of scores beyond which labels are hard: the longest step of a shift.
    hard_score: float = 40.0
    # Steps from zero, and from the shift of similar scores; if the latter fail, tau is
    # lowered from above.
    max_steps: int = 200
    max_warm_steps: int = 60
    # Steps in a row that lower the dual by no more than rounding before it stops.
    max_idle_steps: int = 6
    # Scores are divided by a tau that falls to 1: the largest range of the scores of a
    # row at the first level, and the factor of tau from level to level.
    soft_range: float = 10.0
    tau_factor: float = 0.3
    # Ridge of Newton's equations, over the trace, after the first step that fails; its
    # factors after steps that fail and succeed; and one above which steps are given up.
    first_ridge: float = 1e-3
    raised_ridge_factor: float = 10
    lowered_ridge_factor: float = 0.1
    max_ridge: float = 1e6
    # Factor of the sharpness of intervals from level to level.
    sharpness_factor: float = 10.0
    # Tau of the linear oracle, over the range of the scores.
    hard_tau: float = 1e-11
    # Times that the scores are read to find a shift, with three classes or more.
    reads_per_shift: int = 30
    # Numbers below which a shift takes no less time: for a stack of labelings and on
    # paths.
    min_numbers_of_stack: int = 10_000
    min_numbers_on_paths: float = 4e5


@dataclass(frozen=True)
class QuotaBounds:
    """Shifts that bound a linear function where rows are streamed."""

    # Share of the gap by which the bound may be too high.
    max_lost_share: float = 0.05
    # Steps at each level of tau.
    max_steps: int = 20
    # Difference of scores, over tau, from which a row keeps its label at lower levels.
    hard_lead: float = 100.0
    # Times that the shares are read for each class to find a shift.
    reads_per_class_and_shift: float = 1.0


@dataclass(frozen=True)
class QuotaPasses:
    """Passes over all rows that fill the quotas of one labeling of a search."""

    max_passes: int = 2
    # A search ends after this many passes: EM takes 20 to 40.
    max_passes_of_search: int = 120
    # Weight, over that of all rows, that a sample of the rows near boundaries can
    # correct.
    max_corrected_share: float = 1e-3
    # Change of a shift up to which rows far from boundaries keep their labels.
    max_shift_change: float = 5.0
    # Share of the rows that a pass may return which it returns at least, to fill
    # quotas with.
    returned_share: float = 0.25


@dataclass(frozen=True)
class QuotaRoundSteps:
    """Passes over all rows that fill the quotas of one round of EM."""

    # Share of the first error of a round at which its quotas count as filled, between
    # a smallest and a largest error over the weight of the rows.
    max_error_left: float = 0.03
    min_error: float = 1e-9
    max_error: float = 1e-5
    # Error up to which rounding may prevent further progress.
    max_rounding: float = 1e-6
    # Passes of the first labeling and of every other one, but for a last one; and
    # rounds of a fit that may leave quotas unfilled. Without quotas, EM takes two
    # passes before the rounds and one for each labeling in them: these are at most 20
    # times as many.
    max_first_passes: int = 29
    max_passes: int = 19
    max_unfilled_rounds: int = 10
    # Steps that scale odds before the sample is asked, in the first round.
    max_scaling_passes: int = 5
    # Factor of a weight from its quota up to which Newton's steps are of use.
    max_ratio: float = 2.0
    # After a step that leaves more than this share of the error the overlaps of the
    # classes are summed again.
    max_error_factor: float = 0.1
    # Largest difference of the changes of two shifts in the first step of Newton's
    # method; and its factors where the dual falls by a good share of what was expected,
    # and, over the length of the step, by a bad one.
    first_radius: float = 8.0
    good_ratio: float = 0.5
    bad_ratio: float = 0.1
    raised_radius_factor: float = 2.5
    lowered_radius_factor: float = 0.25
    # Damping that shortens a step: the first one, its factor, and the largest one.
    first_damping: float = 1e-5
    damping_factor: float = 10.0
    max_damping: float = 1e5
    # Steps in a row that do not halve the error, after which labels are softened, and
    # the mean of 1 - (sum of squared shares) of rows up to which labels are hard.
    max_slow_steps: int = 4
    max_softness: float = 0.05
    # Soft labels: the first tau, over the largest range of the scores of a row, the
    # factor of tau from level to level, and the error at which a level ends.
    first_tau_over_range: float = 0.02
    tau_factor: float = 0.3
    max_error_of_level: float = 0.01
    # Changes of the classes that are at an end of their intervals, in one step.
    max_changes_of_active_set: int = 50


HOLDING = Holding()
ROUNDS = Rounds()
STARTS = Starts()
LEVELS = Levels()
NEWTON = Newton()
GAPS = Gaps()
WORK = Work()
PASSES = Passes()
CONVEX = Convex()
SOFT_SQUARES = SoftSquaresNewton()
MOMENT_MATCH = MomentMatch()
QUOTA_NEWTON = QuotaNewton()
QUOTA_BOUNDS = QuotaBounds()
QUOTA_PASSES = QuotaPasses()
QUOTA_ROUNDS = QuotaRoundSteps()
