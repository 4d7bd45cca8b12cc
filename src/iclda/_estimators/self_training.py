"""Self-training for linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._core import AnyArray, Array
from .._core.gaussian import Gaussians
from .._core.labelsums import GivenLabels
from .._core.problem import Problem, summarize_labeled
from .._core.solvers.alternate import self_train
from .._rows import unreported
from .._rows.memory import MemoryRows
from .base import AT_LEAST_ONE, LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs, automatic_shrinkage, overflow_is_checked_later


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTrainingLDA(LinearGaussianClassifier):
    """Add the unlabeled rows that the fit is sure of to the labeled ones, and refit.

    A row keeps the label it was given, and rows that the fit is never sure of are left
    out, as in scikit-learn's ``SelfTrainingClassifier``.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance within classes on the diagonal of the covariance;
        "auto" estimates it for all classes together, about their means, in every
        round.
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
        Shares of the unlabeled rows that the classes get at most: the surest rows fill
        them. "labeled" are those of the labels, "auto" those that ``AverageLDA`` finds;
        None and "free" set none. Bounds as in ``ExpectationMaximizationLDA``; lower
        ones have no effect.
    threshold : float in [0, 1], default=0.75
        Probability from which on a row is added.
    max_rows : int, default=20000
        Of more unlabeled rows a random sample of this size is used.
    max_iter : int, default=1000
        Largest number of rounds.
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
    n_added_ : int
        Number of unlabeled rows that were added.
    n_iter_ : int
        Number of fits.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether no further row could be added.
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
    >>> from iclda import SelfTrainingLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfTrainingLDA().fit(X, y).means_.ravel().round(2)
    array([0.75, 5.25])
    """

    _needs = Needs(labeled_rows=True)
    _own_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "max_rows": AT_LEAST_ONE,
    }

    proportions: Any = None
    threshold: float = 0.75
    max_rows: int = 20_000
    max_iter: int = 1000
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem).having(n_added_=0)
        assert problem.labeled_rows is not None
        labeled, codes, weights = problem.labeled_rows
        rows, rows_weights = problem.unlabeled.sample(self.max_rows, 0)
        # The fits of all rounds: the first is the supervised fit, the last the result.
        fits: list[Fit] = []

        def refit(added: AnyArray) -> Gaussians:
            """Fit again, with the labels that rows were given; -1 for those without."""
            is_added = added >= 0
            fit = self._fit_labeled(
                problem,
                np.concatenate([labeled, rows[is_added]]),
                np.concatenate([codes, added[is_added]]),
                np.concatenate([weights, rows_weights[is_added]]),
            )
            fits.append(fit)
            model: Gaussians = fit.model
            return model

        limits = self._limits_of(problem)
        limits = replace(limits, max_iter=problem.rounds(limits.max_iter))
        # The surest rows fill the largest shares; least shares have no effect.
        largest_shares = None
        if problem.proportions is not None:
            largest_shares = problem.proportions[:, 1]
        end = self_train(
            refit, rows, rows_weights, self.threshold, limits, largest_shares
        )
        last = fits[-1].having(n_iter_=end.n_iter, n_added_=end.n_added, n_passes_=1)
        # The labels alone decide how well the fit is determined.
        return replace(
            last,
            outcome=end.outcome,
            detail="rows are still added",
            labeled_span=fits[0].labeled_span,
        )

    def _fit_labeled(
        self, problem: Problem, rows: AnyArray, codes: AnyArray, weights: Array
    ) -> Fit:
        """Fit to rows that all have a label, given or added."""
        labels = GivenLabels(codes, problem.n_classes)
        with unreported(), overflow_is_checked_later():
            summary = summarize_labeled(
                MemoryRows(rows, weights), labels, problem.frame
            )
        shrinkage = self.shrinkage or 0.0
        if shrinkage == "auto":
            n_left_out = problem.n_left_out
            shrinkage = automatic_shrinkage(summary, problem.frame, n_left_out)
        return supervised_fit(replace(problem, labeled=summary, shrinkage=shrinkage))
