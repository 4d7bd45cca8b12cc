"""The average of several models of the same classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .gaussian import Gaussians
from .problem import LabeledSummary
from .rowspace import RowSpace
from .solvers.supervised import fit_labeled
from .types import Array


def average(models: Sequence[Gaussians], log_priors: Array | None) -> Gaussians:
    """The model of equally many rows drawn from each of the models, which share a frame.

    Its class weights, class sums and sums of squares are the means of theirs. Where they place a
    class differently its covariance is wider: it holds the spread of the means about their mean.
    """
    weights = np.array([model.class_weights for model in models])
    means = np.array([model.means for model in models])
    counts = weights.sum(axis=0)
    center = np.einsum("mk,mkd->kd", weights, means) / counts[:, None]
    shifts = (np.sqrt(weights)[:, :, None] * (means - center)).reshape(-1, means.shape[2])
    within = shifts.T @ shifts
    for model in models:
        within += model.full_covariance()
    found, _ = fit_labeled(models[0].frame, LabeledSummary(counts, center, within), log_priors)
    return found


def average_in(space: RowSpace, models: Sequence[Gaussians], log_priors: Array | None) -> Gaussians:
    """Average models of few rows of many features, with the variance of directions left out."""
    averaged = average([space.reduced_model(model) for model in models], log_priors)
    variances = [model.complement.variance for model in models if model.complement]
    return space.model(averaged, float(np.mean(variances)) if variances else None)
