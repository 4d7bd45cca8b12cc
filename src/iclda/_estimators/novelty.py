"""How little a row resembles any known class: for rows of none of the classes.

Classes overlap, so that a row of an unknown class may have a high probability, and a
row in a corner of its own class a low density. What tells them apart is the ratio of
two densities: that of the row among rows in general, and that in the nearest class. In
squared distances this is the relative Mahalanobis distance

    min_k (x - mu_k)' S^-1 (x - mu_k)  -  (x - m)' T^-1 (x - m)

with the class means mu_k and the covariance S of the labeled rows alone, since rows of
unknown classes are among the unlabeled ones, and the mean m and covariance T of all
rows.

Where a few classes have most of the rows, T describes these classes, and their rows
look new. The share w of T is therefore replaced by S + B, with B the covariance of the
class means, and rare classes lose ``_SHARE_POWER`` w log share: w is 0 for classes of
equal size, and 1 where their shares have the entropy of 2 K / 3 equal ones or less.

Labeled rows that are held out have scores like those of new rows of known classes. The
share of them with a lower score, corrected as in a rank test, is the novelty; one minus
it is a p-value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .._core import AnyArray, Array
from .._core.frame import Frame, mean_variance_in_frame
from .._core.gaussian import LOG_2PI, Gaussians
from .._core.moments import Moments
from .._core.problem import LabeledSummary, Problem
from .._core.rowspace import FeatureSpace
from .._core.solvers.supervised import fit_labeled
from .._held_out import merge_copies
from .._messages import plural, warn
from .._rows.places import to_host
from .._rows.views import View, placed_like
from . import predictions
from .fit_inputs import FitInputs
from .predictions import RowFunction

# Shrinkages of S, of T, and of B.
_WITHIN_SHRINKAGE = 0.5
_ALL_SHRINKAGE = 0.1
_BETWEEN_SHRINKAGE = 0.3
# Classes whose shares have the entropy of this share of K equal ones, or less, are
# uneven: w is 1.
_LEAST_EVENNESS = 2 / 3
_SHARE_POWER = 8.0
# A smaller share of a class counts as this one.
_MIN_SHARE = 1e-4
# Stands in for zero in a variance.
_TINY = 1e-100
# At most this many labeled rows are held out.
_MAX_HELD_ROWS = 4_096
# A row is alone in its class if others have less than this share of its weight.
_MIN_OTHERS = 1e-6
# Least share of a variance that is left without a row.
_MIN_LEFT = 1e-6
# With fewer held-out rows a novelty above 0.95 is a guess.
MIN_CALIBRATION_ROWS = 19


@dataclass(frozen=True, eq=False)
class KnownRows:
    """What a fit keeps to tell known classes from others.

    Attributes
    ----------
    labeled : LabeledSummary
        Sums of the labeled rows, in frame coordinates.
    moments : Moments
        Those of all rows.
    shares : ndarray of shape (n_classes,)
        Shares of the classes in all rows, by the fit.
    rows : ndarray of shape (n_held, d)
        A sample of the labeled rows, or all, in frame coordinates.
    codes, weights : ndarray of shape (n_held,)
        Codes of their classes, and weights.
    """

    frame: Frame
    space: FeatureSpace
    labeled: LabeledSummary
    moments: Moments
    shares: Array
    rows: Array
    codes: AnyArray
    weights: Array

    @classmethod
    def of_fit(cls, problem: Problem, inputs: FitInputs, shares: Array) -> KnownRows:
        """Keep the sums of a fit, and a sample of its labeled rows."""
        labeled = np.flatnonzero(inputs.codes >= 0)
        if len(labeled) > _MAX_HELD_ROWS:
            rng = np.random.default_rng(0)
            labeled = rng.choice(labeled, _MAX_HELD_ROWS, replace=False)
        is_held = np.zeros(len(inputs.codes), dtype=bool)
        is_held[labeled] = True
        held = inputs.labeled_source.held(is_held)
        weights = np.ones(len(held.X)) if held.weights is None else held.weights
        shares = np.maximum(shares, _MIN_SHARE)
        return cls(
            frame=problem.frame,
            space=inputs.space,
            labeled=problem.labeled,
            moments=problem.moments,
            shares=shares / shares.sum(),
            rows=problem.frame.apply(held.X),
            codes=inputs.codes[is_held],
            weights=weights,
        )

    def novelty_model(self) -> NoveltyModel:
        """Compare the classes with all rows, and score the labeled rows held out."""
        known, others = self._gaussians(self.labeled.weight - self.n_classes)
        return NoveltyModel(
            # Directions in which no row varied say nothing of new rows.
            known=_of_distances(self.space.model(known, None)),
            others=_of_distances(self.space.model(others, None)),
            held_out=self._held_out(),
        )

    @property
    def n_classes(self) -> int:
        return len(self.shares)

    @cached_property
    def _unevenness(self) -> float:
        """How uneven the shares of the classes are, from 0 to 1."""
        evenness = np.exp(-self.shares @ np.log(self.shares)) / self.n_classes
        return min(1.0, float(1 - evenness) / (1 - _LEAST_EVENNESS))

    def _held_out(self) -> HeldOutScores:
        """Return scores of labeled rows by models without them.

        A row x of weight w and its class of weight n and mean mu add
        q r r' to the scatter within classes, with r = x - mu and q = n w / (n - w).
        Without them the inverse of S follows from its own by the formula of Sherman
        and Morrison, and so does that of T.
        """
        # A row must not be tested by a model of its copy.
        distinct = merge_copies(
            np.ascontiguousarray(self.rows), self.codes, self.weights
        )
        n_free = self.labeled.weight - self.n_classes - distinct.weights.mean()
        counts = self.labeled.counts[distinct.codes]
        # A row that is alone in its class cannot be held out.
        is_tested = counts - distinct.weights > _MIN_OTHERS * counts
        if n_free <= 0 or not is_tested.any():
            reach = 2.0 * len(self.frame.scale)
            return HeldOutScores(np.empty(0), np.empty(0), reach)
        known, others = self._gaussians(n_free)
        rows = distinct.rows[is_tested]
        codes = distinct.codes[is_tested]
        weights = distinct.weights[is_tested]
        counts = counts[is_tested]

        # 1. Squared distances from the classes, in coordinates in which S is I.
        points = known.class_points
        z = (rows - known.center) @ known.projection.T
        r = z - points[codes]
        squares_of_r = (r**2).sum(axis=1)
        added = counts * weights / (counts - weights) / n_free
        added *= 1 - _WITHIN_SHRINKAGE
        left = np.maximum(1 - added * squares_of_r, _MIN_LEFT)
        products = (z * r).sum(axis=1)[:, None] - r @ points.T
        distances = _squared_distances(z, points)
        distances += (added / left)[:, None] * products**2
        # The mean of its own class moves away from the row: |r|^2 grows by the square
        # of n / (n - w). The mean of all n is closer to new rows: 1 - (w / n)^2.
        own = squares_of_r * (counts + weights) / (counts - weights) / left
        distances[np.arange(len(rows)), codes] = own
        nearest = (distances - 2 * known.log_priors).min(axis=1)
        reach = float(nearest.max())

        # 2. That from the mean of all rows, in coordinates in which T is I. A part of T
        # is S, which holds r as well.
        z = (rows - others.center) @ others.projection.T
        r = (rows - self.labeled.means[codes]) @ others.projection.T
        share = (1 - self._unevenness) * weights / self.moments.weight
        left = np.maximum(
            1 - (1 - _ALL_SHRINKAGE) * share * (z**2).sum(axis=1), _MIN_LEFT
        )
        squares = (z**2).sum(axis=1) / left
        product = (z * r).sum(axis=1)
        squares_of_r = (r**2).sum(axis=1)
        squares_of_r += (1 - _ALL_SHRINKAGE) * share * product**2 / left
        added *= self._unevenness
        left_of_r = np.maximum(1 - added * squares_of_r, _MIN_LEFT)
        squares += added * (product / left) ** 2 / left_of_r
        scores = (nearest - squares * (1 + share) ** 2) / 2
        # Labels may be drawn class by class: classes count by their shares in all rows.
        row_weights = weights / counts * self.shares[codes]
        order = np.argsort(scores)
        return HeldOutScores(scores[order], row_weights[order], reach)

    def _gaussians(self, n_free: float) -> tuple[Gaussians, Gaussians]:
        """Return the known classes, and one class of rows in general.

        The scatter within classes has ``n_free`` degrees of freedom.
        """
        labeled = self.labeled
        moments = self.moments
        unevenness = self._unevenness
        within = moments.covariance
        if labeled.has_spread and n_free > 0:
            within = labeled.within / n_free
        within = self._shrunk(within, _WITHIN_SHRINKAGE)
        center = labeled.means.mean(axis=0)
        deviations = labeled.means - center
        between = deviations.T @ deviations / len(deviations)
        alike = within + self._shrunk(between, _BETWEEN_SHRINKAGE)
        covariance = self._shrunk(moments.covariance, _ALL_SHRINKAGE)
        covariance = (1 - unevenness) * covariance + unevenness * alike
        mean = (1 - unevenness) * moments.mean + unevenness * center

        known = replace(labeled, within=within * labeled.weight)
        others = LabeledSummary(np.ones(1), mean[None], covariance)
        log_shares = _SHARE_POWER * unevenness * np.log(self.shares)
        model_of_known, _ = fit_labeled(self.frame, known, log_shares)
        model_of_others, _ = fit_labeled(self.frame, others)
        return model_of_known, model_of_others

    def _shrunk(self, covariance: Array, shrinkage: float) -> Array:
        """Shrink a covariance toward its mean variance in the user's units."""
        target = np.maximum(mean_variance_in_frame(covariance, self.frame), _TINY)
        return (1 - shrinkage) * covariance + np.diag(shrinkage * target)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """What labeled rows are like for models that were made without them.

    Attributes
    ----------
    scores : ndarray of shape (n_held_out,)
        Their scores, sorted.
    weights : ndarray of shape (n_held_out,)
        How much they count.
    reach : float
        Their largest squared distance from the nearest class.
    """

    scores: Array
    weights: Array
    reach: float

    @cached_property
    def n_rows(self) -> float:
        """The number of rows of equal weight that are as good as these."""
        squares = float((self.weights**2).sum())
        return float(self.weights.sum() ** 2) / squares if squares else 0.0

    def novelty(self, scores: Array, distances: Array) -> Array:
        """Return the shares of held-out rows with lower scores.

        Beyond the highest score of N held-out rows the p-value falls from 1 / (N + 1)
        with the inverse of the distance: so few rows do not show how fast it falls. So
        it does for rows more than twice as far from every class, by ``distances``, as
        any row held out: a ratio of two small densities means little there.
        """
        known = self.scores if self.n_rows else np.zeros(1)
        weights = self.weights if self.n_rows else np.ones(1)
        n_rows = max(self.n_rows, 1.0)
        ranks = np.cumsum(weights) / weights.sum() * n_rows / (n_rows + 1)
        # Without a spread: log densities of d features vary by about the root of d.
        spread = float(known[-1] - np.median(known)) or float(np.sqrt(self.reach))
        excess = np.maximum(scores - known[-1], 0) / spread
        p_values = (1 - np.interp(scores, known, ranks)) / (1 + excess)
        times_as_far = distances / (2 * self.reach)
        p_if_far = 1 / np.maximum(times_as_far, 1) / (n_rows + 1)
        is_far = times_as_far > 1
        return np.where(is_far, 1 - np.minimum(p_values, p_if_far), 1 - p_values)


