"""The error on new rows that labels drawn at random show.

Rows that were chosen because their labels are informative are no sample of all rows:
their labels train the fits, and only labels of rows drawn at random test them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from .._core import AnyArray
from .._messages import plural
from .._statistics import LEAST_TESTED, ErrorEstimate, error_interval
from .checks import first_copies
from .table import Table

# Folds into which labels drawn at random are divided.
_N_FOLDS = 5


def why_withheld(table: Table) -> str:
    """Return why labels drawn at random do not show the error; empty if they do."""
    n_random = int(table.is_random.sum())
    if n_random >= LEAST_TESTED:
        return ""
    n_labels = int(table.is_labeled.sum())
    return (
        f"it is measured by at least {LEAST_TESTED} labels of rows drawn at random, "
        f"and there are {n_random} among {plural(n_labels, 'label')}. `iclda ask` "
        "draws such rows by its option test"
    )


def random_estimate(table: Table, is_wrong: AnyArray) -> ErrorEstimate:
    """Error on new rows, by ``wrong_on_random``.

    The interval is that of Clopper and Pearson. Its lower end allows for the labels
    that the fits lack: errors fall at most like the root of their number.
    """
    n_random = len(is_wrong)
    n_labels = int(table.is_labeled.sum())
    low, high = error_interval(int(is_wrong.sum()), n_random)
    low *= float(np.sqrt(1 - n_random / _N_FOLDS / n_labels))
    return ErrorEstimate(float(is_wrong.mean()), low, high, n_random)


def wrong_on_random(
    model: Any, table: Table, is_training: AnyArray | None = None
) -> AnyArray:
    """Which labels drawn at random are predicted wrongly by fits without them.

    Every fit has all chosen labels and, in folds, the other random ones;
    ``is_training`` are the rows whose labels fits may use. Without two classes to fit,
    the only one is predicted. Of a row that occurs several times the first copy is
    tested, by fits to none of them.
    """
    first = first_copies(table.features, table.labels)
    is_first = first == np.arange(len(first))
    tested = np.flatnonzero(table.is_random & is_first)
    folds = np.random.default_rng(0).permutation(len(tested)) % _N_FOLDS
    is_wrong = np.empty(len(tested), dtype=bool)
    for k in range(_N_FOLDS):
        fold = tested[folds == k]
        labels = table.labels.copy()
        labels[np.isin(first, fold)] = None
        if is_training is not None:
            labels[~is_training] = None
        classes = {label for label in labels if label is not None}
        predicted = np.full(len(fold), next(iter(classes), None), dtype=object)
        if len(classes) > 1:
            with warnings.catch_warnings():
                # The fit to all labels repeats what matters.
                warnings.simplefilter("ignore")
                fitted = clone(model).fit(table.features, labels)
                predicted = fitted.predict(table.features.iloc[fold])
        is_wrong[folds == k] = predicted != table.labels[fold]
    return is_wrong
