"""Masked labels, and folds that train on unlabeled rows and test labeled rows only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedGroupKFold
from sklearn.utils import check_random_state

from .._core import AnyArray
from .._estimators.labels import (
    UNLABELED,
    Labels,
    check_lengths,
    encode_labels,
    is_missing,
    plain,
    split_marker,
)
from .._held_out import stratified_folds

LARGEST_SEED = 2**31 - 1
# The marker of scikit-learn's semi-supervised classifiers.
_COMMON_MARKER = -1
# The code of an unlabeled row without a group.
_NO_GROUP = -1


def marker_of(estimator: Any, unlabeled: Any = "auto") -> Any:
    """Return the marker of unlabeled rows.

    "auto" stands for the parameter ``unlabeled`` of the estimator.
    """
    if not isinstance(unlabeled, str) or unlabeled != "auto":
        return unlabeled
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    # Steps of a pipeline have parameters like "lda__unlabeled".
    markers = [
        value
        for name, value in parameters.items()
        if name.split("__")[-1] == "unlabeled"
    ]
    # None and NaN both mark missing values.
    distinct = {None if is_missing(marker) else marker: marker for marker in markers}
    if len(distinct) > 1:
        first, second, *_ = map(plain, distinct.values())
        raise ValueError(
            f"{type(estimator).__name__} holds classifiers with different markers, "
            f"unlabeled={first!r} and unlabeled={second!r}: give them the same one, or "
            "pass unlabeled= to say which is meant."
        )
    return markers[0] if markers else _COMMON_MARKER


def final_step(estimator: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the classifier at the end of a pipeline or search.

    Also return the transformation of rows before it.
    """
    if hasattr(estimator, "best_estimator_"):
        return final_step(estimator.best_estimator_)
    if not hasattr(estimator, "steps"):
        return estimator, lambda X: X
    # The last step may be a pipeline or a search itself.
    _, last = estimator.steps[-1]
    final, inner = final_step(last)
    if len(estimator.steps) == 1:
        return final, inner
    before = estimator[:-1]
    return final, lambda X: inner(before.transform(X))


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer, of Python or NumPy, but not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``, or raise ValueError."""
    if is_whole(value) and value >= least:
        return int(value)
    raise ValueError(
        f"{name} must be a whole number of at least {least}, got {plain(value)!r}."
    )


def mask_labels(
    y: Any,
    n_labeled: int,
    min_per_class: int = 1,
    random_state: Any = None,
    *,
    unlabeled: Any = -1,
) -> AnyArray:
    """Keep the labels of some rows and mark all others as unlabeled.

    ``min_per_class`` rows of every class are drawn first, the others from all rows
    alike. For the same ``random_state``, the rows that keep their labels with a smaller
    ``n_labeled`` also keep them with a larger one.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class of every row; rows that already carry the marker stay as they are.
    n_labeled : int
        Number of rows that keep their labels.
    min_per_class : int, default=1
        Number of them guaranteed to every class.
    random_state : int, RandomState instance or None, default=None
        An int makes every call choose the same rows.
    unlabeled : object, default=-1
        Marker to write, that of the classifier. None or NaN writes a missing y.

    Returns
    -------
    y_masked : ndarray of shape (n_samples,)
        A copy, in the dtype of y if that can hold the marker. Otherwise in a wider one:
        floats for integers with NaN, objects for text with a marker that is not text.

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
            f"n_labeled={n_labeled} must lie between {least} "
            f"(min_per_class={min_per_class} of each of {len(labels.classes)} classes) "
            f"and {len(order)}, the number of labeled rows."
        )
    # Rows earlier in the order keep their labels for every larger number, too.
    is_kept = np.zeros(len(labels.codes), dtype=bool)
    is_kept[order[:n_labeled]] = True
    return write_marker(y, is_kept, unlabeled)


def labeling_order(
    labels: Labels,
    min_per_class: int,
    rng: np.random.RandomState,
    rows: Any = slice(None),
) -> AnyArray:
    """Return labeled rows in random order, ``min_per_class`` of every class first.

    They are given by their positions in ``rows``, the rows to choose from.
    """
    codes = labels.codes[rows]
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(labels.classes))
    rarest = int(counts.argmin())
    if counts[rarest] < min_per_class:
        raise ValueError(
            f"min_per_class={min_per_class}, but only {counts[rarest]} labeled rows of "
            f"class {plain(labels.classes[rarest])!r} can be trained on: pass a "
            "smaller min_per_class, or label more rows of it."
        )
    order = rng.permutation(np.flatnonzero(codes != UNLABELED))
    rank_in_class = np.empty(len(order), dtype=int)
    for k, count in enumerate(counts):
        rank_in_class[codes[order] == k] = np.arange(count)
    # A stable sort moves guaranteed rows to the front, and keeps the order otherwise.
    is_further = rank_in_class >= min_per_class
    return order[np.argsort(is_further, kind="stable")]


