"""Labels of rows: the marker of unlabeled rows, masked labels, and splits with fewer labels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core.types import AnyArray
from .._estimators.labels import (
    UNLABELED,
    Labels,
    encode_labels,
    is_missing,
    plain,
    split_marker,
)

LARGEST_SEED = 2**31 - 1
_COMMON_MARKER = -1  # that of scikit-learn's semi-supervised classifiers


def marker_of(estimator: Any, unlabeled: Any = "auto") -> Any:
    """Return the marker given, or for "auto" the parameter ``unlabeled`` of the estimator."""
    if not isinstance(unlabeled, str) or unlabeled != "auto":
        return unlabeled
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    markers = [value for name, value in parameters.items() if name.split("__")[-1] == "unlabeled"]
    distinct = {None if is_missing(marker) else marker: marker for marker in markers}
    if len(distinct) > 1:
        first, second, *_ = map(plain, distinct.values())
        raise ValueError(
            f"{type(estimator).__name__} holds classifiers with different markers, "
            f"unlabeled={first!r} and unlabeled={second!r}: give them the same one, or pass "
            "unlabeled= to say which is meant."
        )
    return markers[0] if markers else _COMMON_MARKER


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer, of Python or NumPy, but not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``, or raise ValueError."""
    if is_whole(value) and value >= least:
        return int(value)
    raise ValueError(f"{name} must be a whole number of at least {least}, got {plain(value)!r}.")


def draw_seed(random_state: Any) -> int:
    """Draw a seed with which several calls draw the same random numbers."""
    return int(check_random_state(random_state).randint(LARGEST_SEED))


def mask_labels(
    y: Any,
    n_labeled: int,
    min_per_class: int = 1,
    random_state: Any = None,
    *,
    unlabeled: Any = -1,
) -> AnyArray:
    """Keep the labels of some rows and mark all others as unlabeled.

    ``min_per_class`` rows of every class are drawn first, the others from all rows alike. For the
    same ``random_state``, the rows that keep their labels with a smaller ``n_labeled`` keep them
    with a larger one.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class of every row; rows that carry the marker already stay as they are.
    n_labeled : int
        Number of rows that keep their labels.
    min_per_class : int, default=1
        Number of them guaranteed to every class.
    random_state : int, RandomState instance or None, default=None
        An int makes every call choose the same rows.
    unlabeled : object, default=-1
        Marker to write, the one that the classifier is given. None or NaN: a missing y.

    Returns
    -------
    y_masked : ndarray of shape (n_samples,)
        A copy in the dtype of y if it holds the marker too; else in a wider one: floats for
        integers with NaN, objects for text with a marker that is no text.

    Examples
    --------
    >>> from iclda.model_selection import mask_labels
    >>> mask_labels([0, 0, 0, 1, 1, 1], n_labeled=3, random_state=0)
    array([-1,  0,  0, -1, -1,  1])
    >>> mask_labels(["cat", "cat", "dog", "dog"], 2, random_state=0, unlabeled="?")
    array(['?', 'cat', 'dog', '?'], dtype='<U3')
    """
    labels = encode_labels(y, unlabeled)
    check_count("min_per_class", min_per_class, 1)
    check_count("n_labeled", n_labeled, 1)
    order = labeling_order(labels, min_per_class, check_random_state(random_state))
    least = min_per_class * len(labels.classes)
    if not least <= n_labeled <= len(order):
        raise ValueError(
            f"n_labeled={n_labeled} must lie between {least} (min_per_class={min_per_class} of "
            f"each of {len(labels.classes)} classes) and {len(order)}, the number of labeled rows."
        )
    is_kept = np.zeros(len(labels.codes), dtype=bool)
    is_kept[order[:n_labeled]] = True
    return write_marker(y, is_kept, unlabeled)


def labeling_order(
    labels: Labels, min_per_class: int, rng: np.random.RandomState, rows: Any = slice(None)
) -> AnyArray:
    """Return labeled rows in random order, ``min_per_class`` rows of every class first.

    They are given by their places in ``rows``, the rows to choose from.
    """
    codes = labels.codes[rows]
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(labels.classes))
    rarest = int(counts.argmin())
    if counts[rarest] < min_per_class:
        raise ValueError(
            f"min_per_class={min_per_class}, but only {counts[rarest]} labeled rows of class "
            f"{plain(labels.classes[rarest])!r} can be trained on: pass a smaller min_per_class, "
            "or label more rows of it."
        )
    order = rng.permutation(np.flatnonzero(codes != UNLABELED))
    rank_in_class = np.empty(len(order), dtype=int)
    for k, count in enumerate(counts):
        rank_in_class[codes[order] == k] = np.arange(count)
    return order[np.argsort(rank_in_class >= min_per_class, kind="stable")]


def write_marker(y: Any, is_kept: AnyArray, unlabeled: Any) -> AnyArray:
    """Return y where it is kept, and the marker elsewhere; only labeled rows can be kept.

    The dtype is the narrowest that holds both unchanged, or object if there is none.
    """
    present, is_marker = split_marker(y, unlabeled)
    marker, dtype = storable(unlabeled), np.dtype(object)
    if (present.dtype.kind in "US") == isinstance(marker, (str, bytes)):
        common = np.result_type(present.dtype, np.min_scalar_type(marker))
        is_lossless = (present.astype(common).astype(present.dtype) == present).all()
        dtype = common if is_lossless else dtype
    masked = np.full(len(is_kept), marker, dtype=dtype)
    masked[is_kept] = present[is_kept[~is_marker]]
    return masked


def storable(marker: Any) -> Any:
    """Return the marker, but None for pandas.NA, with which no array can be compared."""
    return None if type(marker).__name__ == "NAType" else marker


@dataclass(frozen=True)
class OrderedSplit:
    """Indices of the rows of a split.

    ``labeled`` are the labeled training rows in the order in which they get their labels, ``train``
    all training rows in random order, ``test`` the labeled rows to test.
    """

    labeled: AnyArray
    train: AnyArray
    test: AnyArray

    def take(self, n_labeled: int | None, n_unlabeled: int | None) -> tuple[AnyArray, AnyArray]:
        """Return the rows to train on, ascending, and which of them keep their labels; None: all.

        The rows of smaller numbers are a subset of those of larger ones. Rows whose labels are not
        used count as unlabeled.
        """
        labeled = self.labeled[:n_labeled]
        unlabeled = self.train[~np.isin(self.train, labeled)][:n_unlabeled]
        rows = np.sort(np.concatenate([labeled, unlabeled]))
        return rows, np.isin(rows, labeled)


def order_split(
    labels: Labels, train: AnyArray, test: AnyArray, min_per_class: int, seed: int
) -> OrderedSplit:
    """Put the training rows of a split in random order, and drop unlabeled test rows."""
    rng = np.random.RandomState(seed)
    labeled = train[labeling_order(labels, min_per_class, rng, train)]
    return OrderedSplit(labeled, rng.permutation(train), test[labels.is_labeled[test]])
