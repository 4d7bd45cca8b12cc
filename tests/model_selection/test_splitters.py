"""Splits of rows and of groups: properties that hold for any labels, and errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from iclda.model_selection import SemiSupervisedKFold as KFold

a_search = settings(deadline=None, max_examples=30, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
# scikit-learn's folds of groups warn if a class has fewer labeled rows than there are
# folds.
pytestmark = pytest.mark.filterwarnings("ignore:The least populated class")


@st.composite
def labels(draw, least=5):
    """Labels of two to five classes, each ``least`` times or more, and gaps."""
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
def test_every_labeled_row_is_tested_exactly_once_a_repeat(
    y, n_splits, n_repeats, seed
):
    cv = KFold(n_splits, n_repeats=n_repeats, random_state=seed)
    found = splits(cv, y)
    assert len(found) == cv.get_n_splits() == n_splits * n_repeats
    for repeat in range(n_repeats):
        folds = found[repeat * n_splits : (repeat + 1) * n_splits]
        tested = np.concatenate([test for _, test in folds])
        assert_array_equal(np.sort(tested), np.flatnonzero(y != -1))


@a_search
@given(y=labels(), n_splits=st.integers(2, 5), seed=seeds)
def test_folds_differ_by_at_most_one_row_in_all_and_in_every_class(y, n_splits, seed):
    found = splits(KFold(n_splits, random_state=seed), y)
    in_fold = np.array([counts_of(y, test) for _, test in found])
    assert np.ptp(in_fold, axis=0).max() <= 1
    assert np.ptp(in_fold.sum(axis=1)) <= 1
    assert in_fold.min() >= 1


@a_search
@given(y=labels(), seed=seeds, order_seed=seeds)
def test_the_same_seed_gives_the_same_splits_and_the_order_of_rows_changes_no_counts(
    y, seed, order_seed
):
    cv = KFold(3, random_state=seed)
    shuffled = np.random.default_rng(order_seed).permutation(y)
    for (train, test), (again, tested_again) in zip(
        splits(cv, y), splits(cv, y), strict=True
    ):
        assert_array_equal(train, again)
        assert_array_equal(test, tested_again)
    counts, others = (
        [counts_of(a, test) for _, test in splits(cv, a)] for a in (y, shuffled)
    )
    assert_array_equal(counts, others)


@a_search
@given(y=labels(), seed=seeds)
def test_unlabeled_rows_change_nothing_for_the_labeled_ones(y, seed):
    # Whatever the number of unlabeled rows and wherever they stand among the labeled
    # ones.
    labeled_only = y[y != -1]
    tested_alone = [
        test for _, test in splits(KFold(3, random_state=seed), labeled_only)
    ]
    # Of every labeled row among the labeled ones.
    number = np.cumsum(y != -1) - 1
    tested = [number[test] for _, test in splits(KFold(3, random_state=seed), y)]
    assert_array_equal(np.concatenate(tested), np.concatenate(tested_alone))


def test_without_random_state_all_splits_differ():
    y = np.arange(200) % 2
    cv = KFold(2)
    assert len({tuple(test) for _ in range(5) for _, test in splits(cv, y)}) == 10


@a_search
@given(y=labels(), seed=seeds)
def test_every_split_is_a_partition_and_tests_no_unlabeled_row(y, seed):
    for train, test in splits(KFold(3, random_state=seed), y):
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
        assert (y[test] != -1).all()
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()


# Splits of whole groups


@st.composite
def grouped(draw):
    """Labels and groups of rows; every class is labeled in two groups or more."""
    n_classes = draw(st.integers(2, 4))
    n_groups = draw(st.integers(4, 12))
    rows = st.tuples(st.integers(-1, n_classes - 1), st.integers(0, n_groups - 1))
    y, groups = np.array(draw(st.lists(rows, min_size=20, max_size=80))).T
    labeled_in = [set(groups[y == k]) for k in range(n_classes)]
    assume(all(len(names) >= 2 for names in labeled_in))
    assume(len(set().union(*labeled_in)) >= 3)
    return y, groups


def group_splits(splitter, y, groups):
    """The splits; examples whose groups take a class from training are rejected."""
    try:
        return splits(splitter, y, groups)
    except ValueError as error:
        if "none to train on" not in str(error):
            raise
        return reject()


@a_search
@given(data=grouped(), seed=seeds)
def test_labeled_rows_of_a_group_are_never_on_both_sides(data, seed):
    y, groups = data
    for train, test in group_splits(KFold(3, random_state=seed), y, groups):
        assert len(test)
        assert (y[test] != -1).all()
        assert not set(groups[train[y[train] != -1]]) & set(groups[test])
        assert set(y[train]) >= set(y) - {-1}


@a_search
@given(data=grouped(), seed=seeds)
def test_unlabeled_rows_of_a_tested_group_are_left_out_and_all_others_train(data, seed):
    y, groups = data
    for train, test in group_splits(KFold(3, random_state=seed), y, groups):
        is_unlabeled = y == -1
        is_tested = np.isin(groups, groups[test])
        assert_array_equal(
            train[is_unlabeled[train]], np.flatnonzero(is_unlabeled & ~is_tested)
        )
        assert_array_equal(
            np.sort(np.r_[train, test]), np.flatnonzero(~is_tested | ~is_unlabeled)
        )


@a_search
@given(data=grouped(), seed=seeds, order_seed=seeds)
def test_groups_are_chosen_whatever_the_order_of_rows(data, seed, order_seed):
    y, groups = data
    order = np.random.default_rng(order_seed).permutation(len(y))
    cv = KFold(3, random_state=seed)
    tested = [set(groups[test]) for _, test in group_splits(cv, y, groups)]
    assert tested == [
        set(groups[order][test]) for _, test in splits(cv, y[order], groups[order])
    ]


@pytest.mark.parametrize(
    "groups",
    [
        np.array([0, 1, 2, 0, 1, 2, np.nan, 0]),
        pd.Series([*"pqrpqr", None, "p"], dtype="category"),
        pl.Series([*"pqrpqr", None, "p"]),
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_an_unlabeled_row_without_a_group_always_trains(groups):
    y = [0, 0, 0, 1, 1, 1, -1, -1]
    for train, test in KFold(3, random_state=0).split(y, y, groups):
        assert 6 in train
        assert (7 in train) == (0 not in test)


@pytest.mark.parametrize(
    ("splitter", "y", "groups", "message"),
    [
        (
            KFold(5),
            list("aaaaaaaaabbbcccc"),
            None,
            "n_splits=5 folds need 5 labeled .*"
            "class 'b' has 3, class 'c' has 4. "
            "Pass n_splits=3 or less, label more rows",
        ),
        (KFold(2), [0, 0, 0, 1, -1], None, "class 1 has 1. Label more rows"),
        (
            KFold(2),
            [0, 1, 0, 1],
            ["p", "q", None, None],
            "for 2 labeled rows, first for row 2",
        ),
        (
            KFold(2),
            ["a", "a", "b", "b"],
            ["p", "q", "p", "p"],
            "tests all labeled rows of class 'b', and leaves none to train on: "
            "label more rows",
        ),
        (KFold(2), [0, 1, 0, 1], [0, 0, 0, 0], "2 folds need .*groups.*, got 1: label"),
        (
            KFold(5),
            [0, 1, 0, 1, 0, 1],
            [0, 0, 1, 1, 2, 2],
            "5 groups with labeled rows, got 3: label rows of more groups",
        ),
        # Three classes, each in another two of three groups: two folds take one class
        # whole.
        (
            KFold(2),
            list("aabbcc"),
            [0, 1, 1, 2, 0, 2],
            "tests all labeled rows of class",
        ),
        (
            KFold(2),
            [0, 1, 0, 1],
            [0, 1, 2],
            "X has 4 rows, y has 4 labels, groups has 3 entries",
        ),
        (
            KFold(2),
            [0, 1, 0, 1],
            np.array(["p", 1, "q", 2], dtype=object),
            "groups mixes text and other values, for example 'p' and 1",
        ),
    ],
)
def test_what_cannot_be_split_is_refused_with_the_way_out(splitter, y, groups, message):
    with pytest.raises(ValueError, match=message):
        splits(splitter, y, groups)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_splits", 2.5), ("n_repeats", 0), ("n_splits", True)],
)
def test_wrong_counts_are_shown(name, value):
    with pytest.raises(
        ValueError, match=f"{name} must be a whole number .*got {value!r}"
    ):
        KFold(**{name: value})


def test_a_splitter_shows_its_parameters_and_survives_a_pickle():
    cv = KFold(4, unlabeled="?", random_state=3)
    assert repr(cv).startswith("SemiSupervisedKFold(")
    assert "unlabeled='?'" in repr(cv)
    assert vars(pickle.loads(pickle.dumps(cv))) == vars(cv)


@a_search
@given(data=grouped(), seed=seeds)
def test_every_labeled_row_of_every_group_is_tested_exactly_once_a_repeat(data, seed):
    y, groups = data
    found = group_splits(KFold(3, n_repeats=2, random_state=seed), y, groups)
    for folds in (found[:3], found[3:]):
        tested = np.concatenate([test for _, test in folds])
        assert_array_equal(np.sort(tested), np.flatnonzero(y != -1))
