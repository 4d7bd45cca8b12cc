"""A classifier of tables: columns of any kind in, predictions of `iclda fit` out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._estimators.auto import AutoLDA
from .._estimators.labels import check_lengths
from .._messages import FitError, quoted_list, warn
from .cells import require_for_tables
from .column_types import kinds_and_reasons, pipeline, preprocessing
from .frames import FrameReader, to_pandas_frame
from .predict import refuse_other_types
from .readers import require_columns

# At most this many columns that are left out are named.
_MAX_NAMED_COLUMNS = 5


class TableClassifier(ClassifierMixin, BaseEstimator):
    """Fit a classifier to a pandas frame of numbers, text, dates and empty cells.

    The columns become numbers as in `iclda fit`: see ``preprocessing``. All rows train
    the encoders, labeled or not. With the default, the predictions are those of
    `iclda fit` and `iclda predict` on the same table.

    Parameters
    ----------
    classifier : classifier, default=None
        It is cloned and fitted to the encoded rows. None is ``AutoLDA()``.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted encoders and the fitted classifier. ``save_model`` takes it.
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    n_features_in_ : int
        Number of columns that are used.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from iclda.tabular import TableClassifier
    >>> table = pd.DataFrame(
    ...     {"weight": [1.0, 1.5, None, 8.0, 9.0, 7.5], "color": list("rrrggg")}
    ... )
    >>> y = ["cat", "cat", None, "dog", "dog", None]
    >>> TableClassifier().fit(table, y).predict(table).tolist()
    ['cat', 'cat', 'cat', 'dog', 'dog', 'dog']
    """

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the encoders to all rows, and the classifier to what they make of them.

        Columns that are empty, and columns that nothing can be learned from, such as
        names, are left out with a warning.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Rows, labeled and unlabeled, without the target. The index is ignored.
        y : array-like of shape (n_samples,)
            Class of every row; None, NaN, pandas.NA or -1 where it is unknown.

        Returns
        -------
        self : TableClassifier
            Fitted.
        """
        file = _reader_of(X)
        rows = _usable(to_pandas_frame(file.read(file.columns)))
        labels = _labels(y)
        check_lengths(X=rows, y=labels)
        classifier = AutoLDA() if self.classifier is None else self.classifier
        model = pipeline(preprocessing(rows), classifier)
        self.pipeline_: Pipeline = model.fit(rows, labels)
        self.classes_ = model.classes_
        self.n_features_in_ = rows.shape[1]
        self.feature_names_in_ = np.array(rows.columns, dtype=object)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Predict the class of every row.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Rows with the columns of the fit, in any order; other columns are ignored.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
            Classes.
        """
        rows = self._known_columns(X)
        return np.asarray(self.pipeline_.predict(rows))

    def predict_proba(self, X: Any) -> Array:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Rows with the columns of the fit, in any order; other columns are ignored.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        rows = self._known_columns(X)
        return np.asarray(self.pipeline_.predict_proba(rows))

    def _known_columns(self, X: Any) -> Any:
        """Return the columns of the fit as a frame; ValueError if one is missing."""
        check_is_fitted(self)
        file = _reader_of(X)
        names = self.feature_names_in_.tolist()
        require_columns(file, names, ", which the model was fitted to")
        rows = to_pandas_frame(file.read(names))
        kinds: dict[str, str] = {}
        for _, encoder, _ in self.pipeline_[0].transformers_:
            kinds |= getattr(encoder, "column_kinds_", {})
        refuse_other_types(rows, kinds, file)
        return rows


def _reader_of(X: Any) -> FrameReader:
    """Return the reader of a frame; TypeError if it is none."""
    if not hasattr(X, "iloc"):
        raise TypeError(
            f"X must be a pandas DataFrame, got {type(X).__name__}: "
            "pandas.DataFrame(X) makes one, and AutoLDA takes arrays as they are."
        )
    return FrameReader(X)


def _usable(rows: Any) -> Any:
    """Return the columns that can be learned from, and warn of the others."""
    is_empty = rows.isna().all()
    kinds, _ = kinds_and_reasons(rows.loc[:, ~is_empty])
    left_out = [name for name in rows.columns if name not in kinds]
    if not kinds:
        raise FitError(
            "X has no column to learn from: nothing can be learned from "
            f"{quoted_list(left_out, _MAX_NAMED_COLUMNS)}. Add a column of numbers, of "
            "categories or of dates."
        )
    if left_out:
        warn(
            "Columns that are empty, or that nothing can be learned from, are left "
            f"out: {quoted_list(left_out, _MAX_NAMED_COLUMNS)}. Group texts that are "
            "nearly all different into categories."
        )
    return rows[list(kinds)]


def _labels(y: Any) -> AnyArray:
    """Return the classes as objects, None for unlabeled rows."""
    pandas = require_for_tables("pandas")
    labels = pandas.Series(list(y), dtype=object).to_numpy(copy=True)
    labels[pandas.isna(labels)] = None
    labels[labels == -1] = None
    return np.asarray(labels)
