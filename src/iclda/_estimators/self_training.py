"""Self-training for linear discriminant analysis."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._core import AnyArray
from .._core.gaussian import Gaussians
from .._core.problem import LabeledSummary, Problem
from .._core.solvers import Limits
from .._core.solvers.alternate import self_train
from .._messages import warn
from .._rows import unreported
from .average import with_proportions
from .base import AT_LEAST_ONE, Fit, LinearClassifier, LinearGaussianClassifier
from .diagnosis import check_unlabeled_mean
from .prepare import FitInputs, check_spread


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTrainingLDA(LinearGaussianClassifier):
    """Add the unlabeled rows that the fit is sure of to the labeled ones, refit, repeat.

    A row keeps the label it was given, and rows that the fit is never sure of are left out, as in
    scikit-learn's ``SelfTrainingClassifier``.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates them.
    shrinkage : float in [0, 1) or "auto", default=None
        Share of the mean variance within classes on the diagonal of the covariance; "auto" by Chen
        et al. for all classes together, about their means, in every round.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. None or NaN: a missing y is unlabeled.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the unlabeled rows that the classes get at most: the surest rows fill them.
        "labeled" are those of the labels, "auto" those that ``AverageLDA`` finds; None and "free"
        set none. Bounds as in ``ExpectationMaximizationLDA``; lower ones have no effect.
    threshold : float in [0, 1], default=0.75
        Probability from which on a row is added.
    max_rows : int, default=20000
        Of more unlabeled rows a random sample of this size is used.
    max_iter : int, default=1000
        Largest number of rounds.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config says
        otherwise, -1 is all cores. The fit does not depend on it.

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
        Coefficients of the linear scores; for two classes, of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Their intercepts.
    n_added_ : int
        Number of unlabeled rows that were added.
    n_iter_ : int
        Number of fits.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether no further row could be added.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in ``NotConvergedWarning``.
    shrinkage_ : float
        Shrinkage used.
    rank_ : int
        Rank of the covariance of all rows.
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

    _own_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "max_rows": AT_LEAST_ONE,
    }

    proportions: Any = None
    threshold: float = 0.75
    max_rows: int = 20_000
    max_iter: int = 1000
    n_jobs: int | None = None

    def _fit_all_rows(self, inputs: FitInputs) -> Fit:
        # For what the rows are like, and for the shares that the average gives.
        problem = inputs.problem(
            Problem, self.shrinkage if inputs.learns_proportions else None
        )
        problem, n_passes = with_proportions(problem, inputs)
        check_spread(inputs, inputs.space.variances(problem.moments.covariance))
        warn(*check_unlabeled_mean(problem, inputs.space, self._feature_names))
        space, is_labeled = inputs.space, inputs.codes >= 0
        held, codes = inputs.labeled_source.held(is_labeled), inputs.codes[is_labeled]
        weights = np.ones(len(held.X)) if held.weights is None else held.weights
        rows, rows_weights = inputs.unlabeled.sample(self.max_rows, 0)
        last: Any = None

        def refit(added: AnyArray) -> Gaussians:
            nonlocal last
            is_added = added >= 0
            source = replace(
                held,
                X=np.concatenate([held.X, rows[is_added]]),
                weights=np.concatenate([weights, rows_weights[is_added]]),
            )
            refitted = replace(
                inputs,
                labeled_source=source,
                codes=np.concatenate([codes, added[is_added]]),
            )
            with warnings.catch_warnings(), unreported():
                if last is not None:
                    warnings.simplefilter("ignore")  # once, not once a round
                last = self._fit_labeled_rows(refitted)
            model: Gaussians = last.model
            return model

        limits = Limits(problem.rounds(self.max_iter))
        most = None if problem.proportions is None else problem.proportions[:, 1]
        rows_of_user = space.features(rows)
        end = self_train(
            refit, rows_of_user, rows_weights, self.threshold, limits, most
        )
        counts = {"n_iter_": end.n_iter, "n_added_": end.n_added}
        counts["n_passes_"] = 1 + n_passes
        fit = Fit(
            last.model,
            {**last.attributes, **counts},
            end.outcome,
            "rows are still added",
        )
        return replace(fit, outcome=LinearClassifier._judge(self, problem, fit))

    def _supervised_attributes(
        self, model: Gaussians, labeled: LabeledSummary
    ) -> dict[str, Any]:
        return {"n_added_": 0}
