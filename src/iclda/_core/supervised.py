"""Maximum likelihood from labeled rows alone."""

from __future__ import annotations

import numpy as np

from .frame import Frame
from .gaussian import Gaussians, gaussians
from .problem import WITHIN_TOLERANCE, LabeledSummary
from .types import Array
from .whitening import whiten


def within_rank(within: Array) -> int:
    """Rank of a within-class scatter given in coordinates where the total scatter is of order 1."""
    if within.size == 0:
        return 0
    return int(np.sum(np.linalg.eigvalsh(within) > WITHIN_TOLERANCE))


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
    within = labeled.within if shrunk_within is None else shrunk_within
    summary = LabeledSummary(labeled.counts, labeled.means, within)
    whitening = whiten(summary.moments, frame)
    covariance = whitening.transform @ within @ whitening.transform.T / labeled.weight
    means = whitening.points(labeled.means)
    weights = labeled.counts / labeled.weight
    model = gaussians(frame, whitening, weights, means, covariance, log_priors)
    return model, within_rank(covariance)
