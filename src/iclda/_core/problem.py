"""A semi-supervised problem, reduced to what every method needs of it.

A problem also says what its classes look like. The fit of a labeling is a point (r, B)
in coordinates z. What follows from a point depends on the form of the covariance alone:
``is_admissible``, ``precision_weighted_means`` and ``model_of``. So do the coordinates,
``whitening``, and the ``labeled_covariance`` with which iterations start, and whether
there are too many directions, ``is_unbounded``. A ``Problem`` has any covariance. A
subclass overrides these, and EM (``solvers.alternate``) fits it as it is.

Classes of a ``SphericalProblem`` share one variance in all directions of the user's
units: nearest mean. Coordinates z = (x - m) / sqrt(nu) have the mean variance 1, with
nu that of all rows. The fit of any labeling is still a point (r, B), with Sigma =
sigma^2 I in place of I - B D^-1 B':

    sigma^2 = 1 - sum_k |b_k|^2 / (r_k d)

Any form has to keep what the marginal likelihood of EM is computed from
(``solvers.alternate.marginal_log_likelihood``), with M its covariance at a point:

    tr M^-1 = rank + sum_k b_k' M^-1 mu_k
    sum over all rows of z' M^-1 z = N tr M^-1

Both hold for I - B D^-1 B' where all rows have the covariance I, for its diagonal where
they have variance 1 in every direction, and for sigma^2 I where that is their mean
variance.

A form whose directions have variances of their own may leave out constant columns: the
rank of its ``whitening`` is then lower than the number of columns, a warning names
them, and they get no coefficients. A form that averages over columns must not, since
their number counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array

from .._messages import FitError
from . import AnyArray, Array
from .frame import Frame, mean_variance_in_frame
from .gaussian import LOG_2PI, Gaussians, gaussians
from .labelsums import ROUNDING, GivenLabels, LinearRule, Rule, within_scatter
from .likelihood import (
    FLOOR,
    LabeledLikelihood,
    PrecisionWeightedMeans,
    is_above_floor,
    precision_weighted_means,
    smallest_eigenvalue,
)
from .moments import Factor, Moments, Whitening, factor, whiten
from .rows import Rows

# With more classes than this, the labels of labeled rows are a sparse matrix.
_MAX_CLASSES_OF_DENSE_LABELS = 32
# With more classes than this, the rounds of a fit are limited.
_MANY_CLASSES = 1_000
# Rows times classes times rounds of a fit with many classes, which take some minutes
# ...
_MAX_SHARES_OF_FIT = 2e9
# ... but at least this many rounds.
_MIN_ROUNDS_OF_MANY_CLASSES = 10
# Rows times classes times features times rounds that take about ten seconds.
_MAX_DEFAULT_WORK = 7e10
# The softmax of a row takes as long as the products of this many features.
_FEATURES_PER_SOFTMAX = 64
# Class proportions make a round longer by this factor.
_QUOTA_FACTOR = 5
# Limits of the default number of rounds.
_MIN_DEFAULT_ROUNDS = 32
_MAX_DEFAULT_ROUNDS = 10_000
# The scatter is summed from the rows if an eigenvalue of I - B D^-1 B' is below this:
# the difference has lost too many digits.
_SAFE_DOWNDATE_EIGENVALUE = 1e-6
# Up to this many labeled rows are copied and summarized in memory.
_MAX_LABELED_ROWS_HELD = 4096
# Share of the total variance below which a spread within classes is rounding.
WITHIN_TOLERANCE = 1e-13


def within_rank(within: Array) -> int:
    """Return the rank of a covariance within classes.

    The covariance of all rows is of order 1 in its coordinates.
    """
    if factor(within, WITHIN_TOLERANCE) is not None:
        return len(within)
    eigenvalues = np.linalg.eigvalsh(within)
    return int(np.sum(eigenvalues > WITHIN_TOLERANCE))


@dataclass(frozen=True)
class LabeledSummary:
    """Class weights (K,), class means (K, d) and scatter (d, d) of the labeled rows.

    The scatter is about the class means; all are in frame coordinates.
    """

    counts: Array
    means: Array
    within: Array
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
        # Each weight enters the product twice, by its root.
        shift = (self.means - mean) * np.sqrt(self.counts)[:, None]
        between = shift.T @ shift
        return Moments(self.weight, mean, self.within + between)


class LabeledRows(NamedTuple):
    """Labeled rows in memory, in the user's units; their codes and weights."""

    rows: AnyArray
    codes: AnyArray
    weights: Array


