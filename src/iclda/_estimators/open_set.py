"""A classifier that may answer "none of these classes"."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._messages import ParameterError, say
from .._rows.kinds import in_memory
from .auto import AutoLDA
from .labels import check_lengths


class OpenSetClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predict a class of its own for rows that resemble none of the classes.

    Parameters
    ----------
    classifier : classifier, default=None
        One that has ``novelty``: it is cloned and fitted. None is ``AutoLDA()``.
    alpha : float in (0, 1), default=0.05
        Share of the rows of known classes that may get the name.
    name : object, default="other"
        What ``predict`` returns for rows whose novelty exceeds 1 - alpha.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The known classes, sorted. The name is not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from iclda import OpenSetClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> # No wine of the first class has a label, and no third one of the others.
    >>> y_known = np.where(y == 0, None, y)
    >>> y_known[::3] = None
    >>> clf = OpenSetClassifier().fit(X, y_known)
    >>> is_other = clf.predict(X) == "other"
    >>> f"{is_other[y == 0].mean():.2f} and {is_other[y > 0].mean():.2f}"
    '0.98 and 0.00'
    """

    def __init__(
        self, classifier: Any = None, *, alpha: float = 0.05, name: Any = "other"
    ) -> None:
        self.classifier = classifier
        self.alpha = alpha
        self.name = name

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the classifier to labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.
        y : array-like of shape (n_samples,)
            Class of every row, or the marker of the classifier for unlabeled rows.
        **fit_params : dict
            Further arguments of ``fit`` of the classifier.

        Returns
        -------
        self : OpenSetClassifier
            Fitted.
        """
        check_alpha(self.alpha)
        classifier = AutoLDA() if self.classifier is None else clone(self.classifier)
        classifier.fit(X, y, **fit_params)
        check_has_novelty(classifier)
        if self.name in classifier.classes_.tolist():
            raise ParameterError(
                f"name = {self.name!r} is a class in y: take another name for rows of "
                "none of the classes, and leave rows that are known to be such out of "
                "the fit.",
                parameter="name",
                value=self.name,
            )
        self.estimator_ = classifier
        self.classes_ = classifier.classes_
        self.n_features_in_ = classifier.n_features_in_
        return self

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of every row, or the name for none of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Classes and names.
        """
        novelty = np.asarray(in_memory(self.novelty(X)))
        predicted = np.asarray(in_memory(self.estimator_.predict(X)))
        return named(predicted, novelty > 1 - self.alpha, self.name)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the known classes, given that it is one of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        probabilities: Array = self.estimator_.predict_proba(X)
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that get their class, or the name where y has it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.
        y : array-like of shape (n_samples,)
            Classes and names.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        # As objects, because numbers and text may stand together.
        y = np.asarray(in_memory(y), dtype=object)
        predicted = self.predict(X).astype(object)
        check_lengths(X=predicted, y=y)
        return float(np.average(predicted == y, weights=in_memory(sample_weight)))

    def novelty(self, X: Any) -> Array:
        """``novelty`` of ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Higher for rows that are less like any known class.
        """
        check_is_fitted(self)
        novelty: Array = self.estimator_.novelty(X)
        return novelty


def named(predicted: AnyArray, is_none: AnyArray, name: Any) -> AnyArray:
    """Return classes with a name in place of those of some rows."""
    # Numbers and text together are objects: numbers must not become text.
    is_text = np.asarray(name).dtype.kind in "US"
    if is_text != (predicted.dtype.kind in "US"):
        return np.where(is_none, np.asarray(name, dtype=object), predicted)
    return np.where(is_none, name, predicted)


def check_alpha(alpha: Any) -> None:
    """Raise a ParameterError unless a share lies between 0 and 1."""
    if not (isinstance(alpha, Real) and 0 < float(alpha) < 1):
        raise ParameterError(
            say(
                "{@alpha} is the share of rows of known classes that may be called "
                "none of them, between 0 and 1, got {alpha!r}.",
                alpha=alpha,
            ),
            parameter="alpha",
            value=alpha,
        )


def check_has_novelty(classifier: Any) -> None:
    """Raise a ValueError if a fitted classifier cannot tell unknown classes."""
    if not hasattr(classifier, "novelty"):
        raise ValueError(
            f"{type(classifier).__name__} has no Gaussian classes and cannot tell rows "
            "of none of its classes: fit AutoLDA or AverageLDA."
        )
