"""Least squares classification: linear predictions of 0 and 1 for every class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .._core import Array
from .._core.labelsums import LinearRule
from .._core.problem import Problem
from .._core.solvers.alternate import alternate
from .._core.solvers.pessimistic import minimize_over_labelings
from .._core.solvers.squares import (
    SquaresProblem,
    distance_from_supervised,
    labeled_loss,
    minimize_soft_squares,
    supervised_squares,
)
from .base import BaseClassifier
from .fit import Fit
from .fit_inputs import Needs
from .rows_reader import RowsReader


def _rule_of(problem: Problem, point: Array) -> LinearRule:
    """Return the functions (K, 1 + rank) of a point for rows in frame coordinates."""
    return problem.rule_of(point, is_soft=False)


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquaresClassifier(BaseClassifier):
    """Linear functions of the features, fitted to 0 and 1 by least squares.

    Every class has a function with an intercept, which predicts 1 for its own rows and
    0 for others; a row goes to the class of the largest one. Unlabeled rows are
    ignored. If there are fewer labeled rows than features, of all fits the one of
    smallest slopes on standardized rows is taken. Probabilities are the predictions,
    clipped at 0 and scaled to add up to 1.

    Parameters
    ----------
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
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the functions; for two classes, of the second less the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    rank_ : int
        Rank of the covariance of the labeled rows.
    view_ : View or None
        The fitted view. Coefficients, means and covariance are those of mapped rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from iclda import LeastSquaresClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [4.0, 4.0], [5.0, 4.0], [4.0, 6.0]]
    >>> clf = LeastSquaresClassifier().fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> clf.predict([[0, 0], [5, 5]])
    array(['a', 'b'], dtype='<U1')
    """

    _needs = Needs(
        unlabeled_rows=False, all_features=True, supervised="LeastSquaresClassifier"
    )

    priors: None = field(init=False, default=None)
    shrinkage: None = field(init=False, default=None)

    def _solve(self, problem: Problem) -> Fit:
        point = supervised_squares(problem.labeled, problem.whitening)
        return Fit(_rule_of(problem, point))

    def decision_function(self, X: Any) -> Array:
        """Predictions of every class; for two classes, the second's less the first's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``X @ coef_.T + intercept_``: near 1 in the own class, near 0 in others; for
            two classes from -1, the first, to 1, the second.
        """
        self._check_ready(X, "decision_function")
        return RowsReader(self).apply(X, self._model_.decisions())

    def squared_loss(self, X: Any, y: Any) -> Array:
        """Squared loss of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        loss : ndarray of shape (n_samples,)
            Half the sum over classes of the squared difference of target and
            prediction; for two classes that is the squared difference for either.
        """
        self._check_ready(X, "squared_loss")
        scores = self._model_.class_scores()
        differences, codes = self._numbers_and_codes(X, y, scores)
        differences[np.arange(len(codes)), codes] -= 1
        return np.asarray((differences**2).sum(axis=1) / 2)


@dataclass(kw_only=True, eq=False, repr=False)
class ImplicitlyConstrainedLeastSquares(LeastSquaresClassifier):
    """The best least squares fit that some labeling of the unlabeled rows gives.

    Best is the one of smallest squared loss on the labeled rows (Krijthe and Loog,
    2015), or the one nearest to the supervised fit, by the squared difference of their
    predictions on all rows (Krijthe and Loog, 2017). The squared loss of the projected
    fit on the training rows is at most that of the supervised fit, whatever the labels
    of the unlabeled rows are. Both problems are convex: ``gap_`` certifies that no
    other fit is better by more than that.

    Parameters
    ----------
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    variant : {"labeled", "projected"}, default="labeled"
        Which of the two.
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
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and those of the optimal labeling
        together.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the functions; for two classes, of the second less the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    objective_ : float
        Mean squared loss of the labeled rows, or mean squared difference from the
        supervised fit.
    gap_ : float
        By how much it may exceed the smallest one possible.
    n_iter_ : int
        Number of Newton steps.
    n_passes_ : int
        Number of times all unlabeled rows were read.
    converged_ : bool
        Whether ``gap_`` is at most ``tol``.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in
        ``NotConvergedWarning``.
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
    J. H. Krijthe and M. Loog, "Robust semi-supervised least squares classification by
    implicit constraints", Pattern Recognition 63, 2017, arXiv:1512.08240; "Projected
    estimators for robust semi-supervised classification", Machine Learning 106, 2017,
    arXiv:1602.07865.

    Examples
    --------
    >>> from iclda import ImplicitlyConstrainedLeastSquares, LeastSquaresClassifier
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> truth = [0, 0, 1, 1, 0, 0, 1, 1]
    >>> clf = ImplicitlyConstrainedLeastSquares(variant="projected").fit(X, y)
    >>> supervised = LeastSquaresClassifier().fit(X, y)
    >>> losses = [model.squared_loss(X, truth).mean() for model in (clf, supervised)]
    >>> bool(losses[0] <= losses[1])
    True
    """

    _needs = Needs(all_features=True, supervised="LeastSquaresClassifier")
    _own_constraints: ClassVar[dict[str, Any]] = {
        "variant": [StrOptions({"labeled", "projected"})]
    }

    variant: str = "labeled"
    max_iter: int = 200
    tol: float = 1e-6
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if not problem.has_unlabeled_rows:
            return self._solve_labeled(problem)
        loss = labeled_loss if self.variant == "labeled" else distance_from_supervised
        best = minimize_over_labelings(problem, loss, self._limits_of(problem))
        return Fit.of_solution(
            _rule_of(problem, best.point),
            best,
            f"gap {best.gap:.2g}",
            class_weights_=best.point[:, 0],
            objective_=best.objective,
            gap_=best.gap,
        )

    def _solve_labeled(self, problem: Problem) -> Fit:
        point = supervised_squares(problem.labeled, problem.whitening)
        objective = 0.0
        if self.variant == "labeled":
            objective = -labeled_loss(problem).value_and_gradient(point)[0]
        attributes = {
            "class_weights_": problem.labeled.counts / problem.labeled.weight,
            "objective_": objective,
            "gap_": 0.0,
        }
        return Fit(_rule_of(problem, point), attributes)


@dataclass(kw_only=True, eq=False, repr=False)
class SelfLearningLeastSquares(LeastSquaresClassifier):
    """Label the unlabeled rows by least squares, refit to all rows, and repeat.

    It stops when no label changes. The squared loss on all rows, those labels included,
    falls in every round. With soft labels, shares of the classes, it has one minimum,
    which is found by Newton's method; all rows are held in memory then.

    Parameters
    ----------
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default=None
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    labels : {"hard", "soft"}, default="hard"
        Hard labels are the class of the largest prediction, soft ones the shares that
        are nearest to the predictions: for two classes, predictions clipped to [0, 1].
    max_iter : int, default=1000
        Largest number of rounds, or of Newton steps.
    tol : float, default=0.0
        Largest change of class shares and class means that counts as none; with soft
        labels 1e-12 if it is less.
    n_jobs : int, default=None
        Threads that read the unlabeled rows: None is 1 unless a joblib.parallel_config
        says otherwise, -1 is all cores. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the weight in every class, labels and own labels together.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the functions; for two classes, of the second less the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    objective_ : float
        Mean squared loss of all rows, with labels and own labels.
    n_iter_ : int
        Number of rounds, each a label for every row and a refit; or of Newton steps.
    n_passes_ : int
        Number of times all unlabeled rows were read; soft labels read them once more to
        hold them.
    converged_ : bool
        Whether the labels stopped changing.
    outcome_ : str
        How the iteration ended: "converged", or a reason listed in
        ``NotConvergedWarning``.
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
    >>> from iclda import SelfLearningLeastSquares
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [9.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> SelfLearningLeastSquares().fit(X, y).predict([[2.0], [4.0]])
    array([0, 1])
    """

    _needs = Needs(all_features=True, supervised="LeastSquaresClassifier")
    _own_constraints: ClassVar[dict[str, Any]] = {
        "labels": [StrOptions({"hard", "soft"})]
    }

    labels: str = "hard"
    max_iter: int = 1000
    tol: float = 0.0
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        supervised = supervised_squares(problem.labeled, problem.whitening)
        if not problem.has_unlabeled_rows:
            attributes = {
                "class_weights_": problem.labeled.counts / problem.labeled.weight,
                "objective_": _loss_of_fit(supervised),
            }
            return Fit(_rule_of(problem, supervised), attributes)
        end: Any
        if self.labels == "soft":
            end = minimize_soft_squares(problem, supervised, self._limits_of(problem))
            class_weights = end.class_weights
            objective = end.objective
        else:
            squares = problem.recast(SquaresProblem)
            end = alternate(
                squares, self._limits_of(problem), is_soft=False, start=supervised
            )
            class_weights = end.point[:, 0]
            objective = _loss_of_fit(end.point)
        return Fit.of_solution(
            _rule_of(problem, end.point),
            end,
            "labels still change",
            class_weights_=class_weights,
            objective_=objective,
        )


def _loss_of_fit(point: Array) -> float:
    """Mean squared loss of all rows, with the labels that the point is the fit of."""
    return float(1 - np.vdot(point, point)) / 2
