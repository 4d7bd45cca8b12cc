"""Self-learning linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.solvers.alternate import alternate
from .base import LinearGaussianClassifier, constraints
from .training import FitInputs


@dataclass(kw_only=True, eq=False, repr=False)
class SelfLearningLDA(LinearGaussianClassifier):
    """Label all unlabeled rows by the current fit, refit on everything, repeat.

    It stops when no label changes. Labels may change back: none is frozen.

    Parameters
    ----------
    priors, shrinkage, unlabeled
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled row relative to a labeled one.
    max_iter : int, default=1000
        Most rounds: times that the rows are labeled by a fit to all rows.
    tol : float, default=0.0
        Largest change of class shares and class sums (in standard deviations) that counts as
        standing still. 0: no label changes any more.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and self-given labels together.
    means_, covariance_, coef_, intercept_
    n_iter_ : int
        Number of rounds; before the first one the supervised fit labels the rows.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether the labels stood still.
    shrinkage_, rank_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import SelfLearningLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfLearningLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(
        "unlabeled_weight", "max_iter", "tol", "n_jobs"
    )

    unlabeled_weight: float = 1.0
    max_iter: int = 1000
    tol: float = 0.0
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        found = alternate(problem, is_soft=False, tol=self.tol, max_iter=self.max_iter)
        model = problem.model_of(found.point, found.rule)
        detail = f"labels still change after {found.n_iter} rounds"
        self.n_iter_, self.n_passes_ = found.n_iter, found.n_passes
        self.converged_ = self._judge(problem, model, found.outcome, detail)
        return model

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_passes_, self.converged_ = 1, 0, True
