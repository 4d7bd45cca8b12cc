"""Classifiers of scikit-learn that accept rows without a label.

They have the names of ``methods.BASELINES``.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from ..methods import BASELINES, find_method
from .labels import encode_labels


def _unfitted(method: str) -> Any:
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    classifiers = {
        "sklearn-self-training": SelfTrainingClassifier(lda),
        "sklearn-lda": lda,
        "sklearn-logistic": LogisticRegression(max_iter=1_000),
        "sklearn-label-spreading": LabelSpreading(kernel="knn", max_iter=1_000),
    }
    return classifiers[method]


class OutsideClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of scikit-learn, fitted to the labeled rows or to all rows.

    Parameters
    ----------
    method : str
        Name in ``methods.BASELINES``.
    unlabeled : object, default=-1
        Marker in y of rows without a label; None or NaN: a missing y.
    """

    def __init__(self, method: str, *, unlabeled: Any = -1) -> None:
        self.method = method
        self.unlabeled = unlabeled

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows of numbers."""
        method = find_method(self.method, BASELINES)
        rows = np.asarray(X)
        labels = encode_labels(y, self.unlabeled)
        is_labeled = labels.is_labeled
        # scikit-learn marks an unlabeled row by -1, as the codes do.
        is_used = is_labeled | method.uses_unlabeled
        self.classes_ = labels.classes
        self.n_features_in_ = rows.shape[1]
        self.shares_ = np.bincount(labels.codes[is_labeled]) / is_labeled.sum()
        classifier = _unfitted(method.name)
        self.estimator_ = classifier.fit(rows[is_used], labels.codes[is_used])
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
