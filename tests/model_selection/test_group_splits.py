"""Splits of whole groups."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from iclda.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit

a_search = settings(deadline=None, max_examples=30, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
EITHER = [SemiSupervisedKFold, SemiSupervisedShuffleSplit]
# scikit-learn's folds of groups warn if a class has fewer labeled rows than there are folds.
pytestmark = pytest.mark.filterwarnings("ignore:The least populated class")
either_splitter = pytest.mark.parametrize("splitter", EITHER)


@st.composite
def grouped(draw):
    """Labels and groups of rows; every class is labeled in two groups or more."""
    n_classes, n_groups = draw(st.integers(2, 4)), draw(st.integers(4, 12))
    rows = st.tuples(st.integers(-1, n_classes - 1), st.integers(0, n_groups - 1))
    y, groups = np.array(draw(st.lists(rows, min_size=20, max_size=80))).T
    labeled_in = [set(groups[y == k]) for k in range(n_classes)]
    assume(all(len(names) >= 2 for names in labeled_in))
    assume(len(set().union(*labeled_in)) >= 3)
    return y, groups


def splits(splitter, y, groups):
    """The splits; the example is rejected where whole groups take a class from training."""
    try:
        return list(splitter.split(np.zeros((len(y), 1)), y, groups))
    except ValueError as error:
        if "from training" not in str(error):
            raise
        return reject()


@either_splitter
@a_search
@given(data=grouped(), seed=seeds)
def test_labeled_rows_of_a_group_are_never_on_both_sides(splitter, data, seed):
    y, groups = data
    for train, test in splits(splitter(3, random_state=seed), y, groups):
        assert len(test)
        assert (y[test] != -1).all()
        assert not set(groups[train[y[train] != -1]]) & set(groups[test])
        assert set(y[train]) >= set(y) - {-1}


@a_search
@given(data=grouped(), seed=seeds)
def test_every_labeled_row_is_tested_exactly_once_a_repeat(data, seed):
    y, groups = data
    found = splits(SemiSupervisedKFold(3, n_repeats=2, random_state=seed), y, groups)
    for folds in (found[:3], found[3:]):
        tested = np.concatenate([test for _, test in folds])
        assert_array_equal(np.sort(tested), np.flatnonzero(y != -1))


@either_splitter
@a_search
@given(data=grouped(), seed=seeds)
def test_unlabeled_rows_of_a_tested_group_are_left_out_and_all_others_train(splitter, data, seed):
    y, groups = data
    for train, test in splits(splitter(3, random_state=seed), y, groups):
        is_unlabeled, is_tested = y == -1, np.isin(groups, groups[test])
        assert_array_equal(train[is_unlabeled[train]], np.flatnonzero(is_unlabeled & ~is_tested))
        assert_array_equal(np.sort(np.r_[train, test]), np.flatnonzero(~is_tested | ~is_unlabeled))


@either_splitter
@a_search
@given(data=grouped(), seed=seeds)
def test_unlabeled_rows_of_a_tested_group_train_when_asked_to(splitter, data, seed):
    y, groups = data
    cv, other = (
        splitter(3, random_state=seed, train_on_tested_groups=flag) for flag in (True, False)
    )
    for (train, test), (_, same) in zip(
        splits(cv, y, groups), splits(other, y, groups), strict=True
    ):
        assert_array_equal(test, same)
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))


@either_splitter
@a_search
@given(data=grouped(), seed=seeds, order_seed=seeds)
def test_groups_are_chosen_whatever_the_order_of_rows(splitter, data, seed, order_seed):
    y, groups = data
    order = np.random.default_rng(order_seed).permutation(len(y))
    cv = splitter(3, random_state=seed)
    tested = [set(groups[test]) for _, test in splits(cv, y, groups)]
    shuffled = [set(groups[order][test]) for _, test in splits(cv, y[order], groups[order])]
    assert tested == shuffled


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_spread_evenly_where_groups_allow(seed):
    # 30 groups of one class each and different sizes: every fold can get its share.
    sizes = np.arange(30) % 5 + 1
    y, groups = np.repeat(np.arange(30) % 3, sizes), np.repeat(np.arange(30), sizes)
    folds = [
        np.bincount(y[test])
        for _, test in splits(SemiSupervisedKFold(5, random_state=seed), y, groups)
    ]
    assert np.ptp(folds, axis=0).max() <= 2
    for _, test in splits(SemiSupervisedShuffleSplit(20, random_state=seed), y, groups):
        assert np.abs(np.bincount(y[test]) - 0.2 * np.bincount(y)).max() <= 3


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_class_in_two_groups_trains_in_every_split(seed):
    y = np.r_[np.zeros(40, int), [1, 1]]
    groups = np.r_[np.arange(40) % 8, [0, 5]]
    for splitter in EITHER:
        for train, _ in splits(splitter(5, random_state=seed), y, groups):
            assert (y[train] == 1).any()


def test_a_group_of_almost_all_rows_leaves_the_share_of_the_test_alone():
    y, groups = np.arange(200) % 2, np.r_[np.zeros(160, int), np.arange(40) // 4 + 1]
    for _, test in splits(SemiSupervisedShuffleSplit(20, random_state=0), y, groups):
        assert 30 <= len(test) <= 40


def test_groups_too_large_for_the_share_are_tested_one_at_a_time():
    y, groups = np.arange(40) % 2, np.repeat(["a", "b"], 20)
    cv = SemiSupervisedShuffleSplit(20, random_state=0)
    tested = [set(groups[test]) for _, test in splits(cv, y, groups)]
    assert {"a"} in tested
    assert {"b"} in tested
    assert {"a", "b"} not in tested


NAMES = ["p", "q", "r", "p", "q", "r"]


@pytest.mark.parametrize(
    "groups",
    [
        [*NAMES, None, "p"],
        np.array([0, 1, 2, 0, 1, 2, np.nan, 0]),
        pd.Series([*NAMES, None, "p"], dtype="category"),
        pd.Series([0, 1, 2, 0, 1, 2, None, 0], dtype="Int64"),
        pl.Series([*NAMES, None, "p"]),
    ],
    ids=lambda groups: type(groups).__name__,
)
@either_splitter
def test_an_unlabeled_row_without_a_group_always_trains(splitter, groups):
    y = [0, 0, 0, 1, 1, 1, -1, -1]
    for train, test in splitter(3, random_state=0).split(y, y, groups):
        assert 6 in train
        assert (7 in train) == (0 not in test)


def message_of(splitter, y, groups):
    with pytest.raises(ValueError, match=r".") as raised:
        list(splitter.split(y, y, groups))
    return str(raised.value)


@either_splitter
def test_a_labeled_row_without_a_group_is_refused(splitter):
    message = message_of(splitter(2), [0, 1, 0, 1], ["p", "q", None, None])
    assert "groups is missing (None or NaN) for 2 labeled rows, first for row 2" in message


@either_splitter
def test_a_class_labeled_in_one_group_only_is_refused(splitter):
    message = message_of(splitter(2), ["a", "a", "b", "b"], ["p", "q", "p", "p"])
    assert "All labeled rows of class 'b' are in group 'p'" in message
    assert "label rows of the class in another group" in message


def test_more_folds_than_groups_are_refused():
    message = message_of(SemiSupervisedKFold(5), [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2])
    assert "n_splits=5 folds need at least 5 groups with labeled rows, got 3" in message
    assert "pass n_splits=3 or less" in message


def test_groups_that_leave_a_class_without_training_rows_are_refused():
    # Three classes, each in another two of three groups: two folds always take one class whole.
    y, groups = ["a", "a", "b", "b", "c", "c"], [0, 1, 1, 2, 0, 2]
    message = message_of(SemiSupervisedKFold(2), y, groups)
    assert "takes all labeled rows of class" in message
    assert "label rows of it in more groups" in message


@either_splitter
def test_groups_of_another_length_or_of_two_kinds_are_refused(splitter):
    message = message_of(splitter(2), [0, 1, 0, 1], [0, 1, 2])
    assert "X has 4 rows, y has 4 labels, groups has 3 entries" in message
    message = message_of(splitter(2), [0, 1, 0, 1], np.array(["p", 1, "q", 2], dtype=object))
    assert "groups mixes text and other values, for example 'p' and 1" in message
