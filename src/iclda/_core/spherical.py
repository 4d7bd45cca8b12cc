"""Classes that share one variance in all directions of the user's units: nearest mean.

Coordinates z = (x - m) / sqrt(nu) have the mean variance 1, with nu the mean variance of all rows.
The fit of any labeling is still a point (r, B), with Sigma = sigma^2 I in place of I - B D^-1 B':

    sigma^2 = 1 - sum_k |b_k|^2 / (r_k d)

Formulas for the precise means and the marginal likelihood hold with this covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .frame import Frame, mean_variance_in_frame
from .gaussian import Gaussians, gaussians
from .labelsums import Rule
from .likelihood import PreciseMeans
from .problem import WITHIN_TOLERANCE, LabeledSummary, Problem
from .types import Array
from .whitening import Whitening


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
        variance = float(np.trace(labeled.within)) / (labeled.weight * len(labeled.within))
        return variance * np.eye(len(labeled.within))

    def precise_means(self, point: Array) -> PreciseMeans:
        r, b, variance = point[:, 0], point[:, 1:], float(self.smallest_variance(point))
        along = (b**2).sum(axis=1) / (r * variance)
        rows = b / (r * variance)[:, None]
        return PreciseMeans(rows, along, b.shape[1] * float(np.log(variance)))

    def smallest_variance(self, point: Array) -> float:
        r, b = point[:, 0], point[:, 1:]
        if not r.min() > 0:
            return -math.inf
        return 1 - float(((b**2).sum(axis=1) / r).sum() / b.shape[1])

    def model_of(self, point: Array, rule: Rule | None = None) -> Gaussians:
        means = point[:, 1:] / point[:, :1]
        return self._model(point[:, 0], means, self.smallest_variance(point))

    def match_mean(self, *, variance_anew: bool) -> Gaussians:
        """Labeled means shifted together so that their mean is that of all rows.

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
        return gaussians(self.frame, self.whitening, weights, means, covariance, self.log_priors)


def fit_nearest_mean(
    frame: Frame, labeled: LabeledSummary, log_priors: Array | None = None
) -> Gaussians:
    """Priors, means and one variance of the labeled rows."""
    moments = labeled.moments
    whitening = _one_scale(moments.mean, labeled.within / labeled.weight, frame)
    weights, means = labeled.counts / labeled.weight, whitening.points(labeled.means)
    return gaussians(frame, whitening, weights, means, np.eye(whitening.rank), log_priors)


def _one_scale(mean: Array, covariance: Array, frame: Frame) -> Whitening:
    """Coordinates in units of the mean standard deviation, in the user's units."""
    spread = np.sqrt(mean_variance_in_frame(covariance, frame))
    if not spread.min(initial=1.0) > 0:  # rows that do not vary
        spread = 1 / frame.scale
    log_det = 2 * float(np.log(spread * frame.scale).sum())
    return Whitening(mean, np.diag(1 / spread), np.diag(spread), np.eye(len(spread)), log_det)
