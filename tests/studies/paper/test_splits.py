"""Labeled, unlabeled and test rows of a cell."""

import numpy as np
import pytest

from iclda.studies.paper.design import CURVES, N_FOLDS, TABLES
from iclda.studies.paper.splits import curve_sizes, curve_split, fold_split, load_sets
from iclda.studies.store import Cell

CODES = (np.random.default_rng(0).random(103) < 0.25).astype(int)


def folds_of(seed, repeat=0, codes=CODES, n_labeled=10):
    cells = [Cell(TABLES, "set", repeat, fold) for fold in range(N_FOLDS)]
    return [fold_split(codes, n_labeled, seed, cell) for cell in cells]


@pytest.mark.parametrize("seed", range(5))
def test_two_rows_of_every_class_are_labeled_and_tested_in_folds_of_equal_size(seed):
    folds = folds_of(seed)
    tested = np.concatenate([split.test for split in folds])
    assert np.array_equal(np.sort(tested), np.arange(len(CODES)))
    assert {len(split.test) for split in folds} == {10, 11}
    for split in folds:
        assert len(split.labeled) == 10
        assert np.bincount(CODES[split.labeled], minlength=2).min() >= 2
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2
        check_parts(split)


def check_parts(split):
    """Every row is in one part."""
    parts = [np.unique(split.labeled), split.unlabeled, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(CODES)))


def test_a_curve_labels_one_row_a_class_more_and_tests_the_rest():
    for repeat in range(20):
        split = curve_split(CODES, 10, 0, Cell(CURVES, "set", repeat, 32))
        assert len(split.labeled) == 12
        assert len(split.unlabeled) == 32
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2
        check_parts(split)


@pytest.mark.parametrize("draw", [fold_split, curve_split])
def test_guaranteed_rows_may_repeat_unless_they_are_drawn_without_replacement(draw):
    # Of few rows of the second class, the same is often drawn twice.
    codes = np.repeat([0, 1], [60, 20])
    cells = [Cell(TABLES, "set", repeat, 1) for repeat in range(60)]

    def has_repeated_rows(*drawing):
        splits = [draw(codes, 10, 0, cell, *drawing) for cell in cells]
        return [len(set(split.labeled)) < len(split.labeled) for split in splits]

    assert any(has_repeated_rows("with-replacement"))
    assert has_repeated_rows() == has_repeated_rows("with-replacement")
    assert not any(has_repeated_rows("without-replacement"))


def test_a_split_depends_on_seed_and_cell_alone():
    cell = Cell(TABLES, "set", 4, 7)
    alone = fold_split(CODES, 10, 1, cell)
    among = folds_of(1, repeat=4)[7]
    for name in ("labeled", "unlabeled", "test"):
        assert np.array_equal(getattr(alone, name), getattr(among, name))
    others = [
        fold_split(CODES, 10, 2, cell),
        fold_split(CODES, 10, 1, Cell(TABLES, "b", 4, 7)),
    ]
    assert all(not np.array_equal(alone.labeled, other.labeled) for other in others)


@pytest.mark.parametrize(
    ("n_rows", "n_labeled", "largest"),
    [(1000, 10, 512), (195, 38, 128), (208, 120, 64)],
)
def test_curves_reach_as_far_as_there_are_rows_to_test(n_rows, n_labeled, largest):
    sizes = curve_sizes(n_rows, n_labeled, 2)
    assert sizes == [2**k for k in range(len(sizes))]
    assert sizes[-1] == largest


def test_fewer_labels_than_are_guaranteed_and_curves_without_rows_are_refused():
    with pytest.raises(ValueError, match="at least 4 labels, 2 of each class, got 3"):
        load_sets(["Haberman"], None, 3)
    with pytest.raises(ValueError, match="with 995 labels needs at least 1002 rows"):
        curve_sizes(1000, 995, n_classes=2)
