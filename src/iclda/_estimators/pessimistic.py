"""Linear discriminant analysis by maximum contrastive pessimistic likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._core.problem import Problem
from .._core.solvers.pessimistic import maximize_worst_gain
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs


@dataclass(kw_only=True, eq=False, repr=False)
class PessimisticLDA(LinearGaussianClassifier):
    """LDA that gains most on supervised LDA under the least favorable labels.

    Maximum contrastive pessimistic likelihood (Loog, 2016): the likelihood of all rows,
    less that of the supervised fit, is maximized for those labels of the unlabeled rows
    that make the difference smallest. The supervised fit itself has difference 0, so
    that the log likelihood of the training rows is at least the supervised one's,
    whatever the true labels are, up to ``gap_``. That says nothing certain of new rows,
    nor of the error. The problem is convex: ``gap_`` certifies that no other model is
    better by more than that.

    Compared with ``SupervisedLDA`` of the same priors and ``shrinkage_``. With
    shrinkage both likelihoods are less the penalty that shrinkage maximizes, and the
    guarantee is for those. With ``proportions`` it is for labels that have these
    proportions.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance of all rows on the diagonal of the covariance; "auto"
        estimates it from the labeled rows, about class means, on which the fit rests.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get, in the order of ``classes_``,
        or class -> share; a pair instead of a share is the least and the largest one.
        "labeled" takes the shares of the labeled rows, "auto" those that ``AverageLDA``
        predicts, and the fit starts there. None and "free" leave them free; with fewer
        labels than features a free fit may give nearly all unlabeled rows to one class.
    max_iter : int, default=200
        Largest number of Newton steps.
    tol : float, default=1e-6
        Largest ``gap_`` that counts as converged. Up to some thousands of unlabeled
        rows the fit is more accurate than that at no extra cost.
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
        Share of the weight in every class, labels and least favorable labels together.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    objective_ : float
        Gain in log likelihood of all rows per row, under the least favorable labels.
        Whatever the labels are it is at least ``objective_ - gap_``, and no model has
        more than ``objective_``.
    gap_ : float
        Certificate per row, see above.
    n_iter_ : int
        Number of Newton steps.
    n_passes_ : int
        Number of times the search read all unlabeled rows: moments, sample, path and
        certificate.
    converged_ : bool
        Whether ``gap_`` is at most ``tol``.
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

    References
    ----------
    M. Loog, "Contrastive pessimistic likelihood estimation for semi-supervised
    classification", IEEE Transactions on Pattern Analysis and Machine Intelligence 38
    (3), 2016.

    Examples
    --------
    >>> from iclda import PessimisticLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = PessimisticLDA().fit(X, y)
    >>> bool(clf.objective_ > 0), bool(clf.gain_bounds(X, y).worst > 0)
    (True, True)
    """

    _needs = Needs(positive_priors=True, labeled_covariance=True)

    proportions: Any = None
    max_iter: int = 200
    tol: float = 1e-6
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem).having(objective_=0.0, gap_=0.0)
        best = maximize_worst_gain(problem, self._limits_of(problem))
        return Fit.of_solution(
            problem.model_of(best.point, best.rule),
            best,
            f"gap {best.gap:.2g}",
            objective_=best.objective,
            gap_=best.gap,
        )