def write_marker(y: Any, is_kept: AnyArray, unlabeled: Any) -> AnyArray:
    """Return y where it is kept, and the marker elsewhere.

    Only labeled rows can be kept. The dtype is the narrowest that holds both unchanged,
    or object if there is none.
    """
    present, is_marker = split_marker(y, unlabeled)
    marker = storable(unlabeled)
    masked = np.full(len(is_kept), marker, dtype=_common_dtype(present, marker))
    # ``present`` has the classes of the labeled rows alone.
    is_kept_of_present = is_kept[~is_marker]
    masked[is_kept] = present[is_kept_of_present]
    return masked


def _common_dtype(present: AnyArray, marker: Any) -> np.dtype[Any]:
    """Return the narrowest dtype that holds classes and marker unchanged."""
    is_text = present.dtype.kind in "US"
    if is_text != isinstance(marker, (str, bytes)):
        # NumPy would turn a number into text.
        return np.dtype(object)
    common = np.result_type(present.dtype, np.min_scalar_type(marker))
    # Large integers change if they become floats.
    restored = present.astype(common).astype(present.dtype)
    return common if (restored == present).all() else np.dtype(object)


def storable(marker: Any) -> Any:
    """Return the marker; None for pandas.NA, with which no array can be compared."""
    return None if type(marker).__name__ == "NAType" else marker


@dataclass(frozen=True)
class OrderedSplit:
    """Indices of the rows of a split.

    ``labeled`` are the labeled training rows in the order in which they get their
    labels, ``train`` all training rows in random order, ``test`` the labeled rows to
    test.
    """

    labeled: AnyArray
    train: AnyArray
    test: AnyArray

    def take(
        self, n_labeled: int | None, n_unlabeled: int | None
    ) -> tuple[AnyArray, AnyArray]:
        """Return the rows to train on, ascending, and which of them keep their labels.

        None stands for all rows. The rows of smaller numbers are a subset of those of
        larger ones. Rows whose labels are not used count as unlabeled.
        """
        labeled = self.labeled[:n_labeled]
        others = self.train[~np.isin(self.train, labeled)]
        unlabeled = others[:n_unlabeled]
        rows = np.sort(np.concatenate([labeled, unlabeled]))
        return rows, np.isin(rows, labeled)

    def sizes(self, n_labeled: int | None, n_unlabeled: int | None) -> tuple[int, int]:
        """Return how many labeled and unlabeled rows ``take`` returns."""
        n_used = len(self.labeled[:n_labeled])
        n_others = len(self.train) - n_used
        if n_unlabeled is None:
            return n_used, n_others
        return n_used, min(n_unlabeled, n_others)


def order_split(
    labels: Labels, train: AnyArray, test: AnyArray, min_per_class: int, seed: int
) -> OrderedSplit:
    """Put training rows in random order, and leave unlabeled test rows out."""
    rng = np.random.RandomState(seed)
    order = labeling_order(labels, min_per_class, rng, train)
    return OrderedSplit(
        labeled=train[order],
        train=rng.permutation(train),
        test=test[labels.is_labeled[test]],
    )


class SemiSupervisedKFold(BaseCrossValidator):
    """K folds of the labeled rows; unlabeled rows train in every split.

    Unlabeled rows are never tested. In every repeat each labeled row is tested exactly
    once. Folds are stratified: without groups, two folds differ by at most one row, in
    all and in every class, and every fold tests every class. The folds depend on the
    labeled rows and their order alone, so that scores with more or fewer unlabeled rows
    can be compared split by split.

    With ``groups``, folds are those of scikit-learn's ``StratifiedGroupKFold`` for the
    labeled rows: the labeled rows of a group fall into one fold, and classes are spread
    as evenly as whole groups allow. Every class is trained on in every split, but a
    fold may test no row of a rare class. Unlabeled rows of the groups that a split
    tests do not train in it: they would show what these groups look like.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. Every class needs that many labeled rows.
    n_repeats : int, default=1
        Number of times that the rows are divided into folds.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y, that of the classifier. A missing y, None or
        NaN, is always unlabeled.
    random_state : int, RandomState instance or None, default=None
        An int makes every call of ``split`` give the same folds.

    Examples
    --------
    >>> from iclda.model_selection import SemiSupervisedKFold
    >>> y = ["a", None, "b", "a", None, "b"]
    >>> cv = SemiSupervisedKFold(2, unlabeled=None, random_state=0)
    >>> for train, test in cv.split(y, y):
    ...     print(train, test)
    [0 1 2 4] [3 5]
    [1 3 4 5] [0 2]
    """

    # Groups reach split without a request, as in scikit-learn's splitters for groups.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        n_repeats: int = 1,
        unlabeled: Any = -1,
        random_state: Any = None,
    ) -> None:
        self.n_splits = check_count("n_splits", n_splits, 2)
        self.n_repeats = check_count("n_repeats", n_repeats, 1)
        self.unlabeled = unlabeled
        self.random_state = random_state

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Generate indices of the rows to train on and of the rows to test.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only their number matters.
        y : array-like of shape (n_samples,)
            Class of every row, or the marker ``unlabeled``.
        groups : array-like of shape (n_samples,), default=None
            Group of every row. Labeled rows of one group are never on both sides. An
            unlabeled row trains unless its group is tested; one without a group (None
            or NaN) always trains.

        Yields
        ------
        train : ndarray
            Indices of the rows to train on, labeled and unlabeled, in ascending order.
        test : ndarray
            Indices of the labeled rows to test, in ascending order.
        """
        check_lengths(X=X, y=y, groups=groups)
        labels = encode_labels(y, self.unlabeled)
        labeled = np.flatnonzero(labels.is_labeled)
        rng = check_random_state(self.random_state)
        codes = labels.labeled_codes
        if groups is None:
            _check_class_sizes(labels, self.n_splits)
            # Every row is a group of its own.
            group_codes = np.arange(len(labels.codes))
        else:
            group_codes = _encode_groups(groups, labels)
        # One generator draws all repeats, which therefore differ.
        for _ in range(self.n_repeats):
            if groups is None:
                folds = stratified_folds(codes, self.n_splits, rng)
            else:
                folds = _draw_group_folds(
                    codes, group_codes[labeled], self.n_splits, rng
                )
            for fold in range(self.n_splits):
                test = labeled[folds == fold]
                # Also of unlabeled rows, the groups that are tested do not train.
                is_tested_group = np.isin(group_codes, group_codes[test])
                train = np.flatnonzero(~is_tested_group)
                _check_all_classes_train(labels, train)
                yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, including those of all repeats.

        Parameters
        ----------
        X : object, default=None
            Ignored.
        y : object, default=None
            Ignored.
        groups : object, default=None
            Ignored.

        Returns
        -------
        n_splits : int
            Number of pairs that ``split`` yields.
        """
        return self.n_splits * self.n_repeats


