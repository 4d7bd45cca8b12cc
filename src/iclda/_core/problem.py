"""A semi-supervised problem, reduced to what every method needs of it.

Classes of a ``SphericalProblem`` share one variance in all directions of the user's units: nearest
mean. Coordinates z = (x - m) / sqrt(nu) have the mean variance 1, with nu that of all rows. The fit
of any labeling is still a point (r, B), with Sigma = sigma^2 I in place of I - B D^-1 B':

    sigma^2 = 1 - sum_k |b_k|^2 / (r_k d)

Formulas for the precise means and the marginal likelihood hold with this covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from . import AnyArray, Array
from .frame import Frame, mean_variance_in_frame
from .gaussian import LOG_2PI, Gaussians, gaussians
from .labelsums import ROUNDING, GivenLabels, LinearRule, Rule, within_scatter
from .likelihood import (
    FLOOR,
    LabeledLikelihood,
    PreciseMeans,
    is_above_floor,
    precise_means,
    smallest_eigenvalue,
)
from .moments import Factor, Moments, Whitening, factor, whiten
from .rows import Rows

_MANY_CLASSES = (
    1_000  # above which labels are sparse and the rounds of a fit are limited
)
_MOST_SHARES = 2e9  # rows x classes x rounds of a fit with many classes: some minutes
_LEAST_ROUNDS = 10  # of a fit with many classes
_MOST_WORK = 7e10  # rows x classes x features x rounds of ten seconds
_SOFTMAX = 64  # features that take as long as the softmax of the scores
_QUOTA_FACTOR = 5  # by which quotas make a round longer
_DEFAULT_ROUNDS = 32, 10_000
# Below this eigenvalue I - B D^-1 B' has lost too many digits: the scatter is summed anew.
_DOWNDATE_IS_SAFE = 1e-6
_LABELED_ROWS_HELD = 4096  # labeled rows that are copied at once
# Share of the total variance below which a spread within classes is rounding.
WITHIN_TOLERANCE = 1e-13


def within_rank(within: Array) -> int:
    """Rank of a covariance within classes, in coordinates where that of all rows is of order 1."""
    if factor(within, WITHIN_TOLERANCE) is not None:
        return len(within)
    return int(np.sum(np.linalg.eigvalsh(within) > WITHIN_TOLERANCE))


@dataclass(frozen=True)
class LabeledSummary:
    """Class weights, class means and scatter about them of the labeled rows (frame units)."""

    counts: Array  # (K,)
    means: Array  # (K, d)
    within: Array  # (d, d)
    n_rows: int = 0

    @cached_property
    def weight(self) -> float:
        return float(self.counts.sum())

    @property
    def has_spread(self) -> bool:
        """Whether any class varies by more than rounding."""
        size = float(self.counts @ (self.means**2).sum(axis=1))
        return bool(np.trace(self.within) > ROUNDING**2 * size)

    @cached_property
    def moments(self) -> Moments:
        mean = self.counts @ self.means / self.weight
        shift = (self.means - mean) * np.sqrt(self.counts)[:, None]
        return Moments(self.weight, mean, self.within + shift.T @ shift)


def summarize_labeled(rows: Rows, labels: GivenLabels, frame: Frame) -> LabeledSummary:
    """Summarize labeled rows in two passes, or in memory if they are few."""
    if rows.n_rows <= _LABELED_ROWS_HELD and labels.labels.shape == (rows.n_rows,):
        held, weights = rows.sample(rows.n_rows, 0)
        return summarize_rows(
            frame.apply(held), labels.labels, weights, labels.n_classes
        )
    sums = rows.label_sums(labels, frame)
    centers = sums.sums / sums.counts[:, None]
    about = rows.label_sums(labels, frame, centers)
    return LabeledSummary(about.counts, *within_scatter(about, centers), rows.n_rows)


def summarize_rows(
    u: Array, codes: AnyArray, weights: Array, n_classes: int
) -> LabeledSummary:
    """Summary of rows in frame coordinates."""
    if n_classes > _MANY_CLASSES:  # next to all entries of the matrix would be 0
        shares = csr_array(
            (weights, (codes, np.arange(len(u)))), shape=(n_classes, len(u))
        )
    else:
        shares = weights * (codes == np.arange(n_classes)[:, None])
    counts = shares.sum(axis=1)
    means = shares @ u / counts[:, None]
    centered = u - means[codes]
    centered *= np.sqrt(weights)[:, None]
    return LabeledSummary(counts, means, centered.T @ centered, len(u))


Kind = TypeVar("Kind", bound="Problem")


@dataclass(frozen=True)
class Problem:
    """Labeled rows in summary, unlabeled rows to be read, and the settings all methods share."""

    frame: Frame
    labeled: LabeledSummary
    unlabeled: Rows
    log_priors: Array | None = None
    shrinkage: float = 0.0
    unlabeled_moments: Moments | None = None  # None: read when they are used
    n_left_out: int = (
        0  # further features in which no row varies, which only shrinkage sees
    )
    proportions: Array | None = (
        None  # (K, 2): least and largest shares of the unlabeled weight
    )
    start: LinearRule | None = (
        None  # scores that iterations begin with; None: the supervised fit's
    )

    @property
    def n_classes(self) -> int:
        return len(self.labeled.counts)

    @property
    def is_unbounded(self) -> bool:
        """Whether rows vary in so many directions that every labeling separates them perfectly."""
        n_rows = self.labeled.n_rows + self.unlabeled.n_rows
        return self.shrinkage == 0 and self.whitening.rank > n_rows - self.n_classes

    @property
    def rank(self) -> int:
        """Rank of the covariance of all rows, with the directions that shrinkage adds."""
        return self.whitening.rank + (self.n_left_out if self.shrinkage else 0)

    def recast(self, kind: type[Kind]) -> Kind:
        """The same rows and labels under another model of the classes."""
        if isinstance(self, kind):
            return self
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)})

    def rounds(self, max_iter: int) -> int:
        """Return ``max_iter``, or fewer rounds for very many classes: a fit takes minutes."""
        n_shares = self.n_classes * max(1, self.unlabeled.n_rows)
        if self.n_classes <= _MANY_CLASSES:
            return max_iter
        return min(max_iter, max(_LEAST_ROUNDS, int(_MOST_SHARES / n_shares)))

    @property
    def default_rounds(self) -> int:
        """Rounds of a fit that reads all rows in each: about ten seconds' worth on two cores."""
        work = (
            max(1, self.unlabeled.n_rows)
            * self.n_classes
            * (len(self.frame.scale) + _SOFTMAX)
        )
        if self.proportions is not None:
            work *= _QUOTA_FACTOR
        rounds = int(np.clip(_MOST_WORK / work, *_DEFAULT_ROUNDS))
        # To find a start took most of the time.
        return rounds if self.start is None else max(1, rounds // 4)

    @cached_property
    def moments(self) -> Moments:
        """Weight, mean and scatter of all rows, which do not depend on any labels."""
        unlabeled = self.unlabeled_moments
        return self.labeled.moments + (unlabeled or self.unlabeled.moments(self.frame))

    @property
    def ridge(self) -> Array | None:
        """s / (1 - s) nu I with nu the mean variance of all rows, in frame coordinates."""
        if self.shrinkage == 0:
            return None
        nu = mean_variance_in_frame(
            self.moments.covariance, self.frame, self.n_left_out
        )
        return self.shrinkage / (1 - self.shrinkage) * nu

    @property
    def target_variance(self) -> float | None:
        """s nu in the user's units: the variance that shrinkage gives where no row varies."""
        if self.ridge is None:
            return None
        return float((1 - self.shrinkage) * (self.ridge * self.frame.scale**2)[0])

    @cached_property
    def whitening(self) -> Whitening:
        return whiten(self.moments, self.frame, self.ridge)

    @cached_property
    def likelihood(self) -> LabeledLikelihood:
        labeled, whitening = self.labeled, self.whitening
        return LabeledLikelihood(
            counts=labeled.counts,
            means=whitening.points(labeled.means),
            within=whitening.transform @ labeled.within @ whitening.transform.T,
            log_priors=self.log_priors,
            shrinkage=self.shrinkage,
            constant=-(whitening.rank * LOG_2PI + whitening.log_det) / 2,
        )

    @cached_property
    def labeled_covariance(self) -> Array:
        """Whitened covariance within the labeled classes; with shrinkage, divided by 1 - s."""
        covariance = self.likelihood.within / self.likelihood.weight
        if self.ridge is None:
            return covariance
        transform = self.whitening.transform
        return np.asarray(covariance + (transform * self.ridge) @ transform.T)

    @cached_property
    def labeled_factor(self) -> Factor | None:
        """Factor of the labeled covariance, where that is safely positive."""
        return factor(self.labeled_covariance, WITHIN_TOLERANCE)

    @property
    def labeled_rank(self) -> int:
        """Rank of the covariance of the labeled rows within their classes."""
        if self.labeled_factor is not None:
            return self.whitening.rank
        return within_rank(self.labeled_covariance)

    @cached_property
    def labeled_point(self) -> Array:
        """Share of the labeled rows in every attainable point, (K, 1 + rank)."""
        likelihood = self.likelihood
        sums = likelihood.counts[:, None] * likelihood.means
        return np.column_stack([likelihood.counts, sums]) / self.moments.weight

    def point_of(self, counts: Array, sums: Array) -> Array:
        """Attainable point from the label sums of the unlabeled rows in frame coordinates."""
        return (
            self.labeled_point
            + self.whitening.class_sums(counts, sums) / self.moments.weight
        )

    def rule_of(self, scores: Array, *, is_soft: bool) -> LinearRule:
        """Rule with scores (K, 1 + rank) in whitened coordinates, for rows in the frame."""
        whitening = self.whitening
        coef = whitening.transform.T @ scores[:, 1:].T
        return LinearRule(coef, scores[:, 0] - whitening.mean @ coef, is_soft)

    def scores_of(self, rule: LinearRule) -> Array:
        """Scores (K, 1 + rank) in whitened coordinates of a rule for rows in the frame."""
        whitening = self.whitening
        intercept = rule.intercept + whitening.mean @ rule.coef
        return np.column_stack([intercept, rule.coef.T @ whitening.inverse])

    def precise_means(self, point: Array) -> PreciseMeans:
        return precise_means(point)

    def is_admissible(self, point: Array) -> bool:
        """Whether class weights are positive and the covariance is above its floor."""
        return is_above_floor(point)

    def posterior_scores(
        self, point: Array, precise: PreciseMeans | None = None
    ) -> Array:
        """(K, 1 + rank): linear scores whose softmax are the posteriors of the model at a point.

        ``precise`` are its precise means, if they are known.
        """
        r, keep = point[:, 0], 1 - self.shrinkage
        precise = self.precise_means(point) if precise is None else precise
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        scores = np.empty(point.shape)
        scores[:, 0] = log_priors - precise.along / (2 * keep * r)
        np.divide(precise.rows, keep, out=scores[:, 1:])
        return scores

    def model_of(self, point: Array, rule: Rule | None = None) -> Gaussians:
        """The model at an attainable point; ``rule`` is the labeling that attains it."""
        r, means = point[:, 0], point[:, 1:] / point[:, :1]
        between = (point[:, 1:].T / r) @ point[:, 1:]
        unit = np.eye(self.whitening.rank) - between
        if rule is not None and smallest_eigenvalue(point) < _DOWNDATE_IS_SAFE:
            unit = self._summed_unit_covariance(means, rule)
        covariance = (1 - self.shrinkage) * unit
        return gaussians(
            self.frame, self.whitening, r, means, covariance, self.log_priors
        )

    def _summed_unit_covariance(self, means: Array, rule: Rule) -> Array:
        """I - B D^-1 B' summed from the rows, where the difference would lose its digits."""
        whitening, weight = self.whitening, self.moments.weight
        centers = means @ whitening.inverse.T + whitening.mean
        sums = self.unlabeled.label_sums(rule, self.frame, centers)
        shift = (self.labeled.means - centers) * np.sqrt(self.labeled.counts)[:, None]
        scatter = self.labeled.within + shift.T @ shift
        assert sums.scatter is not None
        scatter = scatter + sums.scatter
        if self.ridge is not None:
            scatter = scatter + weight * np.diag(self.ridge)
        return np.asarray(
            whitening.transform @ scatter @ whitening.transform.T / weight
        )


@dataclass(frozen=True)
class SphericalProblem(Problem):
    """A problem whose classes have the covariance sigma^2 I."""

    @property
    def is_unbounded(self) -> bool:
        return False  # however many features there are

    @cached_property
    def whitening(self) -> Whitening:
        return _one_scale(self.moments.mean, self.moments.covariance, self.frame)

    @cached_property
    def labeled_covariance(self) -> Array:
        """Covariance of the labeled rows within classes, in whitened coordinates."""
        labeled = self.likelihood
        variance = float(np.trace(labeled.within)) / (
            labeled.weight * len(labeled.within)
        )
        return variance * np.eye(len(labeled.within))

    def precise_means(self, point: Array) -> PreciseMeans:
        r, b, variance = point[:, 0], point[:, 1:], self._variance(point)
        along = (b**2).sum(axis=1) / (r * variance)
        rows = b / (r * variance)[:, None]
        return PreciseMeans(rows, along, b.shape[1] * float(np.log(variance)))

    def is_admissible(self, point: Array) -> bool:
        return self._variance(point) > FLOOR

    def _variance(self, point: Array) -> float:
        """Variance of the model at a point; minus infinity where a class has no weight."""
        r, b = point[:, 0], point[:, 1:]
        if not r.min() > 0:
            return -math.inf
        return 1 - float(((b**2).sum(axis=1) / r).sum() / b.shape[1])

    def model_of(self, point: Array, rule: Rule | None = None) -> Gaussians:
        means = point[:, 1:] / point[:, :1]
        return self._model(point[:, 0], means, self._variance(point))

    def match_mean(self, *, variance_anew: bool) -> Gaussians:
        """Shift the labeled means together so that their mean is that of all rows.

        The variance is that of the labeled rows about their own means or, ``variance_anew``, about
        the shifted ones.
        """
        labeled = self.likelihood
        weights = labeled.counts / labeled.weight
        mean, variance = weights @ labeled.means, self.labeled_covariance[0, 0]
        if not variance > WITHIN_TOLERANCE:
            raise ValueError(
                f"The {self.labeled.n_rows} labeled rows do not vary within their classes, which "
                "leaves no variance to estimate: label more rows."
            )
        if variance_anew:
            variance = variance + float(mean @ mean) / len(mean)
        return self._model(weights, labeled.means - mean, variance)

    def _model(self, weights: Array, means: Array, variance: float) -> Gaussians:
        covariance = variance * np.eye(self.whitening.rank)
        return gaussians(
            self.frame, self.whitening, weights, means, covariance, self.log_priors
        )


def fit_nearest_mean(
    frame: Frame, labeled: LabeledSummary, log_priors: Array | None = None
) -> Gaussians:
    """Priors, means and one variance of the labeled rows."""
    whitening = _one_scale(labeled.moments.mean, labeled.within / labeled.weight, frame)
    weights, means = labeled.counts / labeled.weight, whitening.points(labeled.means)
    return gaussians(
        frame, whitening, weights, means, np.eye(whitening.rank), log_priors
    )


def _one_scale(mean: Array, covariance: Array, frame: Frame) -> Whitening:
    """Coordinates in units of the mean standard deviation, in the user's units."""
    spread = np.sqrt(mean_variance_in_frame(covariance, frame))
    if not spread.min(initial=1.0) > 0:  # rows that do not vary
        spread = 1 / frame.scale
    log_det = 2 * float(np.log(spread * frame.scale).sum())
    return Whitening(
        mean, np.diag(1 / spread), np.diag(spread), np.eye(len(spread)), log_det
    )
