"""Views: maps of rows that are learned without labels, before a linear fit.

A classifier with a view is fitted to the mapped rows, and maps rows before it predicts
them. Everything else of it stays as it is: its search, its certificate and its bounds
are those of the mapped rows. There are five views:

- ``standardize``: columns are divided by their standard deviation, so that their units
  play no part. A column of two values is divided by their difference: a rare category
  would otherwise be far larger than anything else.
- ``whiten``: the same, and then a linear map to covariance I. Shrinkage pulls toward
  the covariance of all rows then, and correlated columns do not count twice.
- ``normalize``: rows are scaled to length 1, about their mean if that is far from zero,
  as suits features of a network.
- ``kernel``: the features of an RBF kernel of the standardized columns, by Nystroem's
  method. Boundaries that are linear in these features are curved in the columns.
- ``whitened-kernel``: the same of the whitened columns.

A view maps one block of rows at a time, for any array library, so that no mapped copy
of all rows is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Protocol

import numpy as np
from array_api_compat import array_namespace, device

from .._core import AnyArray, Array

STANDARDIZE = "standardize"
WHITEN = "whiten"
NORMALIZE = "normalize"
KERNEL = "kernel"
WHITENED_KERNEL = "whitened-kernel"
VIEWS = (STANDARDIZE, WHITEN, NORMALIZE, KERNEL, WHITENED_KERNEL)

# Features of a kernel: rows between which and all others the kernel is computed.
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
# Rows are scaled about their mean if its squared length exceeds this share of their
# variance.
_FAR_FROM_ZERO = 0.25


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
        return (rows - like(rows, self.center)) / like(rows, self.scale)


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
        return (rows - like(rows, self.center)) @ like(rows, self.matrix)


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
        centered = rows - like(rows, self.center)
        # Divide by the largest entry first: its square might overflow or vanish.
        largest = xp.max(xp.abs(centered), axis=1, keepdims=True)
        centered = centered / xp.where(largest > 0, largest, xp.ones_like(largest))
        length = xp.sqrt(xp.sum(centered * centered, axis=1, keepdims=True))
        return centered / xp.where(length > 0, length, xp.ones_like(length))


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
        return self.kernel(rows) @ like(rows, self.projection)

    def kernel(self, rows: Any) -> Any:
        """Return the kernel (n, m) between rows and the landmarks."""
        xp = array_namespace(rows)
        landmarks = like(rows, self.landmarks)
        lengths = xp.sum(rows * rows, axis=1, keepdims=True)
        # The kernel of an infinite row is 0, but it has to show: 0 times infinity does.
        are_finite = xp.all(xp.isfinite(rows), axis=1, keepdims=True)
        lengths = xp.where(are_finite, lengths, xp.nan * lengths)
        of_landmarks = xp.sum(landmarks * landmarks, axis=1)
        squares = lengths + of_landmarks - 2.0 * (rows @ landmarks.T)
        # Rounding may have left a negative distance, whose kernel would exceed 1.
        return xp.exp(-self.gamma * xp.clip(squares, min=0.0))


@dataclass(frozen=True)
class Chain:
    """Views one after another."""

    views: tuple[View, ...]

    @property
    def n_features(self) -> int:
        return self.views[-1].n_features

    @property
    def keeps_columns(self) -> bool:
        return all(view.keeps_columns for view in self.views)

    def __call__(self, rows: Any) -> Any:
        return reduce(lambda mapped, view: view(mapped), self.views, rows)


def steps_of(view: View) -> tuple[View, ...]:
    """Return the views that a chain, perhaps of chains, consists of."""
    if not isinstance(view, Chain):
        return (view,)
    return tuple(step for each in view.views for step in steps_of(each))


def as_floating(rows: Any) -> Any:
    """Return rows of real numbers; those of NumPy in double precision."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False)
    xp = array_namespace(rows)
    if xp.isdtype(rows.dtype, "real floating"):
        return rows
    return xp.astype(rows, xp.asarray(1.0, device=device(rows)).dtype)


def like(rows: Any, array: Array) -> Any:
    """Return an array in the library, on the device and of the dtype of rows."""
    if isinstance(rows, np.ndarray):
        return array
    xp = array_namespace(rows)
    return xp.asarray(array, dtype=rows.dtype, device=device(rows))


def learn_view(name: str, summary: Summary) -> View:
    """Learn a view from a summary of the rows."""
    return _LEARN[name](summary)


