import numpy as np
import pytest

from iclda.studies.cells import CURVES, N_FOLDS, TABLES, Cell
from iclda.studies.paper.splits import curve_split, fold_split, n_labeled_of

CODES = (np.random.default_rng(0).random(103) < 0.25).astype(int)


def folds_of(seed, repeat=0, codes=CODES, n_labeled=10):
    cells = [Cell(TABLES, "set", repeat, fold) for fold in range(N_FOLDS)]
    return [fold_split(codes, n_labeled, seed, cell) for cell in cells]


def test_every_row_is_tested_once_a_repeat_in_folds_of_equal_size():
    tested = [split.test for split in folds_of(3)]
    assert np.array_equal(np.sort(np.concatenate(tested)), np.arange(len(CODES)))
    assert {len(test) for test in tested} == {10, 11}


@pytest.mark.parametrize("seed", range(5))
def test_two_rows_of_every_class_are_labeled_and_tested_in_every_fold(seed):
    for split in folds_of(seed):
        assert len(split.labeled) == 10
        assert np.bincount(CODES[split.labeled], minlength=2).min() >= 2
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2


@pytest.mark.parametrize("seed", range(5))
def test_no_row_is_in_two_parts_of_a_fold(seed):
    for split in folds_of(seed):
        parts = [np.unique(split.labeled), split.unlabeled, split.test]
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(CODES)))


def test_a_curve_labels_one_row_a_class_more_and_tests_the_rest():
    for repeat in range(20):
        split = curve_split(CODES, 10, 0, Cell(CURVES, "set", repeat, 32))
        assert len(split.labeled) == 12
        assert len(split.unlabeled) == 32
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2
        parts = [np.unique(split.labeled), split.unlabeled, split.test]
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(CODES)))


def test_a_split_depends_on_seed_and_cell_alone():
    cell = Cell(TABLES, "set", 4, 7)
    alone = fold_split(CODES, 10, 1, cell)
    among = folds_of(1, repeat=4)[7]
    for name in ("labeled", "unlabeled", "test"):
        assert np.array_equal(getattr(alone, name), getattr(among, name))
    others = [fold_split(CODES, 10, 2, cell), fold_split(CODES, 10, 1, Cell(TABLES, "b", 4, 7))]
    assert all(not np.array_equal(alone.labeled, other.labeled) for other in others)


@pytest.mark.parametrize(("n_features", "n_labeled"), [(3, 10), (5, 10), (6, 12), (117, 234)])
def test_the_paper_labels_twice_as_many_rows_as_features_but_ten_at_least(n_features, n_labeled):
    assert n_labeled_of(n_features) == n_labeled