@dataclass(frozen=True, eq=False)
class NoveltyModel:
    """Known classes, rows in general, and the scores of labeled rows held out.

    Attributes
    ----------
    known, others : Gaussians
        The classes, and one class of rows in general.
    held_out : HeldOutScores
        Scores of labeled rows by models without them.
    """

    known: Gaussians
    others: Gaussians
    held_out: HeldOutScores

    def moved(self, offset: Array | None) -> NoveltyModel:
        """Return the model for rows with an offset, in frame coordinates."""
        if offset is None:
            return self
        known = self.known.moved(offset)
        return replace(self, known=known, others=self.others.moved(offset))

    def function(self, view: View | None) -> RowFunction:
        """Return the novelty of every row, (n,)."""
        of_known = predictions.log_joint(self.known)
        of_others = predictions.log_joint(self.others)

        def of_block(rows: Any) -> Any:
            """Return twice the log densities in the nearest class and in others."""
            known = of_known.of_block(rows)
            xp = array_namespace(known)
            nearest = xp.max(known, axis=1, keepdims=True)
            return 2 * xp.concat([nearest, of_others.of_block(rows)], axis=1)

        def novelties(numbers: Any) -> Any:
            nearest, others = np.asarray(to_host(numbers), dtype=np.float64).T
            # Squares of huge distances are infinite, and so is their difference.
            with np.errstate(invalid="ignore"):
                scores = np.nan_to_num((others - nearest) / 2)
            # Determinants were left out, and this constant is left.
            distances = -nearest - self.known.rank * LOG_2PI
            novelty = self.held_out.novelty(scores, distances)
            return placed_like(numbers, novelty)

        function = RowFunction(of_block, of_known.uses_all_features, novelties)
        return function.of_viewed(view)

    def warn_unless_calibrated(self) -> None:
        """Warn that too few labels were held out to know the p-value of 5 %."""
        n_rows = int(self.held_out.n_rows)
        if n_rows < MIN_CALIBRATION_ROWS:
            warn(
                f"{plural(n_rows, 'label')} could be held out, and novelty is a "
                f"p-value from {MIN_CALIBRATION_ROWS} on: now it only orders rows, and "
                "novelty > 0.95 may flag more or less than 5 % of the rows of known "
                "classes. Label more rows, at least two of a class."
            )


def _of_distances(model: Gaussians) -> Gaussians:
    """Return a model for distances alone, without what these do not need."""
    return replace(model, covariance=None, half=None, log_det=0.0)


def _squared_distances(rows: Array, points: Array) -> Array:
    """Return the squared distances (n, K) of rows from points."""
    lengths = (rows**2).sum(axis=1)[:, None] + (points**2).sum(axis=1)
    return np.asarray(lengths - 2 * rows @ points.T)
