"""Splitters that train on unlabeled rows and test labeled rows only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import ceil
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._core.types import AnyArray
from .._estimators.labels import Labels, encode_labels, plain
from ._masking import check_count, is_whole
from ._stratified import (
    LabeledGroups,
    check_two_groups,
    find_labeled_groups,
    fold_of_groups,
    fold_of_rows,
    tested_groups,
    tested_rows,
)


def check_lengths(X: Any, y: Any, groups: Any = None) -> None:
    """One label, and one group if there are any, for every row."""
    given = {"X": (X, "rows"), "y": (y, "labels"), "groups": (groups, "entries")}
    known = {name: (_num_samples(v), noun) for name, (v, noun) in given.items() if v is not None}
    if len({n for n, _ in known.values()}) > 1:
        counts = ", ".join(f"{name} has {n} {noun}" for name, (n, noun) in known.items())
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {counts}.")


class SemiSupervisedSplitter(BaseCrossValidator):
    """Unlabeled rows train; subclasses choose which labeled rows, or groups of them, are tested."""

    # As scikit-learn's splitters for groups: with metadata routing on, groups reach split unasked.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    n_repeats = 1

    def __init__(
        self, n_splits: int, unlabeled: Any, train_on_tested_groups: bool, random_state: Any
    ) -> None:
        if not isinstance(train_on_tested_groups, (bool, np.bool_)):
            raise ValueError(
                f"train_on_tested_groups must be True or False, got {train_on_tested_groups!r}."
            )
        self.n_splits = n_splits
        self.unlabeled = unlabeled
        self.train_on_tested_groups = bool(train_on_tested_groups)
        self.random_state = random_state

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Indices of rows to train on and to test, split by split.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only their number matters.
        y : array-like of shape (n_samples,)
            Class of every row, or the marker ``unlabeled``.
        groups : array-like of shape (n_samples,), default=None
            Group of every row. Labeled rows of one group are never on both sides. An unlabeled row
            may lack a group (None or NaN): it always trains.

        Yields
        ------
        train : ndarray
            Indices of the rows to train on, labeled and unlabeled, in ascending order.
        test : ndarray
            Indices of the labeled rows to test, in ascending order.
        """
        check_lengths(X, y, groups)
        labels = encode_labels(y, self.unlabeled)
        rng = check_random_state(self.random_state)
        if groups is None:
            splits = self._split_rows(labels, rng)
        else:
            splits = self._split_groups(labels, find_labeled_groups(groups, labels), rng)
        for is_left_out in splits:
            yield np.flatnonzero(~is_left_out), np.flatnonzero(is_left_out & labels.is_labeled)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits; those of every repeat, where there are repeats.

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
            How many pairs ``split`` yields.
        """
        return self.n_splits * self.n_repeats

    def _split_rows(self, labels: Labels, rng: np.random.RandomState) -> Iterator[AnyArray]:
        codes = labels.codes[labels.is_labeled]
        for is_tested in self._tested_rows(labels.classes, codes, rng):
            is_left_out = np.zeros(len(labels.codes), dtype=bool)
            is_left_out[labels.is_labeled] = is_tested
            yield is_left_out

    def _split_groups(
        self, labels: Labels, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        check_two_groups(labels.classes, groups)
        for is_tested in self._tested_groups(labels.classes, groups, rng):
            is_left_out = groups.contains(is_tested)
            if self.train_on_tested_groups:
                is_left_out &= labels.is_labeled
            yield is_left_out

    @abstractmethod
    def _tested_rows(
        self, classes: AnyArray, codes: AnyArray, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        """Which labeled rows are tested, split by split."""

    @abstractmethod
    def _tested_groups(
        self, classes: AnyArray, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        """Which groups are tested, split by split."""


def _few(classes: AnyArray, counts: AnyArray, n_needed: int) -> str:
    few = np.flatnonzero(counts < n_needed)
    return ", ".join(f"class {plain(classes[k])!r} has {counts[k]}" for k in few)


def _no_whole_groups(groups: LabeledGroups, what: str, other: str) -> ValueError:
    return ValueError(
        f"No way was found to test {what} in whole groups ({len(groups.names)} with labeled rows) "
        "without taking all labeled rows of some class from training: label rows of the rare "
        f"classes in more groups, or try {other}."
    )


class SemiSupervisedKFold(SemiSupervisedSplitter):
    """K folds of the labeled rows; unlabeled rows train in every split and are never tested.

    One exception: with ``groups``, unlabeled rows of the groups that a split tests do not train in
    it, unless ``train_on_tested_groups`` is True: they would show what these groups look like.

    In every repeat each labeled row is tested exactly once. Folds are stratified: without groups,
    two folds differ by at most one row, in all and in every class, and every fold tests every
    class. The folds depend on the labeled rows and their order alone, so that scores with more or
    fewer unlabeled rows can be compared split by split.

    With ``groups``, the labeled rows of a group fall into one fold, and classes are spread as
    evenly as whole groups allow: every class is trained on in every split, but a fold may test no
    row of a rare class.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. Every class needs that many labeled rows.
    n_repeats : int, default=1
        Number of times that the rows are divided into folds.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y, as of the classifier. None or NaN: a missing y.
    train_on_tested_groups : bool, default=False
        Whether the unlabeled rows of a tested group train. By default they are left out of that
        split, as rows of a new group would be.
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

    def __init__(
        self,
        n_splits: int = 5,
        *,
        n_repeats: int = 1,
        unlabeled: Any = -1,
        train_on_tested_groups: bool = False,
        random_state: Any = None,
    ) -> None:
        n_splits = check_count("n_splits", n_splits, 2)
        self.n_repeats = check_count("n_repeats", n_repeats, 1)
        super().__init__(n_splits, unlabeled, train_on_tested_groups, random_state)

    def _tested_rows(
        self, classes: AnyArray, codes: AnyArray, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        counts = np.bincount(codes)
        most = int(counts.min())
        if most < self.n_splits:
            way_out = f"Pass n_splits={most} or less, label" if most >= 2 else "Label"
            raise ValueError(
                f"n_splits={self.n_splits} folds need {self.n_splits} labeled rows of every class, "
                f"one to test in each; {_few(classes, counts, self.n_splits)}. {way_out} more "
                "rows, or mark the rows of a class as unlabeled to do without it."
            )
        for _ in range(self.n_repeats):
            folds = fold_of_rows(codes, self.n_splits, rng)
            yield from (folds == fold for fold in range(self.n_splits))

    def _tested_groups(
        self, classes: AnyArray, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        n_groups = len(groups.names)
        if n_groups < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} folds need at least {self.n_splits} groups with labeled "
                f"rows, got {n_groups}: pass n_splits={n_groups} or less, or label rows of more "
                "groups."
            )
        for _ in range(self.n_repeats):
            folds = fold_of_groups(groups.counts, self.n_splits, rng)
            if folds is None:
                what = f"n_splits={self.n_splits} folds"
                raise _no_whole_groups(groups, what, "another n_splits")
            yield from (folds == fold for fold in range(self.n_splits))


