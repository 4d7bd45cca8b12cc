"""Expectation-maximization for linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.rowspace import likelihood_shift
from .._core.solvers.alternate import alternate
from .._core.solvers.supervised import labeled_log_likelihood
from .base import LinearGaussianClassifier, constraints
from .training import FitInputs


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectationMaximizationLDA(LinearGaussianClassifier):
    """Maximize the likelihood of all rows: labeled with their class, unlabeled without.

    Every round gives the unlabeled rows their posterior as soft labels and refits on everything;
    the marginal likelihood never falls. With ``shrinkage`` it is the penalized likelihood that
    never falls. With ``proportions`` the soft labels are those that fill them and are nearest to
    the posteriors, and the likelihood is less their divergence from these.

    Parameters
    ----------
    priors, shrinkage, unlabeled, proportions
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled row relative to a labeled one.
    max_iter : int, default=10000
        Most rounds.
    tol : float, default=1e-10
        Stop when the log likelihood, per unit of weight, is expected to rise by less than this.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and posteriors together.
    means_, covariance_, coef_, intercept_
    n_iter_ : int
        Number of rounds, each a label for every row and a refit.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether the likelihood stood still.
    log_likelihood_path_ : ndarray of shape ``(n_iter_,)``
        Log likelihood after every round: labeled log joint plus unlabeled log marginal, less the
        penalty of ``shrinkage``.
    shrinkage_, rank_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import ExpectationMaximizationLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> ExpectationMaximizationLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _needs_positive_priors = True
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(
        "unlabeled_weight", "max_iter", "tol", "n_jobs", "proportions"
    )

    proportions: Any = None
    unlabeled_weight: float = 1.0
    max_iter: int = 10000
    tol: float = 1e-10
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        found = alternate(problem, is_soft=True, tol=self.tol, max_iter=self.max_iter)
        model = problem.model_of(found.point, found.rule)
        lifted = problem.feature_model(model)
        self.log_likelihood_path_ = np.array(found.path)
        if lifted is not model:
            sizes = problem.moments.weight, problem.shrinkage
            self.log_likelihood_path_ += likelihood_shift(lifted, model, *sizes)
        detail = f"the likelihood still rises after {found.n_iter} rounds"
        self.n_iter_, self.n_passes_ = found.n_iter, found.n_passes
        self.converged_ = self._judge(problem, model, found.outcome, detail)
        return model

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_passes_, self.converged_ = 1, 0, True
        self.log_likelihood_path_ = np.array([labeled_log_likelihood(model, data.labeled)])
