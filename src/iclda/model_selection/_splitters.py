"""Splitters that train on unlabeled rows and test labeled rows only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.cluster import contingency_matrix
from sklearn.model_selection import BaseCrossValidator

from .._core.types import AnyArray
from .._estimators.labels import (
    Labels,
    check_lengths,
    draw_folds,
    encode_labels,
    plain,
    split_marker,
)
from ._masking import check_count, check_seed, is_whole

# Groups are assigned greedily: some orders leave a class without training rows, most do not.
_ATTEMPTS = 30
_NO_LABELED_GROUP = -1


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
        check_lengths(X=X, y=y, groups=groups)
        labels = encode_labels(y, self.unlabeled)
        found = None if groups is None else _find_labeled_groups(groups, labels)
        for is_tested in self._choose(labels, found, check_seed(self.random_state)):
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
                folds = _fold_of_rows(labels, self.n_splits, rng)
            else:
                folds = _fold_of_groups(groups, self.n_splits, rng)
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
                yield _tested_rows(labels, self.test_size, rng)
            else:
                yield _tested_groups(groups, self.test_size, rng)


def _check_class_sizes(labels: Labels, n_needed: int, who_needs: str, use: str) -> AnyArray:
    """Labeled rows of every class; ValueError where they are fewer than needed."""
    counts = np.bincount(labels.codes[labels.is_labeled])
    few = np.flatnonzero(counts < n_needed)
    if len(few):
        named = ", ".join(f"class {plain(labels.classes[k])!r} has {counts[k]}" for k in few)
        most = counts.min()
        way_out = f"Pass n_splits={most} or less, label" if most >= 2 else "Label"
        raise ValueError(
            f"{who_needs} {n_needed} labeled rows of every class, one to {use}; {named}. {way_out} "
            "more rows, or mark the rows of a class as unlabeled to do without it."
        )
    return counts


def _fold_of_rows(labels: Labels, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every labeled row: folds differ by at most one row, in all and in every class."""
    _check_class_sizes(labels, n_folds, f"n_splits={n_folds} folds need", "test in each")
    return draw_folds(labels.codes[labels.is_labeled], n_folds, rng)


def _tested_rows(labels: Labels, test_size: float, rng: np.random.RandomState) -> AnyArray:
    """Labeled rows to test, in proportion to the classes, but neither none nor all of a class."""
    counts = _check_class_sizes(labels, 2, "A split needs", "train on and one to test")
    codes = labels.codes[labels.is_labeled]
    n_tested = _n_tested(test_size, counts)
    exact = n_tested * counts / counts.sum()
    n_of_class = np.floor(exact).astype(int)
    by_remainder = np.lexsort([rng.permutation(len(counts)), np.round(n_of_class - exact, 9)])
    n_of_class[by_remainder[: n_tested - n_of_class.sum()]] += 1
    is_tested = np.zeros(len(codes), dtype=bool)
    for k, n in enumerate(np.clip(n_of_class, 1, counts - 1)):
        is_tested[rng.permutation(np.flatnonzero(codes == k))[:n]] = True
    return is_tested


def _n_tested(test_size: float, counts: AnyArray) -> int:
    """Number of labeled rows to test: a whole number, or a share of those counted by class."""
    n_labeled, n_classes = int(counts.sum()), len(counts)
    if not is_whole(test_size):
        return ceil(test_size * n_labeled)
    most = n_labeled - n_classes
    if n_classes <= test_size <= most:
        return int(test_size)
    raise ValueError(
        f"test_size={test_size} of {n_labeled} labeled rows must leave a row of each of "
        f"{n_classes} classes on either side: pass {n_classes} to {most}, or label more rows."
    )


@dataclass(frozen=True)
class LabeledGroups:
    """Groups with labeled rows.

    ``codes`` has the index of its group for every row, labeled or not; -1 where the row has no
    group or its group no labeled row. ``counts`` holds labeled rows by group and class.
    """

    names: AnyArray
    codes: AnyArray
    counts: AnyArray

    def contains(self, is_chosen: AnyArray) -> AnyArray:
        """Which rows belong to the chosen groups."""
        return (self.codes != _NO_LABELED_GROUP) & is_chosen[self.codes]


