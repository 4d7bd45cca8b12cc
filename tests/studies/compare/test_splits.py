import numpy as np
import pytest

from iclda.model_selection import SemiSupervisedKFold
from iclda.studies.compare.results import LABELED, UNLABELED
from iclda.studies.compare.splits import (
    MOST_ON_CURVES,
    Splits,
    is_capped,
    labeled_sizes,
    plan_comparison,
    plan_curve,
    unlabeled_sizes,
)

Y = np.array((["a"] * 9 + ["b"] * 12 + ["c"] * 6 + [None] * 23), dtype=object)[
    np.random.default_rng(1).permutation(50)
]
IS_LABELED = np.array([label is not None for label in Y])
SPLITS = Splits(Y, 3, 2, seed=4)
HIDDEN = Splits(Y, 3, 2, n_labeled=8, seed=4)


def takes(splits, cells=None):
    return [splits.take(cell) for cell in cells or plan_comparison("t", splits.n_repeats, 3)]


def test_the_splits_are_those_of_the_semi_supervised_folds():
    folds = SemiSupervisedKFold(3, n_repeats=2, unlabeled=None, random_state=4)
    for take, (train, test) in zip(takes(SPLITS), folds.split(Y, Y), strict=True):
        assert np.array_equal(take.rows, train)
        assert np.array_equal(take.test, test)
        assert np.array_equal(take.is_labeled, IS_LABELED[train])
        assert take.hidden.size == 0


def test_unlabeled_rows_always_train_and_are_never_tested():
    for take in takes(SPLITS) + takes(HIDDEN):
        assert np.isin(np.flatnonzero(~IS_LABELED), take.rows).all()
        assert IS_LABELED[take.test].all()
        assert not np.isin(take.test, take.rows).any()


def test_more_repeats_begin_with_the_same_ones():
    longer = Splits(Y, 3, 5, seed=4)
    for ours, theirs in zip(SPLITS.tests, longer.tests, strict=False):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(5))
def test_hidden_labels_are_those_of_training_rows_and_every_class_keeps_two(seed):
    splits = Splits(Y, 3, 2, n_labeled=8, seed=seed)
    for take in takes(splits):
        kept = Y[take.rows[take.is_labeled]].tolist()
        assert len(kept) == 8
        assert min(kept.count(name) for name in "abc") >= 2
        assert np.array_equal(
            np.sort(take.hidden), take.rows[~take.is_labeled & IS_LABELED[take.rows]]
        )
        assert not np.isin(take.hidden, take.test).any()  # fmt: skip


def test_one_label_a_class_is_enough_where_there_are_no_more():
    assert Splits(Y, 3, 2, n_labeled=4).min_per_class == 1
    rare = np.array(["a"] * 2 + ["b"] * 8 + [None] * 4, dtype=object)
    assert Splits(rare, 2, 1).min_per_class == 1
    assert SPLITS.min_per_class == 2


def test_more_unlabeled_rows_are_added_to_fewer_and_nothing_else_changes():
    cells = plan_curve(UNLABELED, "t", [4, 9, 16], 6)
    for split in range(6):
        few, more, most = takes(SPLITS, [cell for cell in cells if cell.repeat == split])
        assert set(few.rows) < set(more.rows) < set(most.rows)
        assert [(~take.is_labeled).sum() for take in (few, more, most)] == [4, 9, 16]
        assert set(few.rows[few.is_labeled]) == set(most.rows[most.is_labeled])
        assert np.array_equal(few.test, most.test)


@pytest.mark.parametrize("splits", [SPLITS, HIDDEN])
def test_rows_train_unlabeled_where_their_labels_are_not_used(splits):
    for cell in plan_curve(LABELED, "t", [6, 9], 6):
        take, whole = splits.take(cell), takes(splits)[cell.repeat]
        assert take.is_labeled.sum() == cell.part
        assert np.array_equal(take.rows, whole.rows)
        assert np.array_equal(take.test, whole.test)


def test_sizes_of_curves_leave_out_those_of_the_comparison():
    assert unlabeled_sizes(SPLITS) == [0, 10, 13, 17]
    assert labeled_sizes(SPLITS) == [6, 9, 12]
    assert SPLITS.n_used == 18


def test_curves_go_on_beyond_the_labels_kept_while_half_of_the_rows_stay_unlabeled():
    y = np.array(["a", "b"] * 100, dtype=object)
    assert labeled_sizes(Splits(y, 10, 2, n_labeled=20)) == [4, 7, 12, 33, 55, 90]
    assert labeled_sizes(Splits(y, 10, 2, n_labeled=4)) == [9, 19, 40]
    assert labeled_sizes(Splits(y, 10, 2, n_labeled=120)) == [4, 12, 39]


def test_curves_of_many_rows_end_where_more_would_take_long():
    many = Splits(np.concatenate([Y, np.full(9000, None)]), 3, 2)
    assert is_capped(many)
    assert unlabeled_sizes(many)[-1] == MOST_ON_CURVES
    assert labeled_sizes(many)[-1] == many.n_used
    take = many.take(plan_curve(LABELED, "t", [6], 1)[0])
    assert (~take.is_labeled).sum() == MOST_ON_CURVES
