"""The error to expect on new rows, as labels of rows drawn at random show it.

Rows that were chosen because their labels are informative are not a sample of all rows:
their labels train the fits, and only labels of rows drawn at random test them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from .._core import AnyArray
from .._error_estimate import (
    MIN_TESTED_ROWS,
    ErrorEstimate,
    estimate_error_of_all_labels,
)
from .._held_out import NO_FOLD, predict_held_out, shuffled_folds
from .._messages import FitError, Text, plural, say
from .checks import first_copies
from .table import Table

# The labels drawn at random are divided into this many folds.
_N_FOLDS = 5
_HOW_TO_DRAW = say(". To draw such rows, use `iclda ask` with {@test=50}")


def why_withheld(table: Table, way_out: str = _HOW_TO_DRAW) -> str:
    """Return why labels drawn at random do not show the error; empty if they do."""
    n_random = int(table.is_random.sum())
    if n_random >= MIN_TESTED_ROWS:
        return ""
    n_labels = int(table.is_labeled.sum())
    return Text(
        f"it takes at least {MIN_TESTED_ROWS} labels of rows drawn at random, and "
        f"there are {n_random} among {plural(n_labels, 'label')}",
        way_out,
    )


def random_estimate(table: Table, is_wrong: AnyArray) -> ErrorEstimate:
    """Return the error to expect on new rows, given what ``wrong_on_random`` found."""
    n_labels = int(table.is_labeled.sum())
    return estimate_error_of_all_labels(is_wrong, n_labels, _N_FOLDS)


def wrong_on_random(
    model: Any, table: Table, is_training: AnyArray | None = None
) -> AnyArray:
    """Return which labels drawn at random are predicted wrongly by fits without them.

    Every fit has all chosen labels and the random ones of the other folds, as far as
    they are labels of rows ``is_training`` (None: all). If these have a single class,
    it is predicted. Of a row that occurs several times only the first copy is tested,
    by fits without the labels of any copy.
    """
    first_copy = first_copies(table.features, table.labels)
    is_first_copy = first_copy == np.arange(len(first_copy))
    is_tested = table.is_random & is_first_copy
    n_tested = int(is_tested.sum())
    # The fold of every row; rows that are not tested have none.
    folds = np.full(len(first_copy), NO_FOLD)
    rng = np.random.default_rng(0)
    folds[is_tested] = shuffled_folds(n_tested, _N_FOLDS, rng)

    def predict(train: AnyArray, test: AnyArray) -> AnyArray:
        # The rows to test stay in the fit, unlabeled, and so do their copies: ``train``
        # is not needed.
        labels = table.labels.copy()
        is_copy_of_test = np.isin(first_copy, test)
        labels[is_copy_of_test] = None
        if is_training is not None:
            labels[~is_training] = None
        classes = {label for label in labels if label is not None}
        if len(classes) < 2:
            # No fit is possible. Without any label the prediction is None, and wrong.
            only_class = next(iter(classes), None)
            return np.full(len(test), only_class, dtype=object)
        fitted = clone(model).fit(table.features, labels)
        test_features = table.features.iloc[test]
        return np.asarray(fitted.predict(test_features), dtype=object)

    predicted = predict_held_out(predict, folds)
    if isinstance(predicted, FitError):
        raise predicted
    return np.asarray(predicted != table.labels[is_tested], dtype=bool)
