"""Classifiers of scikit-learn that accept rows without a label.

They have the names of ``methods.BASELINES``.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._messages import FitError, plural
from ..methods import BASELINES, find_method
from .labels import encode_labels

# Rows added to every class, so that no share is zero.
_PSEUDO_COUNT = 0.5


def _unfitted(method: str, random_state: Any) -> Any:
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    classifiers = {
        "sklearn-self-training": SelfTrainingClassifier(lda),
        "sklearn-lda": lda,
        "sklearn-logistic": LogisticRegression(max_iter=1_000),
        "sklearn-label-spreading": LabelSpreading(kernel="knn", max_iter=1_000),
        "sklearn-forest": RandomForestClassifier(
            oob_score=True, random_state=random_state
        ),
    }
    return classifiers[method]


class OutsideClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of scikit-learn, fitted to the labeled rows or to all rows.

    Parameters
    ----------
    method : str
        Name in ``methods.BASELINES``.
    unlabeled : object, default=-1
        Marker in y of rows without a label. A missing y, None or NaN, always is one.
    random_state : int or RandomState instance, default=0
        Draws the trees of a forest.
    """

    def __init__(
        self, method: str, *, unlabeled: Any = -1, random_state: Any = 0
    ) -> None:
        self.method = method
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows of numbers; only some of the methods take weights."""
        method = find_method(self.method, BASELINES)
        rows = np.asarray(X)
        labels = encode_labels(y, self.unlabeled)
        is_labeled = labels.is_labeled
        # scikit-learn marks an unlabeled row by -1, as the codes do.
        is_used = is_labeled | method.uses_unlabeled
        self.classes_ = labels.classes
        self.n_features_in_ = rows.shape[1]
        self.shares_ = np.bincount(labels.labeled_codes) / is_labeled.sum()
        classifier = _unfitted(method.name, self.random_state)
        n_labels = int(is_labeled.sum())
        n_classes = len(labels.classes)
        # Self-training begins with LDA, too.
        has_lda = method.name in ("sklearn-lda", "sklearn-self-training")
        if has_lda and n_labels <= n_classes:
            raise FitError(
                f"{method.name} needs more labels than classes, got "
                f"{plural(n_labels, 'label')} of {n_classes} classes: label more rows."
            )
        weights = {}
        if sample_weight is not None:
            weights["sample_weight"] = np.asarray(sample_weight)[is_used]
        with warnings.catch_warnings():
            # A forest says that a row is in the sample of every tree: the row is then
            # not tested.
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
            classifier.fit(rows[is_used], labels.codes[is_used], **weights)
        # A forest predicts each row by the trees that did not see it. These predictions
        # are not part of the model.
        self.held_out_probabilities_ = None
        shares = vars(classifier).pop("oob_decision_function_", None)
        if shares is not None:
            # A row that every tree saw has no votes.
            is_tested = np.nan_to_num(shares).sum(axis=1, keepdims=True) > 0
            self.held_out_probabilities_ = np.where(is_tested, shares, np.nan)
        self.estimator_ = classifier
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Drop the neighbor tree from the pickle; ``predict`` rebuilds it."""
        state = {**super().__getstate__()}
        if hasattr(state.get("estimator_"), "nn_fit"):
            state["estimator_"] = copy(state["estimator_"])
            state["estimator_"].nn_fit = None
        return state

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        A row that no label has spread to gets the shares of the classes.
        """
        check_is_fitted(self)
        # Shares of such a row are 0 / 0.
        with np.errstate(invalid="ignore"):
            probabilities = self.estimator_.predict_proba(np.asarray(X))
        return np.where(np.isfinite(probabilities), probabilities, self.shares_)


class ClassShares(ClassifierMixin, BaseEstimator):
    """Gives every row the shares of the classes among the labeled rows.

    Rows without a label have y = -1. Half a row is added to every class.
    """

    # No label is held out when it is fitted.
    held_out_probabilities_: Array | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the labels."""
        labels = encode_labels(y, -1)
        is_labeled = labels.is_labeled
        weights = np.ones(len(is_labeled))
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
        sums = np.bincount(labels.labeled_codes, weights[is_labeled])
        counts = sums + _PSEUDO_COUNT
        # A classifier of scikit-learn, which others can read and convert.
        dummy = DummyClassifier(strategy="prior")
        dummy.fit(labels.classes[:, None], labels.classes, sample_weight=counts)
        self.estimator_ = dummy
        self.classes_ = labels.classes
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, the same for every row."""
        shares: Array = self.estimator_.predict_proba(X)
        return shares
