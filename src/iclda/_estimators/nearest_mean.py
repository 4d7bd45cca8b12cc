"""Nearest mean classification: Gaussian classes that share one variance in all directions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .._core.gaussian import Gaussians
from .._core.problem import Problem
from .._core.solvers import Outcome
from .._core.solvers.alternate import alternate
from .._core.solvers.supervised import labeled_log_likelihood
from .._core.spherical import SphericalProblem, fit_nearest_mean
from .._core.types import Array
from .base import LinearGaussianClassifier, constraints, warn_of_no_unlabeled
from .diagnosis import warn, warn_of_single_labels
from .training import FitInputs, check_shares, check_spread, check_units


def _constraints(*names: str, **own: Any) -> dict[str, Any]:
    found = constraints(*names, **own)
    del found["shrinkage"]
    return found


@dataclass(kw_only=True, eq=False, repr=False)
class NearestMean(LinearGaussianClassifier):
    """Gaussian classes with the covariance sigma^2 I, by maximum likelihood from labeled rows.

    With equal priors a row goes to the class whose mean is nearest, in the units of the features:
    scale them first if their units differ. sigma^2 is the mean over features of the variance
    within classes. Unlabeled rows are ignored.

    Parameters
    ----------
    priors, unlabeled

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_, covariance_, coef_, intercept_
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import NearestMean
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 4.0], [5.0, 4.0], [4.0, 6.0]]
    >>> NearestMean().fit(X, ["a", "a", "a", "b", "b", "b"]).predict([[0, 0], [5, 5]])
    array(['a', 'b'], dtype='<U1')
    """

    _uses_unlabeled_rows = False
    _can_narrow = False
    _parameter_constraints: ClassVar[dict[str, Any]] = _constraints()

    shrinkage: None = field(init=False, default=None)

    def _estimate(self, problem: Problem) -> Gaussians:
        return fit_nearest_mean(problem.frame, problem.labeled, problem.log_priors)

    def _problem(self, data: FitInputs) -> Problem:
        return data.problem(None).recast(SphericalProblem)

    def _check_columns(
        self, data: FitInputs, variances: Array, weight: float, is_shrunk: bool
    ) -> None:
        reason = f"{type(self).__name__} has one variance for both"
        check_units(data, variances, weight, reason)
        self._diagnosis.warn_of_constants(variances)

    def _fit_labeled_rows(self, data: FitInputs) -> Gaussians:
        name, labeled = type(self).__name__, data.labeled
        if self._uses_unlabeled_rows:
            warn_of_no_unlabeled(name, self.unlabeled, NearestMean.__name__)
        variances = np.diag(labeled.moments.covariance)
        check_spread(data, variances)
        check_shares(data, labeled.counts / labeled.weight)
        self._check_columns(data, variances, labeled.weight, is_shrunk=False)
        if not labeled.has_spread:
            n_rows = int(data.labels.is_labeled.sum())
            raise ValueError(
                f"The {n_rows} labeled rows do not vary within their classes, which leaves {name} "
                "no variance to estimate: label more rows."
            )
        self.shrinkage_, self.rank_ = 0.0, len(data.frame.scale)
        model = fit_nearest_mean(data.frame, labeled, data.log_priors)
        warn_of_single_labels(data.labels, is_supervised=True)
        self._note_supervised(model, data)
        return model

    def _judge(self, problem: Problem, model: Gaussians, outcome: Outcome, detail: str) -> bool:
        if model.is_floored or outcome is Outcome.UNBOUNDED:
            warn(
                f"{type(self).__name__}: all rows (nearly) coincide with the means of their "
                "classes, so the likelihood has no maximum and the variance was held at its "
                "floor. Probabilities will be 0 or 1: use more rows.",
                category=ConvergenceWarning,
            )
            return False
        return super()._judge(problem, model, outcome, detail)


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectationMaximizationNearestMean(NearestMean):
    """Nearest means that maximize the likelihood of all rows, unlabeled ones without their class.

    Like ``ExpectationMaximizationLDA``, with the covariance sigma^2 I in the units of the features.

    Parameters
    ----------
    priors, unlabeled
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
        Log likelihood after every round: labeled log joint plus unlabeled log marginal.
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from iclda import ExpectationMaximizationNearestMean
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> ExpectationMaximizationNearestMean().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _uses_unlabeled_rows = True
    _needs_positive_priors = True
    _parameter_constraints: ClassVar[dict[str, Any]] = _constraints(
        "unlabeled_weight", "max_iter", "tol", "n_jobs"
    )

    unlabeled_weight: float = 1.0
    max_iter: int = 10000
    tol: float = 1e-10
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        problem = problem.recast(SphericalProblem)
        found = alternate(problem, is_soft=True, tol=self.tol, max_iter=self.max_iter)
        model = problem.model_of(found.point)
        self.log_likelihood_path_ = np.array(found.path)
        detail = f"the likelihood still rises after {found.n_iter} rounds"
        self.n_iter_, self.n_passes_ = found.n_iter, found.n_passes
        self.converged_ = self._judge(problem, model, found.outcome, detail)
        return model

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_iter_, self.n_passes_, self.converged_ = 1, 0, True
        self.log_likelihood_path_ = np.array([labeled_log_likelihood(model, data.labeled)])


@dataclass(kw_only=True, eq=False, repr=False)
class MomentConstrainedNearestMean(NearestMean):
    """Nearest means of the labeled rows, shifted together so that their mean is that of all rows.

    That maximizes the likelihood of the labeled rows over all means whose average, weighted by the
    priors, is the mean of all rows (Loog and Jensen, 2015).

    Parameters
    ----------
    priors, unlabeled
    variant : {"variance-kept", "variance-anew"}, default="variance-anew"
        The variance: of the labeled rows about their own class means, or about the shifted ones,
        which maximizes the likelihood.
    n_jobs

    Attributes
    ----------
    classes_, priors_
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_, covariance_, coef_, intercept_
    n_passes_ : int
        Number of times all unlabeled rows were read.
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    n_features_in_, feature_names_in_

    References
    ----------
    M. Loog and A. C. Jensen, "Semi-supervised nearest mean classification through a constrained
    log-likelihood", IEEE Transactions on Neural Networks and Learning Systems 26 (5), 2015.

    Examples
    --------
    >>> from iclda import MomentConstrainedNearestMean
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> MomentConstrainedNearestMean().fit(X, y).means_.ravel()
    array([1., 6.])
    """

    _uses_unlabeled_rows = True
    _parameter_constraints: ClassVar[dict[str, Any]] = _constraints(
        "n_jobs", variant=[StrOptions({"variance-kept", "variance-anew"})]
    )

    variant: str = "variance-anew"
    n_jobs: int | None = None

    def _estimate(self, problem: Problem) -> Gaussians:
        self.n_passes_ = 1
        found = problem.recast(SphericalProblem)
        return found.match_mean(variance_anew=self.variant == "variance-anew")

    def _note_supervised(self, model: Gaussians, data: FitInputs) -> None:
        self.n_passes_ = 0
