"""Maximum likelihood from labeled rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .frame import Frame
from .gaussian import Gaussians, gaussians
from .problem import WITHIN_TOLERANCE, LabeledSummary, within_rank
from .types import Array
from .whitening import whiten

_LOG_2PI = float(np.log(2 * np.pi))


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
    whitening = whiten(labeled.moments, frame)
    covariance = whitening.transform @ labeled.within @ whitening.transform.T / labeled.weight
    means = whitening.points(labeled.means)
    weights = labeled.counts / labeled.weight
    model = gaussians(
        frame, whitening, weights, means, covariance, log_priors, floor=WITHIN_TOLERANCE
    )
    return model, within_rank(covariance) if model.is_floored else model.rank


def labeled_log_likelihood(model: Gaussians, labeled: LabeledSummary) -> float:
    """Sum over the labeled rows of log prior times density of their own class."""
    shift = (labeled.means - model.center) @ model.projection.T - model.class_points
    spread = np.trace(model.projection @ labeled.within @ model.projection.T)
    spread += labeled.counts @ (shift**2).sum(axis=1)
    constant = labeled.weight * (model.rank * _LOG_2PI + model.log_det)
    return float(labeled.counts @ model.log_priors - (spread + constant) / 2)
