"""Expectation-maximization for linear discriminant analysis.

The rounds themselves, soft labels for all rows and then a refit, are those of
``_core/solvers/alternate.py``, which self-learning shares. This module turns their end
into a ``Fit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._core.problem import Problem
from .._core.rowspace import LogLikelihood
from .._core.solvers import Limits, Outcome
from .._core.solvers.alternate import alternate
from .._core.solvers.supervised import labeled_log_likelihood
from .base import AT_LEAST_ONE, LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs

# Rules for parameters of classifiers that maximize the likelihood of all rows.
EM_CONSTRAINTS: dict[str, Any] = {"max_iter": [*AT_LEAST_ONE, None]}


def maximize_likelihood(problem: Problem, limits: Limits) -> Fit:
    """Fit a problem with unlabeled rows by EM, whatever the form of its covariance."""
    end = alternate(problem, limits, is_soft=True)
    weight = problem.moments.weight
    path = LogLikelihood(np.array(end.path), weight, problem.shrinkage)
    is_unfilled = end.outcome is Outcome.UNFILLED
    return Fit.of_solution(
        problem.model_of(end.point, end.rule),
        end,
        "the fit ended" if is_unfilled else "the likelihood still rises",
        log_likelihood_path_=path,
    )


def with_labeled_likelihood(fit: Fit, problem: Problem) -> Fit:
    """Return a supervised fit with its likelihood in place of a path."""
    labeled = problem.labeled
    path = np.array([labeled_log_likelihood(fit.model, labeled)])
    return fit.having(log_likelihood_path_=LogLikelihood(path, labeled.weight))


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectationMaximizationLDA(LinearGaussianClassifier):
    """Maximize the likelihood of all rows: labeled with their class, unlabeled without.

    Every round gives the unlabeled rows their posterior as soft labels and refits on
    everything; the marginal likelihood never falls. With ``shrinkage`` it is the
    penalized likelihood that never falls. With ``proportions``, the soft labels are the
    nearest ones to the posteriors among those that fill the proportions, and the
    divergence of these labels from the posteriors is subtracted from the likelihood.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto"
        is the geometric mean of those estimated for the labeled rows, about class
        means, and for all rows.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled row relative to a labeled one.
    max_iter : int, default=None
        Largest number of rounds. None: as many as take about ten seconds on two cores,
        from 32 for a million rows of many classes to 10,000.
    tol : float, default=1e-8
        Stop when the log likelihood, per unit of weight, rises by less than this in two
        rounds in a row.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config
        says otherwise, -1 is all cores. The fit does not depend on it.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get, in the order of ``classes_``,
        or class -> share; a pair instead of a share is the least and the largest one.
        "labeled" takes the shares of the labeled rows, "auto" those that ``AverageLDA``
        predicts, and the fit starts there. None and "free" leave them free; with fewer
        labels than features a free fit may give nearly all unlabeled rows to one class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and posteriors together.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    n_iter_ : int
        Number of rounds, each a label for every row and a refit.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether the likelihood stopped rising, up to ``tol``.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in
        ``NotConvergedWarning``.
    log_likelihood_path_ : ndarray of shape ``(n_iter_,)``
        Log likelihood after every round: labeled log joint plus unlabeled log marginal,
        less the penalty of ``shrinkage``.
    shrinkage_ : float
        Shrinkage used.
    rank_ : int
        Rank of the covariance of all rows.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import ExpectationMaximizationLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> ExpectationMaximizationLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _needs = Needs(positive_priors=True)
    _own_constraints: ClassVar[dict[str, Any]] = EM_CONSTRAINTS

    unlabeled_weight: float = 1.0
    max_iter: int | None = None
    tol: float = 1e-8
    n_jobs: int | None = None
    proportions: Any = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return with_labeled_likelihood(supervised_fit(problem), problem)
        return maximize_likelihood(problem, self._limits_of(problem))
