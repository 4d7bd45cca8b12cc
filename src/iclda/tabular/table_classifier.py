"""A classifier of tables: columns of any kind in, predictions of `iclda fit` out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._estimators.auto import AutoLDA
from .._estimators.labels import UNLABELED, check_lengths, split_marker
from .._estimators.rows_reader import as_read
from .._messages import FitError, plural, quoted_list, warn
from .column_types import kinds_and_reasons, pipeline, preprocessing
from .frames import FrameReader, is_frame, to_pandas_frame
from .predict import refuse_other_types
from .readers import require_columns

# Where classifiers come from that know unlabeled rows.
_SEMI_SUPERVISED = ("iclda.", "sklearn.semi_supervised.")
# At most this many columns that are left out are named.
_MAX_NAMED_COLUMNS = 5


def _has(name: str) -> Callable[[Any], bool]:
    """Return a check whether the classifier inside has a method."""

    def check(self: Any) -> bool:
        # This raises the AttributeError that names what is missing.
        getattr(vars(self).get("pipeline_", [self._unfitted])[-1], name)
        return True

    return check


def _of_classifier(name: str) -> Any:
    """Return a property that is the attribute of the fitted classifier inside."""
    return property(lambda self: getattr(self.pipeline_[-1], name))


class TableClassifier(ClassifierMixin, BaseEstimator):
    """Fit a classifier to a frame of numbers, text, dates and empty cells.

    The columns become numbers as in `iclda fit`: see ``preprocessing``. All rows train
    the encoders, labeled or not. With the default, the predictions are those of
    `iclda fit` and `iclda predict` on the same table.

    Parameters
    ----------
    classifier : classifier, default=None
        It is cloned and fitted to the encoded rows. None is ``AutoLDA()``. It decides
        how ``y`` marks unlabeled rows: ``AutoLDA(unlabeled=None)`` takes -1 as a class.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted encoders and the fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    n_features_in_ : int
        Number of columns that are used.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names.
    error_ : float or None
        The error to expect. This and what follows is there if the classifier has it.
    error_interval_ : tuple of float or None
        Its 90 % interval.
    loss_ : float or None
        Brier score of the held-out labels.
    held_out_probabilities_ : ndarray of shape (n_labeled, n_classes) or None
        Probabilities of the classes of the labeled rows, by fits without their labels.

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

    @property
    def _unfitted(self) -> Any:
        return AutoLDA() if self.classifier is None else self.classifier

    error_ = _of_classifier("error_")
    error_interval_ = _of_classifier("error_interval_")
    loss_ = _of_classifier("loss_")
    held_out_probabilities_ = _of_classifier("held_out_probabilities_")

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Fit the encoders to all rows, and the classifier to what they make of them.

        Columns that are empty, and columns that nothing can be learned from, such as
        names, are left out with a warning.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Rows, labeled and unlabeled, without the target: a frame of pandas, whose
            index is ignored, or of polars.
        y : array-like of shape (n_samples,)
            Class of every row, or the marker of the classifier, by default -1. For
            classifiers of iclda None, NaN and pandas.NA mark unlabeled rows, too. One
            that takes labeled rows alone refuses all of these.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows for the classifier; encoders count every row once.

        Returns
        -------
        self : TableClassifier
            Fitted.
        """
        file = _reader_of(X)
        rows = _usable(to_pandas_frame(file.read(file.columns)))
        check_lengths(X=rows, y=y)
        model = pipeline(preprocessing(rows), self._unfitted)
        # The mark of unlabeled rows is the user's, not that of tables.
        model.steps[-1] = ("classify", clone(self._unfitted))
        _refuse_marks(model[-1], y)
        encoded = model[:-1].fit_transform(rows)
        model[-1].fit(encoded, y, **_given(sample_weight))
        self.pipeline_: Pipeline = model
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

    @available_if(_has("predict_proba"))
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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """``score`` of the classifier; those of iclda leave unlabeled rows out.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Rows with the columns of the fit, in any order; other columns are ignored.
        y : array-like of shape (n_samples,)
            Their classes, or the marker of the classifier.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        rows = self._known_columns(X)
        encoded = self.pipeline_[:-1].transform(rows)
        accuracy = self.pipeline_[-1].score(encoded, y, **_given(sample_weight))
        return float(accuracy)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

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
    if not is_frame(as_read(X)):
        raise TypeError(
            f"X must be a pandas or polars DataFrame, got {type(X).__name__}: "
            "pandas.DataFrame(X) makes one, and AutoLDA takes arrays as they are."
        )
    return FrameReader(X)


def _refuse_marks(classifier: Any, y: Any) -> None:
    """Raise a FitError if a supervised classifier is given unlabeled rows.

    With one other class, -1 is a class: -1 and 1 are common names.
    """
    parts = [classifier, *classifier.get_params().values()]
    kinds = [kind.__module__ for part in parts for kind in type(part).__mro__]
    if any(kind.startswith(_SEMI_SUPERVISED) for kind in kinds):
        return
    is_missing = split_marker(y, None)[1]
    classes, is_marker = split_marker(y, UNLABELED)
    if is_missing.any() or (is_marker.any() and len(np.unique(classes)) > 1):
        raise FitError(
            f"{type(classifier).__name__} takes labeled rows alone, and "
            f"{is_marker.sum()} of {plural(len(is_marker), 'row')} are unlabeled: y is "
            "-1, None or NaN. Leave them out or pass a classifier of iclda; if -1 is a "
            "class, give it another name."
        )


def _usable(rows: Any) -> Any:
    """Return the columns that can be learned from, and warn of the others."""
    # Without columns, the number of rows is not known.
    if len(rows.columns) and not len(rows):
        raise FitError("X must have rows to learn from, got a frame of 0 rows.")
    is_empty = rows.isna().all()
    kinds, _ = kinds_and_reasons(rows.loc[:, ~is_empty])
    left_out = [name for name in rows.columns if name not in kinds]
    if not kinds:
        raise FitError(
            "X must have a column to learn from, got "
            f"{quoted_list(left_out, _MAX_NAMED_COLUMNS) or 'no column'}. Add a column "
            "of numbers, of categories or of dates."
        )
    if left_out:
        warn(
            "Columns that are empty, or that nothing can be learned from, are left "
            f"out: {quoted_list(left_out, _MAX_NAMED_COLUMNS)}. Group texts that are "
            "nearly all different into categories."
        )
    return rows[list(kinds)]


def _given(sample_weight: Any) -> dict[str, Any]:
    """Return weights as arguments; not every classifier takes them."""
    return {} if sample_weight is None else {"sample_weight": sample_weight}
