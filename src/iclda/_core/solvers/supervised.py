"""Maximum likelihood from labeled rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..frame import Frame
from ..gaussian import Gaussians, gaussians
from ..problem import WITHIN_TOLERANCE, LabeledSummary, within_rank
from ..types import Array
from ..whitening import safe_whitening, whiten

_LOG_2PI = float(np.log(2 * np.pi))
_SMALL_BETWEEN = 1e3  # between over within classes, of every feature: far from any floor


def fit_labeled(
    frame: Frame,
    labeled: LabeledSummary,
    log_priors: Array | None = None,
    shrunk_within: Array | None = None,
) -> tuple[Gaussians, int]:
    """Model of the labeled rows, and the rank of their scatter within classes.

    The scatter within classes is used directly, never as total minus between. ``shrunk_within``
    (frame coordinates) replaces it when the covariance is shrunk. Directions in which no class
    varies get the floor of the covariance.
    """
    if shrunk_within is not None:
        labeled = replace(labeled, within=shrunk_within)
    model = _fit_directly(frame, labeled, log_priors)
    if model is not None:
        return model, model.rank
    whitening = whiten(labeled.moments, frame)
    covariance = whitening.transform @ labeled.within @ whitening.transform.T / labeled.weight
    means = whitening.points(labeled.means)
    weights = labeled.counts / labeled.weight
    model = gaussians(
        frame, whitening, weights, means, covariance, log_priors, floor=WITHIN_TOLERANCE
    )
    return model, within_rank(covariance) if model.is_floored else model.rank


def _fit_directly(
    frame: Frame, labeled: LabeledSummary, log_priors: Array | None
) -> Gaussians | None:
    """The model by a factor of the scatter within classes, where it is far from any floor."""
    weights = labeled.counts / labeled.weight
    mean = weights @ labeled.means
    covariance = (labeled.within + labeled.within.T) / (2 * labeled.weight)
    between = weights @ (labeled.means - mean) ** 2
    if not (between < _SMALL_BETWEEN * covariance.diagonal()).all():
        return None
    whitening = safe_whitening(mean, covariance, frame)
    if whitening is None:
        return None
    return Gaussians(
        frame=frame,
        center=mean,
        class_weights=weights,
        log_priors=np.log(weights) if log_priors is None else log_priors,
        means=labeled.means,
        covariance=covariance,
        projection=whitening.transform,
        class_points=whitening.points(labeled.means),
        log_det=whitening.log_det,
        is_floored=False,
    )


def labeled_log_likelihood(model: Gaussians, labeled: LabeledSummary) -> float:
    """Sum over the labeled rows of log prior times density of their own class."""
    shift = (labeled.means - model.center) @ model.projection.T - model.class_points
    spread = np.trace(model.projection @ labeled.within @ model.projection.T)
    spread += labeled.counts @ (shift**2).sum(axis=1)
    constant = labeled.weight * (model.rank * _LOG_2PI + model.log_det)
    return float(labeled.counts @ model.log_priors - (spread + constant) / 2)