def summarize_labeled(rows: Rows, labels: GivenLabels, frame: Frame) -> LabeledSummary:
    """Summarize labeled rows in two passes, or in memory if they are few."""
    has_codes = labels.labels.shape == (rows.n_rows,)
    if rows.n_rows <= _MAX_LABELED_ROWS_HELD and has_codes:
        held, weights = rows.sample(rows.n_rows, 0)
        return summarize_rows(
            frame.apply(held), labels.labels, weights, labels.n_classes
        )
    # The scatter is summed about means that are nearly exact, as it would lose digits
    # about a center further away.
    sums = rows.label_sums(labels, frame)
    centers = sums.sums / sums.counts[:, None]
    about = rows.label_sums(labels, frame, centers)
    means, within = within_scatter(about, centers)
    return LabeledSummary(about.counts, means, within, rows.n_rows)


def summarize_rows(
    u: Array, codes: AnyArray, weights: Array, n_classes: int
) -> LabeledSummary:
    """Summarize labeled rows in frame coordinates."""
    if n_classes > _MAX_CLASSES_OF_DENSE_LABELS:
        # Almost all entries of a dense matrix would be 0.
        positions = (codes, np.arange(len(u)))
        shares = csr_array((weights, positions), shape=(n_classes, len(u)))
    else:
        shares = weights * (codes == np.arange(n_classes)[:, None])
    counts = shares.sum(axis=1)
    means = shares @ u / counts[:, None]
    centered = u - means[codes]
    centered *= np.sqrt(weights)[:, None]
    within = centered.T @ centered
    return LabeledSummary(counts, means, within, len(u))


Kind = TypeVar("Kind", bound="Problem")


