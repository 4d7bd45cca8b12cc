"""Self-learning for linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass

from .._core.problem import Problem
from .._core.solvers.alternate import alternate
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit


@dataclass(kw_only=True, eq=False, repr=False)
class SelfLearningLDA(LinearGaussianClassifier):
    """Label all unlabeled rows by the current fit, refit on everything, repeat.

    It stops when no label changes. Labels may change back: none is frozen.

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
    max_iter : int, default=1000
        Largest number of rounds, each a label for every row and a refit.
    tol : float, default=0.0
        Largest change of class shares and class sums (in standard deviations) that
        counts as standing still. 0: no label changes any more.
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
        Share of the weight in every class, labels and self-given labels together.
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
        Number of rounds; before the first one the supervised fit labels the rows.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether the labels stopped changing.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in
        ``NotConvergedWarning``.
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
    >>> from iclda import SelfLearningLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfLearningLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    unlabeled_weight: float = 1.0
    max_iter: int = 1000
    tol: float = 0.0
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem)
        end = alternate(problem, self._limits_of(problem), is_soft=False)
        model = problem.model_of(end.point, end.rule)
        return Fit.of_solution(model, end, "labels still change")
