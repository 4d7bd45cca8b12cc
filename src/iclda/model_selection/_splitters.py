"""Splitters that train on unlabeled rows and test labeled rows only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
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
        found = None if groups is None else find_labeled_groups(groups, labels)
        for is_tested in self._choose(labels, found, check_random_state(self.random_state)):
            is_left_out = np.zeros(len(labels.codes), dtype=bool)
            if found is None:
                is_left_out[labels.is_labeled] = is_tested
            else:
                is_left_out = found.contains(is_tested)
                if self.train_on_tested_groups:
                    is_left_out &= labels.is_labeled
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

    @abstractmethod
    def _choose(
        self, labels: Labels, groups: LabeledGroups | None, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        """Which labeled rows are tested, or which groups if there are any, split by split."""


class SemiSupervisedKFold(SemiSupervisedSplitter):
    """K folds of the labeled rows; unlabeled rows train in every split and are never tested.

    In every repeat each labeled row is tested exactly once. Folds are stratified: without groups,
    two folds differ by at most one row, in all and in every class, and every fold tests every
    class. The folds depend on the labeled rows and their order alone, so that scores with more or
    fewer unlabeled rows can be compared split by split.

    With ``groups``, the labeled rows of a group fall into one fold, and classes are spread as
    evenly as whole groups allow: every class is trained on in every split, but a fold may test no
    row of a rare class. Unlabeled rows of the groups that a split tests do not train in it: they
    would show what these groups look like.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. Every class needs that many labeled rows.
    n_repeats : int, default=1
        Number of times that the rows are divided into folds.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y, as of the classifier. None or NaN: a missing y.
    train_on_tested_groups : bool, default=False
        Whether the unlabeled rows of a tested group train all the same.
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

    def _choose(
        self, labels: Labels, groups: LabeledGroups | None, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        for _ in range(self.n_repeats):
            if groups is None:
                folds = fold_of_rows(labels, self.n_splits, rng)
            else:
                folds = fold_of_groups(groups, self.n_splits, rng)
            yield from (folds == fold for fold in range(self.n_splits))


class SemiSupervisedShuffleSplit(SemiSupervisedSplitter):
    """Random tests of a share of the labeled rows; unlabeled rows always train, never test.

    Splits are drawn independently of each other, and stratified: without groups, every class is
    tested in proportion to its labeled rows up to one row, and has at least one labeled row on
    either side. The splits depend on the labeled rows and their order alone.

    With ``groups``, whole groups are tested, drawn so that about ``test_size`` of the labeled rows
    of every class is in them. A group much larger than that is tested only if all are. Unlabeled
    rows of tested groups do not train in that split: they would show what these groups look like.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits, at least 1.
    test_size : float or int, default=0.2
        Labeled rows to test: a share of them between 0 and 1, or their number. At least one row of
        every class is tested, and one left to train on.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y, as of the classifier. None or NaN: a missing y.
    train_on_tested_groups : bool, default=False
        Whether the unlabeled rows of a tested group train all the same.
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

    def _choose(
        self, labels: Labels, groups: LabeledGroups | None, rng: np.random.RandomState
    ) -> Iterator[AnyArray]:
        for _ in range(self.n_splits):
            if groups is None:
                yield tested_rows(labels, self.test_size, rng)
            else:
                yield tested_groups(groups, self.test_size, rng)