@dataclass(frozen=True)
class Problem:
    """Labeled rows in summary, unlabeled rows to be read, and shared settings.

    Attributes
    ----------
    log_priors : (K,) priors if fixed by the user
    unlabeled_moments : None to read them when they are used
    n_left_out : number of further features in which no row varies; only shrinkage
        depends on it
    proportions : (K, 2) smallest and largest shares of the classes in the unlabeled
        weight
    start : scores that iterations begin with; None for those of the supervised fit
    labeled_rows : the labeled rows, for methods that use them one by one
    has_network_features : whether rows are features of a network, in which neighbors
        tend to have the same class
    """

    frame: Frame
    labeled: LabeledSummary
    unlabeled: Rows
    log_priors: Array | None = None
    shrinkage: float = 0.0
    unlabeled_moments: Moments | None = None
    n_left_out: int = 0
    proportions: Array | None = None
    start: LinearRule | None = None
    labeled_rows: LabeledRows | None = None
    has_network_features: bool = False

    # Whether one variance is that of all directions, so that no single one of them can
    # leave the likelihood without a maximum.
    has_one_variance: ClassVar[bool] = False

    @property
    def has_unlabeled_rows(self) -> bool:
        return self.unlabeled.n_rows > 0

    @property
    def n_classes(self) -> int:
        return len(self.labeled.counts)

    @property
    def is_unbounded(self) -> bool:
        """Whether every labeling separates the rows perfectly: too many directions.

        That is known before the fit; a single direction that turns out to separate the
        classes is what ``is_admissible`` finds.
        """
        n_rows = self.labeled.n_rows + self.unlabeled.n_rows
        max_rank = n_rows - self.n_classes
        return self.shrinkage == 0 and self.whitening.rank > max_rank

    @property
    def rank(self) -> int:
        """Rank of the covariance of all rows, and of what shrinkage adds."""
        return self.whitening.rank + (self.n_left_out if self.shrinkage else 0)

    def recast(self, kind: type[Kind]) -> Kind:
        """Return the rows and labels under another model of the classes."""
        if isinstance(self, kind):
            return self
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return kind(**values)

    def rounds(self, max_iter: int) -> int:
        """Return ``max_iter``, or fewer rounds for very many classes.

        A fit of them takes minutes.
        """
        if self.n_classes <= _MANY_CLASSES:
            return max_iter
        n_shares = self.n_classes * max(1, self.unlabeled.n_rows)
        affordable = int(_MAX_SHARES_OF_FIT / n_shares)
        allowed = max(_MIN_ROUNDS_OF_MANY_CLASSES, affordable)
        return min(max_iter, allowed)

    @property
    def default_rounds(self) -> int:
        """Rounds that take about ten seconds on two cores, if each reads all rows."""
        n_shares = max(1, self.unlabeled.n_rows) * self.n_classes
        work_per_share = len(self.frame.scale) + _FEATURES_PER_SOFTMAX
        work = n_shares * work_per_share
        if self.proportions is not None:
            work *= _QUOTA_FACTOR
        affordable = _MAX_DEFAULT_WORK / work
        max_rounds = _MAX_DEFAULT_ROUNDS
        if self.start is not None:
            # Finding a start has already taken most of the time.
            affordable /= 4
            max_rounds //= 4
        return int(np.clip(affordable, _MIN_DEFAULT_ROUNDS, max_rounds))

    @cached_property
    def moments(self) -> Moments:
        """Weight, mean and scatter of all rows, which do not depend on any labels."""
        unlabeled = self.unlabeled_moments
        if unlabeled is None:
            unlabeled = self.unlabeled.moments(self.frame)
        return self.labeled.moments + unlabeled

    @property
    def ridge(self) -> Array | None:
        """The diagonal of s / (1 - s) nu I in frame coordinates.

        nu is the mean variance of all rows.
        """
        if self.shrinkage == 0:
            return None
        nu = mean_variance_in_frame(
            self.moments.covariance, self.frame, self.n_left_out
        )
        return self.shrinkage / (1 - self.shrinkage) * nu

    @property
    def target_variance(self) -> float | None:
        """s nu in the user's units.

        Shrinkage gives this variance to directions in which no row varies.
        """
        if self.ridge is None:
            return None
        # The ridge is the same in all directions of the user's units.
        ridge = (self.ridge * self.frame.scale**2)[0]
        return float((1 - self.shrinkage) * ridge)

    @cached_property
    def whitening(self) -> Whitening:
        return whiten(self.moments, self.frame, self.ridge)

    @cached_property
    def likelihood(self) -> LabeledLikelihood:
        labeled = self.labeled
        whitening = self.whitening
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
        """Whitened covariance within the labeled classes.

        With shrinkage, it is divided by 1 - s.
        """
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
        """Contribution (K, 1 + rank) of the labeled rows to every attainable point."""
        likelihood = self.likelihood
        sums = likelihood.counts[:, None] * likelihood.means
        class_sums = np.column_stack([likelihood.counts, sums])
        return np.asarray(class_sums / self.moments.weight)

    def point_of(self, counts: Array, sums: Array) -> Array:
        """Return the attainable point of label sums of the unlabeled rows."""
        class_sums = self.whitening.class_sums(counts, sums)
        return self.labeled_point + class_sums / self.moments.weight

    def rule_of(self, scores: Array, *, is_soft: bool) -> LinearRule:
        """Turn scores (K, 1 + rank) of whitened rows into a rule for the frame."""
        whitening = self.whitening
        # With z = transform (u - mean), scores of z are affine in u.
        coef = whitening.transform.T @ scores[:, 1:].T
        intercept = scores[:, 0] - whitening.mean @ coef
        return LinearRule(coef, intercept, is_soft)

    def scores_of(self, rule: LinearRule) -> Array:
        """Turn a rule for the frame into scores (K, 1 + rank) of whitened rows."""
        whitening = self.whitening
        intercept = rule.intercept + whitening.mean @ rule.coef
        slopes = rule.coef.T @ whitening.inverse
        return np.column_stack([intercept, slopes])

    def precision_weighted_means(self, point: Array) -> PrecisionWeightedMeans:
        return precision_weighted_means(point)

    def is_admissible(self, point: Array) -> bool:
        """Whether class weights are positive and the covariance is above its floor."""
        return is_above_floor(point)

    def posterior_scores(
        self, point: Array, weighted_means: PrecisionWeightedMeans | None = None
    ) -> Array:
        """Return the scores (K, 1 + rank) whose softmax are the posteriors at a point.

        ``weighted_means`` are the precision-weighted means of the point, if they are
        known.
        """
        r = point[:, 0]
        keep = 1 - self.shrinkage
        if weighted_means is None:
            weighted_means = self.precision_weighted_means(point)
        log_priors = np.log(r) if self.log_priors is None else self.log_priors
        # Scores log r_k - mu_k' Sigma^-1 mu_k / 2 + mu_k' Sigma^-1 z, with
        # Sigma = (1 - s) M and mu_k = b_k / r_k.
        scores = np.empty(point.shape)
        scores[:, 0] = log_priors - weighted_means.along / (2 * keep * r)
        np.divide(weighted_means.rows, keep, out=scores[:, 1:])
        return scores

    def model_of(self, point: Array, rule: Rule | None = None) -> Gaussians:
        """Return the model at a point; ``rule`` is the labeling that attains it."""
        r = point[:, 0]
        means = point[:, 1:] / point[:, :1]
        between = (point[:, 1:].T / r) @ point[:, 1:]
        # The covariance of all rows, which is I, less that between the classes.
        unit = np.eye(self.whitening.rank) - between
        is_unsafe = smallest_eigenvalue(point) < _SAFE_DOWNDATE_EIGENVALUE
        if rule is not None and is_unsafe:
            unit = self._summed_unit_covariance(means, rule)
        covariance = (1 - self.shrinkage) * unit
        return gaussians(
            self.frame, self.whitening, r, means, covariance, self.log_priors
        )

    def _summed_unit_covariance(self, means: Array, rule: Rule) -> Array:
        """Sum I - B D^-1 B' from the rows if the difference would lose its digits."""
        whitening = self.whitening
        weight = self.moments.weight
        centers = means @ whitening.inverse.T + whitening.mean
        sums = self.unlabeled.label_sums(rule, self.frame, centers)
        # The labeled rows are known by their scatter about their own means.
        roots = np.sqrt(self.labeled.counts)[:, None]
        shift = (self.labeled.means - centers) * roots
        scatter = self.labeled.within + shift.T @ shift
        assert sums.scatter is not None
        scatter = scatter + sums.scatter
        if self.ridge is not None:
            # The whitening is that of the covariance with its ridge.
            scatter = scatter + weight * np.diag(self.ridge)
        whitened = whitening.transform @ scatter @ whitening.transform.T
        return np.asarray(whitened / weight)