def _draw_group_folds(
    codes: AnyArray, groups: AnyArray, n_folds: int, rng: np.random.RandomState
) -> AnyArray:
    """Return the fold of every row: whole groups, with classes spread evenly."""
    names, own_groups = np.unique(groups, return_inverse=True)
    n_groups = len(names)
    if n_groups < n_folds:
        raise ValueError(
            f"{n_folds} folds need at least {n_folds} groups with labeled rows, got "
            f"{n_groups}: label rows of more groups, or make fewer folds."
        )
    # Groups are shuffled here: scikit-learn 1.7 shuffles their class counts alone.
    new_numbers = rng.permutation(n_groups)
    shuffled = new_numbers[own_groups]
    splits = StratifiedGroupKFold(n_folds).split(codes, codes, shuffled)
    folds = np.empty(len(codes), dtype=int)
    for fold, (_, test) in enumerate(splits):
        folds[test] = fold
    return folds


def _check_class_sizes(labels: Labels, n_folds: int) -> None:
    """Raise ValueError if a class has too few labeled rows."""
    counts = np.bincount(labels.labeled_codes)
    rare = np.flatnonzero(counts < n_folds)
    if not len(rare):
        return
    sizes = [f"class {plain(labels.classes[k])!r} has {counts[k]}" for k in rare]
    fewest = counts.min()
    # A class with a single row allows no folds at all.
    way_out = f"Pass n_splits={fewest} or less, label" if fewest >= 2 else "Label"
    raise ValueError(
        f"n_splits={n_folds} folds need {n_folds} labeled rows of every class, one to "
        f"test in each; {', '.join(sizes)}. {way_out} more rows, or mark the rows of a "
        "class as unlabeled to do without it."
    )


def _encode_groups(groups: Any, labels: Labels) -> AnyArray:
    """Return the index of the group of every row.

    It is ``_NO_GROUP`` where an unlabeled row has none; a labeled row without a group
    raises ValueError.
    """
    present, is_absent = split_marker(groups, None, name="groups")
    lacking = np.flatnonzero(is_absent & labels.is_labeled)
    if len(lacking):
        raise ValueError(
            f"groups is missing (None or NaN) for {len(lacking)} labeled rows, first "
            f"for row {int(lacking[0])}. Only unlabeled rows may lack a group: name a "
            "group for every labeled row, one of its own if it belongs to none."
        )
    codes = np.full(len(labels.codes), _NO_GROUP)
    codes[~is_absent] = np.unique(present, return_inverse=True)[1]
    return codes


def _check_all_classes_train(labels: Labels, train: AnyArray) -> None:
    """Raise ValueError if a class has no labeled row among the rows to train on."""
    all_codes = np.arange(len(labels.classes))
    lacking = np.setdiff1d(all_codes, labels.codes[train])
    if len(lacking):
        name = plain(labels.classes[lacking[0]])
        raise ValueError(
            f"A split tests all labeled rows of class {name!r}, and leaves none to "
            "train on: label more rows of it, with groups in more groups, test fewer "
            "rows, or pass another n_splits or random_state."
        )
