"""Splitters that train on unlabeled rows and test labeled rows only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from .._core.types import AnyArray
from .._estimators.labels import Labels, encode_labels
from ._checks import (
    check_count,
    check_flag,
    check_lengths,
    check_test_size,
    n_tested_of,
    require_groups_for_folds,
    require_rows_for_folds,
    require_rows_for_test,
    require_two_groups,
    stranded,
)
from ._dealing import fold_of_groups, fold_of_rows, tested_groups, tested_rows
from ._groups import LabeledGroups, find_labeled_groups


class SemiSupervisedSplitter(BaseCrossValidator):
    """Unlabeled rows train; subclasses say which labeled rows, or groups of them, are tested."""

    # As scikit-learn's splitters for groups: with metadata routing on, groups reach split unasked.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    unlabeled: Any
    train_on_tested_groups: bool
    random_state: Any

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Row numbers to train on and to test, split by split.

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
            Numbers of the rows to train on, labeled and unlabeled, in ascending order.
        test : ndarray
            Numbers of the labeled rows to test, in ascending order.
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

    def _split_rows(self, labels: Labels, rng: np.random.RandomState) -> Iterator[AnyArray]:
        codes = labels.codes[labels.is_labeled]
        for is_tested in self._tested_rows(labels.classes, codes, rng):
            is_left_out = np.zeros(len(labels.codes), dtype=bool)
            is_left_out[labels.is_labeled] = is_tested
            yield is_left_out

    def _split_groups(
        self, labels: Labels, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        require_two_groups(labels.classes, groups)
        for is_tested in self._tested_groups(labels.classes, groups, rng):
            is_left_out = groups.rows_of(is_tested)
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


class SemiSupervisedKFold(SemiSupervisedSplitter):
    """K folds of the labeled rows; unlabeled rows train in every split and are never tested.

    One exception: with ``groups``, unlabeled rows of the groups that a split tests do not train in
    it, unless ``train_on_tested_groups`` says so. They would tell what these groups look like.

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
        How often the rows are dealt out anew.
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
        self.n_splits = check_count("n_splits", n_splits, 2)
        self.n_repeats = check_count("n_repeats", n_repeats, 1)
        self.unlabeled = unlabeled
        self.train_on_tested_groups = check_flag("train_on_tested_groups", train_on_tested_groups)
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits: folds times repeats.

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

    def _tested_rows(
        self, classes: AnyArray, codes: AnyArray, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        require_rows_for_folds(classes, np.bincount(codes), self.n_splits)
        for _ in range(self.n_repeats):
            folds = fold_of_rows(codes, self.n_splits, rng)
            yield from (folds == fold for fold in range(self.n_splits))

    def _tested_groups(
        self, classes: AnyArray, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        require_groups_for_folds(groups, self.n_splits)
        for _ in range(self.n_repeats):
            folds = fold_of_groups(groups.counts, self.n_splits, rng)
            if folds is None:
                raise stranded(groups, f"n_splits={self.n_splits} folds", "another n_splits")
            yield from (folds == fold for fold in range(self.n_splits))


class SemiSupervisedShuffleSplit(SemiSupervisedSplitter):
    """Random tests of a share of the labeled rows; unlabeled rows always train, never test.

    Splits are drawn independently of each other, and stratified: without groups, every class is
    tested in proportion to its labeled rows up to one row, and has at least one labeled row on
    either side. The splits depend on the labeled rows and their order alone.

    With ``groups``, whole groups are tested, drawn so that about ``test_size`` of the labeled rows
    of every class is in them. A group much larger than that is tested only if all are.
    Unlabeled rows of tested groups do not train in that split, unless ``train_on_tested_groups``
    says so: they would tell what these groups look like.

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
        self.n_splits = check_count("n_splits", n_splits, 1)
        self.test_size = check_test_size(test_size)
        self.unlabeled = unlabeled
        self.train_on_tested_groups = check_flag("train_on_tested_groups", train_on_tested_groups)
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits.

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
        return self.n_splits

    def _tested_rows(
        self, classes: AnyArray, codes: AnyArray, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        require_rows_for_test(classes, np.bincount(codes))
        n_tested = n_tested_of(self.test_size, len(codes), len(classes))
        for _ in range(self.n_splits):
            yield tested_rows(codes, n_tested, rng)

    def _tested_groups(
        self, classes: AnyArray, groups: LabeledGroups, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        n_labeled = int(groups.counts.sum())
        share = n_tested_of(self.test_size, n_labeled, len(classes)) / n_labeled
        for _ in range(self.n_splits):
            is_tested = tested_groups(groups.counts, share, rng)
            if is_tested is None:
                raise stranded(groups, f"test_size={self.test_size}", "a smaller test_size")
            yield is_tested
