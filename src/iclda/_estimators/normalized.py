"""Normalized linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.solvers.moment_match import normalize
from .base import LinearGaussianClassifier, constraints
from .training import FitInputs


@dataclass(kw_only=True, eq=False, repr=False)
class NormalizedLDA(LinearGaussianClassifier):
    """Class means of the labeled rows, and the covariance of all rows in place of that within.

    Directions are those that minimize the spread of the labeled rows within classes relative to the
    spread of all rows (Fan, Lei and Li, 2008). If all rows are labeled these are the directions of
    LDA; here that case is the fit of ``SupervisedLDA``. Needs no more labels than one per class.

    Parameters
    ----------
    priors, shrinkage, unlabeled, n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of all rows about their mean.
    coef_, intercept_, shrinkage_
    n_passes_ : int
        Number of times all unlabeled rows were read.
    rank_, n_features_in_, feature_names_in_

    References
    ----------
    B. Fan, Z. Lei and S. Z. Li, "Normalized LDA for semi-supervised learning", IEEE International
    Conference on Automatic Face and Gesture Recognition, 2008.

    Examples
    --------
    >>> from iclda import NormalizedLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = NormalizedLDA().fit(X, y)
    >>> clf.means_.ravel(), clf.covariance_.ravel()
    (array([0.5, 5.5]), array([9.625]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = constraints("n_jobs")

    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        self.n_passes_ = 1
        return normalize(problem)

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_passes_ = 0
