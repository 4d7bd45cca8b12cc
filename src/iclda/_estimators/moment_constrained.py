"""Moment-constrained linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from .._core.problem import Problem
from .._core.solvers.moment_match import (
    CLOSED_FORMS,
    match_moments,
    maximize_under_moments,
)
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs


@dataclass(kw_only=True, eq=False, repr=False)
class MomentConstrainedLDA(LinearGaussianClassifier):
    """Move the supervised fit to the mean and the covariance of all rows.

    The labeled rows are mapped by x -> A (x - m_l) + m, with m_l and m the means of the
    labeled and of all rows, and LDA is fitted to the mapped rows. Or, among all models
    with these moments, the one is taken under which the labeled rows are likeliest.

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
    variant : str, default="invariant"
        The map A: "invariant", "symmetric" or "means-shifted"; or "likelihood". With
        T_l and T the total covariances of the labeled and of all rows:
        "symmetric" is T^(1/2) T_l^(-1/2) in the units of the features, as in the
        published tables; "invariant" is the one map of this kind that no change of
        units alters; "means-shifted" is symmetric for the covariance and shifts the
        means only, as the paper prints it. "likelihood" is not a map: it maximizes the
        likelihood of the labeled rows over all models whose mean and covariance are
        those of all rows (Loog, 2012), by Newton's method.
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
        Share of the labeled weight in every class; with "likelihood" a parameter of the
        fit.
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
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether the iteration of "likelihood" converged; True for the other variants.
    outcome_ : str
        How it ended: "converged", or a reason listed in ``NotConvergedWarning``.
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
    M. Loog, "Semi-supervised linear discriminant analysis using moment constraints",
    Partially Supervised Learning, 2012.

    Examples
    --------
    >>> from iclda import MomentConstrainedLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> MomentConstrainedLDA().fit(X, y).means_.ravel().round(2)
    array([0.46, 6.54])
    """

    _own_constraints: ClassVar[dict[str, Any]] = {
        "variant": [StrOptions({*CLOSED_FORMS, "likelihood"})]
    }

    variant: str = "invariant"
    n_jobs: int | None = None

    @property
    def _needs(self) -> Needs:  # type: ignore[override]
        """The likelihood of the labeled rows is computed for one variant only."""
        needs_likelihood = self.variant == "likelihood"
        return Needs(labeled_covariance=True, positive_priors=needs_likelihood)

    def _solve(self, problem: Problem) -> Fit:
        converged = {"converged_": True, "outcome_": "converged"}
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem).having(**converged)
        if self.variant != "likelihood":
            model = match_moments(problem, self.variant)
            return Fit(model, {"n_passes_": 1, **converged})
        model, outcome = maximize_under_moments(problem)
        return Fit(
            model,
            {"n_passes_": 1},
            outcome,
            "stopped while the likelihood still rises. Pass shrinkage, or another "
            "variant.",
        )
