"""Normalized linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass

from .._core.problem import Problem
from .._core.solvers.moment_match import normalize
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit


@dataclass(kw_only=True, eq=False, repr=False)
class NormalizedLDA(LinearGaussianClassifier):
    """Class means of the labeled rows, with the covariance of all rows.

    Directions are those that minimize the spread of the labeled rows within classes
    relative to the spread of all rows (Fan, Lei and Li, 2008). If all rows are labeled
    these are the directions of LDA; here that case is the fit of ``SupervisedLDA``.
    Needs no more labels than one per class.

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
        Covariance of all rows about their mean.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    shrinkage_ : float
        Shrinkage used.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    rank_ : int
        Rank of the covariance of all rows.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    References
    ----------
    B. Fan, Z. Lei and S. Z. Li, "Normalized LDA for semi-supervised learning", IEEE
    International Conference on Automatic Face and Gesture Recognition, 2008.

    Examples
    --------
    >>> from iclda import NormalizedLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = NormalizedLDA().fit(X, y)
    >>> clf.means_.ravel(), clf.covariance_.ravel()
    (array([0.5, 5.5]), array([9.625]))
    """

    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem)
        return Fit(normalize(problem), {"n_passes_": 1})
