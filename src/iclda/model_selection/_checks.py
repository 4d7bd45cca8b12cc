"""What splitters ask of their parameters and of the labels, with errors that say what to do."""

from __future__ import annotations

from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from .._core.types import AnyArray
from .._estimators.labels import plain
from ._groups import LabeledGroups


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or NumPy, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``."""
    if is_whole(value) and value >= least:
        return int(value)
    raise ValueError(f"{name} must be a whole number of at least {least}, got {plain(value)!r}.")


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_error_score(value: Any) -> float | str:
    """A number or "raise"."""
    if value == "raise" or (isinstance(value, Real) and not isinstance(value, bool)):
        return value
    raise ValueError(
        f'error_score must be a number, for example numpy.nan, or "raise", got {value!r}.'
    )


def check_lengths(X: Any, y: Any, groups: Any = None) -> None:
    """One label, and one group if there are any, for every row."""
    counts = {"X": (X, "rows"), "y": (y, "labels"), "groups": (groups, "entries")}
    known = {name: (_num_samples(v), noun) for name, (v, noun) in counts.items() if v is not None}
    if len({n for n, _ in known.values()}) > 1:
        told = ", ".join(f"{name} has {n} {noun}" for name, (n, noun) in known.items())
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {told}.")


def check_test_size(value: Any) -> float:
    """A share between 0 and 1, or a number of rows."""
    is_number_of_rows = is_whole(value) and value >= 1
    is_share = isinstance(value, Real) and 0 < float(value) < 1
    if is_number_of_rows or is_share:
        return plain(value)
    raise ValueError(
        "test_size must be a share of the labeled rows between 0 and 1, for example 0.2, or their "
        f"number, a whole number of at least 1; got {plain(value)!r}."
    )


def n_tested_of(test_size: float, n_labeled: int, n_classes: int) -> int:
    """Number of labeled rows to test. One given as such must do for every class on either side."""
    most = n_labeled - n_classes
    if not is_whole(test_size):
        return ceil(test_size * n_labeled)
    if n_classes <= test_size <= most:
        return int(test_size)
    raise ValueError(
        f"test_size={test_size} of {n_labeled} labeled rows must leave a row of each of "
        f"{n_classes} classes on either side: pass {n_classes} to {most}, or label more rows."
    )


def require_rows_for_folds(classes: AnyArray, counts: AnyArray, n_splits: int) -> None:
    """Every class has a labeled row for every fold."""
    most = int(counts.min())
    if most < n_splits:
        way_out = f"Pass n_splits={most} or less, label" if most >= 2 else "Label"
        raise ValueError(
            f"n_splits={n_splits} folds need {n_splits} labeled rows of every class, one to test "
            f"in each; {_few(classes, counts, n_splits)}. {way_out} more rows, or mark the rows "
            "of a class as unlabeled to do without it."
        )


def require_rows_for_test(classes: AnyArray, counts: AnyArray) -> None:
    """Every class has a labeled row to train on and another one to test."""
    if counts.min() < 2:
        raise ValueError(
            "A split needs 2 labeled rows of every class, one to train on and one to test; "
            f"{_few(classes, counts, 2)}. Label more rows, or mark the rows of a class as "
            "unlabeled to do without it."
        )


def _few(classes: AnyArray, counts: AnyArray, n_needed: int) -> str:
    few = np.flatnonzero(counts < n_needed)
    return ", ".join(f"class {plain(classes[k])!r} has {counts[k]}" for k in few)


def require_two_groups(classes: AnyArray, groups: LabeledGroups) -> None:
    """Every class is labeled in two groups, one to train on while the other is tested."""
    n_groups = (groups.counts > 0).sum(axis=0)
    if n_groups.min() >= 2:
        return
    k = int(n_groups.argmin())
    only = plain(groups.names[np.argmax(groups.counts[:, k] > 0)])
    raise ValueError(
        f"All {groups.counts[:, k].sum()} labeled rows of class {plain(classes[k])!r} are in group "
        f"{only!r}, so that none is left to train on when it is tested: label rows of the class in "
        "another group, or split without groups."
    )


def require_groups_for_folds(groups: LabeledGroups, n_splits: int) -> None:
    """Every fold can have a group of its own."""
    n_groups = len(groups.names)
    if n_groups < n_splits:
        raise ValueError(
            f"n_splits={n_splits} folds need at least {n_splits} groups with labeled rows, got "
            f"{n_groups}: pass n_splits={n_groups} or less, or label rows of more groups."
        )


def stranded(groups: LabeledGroups, what: str, other: str) -> ValueError:
    """The error for groups of which every draw takes all labeled rows of some class."""
    return ValueError(
        f"No way was found to test {what} in whole groups ({len(groups.names)} with labeled rows) "
        "without taking all labeled rows of some class from training: label rows of the rare "
        f"classes in more groups, or try {other}."
    )
