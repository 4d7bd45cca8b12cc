"""Rows of the cells of a comparison."""

import numpy as np
import pytest

from iclda.model_selection import SemiSupervisedKFold
from iclda.studies.compare.splits import (
    LABELED_CURVE,
    MAX_CURVE_UNLABELED_ROWS,
    REPEATED_FOLDS,
    UNLABELED_CURVE,
    Splits,
)
from iclda.studies.store import cells_of

Y = np.array((["a"] * 9 + ["b"] * 12 + ["c"] * 6 + [None] * 23), dtype=object)[
    np.random.default_rng(1).permutation(50)
]


IS_LABELED = np.array([label is not None for label in Y])


SPLITS = Splits(Y, 3, 2, seed=4)


HIDDEN = Splits(Y, 3, 2, n_labeled=8, seed=4)


def takes(splits, cells=None):
    return [
        splits.cell_rows(cell)
        for cell in cells or cells_of(REPEATED_FOLDS, {"t": range(3)}, splits.n_repeats)
    ]


def test_the_splits_are_those_of_the_semi_supervised_folds():
    folds = SemiSupervisedKFold(3, n_repeats=2, unlabeled=None, random_state=4)
    for take, (train, test) in zip(takes(SPLITS), folds.split(Y, Y), strict=True):
        assert np.array_equal(take.train, train)
        assert np.array_equal(take.test, test)
        assert np.array_equal(take.is_labeled, IS_LABELED[train])


@pytest.mark.parametrize("seed", range(5))
def test_hidden_labels_are_those_of_training_rows_and_every_class_keeps_two(seed):
    splits = Splits(Y, 3, 2, n_labeled=8, seed=seed)
    for take in takes(splits):
        kept = Y[take.train[take.is_labeled]].tolist()
        assert len(kept) == 8
        assert min(kept.count(name) for name in "abc") >= 2
        assert not np.isin(take.train, take.test).any()


def test_one_label_a_class_is_enough_where_there_are_no_more():
    assert Splits(Y, 3, 2, n_labeled=4).min_per_class == 1
    rare = np.array(["a"] * 2 + ["b"] * 8 + [None] * 4, dtype=object)
    assert Splits(rare, 2, 1).min_per_class == 1
    assert SPLITS.min_per_class == 2


def test_more_unlabeled_rows_are_added_to_fewer_and_nothing_else_changes():
    cells = cells_of(UNLABELED_CURVE, {"t": [4, 9, 16]}, 6)
    for split in range(6):
        few, more, most = takes(
            SPLITS, [cell for cell in cells if cell.repeat == split]
        )
        assert set(few.train) < set(more.train) < set(most.train)
        assert [(~take.is_labeled).sum() for take in (few, more, most)] == [4, 9, 16]
        assert set(few.train[few.is_labeled]) == set(most.train[most.is_labeled])
        assert np.array_equal(few.test, most.test)


@pytest.mark.parametrize("splits", [SPLITS, HIDDEN])
def test_rows_train_unlabeled_where_their_labels_are_not_used(splits):
    for cell in cells_of(LABELED_CURVE, {"t": [6, 9]}, 6):
        take = splits.cell_rows(cell)
        whole = takes(splits)[cell.repeat]
        assert take.is_labeled.sum() == cell.part
        assert np.array_equal(take.train, whole.train)
        assert np.array_equal(take.test, whole.test)


def test_sizes_of_curves_leave_out_those_of_the_comparison():
    assert SPLITS.unlabeled_sizes() == [0, 10, 13, 17]
    assert SPLITS.labeled_sizes() == [6, 9, 12]
    assert SPLITS.n_used == 18


def test_curves_go_on_beyond_the_labels_kept_while_half_of_the_rows_stay_unlabeled():
    y = np.array(["a", "b"] * 100, dtype=object)
    assert Splits(y, 10, 2, n_labeled=20).labeled_sizes() == [4, 7, 12, 33, 55, 90]
    assert Splits(y, 10, 2, n_labeled=4).labeled_sizes() == [9, 19, 40]
    assert Splits(y, 10, 2, n_labeled=120).labeled_sizes() == [4, 12, 39]


def test_curves_of_many_rows_end_where_more_would_take_long():
    many = Splits(np.concatenate([Y, np.full(9000, None)]), 3, 2)
    assert many.unlabeled_sizes()[-1] == MAX_CURVE_UNLABELED_ROWS
    assert many.labeled_sizes()[-1] == many.n_used
    take = many.cell_rows(cells_of(LABELED_CURVE, {"t": [6]}, 1)[0])
    assert (~take.is_labeled).sum() == MAX_CURVE_UNLABELED_ROWS


def test_copies_are_tested_once_and_do_not_train_where_one_is_tested():
    y = np.tile(Y, 2)
    copies = np.tile(np.arange(50), 2)
    splits = Splits(y, 3, 2, seed=4, first_copies=copies)
    assert [test.tolist() for test in splits.tests] == [
        test.tolist() for test in SPLITS.tests
    ]
    assert splits.n_training == 2 * SPLITS.n_training
    for cell in cells_of(REPEATED_FOLDS, {"t": range(3)}, 2):
        take = splits.cell_rows(cell)
        assert not np.isin(copies[take.train[take.is_labeled]], copies[take.test]).any()
        assert take.is_labeled.sum() >= splits.n_used
