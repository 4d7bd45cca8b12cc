"""Classifiers of scikit-learn that comparisons include, fitted to labels with gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..._core.types import AnyArray, Array
from ..._estimators.labels import encode_labels


def _self_training() -> Any:
    from sklearn.semi_supervised import SelfTrainingClassifier

    return SelfTrainingClassifier(_lda())


def _lda() -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1_000)


# By name in ``methods.BASELINES``: what makes the classifier, and whether it takes unlabeled rows.
_MAKERS: dict[str, tuple[Callable[[], Any], bool]] = {
    "sklearn-self-training": (_self_training, True),
    "sklearn-lda": (_lda, False),
    "sklearn-logistic": (_logistic, False),
}


class OutsideClassifier:
    """A classifier of scikit-learn by its name in ``methods.BASELINES``; None in y is unlabeled."""

    def __init__(self, name: str) -> None:
        make, self._uses_unlabeled = _MAKERS[name]
        self._classifier = make()

    def fit(self, X: Array, y: AnyArray) -> Self:
        labels = encode_labels(y, None)
        is_used = np.ones(len(y), dtype=bool) if self._uses_unlabeled else labels.is_labeled
        self.classes_ = labels.classes
        self._classifier.fit(X[is_used], labels.codes[is_used])
        return self

    def predict(self, X: Array) -> AnyArray:
        return self.classes_[self._classifier.predict(X)]

    def predict_proba(self, X: Array) -> Array:
        return self._classifier.predict_proba(X)
