"""Implicitly constrained linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import Array
from .._core.gaussian import Gaussians
from .._core.problem import LabeledSummary, Problem
from .._core.rowspace import LogLikelihood
from .._core.solvers.implicit import maximize_labeled_likelihood
from .._core.solvers.supervised import labeled_log_likelihood
from .base import AT_LEAST_ONE, LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import FitInputs, Needs
from .predictions import imputed_shares
from .rows_reader import RowsReader

# At most this many responsibilities (unlabeled rows times classes) are stored.
_MAX_STORED_SHARES = 10**6


@dataclass(kw_only=True, eq=False, repr=False)
class ImplicitlyConstrainedLDA(LinearGaussianClassifier):
    """LDA with the labeling that maximizes the likelihood of the labeled rows.

    The labels of the unlabeled rows may be soft. ``gap_`` certifies that no small
    change of them helps: a step of a small share s toward any other labeling raises the
    objective by at most s times ``gap_``, to first order. A labeling far away may be
    better, since the problem can have several local maxima; the best of many starts is
    taken.

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
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get, in the order of ``classes_``,
        or class -> share; a pair instead of a share is the least and the largest one.
        "labeled" takes the shares of the labeled rows, "auto" those that ``AverageLDA``
        predicts, and the fit starts there. None and "free" leave them free; with fewer
        labels than features a free fit may give nearly all unlabeled rows to one class.
    n_starts : int, default=32
        Number of random labelings to start from, beside equal shares and the supervised
        posterior. Those that meet go on as one, and after several in a row no more are
        tried. With many unknowns there are none.
    max_iter : int, default=200
        Largest number of Newton steps from one start. All steps together cost at most
        about as much as ``max_iter`` reads of all rows.
    tol : float, default=1e-6
        Largest ``gap_`` that counts as converged. Up to some thousands of unlabeled
        rows the fit is more accurate than that at no extra cost.
    random_state : int, RandomState instance or None, default=None
        Draws the starts and, of many rows, the sample they are compared on. None is a
        fixed seed: the same data give the same fit.
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
        Share of the weight in every class, labels and imputed labels together.
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
        Labeled log likelihood per labeled row.
    gap_ : float
        Certificate per labeled row, see above; for many rows it may be an upper bound.
    n_iter_ : int
        Number of Newton steps to the best maximum.
    n_passes_ : int
        Number of times the search read all unlabeled rows: moments, sample, path and
        certificate.
    n_optima_ : int
        Number of distinct local maxima seen.
    converged_ : bool
        Whether ``gap_`` is at most ``tol``.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in
        ``NotConvergedWarning``.
    responsibilities_ : ndarray of shape (n_unlabeled, n_classes)
        Imputed labels of the unlabeled rows: those of X, then those of X_unlabeled.
        Stored for rows in memory, up to a million entries; ``impute`` gives them for
        any rows. Labels are soft in a narrow band along each boundary between labels.
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
    >>> from iclda import ImplicitlyConstrainedLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> clf = ImplicitlyConstrainedLDA().fit(X, y)
    >>> clf.responsibilities_.shape, bool(clf.gap_ < 1e-6)
    ((4, 2), True)
    """

    _needs = Needs(positive_priors=True)
    _own_constraints: ClassVar[dict[str, Any]] = {
        "n_starts": AT_LEAST_ONE,
    }

    proportions: Any = None
    n_starts: int = 32
    max_iter: int = 200
    tol: float = 1e-6
    random_state: Any = None
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            fit = supervised_fit(problem)
            objective = _objective(fit.model, problem.labeled)
            return fit.having(objective_=objective, gap_=0.0, n_optima_=1)
        best = maximize_labeled_likelihood(
            problem, self._limits_of(problem), n_starts=self.n_starts, seed=self._seed()
        )
        model = problem.model_of(best.point, best.rule)
        return Fit.of_solution(
            model,
            best,
            f"gap {best.gap:.2g}",
            rule=best.rule,
            objective_=_objective(model, problem.labeled),
            gap_=best.gap,
            n_optima_=best.n_optima,
        )

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        largest_seed = np.iinfo(np.int32).max
        return int(check_random_state(self.random_state).randint(largest_seed))

    def _store(self, fit: Fit, inputs: FitInputs) -> None:
        super()._store(fit, inputs)
        # The rule for rows of all features, by which any rows can be labeled later.
        self._imputation_ = inputs.space.rule(fit.rule)
        self._responsibilities_ = None
        rows = inputs.every_unlabeled
        if rows is not None and rows.n_rows * len(self.classes_) <= _MAX_STORED_SHARES:
            self._responsibilities_ = rows.responsibilities(fit.rule, inputs.frame)

    @property
    def responsibilities_(self) -> Array:
        """Imputed labels of the unlabeled rows."""
        check_is_fitted(self)
        stored: Array | None = self._responsibilities_
        if stored is None:
            raise AttributeError(
                "responsibilities_ is stored by fit for arrays in memory, up to a "
                "million entries (unlabeled rows x classes): use impute(X), which "
                "gives them for any rows."
            )
        return stored

    def impute(self, X: Any) -> Array:
        """Labels that the fit gives, or would give, to unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_classes)
            Shares of every row in each class.
        """
        self._check_ready(X, "impute")
        function = imputed_shares(self._imputation_, self._model_.frame)
        return RowsReader(self).apply(X, function)


def _objective(model: Gaussians, labeled: LabeledSummary) -> LogLikelihood:
    """Labeled log likelihood per labeled row."""
    return LogLikelihood(labeled_log_likelihood(model, labeled) / labeled.weight, 1.0)
