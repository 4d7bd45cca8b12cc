"""Which rows have labels: the marker, labels taken away, and the order in which rows get them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
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
_COMMON_MARKER = -1  # of scikit-learn's own semi-supervised classifiers


class Marker(Enum):
    """Placeholder for a marker: None and any text can be markers themselves."""

    OF_ESTIMATOR = "of the estimator"

    def __repr__(self) -> str:
        return f"<{self.value}>"


def marker_of(estimator: Any, unlabeled: Any = Marker.OF_ESTIMATOR) -> Any:
    """The marker given, or else the parameter ``unlabeled`` found in the estimator."""
    if unlabeled is not Marker.OF_ESTIMATOR:
        return unlabeled
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    found = [value for name, value in parameters.items() if name.split("__")[-1] == "unlabeled"]
    if not found:
        return _COMMON_MARKER
    for other in found[1:]:
        is_same = is_missing(found[0]) and is_missing(other)
        if not is_same and (is_missing(found[0]) or is_missing(other) or found[0] != other):
            raise ValueError(
                f"{type(estimator).__name__} holds classifiers with different markers, "
                f"unlabeled={plain(found[0])!r} and unlabeled={plain(other)!r}: give them the same "
                "one, or pass unlabeled= to say which is meant."
            )
    return found[0]


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or NumPy, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``."""
    if is_whole(value) and value >= least:
        return int(value)
    raise ValueError(f"{name} must be a whole number of at least {least}, got {plain(value)!r}.")


def check_seed(random_state: Any) -> np.random.RandomState:
    """A generator of random numbers; ValueError for what gives none."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, got "
            f"{random_state!r}."
        ) from None


def draw_seed(random_state: Any) -> int:
    """A seed, so that several calls can draw the same random numbers."""
    return int(check_seed(random_state).randint(LARGEST_SEED))


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
    counts = np.bincount(labels.codes[labels.is_labeled])
    rarest = int(counts.argmin())
    if counts[rarest] < min_per_class:
        raise ValueError(
            f"min_per_class={min_per_class}, but class {plain(labels.classes[rarest])!r} has "
            f"{counts[rarest]} labeled rows: pass min_per_class={counts[rarest]} or less."
        )
    least, most = min_per_class * len(counts), int(counts.sum())
    if not least <= n_labeled <= most:
        raise ValueError(
            f"n_labeled={n_labeled} must lie between {least} (min_per_class={min_per_class} of "
            f"each of {len(counts)} classes) and {most}, the number of labeled rows."
        )
    order = labeling_order(labels.codes, min_per_class, check_seed(random_state))
    is_kept = np.zeros(len(labels.codes), dtype=bool)
    is_kept[order[:n_labeled]] = True
    return write_marker(y, is_kept, unlabeled)


def labeling_order(codes: AnyArray, min_per_class: int, rng: np.random.RandomState) -> AnyArray:
    """Labeled rows in the order in which they get their labels: each class's share first."""
    order = rng.permutation(np.flatnonzero(codes != UNLABELED))
    rank_in_class = np.empty(len(order), dtype=int)
    for k in np.unique(codes[order]):
        is_class = codes[order] == k
        rank_in_class[is_class] = np.arange(is_class.sum())
    return order[np.argsort(rank_in_class >= min_per_class, kind="stable")]


def write_marker(y: Any, is_kept: AnyArray, unlabeled: Any) -> AnyArray:
    """y where it is kept, and the marker elsewhere; only labeled rows can be kept.

    The dtype is the narrowest that holds both unchanged; objects if there is none.
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
    """The marker, with None for pandas.NA, which no array can be compared with."""
    return None if type(marker).__name__ == "NAType" else marker


@dataclass(frozen=True)
class OrderedSplit:
    """Rows of a split, as indices: labeled training rows in the order in which they get labels;
    all training rows in random order; test rows.
    """

    labeled: AnyArray
    train: AnyArray
    test: AnyArray

    def take(self, n_labeled: int | None, n_unlabeled: int | None) -> tuple[AnyArray, AnyArray]:
        """Rows to train on in ascending order, and which of them keep their labels; None: all.

        Rows of smaller numbers are among those of larger ones. Rows whose labels are not used are
        unlabeled rows like the others.
        """
        labeled = self.labeled[:n_labeled]
        unlabeled = self.train[~np.isin(self.train, labeled)][:n_unlabeled]
        rows = np.sort(np.concatenate([labeled, unlabeled]))
        return rows, np.isin(rows, labeled)


def order_split(
    labels: Labels, train: AnyArray, test: AnyArray, min_per_class: int, seed: int
) -> OrderedSplit:
    """A split with its training rows in random order; unlabeled rows are not tested."""
    rng = np.random.RandomState(seed)
    codes = labels.codes[train]
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(labels.classes))
    k = int(counts.argmin())
    if counts[k] < min_per_class:
        raise ValueError(
            f"min_per_class={min_per_class}, but a split trains on {counts[k]} labeled rows of "
            f"class {plain(labels.classes[k])!r}: pass a smaller min_per_class or a cv that tests "
            "fewer rows, or label more rows of it."
        )
    labeled = train[labeling_order(codes, min_per_class, rng)]
    return OrderedSplit(labeled, rng.permutation(train), test[labels.is_labeled[test]])
