"""Splits of rows without groups: properties that hold for any labels, and errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from iclda.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit

a_search = settings(deadline=None, max_examples=30, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
EITHER = [SemiSupervisedKFold, SemiSupervisedShuffleSplit]
either_splitter = pytest.mark.parametrize("splitter", EITHER)


@st.composite
def labels(draw, least=5):
    """Labels of two to five classes, each ``least`` times or more, among unlabeled rows."""
    counts = draw(st.lists(st.integers(least, 3 * least), min_size=2, max_size=5))
    n_unlabeled = draw(st.integers(0, 40))
    y = np.r_[np.repeat(np.arange(len(counts)), counts), np.full(n_unlabeled, -1)]
    return draw(st.permutations(y.tolist()).map(np.array))


def splits(splitter, y, groups=None):
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def counts_of(y, rows):
    return np.array([(y[rows] == k).sum() for k in range(y.max() + 1)])


@a_search
@given(y=labels(), n_splits=st.integers(2, 5), n_repeats=st.integers(1, 3), seed=seeds)
def test_every_labeled_row_is_tested_exactly_once_a_repeat(y, n_splits, n_repeats, seed):
    cv = SemiSupervisedKFold(n_splits, n_repeats=n_repeats, random_state=seed)
    found = splits(cv, y)
    assert len(found) == cv.get_n_splits() == n_splits * n_repeats
    for repeat in range(n_repeats):
        folds = found[repeat * n_splits : (repeat + 1) * n_splits]
        tested = np.concatenate([test for _, test in folds])
        assert_array_equal(np.sort(tested), np.flatnonzero(y != -1))


@a_search
@given(y=labels(), n_splits=st.integers(2, 5), seed=seeds)
def test_every_split_of_folds_is_a_partition_and_tests_no_unlabeled_row(y, n_splits, seed):
    for train, test in splits(SemiSupervisedKFold(n_splits, random_state=seed), y):
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
        assert (y[test] != -1).all()
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()


@a_search
@given(y=labels(), n_splits=st.integers(2, 5), seed=seeds)
def test_folds_differ_by_at_most_one_row_in_all_and_in_every_class(y, n_splits, seed):
    found = splits(SemiSupervisedKFold(n_splits, random_state=seed), y)
    in_fold = np.array([counts_of(y, test) for _, test in found])
    assert np.ptp(in_fold, axis=0).max() <= 1
    assert np.ptp(in_fold.sum(axis=1)) <= 1
    assert in_fold.min() >= 1


@a_search
@given(y=labels(), share=st.floats(0.01, 0.99), seed=seeds)
def test_shuffled_tests_are_proportional_to_the_classes_within_one_row(y, share, seed):
    totals = counts_of(y, np.arange(len(y)))
    n_labeled = totals.sum()
    n_tested = np.ceil(share * n_labeled)
    cv = SemiSupervisedShuffleSplit(4, test_size=share, random_state=seed)
    for train, test in splits(cv, y):
        exact = n_tested * totals / n_labeled
        assert np.abs(counts_of(y, test) - exact).max() < 1 + 1e-9
        assert counts_of(y, test).min() >= 1
        assert counts_of(y, train).min() >= 1


@either_splitter
@a_search
@given(y=labels(), seed=seeds)
def test_the_same_random_state_gives_the_same_splits(splitter, y, seed):
    cv = splitter(3, random_state=seed)
    for (train, test), (again, tested_again) in zip(splits(cv, y), splits(cv, y), strict=True):
        assert_array_equal(train, again)
        assert_array_equal(test, tested_again)


@a_search
@given(y=labels(), seed=seeds)
def test_more_repeats_begin_with_the_same_folds(y, seed):
    once = splits(SemiSupervisedKFold(3, random_state=seed), y)
    thrice = splits(SemiSupervisedKFold(3, n_repeats=3, random_state=seed), y)
    for (_, test), (_, other) in zip(once, thrice, strict=False):
        assert_array_equal(test, other)


@either_splitter
@a_search
@given(y=labels(), seed=seeds)
def test_unlabeled_rows_change_nothing_for_the_labeled_ones(splitter, y, seed):
    # Whatever the number of unlabeled rows and wherever they stand among the labeled ones.
    labeled_only = y[y != -1]
    tested_alone = [test for _, test in splits(splitter(3, random_state=seed), labeled_only)]
    number = np.cumsum(y != -1) - 1  # of every labeled row among the labeled ones
    tested = [number[test] for _, test in splits(splitter(3, random_state=seed), y)]
    assert_array_equal(np.concatenate(tested), np.concatenate(tested_alone))


def test_the_folds_with_a_row_more_are_drawn():
    cv = SemiSupervisedKFold(2, n_repeats=20, random_state=0)
    sizes = [len(test) for _, test in splits(cv, np.array([0, 0, 0, 1, 1]))]
    assert set(sizes[::2]) == {2, 3}


@either_splitter
def test_without_random_state_splits_differ_from_call_to_call(splitter):
    y = np.arange(200) % 2
    cv = splitter(2)
    assert [test.tolist() for _, test in splits(cv, y)] != [
        test.tolist() for _, test in splits(cv, y)
    ]


@pytest.mark.parametrize(
    "cv", [SemiSupervisedKFold(2, n_repeats=5), SemiSupervisedShuffleSplit(10)], ids=repr
)
def test_repeats_and_splits_differ_from_each_other(cv):
    tests = {tuple(test) for _, test in splits(cv, np.arange(200) % 2)}
    assert len(tests) == 10


@pytest.mark.parametrize(
    ("marker", "y"),
    [
        (-1, [0, 1, 0, 1, 0, 1, -1, -1]),
        ("?", ["a", "b", "a", "b", "a", "b", "?", "?"]),
        (None, ["a", "b", "a", "b", "a", "b", None, None]),
        (np.nan, np.array([0, 1, 0, 1, 0, 1, np.nan, np.nan])),
        (np.nan, pd.Series(["a", "b", "a", "b", "a", "b", None, None], index=range(10, 18))),
        (pd.NA, pd.Series([0, 1, 0, 1, 0, 1, None, None], dtype="Int64")),
        (None, pd.Series(list("ababab") + [None] * 2, dtype="category")),
        (None, pl.Series(["a", "b", "a", "b", "a", "b", None, None])),
        (7, np.array([0, 1, 0, 1, 0, 1, 7, 7], dtype=np.uint8)),
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}".split("\n")[0][:24],
)
@either_splitter
def test_every_marker_of_the_classifiers_is_understood(splitter, marker, y):
    for train, test in splitter(3, unlabeled=marker, random_state=0).split(y, y):
        assert set(test) < set(range(6))
        assert {6, 7} < set(train)


@either_splitter
def test_a_splitter_shows_its_parameters_and_survives_a_pickle(splitter):
    cv = splitter(4, unlabeled="?", random_state=3)
    assert repr(cv).startswith(f"{splitter.__name__}(")
    assert "unlabeled='?'" in repr(cv)
    assert vars(pickle.loads(pickle.dumps(cv))) == vars(cv)


def message_of(splitter, y, groups=None):
    with pytest.raises(ValueError, match=r".") as raised:
        splits(splitter, y, groups)
    return str(raised.value)


def test_too_few_labels_for_the_folds_name_the_classes_and_the_way_out():
    message = message_of(SemiSupervisedKFold(5), ["a"] * 9 + ["b"] * 3 + ["c"] * 4)
    assert "n_splits=5 folds need 5 labeled rows of every class" in message
    assert "class 'b' has 3, class 'c' has 4" in message
    assert "Pass n_splits=3 or less, label more rows" in message


def test_a_single_label_of_a_class_cannot_be_both_trained_on_and_tested():
    y = np.array([0, 0, 0, 1, -1])
    assert "class 1 has 1. Label more rows" in message_of(SemiSupervisedKFold(2), y)
    message = message_of(SemiSupervisedShuffleSplit(), y)
    assert "needs 2 labeled rows of every class" in message
    assert "class 1 has 1. Label more rows" in message


@either_splitter
@pytest.mark.parametrize("y", [[0, 1, 0, 1], [0, 0, 0, 0], [0.5, 1, 2, 3]])
def test_lengths_are_checked_first_with_the_message_of_fit(splitter, y):
    with pytest.raises(ValueError, match=r"numbers of samples: X has 3 rows, y has 4 labels\."):
        next(splitter().split(np.zeros((3, 1)), y))


@pytest.mark.parametrize("test_size", [1, 9])
def test_a_number_of_test_rows_must_leave_every_class_on_either_side(test_size):
    message = message_of(SemiSupervisedShuffleSplit(test_size=test_size), np.arange(10) % 2)
    assert f"test_size={test_size} of 10 labeled rows" in message
    assert "pass 2 to 8" in message


def test_a_number_of_test_rows_is_kept():
    y = np.r_[np.arange(30) % 3, np.full(5, -1)]
    cv = SemiSupervisedShuffleSplit(5, test_size=7, random_state=1)
    assert [len(test) for _, test in splits(cv, y)] == [7] * 5


@pytest.mark.parametrize("test_size", [0, 1.0, -0.2, "0.2", True, np.nan, None])
def test_a_wrong_test_size_is_shown(test_size):
    with pytest.raises(ValueError, match=f"test_size must be a share.*got {test_size!r}"):
        SemiSupervisedShuffleSplit(test_size=test_size)


@pytest.mark.parametrize(
    ("splitter", "name", "value"),
    [
        (SemiSupervisedKFold, "n_splits", 1),
        (SemiSupervisedKFold, "n_splits", 2.5),
        (SemiSupervisedKFold, "n_repeats", 0),
        (SemiSupervisedShuffleSplit, "n_splits", 0),
        (SemiSupervisedShuffleSplit, "n_splits", True),
    ],
)
def test_wrong_counts_are_shown(splitter, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number .*got {value!r}"):
        splitter(**{name: value})
