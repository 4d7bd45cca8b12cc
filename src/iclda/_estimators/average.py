"""The average of four fits, for a handful of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.problem import Problem
from .._core.solvers.anchored import gaussians_of_rule
from .._cost import MAX_CLASSES_OF_AVERAGE
from .._error_estimate import estimate_final_error
from .._messages import FitError
from .._system import one_thread_if_small
from .averaging import HeldOut, average_rule, in_frame
from .base import LinearGaussianClassifier
from .fit import Fit, supervised_fit
from .fit_inputs import Needs
from .labels import FREE
from .views import AUTO_VIEW

# Attributes of a fit for which no label could be held out.
_UNTESTED = {"error_": None, "error_interval_": None, "loss_": None, "n_tested_": 0}


@dataclass(kw_only=True, eq=False, repr=False)
class AverageLDA(LinearGaussianClassifier):
    """The average of four fits: three kinds of EM, and logistic regression.

    It is made for a handful of labels on features of a frozen network, where no label
    can be spared to choose a method. The scores of four linear classifiers, each scaled
    to unit spread, are averaged: EM; EM whose class sizes among the unlabeled rows
    approach those among the labels; EM whose shrinkage falls from 0.9 in steps; and
    logistic regression of the labeled rows. The class means of the first two are pulled
    toward the labeled rows, by the share n / (n + 8) for a class of n labels. With 64
    features or more, these two start from labels that were spread to neighboring rows.
    If some class has two labels or more, a cross-validation weights the four by their
    errors and sets how confident the probabilities are. The result is again a model of
    Gaussian classes with one covariance. There may be at most 2,000 classes.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    shrinkage : float in [0, 1) or "auto", default="auto"
        Share of the mean variance within classes on the diagonal of the covariance, in
        all three kinds of EM. "auto" is the geometric mean of two estimated shrinkages:
        that for the labeled rows about their class means, and that for all rows. None
        is 0.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    view : str, default="auto"
        Map of the rows, learned without labels, before the fit: "standardize" divides
        columns by their standard deviation, "whiten" also makes them uncorrelated,
        "normalize" scales rows to length 1, "kernel" and "whitened-kernel" give
        features in which curved boundaries are linear. "auto" bounds broken numbers,
        then normalizes features of a network and standardizes tables. None leaves rows
        as they are.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the classes among the unlabeled rows, if they are known: all three
        kinds of EM approach them. "auto" is the same as None: the average learns them.
        "free" leaves out the member that approaches the shares among the labels, and
        suits labels of rows that were chosen, not drawn at random.
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
        Share of the weight in every class.
    means_ : ndarray of shape (n_classes, n_features)
        Means of the Gaussian classes that have the averaged scores.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the linear scores; for two classes, of the log odds of the
        second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of the linear scores.
    member_weights_ : dict
        Weight of every member: "em", "annealed", "labeled shares" and "logistic".
    held_out_probabilities_ : ndarray of shape (n_labeled, n_classes) or None
        Probabilities of the labeled rows, in their order in X, by fits without their
        labels; NaN for rows that could not be tested. Model files leave them out.
    calibration_ : Calibration or None
        How the held-out labels correct probabilities, for ``class_shares``.
    error_ : float or None
        Share of new rows that get a wrong class, estimated from the labels that the
        cross-validation held out; None with fewer than 8 of them, or with fewer than 3
        labels per class on average.
    error_interval_ : tuple of two floats or None
        Its 90 % interval.
    loss_ : float or None
        Mean Brier score of the held-out labels.
    n_tested_ : int
        Number of held-out labels.
    n_passes_ : int
        Number of times all unlabeled rows were read.
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
    >>> from iclda import AverageLDA
    >>> X = [[0.0], [1.0], [5.0], [6.0], [0.5], [1.5], [4.5], [5.5]]
    >>> y = [0, 0, 1, 1, -1, -1, -1, -1]
    >>> AverageLDA().fit(X, y).predict([[2.0], [4.0]])
    array([0, 1])
    """

    _needs = Needs(
        labeled_rows=True,
        users_units=True,
        positive_priors=True,
        learned_proportions=False,
        supervised="SupervisedLDA of the same shrinkage and view",
    )

    shrinkage: Any = "auto"
    view: str | None = AUTO_VIEW
    proportions: Any = None
    n_jobs: int | None = None

    def _solve(self, problem: Problem) -> Fit:
        if problem.n_classes > MAX_CLASSES_OF_AVERAGE:
            raise FitError(
                f"{type(self).__name__} takes at most {MAX_CLASSES_OF_AVERAGE:,} "
                f"classes, and there are {problem.n_classes:,}: use SelfLearningLDA, "
                "or merge classes."
            )
        if not problem.has_unlabeled_rows:
            return supervised_fit(problem).having(
                member_weights_={}, held_out_probabilities_=None, **_UNTESTED
            )
        assert problem.labeled_rows is not None
        labeled = in_frame(problem, problem.labeled_rows)
        is_free = isinstance(self.proportions, str) and self.proportions == FREE
        with one_thread_if_small(len(problem.moments.mean)):
            average = average_rule(problem, labeled, with_shares=not is_free)
        attributes = {
            **_UNTESTED,
            "member_weights_": average.member_weights,
            "held_out_probabilities_": average.held_out_probabilities,
            # Two passes more: for the moments, and for the model of the averaged rule.
            "n_passes_": 2 + average.n_passes,
        }
        if average.held_out is not None and not is_free:
            attributes |= self._error_attributes(average.held_out, problem)
        model, variance_left_out = gaussians_of_rule(
            problem, average.rule, problem.shrinkage
        )
        return Fit(
            model, attributes, rule=average.rule, variance_left_out=variance_left_out
        )

    def _error_attributes(self, held_out: HeldOut, problem: Problem) -> dict[str, Any]:
        """Return what the held-out labels say about the fit to all rows."""
        assert problem.labeled_rows is not None
        # The fits of the cross-validation read a sample of the unlabeled rows. More of
        # them would help on features of a network, and would hardly help on tables.
        share_of_unlabeled = 1.0
        if problem.has_network_features:
            share_of_unlabeled = held_out.n_unlabeled / problem.unlabeled.n_rows
        # The bootstrap draws rows by their index: sort them, so that the estimate does
        # not depend on their order in X.
        order = np.argsort(held_out.losses)
        # The average is the only candidate: the first axis has the length 1.
        losses = held_out.losses[None, order]
        is_wrong = held_out.is_wrong[None, order]
        class_counts = np.bincount(problem.labeled_rows.codes)
        estimate = estimate_final_error(
            losses, is_wrong, class_counts, held_out.n_folds, share_of_unlabeled
        )
        attributes: dict[str, Any] = {
            "loss_": float(held_out.losses.mean()),
            "n_tested_": len(held_out.losses),
        }
        if estimate is not None:
            attributes["error_"] = estimate.error
            attributes["error_interval_"] = (estimate.low, estimate.high)
        return attributes