def _find_labeled_groups(groups: Any, labels: Labels) -> LabeledGroups:
    """Groups that hold labeled rows; ValueError unless every class is labeled in two of them.

    ``groups`` has an entry for every row, which may be missing for unlabeled ones.
    """
    present, is_absent = split_marker(groups, None, name="groups")
    lacking = np.flatnonzero(is_absent & labels.is_labeled)
    if len(lacking):
        raise ValueError(
            f"groups is missing (None or NaN) for {len(lacking)} labeled rows, first for row "
            f"{int(lacking[0])}. Only unlabeled rows may lack a group: name a group for every "
            "labeled row, one of its own if it belongs to none."
        )
    of_labeled = present[labels.is_labeled[~is_absent]]
    names = np.unique(of_labeled)
    place = np.searchsorted(names, present).clip(max=len(names) - 1)
    codes = np.full(len(labels.codes), _NO_LABELED_GROUP)
    codes[~is_absent] = np.where(names[place] == present, place, _NO_LABELED_GROUP)
    counts = contingency_matrix(of_labeled, labels.codes[labels.is_labeled])
    n_groups = (counts > 0).sum(axis=0)
    k = int(n_groups.argmin())
    if n_groups[k] < 2:
        only = plain(names[np.argmax(counts[:, k] > 0)])
        raise ValueError(
            f"All {counts[:, k].sum()} labeled rows of class {plain(labels.classes[k])!r} are in "
            f"group {only!r}, so that none is left to train on when it is tested: label rows of "
            "the class in another group, or split without groups."
        )
    return LabeledGroups(names, codes, counts)


def _fold_of_groups(groups: LabeledGroups, n_folds: int, rng: np.random.RandomState) -> AnyArray:
    """Fold of every group. Every fold gets one; classes are spread as evenly as groups allow."""
    n_groups = len(groups.names)
    if n_groups < n_folds:
        raise ValueError(
            f"n_splits={n_folds} folds need at least {n_folds} groups with labeled rows, got "
            f"{n_groups}: pass n_splits={n_groups} or less, or label rows of more groups."
        )
    assign = partial(_assign_groups, groups.counts, n_folds, rng)
    return _best(assign, groups, f"n_splits={n_folds} folds", "another n_splits")


def _assign_groups(
    counts: AnyArray, n_folds: int, rng: np.random.RandomState, attempt: int
) -> tuple[AnyArray, AnyArray]:
    """Each group goes to the fold that has least of its classes, then fewest rows."""
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    if attempt == 0:  # large ones first: the small ones then level out what these leave uneven
        order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    loads, sizes = np.zeros((n_folds, counts.shape[1])), np.zeros(n_folds)
    folds = np.empty(len(counts), dtype=int)
    for group in order:
        overlap = np.round(loads @ shares[group], 9)
        fold = np.lexsort([rng.permutation(n_folds), sizes, overlap])[0]
        folds[group] = fold
        loads[fold] += shares[group]
        sizes[fold] += counts[group].sum()
    return folds, np.array([counts[folds == fold].sum(axis=0) for fold in range(n_folds)])


def _tested_groups(groups: LabeledGroups, test_size: float, rng: np.random.RandomState) -> AnyArray:
    """Groups with about a share of the labeled rows of every class."""
    share = _n_tested(test_size, groups.counts.sum(axis=0)) / int(groups.counts.sum())
    draw = partial(_draw_groups, groups.counts, share, rng)
    return _best(draw, groups, f"test_size={test_size}", "a smaller test_size")


def _draw_groups(
    counts: AnyArray, share: float, rng: np.random.RandomState, attempt: int
) -> tuple[AnyArray, AnyArray]:
    """In random order each group that brings the classes closer to the share; at least one."""
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    is_tested = np.zeros(len(counts), dtype=bool)
    lacking = np.full(counts.shape[1], share)
    for group in order:
        rest = lacking - shares[group]
        if np.square(rest).sum() < np.square(lacking).sum():
            is_tested[group] = True
            lacking = rest
    if not is_tested.any():  # every group is too large: one of those that are least so
        is_tested[order[np.square(shares[order] - share).sum(axis=1).round(9).argmin()]] = True
    return is_tested, counts[is_tested].sum(axis=0)[None]


def _best(
    draw: Callable[[int], tuple[AnyArray, AnyArray]], groups: LabeledGroups, what: str, other: str
) -> AnyArray:
    """The first draw in which every class trains and is tested, or else one in which all train.

    ``draw`` returns a choice, and its labeled rows by test and class.
    """
    totals, best, fewest_untested = groups.counts.sum(axis=0), None, np.inf
    for attempt in range(_ATTEMPTS):
        choice, tested = draw(attempt)
        n_untested = int((tested == 0).sum())
        if (tested < totals).all() and n_untested < fewest_untested:
            best, fewest_untested = choice, n_untested
        if fewest_untested == 0:
            break
    if best is None:
        raise ValueError(
            f"No way was found to test {what} in whole groups ({len(groups.names)} with labeled "
            "rows) without taking all labeled rows of some class from training: label rows of the "
            f"rare classes in more groups, or try {other}."
        )
    return best
