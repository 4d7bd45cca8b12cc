"""Views: maps of rows that are learned without labels, before a linear fit.

A classifier with a view is fitted to the mapped rows, and maps rows before it predicts
them. Its solver knows nothing of the view: the search, the certificate and the bounds
are those of the mapped rows. There are five views:

- ``standardize`` divides columns by their standard deviation, so that their units do
  not matter. A column of two values is divided by their difference: otherwise a rare
  category would be far larger than any other number.
- ``whiten`` standardizes columns, and then maps them linearly to covariance I.
  Shrinkage is then toward the covariance of all rows, and correlated columns do not
  count twice.
- ``normalize`` scales rows to length 1, about their mean if that is far from zero. It
  suits features of a network.
- ``kernel`` computes the features of an RBF kernel of the standardized columns, by
  Nystroem's method. Boundaries that are linear in these features are curved in the
  columns.
- ``whitened-kernel`` computes those of a kernel of the whitened columns.

A fit learns its view once, from a ``Summary`` of all rows, and stores it:

    summary = Summary(sample, weights, center, spread, unit, covariance)
    view = learn_view("kernel", summary)
    features = view(rows)

A view maps one block of rows at a time, for any array library, so that no mapped copy
of all rows is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from array_api_compat import array_namespace, device

from .._core import Array

STANDARDIZE = "standardize"
WHITEN = "whiten"
NORMALIZE = "normalize"
KERNEL = "kernel"
WHITENED_KERNEL = "whitened-kernel"
VIEWS = (STANDARDIZE, WHITEN, NORMALIZE, KERNEL, WHITENED_KERNEL)

# The features of a kernel compare a row with at most this many rows, the landmarks.
_MAX_LANDMARKS = 100
# The kernel of two rows at the mean distance of all pairs is exp(-1). In whitened
# columns, where directions of noise count as much as all others, a wider kernel does
# better: exp(-0.3).
_KERNEL_EXPONENT = 1.0
_WHITENED_KERNEL_EXPONENT = 0.3
# Directions of the kernel between landmarks below this share of the largest one are
# rounding.
_KERNEL_RANK_TOLERANCE = 1e-10
# Share of the mean variance that is added to all directions before they are whitened:
# directions in which rows hardly vary are noise.
_WHITENING_RIDGE = 1e-3
# The mean of rows counts as zero up to this ratio of its squared length to their
# variance.
_MAX_ZERO_MEAN_RATIO = 0.25


# Of the rows on one side of the median of a column, the middle one and the last of the
# usual ones: three quarters and 15 of 16 of all rows lie below them.
_MIDDLE = 1 / 2
_USUAL = 7 / 8
# The tail is drawn on from these: a number is broken if it is farther from the median
# than the last usual one, times the cube of the ratio of the two distances. That is 24
# standard deviations of a normal column, and farther in heavier tails, of which
# lognormal ones with a deviation of 2 keep all but one in 100,000 numbers.
_TAIL_POWER = 3
# The ratio counts as at least this, because a tight group of rows says little of its
# tail ...
_MIN_TAIL_RATIO = 2.5
# ... and as at least this where less than a quarter of the rows are on that side, as in
# counts that are mostly zero.
_MIN_SPARSE_TAIL_RATIO = 4.0
# Fewer rows on one side of the median do not tell what is usual there.
_MIN_ROWS_OF_TAIL = 8


class View(Protocol):
    """A map of rows (n, d) to rows (n, ``n_features``), of the same array library."""

    @property
    def n_features(self) -> int:
        """Features of the mapped rows."""

    @property
    def keeps_columns(self) -> bool:
        """Whether every feature of mapped rows comes from one column."""

    def __call__(self, rows: Any) -> Any: ...


@dataclass(frozen=True)
class Summary:
    """What a view learns from: a sample of the rows, and moments of all of them.

    Sample, center and spread, the standard deviations, are in the user's units. The
    covariance is one of columns divided by ``unit``, whose squares do not overflow; it
    is None where no view needs it.
    """

    sample: Array
    weights: Array
    center: Array
    spread: Array
    unit: Array
    covariance: Array | None


@dataclass(frozen=True)
class Standardization:
    """Subtract a center from rows, and divide every column by its scale."""

    center: Array
    scale: Array

    keeps_columns: ClassVar[bool] = True

    @property
    def n_features(self) -> int:
        return len(self.center)

    def __call__(self, rows: Any) -> Any:
        scaled = rows - placed_like(rows, self.center)
        # In place, as a copy of a block takes longer than the division.
        scaled /= placed_like(rows, self.scale)
        return scaled


@dataclass(frozen=True)
class Bounds:
    """Move broken numbers, far outside of their column, to the last usual ones.

    A number below ``lowest`` becomes ``low``, and one above ``highest`` becomes
    ``high``. Infinity stays, so that an error names it.
    """

    lowest: Array
    low: Array
    high: Array
    highest: Array

    keeps_columns: ClassVar[bool] = True

    @property
    def n_features(self) -> int:
        return len(self.low)

    def __call__(self, rows: Any) -> Any:
        is_broken = self.are_broken(rows)
        xp = array_namespace(rows)
        if not xp.any(is_broken):
            return rows
        is_low = rows < placed_like(rows, self.lowest)
        usual = xp.where(
            is_low, placed_like(rows, self.low), placed_like(rows, self.high)
        )
        return xp.where(is_broken, usual, rows)

    def are_broken(self, rows: Any) -> Any:
        """Mark the cells (n, d) that are moved."""
        is_low = rows < placed_like(rows, self.lowest)
        is_high = rows > placed_like(rows, self.highest)
        return (is_low | is_high) & array_namespace(rows).isfinite(rows)

    def find_broken(self, rows: Array) -> list[tuple[int, int]]:
        """Return row and column of every number that is moved, of rows in memory."""
        return [
            (row, column) for row, column in np.argwhere(self.are_broken(rows)).tolist()
        ]


@dataclass(frozen=True)
class LinearMap:
    """Subtract a center from rows, and multiply them by a matrix (d, m)."""

    center: Array
    matrix: Array

    keeps_columns: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    def __call__(self, rows: Any) -> Any:
        centered = rows - placed_like(rows, self.center)
        return centered @ placed_like(rows, self.matrix)


@dataclass(frozen=True)
class UnitLength:
    """Scale rows to length 1 about a center."""

    center: Array

    keeps_columns: ClassVar[bool] = True

    @property
    def n_features(self) -> int:
        return len(self.center)

    def __call__(self, rows: Any) -> Any:
        xp = array_namespace(rows)
        centered = rows - placed_like(rows, self.center)
        with np.errstate(over="ignore", under="ignore"):
            squared_lengths = xp.vecdot(centered, centered)
        if not _are_exact(squared_lengths):
            # Divide by the largest entry first: its square overflows or vanishes.
            largest = xp.max(xp.abs(centered), axis=1, keepdims=True)
            centered /= _one_for_zero(largest)
            squared_lengths = xp.vecdot(centered, centered)
        lengths = xp.sqrt(squared_lengths)[:, None]
        centered /= _one_for_zero(lengths)
        return centered


def _are_exact(squared_lengths: Any) -> bool:
    """Whether no square that mattered to a length has overflowed or vanished."""
    xp = array_namespace(squared_lengths)
    limits = xp.finfo(squared_lengths.dtype)
    is_small = squared_lengths < float(limits.max) ** 0.5
    is_large = squared_lengths > float(limits.smallest_normal) ** 0.5
    return bool(xp.all(is_small & is_large))


def _one_for_zero(divisors: Any) -> Any:
    """Replace zeros by ones: a row of zeros stays as it is."""
    xp = array_namespace(divisors)
    return xp.where(divisors > 0, divisors, xp.ones_like(divisors))


@dataclass(frozen=True)
class KernelMap:
    """Features of the kernel exp(-gamma |x - x'|^2), by Nystroem's method.

    With the kernel matrix V diag(w) V' of the landmarks, the features of a row x are
    k(x) V / sqrt(w), for the kernel k(x) between x and the landmarks: their inner
    products are those of the kernel wherever rows are landmarks.
    """

    landmarks: Array
    projection: Array
    gamma: float

    keeps_columns: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        return int(self.projection.shape[1])

    def __call__(self, rows: Any) -> Any:
        return self.kernel(rows) @ placed_like(rows, self.projection)

    def kernel(self, rows: Any) -> Any:
        """Return the kernel (n, m) between rows x and the landmarks l.

        The squared distances are |x|^2 + |l|^2 - 2 x'l.
        """
        xp = array_namespace(rows)
        landmarks = placed_like(rows, self.landmarks)
        row_squares = xp.sum(rows * rows, axis=1, keepdims=True)
        # The kernel of an infinite row would be 0, a number like any other. NaN shows
        # in the features, so that an error names the row.
        is_finite = xp.all(xp.isfinite(rows), axis=1, keepdims=True)
        row_squares = xp.where(is_finite, row_squares, xp.nan * row_squares)
        landmark_squares = xp.sum(landmarks * landmarks, axis=1)
        products = rows @ landmarks.T
        distances = row_squares + landmark_squares - 2.0 * products
        # Rounding may have left a negative distance, whose kernel would exceed 1.
        distances = xp.clip(distances, min=0.0)
        return xp.exp(-self.gamma * distances)


@dataclass(frozen=True)
class Chain:
    """Views that map rows one after another."""

    views: tuple[View, ...]

    @property
    def n_features(self) -> int:
        return self.views[-1].n_features

    @property
    def keeps_columns(self) -> bool:
        return all(view.keeps_columns for view in self.views)

    def __call__(self, rows: Any) -> Any:
        for view in self.views:
            rows = view(rows)
        return rows


def chained(*views: View | None) -> View | None:
    """Return views that map rows one after another; None where there is no view."""
    given = tuple(view for view in views if view is not None)
    if len(given) < 2:
        return given[0] if given else None
    return Chain(given)


def steps_of(view: View) -> tuple[View, ...]:
    """Return the views of a chain in their order, those of inner chains among them."""
    if not isinstance(view, Chain):
        return (view,)
    return tuple(step for each in view.views for step in steps_of(each))


def without_bounds(view: View | None) -> View | None:
    """Return a view that takes all numbers as they are."""
    if view is None:
        return None
    return chained(*(step for step in steps_of(view) if not isinstance(step, Bounds)))


def as_floating(rows: Any) -> Any:
    """Return rows of real numbers; those of NumPy in double precision."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False)
    xp = array_namespace(rows)
    if xp.isdtype(rows.dtype, "real floating"):
        return rows
    # The default precision of the library on this device.
    one = xp.asarray(1.0, device=device(rows))
    return xp.astype(rows, one.dtype)


def placed_view(view: View, rows: Any) -> View:
    """Return a view whose arrays are where rows are, for many blocks of such rows."""
    if isinstance(view, Chain):
        return Chain(tuple(placed_view(step, rows) for step in view.views))
    placed = {}
    # Every other view is a dataclass of arrays and numbers.
    for name, value in vars(view).items():
        if isinstance(value, np.ndarray):
            placed[name] = placed_like(rows, value)
    return cast(View, replace(cast(Any, view), **placed))


def placed_like(rows: Any, array: Any) -> Any:
    """Return an array in the library, on the device and of the dtype of rows.

    An array of another library than NumPy is there already.
    """
    if isinstance(rows, np.ndarray) or not isinstance(array, np.ndarray):
        return array
    xp = array_namespace(rows)
    contiguous = np.ascontiguousarray(array)
    return xp.asarray(contiguous, dtype=rows.dtype, device=device(rows))


def learn_bounds(sample: Array) -> Bounds:
    """Learn what is far outside of every column, from a sample of the rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        median = np.median(sample, axis=0)
        high, highest = _tail_above(sample - median)
        low, lowest = _tail_above(median - sample)
        return Bounds(median - lowest, median - low, median + high, median + highest)


def _tail_above(deviations: Array) -> tuple[Array, Array]:
    """Return the last usual deviation above 0 of every column, and the largest one."""
    ordered = np.sort(deviations.T, axis=1)
    n_rows = ordered.shape[1]
    # Ties with the median are not above it: in columns of two values, or of many
    # zeros, the other values are compared with each other.
    n_above = np.count_nonzero(ordered > 0, axis=1)

    def value_at(share: float) -> Array:
        rank = n_rows - n_above + np.floor(share * (n_above - 1)).astype(int)
        index = np.minimum(rank, n_rows - 1)[:, None]
        return np.take_along_axis(ordered, index, axis=1)[:, 0]

    usual = value_at(_USUAL)
    is_sparse = 4 * n_above < n_rows
    least_ratio = np.where(is_sparse, _MIN_SPARSE_TAIL_RATIO, _MIN_TAIL_RATIO)
    is_known = n_above >= _MIN_ROWS_OF_TAIL
    middle = np.where(is_known, value_at(_MIDDLE), 1.0)
    ratio = np.maximum(usual / middle, least_ratio)
    largest = np.where(is_known, usual * ratio**_TAIL_POWER, np.inf)
    return usual, largest


def learn_view(name: str, summary: Summary) -> View:
    """Learn a view from a summary of the rows."""
    return _LEARNERS[name](summary)


def _learn_standardization(summary: Summary) -> Standardization:
    sample = summary.sample
    lowest = sample.min(axis=0)
    highest = sample.max(axis=0)
    is_lowest_or_highest = (sample == lowest) | (sample == highest)
    has_two_values = is_lowest_or_highest.all(axis=0) & (lowest < highest)
    scale = np.where(has_two_values, highest - lowest, summary.spread)
    # A constant column is only centered.
    scale = np.where(scale > 0, scale, 1.0)
    return Standardization(summary.center, scale)


def _learn_whitening(summary: Summary) -> Chain:
    standardization = _learn_standardization(summary)
    assert summary.covariance is not None
    # The covariance of standardized columns, from that of columns over their unit.
    scale = standardization.scale / summary.unit
    covariance = summary.covariance / scale[:, None] / scale

    n_features = len(scale)
    ridge = _WHITENING_RIDGE * np.trace(covariance) / n_features
    eigenvalues, vectors = np.linalg.eigh(covariance)
    variances = np.maximum(eigenvalues, 0.0) + ridge
    # If no row varies, there is nothing to whiten.
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    # The symmetric root is the same whatever eigenvectors are chosen.
    inverse_root = (vectors / deviations) @ vectors.T
    return Chain((standardization, LinearMap(np.zeros(n_features), inverse_root)))


def _learn_unit_length(summary: Summary) -> UnitLength:
    center = summary.center
    # Divide before squaring: squares might overflow.
    largest = max(np.abs(center).max(), summary.spread.max()) or 1.0
    squared_length = ((center / largest) ** 2).sum()
    variance = ((summary.spread / largest) ** 2).sum()
    is_far_from_zero = squared_length > _MAX_ZERO_MEAN_RATIO * variance
    return UnitLength(center if is_far_from_zero else np.zeros_like(center))


def _learn_kernel(summary: Summary) -> Chain:
    base = _learn_standardization(summary)
    return _learn_kernel_after(base, _KERNEL_EXPONENT, summary)


def _learn_whitened_kernel(summary: Summary) -> Chain:
    base = _learn_whitening(summary)
    return _learn_kernel_after(base, _WHITENED_KERNEL_EXPONENT, summary)


def _learn_kernel_after(base: View, exponent: float, summary: Summary) -> Chain:
    """Learn a kernel of the rows that a first view maps.

    Its features are centered and scaled to length 1.
    """
    # 1. Choose the width. The mean square of the distance between two rows is twice
    # their variance.
    sample = np.asarray(base(summary.sample))
    deviations = sample - _weighted_mean(sample, summary.weights)
    squared_distances = (deviations**2).sum(axis=1)
    variance = float(_weighted_mean(squared_distances, summary.weights))
    gamma = exponent / (2 * variance) if variance > 0 else 1.0

    # 2. Find the directions in which the kernel between the landmarks varies.
    landmarks = np.asarray(base(_draw_landmarks(summary.sample)))
    unprojected = KernelMap(landmarks, np.eye(len(landmarks)), gamma)
    between = unprojected.kernel(landmarks)
    eigenvalues, vectors = np.linalg.eigh(between)
    is_kept = eigenvalues > _KERNEL_RANK_TOLERANCE * eigenvalues[-1]
    projection = vectors[:, is_kept] / np.sqrt(eigenvalues[is_kept])
    kernel_map = KernelMap(landmarks, projection, gamma)

    # 3. Center the features.
    mean = _weighted_mean(kernel_map(sample), summary.weights)
    return Chain((base, kernel_map, UnitLength(mean)))


def _weighted_mean(values: Array, weights: Array) -> Any:
    """Return the weighted mean over rows."""
    return weights @ values / weights.sum()


def _draw_landmarks(rows: Array) -> Array:
    """Draw distinct rows, the same whatever the order of the rows and their units."""
    # ``unique`` sorts rows as they are: products may round equal rows differently, so
    # that the order of mapped rows would depend on that of the sample.
    distinct = np.unique(rows, axis=0)
    order = np.random.default_rng(0).permutation(len(distinct))
    return np.asarray(distinct[order[:_MAX_LANDMARKS]])


_LEARNERS: dict[str, Callable[[Summary], View]] = {
    STANDARDIZE: _learn_standardization,
    WHITEN: _learn_whitening,
    NORMALIZE: _learn_unit_length,
    KERNEL: _learn_kernel,
    WHITENED_KERNEL: _learn_whitened_kernel,
}