class SemiSupervisedShuffleSplit(SemiSupervisedSplitter):
    """Random tests of a share of the labeled rows; unlabeled rows always train, never test.

    Splits are drawn independently of each other, and stratified: without groups, every class is
    tested in proportion to its labeled rows up to one row, and has at least one labeled row on
    either side. The splits depend on the labeled rows and their order alone.

    With ``groups``, whole groups are tested, drawn so that about ``test_size`` of the labeled rows
    of every class is in them. A group much larger than that is tested only if all are.
    Unlabeled rows of tested groups do not train in that split, unless ``train_on_tested_groups``
    is True: they would show what these groups look like.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits, at least 1.
    test_size : float or int, default=0.2
        Labeled rows to test: a share of them between 0 and 1, or their number. Whatever the share,
        at least one row of every class is tested, and one left to train on.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y, as of the classifier. None or NaN: a missing y.
    train_on_tested_groups : bool, default=False
        Whether the unlabeled rows of a tested group train. By default they are left out of that
        split, as rows of a new group would be.
    random_state : int, RandomState instance or None, default=None
        An int makes every call of ``split`` give the same splits.

    Examples
    --------
    >>> from iclda.model_selection import SemiSupervisedShuffleSplit
    >>> y = [0, 0, 0, 1, 1, 1, -1, -1]
    >>> cv = SemiSupervisedShuffleSplit(2, test_size=2, random_state=0)
    >>> for train, test in cv.split(y, y):
    ...     print(train, test)
    [0 1 4 5 6 7] [2 3]
    [0 2 3 5 6 7] [1 4]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float = 0.2,
        unlabeled: Any = -1,
        train_on_tested_groups: bool = False,
        random_state: Any = None,
    ) -> None:
        n_splits = check_count("n_splits", n_splits, 1)
        is_count = is_whole(test_size) and test_size >= 1
        if not is_count and not (isinstance(test_size, Real) and 0 < float(test_size) < 1):
            raise ValueError(
                "test_size must be a share of the labeled rows between 0 and 1, for example 0.2, "
                f"or their number, a whole number of at least 1; got {plain(test_size)!r}."
            )
        self.test_size = plain(test_size)
        super().__init__(n_splits, unlabeled, train_on_tested_groups, random_state)

    def _n_tested(self, n_labeled: int, n_classes: int) -> int:
        if not is_whole(self.test_size):
            return ceil(self.test_size * n_labeled)
        most = n_labeled - n_classes
        if n_classes <= self.test_size <= most:
            return int(self.test_size)
        raise ValueError(
            f"test_size={self.test_size} of {n_labeled} labeled rows must leave a row of each of "
            f"{n_classes} classes on either side: pass {n_classes} to {most}, or label more rows."
        )

    def _tested_rows(
        self, classes: AnyArray, codes: AnyArray, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        counts = np.bincount(codes)
        if counts.min() < 2:
            raise ValueError(
                "A split needs 2 labeled rows of every class, one to train on and one to test; "
                f"{_few(classes, counts, 2)}. Label more rows, or mark the rows of a class as "
                "unlabeled to do without it."
            )
        n_tested = self._n_tested(len(codes), len(classes))
        for _ in range(self.n_splits):
            yield tested_rows(codes, n_tested, rng)

    def _tested_groups(
        self, classes: AnyArray, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        n_labeled = int(groups.counts.sum())
        share = self._n_tested(n_labeled, len(classes)) / n_labeled
        for _ in range(self.n_splits):
            is_tested = tested_groups(groups.counts, share, rng)
            if is_tested is None:
                what = f"test_size={self.test_size}"
                raise _no_whole_groups(groups, what, "a smaller test_size")
            yield is_tested
