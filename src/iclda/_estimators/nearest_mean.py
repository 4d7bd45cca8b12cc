"""Nearest mean classification: Gaussian classes with one variance everywhere.

These classes have a problem of their own, ``SphericalProblem``. The map to its
coordinates is called ``whitening`` as in any problem, but does not whiten: it shifts
the rows to their mean and divides all features, in the user's units, by one number.
The ratios of the variances of features, and their correlations, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from .._core.problem import Problem, SphericalProblem, fit_nearest_mean
from .._messages import FitError
from .base import LinearGaussianClassifier
from .expectation_maximization import (
    EM_CONSTRAINTS,
    maximize_likelihood,
    with_labeled_likelihood,
)
from .fit import Fit
from .fit_inputs import Needs


def supervised_nearest_mean(problem: Problem) -> Fit:
    """Return the nearest means of the labeled rows of a problem."""
    labeled = problem.labeled
    if not labeled.has_spread:
        raise FitError(
            f"The {labeled.n_rows} labeled rows do not vary within their classes, "
            "which leaves no variance to estimate: label more rows."
        )
    model = fit_nearest_mean(problem.frame, labeled, problem.log_priors)
    attributes = {"shrinkage_": 0.0, "rank_": len(labeled.within)}
    return Fit(model, attributes, rule=model.score_rule())


@dataclass(kw_only=True, eq=False, repr=False)
class NearestMean(LinearGaussianClassifier):
    """Gaussian classes with the covariance sigma^2 I, fitted to the labeled rows.

    With equal priors a row goes to the class whose mean is nearest, in the units of the
    features: scale them first if their units differ. sigma^2 is the mean over features
    of the variance within classes. Unlabeled rows are ignored.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import NearestMean
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 4.0], [5.0, 4.0], [4.0, 6.0]]
    >>> NearestMean().fit(X, ["a", "a", "a", "b", "b", "b"]).predict([[0, 0], [5, 5]])
    array(['a', 'b'], dtype='<U1')
    """

    _needs = Needs(
        SphericalProblem,
        unlabeled_rows=False,
        all_features=True,
        supervised="NearestMean",
    )

    shrinkage: None = field(init=False, default=None)

    def _solve(self, problem: Problem) -> Fit:
        return supervised_nearest_mean(problem)


@dataclass(kw_only=True, eq=False, repr=False)
class ExpectationMaximizationNearestMean(LinearGaussianClassifier):
    """Nearest means that maximize the likelihood of all rows, labeled or not.

    Like ``ExpectationMaximizationLDA``, with the covariance sigma^2 I in the units of
    the features.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
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
        Log likelihood after every round: labeled log joint plus unlabeled log marginal.
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import ExpectationMaximizationNearestMean
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> ExpectationMaximizationNearestMean().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _needs = Needs(
        SphericalProblem,
        all_features=True,
        positive_priors=True,
        supervised="NearestMean",
    )
    _own_constraints: ClassVar[dict[str, Any]] = EM_CONSTRAINTS

    shrinkage: None = field(init=False, default=None)
    unlabeled_weight: float = 1.0
    max_iter: int | None = None
    tol: float = 1e-8
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return with_labeled_likelihood(supervised_nearest_mean(problem), problem)
        return maximize_likelihood(problem, self._limits_of(problem))


@dataclass(kw_only=True, eq=False, repr=False)
class MomentConstrainedNearestMean(LinearGaussianClassifier):
    """Nearest means of the labeled rows, shifted together to the mean of all rows.

    That maximizes the likelihood of the labeled rows over all means whose average,
    weighted by the priors, is the mean of all rows (Loog and Jensen, 2015).

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    variant : {"variance-kept", "variance-anew"}, default="variance-anew"
        The variance: of the labeled rows about their own class means, or about the
        shifted ones, which maximizes the likelihood.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config
        says otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    priors_ : ndarray of shape (n_classes,)
        Class priors used to predict.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the labeled weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    shrinkage_ : float
        0: there is nothing to shrink.
    rank_ : int
        Number of features.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    References
    ----------
    M. Loog and A. C. Jensen, "Semi-supervised nearest mean classification through a
    constrained log-likelihood", IEEE Transactions on Neural Networks and Learning
    Systems 26 (5), 2015.

    Examples
    --------
    >>> from iclda import MomentConstrainedNearestMean
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> MomentConstrainedNearestMean().fit(X, y).means_.ravel()
    array([1., 6.])
    """

    _needs = Needs(SphericalProblem, all_features=True, supervised="NearestMean")
    _own_constraints: ClassVar[dict[str, Any]] = {
        "variant": [StrOptions({"variance-kept", "variance-anew"})]
    }

    shrinkage: None = field(init=False, default=None)
    variant: str = "variance-anew"
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_nearest_mean(problem)
        assert isinstance(problem, SphericalProblem)
        model = problem.match_mean(variance_anew=self.variant == "variance-anew")
        return Fit(model, {"n_passes_": 1})
