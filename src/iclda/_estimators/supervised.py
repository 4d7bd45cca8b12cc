"""Supervised linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass

from .._core.problem import Problem
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs


# It adds no parameter. The decorator makes an ``__init__`` all the same, so that the
# message about a parameter that does not exist names this class.
@dataclass(kw_only=True, eq=False, repr=False)
class SupervisedLDA(LinearGaussianClassifier):
    """Linear discriminant analysis by maximum likelihood; unlabeled rows are ignored.

    Class priors, class means and one covariance with divisor N, the number of labeled
    rows. Given every label it is the oracle of the semi-supervised experiments.
    Unlabeled rows in memory or on a device must be finite nevertheless; those of files,
    batches and Dask are not read.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance within classes on the diagonal of the covariance;
        "auto" estimates it for all classes together, about their means: little where
        strongly correlated features leave small variances, in which classes may differ.
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
        Shrinkage used.
    rank_ : int
        Rank of the covariance of the labeled rows within their classes.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import SupervisedLDA
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 4.0], [5.0, 4.0], [4.0, 6.0]]
    >>> SupervisedLDA().fit(X, ["a", "a", "a", "b", "b", "b"]).predict([[0, 0], [5, 5]])
    array(['a', 'b'], dtype='<U1')
    """

    _needs = Needs(unlabeled_rows=False)

    def _solve(self, problem: Problem) -> Fit:
        return supervised_fit(problem)