@dataclass(frozen=True)
class SphericalProblem(Problem):
    """A problem whose classes have the covariance sigma^2 I."""

    has_one_variance: ClassVar[bool] = True

    @property
    def is_unbounded(self) -> bool:
        # One variance can be estimated however many features there are.
        return False

    @cached_property
    def whitening(self) -> Whitening:
        """Coordinates about the mean, in units of the mean standard deviation.

        All features are divided by one number in the user's units, so that directions
        keep their lengths relative to each other: nothing becomes uncorrelated.
        """
        return _one_scale(self.moments.mean, self.moments.covariance, self.frame)

    @cached_property
    def labeled_covariance(self) -> Array:
        """Covariance of the labeled rows within classes, in these coordinates."""
        labeled = self.likelihood
        rank = len(labeled.within)
        # The mean over the directions, as all have the same variance.
        variance = float(np.trace(labeled.within)) / (labeled.weight * rank)
        return variance * np.eye(rank)

    def precision_weighted_means(self, point: Array) -> PrecisionWeightedMeans:
        r = point[:, 0]
        b = point[:, 1:]
        variance = self._variance(point)
        along = (b**2).sum(axis=1) / (r * variance)
        rows = b / (r * variance)[:, None]
        log_det = b.shape[1] * float(np.log(variance))
        return PrecisionWeightedMeans(rows, along, log_det)

    def is_admissible(self, point: Array) -> bool:
        return self._variance(point) > FLOOR

    def _variance(self, point: Array) -> float:
        """Return the variance at a point; minus infinity if a class has no weight."""
        r = point[:, 0]
        b = point[:, 1:]
        if not r.min() > 0:
            return -math.inf
        squared_lengths = (b**2).sum(axis=1)
        return 1 - float((squared_lengths / r).sum() / b.shape[1])

    def model_of(self, point: Array, rule: Rule | None = None) -> Gaussians:
        means = point[:, 1:] / point[:, :1]
        return self._model(point[:, 0], means, self._variance(point))

    def match_mean(self, *, variance_anew: bool) -> Gaussians:
        """Shift the labeled means together so that their mean is that of all rows.

        The variance is that of the labeled rows about their own means or,
        ``variance_anew``, about the shifted ones.
        """
        labeled = self.likelihood
        weights = labeled.counts / labeled.weight
        mean = weights @ labeled.means
        variance = self.labeled_covariance[0, 0]
        if not variance > WITHIN_TOLERANCE:
            raise FitError(
                f"The {self.labeled.n_rows} labeled rows do not vary within their "
                "classes, which leaves no variance to estimate: label more rows."
            )
        if variance_anew:
            # Rows average to 0 about their own means. About shifted ones, their mean
            # square is larger by that of the shift.
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
    """Fit priors, means and one variance to the labeled rows."""
    whitening = _one_scale(labeled.moments.mean, labeled.within / labeled.weight, frame)
    weights = labeled.counts / labeled.weight
    means = whitening.points(labeled.means)
    covariance = np.eye(whitening.rank)
    return gaussians(frame, whitening, weights, means, covariance, log_priors)


def _one_scale(mean: Array, covariance: Array, frame: Frame) -> Whitening:
    """Return coordinates in units of the mean standard deviation of the features."""
    spread = np.sqrt(mean_variance_in_frame(covariance, frame))
    if not spread.min(initial=1.0) > 0:
        # No row varies.
        spread = 1 / frame.scale
    log_det = 2 * float(np.log(spread * frame.scale).sum())
    return Whitening(
        mean=mean,
        transform=np.diag(1 / spread),
        inverse=np.diag(spread),
        basis=np.eye(len(spread)),
        log_det=log_det,
    )