def _standardization(summary: Summary) -> Standardization:
    spread = summary.spread
    lowest = summary.sample.min(axis=0)
    highest = summary.sample.max(axis=0)
    is_end = (summary.sample == lowest) | (summary.sample == highest)
    has_two_values = is_end.all(axis=0) & (lowest < highest)
    scale = np.where(has_two_values, highest - lowest, spread)
    return Standardization(summary.center, np.where(scale > 0, scale, 1.0))


def _whitening(summary: Summary) -> Chain:
    standardization = _standardization(summary)
    assert summary.covariance is not None
    scale = standardization.scale / summary.unit
    covariance = summary.covariance / scale[:, None] / scale
    n_features = len(scale)
    ridge = _WHITENING_RIDGE * np.trace(covariance) / n_features
    eigenvalues, vectors = np.linalg.eigh(covariance)
    variances = np.maximum(eigenvalues, 0.0) + ridge
    # The symmetric root depends on no choice of eigenvectors. If no row varies, there
    # is nothing to whiten.
    root = (vectors / np.sqrt(np.where(variances > 0, variances, 1.0))) @ vectors.T
    return Chain((standardization, LinearMap(np.zeros(n_features), root)))


def _unit_length(summary: Summary) -> UnitLength:
    center = summary.center
    # Divide before squaring: squares might overflow.
    largest = max(np.abs(center).max(), summary.spread.max()) or 1.0
    squared_length = ((center / largest) ** 2).sum()
    variance = ((summary.spread / largest) ** 2).sum()
    is_far = squared_length > _FAR_FROM_ZERO * variance
    return UnitLength(center if is_far else np.zeros_like(center))


def _kernel(base: View, exponent: float, summary: Summary) -> Chain:
    """Return the features of a kernel of mapped rows, centered and of length 1."""
    sample = np.asarray(base(summary.sample))
    center = summary.weights @ sample / summary.weights.sum()
    variance = summary.weights @ ((sample - center) ** 2).sum(axis=1)
    variance /= summary.weights.sum()

    landmarks = np.asarray(base(_draw_landmarks(summary.sample)))
    # The mean square of the distance between two rows is twice their variance.
    gamma = exponent / (2 * float(variance)) if variance > 0 else 1.0
    between = KernelMap(landmarks, np.eye(len(landmarks)), gamma).kernel(landmarks)
    eigenvalues, vectors = np.linalg.eigh(between)
    is_kept = eigenvalues > _KERNEL_RANK_TOLERANCE * eigenvalues[-1]
    projection = vectors[:, is_kept] / np.sqrt(eigenvalues[is_kept])
    kernel_map = KernelMap(landmarks, projection, gamma)

    features = kernel_map(sample)
    mean = summary.weights @ features / summary.weights.sum()
    return Chain((base, kernel_map, UnitLength(mean)))


def _draw_landmarks(rows: Array) -> Array:
    """Draw distinct rows, which depend neither on their order nor on the units."""
    # Rows are sorted before they are mapped: products may round equal rows differently.
    distinct = np.unique(rows, axis=0)
    order = np.random.default_rng(0).permutation(len(distinct))
    return np.asarray(distinct[order[:_MAX_LANDMARKS]])


_LEARN: dict[str, Callable[[Summary], View]] = {
    STANDARDIZE: _standardization,
    WHITEN: _whitening,
    NORMALIZE: _unit_length,
    KERNEL: lambda summary: _kernel(
        _standardization(summary), _KERNEL_EXPONENT, summary
    ),
    WHITENED_KERNEL: lambda summary: _kernel(
        _whitening(summary), _WHITENED_KERNEL_EXPONENT, summary
    ),
}


# Rows with at least this many columns that measure something may be features of a
# network ...
MANY_FEATURES = 64
# ... if these columns have about one unit: the standard deviations of nearly all of
# them lie within this factor.
_MAX_SPREAD_RATIO = 30.0
# Nearly all: those between these quantiles.
_SPREAD_QUANTILES = (0.05, 0.95)
# A column measures something if a sample of it has more distinct values than this: 0
# and 1 of categories are no measurements.
_MIN_DISTINCT_VALUES = 10


def are_network_features(sample: AnyArray) -> bool:
    """Tell features of a network, many numeric columns in one unit, from a table."""
    if sample.shape[1] < MANY_FEATURES:
        return False
    n_values = min(_MIN_DISTINCT_VALUES, len(sample) - 1)
    is_measured = np.array(
        [len(np.unique(column)) > n_values for column in sample.T], dtype=bool
    )
    spread = sample[:, is_measured].std(axis=0)
    if len(spread) < MANY_FEATURES:
        return False
    low, high = np.quantile(spread, _SPREAD_QUANTILES)
    return bool(high <= _MAX_SPREAD_RATIO * low)
